"""What an array gives for an index: the shape of ``x[:, 0]``, ``x[None]``, ``x[ids]``.

Invariant: a dimension is a number only where it certainly is that number; an index of which more is not known than that
it is one gives nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.containers import Seq
from nnx_lint.model.forms import NOTHING, is_int, literal
from nnx_lint.model.values import NUMBER, WHOLE, Array, ArrayAttr, Const, Cut, NumpyNumber, Value
from nnx_rules import shape_algebra as algebra
from nnx_rules.layers import is_integral
from nnx_rules.shapes import UNKNOWN, Form
from nnx_rules.sizes import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.calls import Arguments
    from nnx_rules.shapes import Dimension, Shape


def of_index(array: Array, indices: Sequence[Value]) -> Form | None:
    """What an array gives for an index: numbers, slices, ``None``, ``...``, and arrays of integers side by side."""
    known = array.form
    if known is None or known.shape is None:
        return known  # at least the dtype stays
    if known.shape and str(known.shape[0]).startswith("*") and algebra.is_whole(known.shape[1:]):
        ends = _of_ends(known.shape[1:], indices)
        return Form((algebra.ANY, *ends), known.dtype) if ends is not None else None
    dots = [place for place, item in enumerate(indices) if _is(item, ...)]
    new = [item for item in indices if _is(item, None)]
    counted = len(indices) - len(dots) - len(new)
    if not algebra.is_whole(known.shape) or len(dots) > 1 or counted > len(known.shape):
        return None
    filled = list(indices)
    where = dots[0] if dots else len(filled)
    whole: list[Value] = [WHOLE] * (len(known.shape) - counted)
    filled[where : where + 1 if dots else where] = whole
    axes = iter(known.shape)
    shape: list[Dimension] = []
    together = _together(filled)
    for place, item in enumerate(filled):
        if _is(item, None):
            shape.append(1)
            continue
        axis = next(axes)
        if isinstance(item, Cut):
            shape.append(_length(item, axis))
        elif together is not None and place == together[0]:
            shape += together[1]
        elif together is None and not _is_number(item):
            return None
    return Form(tuple(shape), known.dtype)


def part_at(at: ArrayAttr, indices: Sequence[Value]) -> ArrayAttr:
    """``array.at[...]``: where nobody knows what an index picks, the part has at least the last axis of the array. That
    is said of one that goes by a name: no mask picks as many elements as that.
    """
    found = ArrayAttr(at.level, at.name, host=at.host, owner=at.owner, array=at.array)
    whole = at.array.form if at.array is not None else None
    found.part = of_index(at.array, indices) if at.array is not None else None
    shape = whole.shape if found.part is None and whole is not None else None
    plain = all(isinstance(item, (Array, Cut)) or _is_number(item) for item in indices)  # a tuple would be several
    if shape and plain and algebra.is_whole(shape) and len(indices) < len(shape) and isinstance(shape[-1], Size):
        found.part = Form((algebra.ANY, shape[-1]))
    return found


def _together(indices: Sequence[Value]) -> tuple[int, Shape] | None:
    """What the arrays among some indices pick together, and the place of the first of them: ``x[rows, columns]``."""
    picking = [place for place, item in enumerate(indices) if _picks(item)]
    arrays = [indices[place] for place in picking if not _is_number(indices[place])]
    if not arrays or picking[-1] - picking[0] >= len(picking):
        return None  # those that stand apart put their axes in front of all others
    shapes = [places_of(item) for item in arrays]
    shape = algebra.broadcast(*shapes)
    return (picking[0], shape) if shape is not None else None


def along_axis(args: Arguments) -> Form:
    """``take_along_axis(array, indices, axis)``: along the axis as many as there are indices."""
    known, places, axis = literal(args.get(0, "arr")), literal(args.get(1, "indices")).shape, args.get(2, "axis")
    along = axis.value if isinstance(axis, Const) else None
    if known.shape is None or places is None or not algebra.is_whole(known.shape) or not algebra.is_whole(places):
        return NOTHING
    if len(known.shape) != len(places) or not isinstance(along, int) or not -len(places) <= along < len(places):
        return NOTHING
    others = (*known.shape[: along % len(places)], 1, *known.shape[along % len(places) + 1 :])
    return Form(algebra.broadcast(others, places), known.dtype)


def _of_ends(ends: Shape, indices: Sequence[Value]) -> Shape | None:
    """What an index leaves of the last axes, where nobody knows how many come before them: ``x[None]`` keeps them all,
    ``x[:, None, :]`` the last one, ``x[..., None]`` adds one, ``x[..., :8]`` takes a part.
    """
    dots = [place for place, item in enumerate(indices) if _is(item, ...)]
    if len(dots) > 1 or not ends:
        return None
    if not dots:
        if all(_is(item, None) for item in indices):
            return ends
        plain = all(isinstance(item, Cut) or _is(item, None) or _is_number(item) for item in indices)
        return ends[-1:] if plain and indices and _is_all(indices[-1]) else None
    before, after = indices[: dots[0]], indices[dots[0] + 1 :]
    counted = sum(not _is(item, None) for item in after)
    ends = (*[UNKNOWN] * (counted - len(ends)), *ends)  # as many as it asks for, or it fails
    if not all(_is_all(item) or _is(item, None) for item in before):
        return None
    axes = iter(ends[len(ends) - counted :])
    shape = list(ends[: len(ends) - counted])
    for item in after:
        axis = 1 if _is(item, None) else next(axes)
        if _is(item, None) or isinstance(item, Cut):
            shape.append(_length(item, axis) if isinstance(item, Cut) else axis)
        elif not _is_number(item):
            return None
    return tuple(shape)


def _is_all(item: Value) -> bool:
    return isinstance(item, Cut) and (item is WHOLE or item.bounds == (None, None, None))


def _is_number(item: Value) -> bool:
    """Whether an index is one number, known or not: it takes one place of an axis."""
    if isinstance(item, Const):
        return is_int(item.value)
    return item is NUMBER or isinstance(item, NumpyNumber)


def places_of(item: Value) -> Shape | None:
    """The shape of an array of integers, or of a list of some, which picks elements along an axis."""
    if isinstance(item, Seq) and item.type == "list" and item.exact and item.items and all(map(_is_number, item.items)):
        return (len(item.items),)
    known = item.form if isinstance(item, Array) else None
    return known.shape if known is not None and is_integral(known.dtype) and algebra.is_whole(known.shape) else None


def _picks(item: Value) -> bool:
    """Whether an index is a number or an array: several of them go together."""
    return not isinstance(item, Cut) and not _is(item, None)


def _length(cut: Cut, axis: Dimension) -> Dimension:
    """How much a slice takes of an axis."""
    if _is_all(cut):
        return axis
    known = [item for item in cut.bounds if item is None or isinstance(item, int)]
    if len(known) == 3 and isinstance(axis, int) and known[2] != 0:
        return len(range(axis)[slice(*known)])
    start, stop, step = cut.bounds
    return algebra.cut(axis, start, stop) if step in (None, 1) and axis != UNKNOWN else UNKNOWN


def _is(item: Value, literally: object) -> bool:
    return isinstance(item, Const) and item.value is literally
