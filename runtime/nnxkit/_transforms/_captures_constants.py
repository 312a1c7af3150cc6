"""Constants: what a function reads that is no input of a transform, and so becomes part of what JAX compiles.

Invariant: constants that are equal are the same for whoever reads them. What can be edited in place (a list, an
instance, an array of NumPy) has no constant; nor has an array of JAX, which is not to be kept for a later call.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np

from nnxkit._transforms._captures_shapes import is_object
from nnxkit._transforms._same import Same

_BY_VALUE = (type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, enum.Enum)
_BY_IDENTITY = (type, ModuleType, FunctionType, BuiltinFunctionType, type(jax.jit(id)), type(jax.numpy.add))
_OBJECT = "object"


def constant_of(value: Any) -> Hashable:
    """What stands for a value in a key; ``None`` if it has no constant.

    >>> constant_of(1) == constant_of(1), constant_of(1) == constant_of(True), constant_of([1])
    (True, False, None)
    """
    if is_object(value):
        return _OBJECT  # an input
    if isinstance(value, _BY_VALUE):
        return type(value), value
    if isinstance(value, _BY_IDENTITY):
        return Same(value)
    find = _PARTS.get(type(value))
    parts = [None] if find is None else [constant_of(part) for part in find(value)]
    return None if None in parts else (type(value), *parts)


_PARTS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    tuple: lambda value: value,
    MethodType: lambda method: (method.__func__, method.__self__),
}
