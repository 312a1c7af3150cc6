"""Fourier transforms, and what makes real numbers of complex ones: the shapes and dtypes of what they return.

Invariant: a call that says how many numbers it takes of an axis, as by ``n=``, gives no size of that axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.forms import NOTHING, is_int, literal
from nnx_lint.model.values import Const
from nnx_rules import layers
from nnx_rules import shape_algebra as algebra
from nnx_rules.shapes import UNKNOWN, Dimension, Form

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.calls import Arguments

    Operation = Callable[[Arguments], Form]

COMPLEX = "complex64"


def _whole(args: Arguments) -> Form:
    """A transform that leaves the shape as it is."""
    shape = literal(args.get(0, "a")).shape
    resized = args.get(1, "n") is not None or "s" in args.keywords
    return Form(None if resized else shape, COMPLEX)


def _along(length: Callable[[int], int], dtype: str) -> Operation:
    """A transform of one axis, or of several of which the last one changes its size."""

    def form(args: Arguments) -> Form:
        shape, axis = literal(args.get(0, "a")).shape, args.get(2, "axis")
        place = -1 if axis is None else axis.value if isinstance(axis, Const) else None
        if not shape or not algebra.is_whole(shape) or not isinstance(place, int) or not is_int(place):
            return Form(None, dtype)
        if not -len(shape) <= place < len(shape) or "axes" in args.keywords or "s" in args.keywords:
            return Form(None, dtype)
        changed: list[Dimension] = list(shape)
        size = changed[place]
        changed[place] = length(size) if isinstance(size, int) and args.get(1, "n") is None else UNKNOWN
        return Form(tuple(changed), dtype)

    return form


def _half(size: int) -> int:
    return size // 2 + 1


def _double(size: int) -> int:
    return 2 * (size - 1)


def _moved(args: Arguments) -> Form:
    return literal(args.get(0, "x"))


def _real(args: Arguments) -> Form:
    """The size, or a part, of each number, which is real."""
    known = literal(args.get(0))
    if known is NOTHING:
        return NOTHING
    real = "float32" if known.dtype == COMPLEX else known.dtype
    return Form(known.shape, real if layers.is_fractional(real) else None)


FUNCTIONS: dict[str, Operation] = {
    **{f"fft.{name}": _whole for name in ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn")},
    **{f"fft.{name}": _along(_half, COMPLEX) for name in ("rfft", "rfft2", "rfftn")},
    **{f"fft.{name}": _along(_double, "float32") for name in ("irfft", "irfft2", "irfftn")},
    **dict.fromkeys(("fft.fftshift", "fft.ifftshift"), _moved),
    **dict.fromkeys(("abs", "absolute", "real", "imag", "angle"), _real),
}
"""What the functions return, by their names in ``jax.numpy``."""
