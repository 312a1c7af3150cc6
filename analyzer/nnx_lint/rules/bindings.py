"""What takes the value of an expression: the target that is bound to it, in this function or in one that calls it.

``x = f()``, ``x: T = f()``, ``x, y = f(), g()`` and ``new = f(); x = new`` all bind ``x`` to what ``f()`` returns, and
so does ``x = make()`` where ``make`` does nothing but return ``f()``. Rules that follow a value by the text come here,
so that none of them knows fewer ways of writing it than the others.

Invariants: a target takes that value and no other; where that is not certain, there is none.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    around,
    assigned_in,
    attributes_stored,
    bound_in,
    enclosing,
    is_own,
    own_nodes,
    parameters_in,
    reads_of,
)
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.parameters import positional_names
from nnx_lint.syntax.places import begin, end, standing_in
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.events import AttributeSet
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

Assignment = ast.Assign | ast.AnnAssign


class Bound(NamedTuple):
    """A target, and the statement that binds it."""

    target: ast.expr
    statement: Assignment


def pairs_of(statement: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment binds to what, target by target; each of a tuple by itself, if the values are written so."""
    if isinstance(statement, ast.AnnAssign):
        if statement.value is not None:
            yield statement.target, statement.value
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _pairs(target, statement.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        unclear = any(isinstance(item, ast.Starred) for item in (*target.elts, *value.elts))
        if len(target.elts) == len(value.elts) and not unclear:
            for one, other in zip(target.elts, value.elts, strict=True):
                yield from _pairs(one, other)
            return
    yield target, value


@remembered
def values_in(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """What a function or module binds to a name, or to a target that binds it among others, by name."""
    found: dict[str, list[ast.expr]] = {}
    for target, value in (pair for item in own_nodes(scope) for pair in pairs_of(item)):
        for part in walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                found.setdefault(part.id, []).append(value)
    return found


def bound_to(module: Module, node: ast.AST) -> Bound | None:
    """What takes the value of an expression; a name that only passes it on to another target is left out."""
    first = _bound_here(module, node)
    later = _passed_on(module, first.target) if first is not None and isinstance(first.target, ast.Name) else None
    return (bound_to(module, later) if later is not None else None) or first


def only_target(statement: ast.AST) -> ast.expr | None:
    """The one target that a statement binds to a value, whatever it is."""
    if isinstance(statement, ast.Assign):
        return statement.targets[0] if len(statement.targets) == 1 else None
    return statement.target if isinstance(statement, ast.AnnAssign) and statement.value is not None else None


def target_of(module: Module, node: ast.AST) -> ast.expr | None:
    """The target that the statement around an expression binds to its value."""
    found = _bound_here(module, node)
    return found.target if found is not None else None


def place_of(event: AttributeSet) -> ast.Attribute | None:
    """The target of an assignment that sets an attribute, alone or not: ``obj.name`` of ``obj.name, y = x``."""
    statement = event.node
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    targets = (target for target, value in pairs_of(statement) if event.value_node in (None, value))
    places = [part for target in targets for part in walk(target) if isinstance(part, ast.Attribute)]
    own = [part for part in places if part.attr == event.name and not isinstance(part.ctx, ast.Load)]
    return own[0] if len(own) == 1 else None


def _bound_here(module: Module, node: ast.AST) -> Bound | None:
    statement = next(standing_in(module.source.tree, getattr(node, "lineno", 0), getattr(node, "col_offset", 0)), None)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    targets = [target for target, value in pairs_of(statement) if value is node]
    return Bound(targets[0], statement) if len(targets) == 1 else None


def _passed_on(module: Module, target: ast.Name) -> ast.Name | None:
    """The one place where a name is read that is bound once."""
    scope = enclosing(module, target, *FUNCTIONS) or module.tree
    if assigned_in(scope)[target.id] != 1 or not is_own(module, scope, target):
        return None
    reads = reads_of(scope, target.id)
    return reads[0] if len(reads) == 1 and reads[0].lineno >= target.lineno else None


def value_of(module: Module, node: ast.expr, depth: int = 4) -> ast.expr | None:
    """What a name is bound to, where its function binds it once, to an expression of its own; where that is another
    such name, what this one is bound to. Likewise for an attribute or an entry of a name, ``held.x``, ``held["x"]``.
    """
    if not isinstance(node, ast.Name):
        return _held_value(module, node) if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    scope = enclosing(module, node, *FUNCTIONS) or module.tree
    if bound_in(scope)[node.id] != 1:
        return None
    found = first_values(scope).get(node.id)
    return (value_of(module, found, depth - 1) if isinstance(found, ast.Name) and depth else None) or found


def _held_value(module: Module, node: ast.Attribute | ast.Subscript) -> ast.expr | None:
    """What the function at hand puts under an attribute or a key before it reads that, where nothing else does."""
    key = _key_of(node)
    if key is None or not isinstance(node.ctx, ast.Load):
        return None
    scope = enclosing(module, node, *FUNCTIONS) or module.tree
    found = _held_values(scope).get(key)
    if found is None or end(found) > begin(node):
        return None
    if isinstance(node, ast.Attribute):
        whole = enclosing(module, node, ast.ClassDef) or module.tree
        return found if attributes_stored(whole).count(node.attr) == 1 else None
    outers = (next(ancestors(module, read), None) for read in reads_of(scope, key[0]))
    return found if all(isinstance(outer, ast.Subscript) for outer in outers) else None


def _key_of(node: ast.expr) -> tuple[str, object] | None:
    """What tells an attribute of a name, or an entry of it, from others."""
    if isinstance(node, ast.Attribute):
        return (node.value.id, node.attr) if isinstance(node.value, ast.Name) else None
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return None
    said = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return (node.value.id, (said,)) if isinstance(said, str) else None


@functools.lru_cache(maxsize=50)  # as below
def _held_values(scope: ast.AST) -> dict[tuple[str, object], ast.expr]:
    """What attributes and entries of names are bound to that a function binds once."""
    stored = (node for node in own_nodes(scope) if isinstance(node, (ast.Attribute, ast.Subscript)))
    times = Counter(_key_of(node) for node in stored if not isinstance(node.ctx, ast.Load))
    pairs = (pair for item in own_nodes(scope) if isinstance(item, Assignment) for pair in pairs_of(item))
    held = ((key, value) for target, value in pairs if (key := _key_of(target)) is not None)
    return {key: value for key, value in held if times[key] == 1}


def constant_of(module: Module, node: ast.expr) -> ast.expr | None:
    """What a name is bound to, where a module binds it once and no function has it for something of its own."""
    if not isinstance(node, ast.Name) or _is_local(module, node) or assigned_in(module.tree)[node.id] != 1:
        return None
    return None if parameters_in(module.tree)[node.id] else first_values(module.tree).get(node.id)


def _is_local(module: Module, node: ast.Name) -> bool:
    """Whether a function around a name binds it: who asks then need not look at the whole module, and depend on it."""
    scope = enclosing(module, node, *FUNCTIONS)
    while scope is not None:
        if assigned_in(scope)[node.id] or parameters_in(scope)[node.id]:
            return True
        scope = enclosing(module, scope, *FUNCTIONS)
    return False


@functools.lru_cache(maxsize=50)  # questions are about a few functions at a time
def first_values(scope: ast.AST) -> dict[str, ast.expr]:
    """What names of a function or module are bound to first, where that is an expression of its own."""
    found: dict[str, ast.expr] = {}
    for target, value in (pair for item in own_nodes(scope) for pair in pairs_of(item)):
        if isinstance(target, ast.Name):
            found.setdefault(target.id, value)
    return found


def given_to(module: Module, call: ast.Call) -> list[ast.expr]:
    """What a call is given, in any order: the expressions, and not the names or the dict that are bound to them for it
    alone.
    """
    found: list[ast.expr] = []
    for item in (*call.args, *(keyword.value for keyword in call.keywords)):
        value = _given_for_it(module, item)
        if isinstance(value, ast.Call) and is_name(value.func, "dict"):
            found += [_given_for_it(module, keyword.value) for keyword in value.keywords]
        else:
            found.append(value)
    return found


def _given_for_it(module: Module, node: ast.expr) -> ast.expr:
    """What a name is bound to that is read for this alone, or the expression itself."""
    return (value_of(module, node) if is_read_once(module, node) else None) or node


def keywords_of(module: Module, call: ast.Call) -> dict[str, ast.expr] | None:
    """The keyword arguments of a call, those of a dict that is spread there too; ``None`` where they are not known."""
    found: dict[str, ast.expr] = {}
    for item in call.keywords:
        held = (value_of(module, item.value) or item.value) if item.arg is None else None
        if item.arg is not None:
            found[item.arg] = item.value
        elif isinstance(held, ast.Call) and is_name(held.func, "dict") and not held.args:
            inner = keywords_of(module, held)
            if inner is None:
                return None
            found |= inner
        elif isinstance(held, ast.Dict) and all(isinstance(key, ast.Constant) for key in held.keys):
            keys = (str(key.value) for key in held.keys if isinstance(key, ast.Constant))
            found |= dict(zip(keys, held.values, strict=True))
        else:
            return None
    return found


def is_read_once(module: Module, node: ast.expr) -> bool:
    """Whether an expression is a name that its function reads nowhere else."""
    if not isinstance(node, ast.Name):
        return False
    return len(reads_of(enclosing(module, node, *FUNCTIONS) or module.tree, node.id)) == 1


@remembered
def names_of_first(func: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """The first parameter of a function, ``self`` of a method, and the names that the function binds to it."""
    first = next(iter(positional_names(func.args)), None)
    if first is None:
        return frozenset()
    pairs = (pair for item in walk(func) if isinstance(item, Assignment) for pair in pairs_of(item))
    others = [target for target, value in pairs if is_name(value, first)]
    return frozenset({first, *(target.id for target in others if isinstance(target, ast.Name))})


def handed_on(frame: Frame, node: ast.AST) -> tuple[Frame, ast.AST]:
    """Where the result of an expression arrives: the functions around it may do nothing but return it."""
    while True:
        caller, call, outers = frame.caller, frame.call, around(frame, node)
        if frame.func is None or caller is None or not isinstance(call, ast.Call):
            return frame, node
        if not outers or not isinstance(outers[-1], (ast.Return, ast.Lambda)):
            return frame, node
        frame, node = caller, call
