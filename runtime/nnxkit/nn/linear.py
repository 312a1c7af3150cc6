"""Linear layers: products of the input and one kernel."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from nnx_rules.rules import modules as rules
from nnxkit._module import Module
from nnxkit.nn import initializers
from nnxkit.nn._parameters import (
    NO_METADATA,
    add_bias,
    as_tuple,
    given_options,
    param,
    require_arguments,
    require_input,
    require_size,
    value_of,
)
from nnxkit.nn.dtypes import promote_dtype

if TYPE_CHECKING:
    from nnxkit._rngs import Rngs
    from nnxkit._variable_types import Param

default_kernel_init: initializers.Initializer = initializers.lecun_normal()
default_bias_init: initializers.Initializer = initializers.zeros


class Linear(Module):
    """``y = x @ kernel + bias`` over the last axis.

    Variables: ``kernel`` ``Param`` of shape ``(in_features, out_features)``, ``bias`` ``Param`` of shape
        ``(out_features,)`` or ``None``.

    Args:
        in_features: size of the last axis of the input.
        out_features: size of the last axis of the output.
        use_bias: whether there is a bias.
        dtype: dtype to compute in; by default what input and parameters promote to.
        param_dtype: dtype of the parameters.
        precision: precision of the product, as ``jax.lax.dot_general`` takes it.
        kernel_init: initializer of the kernel.
        bias_init: initializer of the bias.
        dot_general: the product.
        promote_dtype: brings input and parameters to one dtype.
        preferred_element_type: dtype in which the product accumulates.
        rngs: the stream ``params`` gives the keys.
        kernel_metadata: metadata of the kernel.
        bias_metadata: metadata of the bias.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> nnx.Linear(2, 3, rngs=nnx.Rngs(0))(jnp.ones((4, 2))).shape
    (4, 3)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        use_bias: bool = True,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        precision: Any = None,
        kernel_init: Callable[..., Any] = default_kernel_init,
        bias_init: Callable[..., Any] = default_bias_init,
        dot_general: Callable[..., Any] = jax.lax.dot_general,
        promote_dtype: Callable[..., Any] = promote_dtype,
        preferred_element_type: Any = None,
        rngs: Rngs,
        kernel_metadata: Mapping[str, Any] = NO_METADATA,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_arguments(self, "nnx.Linear", in_features=in_features, out_features=out_features)
        self.kernel: Param[jax.Array] = param(
            kernel_init, rngs, (in_features, out_features), param_dtype, kernel_metadata
        )
        self.bias: Param[jax.Array] | None = param(
            bias_init, rngs, (out_features,), param_dtype, bias_metadata, when=use_bias
        )
        self.in_features = in_features
        self.out_features = out_features
        self.use_bias = use_bias
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        self.dot_general = dot_general
        self.promote_dtype = promote_dtype
        self.preferred_element_type = preferred_element_type

    def __call__(self, inputs: Any, out_sharding: Any = None) -> jax.Array:
        """Apply the layer to an array of shape ``(..., in_features)``; the result has shape ``(..., out_features)``.

        Args:
            inputs: the array.
            out_sharding: sharding of the result, where the mesh has explicit axes.

        Raises:
            LayerShapeError: the last axis of the input has another size.
        """
        inputs, kernel, bias = self.promote_dtype(
            (inputs, self.kernel.get_value(), value_of(self.bias)), dtype=self.dtype
        )
        require_size(self, "inputs", inputs, kernel.shape[0])  # not `in_features`: this may be one shard of it
        y: jax.Array = self.dot_general(
            inputs,
            kernel,
            (((inputs.ndim - 1,), (0,)), ((), ())),
            precision=self.precision,
            **given_options(out_sharding=out_sharding, preferred_element_type=self.preferred_element_type),
        )
        return y if bias is None else add_bias(y, bias)


def _flat(init: Callable[..., Any], flat: tuple[int, ...]) -> Callable[..., Any]:
    """An initializer of arrays of any shape with as many elements as a flat one, which the given one makes."""

    @functools.wraps(init)
    def reshaped(key: Any, shape: Sequence[int], dtype: Any) -> Any:
        return jnp.reshape(init(key, flat, dtype), shape)

    return reshaped


