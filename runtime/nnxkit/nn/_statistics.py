"""Mean and variance of an array, and what normalization layers make of them.

Invariants

- Statistics are computed at least in float32, whatever the array is.
- They keep the reduced axes, with one element, so that they broadcast against the array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

_pmean: Callable[..., jax.Array] = jax.lax.pmean


def compute_statistics(
    x: jax.Array,
    axes: tuple[int, ...],
    *,
    axis_name: str | None = None,
    axis_index_groups: Any = None,
    use_mean: bool = True,
    use_fast_variance: bool = True,
    mask: jax.Array | None = None,
) -> tuple[jax.Array | None, jax.Array]:
    """Mean and variance over ``axes`` and, if it is given, over the mapped axis ``axis_name``.

    Args:
        x: the array.
        axes: the axes to reduce.
        axis_name: name of a mapped axis to reduce, too.
        axis_index_groups: groups of devices along that axis.
        use_mean: whether the variance is around the mean; otherwise around zero, and the mean is ``None``.
        use_fast_variance: compute ``E[x^2] - E[x]^2`` (one pass, and one reduction over devices), otherwise
            ``E[(x - E[x])^2]``.
        mask: which elements count; broadcast against ``x``.
    """
    x = jnp.asarray(x, jnp.promote_types(jnp.float32, x.dtype))

    def mean_of(*values: jax.Array) -> list[jax.Array]:
        means = [jnp.mean(value, axes, where=mask, keepdims=True) for value in values]
        if axis_name is None:
            return means
        return list(_pmean(jnp.stack(means), axis_name, axis_index_groups=axis_index_groups))

    def square(value: jax.Array) -> jax.Array:
        return (jnp.abs(value) ** 2) if jnp.iscomplexobj(value) else jnp.square(value)

    if not use_mean:
        return None, mean_of(square(x))[0]
    if use_fast_variance:
        mean, mean_of_square = mean_of(x, square(x))
        return mean, jnp.maximum(0.0, mean_of_square - square(mean))
    (mean,) = mean_of(x)
    (variance,) = mean_of(square(x - mean))
    return mean, variance


# Traced once for each shape: JAX keeps what it derives from a jitted function, and under a gradient that is most of the
# work of tracing a layer.
@functools.partial(jax.jit, static_argnames="features", inline=True)
def normalize(
    x: jax.Array,
    mean: jax.Array | None,
    var: jax.Array,
    scale: jax.Array | None,
    bias: jax.Array | None,
    features: tuple[int, ...],
    epsilon: float,
) -> jax.Array:
    """``(x - mean) / sqrt(var + epsilon) * scale + bias`` in the dtype of ``x``; scale and bias go along the axes
    ``features``.
    """
    shape = tuple(x.shape[axis] if axis in features else 1 for axis in range(x.ndim))
    factor = jax.lax.rsqrt(var + epsilon)
    if scale is not None:
        factor *= scale.reshape(shape)
    y = (x if mean is None else x - mean) * factor
    if bias is not None:
        y += bias.reshape(shape)
    return jnp.asarray(y, x.dtype)
