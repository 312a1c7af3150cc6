"""Values at the edge of a transform: which arguments arrive as new objects of the inner level, and which as they are.

Invariants: nothing is changed in place; what :func:`refresh` returns shares no object that a trace level tells apart
with what it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.values import Array, Const, DictVal, Obj, Seq, StateVal, UnionVal, Value, join
from nnx_rules.transforms import Arguments

if TYPE_CHECKING:
    from nnx_lint.model.callables import FuncVal, TransformVal


def literal_positions(value: Value | None, default: tuple[int, ...]) -> tuple[int, ...] | None:
    """Argument numbers written as a literal int or tuple of ints; ``None`` if they are not known."""
    if value is None:
        return default
    if isinstance(value, Const) and isinstance(value.value, int):
        return (value.value,)
    if isinstance(value, Seq) and value.exact and all(isinstance(item, Const) for item in value.items):
        return tuple(item.value for item in value.items if isinstance(item, Const) and isinstance(item.value, int))
    return None


def kept_positions(applied: TransformVal, func: FuncVal, count: int) -> set[int]:
    """Positions of arguments that a transform hands to the function as they are, so that these count as captured.

    ``jax.grad`` and its like do so with arguments that they do not differentiate, others with static ones.
    """
    everything = set(range(count))
    if applied.row.arguments is Arguments.SHARED:
        argnums = literal_positions(applied.keywords.get("argnums"), default=(0,))
        return everything.difference(argnums) if argnums is not None and min(argnums, default=0) >= 0 else set()
    parameters = [item.arg for item in (*func.node.args.posonlyargs, *func.node.args.args)]
    kept: set[int] = set()
    for option in applied.row.static_options:
        value = applied.keywords.get(option)
        if option.endswith("names"):
            names = value.items if isinstance(value, Seq) else [value]
            kept.update(
                parameters.index(item.value)
                for item in names
                if isinstance(item, Const) and isinstance(item.value, str) and item.value in parameters
            )
        else:
            kept.update(literal_positions(value, default=()) or ())
    return kept


def refresh(value: Value, level: int, *, mapped: bool = False) -> Value:
    """The value as it arrives on the other side of a transform: the same, but created at ``level``.

    What is ``mapped`` gains or loses axes on the way: the shapes of arrays are not known on the other side.
    """
    return _refresh(value, level, {}, mapped)


def _refresh(value: Value, level: int, seen: dict[int, Value], mapped: bool) -> Value:
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, Array):
        array = type(value)(level)
        if not mapped:
            array.form, array.maker = value.form, value.maker
        return array
    if isinstance(value, Obj):
        copy = Obj(value.cls, level, value.args, value.node)
        copy.assumed = value.assumed
        copy.training = value.training
        copy.origin = value.origin
        copy.binds = value.binds
        copy.template = value
        seen[id(value)] = copy
        return copy
    if isinstance(value, Seq):
        fresh = Seq(value.type, (), level, exact=value.exact, node=value.node)
        seen[id(value)] = fresh
        fresh.items = [_refresh(item, level, seen, mapped) for item in value.items]
        fresh.sure = [_refresh(item, level, seen, mapped) for item in value.sure]
        return fresh
    if isinstance(value, DictVal):
        table = DictVal((), level, exact=value.exact, node=value.node)
        seen[id(value)] = table
        table.items = [(key, _refresh(item, level, seen, mapped)) for key, item in value.items]
        return table
    if isinstance(value, StateVal):
        return StateVal(value.of, level, value.wanted)
    if isinstance(value, UnionVal):
        return join(*(_refresh(option, level, seen, mapped) for option in value.options))
    return value