class LinearGeneral(Module):
    """A product over any axes: :class:`Linear` with several input and output axes.

    Variables: ``kernel`` ``Param`` of the shape of the batch axes, the input axes, the output axes; ``bias`` ``Param``
        of the shape of the batch axes and the output axes, or ``None``.

    Args:
        in_features: sizes of the input axes that are contracted.
        out_features: sizes of the new axes, which come last.
        axis: the input axes that are contracted.
        batch_axis: leading axes along which the kernel differs, with their sizes.
        use_bias: whether there is a bias.
        dtype: dtype to compute in; by default what input and parameters promote to.
        param_dtype: dtype of the parameters.
        kernel_init: initializer of the kernel; it sees one input and one output axis.
        bias_init: initializer of the bias; it sees one axis.
        precision: precision of the product, as ``jax.lax.dot_general`` takes it.
        promote_dtype: brings input and parameters to one dtype.
        dot_general: the product; ``jax.lax.dot_general`` by default.
        dot_general_cls: returns the product, if ``dot_general`` is not given.
        preferred_element_type: dtype in which the product accumulates.
        rngs: the stream ``params`` gives the keys.
        kernel_metadata: metadata of the kernel.
        bias_metadata: metadata of the bias.

    Raises:
        LayerArgumentError: not as many sizes as axes.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> nnx.LinearGeneral((2, 3), (4, 5), axis=(1, -1), rngs=nnx.Rngs(0))(jnp.ones((8, 2, 3))).shape
    (8, 4, 5)
    """

    def __init__(
        self,
        in_features: int | Sequence[int],
        out_features: int | Sequence[int],
        *,
        axis: int | Sequence[int] = -1,
        batch_axis: Mapping[int, int] = NO_METADATA,  # type: ignore[assignment] # empty
        use_bias: bool = True,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        kernel_init: Callable[..., Any] = default_kernel_init,
        bias_init: Callable[..., Any] = default_bias_init,
        precision: Any = None,
        promote_dtype: Callable[..., Any] = promote_dtype,
        dot_general: Callable[..., Any] | None = None,
        dot_general_cls: Callable[[], Callable[..., Any]] | None = None,
        preferred_element_type: Any = None,
        rngs: Rngs,
        kernel_metadata: Mapping[str, Any] = NO_METADATA,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        self.in_features: tuple[int, ...] = as_tuple(in_features)
        self.out_features: tuple[int, ...] = as_tuple(out_features)
        self.axis: tuple[int, ...] = as_tuple(axis)
        self.batch_axis: tuple[tuple[int, int], ...] = tuple(batch_axis.items())
        sizes = {"in_features": self.in_features, "out_features": self.out_features}
        require_arguments(self, "nnx.LinearGeneral", **sizes, axis=self.axis)
        batch = tuple(size for _, size in self.batch_axis)
        rows, columns, batches = math.prod(self.in_features), math.prod(self.out_features), math.prod(batch)

        self.use_bias = use_bias
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        self.dot_general = dot_general
        self.dot_general_cls = dot_general_cls
        self.promote_dtype = promote_dtype
        self.preferred_element_type = preferred_element_type
        shape = (*batch, *self.in_features, *self.out_features)
        init_kernel = _flat(kernel_init, (batches * rows, columns))
        self.kernel: Param[jax.Array] = param(init_kernel, rngs, shape, param_dtype, kernel_metadata)
        init_bias, shape = _flat(bias_init, (batches * columns,)), (*batch, *self.out_features)
        self.bias: Param[jax.Array] | None = param(init_bias, rngs, shape, param_dtype, bias_metadata, when=use_bias)

    def __call__(self, inputs: Any, out_sharding: Any = None) -> jax.Array:
        """Apply the layer: the axes ``axis`` of the input are replaced by new ones at the end.

        Args:
            inputs: the array.
            out_sharding: sharding of the result, where the mesh has explicit axes.

        Raises:
            LayerShapeError: an axis of the input has another size than the layer was made for, or there is no such
                axis.
        """
        inputs, kernel, bias = self.promote_dtype(
            (inputs, self.kernel.get_value(), value_of(self.bias)), dtype=self.dtype
        )
        # The sizes of the kernel, not of `__init__`: this may be one shard of it.
        count, inner = len(self.batch_axis), len(self.batch_axis) + len(self.axis)
        leading = tuple(axis for axis, _ in self.batch_axis)
        require_input(
            self,
            "nnx.LinearGeneral",
            inputs,
            in_features=kernel.shape[count:inner],
            out_features=kernel.shape[inner:],
            axis=self.axis,
            batch_axis=tuple(zip(leading, kernel.shape, strict=False)),
        )
        contracted = tuple(axis % inputs.ndim for axis in self.axis)
        batched = tuple(axis % inputs.ndim for axis in leading)
        product = self.dot_general
        if product is None:
            product = jax.lax.dot_general if self.dot_general_cls is None else self.dot_general_cls()
        y: jax.Array = product(
            inputs,
            kernel,
            ((contracted, tuple(range(count, inner))), (batched, tuple(range(count)))),
            precision=self.precision,
            **given_options(out_sharding=out_sharding, preferred_element_type=self.preferred_element_type),
        )
        if bias is None:
            return y
        # Between the batch axes and the new ones lie the axes of the input that were left alone.
        alone = (1,) * (y.ndim - bias.ndim)
        result: jax.Array = add_bias(y, jnp.reshape(bias, (*bias.shape[:count], *alone, *bias.shape[count:])))
        return result


def _kernel_axes(operand: str, shape: tuple[int, ...], axes: str, ndim: int) -> list[int]:
    """The shape of what is broadcast over all axes of the result of an equation that are not the kernel's.

    Args:
        operand: the kernel in the equation.
        shape: shape of the kernel.
        axes: the result in the equation.
        ndim: number of axes of the result.

    >>> _kernel_axes("bc...", (4, 5, 6, 7), "ad...c", 5)
    [1, 1, 6, 7, 5]
    """
    before, dots, after = operand.partition("...")
    sizes = dict(zip(before, shape, strict=False)) | dict(zip(reversed(after), reversed(shape), strict=False))
    named = [sizes.get(axis, 1) for axis in axes.replace("...", "")]
    below = shape[len(before) : len(shape) - len(after)] if dots else ()
    place = axes.find("...")
    named[place:place] = [1] * (ndim - len(named) - len(below)) + list(below)
    return named


class Einsum(Module):
    """``jnp.einsum`` of the input and a kernel, and a bias.

    Variables: ``kernel`` ``Param`` of shape ``kernel_shape``, ``bias`` ``Param`` of shape ``bias_shape`` or ``None``.

    Args:
        einsum_str: the equation with two operands, the input and the kernel; a call may give another.
        kernel_shape: shape of the kernel.
        bias_shape: shape of the bias, whose axes are those of the kernel that are in the result, in their order there;
            without it there is none.
        dtype: dtype to compute in; by default what input and parameters promote to.
        param_dtype: dtype of the parameters.
        precision: precision of the product.
        kernel_init: initializer of the kernel.
        bias_init: initializer of the bias.
        promote_dtype: brings input and parameters to one dtype.
        einsum_op: computes the equation.
        preferred_element_type: dtype in which the product accumulates.
        rngs: the stream ``params`` gives the keys.
        kernel_metadata: metadata of the kernel.
        bias_metadata: metadata of the bias.

    Raises:
        LayerArgumentError: the equation has no ``->``, not two operands or a new axis in the result; or the shapes of
            kernel and bias do not fit it.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> layer = nnx.Einsum("nta,hab->nthb", (8, 2, 4), (8, 4), rngs=nnx.Rngs(0))
    >>> layer(jnp.ones((16, 11, 2))).shape
    (16, 11, 8, 4)
    """

    def __init__(
        self,
        einsum_str: str | None,
        kernel_shape: int | Sequence[int],
        bias_shape: int | Sequence[int] | None = None,
        *,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        precision: Any = None,
        kernel_init: Callable[..., Any] = default_kernel_init,
        bias_init: Callable[..., Any] = default_bias_init,
        promote_dtype: Callable[..., Any] = promote_dtype,
        einsum_op: Callable[..., Any] = jnp.einsum,
        preferred_element_type: Any = None,
        rngs: Rngs,
        kernel_metadata: Mapping[str, Any] = NO_METADATA,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        kernel_shape = as_tuple(kernel_shape)
        bias_shape = None if bias_shape is None else as_tuple(bias_shape)
        if einsum_str is not None:
            einsum_str = self._parsed(einsum_str, kernel_shape, bias_shape)
        self.kernel: Param[jax.Array] = param(kernel_init, rngs, kernel_shape, param_dtype, kernel_metadata)
        self.bias: Param[jax.Array] | None = param(
            bias_init, rngs, bias_shape or (), param_dtype, bias_metadata, when=bias_shape is not None
        )
        self.einsum_str = einsum_str
        self.kernel_shape: tuple[int, ...] = kernel_shape
        self.bias_shape: tuple[int, ...] | None = bias_shape
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        self.promote_dtype = promote_dtype
        self.einsum_op = einsum_op
        self.preferred_element_type = preferred_element_type

    def __call__(self, inputs: Any, einsum_str: str | None = None, out_sharding: Any = None) -> jax.Array:
        """Apply the layer.

        Args:
            inputs: the first operand.
            einsum_str: an equation to use instead of the layer's.
            out_sharding: sharding of the result, where the mesh has explicit axes.

        Raises:
            LayerArgumentError: there is no equation, or a wrong one.
            LayerShapeError: the input has other axes than the equation says.
        """
        given = self.einsum_str if einsum_str is None else einsum_str
        if given is None:
            raise rules.LAYER_ARGUMENTS.error(
                cls=type(self).__name__,
                problem="it has no equation",
                mend="pass `einsum_str` to the constructor or to the call",
            )
        equation = self._parsed(given, self.kernel_shape, self.bias_shape)
        inputs, kernel, bias = self.promote_dtype(
            (inputs, self.kernel.get_value(), value_of(self.bias)), dtype=self.dtype
        )
        _, right, axes = equation.replace("->", ",").split(",")
        require_input(self, "nnx.Einsum", inputs, einsum_str=equation, kernel_shape=kernel.shape)
        y: jax.Array = self.einsum_op(
            equation,
            inputs,
            kernel,
            precision=self.precision,
            **given_options(out_sharding=out_sharding, preferred_element_type=self.preferred_element_type),
        )
        if bias is None:
            return y
        result: jax.Array = add_bias(y, jnp.reshape(bias, _kernel_axes(right, kernel.shape, axes, y.ndim)))
        return result

    def _parsed(self, einsum_str: str, kernel_shape: tuple[int, ...], bias_shape: tuple[int, ...] | None) -> str:
        """An equation without white space.

        Raises:
            LayerArgumentError: it is none that the layer can compute.
        """
        shapes = {"kernel_shape": kernel_shape, "bias_shape": bias_shape}
        require_arguments(self, "nnx.Einsum", einsum_str=einsum_str, **shapes)
        return "".join(einsum_str.split())
