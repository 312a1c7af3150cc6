"""Tracers that a function keeps for the traced one that calls it, in an object from outside (parts of NNX207, NNX214).

A logger that is told the loss, a recorder that a model is given, a helper that appends to a list: what stands in the
traced function is a call, and what is kept is an argument of it, or is computed from one.

Invariants: the traced function, and those between, use the object for this call only; what is kept there is not taken
out again, and nothing sets the attribute anew, as one does with scratch space.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import AttributeSet, ContainerFilled
from nnx_lint.model.expressions import text_of
from nnx_lint.model.naming import value_at
from nnx_lint.model.values import Obj, Value
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.bindings import place_of
from nnx_lint.rules.program import attributes_named, attributes_stored, binds
from nnx_lint.rules.repeating import argument, handed_for
from nnx_lint.rules.traces.captures import level_of
from nnx_lint.rules.traces.escapes import (
    TAKING,
    container_node,
    emptied,
    is_stand_in,
    is_traced,
    stored_node,
    taken_from,
    used_inside,
)
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import traces as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame, TraceScope

MAX_CALLS = 3
"""How many calls lie between the traced function and what keeps a value at most."""


class Kept(NamedTuple):
    """Something that a traced function hands to a call which keeps it: the call, and what holds it, as it is called
    there.
    """

    scope: TraceScope
    frame: Frame
    call: ast.Call
    name: str


@judges(rules.TRACER_ESCAPE, AttributeSet)
def set_elsewhere(event: AttributeSet, report: Reporter) -> None:
    """A method of a plain object, which the traced function calls, sets an attribute to what it is given."""
    frame, target = event.frame, place_of(event)
    if target is None or event.obj.cls.tracked or not _is_helper(frame):
        return
    found = _kept(frame, target, event.obj.level, event.value, event.value_node, tracked=False)
    if found is not None and event.value_node is not None and not _is_read(frame, target):
        _report(found, report)


@judges(rules.TRACER_ESCAPE, ContainerFilled)
@judges(rules.UNTRACKED_MUTATION, ContainerFilled)
def filled_elsewhere(event: ContainerFilled, report: Reporter) -> None:
    """The same with a container, of an object or by itself."""
    frame, target, stored = event.frame, container_node(event.node), stored_node(event.node)
    if target is None or stored is None or not _is_helper(frame):
        return
    owner = value_at(frame, target.value) if isinstance(target, ast.Attribute) else None
    tracked = isinstance(owner, Obj) and owner.cls.tracked
    if tracked is not (report.rule is rules.UNTRACKED_MUTATION) or used_inside(frame, target):
        return
    if _is_scratch(frame, target):
        return
    found = _kept(frame, target, level_of(event.container, "write"), event.value, stored, tracked=tracked)
    _report(found, report, event.action)


def _is_helper(frame: Frame) -> bool:
    """Whether a function runs because a traced one calls it."""
    return bool(frame.scope) and frame is not frame.scope[-1].frame


def _report(found: Kept | None, report: Reporter, action: str = "") -> None:
    if found is not None:
        report(found.frame.module, found.call, name=found.name, transform=found.scope.text, action=action)


def _kept(
    frame: Frame, target: ast.expr, level: int, value: Value, stored: ast.expr | None, *, tracked: bool
) -> Kept | None:
    """The call of the traced function that has something kept, if it certainly is a tracer."""
    scope = frame.crossed(level, tracked=tracked)
    if scope is None or scope.frame is None or emptied(frame, target):
        return None
    traced, name = _holds_stand_in(scope, value), text_of(target)
    owner: ast.expr | None = _root(target)
    for _ in range(MAX_CALLS):
        call, caller = frame.call, frame.caller
        if not isinstance(owner, ast.Name) or not isinstance(call, ast.Call) or caller is None:
            return None
        outer = handed_for(frame, owner.id)
        if not isinstance(outer, (ast.Name, ast.Attribute)) or not _is_used_so_only(caller, outer, call):
            return None
        name = text_of(outer) + name.removeprefix(owner.id)
        stored = argument(frame, stored.id) if isinstance(stored, ast.Name) else None
        if caller is scope.frame or (caller.scope and caller is caller.scope[-1].frame) or _is_global(caller, outer):
            known = traced or (stored is not None and is_traced(caller, scope, stored))
            taken = isinstance(outer, ast.Name) and outer.id in taken_from(caller.module.tree)
            return Kept(scope, caller, call, name) if known and not taken else None
        frame, owner = caller, _root(outer)
    return None


def _is_global(frame: Frame, node: ast.expr) -> bool:
    """Whether a function takes an object from its module: nobody hands it over."""
    root = _root(node)
    return isinstance(root, ast.Name) and frame.func is not None and not binds(frame.func.node, root.id)


def _root(node: ast.expr) -> ast.expr:
    """The name that an expression with dots and brackets begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node


def _is_scratch(frame: Frame, target: ast.expr) -> bool:
    """Whether a module takes something out of containers of this name, or sets an attribute of this name anew."""
    while isinstance(target, ast.Subscript):
        target = target.value
    if not isinstance(target, ast.Attribute):
        return isinstance(target, ast.Name) and target.id in taken_from(frame.module.tree)
    tree = frame.module.tree
    return target.attr in _attributes_taken_from(tree) | _set_anew(tree)


@remembered
def _attributes_taken_from(tree: ast.Module) -> frozenset[str]:
    """The names of the attributes out of whose values a module takes something."""
    owners = (node.value for name in TAKING for node in attributes_named(tree).get(name, ()))
    return frozenset(owner.attr for owner in owners if isinstance(owner, ast.Attribute))


@remembered
def _set_anew(tree: ast.Module) -> frozenset[str]:
    """The names of the attributes that a module sets in several places."""
    return frozenset(name for name, count in Counter(attributes_stored(tree)).items() if count > 1)


def _is_read(frame: Frame, target: ast.Attribute) -> bool:
    """Whether a method reads what it sets."""
    same = (node for node in walk(frame.func.node) if isinstance(node, ast.Attribute)) if frame.func is not None else ()
    return any(isinstance(node.ctx, ast.Load) and text_of(node) == text_of(target) for node in same)


def _holds_stand_in(scope: TraceScope, value: Value, depth: int = 3) -> bool:
    if isinstance(value, (Seq, DictVal)) and depth:
        members = [item[1] if isinstance(item, tuple) else item for item in value.items]
        return any(_holds_stand_in(scope, member, depth - 1) for member in members)
    return is_stand_in(scope, value)


def _is_used_so_only(frame: Frame, owner: ast.expr, call: ast.Call) -> bool:
    """Whether all that a function does with an object is to make this call, with it or of a method of it: what it
    keeps is not for the function.
    """
    name, func = text_of(owner), text_of(call.func)
    uses = [node for node in walk(frame.func.node) if isinstance(node, ast.expr)] if frame.func is not None else []
    whole = [node for node in uses if isinstance(node, (ast.Name, ast.Attribute)) and text_of(node) == name]
    calls = [node for node in uses if isinstance(node, ast.Call) and text_of(node.func) == func]
    given = (item for node in calls for item in (*node.args, *(word.value for word in node.keywords)))
    so = {id(part) for node in calls for part in walk(node.func)} | {id(item) for item in given}
    return all(id(node) in so or not isinstance(node.ctx, ast.Load) for node in whole)
