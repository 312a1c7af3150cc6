"""Captured objects at the edge of an ``nnx`` transform (NNX204, NNX205, NNX208, NNX215): arguments, results, instances.

``nnx`` transforms take objects apart on the way in and put them together on the way out, so they refuse those of an
outer trace even where nothing is changed. ``nnx.eval_shape`` and the decorators that only edit random streams do not.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called, Returned, TransformApplied
from nnx_lint.model.expressions import text_of
from nnx_lint.model.modes import of_transform
from nnx_lint.model.naming import value_at
from nnx_lint.model.unions import options
from nnx_lint.model.values import (
    Ext,
    Obj,
    Value,
)
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.bindings import value_of
from nnx_lint.rules.callees import TRANSFORMED, TRANSFORMING
from nnx_lint.rules.traces.captures import Capture, owner_at, provenance
from nnx_lint.rules.traces.mends import as_parameter, unbound
from nnx_lint.rules.traces.mutation import copying_merge
from nnx_lint.syntax.walk import walk
from nnx_rules import transforms
from nnx_rules.rules import traces as rules
from nnx_rules.transforms import Arguments, Form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame, TraceScope
    from nnx_lint.model.modes import Modes


# -- arguments ---------------------------------------------------------------------------------------------------------


@judges_calls(rules.CAPTURED_INTO_TRANSFORM, *TRANSFORMED, *TRANSFORMING)
@judges_calls(rules.JAX_OVER_NNX, *TRANSFORMED, *TRANSFORMING)
@judges_calls(rules.NONDIFF_ARGUMENT_MUTATED, *TRANSFORMED, *TRANSFORMING)
def captured_argument(event: Called, report: Reporter) -> None:
    frame = event.frame
    if not frame.scope:
        return
    called = transform_of(event)
    if called is None:
        return
    row, text, modes, given = called
    if not row.name.startswith("nnx.") or row.arguments is not Arguments.KEPT or not row.flax_default:
        return
    if not modes.writes_back:
        return
    for value, node in given:
        for obj in objects_in(value):
            shared = shared_level(obj)
            scope = frame.crossed(obj.level if shared is None else shared)
            if scope is None or scope.frame is None or not frame.certain_within(scope) or not holds_variables(obj):
                continue
            rule = rules.JAX_OVER_NNX if scope.row.name.startswith("jax.") else rules.CAPTURED_INTO_TRANSFORM
            module, place = frame.place_within(scope, event.node)
            name, owner = text_of(node) if node is not None else f"a {obj.cls.name}", cast("Value", obj)
            if frame is not scope.frame:
                name, owner = owner_at(frame, scope.frame, place, obj, name)
            origin, handed = provenance(scope, name, owner)
            if handed and shared is not None:
                rule = rules.NONDIFF_ARGUMENT_MUTATED
            if rule is not report.rule:
                continue
            applied = scope.applied
            if rule is rules.NONDIFF_ARGUMENT_MUTATED:
                fix = partial(copying_merge, Capture(scope, module, place, obj, owner, name))
                report(module, place, fix=fix, name=name, transform=scope.text, where=origin)
                continue
            where = (related(applied.module, applied.node, f"`{applied.text}` is applied here"),)
            report(
                module,
                place,
                fix=partial(as_parameter, applied, scope.frame.func, name, module),
                related=where,
                name=name,
                outer=scope.text,
                transform=text,
                mend=_as_argument(scope.row, scope.text, name),
            )


def shared_level(obj: Obj) -> int | None:
    """The level of the Variables beside the parameters that a merged object shares with the State it was merged from,
    if it certainly has such.
    """
    if obj.leaf_level is None or obj.leaf_level >= obj.level:
        return None
    return obj.leaf_level if obj.leaf_params or holds_variables(obj, beside=True) else None


def over_jax(event: TransformApplied) -> bool:
    """Whether a transform of jax, which opens a trace, is given something else than a plain function."""
    row = event.applied.row
    return row.name.startswith("jax.") and row.level and not isinstance(event.func, (FuncVal, Transformed))


@judges(rules.JAX_OVER_NNX, TransformApplied, when=over_jax)
def transformed_method(event: TransformApplied, report: Reporter) -> None:
    """A transform of jax is given a method that is transformed already, with its module."""
    func, node = event.func, event.func_node
    held: list[Value] = []
    while isinstance(func, PartialVal):
        held += [*func.args, *func.keywords.values()]
        func = func.func
    if isinstance(func, BoundMethod) and func.func is not None:
        held, func = [func.receiver, *held], func.func
    elif isinstance(func, Obj) and isinstance(func.cls, UserClass):
        found = func.cls.find("__call__")
        held, func = [func, *held], found[1] if found is not None else func
    inner = func.applied if isinstance(func, Transformed) else None
    if inner is None or not inner.row.name.startswith("nnx.") or inner.row.arguments is not Arguments.KEPT:
        return
    captured = next((obj for value in held for obj in objects_in(value) if holds_variables(obj)), None)
    if captured is None or not inner.row.flax_default or not inner.modes.writes_back:
        return
    named: ast.AST | None = node.value if isinstance(node, ast.Attribute) else node
    if isinstance(node, ast.Call):  # a partial
        named = next((item for item in node.args if value_at(event.frame, item) is captured), None)
    name = text_of(named) if isinstance(named, (ast.Name, ast.Attribute)) else f"a {captured.cls.name}"
    report(
        event.frame.module,
        node,
        name=name,
        outer=event.applied.text,
        transform=inner.text,
        mend=_as_argument(event.applied.row, event.applied.text, name),
    )


def _as_argument(row: transforms.Transform, outer: str, name: str) -> str:
    """How the function under a transform of jax gets a module that its nnx transforms may write to."""
    if row.form is not Form.WRAPPER:
        return f"split `{name}` before, and merge a copy in the function: `nnx.merge(graphdef, state, copy=True)`"
    axes = ", in_axes=(None, 0)" if row.name in {"jax.pmap", "jax.vmap"} else ""
    return f"pass `{name}` as an argument, for instance `{outer}(f{axes})(module, x)`"


class Running(NamedTuple):
    """A transform that a call runs: as written, in which modes, with the operands and their expressions."""

    row: transforms.Transform
    text: str
    modes: Modes
    operands: list[tuple[Value, ast.expr | None]]


def transform_of(event: Called) -> Running | None:
    """The transform that a call runs."""
    node, callee = event.node, event.callee
    first: tuple[Value, ast.expr | None] | None = None
    if isinstance(callee, BoundMethod) and isinstance(callee.func, Transformed):
        receiver = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        first = (callee.receiver, receiver)
        callee = callee.func
    elif isinstance(callee, Obj) and isinstance(callee.cls, UserClass):
        found = callee.cls.find("__call__")
        if found is not None and isinstance(found[1], Transformed):
            first = (callee, node.func if isinstance(node, ast.Call) else None)
            callee = found[1]
    if isinstance(callee, Transformed):
        applied = callee.applied
        return Running(applied.row, applied.text, applied.modes, [*([first] if first else []), *operands(event)])
    row = transforms.find(callee.name) if isinstance(callee, Ext) else None
    if not isinstance(callee, Ext) or row is None or row.form is not Form.CALL:
        return None
    modes = of_transform(callee.name, event.keywords, event.modes)
    return Running(row, event.name, modes, operands(event)[row.operands :])


def operands(event: Called) -> list[tuple[Value, ast.expr | None]]:
    """The arguments of a call with their expressions."""
    if not isinstance(event.node, ast.Call):
        return []
    written = event.node.args
    nodes = [*written] if len(written) == len(event.args) else [None] * len(event.args)
    given = [(value, where) for value, where in zip(event.args, nodes, strict=True) if value is not None]
    named = {keyword.arg: keyword.value for keyword in event.node.keywords if keyword.arg is not None}
    return [*given, *((value, named.get(name)) for name, value in event.keywords.items())]


def objects_in(value: Value, depth: int = 3) -> Iterator[Obj]:
    """The NNX objects that an argument certainly is or holds."""
    known = options(value)
    if isinstance(value, Obj):
        if value.cls.tracked:
            yield value
    elif len(known) > 1:
        if all(isinstance(option, Obj) and option.cls.tracked for option in known):
            yield max((option for option in known if isinstance(option, Obj)), key=lambda option: option.level)
    elif isinstance(value, DictVal) and depth and value.exact:
        for _, item in value.items:
            yield from objects_in(item, depth - 1)
    elif isinstance(value, Seq) and depth:
        for item in value.certain:
            yield from objects_in(item, depth - 1)


def holds_variables(obj: Obj, depth: int = 4, *, beside: bool = False) -> bool:
    """Whether an object is a Variable or certainly holds one; ``beside`` asks for one beside the parameters."""
    if obj.cls.is_variable:
        return not beside or not obj.cls.derives_from("nnx.Param")
    if obj.cls.derives_from("nnx.Rngs"):
        return True
    values = [attr.value for name in attribute_names(obj) if (attr := attribute_of(obj, name)) is not None]
    inner = (item for value in values for item in objects_in(value))
    return depth > 0 and any(holds_variables(item, depth - 1, beside=beside) for item in inner)


# -- bound methods -----------------------------------------------------------------------------------------------------


@judges(rules.BOUND_METHOD_TRANSFORM, TransformApplied)
def bound_method(event: TransformApplied, report: Reporter) -> None:
    if not event.applied.row.rejects_bound_methods:
        return
    func = event.func
    while isinstance(func, PartialVal):
        func = func.func
    if not isinstance(func, BoundMethod) or not isinstance(func.receiver, Obj):
        return
    cls = func.receiver.cls
    defined = isinstance(func.func, FuncVal) or (func.func is None and func.name == "__call__")
    if not cls.derives_from("nnx.Module") or not defined:
        return
    node = event.func_node
    inner = node.args[0] if isinstance(node, ast.Call) and node.args else node
    report(
        event.frame.module,
        event.node,
        fix=partial(unbound, event.applied, event.func, event.frame.module),
        transform=event.applied.text,
        name=text_of(inner),
        unbound=f"{cls.name}.{func.name}",
    )


# -- results -----------------------------------------------------------------------------------------------------------

RETURNING = frozenset({"nnx.jit", "nnx.vmap", "nnx.pmap", "nnx.scan", "nnx.shard_map"})
"""Transforms that take apart what the function returns."""


@judges(rules.CAPTURED_RETURNED, Returned)
def captured_returned(event: Returned, report: Reporter) -> None:
    scope = running(event)
    if scope is None or scope.row.name not in RETURNING:
        return
    value = event.node.value if isinstance(event.node, ast.Return) else event.node
    frame, module = event.frame, event.frame.module
    for obj in objects_in(event.value):
        if not holds_variables(obj):
            continue
        if frame.crossed(obj.level) is not None:
            name: str | None = text_of(value) if isinstance(value, (ast.Name, ast.Attribute)) else f"a {obj.cls.name}"
        else:
            name = _captured_part(frame, obj, value)
        if name is not None:
            fix = partial(as_parameter, scope.applied, frame.func, name, module)
            report(module, event.node, fix=fix, name=name, transform=scope.text)


def _captured_part(frame: Frame, obj: Obj, node: ast.AST | None, depth: int = 3) -> str | None:
    """What an object that a function makes holds of captured ones, by the argument that gave it, or by its path."""
    made = value_of(frame.module, node) if isinstance(node, ast.Name) else node
    calls = [part for part in walk(made) if isinstance(part, ast.Call)] if made is not None else []
    given = [part for call in calls for part in (*call.args, *(word.value for word in call.keywords))]
    todo = [(obj, text_of(node) if isinstance(node, ast.Name) else obj.cls.name)]
    for held, path in todo:
        known = ((name, attribute_of(held, name)) for name in attribute_names(held))
        parts = ((name, part) for name, attr in known if attr is not None for part in objects_in(attr.value))
        for name, part in parts:
            if not holds_variables(part):
                continue
            if frame.crossed(part.level) is not None:
                written = (text_of(each) for each in given if value_at(frame, each) is part)
                return next(written, f"{path}.{name}")
            if path.count(".") < depth:
                todo.append((part, f"{path}.{name}"))
    return None


def running(event: Returned) -> TraceScope | None:
    """The transform whose function the event is in."""
    scopes = event.frame.scope
    return scopes[-1] if scopes and scopes[-1].frame is event.frame else None
