"""A State of what an object holds, written into and merged to something else (NNX224): a copy of it was meant, and the
object has changed, too.

``nnx.split`` copies nothing. ``params["kernel"] = nnx.Param(...)`` puts another Variable into the State, while
``params["kernel"][...] = ...`` writes into that of the object, with each call once more.

Invariants: the object is an attribute that the function neither assigns nor updates, so that it lives on; a function
that writes twice may put back what was there, and is left alone.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.bindings import bound_to, names_of_first, pairs_of, value_of
from nnx_lint.rules.program import assigned_in, calls_in, canonical_of, own_nodes
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import remembered
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame


class Split(NamedTuple):
    """``graphdef, *states = nnx.split(self.part)``."""

    node: ast.expr
    part: ast.Attribute
    names: list[str]


@judges_calls(rules.ALIASED_MERGE, "nnx.merge")
def edited_state(event: Called, report: Reporter) -> None:
    frame, call, func = event.frame, event.node, event.frame.func
    if func is None or not isinstance(func.node, ast.FunctionDef) or func.name == "__init__":
        return
    if not isinstance(call, ast.Call) or len(call.args) < 2:
        return
    given = [item.id for item in call.args if isinstance(item, ast.Name)]
    if len(given) < len(call.args) or any(assigned_in(func.node)[name] != 1 for name in given):
        return
    found = _split_into(frame, func.node, given)
    if found is None or any(assigned_in(func.node)[name] != 1 for name in found.names):
        return
    written = [
        target
        for node in own_nodes(func.node)
        for target, _ in pairs_of(node)
        if found.node.lineno < target.lineno < call.lineno and _root_of_variable(target) in found.names[1:]
    ]
    texts = {frame.module.source.segment(target) for target in written}
    if not written or len(texts) < len(written) or _gets_back(frame, func.node, text_of(found.part)):
        return
    bound = bound_to(frame.module, call)
    target = bound.target if bound is not None else None
    report(
        frame.module,
        call,
        related=(related(frame.module, written[0], "one of them is changed here"),),
        name=target.id if isinstance(target, ast.Name) else "the merged object",
        other=text_of(found.part),
    )


def _split_into(frame: Frame, scope: ast.FunctionDef, given: list[str]) -> Split | None:
    """Where a method splits what the object holds that it belongs to into parts of which the first have these names."""
    for target, call, names in _unpacked(scope).get(given[0], ()):
        part = value_of(frame.module, call.args[0]) or call.args[0]
        if names[: len(given)] != given or not isinstance(part, ast.Attribute):
            continue
        if _root(part) in names_of_first(scope) and canonical_of(frame.env, call.func) == "nnx.split":
            return Split(target, part, names)
    return None


@remembered
def _unpacked(scope: ast.FunctionDef) -> dict[str, list[tuple[ast.expr, ast.Call, list[str]]]]:
    """The calls of a method whose results get names one by one, with these, by the first of them."""
    found: dict[str, list[tuple[ast.expr, ast.Call, list[str]]]] = {}
    for target, call in (pair for node in own_nodes(scope) for pair in pairs_of(node)):
        elements = target.elts if isinstance(target, ast.Tuple) else []
        names = [item.id for item in elements if isinstance(item, ast.Name)]
        if isinstance(call, ast.Call) and call.args and names and len(names) == len(elements):
            found.setdefault(names[0], []).append((target, call, names))
    return found


def _root(node: ast.expr) -> str | None:
    """The name that a path of attributes and subscripts begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _root_of_variable(target: ast.expr) -> str | None:
    """The name of the State whose Variable an assignment writes into: its value, or all of its elements."""
    is_value = isinstance(target, ast.Attribute) and target.attr in {"value", "raw_value"}
    is_all = isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value is ...
    if not isinstance(target, (ast.Attribute, ast.Subscript)) or not (is_value or is_all):
        return None
    return None if isinstance(target.value, ast.Name) else _root(target.value)


def _gets_back(frame: Frame, scope: ast.FunctionDef, part: str) -> bool:
    """Whether the function assigns what was split, or what holds it, or gives it a State."""
    attributes = (node for node in own_nodes(scope) if isinstance(node, ast.Attribute))
    assigned = (node for node in attributes if not isinstance(node.ctx, ast.Load))
    if any(f"{part}.".startswith(f"{text_of(node)}.") for node in assigned):
        return True
    calls = calls_in(scope)
    if any(is_name(call.func, "setattr") for call in calls):
        return True
    updates = [call for call in calls if canonical_of(frame.env, call.func) == "nnx.update" and call.args]
    return any(f"{part}.".startswith(f"{text_of(call.args[0])}.") for call in updates)
