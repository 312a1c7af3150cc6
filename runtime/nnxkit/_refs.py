"""Array references: the mutable arrays of JAX (``jax.Ref``), under the names that NNX code uses."""

from __future__ import annotations

from typing import Any

import jax

ArrayRef = jax.Ref
"""The type of a mutable array reference."""


def array_ref(value: Any) -> jax.Ref:
    """A new reference that holds ``value``; read it with ``ref[...]``, write it with ``ref[...] = x``.

    >>> import jax.numpy as jnp
    >>> ref = array_ref(jnp.zeros(2))
    >>> ref[0] = 1.0
    >>> ref[...]
    Array([1., 0.], dtype=float32)
    """
    return jax.new_ref(jax.numpy.asarray(value))


def is_array_ref(value: Any) -> bool:
    """Whether ``value`` is an array reference."""
    return isinstance(value, jax.Ref)
