"""Low-rank adaptation: a small product beside a large layer that stays as it is.

Source: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from nnx_rules.rules import modules as rules
from nnxkit._annotations import data
from nnxkit._module import Module
from nnxkit._rngs import Rngs
from nnxkit._variable import Variable
from nnxkit._variable_types import LoRAParam
from nnxkit.nn import initializers
from nnxkit.nn._parameters import NO_METADATA, broadcasts, initialized, require_arguments, require_shape, require_size
from nnxkit.nn.dtypes import promote_dtype
from nnxkit.nn.linear import Linear

_default_a_initializer = initializers.he_uniform()


class LoRA(Module):
    """``x @ lora_a @ lora_b``, added to what a base module returns, if there is one.

    Variables: ``lora_a`` of shape ``(in_features, lora_rank)`` and ``lora_b`` of shape ``(lora_rank, out_features)``,
        of type ``lora_param_type``.

    Args:
        in_features: size of the last axis of the input.
        lora_rank: rank of the product.
        out_features: size of the last axis of the output.
        base_module: what the product is added to.
        dtype: dtype to compute in; by default what input and parameters promote to.
        param_dtype: dtype of the parameters.
        a_initializer: initializer of ``lora_a``.
        b_initializer: initializer of ``lora_b``; with zeros, the base module is not changed at first.
        lora_param_type: type of the parameters.
        promote_dtype: brings input and parameters to one dtype.
        rngs: the stream ``params`` gives the keys.
        a_metadata: metadata of ``lora_a``.
        b_metadata: metadata of ``lora_b``.
    """

    def __init__(
        self,
        in_features: int,
        lora_rank: int,
        out_features: int,
        *,
        base_module: Module | Callable[..., Any] | None = None,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        a_initializer: Callable[..., Any] = _default_a_initializer,
        b_initializer: Callable[..., Any] = initializers.zeros,
        lora_param_type: type[Variable[Any]] = LoRAParam,
        promote_dtype: Callable[..., Any] = promote_dtype,
        rngs: Rngs,
        a_metadata: Mapping[str, Any] = NO_METADATA,
        b_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        sizes = {"in_features": in_features, "lora_rank": lora_rank, "out_features": out_features}
        require_arguments(self, "nnx.LoRA", **sizes)
        self.in_features = in_features
        self.out_features = out_features
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.lora_param_type = lora_param_type
        # A slot for a module, also if a plain function or nothing is in it now.
        self.base_module: Any = data(base_module) if base_module is None else base_module
        self.promote_dtype = promote_dtype
        self.lora_a: Variable[jax.Array] = lora_param_type(
            initialized(a_initializer, rngs, (in_features, lora_rank), param_dtype), **a_metadata
        )
        self.lora_b: Variable[jax.Array] = lora_param_type(
            initialized(b_initializer, rngs, (lora_rank, out_features), param_dtype), **b_metadata
        )

    def __call__(self, x: Any, **kwargs: Any) -> jax.Array:
        """Apply the layer to an array of shape ``(..., in_features)``; the result has ``out_features`` at the end.

        Args:
            x: the array.
            **kwargs: further arguments of the base module.

        Raises:
            LayerShapeError: the last axis has another size, or what the base module returns has.
            LayerArgumentError: the base module cannot be called.
        """
        given, a, b = self.promote_dtype((x, self.lora_a.get_value(), self.lora_b.get_value()), dtype=self.dtype)
        require_size(self, "x", given, self.in_features)
        y: jax.Array = given @ a @ b
        base: Any = self.base_module
        if base is None:
            return y
        if not callable(base):
            raise rules.LAYER_ARGUMENTS.error(
                cls=type(self).__name__,
                problem=f"`base_module` is a {type(base).__name__}, which cannot be called",
                mend="pass a module or a function",
            )
        added: Any = base(x, **kwargs)
        fits = broadcasts(jnp.shape(added)[-1:], y.shape[-1:])
        require_shape(self, "base_module(x)", added, f"(..., {y.shape[-1]})", holds=fits)
        total: jax.Array = y + added
        return total


class LoRALinear(Linear):
    """A linear layer with a low-rank product beside it.

    Variables: those of :class:`Linear`, and ``lora.lora_a``, ``lora.lora_b``, see :class:`LoRA`.

    Args:
        in_features: size of the last axis of the input.
        out_features: size of the last axis of the output.
        lora_rank: rank of the product.
        lora_dtype: dtype to compute the product in.
        lora_param_dtype: dtype of its parameters.
        a_initializer: initializer of ``lora_a``.
        b_initializer: initializer of ``lora_b``.
        lora_param_type: type of the parameters of the product.
        lora_promote_dtype: brings input and parameters of the product to one dtype.
        rngs: the stream ``params`` gives the keys.
        a_metadata: metadata of ``lora_a``.
        b_metadata: metadata of ``lora_b``.
        **kwargs: further arguments of :class:`Linear`.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> layer = nnx.LoRALinear(3, 4, lora_rank=2, rngs=nnx.Rngs(0))
    >>> layer(jnp.ones((5, 3))).shape, len(nnx.to_flat_state(nnx.state(layer, nnx.LoRAParam)))
    ((5, 4), 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        lora_rank: int,
        lora_dtype: Any = None,
        lora_param_dtype: Any = jnp.float32,
        a_initializer: Callable[..., Any] = _default_a_initializer,
        b_initializer: Callable[..., Any] = initializers.zeros,
        lora_param_type: type[Variable[Any]] = LoRAParam,
        lora_promote_dtype: Callable[..., Any] = promote_dtype,
        rngs: Rngs,
        a_metadata: Mapping[str, Any] = NO_METADATA,
        b_metadata: Mapping[str, Any] = NO_METADATA,
        **kwargs: Any,
    ) -> None:
        super().__init__(in_features, out_features, rngs=rngs, **kwargs)
        self.lora: LoRA = LoRA(
            in_features,
            lora_rank,
            out_features,
            dtype=lora_dtype,
            param_dtype=lora_param_dtype,
            a_initializer=a_initializer,
            b_initializer=b_initializer,
            lora_param_type=lora_param_type,
            promote_dtype=lora_promote_dtype,
            rngs=rngs,
            a_metadata=a_metadata,
            b_metadata=b_metadata,
        )

    def __call__(self, x: Any, out_sharding: Any = None) -> jax.Array:
        """Apply both and add; see :meth:`Linear.__call__`."""
        return super().__call__(x, out_sharding) + self.lora(x)
