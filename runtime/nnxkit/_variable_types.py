"""The kinds of Variables that models are made of. What a kind means is a convention; filters select by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


class _StandsForVariable(type):
    """Of `VariableState`, which was the class of a State's leaves: they are Variables now, and it stands for all."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Variable)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, Variable)

    @deprecated("'VariableState' is deprecated, make the Variable itself")
    def __call__(cls, type: type[Variable[Any]], value: Any, **metadata: Any) -> Variable[Any]:
        return type(value, **metadata)


if TYPE_CHECKING:
    VariableState = Variable
else:

    class VariableState(metaclass=_StandsForVariable):
        """Deprecated: for ``isinstance``, annotations and filters another name of ``Variable``.

        ``VariableState(type, value, **metadata)`` is a ``type``: make the Variable itself, ``type(value, **metadata)``.
        """

        __deprecated__ = _StandsForVariable.__call__.__deprecated__

        def __class_getitem__(cls, _: Any) -> type:
            return cls
