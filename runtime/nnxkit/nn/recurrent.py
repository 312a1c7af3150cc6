"""Cells: one step of a recurrent layer.

Invariants

- A cell takes ``(carry, inputs)`` and returns ``(carry, output)``; `RNNCellBase.initialize_carry` makes the first
  carry.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from nnx_rules.rules import modules as rules
from nnxkit._annotations import data
from nnxkit._module import Module
from nnxkit._rngs import Rngs, RngStream
from nnxkit.nn import initializers
from nnxkit.nn._parameters import NO_METADATA, name_of, require_arguments, require_shape
from nnxkit.nn._streams import next_key, stream_of
from nnxkit.nn.dtypes import promote_dtype
from nnxkit.nn.linear import Linear

if TYPE_CHECKING:
    from nnx_rules.errors import NNXError

_default_kernel_init = initializers.lecun_normal()
_orthogonal = initializers.orthogonal()


def modified_orthogonal(key: Any, shape: Sequence[int], dtype: Any = jnp.float32) -> jax.Array:
    """``orthogonal`` for any dtype: it is computed in float32 and cast."""
    return _orthogonal(key, tuple(shape), jnp.float32).astype(dtype)


class RNNCellBase(Module):
    """A step of a recurrent layer: ``carry, output = cell(carry, inputs)``.

    Attributes:
        num_feature_axes: how many of the last axes of the inputs are features.
    """

    in_features: int
    hidden_features: int

    @property
    def num_feature_axes(self) -> int:
        """How many of the last axes of the inputs are features."""
        raise NotImplementedError

    def __call__(self, carry: Any, inputs: jax.Array) -> tuple[Any, jax.Array]:
        """Make one step."""
        raise NotImplementedError

    def initialize_carry(self, input_shape: tuple[int, ...], rngs: Any = None, carry_init: Any = None) -> Any:
        """The first carry for inputs of this shape."""
        raise NotImplementedError


class _Cell(RNNCellBase):
    """What the cells of this module have in common: features on the last axis, and carries of one shape."""

    carry_init: Callable[..., Any] | None
    param_dtype: Any
    rngs: RngStream | None

    @property
    def num_feature_axes(self) -> int:
        """One: the last axis."""
        return 1

    def _keep(self, rngs: Rngs, *, keep_rngs: bool) -> None:
        stream = stream_of(rngs, "carry") if keep_rngs else None
        self.rngs = data(None if stream is None else stream.fork())

    def initialize_carry(self, input_shape: tuple[int, ...], rngs: Any = None, carry_init: Any = None) -> Any:
        """The first carry for inputs of this shape.

        Args:
            input_shape: shape of the inputs of one step.
            rngs: random numbers; by default the cell's own.
            carry_init: an initializer to use instead of the cell's.

        Raises:
            LayerArgumentError: there are no random numbers.
        """
        init = carry_init or self.carry_init or initializers.zeros
        shape = (*input_shape[:-1], self.hidden_features)
        return jnp.asarray(init(next_key(self, "carry", rngs, self.rngs), shape, self.param_dtype))

    def _require_carry(self, inputs: Any, features: int, *carries: Any) -> None:
        """Raise unless carries have so many features and the batch axes of the inputs, or some that repeat these."""
        batch = jnp.shape(inputs)[:-1]
        for carry in carries:
            if isinstance(carry, tuple | list):
                raise self._other_carry("one array", carry)
            shape = jnp.shape(carry)
            fits = shape[-1:] == (features,) and all(
                1 in pair or pair[0] == pair[1] for pair in zip(reversed(shape[:-1]), reversed(batch), strict=False)
            )
            require_shape(self, "carry", carry, str((*batch, features)), holds=fits)

    def _other_carry(self, expected: str, carry: Any) -> NNXError:
        given = f"{len(carry)} of them" if isinstance(carry, tuple | list) else f"an array of shape {jnp.shape(carry)}"
        return rules.LAYER_ARGUMENTS.error(
            cls=name_of(self),
            problem=f"its carry is {expected}, and it got {given}",
            mend="make the first carry with `initialize_carry`",
        )


class _MemoryCell(_Cell):
    """A cell whose carry is a pair: memory and output."""

    def initialize_carry(self, input_shape: tuple[int, ...], rngs: Any = None, carry_init: Any = None) -> Any:
        """The first carry for inputs of this shape: two arrays; see :class:`LSTMCell`.

        Raises:
            LayerArgumentError: there are no random numbers.
        """
        one = super().initialize_carry
        return one(input_shape, rngs, carry_init), one(input_shape, rngs, carry_init)

    def _pair(self, inputs: Any, features: int, carry: Any) -> tuple[Any, Any]:
        """Memory and output that fit the inputs."""
        if not isinstance(carry, tuple | list) or len(carry) != 2:
            raise self._other_carry("a pair of arrays, memory and output", carry)
        self._require_carry(inputs, features, *carry)
        return carry[0], carry[1]


class LSTMCell(_MemoryCell):
    """Long short-term memory, with a linear layer for each gate and each of input and carry.

    Source: Hochreiter, Schmidhuber, "Long Short-Term Memory", 1997. With gates i, f, o and candidate g:
    ``c' = f * c + i * g`` and ``h' = o * tanh(c')``; the carry is ``(c, h)`` and the output ``h'``.

    Variables: the layers ``ii``, ``if_``, ``ig``, ``io`` of the input, without bias, and ``hi``, ``hf``, ``hg``, ``ho``
        of the carry.

    Args:
        in_features: size of the last axis of the input.
        hidden_features: size of the last axis of carry and output.
        gate_fn: the activation of the gates.
        activation_fn: the activation of candidate and output.
        kernel_init: initializer of the kernels for the input.
        recurrent_kernel_init: initializer of the kernels for the carry.
        bias_init: initializer of the biases.
        dtype: dtype to compute in; by default what inputs and parameters promote to.
        param_dtype: dtype of the parameters and of the first carry.
        carry_init: initializer of the first carry; zeros by default.
        promote_dtype: brings inputs and parameters to one dtype.
        keep_rngs: whether the cell keeps a stream for its first carry.
        rngs: the stream ``params`` gives the keys.
        kernel_metadata: metadata of the kernels for the input.
        recurrent_kernel_metadata: metadata of the kernels for the carry.
        bias_metadata: metadata of the biases.
    """

    ii: Linear
    if_: Linear
    ig: Linear
    io: Linear
    hi: Linear
    hf: Linear
    hg: Linear
    ho: Linear

    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        *,
        gate_fn: Callable[..., Any] = jax.nn.sigmoid,
        activation_fn: Callable[..., Any] = jnp.tanh,
        kernel_init: Callable[..., Any] = _default_kernel_init,
        recurrent_kernel_init: Callable[..., Any] = modified_orthogonal,
        bias_init: Callable[..., Any] = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        carry_init: Callable[..., Any] | None = None,
        promote_dtype: Callable[..., Any] = promote_dtype,
        keep_rngs: bool = False,
        rngs: Rngs,
        kernel_metadata: Mapping[str, Any] = NO_METADATA,
        recurrent_kernel_metadata: Mapping[str, Any] = NO_METADATA,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_arguments(self, "nnx.LSTMCell", in_features=in_features, hidden_features=hidden_features)
        self.in_features = in_features
        self.hidden_features = hidden_features
        self.gate_fn = gate_fn
        self.activation_fn = activation_fn
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.promote_dtype = promote_dtype
        self._keep(rngs, keep_rngs=keep_rngs)
        common = functools.partial(Linear, dtype=dtype, param_dtype=param_dtype, promote_dtype=promote_dtype, rngs=rngs)
        of_input = functools.partial(
            common,
            in_features,
            hidden_features,
            use_bias=False,
            kernel_init=kernel_init,
            kernel_metadata=kernel_metadata,
        )
        of_carry = functools.partial(
            common,
            hidden_features,
            hidden_features,
            kernel_init=recurrent_kernel_init,
            bias_init=bias_init,
            kernel_metadata=recurrent_kernel_metadata,
            bias_metadata=bias_metadata,
        )
        self.ii, self.if_, self.ig, self.io = of_input(), of_input(), of_input(), of_input()
        self.hi, self.hf, self.hg, self.ho = of_carry(), of_carry(), of_carry(), of_carry()
        self.carry_init = carry_init

    def __call__(self, carry: Any, inputs: jax.Array) -> tuple[Any, jax.Array]:
        """Make one step.

        Args:
            carry: two arrays of shape ``(..., hidden_features)``: cell and output.
            inputs: of shape ``(..., in_features)``.

        Raises:
            LayerArgumentError: the carry is no pair.
            LayerShapeError: an array has other features, or the carry another batch.
        """
        c, h = self._pair(inputs, self.hi.kernel.shape[0], carry)
        i = self.gate_fn(self.ii(inputs) + self.hi(h))
        f = self.gate_fn(self.if_(inputs) + self.hf(h))
        g = self.activation_fn(self.ig(inputs) + self.hg(h))
        o = self.gate_fn(self.io(inputs) + self.ho(h))
        c = f * c + i * g
        h = o * self.activation_fn(c)
        return (c, h), h


class OptimizedLSTMCell(_MemoryCell):
    """:class:`LSTMCell` with the kernels of all gates put together.

    Variables: the layers ``dense_i`` of the input, without bias, and ``dense_h`` of the carry, with the gates i, f, g,
        o one after the other.

    Args:
        in_features: size of the last axis of the input.
        hidden_features: size of the last axis of carry and output.
        gate_fn: the activation of the gates.
        activation_fn: the activation of candidate and output.
        kernel_init: initializer of the kernel for the input.
        recurrent_kernel_init: initializer of the kernel for the carry.
        bias_init: initializer of the bias.
        dtype: dtype to compute in; by default what inputs and parameters promote to.
        param_dtype: dtype of the parameters and of the first carry.
        carry_init: initializer of the first carry; zeros by default.
        promote_dtype: brings inputs and parameters to one dtype.
        keep_rngs: whether the cell keeps a stream for its first carry.
        rngs: the stream ``params`` gives the keys.
        kernel_metadata: metadata of the kernel for the input.
        recurrent_kernel_metadata: metadata of the kernel for the carry.
        bias_metadata: metadata of the bias.
    """

    dense_i: Linear
    dense_h: Linear

    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        *,
        gate_fn: Callable[..., Any] = jax.nn.sigmoid,
        activation_fn: Callable[..., Any] = jnp.tanh,
        kernel_init: Callable[..., Any] = _default_kernel_init,
        recurrent_kernel_init: Callable[..., Any] = modified_orthogonal,
        bias_init: Callable[..., Any] = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        carry_init: Callable[..., Any] | None = None,
        promote_dtype: Callable[..., Any] = promote_dtype,
        keep_rngs: bool = False,
        rngs: Rngs,
        kernel_metadata: Mapping[str, Any] = NO_METADATA,
        recurrent_kernel_metadata: Mapping[str, Any] = NO_METADATA,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_arguments(self, "nnx.OptimizedLSTMCell", in_features=in_features, hidden_features=hidden_features)
        self.in_features = in_features
        self.hidden_features = hidden_features
        self.gate_fn = gate_fn
        self.activation_fn = activation_fn
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.promote_dtype = promote_dtype
        self._keep(rngs, keep_rngs=keep_rngs)
        common = functools.partial(Linear, dtype=dtype, param_dtype=param_dtype, promote_dtype=promote_dtype, rngs=rngs)
        self.dense_i = common(
            in_features,
            4 * hidden_features,
            use_bias=False,
            kernel_init=kernel_init,
            kernel_metadata=kernel_metadata,
        )
        self.dense_h = common(
            hidden_features,
            4 * hidden_features,
            kernel_init=recurrent_kernel_init,
            bias_init=bias_init,
            kernel_metadata=recurrent_kernel_metadata,
            bias_metadata=bias_metadata,
        )
        self.carry_init = carry_init

    def __call__(self, carry: Any, inputs: jax.Array) -> tuple[Any, jax.Array]:
        """Make one step.

        Args:
            carry: two arrays of shape ``(..., hidden_features)``: cell and output.
            inputs: of shape ``(..., in_features)``.

        Raises:
            LayerArgumentError: the carry is no pair.
            LayerShapeError: an array has other features, or the carry another batch.
        """
        c, h = self._pair(inputs, self.dense_h.kernel.shape[0], carry)
        i, f, g, o = jnp.split(self.dense_i(inputs) + self.dense_h(h), 4, axis=-1)
        c = self.gate_fn(f) * c + self.gate_fn(i) * self.activation_fn(g)
        h = self.gate_fn(o) * self.activation_fn(c)
        return (c, h), h


class GRUCell(_Cell):
    """A gated recurrent unit.

    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", 2014, in the form of cuDNN: with
    gates r, z, ``n = tanh(W x + b + r * (U h))`` and ``h' = (1 - z) * n + z * h``.

    Variables: the layers ``dense_i`` of the input and ``dense_h`` of the carry, without bias, with r, z, n one after
        the other.

    Args:
        in_features: size of the last axis of the input.
        hidden_features: size of the last axis of carry and output.
        gate_fn: the activation of the gates.
        activation_fn: the activation of the candidate.
        kernel_init: initializer of the kernel for the input.
        recurrent_kernel_init: initializer of the kernel for the carry.
        bias_init: initializer of the bias.
        dtype: dtype to compute in; by default what inputs and parameters promote to.
        param_dtype: dtype of the parameters and of the first carry.
        carry_init: initializer of the first carry; zeros by default.
        promote_dtype: brings inputs and parameters to one dtype.
        keep_rngs: whether the cell keeps a stream for its first carry.
        rngs: the stream ``params`` gives the keys.
        kernel_metadata: metadata of the kernel for the input.
        recurrent_kernel_metadata: metadata of the kernel for the carry.
        bias_metadata: metadata of the bias.
    """

    dense_i: Linear
    dense_h: Linear

    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        *,
        gate_fn: Callable[..., Any] = jax.nn.sigmoid,
        activation_fn: Callable[..., Any] = jnp.tanh,
        kernel_init: Callable[..., Any] = _default_kernel_init,
        recurrent_kernel_init: Callable[..., Any] = modified_orthogonal,
        bias_init: Callable[..., Any] = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        carry_init: Callable[..., Any] | None = None,
        promote_dtype: Callable[..., Any] = promote_dtype,
        keep_rngs: bool = False,
        rngs: Rngs,
        kernel_metadata: Mapping[str, Any] = NO_METADATA,
        recurrent_kernel_metadata: Mapping[str, Any] = NO_METADATA,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_arguments(self, "nnx.GRUCell", in_features=in_features, hidden_features=hidden_features)
        self.in_features = in_features
        self.hidden_features = hidden_features
        self.gate_fn = gate_fn
        self.activation_fn = activation_fn
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.promote_dtype = promote_dtype
        self._keep(rngs, keep_rngs=keep_rngs)
        common = functools.partial(Linear, dtype=dtype, param_dtype=param_dtype, promote_dtype=promote_dtype, rngs=rngs)
        self.dense_i = common(
            in_features,
            3 * hidden_features,
            kernel_init=kernel_init,
            bias_init=bias_init,
            kernel_metadata=kernel_metadata,
            bias_metadata=bias_metadata,
        )
        self.dense_h = common(
            hidden_features,
            3 * hidden_features,
            use_bias=False,
            kernel_init=recurrent_kernel_init,
            kernel_metadata=recurrent_kernel_metadata,
        )
        self.carry_init = carry_init

    def __call__(self, carry: Any, inputs: jax.Array) -> tuple[Any, jax.Array]:
        """Make one step.

        Args:
            carry: of shape ``(..., hidden_features)``.
            inputs: of shape ``(..., in_features)``.

        Raises:
            LayerArgumentError: the carry is not one array.
            LayerShapeError: an array has other features, or the carry another batch.
        """
        self._require_carry(inputs, self.dense_h.kernel.shape[0], carry)
        xr, xz, xn = jnp.split(self.dense_i(inputs), 3, axis=-1)
        hr, hz, hn = jnp.split(self.dense_h(carry), 3, axis=-1)
        r, z = self.gate_fn(xr + hr), self.gate_fn(xz + hz)
        n = self.activation_fn(xn + r * hn)
        h = (1.0 - z) * n + z * carry
        return h, h


class SimpleCell(_Cell):
    """``h' = tanh(W x + b + U h)``, or with ``residual`` ``h + tanh(...)`` of the same.

    Source: Elman, "Finding Structure in Time", 1990.

    Variables: the layers ``dense_i`` of the input and ``dense_h`` of the carry, without bias.

    Args:
        in_features: size of the last axis of the input.
        hidden_features: size of the last axis of carry and output.
        dtype: dtype to compute in.
        param_dtype: dtype of the parameters and of the first carry.
        carry_init: initializer of the first carry; zeros by default.
        residual: whether the carry is added.
        activation_fn: the activation.
        kernel_init: initializer of the kernel for the input.
        recurrent_kernel_init: initializer of the kernel for the carry.
        bias_init: initializer of the bias.
        promote_dtype: brings inputs and parameters to one dtype.
        keep_rngs: whether the cell keeps a stream for its first carry.
        rngs: the stream ``params`` gives the keys.
        kernel_metadata: metadata of the kernel for the input.
        recurrent_kernel_metadata: metadata of the kernel for the carry.
        bias_metadata: metadata of the bias.
    """

    dense_h: Linear
    dense_i: Linear

    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        *,
        dtype: Any = jnp.float32,
        param_dtype: Any = jnp.float32,
        carry_init: Callable[..., Any] | None = None,
        residual: bool = False,
        activation_fn: Callable[..., Any] = jnp.tanh,
        kernel_init: Callable[..., Any] = _default_kernel_init,
        recurrent_kernel_init: Callable[..., Any] = modified_orthogonal,
        bias_init: Callable[..., Any] = initializers.zeros,
        promote_dtype: Callable[..., Any] = promote_dtype,
        keep_rngs: bool = False,
        rngs: Rngs,
        kernel_metadata: Mapping[str, Any] = NO_METADATA,
        recurrent_kernel_metadata: Mapping[str, Any] = NO_METADATA,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_arguments(self, "nnx.SimpleCell", in_features=in_features, hidden_features=hidden_features)
        self.in_features = in_features
        self.hidden_features = hidden_features
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.residual = residual
        self.activation_fn = activation_fn
        self.promote_dtype = promote_dtype
        self._keep(rngs, keep_rngs=keep_rngs)
        common = functools.partial(Linear, dtype=dtype, param_dtype=param_dtype, promote_dtype=promote_dtype, rngs=rngs)
        self.dense_h = common(
            hidden_features,
            hidden_features,
            use_bias=False,
            kernel_init=recurrent_kernel_init,
            kernel_metadata=recurrent_kernel_metadata,
        )
        self.dense_i = common(
            in_features,
            hidden_features,
            kernel_init=kernel_init,
            bias_init=bias_init,
            kernel_metadata=kernel_metadata,
            bias_metadata=bias_metadata,
        )
        self.carry_init = carry_init

    def __call__(self, carry: Any, inputs: jax.Array) -> tuple[Any, jax.Array]:
        """Make one step.

        Args:
            carry: of shape ``(..., hidden_features)``.
            inputs: of shape ``(..., in_features)``.

        Raises:
            LayerArgumentError: the carry is not one array.
            LayerShapeError: an array has other features, or the carry another batch.
        """
        self._require_carry(inputs, self.dense_h.kernel.shape[0], carry)
        h = self.dense_i(inputs) + self.dense_h(carry)
        h = self.activation_fn(h + carry if self.residual else h)
        return h, h
