"""Operators of Variables: a Variable stands for its value in arithmetic, comparison and conversion.

Every operator computes with the value and returns a plain array; only the in-place operators write: ``v += x`` sets
the value of ``v`` and leaves ``v`` the same object, so that ``self.count += 1`` updates the Variable in the
attribute.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, overload

import jax
import jax.numpy as jnp
import numpy as np

from nnxkit._typevars import TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

A = TypeVar("A", default=Any)
V = TypeVar("V")


def _unwrap(other: Any) -> Any:
    return other.get_value() if isinstance(other, VariableOperators) else other


def _binary(op: Callable[[Any, Any], Any]) -> Any:
    def method(self: VariableOperators[Any], other: Any) -> Any:
        return op(self.get_value(), _unwrap(other))

    return method


def _reflected(op: Callable[[Any, Any], Any]) -> Any:
    def method(self: VariableOperators[Any], other: Any) -> Any:
        return op(_unwrap(other), self.get_value())

    return method


def _in_place(op: Callable[[Any, Any], Any]) -> Any:
    def method(self: VariableOperators[Any], other: Any) -> VariableOperators[Any]:
        self.set_value(op(self.get_value(), _unwrap(other)))
        return self

    return method


def _unary(op: Callable[[Any], Any]) -> Any:
    def method(self: VariableOperators[Any]) -> Any:
        return op(self.get_value())

    return method


class BinaryOperator(Protocol):
    """What type checkers see of a binary operator: on an array it gives an array, on another value anything."""

    @overload
    def __get__(self, instance: VariableOperators[jax.Array], owner: Any, /) -> Callable[[Any], jax.Array]: ...
    @overload
    def __get__(self, instance: Any, owner: Any, /) -> Callable[[Any], Any]: ...


class UnaryOperator(Protocol):
    """The same for a unary operator."""

    @overload
    def __get__(self, instance: VariableOperators[jax.Array], owner: Any, /) -> Callable[[], jax.Array]: ...
    @overload
    def __get__(self, instance: Any, owner: Any, /) -> Callable[[], Any]: ...


class InPlaceOperator(Protocol):
    """The same for an in-place operator, which gives the Variable itself."""

    def __get__(self, instance: V, owner: Any, /) -> Callable[[Any], V]: ...


class VariableOperators(Generic[A]):
    """The operator protocol over ``get_value`` and ``set_value``."""

    __slots__ = ()
    __array_priority__: ClassVar[int] = 100  # numpy arrays on the left leave the operation to the Variable on the right

    if TYPE_CHECKING:

        def get_value(self) -> Any: ...

        def set_value(self, value: Any) -> None: ...

    __add__: BinaryOperator = _binary(operator.add)
    __sub__: BinaryOperator = _binary(operator.sub)
    __mul__: BinaryOperator = _binary(operator.mul)
    __matmul__: BinaryOperator = _binary(operator.matmul)
    __truediv__: BinaryOperator = _binary(operator.truediv)
    __floordiv__: BinaryOperator = _binary(operator.floordiv)
    __mod__: BinaryOperator = _binary(operator.mod)
    __pow__: BinaryOperator = _binary(operator.pow)
    __lshift__: BinaryOperator = _binary(operator.lshift)
    __rshift__: BinaryOperator = _binary(operator.rshift)
    __and__: BinaryOperator = _binary(operator.and_)
    __xor__: BinaryOperator = _binary(operator.xor)
    __or__: BinaryOperator = _binary(operator.or_)
    __divmod__: BinaryOperator = _binary(divmod)
    __radd__: BinaryOperator = _reflected(operator.add)
    __rsub__: BinaryOperator = _reflected(operator.sub)
    __rmul__: BinaryOperator = _reflected(operator.mul)
    __rmatmul__: BinaryOperator = _reflected(operator.matmul)
    __rtruediv__: BinaryOperator = _reflected(operator.truediv)
    __rfloordiv__: BinaryOperator = _reflected(operator.floordiv)
    __rmod__: BinaryOperator = _reflected(operator.mod)
    __rpow__: BinaryOperator = _reflected(operator.pow)
    __rlshift__: BinaryOperator = _reflected(operator.lshift)
    __rrshift__: BinaryOperator = _reflected(operator.rshift)
    __rand__: BinaryOperator = _reflected(operator.and_)
    __rxor__: BinaryOperator = _reflected(operator.xor)
    __ror__: BinaryOperator = _reflected(operator.or_)
    __rdivmod__: BinaryOperator = _reflected(divmod)
    __iadd__: InPlaceOperator = _in_place(operator.add)
    __isub__: InPlaceOperator = _in_place(operator.sub)
    __imul__: InPlaceOperator = _in_place(operator.mul)
    __imatmul__: InPlaceOperator = _in_place(operator.matmul)
    __itruediv__: InPlaceOperator = _in_place(operator.truediv)
    __ifloordiv__: InPlaceOperator = _in_place(operator.floordiv)
    __imod__: InPlaceOperator = _in_place(operator.mod)
    __ipow__: InPlaceOperator = _in_place(operator.pow)
    __ilshift__: InPlaceOperator = _in_place(operator.lshift)
    __irshift__: InPlaceOperator = _in_place(operator.rshift)
    __iand__: InPlaceOperator = _in_place(operator.and_)
    __ixor__: InPlaceOperator = _in_place(operator.xor)
    __ior__: InPlaceOperator = _in_place(operator.or_)

    __lt__: BinaryOperator = _binary(operator.lt)
    __le__: BinaryOperator = _binary(operator.le)
    __gt__: BinaryOperator = _binary(operator.gt)
    __ge__: BinaryOperator = _binary(operator.ge)
    __eq__: BinaryOperator = _binary(operator.eq)  # pyright: ignore[reportIncompatibleMethodOverride]
    __ne__: BinaryOperator = _binary(operator.ne)  # pyright: ignore[reportIncompatibleMethodOverride]
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # equality compares values, which change

    __neg__: UnaryOperator = _unary(operator.neg)
    __pos__: UnaryOperator = _unary(operator.pos)
    __abs__: UnaryOperator = _unary(operator.abs)
    __invert__: UnaryOperator = _unary(operator.invert)

    def __bool__(self) -> bool:
        return bool(self.get_value())

    def __int__(self) -> int:
        return int(self.get_value())

    def __float__(self) -> float:
        return float(self.get_value())

    def __complex__(self) -> complex:
        return complex(self.get_value())

    def __index__(self) -> int:
        return operator.index(self.get_value())

    def __trunc__(self) -> Any:
        return math.trunc(self.get_value())

    def __floor__(self) -> Any:
        return math.floor(self.get_value())

    def __ceil__(self) -> Any:
        return math.ceil(self.get_value())

    def __len__(self) -> int:
        return len(self.get_value())

    def __round__(self, ndigits: int | None = None) -> Any:
        value = self.get_value()
        return round(value) if ndigits is None else round(value, ndigits)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get_value())

    def __contains__(self, item: Any) -> bool:
        return _unwrap(item) in self.get_value()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.get_value()(*args, **kwargs)

    def __format__(self, format_spec: str) -> str:
        return format(self.get_value(), format_spec) if format_spec else str(self)

    def __jax_array__(self) -> jax.Array:
        value = self.get_value()
        return value if isinstance(value, jax.Array) else jnp.asarray(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.get_value(), dtype=dtype, copy=True) if copy else np.asarray(self.get_value(), dtype=dtype)
