"""Attention masks: which query may look at which key. They have the shape ``(..., heads, queries, keys)``, with one
head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import jax
import jax.numpy as jnp

from nnx_rules.rules import modules as rules


def make_attention_mask(
    query_input: jax.Array,
    key_input: jax.Array,
    pairwise_fn: Callable[..., Any] = jnp.multiply,
    extra_batch_dims: int = 0,
    dtype: Any = jnp.float32,
) -> jax.Array:
    """A mask from what is known of each query and of each key, such as whether they are padding.

    Args:
        query_input: of shape ``(..., queries)``.
        key_input: of shape ``(..., keys)``.
        pairwise_fn: compares a query and a key; elementwise.
        extra_batch_dims: axes of size one to add in front.
        dtype: dtype of the mask.

    Returns:
        An array of shape ``(..., 1, queries, keys)``.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> nnx.make_attention_mask(jnp.array([1, 1, 0]), jnp.array([1, 0])).tolist()
    [[[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]]
    """
    mask = pairwise_fn(jnp.expand_dims(query_input, -1), jnp.expand_dims(key_input, -2))
    mask = jnp.expand_dims(mask, (*range(extra_batch_dims), extra_batch_dims + mask.ndim - 2))
    return jnp.asarray(mask, dtype)


def make_causal_mask(x: jax.Array, extra_batch_dims: int = 0, dtype: Any = jnp.float32) -> jax.Array:
    """A mask in which each position sees itself and what is before it.

    Args:
        x: of shape ``(..., length)``; only the shape matters.
        extra_batch_dims: axes of size one to add in front.
        dtype: dtype of the mask.

    Returns:
        An array of shape ``(..., 1, length, length)``.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> nnx.make_causal_mask(jnp.zeros(3)).tolist()
    [[[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]]
    """
    places = jnp.broadcast_to(jnp.arange(x.shape[-1], dtype=jnp.int32), x.shape)
    return make_attention_mask(places, places, jnp.greater_equal, extra_batch_dims, dtype)


@overload
def combine_masks(mask: jax.Array, /, *masks: jax.Array | None, dtype: Any = ...) -> jax.Array: ...
@overload
def combine_masks(*masks: jax.Array | None, dtype: Any = ...) -> jax.Array | None: ...
def combine_masks(*masks: jax.Array | None, dtype: Any = jnp.float32) -> jax.Array | None:
    """What all masks allow; those that are ``None`` allow everything, and ``None`` is returned if all are.

    Raises:
        LayerArgumentError: the masks have different numbers of axes.
    """
    given = [mask for mask in masks if mask is not None]
    if not given:
        return None
    if len({mask.ndim for mask in given}) > 1:
        raise rules.LAYER_ARGUMENTS.error(
            cls="combine_masks",
            problem=f"masks of shapes {', '.join(str(mask.shape) for mask in given)}",
            mend="give all masks the same number of axes",
        )
    combined = given[0]
    for mask in given[1:]:
        combined = jnp.logical_and(combined, mask)
    return jnp.asarray(combined, dtype)
