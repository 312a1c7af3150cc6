"""Dtypes of layers: parameters are stored in one dtype and computed with in another."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nnxkit._variable import Variable


def canonicalize_dtype(*args: Any, dtype: Any = None, inexact: bool = True) -> Any:
    """The dtype to compute in: ``dtype`` if it is given, else the one that the arguments promote to, at least
    float32 if ``inexact``.

    Raises:
        ValueError: ``inexact``, and ``dtype`` is no float or complex type.
    """
    if dtype is None:
        dtype = jnp.result_type(*(_typed(value) for value in args if value is not None))
        if inexact and not jnp.issubdtype(dtype, jnp.inexact):
            dtype = jnp.promote_types(jnp.float32, dtype)
    if inexact and not jnp.issubdtype(dtype, jnp.inexact):
        raise ValueError(f"dtype must be a float or complex type, not {dtype}")
    return dtype


def _typed(value: Any) -> Any:
    """A value that has a dtype: lists of numbers, and of arrays, become arrays."""
    return jnp.asarray(value) if isinstance(value, list | tuple) else value


def promote_dtype(args: tuple[Any, ...], /, *, dtype: Any = None, inexact: bool = True) -> tuple[Any, ...]:
    """Cast arrays to one dtype (see :func:`canonicalize_dtype`); ``None`` stays ``None``.

    >>> import jax.numpy as jnp
    >>> [x.dtype.name for x in promote_dtype((jnp.zeros(1, jnp.int32), jnp.zeros(1, jnp.bfloat16)))]
    ['bfloat16', 'bfloat16']
    """
    values = tuple(value.get_value() if isinstance(value, Variable) else value for value in args)
    dtype = canonicalize_dtype(*values, dtype=dtype, inexact=inexact)
    return tuple(None if value is None else jnp.asarray(value, dtype) for value in values)
