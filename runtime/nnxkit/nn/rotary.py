"""Rotary position embeddings: a place in a sequence as a rotation of pairs of features.

Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021; with the two halves of the
features as the pairs.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from nnx_rules.rules import modules as rules
from nnxkit._annotations import data
from nnxkit._module import Module
from nnxkit._variable import Variable
from nnxkit.nn.attention import dot_product_attention


class RoPE(Module):
    """Rotate the features of each element of a sequence by angles that grow with its place.

    Variables: ``cached_sin`` and ``cached_cos``, of shape ``(max_seq_len, embedding_size / 2)``, float32; ``None``
        without these arguments, and then angles are computed at each call.

    Args:
        theta: the slowest angle grows by about ``1 / theta`` from place to place.
        embedding_size: number of features, which is even.
        max_seq_len: length of the longest sequence; given together with ``embedding_size``.

    Raises:
        LayerArgumentError: one of the two is given without the other, or the number of features is odd.

    >>> import functools, nnxkit as nnx
    >>> rope = nnx.RoPE(embedding_size=4, max_seq_len=16)
    >>> attend = functools.partial(nnx.dot_product_attention_with_rope, rope=rope)
    >>> layer = nnx.MultiHeadAttention(2, 8, attention_fn=attend, decode=False, rngs=nnx.Rngs(0))
    >>> layer(jax.numpy.ones((1, 16, 8))).shape
    (1, 16, 8)
    """

    def __init__(
        self, theta: float = 10000.0, embedding_size: int | None = None, max_seq_len: int | None = None
    ) -> None:
        self.theta = theta
        sin = cos = None
        if embedding_size is not None and max_seq_len is not None:
            sin, cos = map(Variable, self._angles(jnp.arange(max_seq_len), embedding_size))
        elif embedding_size is not max_seq_len:
            raise rules.LAYER_ARGUMENTS.error(
                cls=type(self).__name__,
                problem="it got one of `embedding_size` and `max_seq_len`",
                mend="give both, or none",
            )
        self.cached_sin: Variable[jax.Array] | None = data(sin)
        self.cached_cos: Variable[jax.Array] | None = data(cos)

    def __call__(self, x: jax.Array, input_positions: jax.Array | None = None) -> jax.Array:
        """Rotate the features of an array.

        Args:
            x: array of shape ``(..., length, features)``.
            input_positions: integers that broadcast to ``(..., length)``, the places; by default ``0, 1, ...``.

        Returns:
            An array of the shape of ``x``, at least float32.

        Raises:
            LayerArgumentError: the number of features is odd, or the tables are for another one or shorter sequences.
        """
        *_, length, features = x.shape
        if input_positions is not None or self.cached_sin is None or self.cached_cos is None:
            sin, cos = self._angles(jnp.arange(length) if input_positions is None else input_positions, features)
        else:
            sin, cos = self.cached_sin.get_value()[:length], self.cached_cos.get_value()[:length]
            if sin.shape != (length, features / 2):
                known = f"length {self.cached_sin.shape[0]} and {2 * sin.shape[1]} features"
                raise rules.LAYER_ARGUMENTS.error(
                    cls=type(self).__name__,
                    problem=f"its tables are for {known}, and `x` has shape {x.shape}",
                    mend="make it for these sizes, or for none",
                )
        sin, cos = (jnp.expand_dims(item, range(x.ndim - item.ndim)) for item in (sin, cos))
        first, second = jnp.split(x, 2, axis=-1)
        return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)

    def _angles(self, positions: Any, features: int) -> tuple[jax.Array, jax.Array]:
        """Sine and cosine for each place and each pair of features."""
        if features <= 0 or features % 2:
            raise rules.LAYER_ARGUMENTS.error(
                cls=type(self).__name__,
                problem=f"{features} features have no pairs",
                mend="use an even number of features",
            )
        angles = jnp.multiply.outer(positions, self.theta ** (-jnp.arange(0, features, 2) / features))
        return jnp.sin(angles), jnp.cos(angles)


def dot_product_attention_with_rope(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    *,
    rope: RoPE,
    input_positions: jax.Array | None = None,
    **kwargs: Any,
) -> jax.Array:
    """`dot_product_attention` with rotated queries and keys, for ``attention_fn`` of `MultiHeadAttention`.

    Args:
        query: array of shape ``(..., queries, heads, features)``.
        key: array of shape ``(..., keys, heads, features)``.
        value: array of shape ``(..., keys, heads, value features)``.
        rope: what rotates them.
        input_positions: places of the elements, of shape ``(..., length)``; by default ``0, 1, ...``.
        kwargs: further arguments of `dot_product_attention`.
    """
    places = None if input_positions is None else input_positions[..., None, :]  # the same for all heads

    def rotate(x: jax.Array) -> jax.Array:
        return jnp.swapaxes(rope(jnp.swapaxes(x, -2, -3), places), -2, -3)

    return dot_product_attention(rotate(query), rotate(key), value, **kwargs)
