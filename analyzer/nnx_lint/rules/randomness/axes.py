"""Modules with single keys that ``StateAxes`` map over: ``{nnx.RngState: 0, ...: None}`` (a part of NNX511).

A key for each element is what such axes ask for, and ``nnx.split_rngs`` makes it, around the call or around the map.

Invariants: the module is made by a call in the function or file that maps, its key is that of a dropout layer, and no
class on the way to that speaks of maps or splits: what it makes may have an axis already.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import Transformed
from nnx_lint.model.classes import UserClass, library_class
from nnx_lint.model.expressions import text_of
from nnx_lint.model.library import FilterVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import value_of
from nnx_lint.rules.program import calls_in
from nnx_lint.rules.randomness.maps import calls_map, splits_in_place
from nnx_lint.rules.randomness.reading import is_rngs
from nnx_lint.rules.transforms.options import axes_of, given_to
from nnx_lint.syntax.dotted import last_name
from nnx_rules import _filter_logic as logic
from nnx_rules._filter_logic import Leaf
from nnx_rules.rules import rngs as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame


RNG_KEY = library_class("nnx.RngKey")


@judges_calls(rules.UNSPLIT_RNGS, Transformed, when=calls_map)
def unsplit_by_type(event: Called, report: Reporter) -> None:
    """``StateAxes`` map over the streams of a module that has single keys: ``{nnx.RngState: 0, ...: None}``."""
    callee = event.callee
    if not isinstance(callee, Transformed) or isinstance(callee.func, Transformed) or RNG_KEY is None:
        return
    axes = axes_of(callee.applied, "in_axes")
    for position, entry in enumerate(axes if isinstance(axes, tuple) else ()):
        if not isinstance(entry, FilterVal) or position >= len(event.args):
            continue
        axis, value = given_to(entry, Leaf(logic.UNKNOWN, RNG_KEY, logic.UNKNOWN)), event.args[position]
        node, held = event.nodes[position], present(value) if value is not None else None
        if isinstance(axis, int) and isinstance(held, Obj) and _is_made_single(event.frame, held, node):
            path = f"{text_of(node)}.{_dropout_in(held)}.rngs"
            report(event.frame.module, node, transform=callee.applied.text, axis=axis, path=path)


def _is_made_single(frame: Frame, value: Obj, node: ast.expr) -> bool:
    """Whether a module has a dropout layer whose key is certainly a single one: a call in the same function or module
    makes the module, and nothing of that function may give it others.
    """
    scope = frame.func.node if frame.func is not None else frame.module.tree
    made = value_of(frame.module, node)
    if value.gained != 0 or not isinstance(node, ast.Name) or made is None or made is not value.node:
        return False
    return not splits_in_place(frame, scope, {node.id}) and _dropout_in(value) is not None


def _dropout_in(value: Obj, depth: int = 4) -> str | None:
    """The path of a dropout layer that a module made of the streams that it was given, none of which it splits."""
    if not isinstance(value.cls, UserClass) or any(_splits(each) for each in value.cls.lineage):
        return None
    for name in attribute_names(value):
        attr = attribute_of(value, name)
        part = attr.value if attr is not None else None
        if not isinstance(part, Obj) or part.gained != 0:
            continue
        if part.cls.derives_from("nnx.Dropout") and is_rngs((part.args or {}).get("rngs")):
            return name
        inner = _dropout_in(part, depth - 1) if depth else None
        if inner is not None:
            return f"{name}.{inner}"
    return None


def _splits(cls: UserClass) -> bool:
    """Whether a constructor speaks of maps or splits, itself or in a method that it calls."""
    own = {node.name: node for node in cls.node.body if isinstance(node, ast.FunctionDef)}
    begun = own.get("__init__")
    called = {last_name(call.func) for call in calls_in(begun)} if begun is not None else set[str]()
    called |= {last_name(call.func) for name in called & own.keys() for call in calls_in(own[name])}
    return any(word in name for name in called for word in ("map", "scan", "split"))
