"""Layers that draw random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from nnx_rules.rules import modules as rules
from nnxkit._annotations import data
from nnxkit._module import Module
from nnxkit._rngs import Rngs, RngStream
from nnxkit.nn._parameters import like_sharding, require_arguments, require_number, require_shape
from nnxkit.nn._streams import next_key, stream_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class Dropout(Module):
    """Set elements to zero with probability ``rate`` and scale the others by ``1 / (1 - rate)``.

    Args:
        rate: probability of dropping an element.
        broadcast_dims: axes along which one decision holds for all elements.
        deterministic: whether the layer passes its input through.
        rng_collection: name of the stream that is taken from an ``Rngs``.
        rngs: streams or stream; the layer forks one of its own.

    Raises:
        LayerArgumentError: the rate is a number that is no probability.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> nnx.Dropout(0.5, rngs=nnx.Rngs(0))(jnp.ones(5))
    Array([2., 0., 2., 0., 2.], dtype=float32)
    """

    def __init__(
        self,
        rate: float,
        *,
        broadcast_dims: Sequence[int] = (),
        deterministic: bool | None = False,
        rng_collection: str = "dropout",
        rngs: Rngs | RngStream | None = None,
    ) -> None:
        require_arguments(self, "nnx.Dropout", rate=rate)
        self.rate = rate
        self.broadcast_dims = broadcast_dims
        self.deterministic = deterministic
        self.rng_collection = rng_collection
        stream = stream_of(rngs, rng_collection)
        self.rngs: RngStream | None = data(None if stream is None else stream.fork())

    def __call__(
        self, inputs: jax.Array, *, deterministic: bool | None = None, rngs: Rngs | RngStream | jax.Array | None = None
    ) -> jax.Array:
        """Drop elements of an array of any shape; the arguments take precedence over the attributes.

        Raises:
            LayerArgumentError: the layer is not deterministic and has no stream; or ``deterministic`` is given nowhere;
                or the rate is no number.
            LayerShapeError: the array lacks one of ``broadcast_dims``.
            TraceContextError: the stream belongs to another trace level.
        """
        if deterministic is None:
            deterministic = self.deterministic
        if deterministic is None:
            raise rules.LAYER_MODE_UNDECIDED.error(cls=type(self).__name__, name="deterministic")
        if self.rate == 0.0 or deterministic:
            return inputs
        if self.rate == 1.0:
            return jnp.zeros_like(inputs)
        require_number(self, "rate", self.rate)
        axes = tuple(self.broadcast_dims)
        there = all(-inputs.ndim <= axis < inputs.ndim for axis in axes)
        require_shape(self, "inputs", inputs, f"with the axes {axes}", holds=there)
        shape = list(inputs.shape)
        for axis in axes:
            shape[axis] = 1
        keep = 1.0 - self.rate
        mask = jax.random.bernoulli(next_key(self, self.rng_collection, rngs, self.rngs), p=keep, shape=tuple(shape))
        mask = like_sharding(jnp.broadcast_to(mask, inputs.shape), inputs)
        return jnp.where(mask, inputs / keep, jnp.zeros_like(inputs))

    def set_view(self, deterministic: bool | None = None) -> None:
        """Set the mode of the layer.

        Args:
            deterministic: whether the layer passes its input through.
        """
        if deterministic is not None:
            self.deterministic = deterministic
