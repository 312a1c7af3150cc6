"""Operators of Variables: a Variable stands for its value in arithmetic, comparison and conversion.

Every operator computes with the value and returns a plain array; only the in-place operators write: ``v += x`` sets
the value of ``v`` and leaves ``v`` the same object, so that ``self.count += 1`` updates the Variable in the
attribute.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Binary = "Callable[[Any, Any], Any]"


def _unwrap(other: Any) -> Any:
    return other.get_value() if isinstance(other, VariableOperators) else other


def _binary(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: VariableOperators, other: Any) -> Any:
        return op(self.get_value(), _unwrap(other))

    return method


def _reflected(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: VariableOperators, other: Any) -> Any:
        return op(_unwrap(other), self.get_value())

    return method


def _in_place(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: VariableOperators, other: Any) -> VariableOperators:
        self.set_value(op(self.get_value(), _unwrap(other)))
        return self

    return method


def _unary(op: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: VariableOperators) -> Any:
        return op(self.get_value())

    return method


class VariableOperators:
    """The operator protocol over ``get_value`` and ``set_value``."""

    __slots__ = ()
    __array_priority__ = 100  # numpy arrays on the left leave the operation to the Variable on the right

    if TYPE_CHECKING:

        def get_value(self) -> Any: ...

        def set_value(self, value: Any) -> None: ...

    __add__, __radd__, __iadd__ = _binary(operator.add), _reflected(operator.add), _in_place(operator.add)
    __sub__, __rsub__, __isub__ = _binary(operator.sub), _reflected(operator.sub), _in_place(operator.sub)
    __mul__, __rmul__, __imul__ = _binary(operator.mul), _reflected(operator.mul), _in_place(operator.mul)
    __matmul__, __rmatmul__, __imatmul__ = (
        _binary(operator.matmul),
        _reflected(operator.matmul),
        _in_place(operator.matmul),
    )
    __truediv__, __rtruediv__, __itruediv__ = (
        _binary(operator.truediv),
        _reflected(operator.truediv),
        _in_place(operator.truediv),
    )
    __floordiv__, __rfloordiv__, __ifloordiv__ = (
        _binary(operator.floordiv),
        _reflected(operator.floordiv),
        _in_place(operator.floordiv),
    )
    __mod__, __rmod__, __imod__ = _binary(operator.mod), _reflected(operator.mod), _in_place(operator.mod)
    __divmod__, __rdivmod__ = _binary(divmod), _reflected(divmod)
    __pow__, __rpow__, __ipow__ = _binary(operator.pow), _reflected(operator.pow), _in_place(operator.pow)
    __lshift__, __rlshift__, __ilshift__ = (
        _binary(operator.lshift),
        _reflected(operator.lshift),
        _in_place(operator.lshift),
    )
    __rshift__, __rrshift__, __irshift__ = (
        _binary(operator.rshift),
        _reflected(operator.rshift),
        _in_place(operator.rshift),
    )
    __and__, __rand__, __iand__ = _binary(operator.and_), _reflected(operator.and_), _in_place(operator.and_)
    __xor__, __rxor__, __ixor__ = _binary(operator.xor), _reflected(operator.xor), _in_place(operator.xor)
    __or__, __ror__, __ior__ = _binary(operator.or_), _reflected(operator.or_), _in_place(operator.or_)

    __lt__, __le__, __gt__, __ge__ = (_binary(op) for op in (operator.lt, operator.le, operator.gt, operator.ge))
    __eq__, __ne__ = _binary(operator.eq), _binary(operator.ne)
    __hash__ = None  # type: ignore[assignment]  # equality compares values, which change

    __neg__, __pos__, __abs__, __invert__ = (
        _unary(op) for op in (operator.neg, operator.pos, operator.abs, operator.invert)
    )
    __bool__, __int__, __float__, __complex__ = (_unary(op) for op in (bool, int, float, complex))
    __index__ = _unary(operator.index)
    __trunc__, __floor__, __ceil__ = (_unary(op) for op in (math.trunc, math.floor, math.ceil))
    __len__ = _unary(len)

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
