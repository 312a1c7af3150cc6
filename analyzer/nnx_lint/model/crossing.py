"""Values at the edge of a transform: which arguments arrive as new objects of the inner level, and which as they are.

Invariants: nothing but the level of Variables is changed in place; what :func:`refresh` returns shares no object that a
trace level tells apart with what it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.callables import Transformed
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.heap import touch
from nnx_lint.model.states import ForeignVal, StateVal
from nnx_lint.model.unions import UnionVal, join, options
from nnx_lint.model.values import UNKNOWN, Array, ClassVal, Const, Ext, Obj, Value
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_rules.shape_algebra import ANY, is_whole
from nnx_rules.shapes import UNKNOWN as UNKNOWN_SIZE
from nnx_rules.shapes import Dimension, Form
from nnx_rules.transforms import Arguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    """The parameters as a transform sees them: through a wrapper that takes anything, those of what it wraps."""
    own = syntax_parameters.positional_names(func.node.args)
    return own if own or func.node.args.vararg is None else syntax_parameters.positional_names(func.wrapped.node.args)


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


class Axes(NamedTuple):
    """How many axes a value gains at an edge, ``None`` if that is not known: it loses them where the number is
    negative. Of a single one ``place`` says where it is, and ``size`` how long, as far as that is known.
    """

    gained: int | None
    place: int | None = None
    size: Dimension = UNKNOWN_SIZE


SAME = Axes(0)


def more_axes(obj: Obj) -> Axes:
    """The axes that the arrays of an object have more than its class gives them."""
    stacked = obj.gained == 1 and obj.extent is not None
    return Axes(1, 0, obj.extent or UNKNOWN_SIZE) if stacked else Axes(0 if obj.gained == 0 else None)


def refresh(value: Value, level: int, *, axes: Axes = SAME, seen: dict[int, Value] | None = None) -> Value:
    """The value as it arrives on the other side of a transform: the same, but created at ``level``.

    What is in several arguments arrives once, where these have one table of what was ``seen``.
    """
    return _refresh(value, level, {} if seen is None else seen, axes)


def _refresh(value: Value, level: int, seen: dict[int, Value], axes: Axes) -> Value:
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, Array):
        array = type(value)(level, crossed(value.form, axes))
        array.bound = value.bound if axes.gained == 0 or (value.bound and value.bound.anywhere) else None
        array.maker = value.maker
        array.squashed = value.squashed if axes.gained == 0 else None
        return array
    if isinstance(value, Obj):
        seen[id(value)] = copy = value.another(level, value)
        copy.gained = None if axes.gained is None or value.gained is None else value.gained + axes.gained
        if value.assumed and value.gained == 0 and copy.gained is not None and copy.gained < 0:
            copy.gained = 0  # who maps over a parameter gives it a stack: an element is as the constructor makes it
        if axes.gained != 0:
            first = axes.gained == 1 and axes.place == 0
            copy.extent = axes.size if first and isinstance(axes.size, int) else None
        return copy
    if isinstance(value, Seq):
        fresh = Seq(value.type, (), level, exact=value.exact, node=value.node)
        seen[id(value)] = fresh
        fresh.items = [_refresh(item, level, seen, axes) for item in value.items]
        fresh.sure = [_refresh(item, level, seen, axes) for item in value.sure]
        return fresh
    if isinstance(value, DictVal):
        table = DictVal((), level, exact=value.exact, node=value.node)
        seen[id(value)] = table
        table.items = [(key, _refresh(item, level, seen, axes)) for key, item in value.items]
        table.shared = value.shared
        return table
    if isinstance(value, StateVal):
        return value.again(level, before=value)
    if isinstance(value, ForeignVal) and value.held:
        held = {name: _refresh(item, level, seen, axes) for name, item in value.held.items()}
        return ForeignVal(value.name, held)
    if isinstance(value, UnionVal):
        return join(*(_refresh(option, level, seen, axes) for option in value.options))
    if isinstance(value, Transformed) and isinstance(value.func, Obj):
        return Transformed(value.applied, _refresh(value.func, level, seen, axes))
    return value


def crossed(form: Form | None, axes: Axes) -> Form | None:
    """What is known of an array that has gained or lost axes."""
    shape = form.shape if form is not None else None
    if axes.gained == 0 or axes.gained is None:
        return form if axes.gained == 0 else None
    whole = shape if shape is not None and is_whole(shape) and axes.place is not None else None
    rank = len(whole) + max(axes.gained, 0) if whole is not None else 0
    place = axes.place % rank if axes.place is not None and -rank <= axes.place < rank else None
    dtype = form.dtype if form is not None else None
    if whole is not None and place is not None and axes.gained == 1:
        return Form((*whole[:place], axes.size, *whole[place:]), dtype)
    if whole is not None and place is not None and axes.gained == -1:
        return Form((*whole[:place], *whole[place + 1 :]), dtype)
    return Form((ANY, UNKNOWN_SIZE), dtype) if axes.gained > 0 else None


def shapeless(value: Value, *, dtype: bool = False) -> Value:
    """An array of which nothing but its level is known, and its ``dtype`` if so asked; other values as they are."""
    if not isinstance(value, Array):
        return value
    kept = Form(None, value.form.dtype) if dtype and value.form is not None else None
    return type(value)(value.level, kept)


# -- axes --------------------------------------------------------------------------------------------------------------

MAPPING = frozenset({"jax.pmap", "jax.vmap", "nnx.pmap", "nnx.vmap"})
"""The transforms that take an axis of what goes in, and give one to what comes out, wherever no other axis is said."""


def lost(transforms: Iterable[TransformVal], position: int, count: int) -> Axes:
    """The axes that one of so many arguments gains as it goes into a function under transforms: one less for each map
    over it. Nothing is known where there are more arguments than axes: that call fails.
    """
    total, place = 0, None
    for applied in transforms:
        axes = gained_by(applied, "in_axes", position)
        given = applied.keywords.get("in_axes")
        if axes.gained is None or (isinstance(given, Seq) and given.exact and len(given.items) < count):
            return Axes(None)
        total -= axes.gained
        place = axes.place if axes.gained else place
    return Axes(total, place if total == -1 else None)


def given_back(applied: TransformVal, result: Value, level: int, size: Dimension) -> Value:
    """What comes out of a function under a transform, which goes over so many elements if it is a map."""
    if isinstance(result, Seq) and result.type == "tuple" and result.exact and not applied.row.keeps_shapes:
        gained = (gained_by(applied, "out_axes", at, size) for at in range(len(result.items)))
        items = [refresh(item, level, axes=axes) for item, axes in zip(result.items, gained, strict=True)]
        return Seq("tuple", items, level, node=result.node)
    return refresh(result, level, axes=gained_by(applied, "out_axes", 0, size))


def mapped_size(applied: TransformVal, args: Sequence[Value | None], splits: Value | None) -> Dimension:
    """How many elements a map goes over: what it is told, or what the arrays have that it goes along, or the streams,
    which something around it may have split.
    """
    if applied.row.keeps_shapes:
        return UNKNOWN_SIZE
    told = applied.keywords.get("axis_size", applied.keywords.get("length"))
    if isinstance(told, Const) and type(told.value) is int:
        return told.value
    axes = (gained_by(applied, "in_axes", position) for position in range(len(args)))
    sizes = (extent(value, each.place) for value, each in zip(args, axes, strict=True) if each.place is not None)
    found = next((size for size in sizes if isinstance(size, int)), None)
    if found is None and isinstance(splits, Const) and type(splits.value) is int and any(map(_are_streams, args)):
        return splits.value
    return UNKNOWN_SIZE if found is None else found


def _are_streams(value: Value | None) -> bool:
    return isinstance(value, Obj) and value.cls.derives_from("nnx.Rngs")


def extent(value: Value | None, place: int) -> Dimension:
    """How many elements the arrays in a value have along an axis."""
    if isinstance(value, Obj) and not value.cls.is_variable:
        return value.extent if place == 0 and value.extent is not None else UNKNOWN_SIZE
    if isinstance(value, (Seq, DictVal)):
        held = value.items if isinstance(value, Seq) else [item for _, item in value.items]
        sizes = (extent(item, place) for item in held) if value.exact else ()
        return next((size for size in sizes if isinstance(size, int)), UNKNOWN_SIZE)
    shape = value.form.shape if isinstance(value, Array) and value.form is not None else None
    known = shape is not None and is_whole(shape) and -len(shape) <= place < len(shape)
    return shape[place] if known and shape is not None else UNKNOWN_SIZE


def gained_by(applied: TransformVal, option: str, position: int, size: Dimension = UNKNOWN_SIZE) -> Axes:
    """What an option says of the axes at a position: one for each element, none, or nothing that is known."""
    row = applied.row
    if row.keeps_shapes or not row.level:
        return SAME
    if row.name not in MAPPING and row.name != "nnx.scan":
        return Axes(None)
    axes = applied.keywords.get(option, applied.keywords.get("**"))
    if axes is None:
        return Axes(1, 0, size) if row.name in MAPPING or position > 0 else SAME
    if isinstance(axes, Seq):
        known = axes.exact and axes.type == "tuple" and position < len(axes.items)
        axes = axes.items[position] if known else UNKNOWN
    if isinstance(axes, Const) and axes.value is None:
        return SAME
    if isinstance(axes, Const) and type(axes.value) is int:
        return Axes(1, axes.value, size)
    return SAME if isinstance(axes, (ClassVal, Ext)) and row.name == "nnx.scan" else Axes(None)


def set_leaf_level(value: Value, level: int, *, params: bool) -> None:
    """Note the level of the Variables in a value where it differs from that of the objects."""
    for option in options(value):
        if isinstance(option, Obj):
            touch(option)
            if option.cls.is_variable and (params or not option.cls.derives_from("nnx.Param")):
                option.level = level
            option.leaf_level = level
            option.leaf_params = params
        elif isinstance(option, (Seq, DictVal)):
            for member in option.items:
                set_leaf_level(member[1] if isinstance(member, tuple) else member, level, params=params)
