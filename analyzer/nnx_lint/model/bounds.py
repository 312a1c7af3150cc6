"""Bounds: how large the whole numbers in an array are, which say where something else is looked up.

Invariants: a bound is known only where the numbers are written in the program, or counted or drawn up to one that is;
what computes with them loses it, and so does what takes some of them, unless any of them may be as large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.containers import Seq
from nnx_lint.model.forms import is_int
from nnx_lint.model.values import Array, Bound, Const, Cut, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.model.calls import Arguments


def _number(value: Value | None) -> int | None:
    return value.value if isinstance(value, Const) and isinstance(value.value, int) and is_int(value.value) else None


def _below(end: Value | None, *, anywhere: bool) -> Bound | None:
    """The bound of numbers that end before one."""
    number = _number(end)
    return Bound(number - 1, anywhere) if number is not None and number > 0 else None


def _counted(args: Arguments) -> Bound | None:
    """``arange(stop)`` or ``arange(start, stop)``: the last one is there."""
    ends = args.positional
    if len(ends) not in {1, 2} or args.keywords.keys() - {"dtype"}:
        return None
    start = _number(ends[0]) if len(ends) == 2 else 0
    found = _below(ends[-1], anywhere=False)
    return found if found is not None and start is not None and start <= found.most else None


def _drawn(args: Arguments) -> Bound | None:
    return _below(args.get(3, "maxval"), anywhere=True)


def _filled(args: Arguments) -> Bound | None:
    number = _number(args.get(1, "fill_value"))
    return Bound(number, True) if number is not None else None


def _literal(value: Value | None) -> Bound | None:
    """The largest of the numbers that are written one by one."""
    if isinstance(value, Array):
        return value.bound
    if isinstance(value, Seq) and value.exact and value.items:
        found = [_literal(item) for item in value.items]
        return Bound(max(each.most for each in found if each), False) if all(found) else None
    number = _number(value)
    return Bound(number, True) if number is not None else None


def _converted(args: Arguments) -> Bound | None:
    return _literal(args.get(0, "object") or args.get(0, "a"))


MAKING: dict[str, Callable[[Arguments], Bound | None]] = {
    "jax.numpy.arange": _counted,
    "jax.numpy.array": _converted,
    "jax.numpy.asarray": _converted,
    "jax.numpy.full": _filled,
    "jax.random.randint": _drawn,
}
"""Functions that make arrays of JAX, which nothing changes in place."""

_KEEPING = "broadcast_to expand_dims flip ravel reshape roll sort squeeze swapaxes tile transpose"
KEEPING = frozenset((*(f"jax.numpy.{name}" for name in _KEEPING.split()), "jax.lax.stop_gradient"))
"""Functions and methods that keep the numbers of an array, and change where they stand."""

METHODS = frozenset({"astype", "copy", "flatten", "ravel", "reshape", "squeeze", "swapaxes", "transpose"})


def of_function(name: str, args: Arguments) -> Bound | None:
    """The bound of what a library function gives."""
    if name in KEEPING:
        array = args.get(0)
        return array.bound if isinstance(array, Array) else None
    making = MAKING.get(name)
    return making(args) if making is not None and not args.starred else None


def of_index(array: Array, items: Sequence[Value]) -> Bound | None:
    """The bound of what an index takes of an array: of new axes and whole ones, or of any numbers."""
    if array.bound is None or array.bound.anywhere:
        return array.bound
    return array.bound if all(map(_takes_all, items)) else None


def _takes_all(item: Value) -> bool:
    if isinstance(item, Cut):
        return item.bounds == (None, None, None)
    return isinstance(item, Const) and item.value in {None, ...}
