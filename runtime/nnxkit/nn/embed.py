"""Embeddings: rows of a table by number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from nnxkit._module import Module
from nnxkit.nn import initializers
from nnxkit.nn._parameters import NO_METADATA, given_options, param, require_arguments, require_integers, require_size
from nnxkit.nn.dtypes import promote_dtype

if TYPE_CHECKING:
    from nnxkit._rngs import Rngs
    from nnxkit._variable_types import Param

_default_init = initializers.variance_scaling(1.0, "fan_in", "normal", out_axis=0)


class Embed(Module):
    """A table of vectors.

    Variables: ``embedding`` ``Param`` of shape ``(num_embeddings, features)``.

    Args:
        num_embeddings: how many vectors there are.
        features: their size.
        dtype: dtype of the result; by default the one that the table is made with.
        param_dtype: dtype of the table.
        embedding_init: initializer of the table.
        promote_dtype: brings input and table to one dtype.
        rngs: the stream ``params`` gives the key.
        embedding_metadata: metadata of the table.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> nnx.Embed(10, 4, rngs=nnx.Rngs(0))(jnp.array([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        features: int,
        *,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        embedding_init: Callable[..., Any] = _default_init,
        promote_dtype: Callable[..., Any] = promote_dtype,
        rngs: Rngs,
        embedding_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_arguments(self, "nnx.Embed", num_embeddings=num_embeddings, features=features)
        self.embedding: Param[jax.Array] = param(
            embedding_init, rngs, (num_embeddings, features), param_dtype, embedding_metadata
        )
        self.num_embeddings = num_embeddings
        self.features = features
        self.dtype: Any = self.embedding.dtype if dtype is None else dtype
        self.param_dtype = param_dtype
        self.promote_dtype = promote_dtype

    def __call__(self, inputs: jax.Array, out_sharding: Any = None) -> jax.Array:
        """The vectors of these numbers, along a new last axis. A number that is not in the table gives NaN.

        Args:
            inputs: an array of integers.
            out_sharding: sharding of the result, where the mesh has explicit axes.

        Raises:
            LayerArgumentError: the input holds no integers.
        """
        inputs = jnp.asarray(inputs)
        require_integers(self, "inputs", inputs)
        (table,) = self.promote_dtype((self.embedding.get_value(),), dtype=self.dtype, inexact=False)
        if self.num_embeddings == 1:  # no gather; XLA partitions that badly
            return jnp.broadcast_to(table, (*inputs.shape, self.features))
        if out_sharding is not None:
            rows: jax.Array = table.at[inputs].get(**given_options(out_sharding=out_sharding))
            return rows
        return jnp.take(table, inputs, axis=0)

    def attend(self, query: Any, out_sharding: Any = None) -> jax.Array:
        """Products with all vectors of the table: logits where it is the output layer, too.

        Args:
            query: an array of shape ``(..., features)``.
            out_sharding: sharding of the result, where the mesh has explicit axes.

        Returns:
            An array of shape ``(..., num_embeddings)``.

        Raises:
            LayerShapeError: the last axis has another size.
        """
        query, table = self.promote_dtype((query, self.embedding.get_value()), dtype=self.dtype)
        require_size(self, "query", query, self.features)
        return jnp.dot(query, table.T, **given_options(out_sharding=out_sharding))
