"""Values at the edge of a transform: which arguments arrive as new objects of the inner level, and which as they are.

Invariants: nothing is changed in place; what :func:`refresh` returns shares no object that a trace level tells apart
with what it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.callables import Transformed
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.states import ForeignVal, StateVal
from nnx_lint.model.values import Array, Const, Obj, UnionVal, Value, join
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_rules.transforms import Arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def kept_positions(applied: TransformVal, func: FuncVal, count: int, filled: int = 0) -> set[int]:
    """Positions of arguments that a transform hands to the function as they are, so that these count as captured.

    ``jax.grad`` and its like do so with arguments that they do not differentiate, others with static ones. As many
    parameters as are ``filled`` were there before the transform, of a bound method or a partial: it does not see them.
    """
    everything = set(range(count))
    if applied.row.arguments is Arguments.SHARED:
        argnums = literal_positions(applied.keywords.get("argnums"), default=(0,))
        return everything.difference(argnums) if argnums is not None and min(argnums, default=0) >= 0 else set()
    names = _static_names(applied)
    parameters = _parameters(func)[filled:]
    kept = {position for position, name in enumerate(parameters) if name in names}
    return kept.union(static_positions(applied, len(parameters)))


def kept_keywords(applied: TransformVal, func: FuncVal, given: Iterable[str], filled: int = 0) -> set[str]:
    """Names of keyword arguments that a transform hands to the function as they are.

    ``jax.grad`` and its like differentiate none of them; a static parameter is static however it is given.
    """
    if applied.row.arguments is Arguments.SHARED:
        return set(given)
    parameters = _parameters(func)[filled:]
    positions = static_positions(applied, len(parameters))
    by_position = {name for position, name in enumerate(parameters) if position in positions}
    return _static_names(applied).union(by_position).intersection(given)


def statics_known(applied: TransformVal) -> bool:
    """Whether the options of a transform say in so many words which arguments are static."""
    if "**" in applied.keywords:
        return False
    given = [(option, applied.keywords.get(option)) for option in applied.row.static_options]
    return all(
        value is None or isinstance(value, Const) or (isinstance(value, Seq) and value.exact and _literal(value))
        for _, value in given
    )


def _literal(value: Seq) -> bool:
    return all(isinstance(item, Const) for item in value.items)


def _parameters(func: FuncVal) -> list[str]:
    return syntax_parameters.positional_names(func.node.args)


def _static_names(applied: TransformVal) -> set[str]:
    """The parameters that ``static_argnames`` and its like name."""
    found: set[str] = set()
    for option in applied.row.static_options:
        value = applied.keywords.get(option) if option.endswith("names") else None
        for item in value.items if isinstance(value, Seq) else [value]:
            if isinstance(item, Const) and isinstance(item.value, str):
                found.add(item.value)
    return found


def static_positions(applied: TransformVal, count: int) -> set[int]:
    """The positions that ``static_argnums`` and its like number, from the first parameter on or back from the last."""
    found: set[int] = set()
    for option in applied.row.static_options:
        if not option.endswith("names"):
            found.update(literal_positions(applied.keywords.get(option), default=()) or ())
    return {position + count if position < 0 else position for position in found}


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
            array.form, array.maker, array.squashed = value.form, value.maker, value.squashed
        return array
    if isinstance(value, Obj):
        copy = Obj(value.cls, level, value.args, value.node)
        copy.assumed = value.assumed
        copy.training = value.training
        copy.origin = value.origin
        copy.binds = value.binds
        copy.mapped = mapped or value.mapped
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
    if isinstance(value, ForeignVal) and value.held:
        held = {name: _refresh(item, level, seen, mapped) for name, item in value.held.items()}
        return ForeignVal(value.name, held)
    if isinstance(value, UnionVal):
        return join(*(_refresh(option, level, seen, mapped) for option in value.options))
    if isinstance(value, Transformed) and isinstance(value.func, Obj):
        return Transformed(value.applied, _refresh(value.func, level, seen, mapped))
    return value
