"""Activation functions: those of ``jax.nn``, under the names that NNX code uses, and one with a parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.nn import celu as celu
from jax.nn import elu as elu
from jax.nn import gelu as gelu
from jax.nn import glu as glu
from jax.nn import hard_sigmoid as hard_sigmoid
from jax.nn import hard_silu as hard_silu
from jax.nn import hard_swish as hard_swish
from jax.nn import hard_tanh as hard_tanh
from jax.nn import identity as identity
from jax.nn import leaky_relu as leaky_relu
from jax.nn import log_sigmoid as log_sigmoid
from jax.nn import log_softmax as log_softmax
from jax.nn import logsumexp as logsumexp
from jax.nn import one_hot as one_hot
from jax.nn import relu as relu
from jax.nn import relu6 as relu6
from jax.nn import selu as selu
from jax.nn import sigmoid as sigmoid
from jax.nn import silu as silu
from jax.nn import soft_sign as soft_sign
from jax.nn import softmax as softmax
from jax.nn import softplus as softplus
from jax.nn import standardize as standardize
from jax.nn import swish as swish
from jax.numpy import tanh as tanh

from nnxkit._module import Module
from nnxkit._variable_types import Param
from nnxkit.nn._parameters import NO_METADATA, require_dtype, require_number
from nnxkit.nn.dtypes import promote_dtype


class PReLU(Module):
    """``x`` where it is not negative, else ``negative_slope * x``.

    Source: He, Zhang, Ren, Sun, "Delving Deep into Rectifiers", 2015.

    Variables: ``negative_slope`` ``Param`` of shape ``()``.

    Args:
        negative_slope_init: the slope at first.
        dtype: dtype to compute in; by default that of the input, if it is a float or complex type.
        param_dtype: dtype of the parameter.
        promote_dtype: brings input and parameter to one dtype.
        negative_slope_metadata: metadata of the parameter.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> nnx.PReLU(0.5)(jnp.array([-2.0, 3.0])).tolist()
    [-1.0, 3.0]
    """

    def __init__(
        self,
        negative_slope_init: float = 0.01,
        *,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        promote_dtype: Callable[..., Any] = promote_dtype,
        negative_slope_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        require_dtype(param_dtype)
        try:
            slope = jnp.asarray(negative_slope_init, param_dtype)
        except (TypeError, ValueError):
            require_number(self, "negative_slope_init", negative_slope_init)
            raise
        self.negative_slope: Param[jax.Array] = Param(slope, **negative_slope_metadata)
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.promote_dtype = promote_dtype

    def __call__(self, inputs: Any) -> jax.Array:
        """Apply the function to an array of any shape; the result has the same shape."""
        inputs = jnp.asarray(inputs)
        dtype = inputs.dtype if self.dtype is None and jnp.issubdtype(inputs.dtype, jnp.inexact) else self.dtype
        inputs, slope = self.promote_dtype((inputs, self.negative_slope.get_value()), dtype=dtype)
        return jnp.where(inputs >= 0, inputs, slope * inputs)
