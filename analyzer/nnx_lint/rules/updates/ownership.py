"""Whose objects a function under a transform changes, and what of them leaves it again.

A function under a transform works on copies of its arguments. A :class:`Change` is one that it certainly makes to such
a copy, or to an object that it merged from a State that it was given; :func:`carried` says whether a result may bring
the new values out.

Invariants: where a result is not known it may carry everything; a change that an inner transform does not write back is
that transform's, and none of the outer one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.classes import LibClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.effects import SETTING, place_of
from nnx_lint.model.naming import value_at
from nnx_lint.model.states import GraphDefVal, StateVal
from nnx_lint.model.unions import options
from nnx_lint.model.values import Array, ClassVal, Const, Ext, Obj, Other, Value
from nnx_lint.rules.program import FUNCTIONS, STATEMENT_LOOPS, binds, enclosing, follows, statement_of
from nnx_lint.rules.traces.captures import holds, owner_at
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import walk
from nnx_rules.transforms import Arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.events import Mutated, Ran
    from nnx_lint.model.frames import Frame, TraceScope
    from nnx_lint.model.modules import Module


class Change(NamedTuple):
    """A certain change of an object that belongs to a function under a transform.

    ``target`` is the object at the level of the function, ``root`` the parameter or the name that leads to it,
    ``merged`` whether the function merged it; ``name`` is what it is called at the place to report.
    """

    event: Mutated
    target: Obj
    root: str
    merged: bool
    module: Module
    node: ast.AST
    name: str


def at_level(obj: Obj, level: int) -> Obj:
    """The object that a copy of an inner trace stands for at an outer level."""
    while obj.level > level and obj.template is not None:
        obj = obj.template
    return obj


def changes_of(ran: Ran, action: str = "") -> Iterator[Change]:
    """The certain changes that a function made to its own objects, those of them whose action begins like this."""
    scope, frame = ran.scope, ran.scope.frame
    if frame is None:
        return
    for event in scope.changes:
        if not event.action.startswith(action):
            continue
        inner = event.frame.scope[event.frame.scope.index(scope) + 1 :] if scope in event.frame.scope else ()
        if any(each.row.arguments is not Arguments.KEPT for each in inner) or not isinstance(event.target, Obj):
            continue
        target = at_level(event.target, scope.level)
        if target.level != scope.level or target.leaf_level is not None or not event.frame.certain_within(scope):
            continue
        place = place_of(frame.given, target)
        merged = merged_holder(event, scope, target) if place is None else None
        if place is None and merged is None:
            continue
        module, node = event.frame.place_within(scope, event.node)
        name = event.name
        if event.frame is not frame:
            name, _ = owner_at(event.frame, frame, node, target, event.name)
        root = place.parameter if place is not None else merged or name
        yield Change(event, target, root, place is None, module, node, name)


def merged_holder(event: Mutated, scope: TraceScope, target: Obj) -> str | None:
    """The name of the object with the target in it that the function merged from a State that it was given."""
    frame = scope.frame
    assert frame is not None
    named = [(name, value) for name, value in frame.env.names.items() if isinstance(value, Obj)]
    outer: Frame | None = event.frame
    while outer is not None and outer is not frame:
        if isinstance(outer.receiver, Obj):
            named.append(("model", outer.receiver))
        named += [(name, value) for name, value in outer.env.names.items() if isinstance(value, Obj)]
        outer = outer.caller
    named.append(("model", target))
    for name, value in named:
        held = at_level(value, scope.level)
        if (held is target or holds(held, target)) and _is_given(held, frame):
            return name
    return None


def _is_given(merged: Obj, frame: Frame) -> bool:
    """Whether an object was merged from a State that the function of a frame was given."""
    states = merged.merged if merged.level == frame.level else ()  # a copy is made to be thrown away
    return any(isinstance(item, StateVal) and place_of(frame.given, item) is not None for item in states)


# -- what leaves the function ------------------------------------------------------------------------------------------


def carried(ran: Ran, change: Change) -> bool:
    """Whether what the function returns may hold the changed object, its state, or a value of it."""
    frame = ran.scope.frame
    if frame is None or may_hold(ran.result, change.target, beside=_is_beside_parameters(change)):
        return True
    if ran.scope.row.name in ABSTRACT or all(isinstance(option, Const) for option in options(ran.result)):
        return False
    return _is_read(frame, change)


ABSTRACT = frozenset({"jax.eval_shape", "nnx.eval_shape"})
"""Transforms that compute shapes, and no values."""


def _is_beside_parameters(change: Change) -> bool:
    """Whether what changes is a Variable beside the parameters, or what a layer of the library keeps beside its own."""
    cls = change.target.cls
    if cls.is_variable:
        return not cls.is_open and not cls.derives_from("nnx.Param")
    by_itself = change.event.effect in {"call", "draw"} and isinstance(cls, LibClass)
    return by_itself and not cls.derives_from("nnx.Optimizer")


def may_hold(value: Value, target: Obj, depth: int = 6, *, beside: bool = False) -> bool:
    """Whether a value may have an object in it, or its State; ``beside`` asks for what it has beside parameters."""
    return any(_option_holds(option, target, depth, beside) for option in options(value))


def _option_holds(value: Value, target: Obj, depth: int, beside: bool) -> bool:
    if isinstance(value, (Array, Const, Other, Ext)):
        return False
    if isinstance(value, StateVal):
        of_parameters = isinstance(value.wanted, ClassVal) and value.wanted.cls.derives_from("nnx.Param")
        return not (beside and of_parameters) and may_hold(value.of, target, depth, beside=beside)
    if isinstance(value, GraphDefVal):
        return False
    if isinstance(value, Obj) and value.cls.tracked:
        return related(value, target)
    if isinstance(value, (Seq, DictVal)) and depth and (value.exact or value.items):
        members = [item[1] if isinstance(item, tuple) else item for item in value.items]
        return any(may_hold(member, target, depth - 1, beside=beside) for member in members)
    return True


def related(one: Obj, other: Obj) -> bool:
    """Whether one of two objects, or what it is a copy of, holds the other."""
    level = min(one.level, other.level)
    one, other = at_level(one, level), at_level(other, level)
    return one is other or holds(one, other) or holds(other, one)


def _is_read(frame: Frame, change: Change) -> bool:
    """Whether a result is computed from a value of the changed object itself, and not only by calling it."""
    if frame.func is None:
        return True
    node, target = frame.func.node, change.target
    body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    values: list[ast.AST] = list(body) if isinstance(node, ast.Lambda) else []
    assigned: dict[str, list[ast.AST]] = {}
    is_optimizer = target.cls.derives_from("nnx.Optimizer")
    sets = change.event.action.startswith(SETTING) and change.event.frame is frame
    attribute = change.event.action.removeprefix(SETTING).removesuffix("`") if sets else None
    for part in (inner for statement in body for inner in walk(statement)):
        if isinstance(part, ast.Return) and part.value is not None:
            values.append(part.value)
        elif isinstance(part, ast.Assign) and not _is_earlier(frame, part, change):
            if attribute is not None and part is change.node and len(part.targets) == 1:
                continue  # what is computed there is so before the attribute is set
            for name in (item for each in part.targets for item in walk(each) if isinstance(item, ast.Name)):
                assigned.setdefault(name.id, []).append(part.value)
    # What takes steps inside got the objects as they were before: that it returns a loss says nothing of them.
    inside = change.event.frame is not frame and change.event.action.endswith("update(...)`")
    handed = {id(part) for part in walk(change.node)} if inside else set[int]()
    for value in values:
        called = {id(part.func) for part in walk(value) if isinstance(part, ast.Call)}
        owners = {id(part.value): part for part in walk(value) if isinstance(part, ast.Attribute)}
        for part in walk(value):
            if id(part) in handed:
                continue
            if isinstance(part, ast.Name):
                values.extend(assigned.pop(part.id, ()))
            if not isinstance(part, (ast.Name, ast.Attribute)):
                continue
            held = value_at(frame, part)
            if (
                not isinstance(held, Obj)
                or _is_of_another(frame, part)
                or not (held.cls.is_variable or id(part) not in called)
            ):
                continue
            if is_optimizer and (id(part) in owners if held is target else not held.cls.is_variable):
                continue  # the model that it keeps goes into the loss, before the step
            if attribute is not None and _is_beside(target, attribute, part, owners.get(id(part))):
                continue
            if held is target or holds(target, held):
                return True
    return False


def _is_of_another(frame: Frame, part: ast.expr) -> bool:
    """Whether a name is one that a function within this one binds for itself."""
    inner, root = enclosing(frame.module, part, *FUNCTIONS), root_of(part)
    own = frame.func is None or inner is None or inner is frame.func.node
    return not own and inner is not None and root is not None and binds(inner, root)


def _is_beside(target: Obj, name: str, part: ast.Name | ast.Attribute, read: ast.Attribute | None) -> bool:
    """Whether a part of an expression reads another attribute than the one that is set, and no method or property.

    ``read`` is the attribute that is asked of the part, if one is.
    """
    other = read if isinstance(part, ast.Name) else part
    return other is not None and other.attr != name and attribute_of(target, other.attr) is not None


def _is_earlier(frame: Frame, statement: ast.stmt, change: Change) -> bool:
    """Whether a statement of a function certainly has run before a change, and does not run again after it."""
    here = statement_of(frame.module, change.node) if change.module is frame.module else None
    if here is None or here is statement or not follows(frame.module, statement, here):
        return False
    return enclosing(frame.module, here, *FUNCTIONS, *STATEMENT_LOOPS) is (
        frame.func.node if frame.func is not None else None
    )
