"""Loops that take the elements of something for others than they are (NNX865): keys for items, pairs for modules.

Invariants: a pair is taken for a module only where the loop uses it in a way in which no tuple can be used; keys are
taken for items where two or more targets unpack them, one of which must then be a letter.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from nnx_lint.model.classes import LibClass
from nnx_lint.model.events import Iterated
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import StateVal
from nnx_lint.model.values import Obj, Value, present
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import ancestors, canonical_of, is_called, is_tried, resolved
from nnx_lint.syntax_walk import walk
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame

PAIRS = {f"nnx.{name}": "a path and a module" for name in ("iter_modules", "iter_children")} | {
    "nnx.iter_graph": "a path and a value",
    "nnx.to_flat_state": "a path and a Variable",
}
"""Functions whose results give pairs, and of what."""

METHODS = frozenset({"iter_modules", "iter_children"})
"""The methods of modules that stand for the functions of the same name."""

OF_TUPLES = frozenset({"count", "index"})


@judges(rules.LOOP_ELEMENTS, Iterated)
def keys_as_items(event: Iterated, report: Reporter) -> None:
    """The keys of an ``nnx.Dict`` or of a State are unpacked."""
    value, target = present(event.value), event.target
    if not isinstance(target, (ast.Tuple, ast.List)) or is_tried(event.frame.module, event.node):
        return
    what = _keyed(value)
    if what is not None:
        text = text_of(event.node)
        slots: dict[str, Any] = {"elements": "its keys", "mend": f"write `{text}.items()`"}
        report(event.frame.module, event.node, name=text, value=what, **slots)


def _keyed(value: Value) -> str | None:
    if isinstance(value, StateVal):
        return "a State"
    is_dict = isinstance(value, Obj) and isinstance(value.cls, LibClass) and value.cls.derives_from("nnx.Dict")
    return "an `nnx.Dict`" if is_dict else None


@judges(rules.LOOP_ELEMENTS, Iterated)
def pairs_as_modules(event: Iterated, report: Reporter) -> None:
    """The pairs of a path and a module are used as if they were modules."""
    frame, call, target = event.frame, event.node, event.target
    if not isinstance(call, ast.Call) or not isinstance(target, ast.Name):
        return
    pairs = _pairs(frame, call)
    if pairs is None or any(_binds(node, target) for node in _body(frame, call)):
        return
    for node in _body(frame, call):
        if isinstance(node, ast.Name) and node.id == target.id and _is_no_tuple(frame, node):
            mend = f"unpack them: `for path, {target.id} in ...`"
            places = (related(frame.module, call, "these are pairs"),)
            name, elements = text_of(call.func), f"pairs of {pairs}"
            report(frame.module, node, related=places, name=name, value="an iterator", elements=elements, mend=mend)
            return


def _pairs(frame: Frame, call: ast.Call) -> str | None:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in METHODS and is_module(resolved(frame.env, func.value)):
        return PAIRS[f"nnx.{func.attr}"]
    return PAIRS.get(canonical_of(frame.env, func) or "")


def _body(frame: Frame, iterable: ast.expr) -> Iterator[ast.AST]:
    """The nodes of what runs for each element."""
    parent = next(ancestors(frame.module, iterable), None)
    if isinstance(parent, (ast.For, ast.AsyncFor)):
        for statement in parent.body:
            yield from walk(statement)
    elif isinstance(parent, ast.comprehension):
        for test in parent.ifs:
            yield from walk(test)
        outer = next(ancestors(frame.module, parent), None)
        parts = (getattr(outer, name, None) for name in ("elt", "key", "value"))
        for part in parts:
            yield from walk(part) if isinstance(part, ast.AST) else ()


def _binds(node: ast.AST, target: ast.Name) -> bool:
    return isinstance(node, ast.Name) and node.id == target.id and not isinstance(node.ctx, ast.Load)


def _is_no_tuple(frame: Frame, use: ast.Name) -> bool:
    """Whether a use of a name asks for what no tuple has: an attribute, a call, a class of NNX."""
    parent = next(ancestors(frame.module, use), None)
    if isinstance(parent, ast.Attribute):
        return parent.attr not in OF_TUPLES and not parent.attr.startswith("__")
    if not isinstance(parent, ast.Call):
        return False
    if is_called(frame.module, use):
        return True
    tested = isinstance(parent.func, ast.Name) and parent.func.id == "isinstance" and parent.args[0] is use
    return tested and len(parent.args) > 1 and (canonical_of(frame.env, parent.args[1]) or "").startswith("nnx.")
