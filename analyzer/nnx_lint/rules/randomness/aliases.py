"""Other names of a key: ``rng = key``, ``a = b = key``, ``k1, k2 = key, key``, and a place in a dict or a tuple that
the function writes down.

Invariants: both names are bound once, and the dict or tuple is written whole and never changed, so that they stand for
one key wherever they are read.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from nnx_lint.rules.bindings import pairs_of
from nnx_lint.rules.program import assigned_in, own_nodes, parameters_in
from nnx_lint.syntax.walk import remembered

if TYPE_CHECKING:
    from collections.abc import Mapping


def key_name(scope: ast.AST, node: ast.expr | None) -> str | None:
    """The name of a key in a function or module, the first where it has several."""
    if isinstance(node, ast.Name):
        return _first_names(scope).get(node.id, node.id)
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return None
    held = _held_in(scope).get(node.value.id)
    place = node.slice.value if isinstance(node.slice, ast.Constant) else None
    found = held.get(place) if held is not None and isinstance(place, (int, str)) else None
    return key_name(scope, found) if isinstance(found, ast.Name) else None


@remembered
def _first_names(scope: ast.AST) -> dict[str, str]:
    """The first names of what has others in a function or module, by these."""
    bound, given = assigned_in(scope), parameters_in(scope)
    found: dict[str, str] = {}
    for name, other in _renamed(scope):
        if bound[name] == 1 and not given[name] and bound[other] + given[other] <= 1:
            found[name] = found.get(other, other)
    return found


def _renamed(scope: ast.AST) -> list[tuple[str, str]]:
    """What a function or module makes names of other names, in the order of the text."""
    found: list[tuple[str, str]] = []
    for node in own_nodes(scope):
        targets = node.targets if isinstance(node, ast.Assign) else []
        pairs = [*pairs_of(node)]
        if len(targets) > 1 and isinstance(node, ast.Assign):  # a = b = key, or a = b = jax.random.key(0)
            first = node.value if isinstance(node.value, ast.Name) else targets[0]
            pairs = [(target, first) for target in targets if target is not first]
        for name, other in pairs:
            if isinstance(name, ast.Name) and isinstance(other, ast.Name):
                found.append((name.id, other.id))
    return found


@remembered
def _held_in(scope: ast.AST) -> dict[str, Mapping[object, ast.expr]]:
    """What dicts and tuples hold that a function or module writes down and leaves as they are, by place."""
    found: dict[str, Mapping[object, ast.expr]] = {}
    changed = Counter[str]()
    for node in own_nodes(scope):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and not isinstance(node.ctx, ast.Load):
            changed[node.value.id] += 1
        elif isinstance(node, ast.Call):  # who is given the whole may write into it
            changed.update(item.id for item in node.args if isinstance(item, ast.Name))
        for target, value in pairs_of(node):
            held = _places(value) if isinstance(target, ast.Name) else None
            if isinstance(target, ast.Name) and held and assigned_in(scope)[target.id] == 1:
                found[target.id] = held
    return {name: held for name, held in found.items() if not changed[name]}


def _places(value: ast.expr) -> dict[object, ast.expr]:
    """The elements of a dict or tuple that is written down, by key or place."""
    if isinstance(value, (ast.Tuple, ast.List)):
        starred = any(isinstance(item, ast.Starred) for item in value.elts)
        return {} if starred else dict(enumerate(value.elts))
    if isinstance(value, ast.Dict):
        known = [key.value for key in value.keys if isinstance(key, ast.Constant)]
        return dict(zip(known, value.values, strict=True)) if len(known) == len(value.values) else {}
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict" and not value.args:
        return {item.arg: item.value for item in value.keywords if item.arg is not None}
    return {}
