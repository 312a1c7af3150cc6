"""Parts: functions of arrays that give several arrays, of which each is known.

Invariants: the parts are told apart where their number is known, and small; a part is a number's worth of what
:mod:`~nnx_lint.model.operations` knows of one result.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.model.containers import Seq
from nnx_lint.model.forms import NOTHING, dimension, literal, plain, shape_of
from nnx_lint.model.values import Array, Const, HostArray, ParameterVal, Unknown, Value
from nnx_rules import shape_algebra as algebra
from nnx_rules.shapes import UNKNOWN, Dimension, Form, Shape
from nnx_rules.sizes import minus

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.calls import Arguments

MAX_PARTS = 16
"""How many parts of an array are told apart."""


def _divided(args: Arguments, level: int, makes: type[Array] = Array) -> Value | None:
    """``split(array, count or places, axis)``."""
    array, count, axis = args.get(0), args.get(1, "indices_or_sections"), args.get(2, "axis")
    array = makes(level) if type(array) in {Unknown, ParameterVal} else array
    if not isinstance(array, Array):
        return None
    known, along = literal(array), 0 if axis is None else plain(axis)
    number = count.value if isinstance(count, Const) else None
    if isinstance(number, int) and 0 < number <= MAX_PARTS:
        forms = [Form(algebra.divided(known.shape, number, along), known.dtype)] * number
    else:
        forms = [Form(shape, known.dtype) for shape in _cut(known.shape, shape_of(count), along)]
    return _listed(array, forms, level)


def _divided_by_sizes(args: Arguments, level: int) -> Value | None:
    """``jax.lax.split(array, sizes, axis)``."""
    array, sizes, axis = args.get(0, "operand"), shape_of(args.get(1, "sizes")), args.get(2, "axis")
    if not isinstance(array, Array) or sizes is None or len(sizes) > MAX_PARTS:
        return None
    known, along = literal(array), 0 if axis is None else plain(axis)
    return _listed(array, [Form(algebra.resized(known.shape, along, size), known.dtype) for size in sizes], level)


def _listed(array: Array, forms: list[Form], level: int) -> Value | None:
    kind = HostArray if isinstance(array, HostArray) else Array
    parts = [kind(level, None if form == NOTHING else form) for form in forms]
    return Seq("list", parts, level) if parts else None


def _divided_roughly(args: Arguments, level: int) -> Value | None:
    """``array_split(array, count, axis)``: parts of one size or the next; folds, of which the sizes do not matter."""
    array, count, axis = args.get(0), args.get(1, "indices_or_sections"), args.get(2, "axis")
    known, along = literal(array), 0 if axis is None else plain(axis)
    number = count.value if isinstance(count, Const) else None
    if not isinstance(array, Array) or not isinstance(number, int) or not 0 < number <= MAX_PARTS or along != 0:
        return None
    form = Form((UNKNOWN, *known.shape[1:]), known.dtype) if known.shape and algebra.is_whole(known.shape) else known
    return Seq("list", [type(array)(level, form if form != NOTHING else None) for _ in range(number)], level)


def _cut(shape: Shape | None, places: Shape | None, axis: object) -> list[Shape | None]:
    """The parts of an array that is cut at these places; none where it is not known how many there are."""
    if not places or len(places) >= MAX_PARTS:
        return []
    whole = algebra.length(shape, axis)
    bounds: list[Dimension] = [0, *places, whole]
    if all(isinstance(end, int) for end in bounds):
        numbers = [end for end in bounds if isinstance(end, int)]
        if min(numbers) < 0 or numbers[1:-1] != sorted(numbers[1:-1]):
            return [None] * (len(places) + 1)
        bounds = [min(end, numbers[-1]) for end in numbers]
    return [algebra.resized(shape, axis, minus(end, start)) for start, end in itertools.pairwise(bounds)]


def _largest(args: Arguments, level: int) -> Value | None:
    """``top_k(operand, k)``: the largest values along the last axis, and where they are."""
    known, count = literal(args.get(0, "operand")), args.get(1, "k")
    if args.keywords.keys() - {"operand", "k"}:
        return None
    shape = None
    if known.shape and not str(known.shape[-1]).startswith("*"):
        shape = (*known.shape[:-1], UNKNOWN if count is None else dimension(count))
    return Seq("tuple", [Array(level, Form(shape, known.dtype)), Array(level, Form(shape, "int32"))], level)


def _grid(args: Arguments, level: int) -> Value | None:
    """``meshgrid(x, y, ...)``: each of them over the axes of all; the first two axes are swapped but for ``"ij"``."""
    given, indexing = args.positional, args.keywords.get("indexing")
    order = "xy" if indexing is None else plain(indexing)
    if args.keywords.keys() - {"indexing"} or not 0 < len(given) <= MAX_PARTS or order not in {"xy", "ij"}:
        return None
    forms = [literal(item) for item in given]
    sizes = [form.shape[0] if form.shape is not None and len(form.shape) == 1 else UNKNOWN for form in forms]
    if order == "xy":
        sizes[:2] = sizes[1::-1] if len(sizes) > 1 else sizes
    made = [
        type(item)(level, Form(tuple(sizes), form.dtype))
        for item, form in zip(given, forms, strict=True)
        if isinstance(item, Array)
    ]
    return Seq("list", made, level) if len(made) == len(given) else None


FUNCTIONS: dict[str, Callable[[Arguments, int], Value | None]] = {
    "jax.numpy.split": _divided,
    "numpy.split": partial(_divided, makes=HostArray),
    **dict.fromkeys(("jax.numpy.array_split", "numpy.array_split"), _divided_roughly),
    **dict.fromkeys(("jax.numpy.meshgrid", "numpy.meshgrid"), _grid),
    "jax.lax.split": _divided_by_sizes,
    "jax.lax.top_k": _largest,
}
"""What gives several arrays, by canonical name; nothing where the parts are not known."""
