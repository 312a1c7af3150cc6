"""Linear layers."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from nnxkit._annotations import data
from nnxkit._module import Module
from nnxkit._variable_types import Param
from nnxkit.nn import initializers
from nnxkit.nn.dtypes import promote_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nnxkit._rngs import Rngs

_NO_METADATA: Mapping[str, Any] = MappingProxyType({})
_default_kernel_init = initializers.lecun_normal()


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
        kernel_init: Callable[..., Any] = _default_kernel_init,
        bias_init: Callable[..., Any] = initializers.zeros,
        dot_general: Callable[..., Any] = jax.lax.dot_general,
        promote_dtype: Callable[..., Any] = promote_dtype,
        preferred_element_type: Any = None,
        rngs: Rngs,
        kernel_metadata: Mapping[str, Any] = _NO_METADATA,
        bias_metadata: Mapping[str, Any] = _NO_METADATA,
    ) -> None:
        self.kernel = Param(kernel_init(rngs.params(), (in_features, out_features), param_dtype), **kernel_metadata)
        self.bias: Param[Any] | None = data(None)
        if use_bias:
            self.bias = Param(bias_init(rngs.params(), (out_features,), param_dtype), **bias_metadata)
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

        Raises:
            TypeError: the last axis of the input has another size.
        """
        bias = None if self.bias is None else self.bias.get_value()
        inputs, kernel, bias = self.promote_dtype((inputs, self.kernel.get_value(), bias), dtype=self.dtype)
        options: dict[str, Any] = {} if out_sharding is None else {"out_sharding": out_sharding}
        if self.preferred_element_type is not None:
            options["preferred_element_type"] = self.preferred_element_type
        contract = (((inputs.ndim - 1,), (0,)), ((), ()))
        y: jax.Array = self.dot_general(inputs, kernel, contract, precision=self.precision, **options)
        return y if bias is None else y + jnp.reshape(bias, (1,) * (y.ndim - 1) + (-1,))
