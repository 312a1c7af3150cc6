"""Normalization layers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from nnx_rules.rules import modules as rules
from nnxkit._annotations import data
from nnxkit._module import Module
from nnxkit._variable_types import BatchStat, Param
from nnxkit.nn import initializers
from nnxkit.nn.dtypes import promote_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnxkit._rngs import Rngs

_NO_METADATA: Mapping[str, Any] = MappingProxyType({})


_pmean: Callable[..., jax.Array] = jax.lax.pmean


def _axes(axes: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Axes as sorted non-negative numbers."""
    return tuple(sorted(axis % ndim for axis in ((axes,) if isinstance(axes, int) else axes)))


def compute_statistics(
    x: jax.Array,
    axes: tuple[int, ...],
    *,
    axis_name: str | None = None,
    axis_index_groups: Any = None,
    use_fast_variance: bool = True,
    mask: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of ``x`` over ``axes`` and, if it is given, over the mapped axis ``axis_name``; at least in
    float32.

    ``use_fast_variance`` computes ``E[x^2] - E[x]^2`` (one pass, and one reduction over devices), otherwise ``E[(x
    - E[x])^2]``.
    """
    x = jnp.asarray(x, jnp.promote_types(jnp.float32, x.dtype))

    def mean_of(*values: jax.Array) -> list[jax.Array]:
        means = [jnp.mean(value, axes, where=mask) for value in values]
        if axis_name is None:
            return means
        return list(_pmean(jnp.stack(means), axis_name, axis_index_groups=axis_index_groups))

    def square(value: jax.Array) -> jax.Array:
        return (jnp.abs(value) ** 2) if jnp.iscomplexobj(value) else jnp.square(value)

    if use_fast_variance:
        mean, mean_of_square = mean_of(x, square(x))
        return mean, jnp.maximum(0.0, mean_of_square - square(mean))
    (mean,) = mean_of(x)
    (variance,) = mean_of(square(x - jnp.expand_dims(mean, axes)))
    return mean, variance


# Traced once for each shape: JAX keeps what it derives from a jitted function, and under a gradient that is most of the
# work of tracing a layer.
@functools.partial(jax.jit, static_argnames="features", inline=True)
def normalize(
    x: jax.Array,
    mean: jax.Array,
    var: jax.Array,
    scale: jax.Array | None,
    bias: jax.Array | None,
    features: tuple[int, ...],
    epsilon: float,
) -> jax.Array:
    """``(x - mean) / sqrt(var + epsilon) * scale + bias``, all but ``x`` going along the axes ``features``."""
    shape = tuple(x.shape[axis] if axis in features else 1 for axis in range(x.ndim))
    factor = jax.lax.rsqrt(var.reshape(shape) + epsilon)
    if scale is not None:
        factor *= scale.reshape(shape)
    y = (x - mean.reshape(shape)) * factor
    if bias is not None:
        y += bias.reshape(shape)
    return jnp.asarray(y, x.dtype)


class BatchNorm(Module):
    """Normalize over the batch, then scale and shift each feature.

    Variables: ``mean`` and ``var`` ``BatchStat``, ``scale`` and ``bias`` ``Param`` or ``None``, all of shape
        ``(num_features,)``.

    Args:
        num_features: size of the feature axis.
        use_running_average: normalize with the stored statistics instead of those of the batch, and do not update them.
        axis: the feature axis or axes; the statistics go over all others.
        momentum: how much of the stored statistics an update keeps.
        epsilon: added to the variance.
        dtype: dtype of the result; by default what input and parameters promote to.
        param_dtype: dtype of the parameters.
        use_bias: whether there is a shift.
        use_scale: whether there is a scale.
        bias_init: initializer of the shift.
        scale_init: initializer of the scale.
        axis_name: name of a mapped axis over which the statistics go, too.
        axis_index_groups: groups of devices along that axis.
        use_fast_variance: see :func:`compute_statistics`.
        promote_dtype: brings input and parameters to one dtype.
        rngs: the stream ``params`` gives the keys.
        bias_metadata: metadata of the shift.
        scale_metadata: metadata of the scale.
    """

    def __init__(
        self,
        num_features: int,
        *,
        use_running_average: bool | None = False,
        axis: int | Sequence[int] = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-5,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        use_bias: bool = True,
        use_scale: bool = True,
        bias_init: Callable[..., Any] = initializers.zeros,
        scale_init: Callable[..., Any] = initializers.ones,
        axis_name: str | None = None,
        axis_index_groups: Any = None,
        use_fast_variance: bool = True,
        promote_dtype: Callable[..., Any] = promote_dtype,
        rngs: Rngs,
        bias_metadata: Mapping[str, Any] = _NO_METADATA,
        scale_metadata: Mapping[str, Any] = _NO_METADATA,
    ) -> None:
        shape = (num_features,)
        self.mean = BatchStat(jnp.zeros(shape, jnp.float32))
        self.var = BatchStat(jnp.ones(shape, jnp.float32))
        self.scale: Param[Any] | None = data(None)
        if use_scale:
            self.scale = Param(scale_init(rngs.params(), shape, param_dtype), **scale_metadata)
        self.bias: Param[Any] | None = data(None)
        if use_bias:
            self.bias = Param(bias_init(rngs.params(), shape, param_dtype), **bias_metadata)
        self.num_features = num_features
        self.use_running_average = use_running_average
        self.axis = axis
        self.momentum = momentum
        self.epsilon = epsilon
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.use_bias = use_bias
        self.use_scale = use_scale
        self.axis_name = axis_name
        self.axis_index_groups = axis_index_groups
        self.use_fast_variance = use_fast_variance
        self.promote_dtype = promote_dtype

    def __call__(
        self, x: jax.Array, use_running_average: bool | None = None, *, mask: jax.Array | None = None
    ) -> jax.Array:
        """Normalize an array whose feature axis has ``num_features`` elements; the result has the same shape.

        Raises:
            LayerArgumentError: ``use_running_average`` is given neither here nor as an attribute.
            TraceContextError: the statistics belong to another trace level and would be updated.
        """
        if use_running_average is None:
            use_running_average = self.use_running_average
        if use_running_average is None:
            raise rules.LAYER_MODE_UNDECIDED.error(cls=type(self).__name__, name="use_running_average")
        scale, bias = (None if parameter is None else parameter.get_value() for parameter in (self.scale, self.bias))
        stored = (self.mean.get_value(), self.var.get_value())
        x, *_ = self.promote_dtype((x, *stored, scale, bias), dtype=self.dtype)
        features = _axes(self.axis, x.ndim)
        reduced = tuple(axis for axis in range(x.ndim) if axis not in features)
        if use_running_average:
            mean, var = stored
        else:
            mean, var = compute_statistics(
                x,
                reduced,
                axis_name=self.axis_name,
                axis_index_groups=self.axis_index_groups,
                use_fast_variance=self.use_fast_variance,
                mask=mask,
            )
            for variable, new in ((self.mean, mean), (self.var, var)):
                variable[...] = self.momentum * variable.get_value() + (1 - self.momentum) * new
        y: jax.Array = normalize(x, mean, var, scale, bias, features, self.epsilon)
        return y

    def set_view(self, use_running_average: bool | None = None) -> None:
        """Set the mode of the layer.

        Args:
            use_running_average: whether the stored statistics are used instead of those of the batch.
        """
        if use_running_average is not None:
            self.use_running_average = use_running_average
