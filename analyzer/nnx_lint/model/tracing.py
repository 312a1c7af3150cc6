"""Functions under a transform: at the next trace level, with arguments that arrive as new objects of that level.

What a bound method, an instance, a partial or a static argument brings along is captured and keeps its level.

Invariants: a function runs once for each transform that it is given to and each call of the result; the scope of the
outermost transform decides what is captured, an inner one adds a level of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.crossing import SAME, Axes, kept_keywords, kept_positions, lost, refresh, statics_known
from nnx_lint.model.events import Ran, RanInside
from nnx_lint.model.frames import Frame, TraceScope
from nnx_lint.model.modules import Env
from nnx_lint.model.unions import UnionVal
from nnx_lint.model.values import (
    NUMBER,
    UNKNOWN,
    AliasVal,
    Array,
    ClassVal,
    Const,
    Obj,
    ParameterFlag,
    ParameterNumber,
    Value,
)
from nnx_rules.shapes import Form
from nnx_rules.transforms import Arguments as Changes

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence

    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.interpreter import Interpreter


def run_under(
    interp: Interpreter,
    frame: Frame,
    applied: TransformVal,
    func: Value,
    args: Sequence[Value | None],
    keywords: dict[str, Value],
    node: ast.AST | None,
    receiver: Value | None,
) -> Value:
    """Run a function value under a transform: at the next trace level, with arguments of that level."""
    held: list[tuple[Value, str]] = []
    bound: list[Value | None] = []
    named: dict[str, Value] = {}
    within: list[TransformVal] = []
    instance: Value | None = None
    while not isinstance(func, FuncVal):
        if isinstance(func, Transformed) and not applied.row.level:
            interp.ran.add(func)
            first = instance if instance is not None else receiver
            return interp.run_under(
                frame, func.applied, func.func, [*bound, *args], {**named, **keywords}, node, receiver=first
            )
        if isinstance(func, Transformed):
            # The outer transform decides what is captured; the inner one adds a level of its own.
            interp.ran.add(func)
            within.append(func.applied)
            func = func.func
        elif isinstance(func, (ClassVal, AliasVal)):
            return construct_mapped(interp, frame, applied, func, [*bound, *args], {**named, **keywords})
        elif isinstance(func, PartialVal):
            bound = [*func.args, *bound]
            named = {**func.keywords, **named}
            held.extend((value, "partial") for value in (*func.args, *func.keywords.values()))
            func = func.func
        elif isinstance(func, BoundMethod) and func.func is not None:
            instance = func.receiver
            held.append((instance, "bound"))
            func = func.func
        elif isinstance(func, Obj) and isinstance(func.cls, UserClass) and func.cls.find("__call__"):
            instance = func
            held.append((instance, "transformed"))
            func = func.cls.find("__call__")[1]  # type: ignore[index]
        elif isinstance(func, (Obj, BoundMethod)):
            handed = [*bound, *handed_on(args, frame.level, (applied, *within))]
            return run_native(interp, frame, applied, func, handed, {**named, **keywords}, held)
        else:
            return UNKNOWN
    interp.entered.add(id(func.node))
    if not applied.row.level:
        first = instance if instance is not None else receiver
        return interp.call_function(frame, func, [*bound, *args], {**named, **keywords}, node, receiver=first)
    level = frame.level + 1
    shift = 0 if receiver is None else 1
    filled = len(bound) + (instance is not None)
    count = len(args) + shift
    kept = kept_positions(applied, func, count, filled)
    named_kept = kept_keywords(applied, func, keywords, filled)
    number = None if applied.row.keeps_numbers else Array(level) if statics_known(applied) else UNKNOWN
    # NNX hands over what is given twice once; jax takes each argument apart on its own.
    seen: dict[int, Value] | None = None if applied.row.arguments is Changes.DROPPED else {}
    around = (applied, *within)
    if receiver is not None and 0 not in kept:
        receiver = refresh(receiver, level, axes=lost(around, 0, count), seen=seen)
    fresh = [
        value
        if value is None or position + shift in kept
        else _traced(value, level, lost(around, position + shift, count), number, seen)
        for position, value in enumerate(args)
    ]
    named_lost = SAME if all(each.row.keeps_shapes for each in around) else Axes(None)
    fresh_named = {
        name: value if name in named_kept else _traced(value, level, named_lost, number, seen)
        for name, value in keywords.items()
    }
    scope = TraceScope(applied, level, tuple(held), tuple(within))
    interp.traces.append(scope)
    first = instance if instance is not None else receiver
    result = interp.call_function(
        frame, func, [*bound, *fresh], {**named, **fresh_named}, node, receiver=first, level=level, scope=scope
    )
    if scope.frame is not None:
        interp.publish(Ran(frame, node or applied.node, scope, [*bound, *args], result))
        for view in scope.views():
            interp.publish(RanInside(frame, node or applied.node, view, [*bound, *args], result))
    return result


def handed_on(args: Sequence[Value | None], level: int, around: Sequence[TransformVal]) -> Sequence[Value | None]:
    """The arguments of a library object under transforms: elements of them, if one is a map."""
    if all(each.row.keeps_shapes for each in around):
        return args
    return [
        None if each is None else refresh(each, level, axes=lost(around, position, len(args)))
        for position, each in enumerate(args)
    ]


def _traced(value: Value, level: int, axes: Axes, number: Value | None, seen: dict[int, Value] | None) -> Value:
    """An argument as the function under a transform sees it: of the inner level, and what ``number`` says, if any."""
    literal = isinstance(value, Const) and isinstance(value.value, (bool, int, float, complex))
    if number is not None and (literal or value is NUMBER):
        # Which dtype a number has is decided by what it is combined with.
        return Array(level, Form(())) if isinstance(number, Array) else number
    if number is not None and _is_flag(value):
        return number
    if number is not None and isinstance(value, Seq) and value.type == "tuple" and value.exact:
        seen = {} if seen is None else seen
        parts = [_traced(item, level, axes, number, seen) for item in value.items]
        return Seq("tuple", parts, level, node=value.node)
    return refresh(value, level, axes=axes, seen=seen)


def _is_flag(value: Value) -> bool:
    """Whether a value is a parameter of the caller that is a flag by its default."""
    if isinstance(value, ParameterFlag):
        return True
    return isinstance(value, UnionVal) and all(
        isinstance(option, ParameterNumber) or (isinstance(option, Const) and isinstance(option.value, bool))
        for option in value.options
    )


def construct_mapped(
    interp: Interpreter,
    frame: Frame,
    applied: TransformVal,
    cls: ClassVal | AliasVal,
    args: list[Value | None],
    keywords: dict[str, Value],
) -> Value:
    """The instance that a class under a transform makes, ``nnx.vmap(Block)(keys)``."""
    from nnx_lint.model.calls import Arguments, invoke

    return invoke(interp, frame, cls, Arguments(applied.node, args, keywords, []), applied.node, applied.text)


def run_native(
    interp: Interpreter,
    frame: Frame,
    applied: TransformVal,
    func: Obj | BoundMethod,
    args: list[Value | None],
    keywords: dict[str, Value],
    held: list[tuple[Value, str]],
) -> Value:
    """Run a library object, or a method of one, under a transform."""
    from nnx_lint.model.calls import Arguments, invoke

    if not applied.row.level:
        return UNKNOWN
    receiver, how = (func, "transformed") if isinstance(func, Obj) else (func.receiver, "bound")
    scope = TraceScope(applied, frame.level + 1, (*held, (receiver, how)))
    inner = Frame(
        frame.module,
        Env("function", frame.env),
        caller=frame,
        call=applied.node,
        level=scope.level,
        scope=(*frame.scope, scope),
    )
    scope.frame = inner
    interp.traces.append(scope)
    name = f"it.{func.name}" if isinstance(func, BoundMethod) else "it"
    result = invoke(interp, inner, func, Arguments(applied.node, args, keywords, []), applied.node, name)
    interp.publish(Ran(frame, applied.node, scope, args, result))
    return result
