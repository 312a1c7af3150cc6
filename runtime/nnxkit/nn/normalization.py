"""Normalization layers: each element minus a mean, divided by a deviation, then scaled and shifted by features.

They differ in which elements the statistics go over: the batch (`BatchNorm`, which keeps a running average of them),
the features of one element of the batch (`LayerNorm`; `RMSNorm` without the mean), groups of features and all places
(`GroupNorm`), or all places of one feature (`InstanceNorm`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp

from nnx_rules.rules import modules as rules
from nnxkit._module import Module
from nnxkit._variable_types import BatchStat
from nnxkit.nn import initializers
from nnxkit.nn._parameters import (
    NO_METADATA,
    as_tuple,
    param,
    require_arguments,
    require_broadcast,
    require_shape,
    value_of,
)
from nnxkit.nn._statistics import compute_statistics, normalize
from nnxkit.nn.dtypes import promote_dtype

if TYPE_CHECKING:
    from nnxkit._rngs import Rngs
    from nnxkit._variable_types import Param


class _Norm(Module):
    """What normalization layers have in common."""

    axis_name: str | None
    axis_index_groups: Any
    use_fast_variance: bool

    def _axes(self, x: jax.Array, axes: int | Sequence[int]) -> tuple[int, ...]:
        """Axes of an array as sorted non-negative numbers."""
        given = as_tuple(axes)
        found = sorted({axis % x.ndim for axis in given if -x.ndim <= axis < x.ndim})
        require_shape(self, "x", x, f"with the axes {given}", holds=len(found) == len(given))
        return tuple(found)

    def _features(self, x: jax.Array, axes: int | Sequence[int], expected: int) -> tuple[int, ...]:
        """The same of axes that have so many elements together."""
        features = self._axes(x, axes)
        given = math.prod(x.shape[axis] for axis in features)
        shape = f"(..., {expected})" if features == (x.ndim - 1,) else f"with {expected} features along {features}"
        require_shape(self, "x", x, shape, holds=given == expected)
        return features

    def _require_mask(self, x: jax.Array, mask: jax.Array | None) -> None:
        if mask is not None:
            require_broadcast(self, "mask", mask, x.shape)

    def _statistics(
        self, x: jax.Array, axes: tuple[int, ...], mask: jax.Array | None, *, use_mean: bool = True
    ) -> tuple[jax.Array | None, jax.Array]:
        self._require_mask(x, mask)
        return compute_statistics(
            x,
            axes,
            axis_name=self.axis_name,
            axis_index_groups=self.axis_index_groups,
            use_mean=use_mean,
            use_fast_variance=self.use_fast_variance,
            mask=mask,
        )


class BatchNorm(_Norm):
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
        use_fast_variance: compute the variance as ``E[x^2] - E[x]^2``, in one pass.
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
        bias_metadata: Mapping[str, Any] = NO_METADATA,
        scale_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_arguments(self, "nnx.BatchNorm", num_features=num_features)
        shape = (num_features,)
        self.mean: BatchStat[jax.Array] = BatchStat(jnp.zeros(shape, jnp.float32))
        self.var: BatchStat[jax.Array] = BatchStat(jnp.ones(shape, jnp.float32))
        self.scale: Param[jax.Array] | None = param(
            scale_init, rngs, shape, param_dtype, scale_metadata, when=use_scale
        )
        self.bias: Param[jax.Array] | None = param(bias_init, rngs, shape, param_dtype, bias_metadata, when=use_bias)
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
        scale, bias = value_of(self.scale), value_of(self.bias)
        stored = (self.mean.get_value(), self.var.get_value())
        x, *_ = self.promote_dtype((x, *stored, scale, bias), dtype=self.dtype)
        features = self._features(x, self.axis, self.num_features)
        mean: jax.Array | None
        if use_running_average:
            shape = tuple(x.shape[axis] if axis in features else 1 for axis in range(x.ndim))
            mean, var = (jnp.reshape(value, shape) for value in stored)
        else:
            mean, var = self._statistics(x, tuple(axis for axis in range(x.ndim) if axis not in features), mask)
            for variable, new in ((self.mean, mean), (self.var, var)):
                old = variable.get_value()
                new = jax.lax.stop_gradient(jnp.reshape(jnp.asarray(new), old.shape))  # statistics are no output
                variable[...] = self.momentum * old + (1 - self.momentum) * new
        y: jax.Array = normalize(x, mean, var, scale, bias, features, self.epsilon)
        return y

    def set_view(self, use_running_average: bool | None = None) -> None:
        """Set the mode of the layer.

        Args:
            use_running_average: whether the stored statistics are used instead of those of the batch.
        """
        if use_running_average is not None:
            self.use_running_average = use_running_average


class LayerNorm(_Norm):
    """Normalize each element of the batch over its features, then scale and shift each feature.

    Source: Ba, Kiros, Hinton, "Layer Normalization", 2016.

    Variables: ``scale`` and ``bias`` ``Param`` of shape ``(num_features,)``, or ``None``.

    Args:
        num_features: number of elements along the feature axes.
        epsilon: added to the variance.
        dtype: dtype of the result; by default what input and parameters promote to.
        param_dtype: dtype of the parameters.
        use_bias: whether there is a shift.
        use_scale: whether there is a scale.
        bias_init: initializer of the shift.
        scale_init: initializer of the scale.
        reduction_axes: the axes that the statistics go over.
        feature_axes: the axes that scale and shift go along.
        axis_name: name of a mapped axis over which the statistics go, too.
        axis_index_groups: groups of devices along that axis.
        use_fast_variance: compute the variance as ``E[x^2] - E[x]^2``, in one pass.
        promote_dtype: brings input and parameters to one dtype.
        rngs: the stream ``params`` gives the keys.
        bias_metadata: metadata of the shift.
        scale_metadata: metadata of the scale.
    """

    def __init__(
        self,
        num_features: int,
        *,
        epsilon: float = 1e-6,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        use_bias: bool = True,
        use_scale: bool = True,
        bias_init: Callable[..., Any] = initializers.zeros,
        scale_init: Callable[..., Any] = initializers.ones,
        reduction_axes: int | Sequence[int] = -1,
        feature_axes: int | Sequence[int] = -1,
        axis_name: str | None = None,
        axis_index_groups: Any = None,
        use_fast_variance: bool = True,
        promote_dtype: Callable[..., Any] = promote_dtype,
        rngs: Rngs,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
        scale_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_arguments(self, "nnx.LayerNorm", num_features=num_features)
        shape = (num_features,)
        self.scale: Param[jax.Array] | None = param(
            scale_init, rngs, shape, param_dtype, scale_metadata, when=use_scale
        )
        self.bias: Param[jax.Array] | None = param(bias_init, rngs, shape, param_dtype, bias_metadata, when=use_bias)
        self.num_features = num_features
        self.epsilon = epsilon
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.use_bias = use_bias
        self.use_scale = use_scale
        self.reduction_axes = reduction_axes
        self.feature_axes = feature_axes
        self.axis_name = axis_name
        self.axis_index_groups = axis_index_groups
        self.use_fast_variance = use_fast_variance
        self.promote_dtype = promote_dtype

    def __call__(self, x: Any, *, mask: jax.Array | None = None) -> jax.Array:
        """Normalize an array; the result has the same shape.

        Args:
            x: the array.
            mask: which elements count for the statistics; broadcast against ``x``.

        Raises:
            LayerShapeError: the feature axes have another size.
        """
        scale, bias = value_of(self.scale), value_of(self.bias)
        x, *_ = self.promote_dtype((x, scale, bias), dtype=self.dtype)
        features = self._features(x, self.feature_axes, self.num_features)
        mean, var = self._statistics(x, self._axes(x, self.reduction_axes), mask)
        y: jax.Array = normalize(x, mean, var, scale, bias, features, self.epsilon)
        return y


class RMSNorm(_Norm):
    """Divide each element of the batch by the root of its mean square, then scale each feature.

    Source: Zhang, Sennrich, "Root Mean Square Layer Normalization", 2019.

    Variables: ``scale`` ``Param`` of shape ``(num_features,)``, or ``None``.

    Args:
        num_features: number of elements along the feature axes.
        epsilon: added to the mean square.
        dtype: dtype of the result; by default what input and parameters promote to.
        param_dtype: dtype of the parameters.
        use_scale: whether there is a scale.
        scale_init: initializer of the scale.
        reduction_axes: the axes that the mean goes over.
        feature_axes: the axes that the scale goes along.
        axis_name: name of a mapped axis over which the mean goes, too.
        axis_index_groups: groups of devices along that axis.
        use_fast_variance: of no effect: there is no mean to take off.
        promote_dtype: brings input and parameters to one dtype.
        rngs: the stream ``params`` gives the keys.
        scale_metadata: metadata of the scale.
    """

    def __init__(
        self,
        num_features: int,
        *,
        epsilon: float = 1e-6,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        use_scale: bool = True,
        scale_init: Callable[..., Any] = initializers.ones,
        reduction_axes: int | Sequence[int] = -1,
        feature_axes: int | Sequence[int] = -1,
        axis_name: str | None = None,
        axis_index_groups: Any = None,
        use_fast_variance: bool = True,
        promote_dtype: Callable[..., Any] = promote_dtype,
        rngs: Rngs,
        scale_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_arguments(self, "nnx.RMSNorm", num_features=num_features)
        self.scale: Param[jax.Array] | None = param(
            scale_init, rngs, (num_features,), param_dtype, scale_metadata, when=use_scale
        )
        self.num_features = num_features
        self.epsilon = epsilon
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.use_scale = use_scale
        self.reduction_axes = reduction_axes
        self.feature_axes = feature_axes
        self.axis_name = axis_name
        self.axis_index_groups = axis_index_groups
        self.use_fast_variance = use_fast_variance
        self.promote_dtype = promote_dtype

    def __call__(self, x: Any, mask: jax.Array | None = None) -> jax.Array:
        """Normalize an array; the result has the same shape.

        Args:
            x: the array.
            mask: which elements count for the mean; broadcast against ``x``.

        Raises:
            LayerShapeError: the feature axes have another size.
        """
        scale = value_of(self.scale)
        x, *_ = self.promote_dtype((x, scale), dtype=self.dtype)
        features = self._features(x, self.feature_axes, self.num_features)
        _, mean_square = self._statistics(x, self._axes(x, self.reduction_axes), mask, use_mean=False)
        y: jax.Array = normalize(x, None, mean_square, scale, None, features, self.epsilon)
        return y


class GroupNorm(_Norm):
    """Normalize groups of neighbouring features over all places, then scale and shift each feature.

    Source: Wu, He, "Group Normalization", 2018.

    Variables: ``scale`` and ``bias`` ``Param`` of shape ``(num_features,)``, or ``None``.

    Args:
        num_features: size of the last axis.
        num_groups: how many groups; ``None`` if ``group_size`` is given.
        group_size: how many features a group has; ``None`` if ``num_groups`` is given.
        epsilon: added to the variance.
        dtype: dtype of the result; by default what input and parameters promote to.
        param_dtype: dtype of the parameters.
        use_bias: whether there is a shift.
        use_scale: whether there is a scale.
        bias_init: initializer of the shift.
        scale_init: initializer of the scale.
        reduction_axes: the axes that the statistics go over, the last one by groups; by default all but the first.
        axis_name: name of a mapped axis over which the statistics go, too.
        axis_index_groups: groups of devices along that axis.
        use_fast_variance: compute the variance as ``E[x^2] - E[x]^2``, in one pass.
        promote_dtype: brings input and parameters to one dtype.
        rngs: the stream ``params`` gives the keys.
        bias_metadata: metadata of the shift.
        scale_metadata: metadata of the scale.

    Raises:
        LayerArgumentError: not exactly one of ``num_groups`` and ``group_size`` is given, or the features cannot be
            divided so.
    """

    def __init__(
        self,
        num_features: int,
        num_groups: int | None = 32,
        group_size: int | None = None,
        *,
        epsilon: float = 1e-6,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        use_bias: bool = True,
        use_scale: bool = True,
        bias_init: Callable[..., Any] = initializers.zeros,
        scale_init: Callable[..., Any] = initializers.ones,
        reduction_axes: int | Sequence[int] | None = None,
        axis_name: str | None = None,
        axis_index_groups: Any = None,
        use_fast_variance: bool = True,
        promote_dtype: Callable[..., Any] = promote_dtype,
        rngs: Rngs,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
        scale_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        sizes = {"num_features": num_features, "num_groups": num_groups, "group_size": group_size}
        require_arguments(self, "nnx.GroupNorm", **sizes)
        groups: int = num_groups or num_features // cast("int", group_size)
        shape = (num_features,)
        self.feature_axis = -1
        self.num_groups = groups
        self.group_size: int = num_features // groups
        self.scale: Param[jax.Array] | None = param(
            scale_init, rngs, shape, param_dtype, scale_metadata, when=use_scale
        )
        self.bias: Param[jax.Array] | None = param(bias_init, rngs, shape, param_dtype, bias_metadata, when=use_bias)
        self.epsilon = epsilon
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.use_bias = use_bias
        self.use_scale = use_scale
        self.reduction_axes = reduction_axes
        self.axis_name = axis_name
        self.axis_index_groups = axis_index_groups
        self.use_fast_variance = use_fast_variance
        self.promote_dtype = promote_dtype

    def __call__(self, x: Any, *, mask: jax.Array | None = None) -> jax.Array:
        """Normalize an array of shape ``(batch, ..., num_features)``; the result has the same shape.

        Args:
            x: the array.
            mask: which elements count for the statistics; broadcast against ``x``.

        Raises:
            LayerShapeError: the last axis has another size.
        """
        scale, bias = value_of(self.scale), value_of(self.bias)
        x, *_ = self.promote_dtype((x, scale, bias), dtype=self.dtype)
        groups = (self.num_groups, self.group_size)
        (last,) = self._features(x, -1, math.prod(groups))
        given = range(1, x.ndim) if self.reduction_axes is None else self._axes(x, self.reduction_axes)
        self._require_mask(x, mask)
        mean, var = self._statistics(
            jnp.reshape(x, (*x.shape[:-1], *groups)),
            (*[axis for axis in given if axis != last], last + 1),
            None if mask is None else jnp.reshape(jnp.broadcast_to(mask, x.shape), (*x.shape[:-1], *groups)),
        )
        mean, var = (_of_features(value, self.group_size) for value in (mean, var))
        y: jax.Array = normalize(x, mean, var, scale, bias, (last,), self.epsilon)
        return y


def _of_features(statistics: Any, group_size: int) -> jax.Array:
    """Statistics of groups for each feature."""
    return jnp.repeat(jnp.squeeze(statistics, -1), group_size, axis=-1)


class InstanceNorm(_Norm):
    """Normalize each feature of each element of the batch over all places, then scale and shift each feature.

    Source: Ulyanov, Vedaldi, Lempitsky, "Instance Normalization", 2016.

    Variables: ``scale`` and ``bias`` ``Param`` of shape ``(num_features,)``, or ``None``.

    Args:
        num_features: number of elements along the feature axes.
        epsilon: added to the variance.
        dtype: dtype of the result; by default what input and parameters promote to.
        param_dtype: dtype of the parameters.
        use_bias: whether there is a shift.
        use_scale: whether there is a scale.
        bias_init: initializer of the shift.
        scale_init: initializer of the scale.
        feature_axes: the axes that scale and shift go along; the statistics go over all others but the first.
        axis_name: name of a mapped axis over which the statistics go, too.
        axis_index_groups: groups of devices along that axis.
        use_fast_variance: compute the variance as ``E[x^2] - E[x]^2``, in one pass.
        promote_dtype: brings input and parameters to one dtype.
        rngs: the stream ``params`` gives the keys.
        bias_metadata: metadata of the shift.
        scale_metadata: metadata of the scale.
    """

    def __init__(
        self,
        num_features: int,
        *,
        epsilon: float = 1e-6,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        use_bias: bool = True,
        use_scale: bool = True,
        bias_init: Callable[..., Any] = initializers.zeros,
        scale_init: Callable[..., Any] = initializers.ones,
        feature_axes: int | Sequence[int] = -1,
        axis_name: str | None = None,
        axis_index_groups: Any = None,
        use_fast_variance: bool = True,
        promote_dtype: Callable[..., Any] = promote_dtype,
        rngs: Rngs,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
        scale_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_arguments(self, "nnx.InstanceNorm", num_features=num_features)
        shape = (num_features,)
        self.scale: Param[jax.Array] | None = param(
            scale_init, rngs, shape, param_dtype, scale_metadata, when=use_scale
        )
        self.bias: Param[jax.Array] | None = param(bias_init, rngs, shape, param_dtype, bias_metadata, when=use_bias)
        self.num_features = num_features
        self.epsilon = epsilon
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.use_bias = use_bias
        self.use_scale = use_scale
        self.feature_axes = feature_axes
        self.axis_name = axis_name
        self.axis_index_groups = axis_index_groups
        self.use_fast_variance = use_fast_variance
        self.promote_dtype = promote_dtype

    def __call__(self, x: Any, *, mask: jax.Array | None = None) -> jax.Array:
        """Normalize an array whose first axis is the batch; the result has the same shape.

        Args:
            x: the array.
            mask: which elements count for the statistics; broadcast against ``x``.

        Raises:
            LayerShapeError: the feature axes have another size.
            LayerArgumentError: the first axis is a feature axis.
        """
        scale, bias = value_of(self.scale), value_of(self.bias)
        x, *_ = self.promote_dtype((x, scale, bias), dtype=self.dtype)
        features = self._axes(x, self.feature_axes)
        if 0 in features:
            raise rules.LAYER_ARGUMENTS.error(
                cls=type(self).__name__,
                problem="the first axis is the batch, and `feature_axes` names it",
                mend="add a batch axis to the input, or name other axes",
            )
        self._features(x, features, self.num_features)
        mean, var = self._statistics(x, tuple(axis for axis in range(1, x.ndim) if axis not in features), mask)
        y: jax.Array = normalize(x, mean, var, scale, bias, features, self.epsilon)
        return y
