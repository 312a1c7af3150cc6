"""Layers around a layer, that normalize its parameters before each call.

Invariants

- The parameters of the wrapped layer are changed in place; what they were before the call is not kept.
- What belongs to a parameter is kept by its path in the wrapped layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from nnx_rules.filters import PathContains
from nnx_rules.rules import modules as rules
from nnxkit._annotations import data
from nnxkit._graph import variables
from nnxkit._module import Module
from nnxkit._state import to_flat_state
from nnxkit._variable_types import BatchStat, Param
from nnxkit.nn import initializers
from nnxkit.nn.dtypes import canonicalize_dtype, promote_dtype

if TYPE_CHECKING:
    from nnx_rules.filters import Filter
    from nnxkit._rngs import Rngs
    from nnxkit._state._order import Path

_init_vector = initializers.normal()


def _unit(vector: jax.Array, epsilon: float) -> jax.Array:
    """A vector of length one."""
    return vector * jax.lax.rsqrt(jnp.sum(jnp.square(vector), axis=None, keepdims=True) + epsilon)


class SpectralNorm(Module):
    """Divide the kernels of a layer by an estimate of their largest singular value.

    Source: Miyato, Kataoka, Koyama, Yoshida, "Spectral Normalization for Generative Adversarial Networks", 2018.

    Variables: those of the layer, and in ``batch_stats``, for each ``Param`` of two and more axes by its path,
        ``(*path, "u")`` ``BatchStat`` of shape ``(1, last axis)``, the estimate of the singular vector, and ``(*path,
        "sigma")`` ``BatchStat``, the last estimate of the singular value.

    Args:
        layer_instance: the layer; its last axis counts as output, all others together as input.
        n_steps: steps of the power iteration in each call.
        epsilon: added to squared lengths before the root.
        dtype: dtype of the normalized parameters; by default theirs.
        param_dtype: dtype of the estimates.
        error_on_non_matrix: whether parameters of three and more axes are an error.
        update_stats: whether calls keep their estimates.
        rngs: the stream ``params`` gives the keys of the first estimates.
    """

    def __init__(
        self,
        layer_instance: Module,
        *,
        n_steps: int = 1,
        epsilon: float = 1e-12,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        error_on_non_matrix: bool = False,
        update_stats: bool = True,
        rngs: Rngs,
    ) -> None:
        self.layer_instance = layer_instance
        self.n_steps = n_steps
        self.epsilon = epsilon
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.error_on_non_matrix = error_on_non_matrix
        self.use_running_average: bool = not update_stats
        stats: dict[tuple[Any, ...], BatchStat[Any]] = {}
        for path, kernel in self._kernels():
            vector = _init_vector(rngs.params(), (1, kernel.shape[-1]), param_dtype)
            stats[*path, "u"] = BatchStat(vector)
            stats[*path, "sigma"] = BatchStat(jnp.ones((), param_dtype))
        self.batch_stats: dict[tuple[Any, ...], BatchStat[jax.Array]] = data(stats)

    def __call__(self, x: Any, update_stats: bool | None = None) -> Any:
        """Normalize the kernels and call the layer.

        Args:
            x: what the layer gets.
            update_stats: whether the estimates are kept; by default what the layer was made for, and its mode.

        Raises:
            LayerArgumentError: a parameter has three or more axes, and that is an error.
        """
        if update_stats is None:
            update_stats = not self.use_running_average
        for path, kernel in self._kernels():
            self._normalize(path, kernel, update_stats)
        return self.layer_instance(x)  # type: ignore[operator]

    def set_view(self, use_running_average: bool | None = None) -> None:
        """Set the mode of the layer.

        Args:
            use_running_average: whether calls leave the estimates as they are.
        """
        if use_running_average is not None:
            self.use_running_average = use_running_average

    def _kernels(self) -> list[tuple[Path, Param[Any]]]:
        flat = to_flat_state(variables(self.layer_instance, Param))
        return [(path, kernel) for path, kernel in flat if kernel.ndim > 1]

    def _normalize(self, path: Path, kernel: Param[Any], update_stats: bool) -> None:
        value = jnp.asarray(kernel.get_value())
        if value.ndim > 2 and self.error_on_non_matrix:
            raise rules.LAYER_ARGUMENTS.error(
                cls=type(self).__name__,
                problem=f"a parameter has {value.ndim} axes, and `error_on_non_matrix` is set",
                mend="wrap layers with matrices only, or do not set it",
            )
        matrix = jnp.reshape(value, (-1, value.shape[-1]))
        kept_u, kept_sigma = self.batch_stats[*path, "u"], self.batch_stats[*path, "sigma"]
        u = v = kept_u.get_value()
        for _ in range(self.n_steps):
            v = _unit(jnp.matmul(u, matrix.T), self.epsilon)
            u = _unit(jnp.matmul(v, matrix), self.epsilon)
        u, v = jax.lax.stop_gradient(u), jax.lax.stop_gradient(v)
        sigma = jnp.matmul(jnp.matmul(v, matrix), u.T)[0, 0]
        normalized = value / jnp.where(sigma != 0, sigma, 1)
        if update_stats:
            kept_u.set_value(u)
            kept_sigma.set_value(sigma)
        dtype = canonicalize_dtype(value, u, v, sigma, dtype=self.dtype)
        kernel.set_value(jnp.asarray(normalized, dtype))


class WeightNorm(Module):
    """Give the kernels of a layer length one for each feature, times a scale.

    Source: Salimans, Kingma, "Weight Normalization", 2016.

    Variables: those of the layer, and ``scales``: for each normalized one, by its path, a ``Param`` of the shape of the
        feature axes.

    Args:
        layer_instance: the layer.
        feature_axes: the axes that have scales; the length is computed over all others. ``None`` for one scale.
        use_scale: whether there are scales.
        scale_init: initializer of the scales.
        epsilon: added to squared lengths before the root.
        dtype: dtype of the normalized parameters; by default what they and the scales promote to.
        param_dtype: dtype of the scales.
        variable_filter: which Variables of the layer are normalized.
        promote_dtype: brings parameters and scales to one dtype.
        rngs: the stream ``params`` gives the keys.
    """

    def __init__(
        self,
        layer_instance: Module,
        *,
        feature_axes: int | tuple[int, ...] | None = -1,
        use_scale: bool = True,
        scale_init: Callable[..., Any] = initializers.ones,
        epsilon: float = 1e-12,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        variable_filter: Filter = PathContains("kernel"),  # noqa: B008 - immutable
        promote_dtype: Callable[..., Any] = promote_dtype,
        rngs: Rngs,
    ) -> None:
        self.layer_instance = layer_instance
        self.feature_axes = feature_axes
        self.use_scale = use_scale
        self.scale_init = scale_init
        self.epsilon = epsilon
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.variable_filter = variable_filter
        self.promote_dtype = promote_dtype
        scales = {}
        if use_scale:
            for path, variable in self._normalized():
                shape = tuple(variable.shape[axis] for axis in self._features(variable.ndim))
                scales[path] = Param(scale_init(rngs.params(), shape, param_dtype))
        self.scales: dict[tuple[Any, ...], Param[jax.Array]] = data(scales)

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Normalize the parameters and call the layer with all arguments."""
        for path, variable in self._normalized():
            value = jnp.asarray(variable.get_value())
            features = self._features(value.ndim)
            others = tuple(axis for axis in range(value.ndim) if axis not in features)
            squares = jnp.sum(jnp.square(value), axis=others, keepdims=True)
            value = value * jax.lax.rsqrt(squares + self.epsilon)
            if self.use_scale:
                value, scale = self.promote_dtype((value, self.scales[path].get_value()))
                value = value * jnp.reshape(scale, [n if axis in features else 1 for axis, n in enumerate(value.shape)])
            variable.set_value(jnp.asarray(value, self.dtype))
        return self.layer_instance(x, *args, **kwargs)  # type: ignore[operator]

    def _normalized(self) -> list[tuple[Path, Any]]:
        return list(to_flat_state(variables(self.layer_instance, self.variable_filter)))

    def _features(self, ndim: int) -> tuple[int, ...]:
        axes = () if self.feature_axes is None else self.feature_axes
        given = (axes,) if isinstance(axes, int) else axes
        if not all(-ndim <= axis < ndim for axis in given):
            raise rules.LAYER_ARGUMENTS.error(
                cls=type(self).__name__,
                problem=f"feature_axes={self.feature_axes}, and a parameter has {ndim} axes",
                mend="name axes that all of `variable_filter` have",
            )
        return tuple(axis % ndim for axis in given)
