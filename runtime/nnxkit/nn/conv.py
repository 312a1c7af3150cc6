"""Convolutions over the last axis but the features; inputs are channels-last.

Invariants

- An input has the batch axes, the spatial axes, the features. Any number of batch axes, also none, is one for JAX.
- ``CIRCULAR``, ``REFLECT`` and ``CAUSAL`` padding is done before the convolution, which then pads nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from nnxkit._module import Module
from nnxkit.nn import initializers
from nnxkit.nn._parameters import (
    NO_METADATA,
    add_bias,
    as_tuple,
    given_options,
    param,
    require_arguments,
    require_shape,
    value_of,
)
from nnxkit.nn.dtypes import promote_dtype

if TYPE_CHECKING:
    from nnxkit._rngs import Rngs
    from nnxkit._variable_types import Param

Padding = str | int | Sequence[int | tuple[int, int]]
"""A name, or how much is added before and after each spatial axis."""

default_kernel_init: Any = initializers.lecun_normal()


def _sizes(value: Any, count: int) -> tuple[int, ...]:
    """A number for each spatial axis; ``None`` is one."""
    return (1 if value is None else int(value),) * count if value is None or isinstance(value, int) else tuple(value)


def _explicit(padding: Padding, count: int) -> str | tuple[tuple[int, int], ...]:
    """Padding as JAX takes it: a name in capitals, or pairs."""
    if isinstance(padding, str):
        return padding.upper()
    if isinstance(padding, int):
        return ((padding, padding),) * count
    pairs = tuple([(item, item) if isinstance(item, int) else (item[0], item[1]) for item in padding])
    return pairs * count if len(pairs) == 1 else pairs


def _masked(layer: Module, kernel: Any, mask: Any) -> Any:
    """The kernel with some weights set to zero."""
    if mask is None:
        return kernel
    require_shape(layer, "mask", mask, str(tuple(kernel.shape)), holds=mask.shape == kernel.shape)
    return kernel * mask


class _Batched:
    """An input with exactly one batch axis, and how its result gets the axes of the input back."""

    def __init__(self, layer: Module, inputs: Any, features: int, spatial: int) -> None:
        require_shape(
            layer,
            "inputs",
            inputs,
            f"(..., {'axis, ' * spatial}{features})",
            holds=inputs.ndim > spatial and inputs.shape[-1] == features,
        )
        self.shape = inputs.shape[: inputs.ndim - spatial - 1]
        self.inputs = jnp.reshape(inputs, (math.prod(self.shape), *inputs.shape[len(self.shape) :]))

    def restore(self, y: Any) -> jax.Array:
        return jnp.reshape(y, (*self.shape, *y.shape[1:]))


class Conv(Module):
    """A convolution with as many spatial axes as ``kernel_size`` has numbers.

    Variables: ``kernel`` ``Param`` of shape ``(*kernel_size, in_features // feature_group_count, out_features)``,
        ``bias`` ``Param`` of shape ``(out_features,)`` or ``None``.

    Args:
        in_features: size of the last axis of the input.
        out_features: size of the last axis of the output.
        kernel_size: window along each spatial axis; a number for one axis.
        strides: steps of the window.
        padding: ``"SAME"``, ``"VALID"``, ``"CIRCULAR"`` (the input goes on periodically), ``"REFLECT"`` (it goes on
            mirrored), ``"CAUSAL"`` (one axis; a result depends on nothing behind it), a number, or for each axis a
            number or a pair of before and after.
        input_dilation: distance of the elements of the input, with zeros between.
        kernel_dilation: distance of the elements of the window.
        feature_group_count: groups of features that are convolved separately.
        use_bias: whether there is a bias.
        mask: multiplied into the kernel; of its shape.
        dtype: dtype to compute in; by default what input and parameters promote to.
        param_dtype: dtype of the parameters.
        precision: precision of the products.
        kernel_init: initializer of the kernel.
        bias_init: initializer of the bias.
        conv_general_dilated: the convolution.
        promote_dtype: brings input and parameters to one dtype.
        preferred_element_type: dtype in which the products accumulate.
        rngs: the stream ``params`` gives the keys.
        kernel_metadata: metadata of the kernel.
        bias_metadata: metadata of the bias.

    Raises:
        LayerArgumentError: the features cannot be divided into the groups; what is given for each axis is given for
            another number of them; or the padding has another name, or is causal along several axes.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> nnx.Conv(3, 8, (3, 3), strides=2, rngs=nnx.Rngs(0))(jnp.ones((1, 32, 32, 3))).shape
    (1, 16, 16, 8)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] | None = 1,
        *,
        padding: Padding = "SAME",
        input_dilation: int | Sequence[int] | None = 1,
        kernel_dilation: int | Sequence[int] | None = 1,
        feature_group_count: int = 1,
        use_bias: bool = True,
        mask: Any = None,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        precision: Any = None,
        kernel_init: Callable[..., Any] = default_kernel_init,
        bias_init: Callable[..., Any] = initializers.zeros,
        conv_general_dilated: Callable[..., Any] = jax.lax.conv_general_dilated,
        promote_dtype: Callable[..., Any] = promote_dtype,
        preferred_element_type: Any = None,
        rngs: Rngs,
        kernel_metadata: Mapping[str, Any] = NO_METADATA,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_arguments(
            self,
            "nnx.Conv",
            in_features=in_features,
            out_features=out_features,
            feature_group_count=feature_group_count,
            kernel_size=kernel_size,
            strides=strides,
            padding=padding,
            input_dilation=input_dilation,
            kernel_dilation=kernel_dilation,
        )
        window = as_tuple(kernel_size)
        self.kernel_shape: tuple[int, ...] = (*window, in_features // feature_group_count, out_features)
        self.kernel: Param[jax.Array] = param(kernel_init, rngs, self.kernel_shape, param_dtype, kernel_metadata)
        self.bias: Param[jax.Array] | None = param(
            bias_init, rngs, (out_features,), param_dtype, bias_metadata, when=use_bias
        )
        self.in_features = in_features
        self.out_features = out_features
        self.kernel_size: tuple[int, ...] = window
        self.strides = strides
        self.padding: str | int | tuple[int | tuple[int, int], ...] = (
            padding if isinstance(padding, str | int) else tuple(padding)
        )
        self.input_dilation = input_dilation
        self.kernel_dilation = kernel_dilation
        self.feature_group_count = feature_group_count
        self.use_bias = use_bias
        self.mask = mask
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        self.conv_general_dilated = conv_general_dilated
        self.promote_dtype = promote_dtype
        self.preferred_element_type = preferred_element_type

    def __call__(self, inputs: Any, out_sharding: Any = None) -> jax.Array:
        """Convolve an array of shape ``(..., *spatial, in_features)``; the result has ``out_features`` at the end.

        Args:
            inputs: the array, with any number of batch axes.
            out_sharding: sharding of the result, where the mesh has explicit axes.

        Raises:
            LayerShapeError: the input has too few axes or other features.
        """
        count = len(self.kernel_size)
        inputs, kernel, bias = self.promote_dtype(
            (inputs, _masked(self, self.kernel.get_value(), self.mask), value_of(self.bias)), dtype=self.dtype
        )
        batched = _Batched(self, inputs, kernel.shape[-2] * self.feature_group_count, count)
        dilation = _sizes(self.kernel_dilation, count)
        padding = _explicit(self.padding, count)
        padded = batched.inputs
        if padding in _PAD:
            reach = [(size - 1) * step for size, step in zip(self.kernel_size, dilation, strict=True)]
            padded = _PAD[padding](padded, reach)
            padding = "VALID"
        y: jax.Array = self.conv_general_dilated(
            padded,
            kernel,
            _sizes(self.strides, count),
            padding,
            lhs_dilation=_sizes(self.input_dilation, count),
            rhs_dilation=dilation,
            dimension_numbers=_channels_last(count),
            feature_group_count=self.feature_group_count,
            precision=self.precision,
            **given_options(out_sharding=out_sharding, preferred_element_type=self.preferred_element_type),
        )
        return batched.restore(y if bias is None else add_bias(y, bias))


def _channels_last(count: int) -> jax.lax.ConvDimensionNumbers:
    outer = (0, count + 1, *range(1, count + 1))
    return jax.lax.ConvDimensionNumbers(outer, (count + 1, count, *range(count)), outer)


def _pad_around(mode: str) -> Callable[[Any, Sequence[int]], Any]:
    def pad(inputs: Any, reach: Sequence[int]) -> Any:
        return jnp.pad(inputs, [(0, 0), *[(n // 2, n - n // 2) for n in reach], (0, 0)], mode=mode)

    return pad


def _pad_before(inputs: Any, reach: Sequence[int]) -> Any:
    return jnp.pad(inputs, [(0, 0), (reach[0], 0), (0, 0)])


_PAD: dict[Any, Callable[[Any, Sequence[int]], Any]] = {
    "CIRCULAR": _pad_around("wrap"),
    "REFLECT": _pad_around("reflect"),
    "CAUSAL": _pad_before,
}
"""Padding that is done before the convolution, by name. ``reach`` is how far the window goes along each axis."""


class ConvTranspose(Module):
    """A transposed convolution: each element of the input is spread over a window of the output.

    Variables: ``kernel`` ``Param`` of shape ``(*kernel_size, in_features, out_features)``, the last two exchanged with
        ``transpose_kernel``; ``bias`` ``Param`` of shape ``(out_features,)`` or ``None``.

    Args:
        in_features: size of the last axis of the input.
        out_features: size of the last axis of the output.
        kernel_size: window along each spatial axis; a number for one axis.
        strides: steps of the window in the output.
        padding: ``"SAME"`` (as many elements as in the input, times the step), ``"VALID"`` (all that a window reaches),
            ``"CIRCULAR"`` (as ``"SAME"``, and what goes beyond one end comes in at the other), a number, or for each
            axis a number or a pair: how much the input, with zeros between, is padded.
        kernel_dilation: distance of the elements of the window.
        use_bias: whether there is a bias.
        mask: multiplied into the kernel; of its shape.
        dtype: dtype to compute in; by default what input and parameters promote to.
        param_dtype: dtype of the parameters.
        precision: precision of the products.
        kernel_init: initializer of the kernel.
        bias_init: initializer of the bias.
        transpose_kernel: whether the kernel is mirrored and its features exchanged, which makes this the transpose of
            the convolution with the same kernel.
        promote_dtype: brings input and parameters to one dtype.
        preferred_element_type: dtype in which the products accumulate.
        rngs: the stream ``params`` gives the keys.
        kernel_metadata: metadata of the kernel.
        bias_metadata: metadata of the bias.

    Raises:
        LayerArgumentError: what is given for each axis is given for another number of them, or the padding has another
            name.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> nnx.ConvTranspose(8, 3, (3, 3), strides=2, rngs=nnx.Rngs(0))(jnp.ones((1, 16, 16, 8))).shape
    (1, 32, 32, 3)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] | None = None,
        *,
        padding: Padding = "SAME",
        kernel_dilation: int | Sequence[int] | None = None,
        use_bias: bool = True,
        mask: Any = None,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        precision: Any = None,
        kernel_init: Callable[..., Any] = default_kernel_init,
        bias_init: Callable[..., Any] = initializers.zeros,
        transpose_kernel: bool = False,
        promote_dtype: Callable[..., Any] = promote_dtype,
        preferred_element_type: Any = None,
        rngs: Rngs,
        kernel_metadata: Mapping[str, Any] = NO_METADATA,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        window = {"kernel_size": kernel_size, "strides": strides, "kernel_dilation": kernel_dilation}
        sizes = {"in_features": in_features, "out_features": out_features}
        require_arguments(self, "nnx.ConvTranspose", **sizes, **window, padding=padding)
        self.kernel_size: tuple[int, ...] = as_tuple(kernel_size)
        self.in_features = in_features
        self.out_features = out_features
        self.strides = strides
        self.padding: str | int | tuple[int | tuple[int, int], ...] = (
            padding if isinstance(padding, str | int) else tuple(padding)
        )
        self.kernel_dilation = kernel_dilation
        self.use_bias = use_bias
        self.mask = mask
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        self.transpose_kernel = transpose_kernel
        self.promote_dtype = promote_dtype
        self.preferred_element_type = preferred_element_type
        features = (out_features, in_features) if transpose_kernel else (in_features, out_features)
        self.kernel_shape: tuple[int, ...] = (*self.kernel_size, *features)
        self.kernel: Param[jax.Array] = param(kernel_init, rngs, self.kernel_shape, param_dtype, kernel_metadata)
        self.bias: Param[jax.Array] | None = param(
            bias_init, rngs, (out_features,), param_dtype, bias_metadata, when=use_bias
        )

    def __call__(self, inputs: Any) -> jax.Array:
        """Spread an array of shape ``(..., *spatial, in_features)``; the result has ``out_features`` at the end.

        Args:
            inputs: the array, with any number of batch axes.

        Raises:
            LayerShapeError: the input has too few axes or other features.
        """
        count = len(self.kernel_size)
        inputs, kernel, bias = self.promote_dtype(
            (inputs, _masked(self, self.kernel.get_value(), self.mask), value_of(self.bias)), dtype=self.dtype
        )
        batched = _Batched(self, inputs, kernel.shape[-1 if self.transpose_kernel else -2], count)
        strides, dilation = _sizes(self.strides, count), _sizes(self.kernel_dilation, count)
        padding = _explicit(self.padding, count)
        y: jax.Array = jax.lax.conv_transpose(
            batched.inputs,
            kernel,
            strides,
            "VALID" if padding == "CIRCULAR" else padding,
            rhs_dilation=dilation,
            dimension_numbers=_channels_last(count),
            transpose_kernel=self.transpose_kernel,
            precision=self.precision,
            preferred_element_type=self.preferred_element_type,
        )
        if padding == "CIRCULAR":
            for axis, (size, step, distance) in enumerate(zip(self.kernel_size, strides, dilation, strict=True), 1):
                reach = (size - 1) * distance
                # Where "SAME" begins, as JAX has it; a mirrored kernel has its middle on the other side.
                half = (reach + step - 1 + (not self.transpose_kernel)) // 2
                first = reach - (reach if step > reach else half)
                y = _wrapped(y, axis, batched.inputs.shape[axis] * step, first)
        return batched.restore(y if bias is None else add_bias(y, bias))


def _wrapped(y: jax.Array, axis: int, period: int, first: int) -> jax.Array:
    """Sum what lies a multiple of ``period`` apart; the result begins at ``first``."""
    rounds = -(-y.shape[axis] // period)
    widths = [(0, 0)] * y.ndim
    widths[axis] = (0, rounds * period - y.shape[axis])
    folded = jnp.reshape(jnp.pad(y, widths), (*y.shape[:axis], rounds, period, *y.shape[axis + 1 :]))
    return jnp.roll(jnp.sum(folded, axis), -first, axis)
