"""The kinds of Variables that models are made of. What a kind means is a convention; filters select by it."""

from __future__ import annotations

from typing import Any

from nnxkit._deprecation import deprecated
from nnxkit._typevars import TypeVar
from nnxkit._variable import Variable

A = TypeVar("A", default=Any)


class Param(Variable[A]):
    """A trainable parameter."""

    __slots__ = ()


class BatchStat(Variable[A]):
    """A running statistic, such as the mean in ``BatchNorm``."""

    __slots__ = ()


class Cache(Variable[A]):
    """A cache, such as keys and values in autoregressive decoding."""

    __slots__ = ()


class Intermediate(Variable[A]):
    """A value that a module sows during a call."""

    __slots__ = ()


class Perturbation(Intermediate[A]):
    """A zero that is added to an intermediate value, so that its gradient can be taken."""

    __slots__ = ()


class LoRAParam(Param[A]):
    """A parameter of a low-rank adaptation."""

    __slots__ = ()


class _HasHijax(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Variable) and bool(instance.get_metadata("hijax"))


class HijaxVariable(metaclass=_HasHijax):
    """For ``isinstance`` only: whether a Variable has the metadata ``hijax=True``."""


@deprecated("'VariableState' is deprecated, make the Variable itself")
def VariableState(type: type[Variable[Any]], value: Any, **metadata: Any) -> Variable[Any]:  # noqa: N802 - once a class
    """Deprecated, ``nnx.VariableState``: make the Variable itself, ``type(value, **metadata)``."""
    return type(value, **metadata)
