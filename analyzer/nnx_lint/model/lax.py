"""Functions of ``jax.lax`` that only move the elements of an array: the shape of what they give.

Invariants: as in :mod:`~nnx_lint.model.operations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.forms import NOTHING, literal, plain, shape_of
from nnx_lint.model.values import NONE
from nnx_rules import shape_algebra as algebra
from nnx_rules.shapes import UNKNOWN, Form, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.calls import Arguments


def _collapsed(args: Arguments) -> Form:
    """``jax.lax.collapse(x, 1, 3)``: these axes become one."""
    known, until = literal(args.get(0, "operand")), args.get(2, "stop_dimension")
    if known.shape is None or not algebra.is_whole(known.shape):
        return NOTHING
    start = plain(args.get(1, "start_dimension") or NONE)
    stop = plain(until) if until is not None else len(known.shape)
    if not isinstance(start, int) or not isinstance(stop, int):
        return NOTHING
    begin, end, _ = slice(start, stop).indices(len(known.shape))
    joined = size(known.shape[begin:end]) if begin < end else None
    if begin >= end:
        return NOTHING
    return Form((*known.shape[:begin], UNKNOWN if joined is None else joined, *known.shape[end:]), known.dtype)


def _arranged(args: Arguments) -> Form:
    """``jax.lax.reshape(x, new_sizes)``"""
    known, wanted = literal(args.get(0, "operand")), shape_of(args.get(1, "new_sizes"))
    return Form(wanted, known.dtype) if wanted is not None else NOTHING


def _spread(args: Arguments) -> Form:
    """``jax.lax.broadcast(x, sizes)``: new axes in front."""
    known, sizes = literal(args.get(0, "operand")), shape_of(args.get(1, "sizes"))
    return Form((*sizes, *known.shape), known.dtype) if sizes is not None and known.shape is not None else NOTHING


FUNCTIONS: dict[str, Callable[[Arguments], Form]] = {
    "jax.lax.broadcast": _spread,
    "jax.lax.collapse": _collapsed,
    "jax.lax.reshape": _arranged,
}
