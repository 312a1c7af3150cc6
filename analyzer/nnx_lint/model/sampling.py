"""The arrays that random functions of numpy give: numbers, an order, or a choice of what there is; and those functions
of JAX that choose.

Invariant: the methods of a generator have the names of the functions, and take what these take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.forms import NOTHING, dimension, dtype_of, is_number, literal, shape_of
from nnx_lint.model.values import Array, Const, Other
from nnx_rules.shapes import Form

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.calls import Arguments

    Operation = Callable[[Arguments], Form]


def _drawn_sized(position: int, default: str | None) -> Operation:
    """Random numbers of numpy, as many as it is told."""

    def form(args: Arguments) -> Form:
        given = args.keywords.get("dtype")
        return Form(shape_of(args.get(position, "size")), default if given is None else dtype_of(given))

    return form


def _drawn_of(args: Arguments) -> Form:
    """Random numbers of numpy, as many as its arguments say, one for each axis."""
    return Form(tuple(map(dimension, (value for value in args.positional if value is not None))), "float32")


def permuted(position: int, name: str) -> Operation:
    """An array in another order, or the numbers up to one."""

    def form(args: Arguments) -> Form:
        value = args.get(position, name)
        if isinstance(value, (Const, Other)) and is_number(value):
            return Form((dimension(value),), "int32")
        return literal(value) if isinstance(value, Array) else NOTHING

    return form


def _chosen(args: Arguments) -> Form:
    """Some of the numbers up to one, or of the elements of an array with one axis, as many as is said."""
    value, shape = args.get(0, "a"), shape_of(args.get(1, "size"))
    if isinstance(value, (Const, Other)) and is_number(value):
        return Form(shape, "int32")
    known = literal(value)
    return Form(shape, known.dtype) if known.shape is not None and len(known.shape) == 1 else NOTHING


def _class(args: Arguments) -> Form:
    """A number of a class for each row of logits."""
    logits, axis, given = literal(args.get(1, "logits")).shape, args.get(2, "axis"), args.get(3, "shape")
    if given is not None:
        return Form(shape_of(given), "int32")
    last = axis is None or (isinstance(axis, Const) and axis.value == -1)
    return Form(logits[:-1] if logits and last else None, "int32")


CHOOSING: dict[str, Operation] = {"categorical": _class, "permutation": permuted(1, "x")}
"""Functions of ``jax.random`` that take a key first."""

FUNCTIONS: dict[str, Operation] = {
    **dict.fromkeys(("rand", "randn"), _drawn_of),
    **dict.fromkeys(("random", "standard_normal"), _drawn_sized(0, "float32")),
    **dict.fromkeys(("normal", "uniform"), _drawn_sized(2, "float32")),
    "choice": _chosen,
    "permutation": permuted(0, "x"),
    "randint": _drawn_sized(2, "int32"),
}
"""What the functions of ``numpy.random`` give, by name."""
