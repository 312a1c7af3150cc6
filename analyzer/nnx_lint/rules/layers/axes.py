"""Axes that an array does not have, and sizes along them that do not go together (NNX826).

A function is told an axis by its number, an index has one item for each: both may ask for more axes than there are, or
for a place that an axis does not have. JAX says so for the first, and for the second silently takes the last place.

Invariants: only arrays of which it is known how many axes they have are judged, and sizes that are known as numbers;
an axis is judged where it is written as a number, and all axes that a call names are.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Indexed, Unpacked
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import is_int, literal, plain
from nnx_lint.model.indexing import places_of
from nnx_lint.model.naming import value_at
from nnx_lint.model.operations import REDUCTIONS
from nnx_lint.model.values import Array, ArrayAttr, Const, Cut
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import bound_to, target_of
from nnx_lint.rules.layers.operands import is_prepared
from nnx_lint.rules.program import FUNCTIONS as FUNCTION_NODES
from nnx_lint.rules.program import ancestors, assigned_in, enclosing, given, reads_of
from nnx_lint.syntax import parameters
from nnx_lint.syntax.binding import is_name
from nnx_rules import layers
from nnx_rules.rules import modules as rules
from nnx_rules.shape_algebra import broadcast, is_whole
from nnx_rules.sizes import Size, multiple

if TYPE_CHECKING:
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value
    from nnx_rules.shapes import Dimension, Shape

Places = tuple[tuple[int, str], ...]
"""Where among its arguments a function is told axes: by position, counted with the array, and by name."""

_AXIS: Places = ((1, "axis"),)
METHODS: dict[str, Places] = {
    **dict.fromkeys((*REDUCTIONS, "all", "any", "argmax", "argmin", "squeeze"), _AXIS),
    **dict.fromkeys(("cumprod", "cumsum", "flip", "sort"), _AXIS),
    "swapaxes": ((1, "axis1"), (2, "axis2")),
    "moveaxis": ((1, "source"), (2, "destination")),
}
"""Functions of one array, most of them methods too, that are told some of its axes."""

_NORMALIZING = ("log_softmax", "logsumexp", "softmax")

FUNCTIONS: dict[str, Places] = {
    **{f"jax.numpy.{name}": places for name, places in METHODS.items()},
    **{f"{head}.{name}": _AXIS for head in ("jax.nn", "nnx") for name in _NORMALIZING},
}
"""The same functions by canonical name, and some of networks."""

PLACING = ("jax.numpy.argmax", "jax.numpy.argmin")
"""Functions that find a place along an axis, or among all elements if they are told none."""

ORDERS: dict[str, Places] = {"transpose": ((1, "axes"),)}
ORDERING: dict[str, Places] = dict.fromkeys(("jax.numpy.permute_dims", "jax.numpy.transpose"), ORDERS["transpose"])
"""Methods and functions that are told an order of all axes."""


@judges_calls(rules.ARRAY_SHAPES, ArrayAttr, *FUNCTIONS)
def axes_named(event: Called, report: Reporter) -> None:
    """A function is told an axis that the array does not have, or is to squeeze one that is longer than one."""
    found = _function(event, METHODS, FUNCTIONS)
    if found is None:
        return
    name, shape, args, places = found
    rank = len(shape)
    for place, keyword in places:
        for axis in _several(args.get(place, keyword)):
            if not isinstance(axis, int) or not is_int(axis):
                continue
            size = shape[axis] if -rank <= axis < rank else None
            if size is None:
                problem = f"an array of shape {layers.shown(shape)} has no axis {axis}"
                mend = (
                    f"its axes are numbered from 0 to {rank - 1}, or from -{rank} to -1" if rank else "it is one value"
                )
            elif name == "squeeze" and isinstance(size, int) and size != 1:
                problem = f"axis {axis} of an array of shape {layers.shown(shape)} has {size} elements, and is squeezed"
                mend = "only an axis of one element can be left out: an index picks one of several"
            else:
                continue
            _report(event, report, problem, mend)
            return


@judges_calls(rules.ARRAY_SHAPES, ArrayAttr, *PLACING)
def place_among_all(event: Called, report: Reporter) -> None:
    """The place of the largest of all elements is compared with one label for each example."""
    found = _function(event, METHODS, FUNCTIONS)
    if found is None or found[0] not in {"argmax", "argmin"} or all(size == 1 for size in found[1][:-1]):
        return
    name, shape, args, _ = found
    if len(args.positional) > 1 or args.keywords or not isinstance(event.node, ast.expr):
        return
    frame = event.frame
    bound = bound_to(frame.module, event.node)
    named = bound.target.id if bound is not None and isinstance(bound.target, ast.Name) else ""
    scope = enclosing(frame.module, event.node, *FUNCTION_NODES) or frame.module.tree
    for use in [event.node, *(reads_of(scope, named) if assigned_in(scope)[named] == 1 else ())]:
        outer = next(ancestors(frame.module, use), None)
        if not isinstance(outer, ast.Compare) or not isinstance(outer.ops[0], ast.Eq) or len(outer.ops) > 1:
            continue
        other = value_at(frame, outer.comparators[0] if outer.left is use else outer.left)
        if other is not None and literal(other).shape == shape[:-1]:
            beside = layers.shown(shape[:-1])
            problem = f"`{name}` finds one place among all elements, and is compared with an array of shape {beside}"
            _report(event, report, problem, f"say along which axis: `{event.name}(..., axis=-1)`")
            return


@judges_calls(rules.ARRAY_SHAPES, ArrayAttr, *ORDERING)
def order_of_axes(event: Called, report: Reporter) -> None:
    """An order of axes that leaves out one, or has one that is not there."""
    found = _function(event, ORDERS, ORDERING)
    if found is None:
        return
    _, shape, args, ((place, keyword),) = found
    one_by_one = len(args.positional) > place + 1
    asked = args.positional[place:] if one_by_one else [args.get(place, keyword)]
    whole = [axis for value in asked if value is not None for axis in _several(value)]
    numbers = [axis for axis in whole if isinstance(axis, int) and is_int(axis)]
    rank = len(shape)
    swap = one_by_one and len(numbers) == 2  # as in other libraries: that is a rule of its own
    found_axes = sorted(axis + rank if axis < 0 else axis for axis in numbers)
    if numbers and len(numbers) == len(whole) and not swap and found_axes != [*range(rank)]:
        shown = ", ".join(map(str, numbers))
        problem = f"the axes of an array of shape {layers.shown(shape)} are put in the order {shown}"
        _report(event, report, problem, f"name each of its {rank} axes once: `swapaxes` swaps two of them")


@judges(rules.ARRAY_SHAPES, Indexed)
def axes_indexed(event: Indexed, report: Reporter) -> None:
    """An index has more items than the array has axes, or asks for a place behind the last one of an axis."""
    shape = literal(event.value).shape
    if shape is None or not is_whole(shape) or not _is_certain(event):
        return
    items = [item for item in event.indices if not (isinstance(item, Const) and item.value is None)]
    dots = [place for place, item in enumerate(items) if isinstance(item, Const) and item.value is ...]
    counted = [item for item in items if not (isinstance(item, Const) and item.value is ...)]
    if len(dots) > 1 or not all(_takes_one(item) for item in counted):
        return
    picked = [places for item in items if (places := places_of(item)) is not None]
    if len(picked) > 1 and broadcast(*picked) is None:
        shown = " and ".join(map(layers.shown, picked))
        problem = f"arrays of shapes {shown} are indices of one array"
        mend = "they say together which elements are picked, one after the other: as many rows as columns"
        report(event.frame.module, event.node, problem=problem, mend=mend)
        return
    if len(counted) > len(shape):
        problem = f"an array of shape {layers.shown(shape)} gets an index for {len(counted)} axes"
        report(event.frame.module, event.node, problem=problem, mend="an index has an item for each axis at the most")
        return
    skipped = len(shape) - len(counted)
    for place, item in enumerate(items):
        if dots and place == dots[0]:
            continue
        axis = place if not dots or place < dots[0] else place - 1 + skipped
        size, index = shape[axis], item.value if type(item) is Const else None
        if isinstance(size, int) and isinstance(index, int) and size and not -size <= index < size:
            problem = f"an array of shape {layers.shown(shape)} has no place {index} along axis {axis}"
            mend = f"the places are numbered from 0 to {size - 1}: JAX takes the nearest of them silently"
            report(event.frame.module, event.node, problem=problem, mend=mend)
            return


@judges(rules.ARRAY_SHAPES, Indexed)
def indexed_by_fractions(event: Indexed, report: Reporter) -> None:
    """An index of numbers with a fraction, such as actions that were read as ``float32``."""
    dtypes = (literal(item).dtype for item in event.indices if isinstance(item, Array))
    dtype = next(filter(layers.is_fractional, dtypes), None)
    if dtype is not None and _is_certain(event):
        _count_with(event, dtype, report)


@judges_calls(rules.ARRAY_SHAPES, "jax.numpy.take", "jax.numpy.take_along_axis")
def taken_by_fractions(event: Called, report: Reporter) -> None:
    dtype = literal(given(event).get(1, "indices")).dtype
    if dtype is not None and layers.is_fractional(dtype) and not given(event).starred and _is_certain(event):
        _count_with(event, dtype, report)


def _count_with(event: Called | Indexed, dtype: str, report: Reporter) -> None:
    problem, mend = f"the indices are {dtype}", "JAX takes whole numbers for places: `indices.astype(jnp.int32)`"
    report(event.frame.module, event.node, problem=problem, mend=mend)


def _takes_one(item: Value) -> bool:
    """Whether an item of an index certainly takes the place of one axis: a mask may take several."""
    if isinstance(item, Array):
        return literal(item).dtype == "int32"
    return isinstance(item, Cut) or (isinstance(item, Const) and is_int(item.value))


@judges_calls(rules.ARRAY_SHAPES, "jax.numpy.split")
def divided(event: Called, report: Reporter) -> None:
    """Equal parts, where the axis has no such number of elements."""
    args = given(event)
    shape, count = literal(args.get(0, "ary")).shape, args.get(1, "indices_or_sections")
    axis = plain(args.get(2, "axis") or Const(0))
    number = count.value if isinstance(count, Const) else None
    if args.starred or shape is None or not isinstance(axis, int) or not isinstance(number, int) or not is_int(number):
        return
    size = _size_at(shape, axis)
    problem = f"axis {axis} of an array of shape {layers.shown(shape)} is split into {number} equal parts"
    if isinstance(size, Size) and number > 2:  # whatever it was made for may be halved
        times, target = multiple(size), target_of(event.frame.module, event.node)
        if times is not None and times % number and number % times and isinstance(target, ast.Tuple):
            _report(event, report, problem, f"`{size}` was made for {times} parts")
    elif isinstance(size, int) and number > 0 and size % number:
        _report(event, report, problem, f"{size} cannot be divided by {number}: `jnp.array_split` makes unequal parts")


@judges(rules.ARRAY_SHAPES, Unpacked, of=(Array,))
def round_unpacked(event: Unpacked, report: Reporter) -> None:
    """The number of the round, where a step of ``fori_loop`` takes it for what the loop carries."""
    func, scope = event.frame.func, event.frame.scope[-1] if event.frame.scope else None
    if scope is None or scope.frame is not event.frame or not scope.row.name.endswith(".fori_loop") or func is None:
        return
    first, *rest = parameters.positional_names(func.node.args) or ("",)
    if rest and is_name(event.value_node, first) and literal(event.value).shape == ():
        problem = f"`{first}` is one number, and is unpacked like a tuple"
        mend = "a step of `fori_loop` gets the number of the round first: `def body(i, carry)`"
        report(event.frame.module, event.value_node, problem=problem, mend=mend)


def _unpacks_shape(event: Unpacked) -> bool:
    return isinstance(event.value_node, ast.Attribute) and event.value_node.attr == "shape" and event.count is not None


@judges(rules.ARRAY_SHAPES, Unpacked, when=_unpacks_shape)
def shape_unpacked(event: Unpacked, report: Reporter) -> None:
    """``batch, length, _ = x.shape`` of an array that has more axes, or fewer."""
    sizes, node = event.value, event.value_node
    if not isinstance(sizes, Seq) or not sizes.exact or sizes.shrunk or len(sizes.items) == event.count:
        return
    if isinstance(node, ast.Attribute) and not is_prepared(event.frame, node):
        count, name = len(sizes.items), text_of(node.value)
        problem = f"`{name}` has {count} {'axis' if count == 1 else 'axes'}, and {event.count} names take its shape"
        fewer = "repeat it for each example, `jnp.broadcast_to(x, (batch, *x.shape))`, or take fewer names"
        mend = fewer if count < (event.count or 0) else "put axes together by `reshape`, or take a name for each"
        report(event.frame.module, event.target, problem=problem, mend=mend)


@judges_calls(rules.ARRAY_SHAPES, "jax.numpy.take_along_axis")
def taken_along(event: Called, report: Reporter) -> None:
    """Indices along an axis have as many axes as the array that they are taken of."""
    args = given(event)
    array, indices = literal(args.get(0, "arr")).shape, literal(args.get(1, "indices")).shape
    axis = plain(args.get(2, "axis") or Const(None))
    if args.starred or array is None or indices is None or not is_whole(array) or not is_whole(indices):
        return
    if isinstance(axis, int) and len(array) != len(indices):
        shown = layers.shown(indices), layers.shown(array)
        problem = f"indices of shape {shown[0]} are taken along an axis of an array of shape {shown[1]}"
        _report(event, report, problem, "both have the same number of axes: write `indices[..., None]`")


@judges_calls(rules.ARRAY_SHAPES, *(f"jax.ops.segment_{name}" for name in ("max", "min", "prod", "sum")))
def segmented(event: Called, report: Reporter) -> None:
    """Rows that are put together by numbers, of which there are more or fewer than rows."""
    args = given(event)
    rows, ids = literal(args.get(0, "data")).shape, literal(args.get(1, "segment_ids")).shape
    if not args.starred and rows and ids and is_whole(rows) and is_whole(ids):
        one, other = rows[0], ids[0]
        if isinstance(one, int) and isinstance(other, int) and one != other:
            problem = f"`{event.name}` gets {one} rows, and {other} numbers of segments"
            _report(event, report, problem, "give it the number of a segment for each row")


def _several(value: Value | None) -> tuple[object, ...]:
    """What an argument gives that is one axis or several."""
    axes = plain(value) if value is not None else None
    return cast("tuple[object, ...]", axes) if isinstance(axes, tuple) else (axes,)


def _size_at(shape: Shape, axis: int) -> Dimension | None:
    """The size of an axis, also of the last ones of an array that may have more."""
    whole = is_whole(shape) or axis < 0
    known = whole and -len(shape) <= axis < len(shape) and is_whole(shape[axis:] if axis < 0 else shape)
    return shape[axis] if known else None


def _function(
    event: Called, methods: dict[str, Places], functions: dict[str, Places]
) -> tuple[str, Shape, Arguments, Places] | None:
    """What a call does to an array whose number of axes is known: its name, the shape, the arguments with the array
    first, and where axes are among these.
    """
    args, callee = given(event), event.callee
    name = (event.subject or "").rpartition(".")[2]
    if isinstance(callee, ArrayAttr):
        if callee.owner or callee.array is None or callee.name not in methods:
            return None
        name = callee.name
        args = type(args)(args.node, [callee.array, *args.positional], args.keywords, args.nodes)
    places = methods.get(name) if isinstance(callee, ArrayAttr) else functions.get(event.subject or "")
    shape = literal(args.get(0, "a")).shape
    known = not args.starred and shape is not None and is_whole(shape)
    return (name, shape, args, places) if known and shape is not None and places is not None else None


def _is_certain(event: Called | Indexed) -> bool:
    """Whether the program does this with every array that gets here: it asks for no shape, and under no condition."""
    return not event.frame.doubtful and not is_prepared(event.frame, event.node)


def _report(event: Called, report: Reporter, problem: str, mend: str) -> None:
    if _is_certain(event):
        report(event.frame.module, event.node, problem=problem, mend=mend)
