"""What operations on arrays do to shapes: broadcasting, products, einsum, reshaping, windows, axes that come and go.

Shapes are those of :mod:`nnx_rules.shapes`. Invariants: ``None`` is a shape of which nothing is known, and what comes
out where an operation cannot be followed; a dimension of a result is a number only where those that go in make it
certain. Nothing here raises: what cannot be is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from nnx_rules.shapes import UNKNOWN, Dimension, Shape, Symbol, size
from nnx_rules.sizes import Size, added, at_most, is_local, minus, multiple, shared, times

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY = Symbol("*?")
"""Any number of dimensions of which nothing is known."""


def is_whole(shape: Shape | None) -> bool:
    """Whether it is known how many dimensions there are."""
    return shape is not None and not any(str(item).startswith("*") for item in shape)


# -- broadcasting and products -----------------------------------------------------------------------------------------


def broadcast(*shapes: Shape | None) -> Shape | None:
    """The shape of an operation element by element.

    >>> broadcast((8, 1), (3,))
    (8, 3)
    """
    first, *others = shapes
    for other in others:
        first = _broadcast(first, other)
    return first


def _broadcast(left: Shape | None, right: Shape | None) -> Shape | None:
    if left is None or right is None:
        return None
    result: list[Dimension] = []
    for place in range(max(len(left), len(right))):
        sides = [shape[-1 - place] for shape in (left, right) if place < len(shape)]
        if any(str(side).startswith("*") for side in sides):
            return (ANY, *result)
        both = _side_by_side(sides[0], sides[-1])
        if both is None:
            return None
        result.insert(0, _of_two_names(sides, left, right, last=not place) if both == UNKNOWN else both)
    return tuple(result)


def _of_two_names(sides: list[Dimension], left: Shape, right: Shape, *, last: bool) -> Dimension:
    """The size of an axis that goes by the name that a function gives it, and by that of a parameter: features are the
    class's to name, and all else belongs to who calls. Names that stand beside each other are those of two sizes.

    >>> from nnx_rules.sizes import named
    >>> _broadcast((named("n@3"), named("c@3")), (named("length"), named("dim")))
    ('n', 'dim')
    """
    if len(sides) < 2 or not all(isinstance(side, Size) for side in sides) or is_local(sides[0]) is is_local(sides[1]):
        return UNKNOWN
    one, other = zip(sides, (left, right), strict=True)
    (given, around), (own, beside) = (one, other) if is_local(sides[0]) else (other, one)
    if given in beside or own in around:
        return UNKNOWN
    return own if last and around.count(given) == beside.count(own) == 1 else given


def beside_any(shape: Shape | None) -> Shape | None:
    """The shape of an operation element by element with an array of which nothing is known: it may have more axes, and
    repeats no axis that is longer than one.

    >>> beside_any((8, 1, 3))
    ('*?', 8, '?', 3)
    """
    last = shape[_stars(shape) :] if shape is not None else ()
    kept = tuple(item if isinstance(item, Size) or (isinstance(item, int) and item > 1) else UNKNOWN for item in last)
    return (ANY, *kept) if kept else None


def _stars(shape: Shape) -> int:
    """How many items there are up to the last one that stands for any number of axes."""
    return max((place + 1 for place, item in enumerate(shape) if str(item).startswith("*")), default=0)


def _side_by_side(left: Dimension, right: Dimension) -> Dimension | None:
    """The size of an axis of two arrays, of which one may be repeated; ``None`` if they do not fit."""
    if left == right or right == 1:
        return left
    if left == 1:
        return right
    known = [side for side in (left, right) if isinstance(side, int)]
    return None if len(known) == 2 else known[0] if known else UNKNOWN


def product(left: Shape | None, right: Shape | None) -> Shape | None:
    """The shape of a product of matrices.

    >>> product((8, 3, 4), (4, 5))
    (8, 3, 5)
    """
    if left is None and right is not None and len(right) == 2 and is_whole(right):
        return (ANY, right[1])  # whatever has rows
    if not left or not right or not is_whole(right) or not (is_whole(left) or len(right) <= 2):
        return None
    if len(left) == 1 and not is_whole(left):
        return None
    inner = right[max(len(right) - 2, 0)]
    if UNKNOWN not in (left[-1], inner) and left[-1] != inner:
        return None  # two numbers fail, and of two names nobody knows
    if len(left) == 1:
        return (*right[:-2], *right[-1:]) if len(right) > 1 else ()
    if len(right) == 1:
        return left[:-1]
    around = left[:-2] if len(right) == 2 else broadcast(left[:-2], right[:-2])
    return (*around, *left[-2:-1], *right[-1:]) if around is not None else None


def outer(left: Shape | None, right: Shape | None) -> Shape | None:
    """The shape of all products of an element of one array and an element of another.

    >>> outer((8,), (3, 4))
    (8, 12)
    """
    return None if left is None or right is None else (*reshaped(left, (-1,)), *reshaped(right, (-1,)))


def einsum(equation: str, *shapes: Shape | None) -> Shape | None:
    """The shape that an equation gives; ``None`` where it says none, or sizes that differ.

    >>> einsum("btd,dhk->bthk", (2, 3, 8), (8, 4, 2))
    (2, 3, 4, 2)
    """
    given, arrow, result = equation.replace(" ", "").partition("->")
    operands = given.split(",")
    if not arrow or len(operands) != len(shapes):
        return None
    sizes: dict[str, Dimension] = {}
    rest: Shape = ()
    for operand, shape in zip(operands, shapes, strict=True):
        found = lettered(operand, shape)
        if found is None:
            return None
        letters, beside = found
        if any(_one_size(sizes.get(name, length), length) is None for name, length in letters.items()):
            return None
        sizes |= {name: _one_size(sizes.get(name, length), length) or UNKNOWN for name, length in letters.items()}
        both = broadcast(rest, beside)
        if both is None:
            return None
        rest = both
    head, dots, tail = result.partition("...")
    sides = [tuple(sizes.get(name, UNKNOWN) for name in part) for part in (head, tail)]
    return (*sides[0], *(rest if dots else ()), *sides[1])


def lettered(operand: str, shape: Shape | None) -> tuple[dict[str, Dimension], Shape] | None:
    """The size of each letter of an operand, and the dimensions of its dots; ``None`` if the shape does not fit."""
    head, dots, tail = operand.partition("...")
    if shape is None:
        return {}, (ANY,) if dots else ()
    named = len(head) + len(tail)
    if is_whole(shape):
        if len(shape) < named or (len(shape) > named and not dots):
            return None
        places = [*shape[: len(head)], *shape[len(shape) - len(tail) :]]
        return dict(zip(head + tail, places, strict=True)), shape[len(head) : len(shape) - len(tail)]
    known = shape[[str(item).startswith("*") for item in shape].index(True) + 1 :]
    last = tail if dots else head
    return dict(zip(reversed(last), reversed(known), strict=False)), (ANY,) if dots else ()


def _one_size(left: Dimension, right: Dimension) -> Dimension | None:
    """The size of an axis that two arrays share; einsum repeats an axis of size one, which one with a name is not."""
    named = [side for side in (left, right) if isinstance(side, Size)]
    return named[0] if len(named) == 1 and UNKNOWN in (left, right) else _side_by_side(left, right)


def _several(value: object) -> tuple[object, ...]:
    """What an argument gives that may be one or several."""
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)


# -- axes --------------------------------------------------------------------------------------------------------------


def places(axes: object, rank: int) -> tuple[int, ...] | None:
    """The axes of an array of this rank that an argument means: a number or several, negative ones from the end."""
    items = _several(axes)
    found = tuple(item % rank for item in items if isinstance(item, int) and -rank <= item < rank)
    return found if len(found) == len(items) == len(set(found)) else None


def reduced(shape: Shape | None, axes: object, *, keeps: bool = False) -> Shape | None:
    """What is left of a shape when a function has gone over some of its axes; all of them for ``None``."""
    if shape is None or not is_whole(shape):
        return () if axes is None and not keeps else None
    gone = places(tuple(range(len(shape))) if axes is None else axes, len(shape))
    if gone is None:
        return None
    kept = [(1 if place in gone else item) for place, item in enumerate(shape) if keeps or place not in gone]
    return tuple(kept)


def transposed(shape: Shape | None, axes: object = None) -> Shape | None:
    """A shape with its axes in another order; the other way round for ``None``."""
    if shape is None or not is_whole(shape):
        return None
    order = places(axes, len(shape)) if axes is not None else tuple(reversed(range(len(shape))))
    return tuple(shape[place] for place in order) if order is not None and len(order) == len(shape) else None


def swapped(shape: Shape | None, one: object, other: object) -> Shape | None:
    """A shape with two axes swapped."""
    pair = places((one, other), len(shape)) if shape is not None and is_whole(shape) and one != other else None
    if shape is None or pair is None:
        return None
    order = list(shape)
    order[pair[0]], order[pair[1]] = order[pair[1]], order[pair[0]]
    return tuple(order)


def moved(shape: Shape | None, source: object, target: object) -> Shape | None:
    """A shape with one axis moved."""
    if shape is None or not is_whole(shape):
        return None
    start, end = places(source, len(shape)), places(target, len(shape))
    if start is None or end is None or len(start) != 1 or len(end) != 1:
        return None
    rest = [item for place, item in enumerate(shape) if place != start[0]]
    rest.insert(end[0], shape[start[0]])
    return tuple(rest)


def expanded(shape: Shape | None, axes: object) -> Shape | None:
    """A shape with axes of size one at these places of the result."""
    if shape is None or not is_whole(shape):
        return None
    count = len(_several(axes))
    added = places(axes, len(shape) + count)
    if added is None:
        return None
    rest = iter(shape)
    return tuple(1 if place in added else next(rest) for place in range(len(shape) + count))


def squeezed(shape: Shape | None, axes: object) -> Shape | None:
    """A shape without some axes of size one; without all that are for ``None``."""
    if shape is None or not is_whole(shape):
        return None
    if axes is None:
        return tuple(item for item in shape if item != 1) if all(isinstance(item, int) for item in shape) else None
    gone = places(axes, len(shape))
    if gone is None or any(shape[place] not in (1, UNKNOWN) for place in gone):
        return None
    return tuple(item for place, item in enumerate(shape) if place not in gone)


def joined(shapes: Sequence[Shape | None], axis: object) -> Shape | None:
    """The shape of arrays one after the other along an axis that they have."""
    known = [shape for shape in shapes if shape is not None and is_whole(shape)]
    if not known and axis == -1:
        ends = [shape[-1] for shape in shapes if shape and is_whole(shape[-1:])]
        total = added(ends)
        return (ANY, total) if len(ends) == len(shapes) and total != UNKNOWN else None
    if not known and isinstance(axis, int) and axis >= 0:
        return _behind(shapes, axis)
    if not known or len({len(shape) for shape in known}) > 1:
        return None
    known = [found for shape in shapes if shape is not None and (found := _of_rank(shape, len(known[0]))) is not None]
    if len(known) < len(shapes):
        return None
    place = places(axis, len(known[0]))
    if place is None or len(place) != 1:
        return None
    along = [shape[place[0]] for shape in known]
    result = [_same(column) for column in zip(*known, strict=True)]
    result[place[0]] = added(along)
    return tuple(result)


def _behind(shapes: Sequence[Shape | None], axis: int) -> Shape | None:
    """What is certain of arrays that are joined along an axis, counted from the first of nobody knows how many: the
    axes that lie behind it in any case.
    """
    ends = [shape[1:] for shape in shapes if shape and shape[0] == ANY and is_whole(shape[1:])]
    count = max(map(len, ends), default=0) - axis - 1
    if len(ends) < len(shapes) or count < 1:
        return None
    return (ANY, *(_same([end[place] for end in ends if len(end) >= -place]) for place in range(-count, 0)))


def _of_rank(shape: Shape, rank: int) -> Shape | None:
    """A shape that must have so many axes, since it goes together with others that have; ``None`` if it has more."""
    if is_whole(shape):
        return shape
    last = shape[_stars(shape) :]
    return (*[UNKNOWN] * (rank - len(last)), *last) if len(last) <= rank else None


def stacked(shapes: Sequence[Shape | None], axis: object, count: Dimension | None = None) -> Shape | None:
    """The shape of arrays side by side along a new axis, of as many as are given, or of another ``count``."""
    known = [shape for shape in shapes if shape is not None and is_whole(shape)]
    if not known or len(known) < len(shapes) or len({len(shape) for shape in known}) > 1:
        return (ANY, len(shapes)) if axis == -1 and shapes and count is None else None
    place = places(axis, len(known[0]) + 1)
    if place is None or len(place) != 1:
        return None
    result = [_same(column) for column in zip(*known, strict=True)]
    result.insert(place[0], len(known) if count is None else count)
    return tuple(result)


def _same(items: Sequence[Dimension]) -> Dimension:
    """The size that arrays have in common, which must be one."""
    numbers = [item for item in items if isinstance(item, int)]
    names = {item for item in items if isinstance(item, Size)}
    return numbers[0] if numbers else names.pop() if len(names) == 1 else UNKNOWN


def either(one: Shape | None, other: Shape | None) -> Shape | None:
    """What two arrays have in common, of which it is one.

    >>> either((8, 28, 3), (8, 14, 3)), either((8, 28, 3), (ANY, 3))
    ((8, '?', 3), ('*?', 3))
    """
    if one is None or other is None:
        return None
    if len(one) == len(other) and is_whole(one) and is_whole(other):
        return tuple(left if left == right else UNKNOWN for left, right in zip(one, other, strict=True))
    last = zip(reversed(one[_stars(one) :]), reversed(other[_stars(other) :]), strict=False)
    ends = [left if left == right else UNKNOWN for left, right in last]
    return (ANY, *reversed(ends)) if ends else None


def tiled(shape: Shape | None, times: object) -> Shape | None:
    """A shape whose axes are repeated so often: the last ones, where fewer numbers than axes are given.

    >>> tiled((1, 1, 8), (4, 1, 1))
    (4, 1, 8)
    """
    counts = _several(times)
    if shape is None or not is_whole(shape) or any(str(item).startswith("*") for item in counts):
        return None
    rank = max(len(shape), len(counts))
    sizes = (*([1] * (rank - len(shape))), *shape)
    repeated = (*([1] * (rank - len(counts))), *counts)
    return tuple(_times(item, count) for item, count in zip(sizes, repeated, strict=True))


def repeated(shape: Shape | None, times: object, axis: object) -> Shape | None:
    """A shape of which each element along one axis is repeated so often; all of them, one by one, for ``None``."""
    place = places(axis, len(shape)) if shape is not None and is_whole(shape) and axis is not None else None
    if shape is None or place is None or len(place) != 1:
        return None
    return tuple(_times(item, times) if at == place[0] else item for at, item in enumerate(shape))


def _times(item: Dimension, count: object) -> Dimension:
    return times(item, count) if isinstance(count, (int, Size)) else UNKNOWN


def divided(shape: Shape | None, parts: int, axis: object) -> Shape | None:
    """The shape of each of several equal parts."""
    place = _place(shape, axis) if shape is not None else None
    if shape is None or place is None or parts < 1:
        return None
    whole = shape[place]
    if isinstance(whole, int) and whole % parts:
        return None
    times = multiple(whole) if isinstance(whole, Size) else None
    if times is not None and times % parts and parts % times:
        return None  # it was made for other parts
    return (*shape[:place], shared(whole, parts), *shape[place + 1 :])


def resized(shape: Shape | None, axis: object, size: Dimension) -> Shape | None:
    """A shape of which one axis has another size.

    >>> resized((8, 6), -1, 2)
    (8, 2)
    """
    place = _place(shape, axis) if shape is not None else None
    return (*shape[:place], size, *shape[place + 1 :]) if shape is not None and place is not None else None


def cut(axis: Dimension, start: object, stop: object) -> Dimension:
    """How much a slice takes of an axis, where it is known that the axis is long enough.

    >>> from nnx_rules.sizes import named
    >>> dim, rank = named("dim"), named("rank")
    >>> cut(dim, 1, None), cut(dim, None, -1), cut(dim, None, rank), cut(added((dim, rank)), rank, None)
    ('dim - 1', 'dim - 1', '?', 'dim')
    """
    first, last = _bound(axis, start, 0), _bound(axis, stop, axis)
    return minus(last, first) if UNKNOWN not in (first, last) else UNKNOWN


def _bound(axis: Dimension, bound: object, missing: Dimension) -> Dimension:
    """Where a bound of a slice lies on an axis; a number counts from the end where it is below 0."""
    if bound is None:
        return missing
    if isinstance(bound, int) and (bound < 0) is not (missing == 0):
        return minus(axis, -bound) if bound < 0 else bound  # it leaves less than all, or nothing
    behind = -bound if isinstance(bound, int) and bound < 0 else bound
    if not isinstance(behind, (int, Size)) or not at_most(behind, axis):
        return UNKNOWN
    return minus(axis, behind) if behind is not bound else behind


def length(shape: Shape | None, axis: object) -> Dimension:
    """The size of one axis."""
    place = _place(shape, axis) if shape is not None else None
    return shape[place] if shape is not None and place is not None else UNKNOWN


def _place(shape: Shape, axis: object) -> int | None:
    """The place of one axis in a shape; from the end also where it is not known how many there are before."""
    if is_whole(shape):
        found = places(axis, len(shape))
        return found[0] if found is not None and len(found) == 1 else None
    known = isinstance(axis, int) and -(len(shape) - _stars(shape)) <= axis < 0
    return len(shape) + axis if isinstance(axis, int) and known else None


def reshaped(shape: Shape | None, wanted: Shape) -> Shape:
    """What ``reshape`` makes of a shape; a size of -1 is what is left over. Of one that it refuses nothing is known but
    how many axes were asked for: what is wrong there is said there.

    >>> reshaped((8, 4, 4, 2), (8, -1))
    (8, 32)
    """
    count = size(shape) if shape is not None else None
    given = [item for item in wanted if item != -1]
    rest = size(tuple(given))
    if len(given) == len(wanted):
        fails = isinstance(count, int) and isinstance(rest, int) and count != rest
        return (UNKNOWN,) * len(wanted) if fails else wanted
    left: Dimension = count // rest if count is not None and rest and count % rest == 0 else UNKNOWN
    if left == UNKNOWN and shape and wanted[0] == shape[0] == UNKNOWN:  # the batch stays
        count, rest = size(shape[1:]), size(tuple(given[1:]))
        left = count // rest if count is not None and rest and count % rest == 0 else UNKNOWN
    return tuple(left if item == -1 else item for item in wanted)


# -- windows -----------------------------------------------------------------------------------------------------------


def window(axes: Shape, size: object, strides: object, padding: object, dilation: object = None) -> Shape:
    """The sizes of axes that a window goes along: a convolution or pooling with these options.

    >>> window((28, 28), (3, 3), 2, "SAME")
    (14, 14)
    """
    count = len(axes)
    sizes, steps, gaps = (_per_axis(value, count) for value in (size, _given(strides), _given(dilation)))
    pads = _spread_over(padding, count)
    if len(pads) != count:
        return tuple(item if str(item).startswith("*") else UNKNOWN for item in axes)
    return tuple(_along(*item) for item in zip(axes, sizes, steps, gaps, pads, strict=True))


def _given(value: object) -> object:
    return 1 if value is None else value


def _per_axis(value: object, count: int) -> tuple[object, ...]:
    items = _spread_over(value, count)
    return items if len(items) == count else (UNKNOWN,) * count


def _spread_over(value: object, count: int) -> tuple[object, ...]:
    """An option for each of some axes: as it is given one by one, or the same for all."""
    items = _several(value)
    return items if isinstance(value, tuple) else items * count


ROUND = frozenset({"SAME", "CIRCULAR", "CAUSAL", "REFLECT"})
"""Paddings with which a window starts at every place."""


def _along(axis: Dimension, size: object, step: object, gap: object, padding: object) -> Dimension:
    if not isinstance(axis, int) or not isinstance(step, int) or step < 1:
        return axis if str(axis).startswith("*") else UNKNOWN
    if padding in ROUND:
        return -(-axis // step)
    added = _added(padding)
    if added is None or not isinstance(size, int) or not isinstance(gap, int) or isinstance(size, bool):
        return UNKNOWN
    left = axis + added - ((size - 1) * gap + 1)
    return left // step + 1 if left >= 0 else UNKNOWN


def _added(padding: object) -> int | None:
    """How much a padding adds to an axis."""
    if padding == "VALID":
        return 0
    if isinstance(padding, int):
        return 2 * padding
    sides = [side for side in _several(padding) if isinstance(side, int)]
    return sum(sides) if len(sides) == len(_several(padding)) == 2 else None


def spread(axes: Shape, size: object, strides: object, padding: object) -> Shape:
    """The sizes of axes along which a transposed convolution goes with these options."""
    sizes, steps = (_per_axis(value, len(axes)) for value in (size, _given(strides)))
    return tuple(_spread(*item, padding) for item in zip(axes, sizes, steps, strict=True))


def _spread(axis: Dimension, size: object, step: object, padding: object) -> Dimension:
    if not isinstance(axis, int) or not isinstance(step, int):
        return axis if str(axis).startswith("*") else UNKNOWN
    if padding == "SAME":
        return axis * step
    if padding == "VALID" and isinstance(size, int):
        return axis * step + max(size - step, 0)
    return UNKNOWN
