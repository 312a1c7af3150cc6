"""Attention: weighted means of values, by how well queries and keys go together.

Source: Vaswani et al., "Attention Is All You Need", 2017; with fewer heads of keys and values than of queries: Ainslie
et al., "GQA", 2023.

Invariants

- ``jax.nn.dot_product_attention`` computes it wherever it can: without dropout, and where nobody asks for the weights
  or a precision. It is as exact, and uses the fused kernels of the device where there are some.
- Weights are normalized at least in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from nnx_rules.rules import modules as rules
from nnxkit._annotations import data
from nnxkit._module import Module
from nnxkit._rngs import Rngs, RngStream
from nnxkit._variable_types import Cache, Intermediate
from nnxkit.nn import initializers
from nnxkit.nn._parameters import (
    NO_METADATA,
    as_tuple,
    broadcasts,
    callers,
    name_of,
    require_arguments,
    require_broadcast,
    require_shape,
    require_size,
)
from nnxkit.nn._streams import next_key, stream_of
from nnxkit.nn.dtypes import promote_dtype
from nnxkit.nn.linear import LinearGeneral
from nnxkit.nn.masks import combine_masks
from nnxkit.nn.normalization import LayerNorm

_default_kernel_init = initializers.lecun_normal()


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    broadcast_dropout: bool = True,
    dropout_rng: jax.Array | None = None,
    dropout_rate: float = 0.0,
    deterministic: bool = False,
    dtype: Any = None,
    precision: Any = None,
    module: Module | None = None,
    promote_dtype: Callable[..., Any] = promote_dtype,
    is_causal: bool = False,
) -> jax.Array:
    """Attention of queries over keys and values.

    Args:
        query: of shape ``(..., queries, heads, features)``.
        key: of shape ``(..., keys, key heads, features)``, where the key heads divide the heads.
        value: of shape ``(..., keys, key heads, value features)``.
        bias: added to the logits; broadcast to ``(..., heads, queries, keys)``.
        mask: where it is false, a key is not seen; broadcast likewise.
        broadcast_dropout: whether all elements of the batch and all heads drop the same weights.
        dropout_rng: key for the dropout.
        dropout_rate: probability of dropping a weight.
        deterministic: whether there is no dropout.
        dtype: dtype to compute in; by default what the arguments promote to.
        precision: precision of the products.
        module: sows the weights as ``Intermediate`` ``attention_weights``.
        promote_dtype: brings the arguments to one dtype.
        is_causal: whether a query sees only keys at its own place and before.

    Returns:
        An array of shape ``(..., queries, heads, value features)``.

    Raises:
        LayerShapeError: a bias or mask does not broadcast to the logits.
        LayerArgumentError: the arguments have shapes that do not go together; or weights are to be dropped, and
            nothing would be left of them.
    """
    query, key, value = promote_dtype((query, key, value), dtype=dtype)
    _require_attention(query, key, value)
    for name, array in (("bias", bias), ("mask", mask)):
        _require_logits(name, array, query, key)
    if not deterministic and not 0.0 <= dropout_rate < 1.0:
        raise rules.LAYER_ARGUMENTS.error(
            cls=_name(),
            problem=f"dropout_rate must be in the range [0, 1), and is {dropout_rate}",
            mend="it is the probability of dropping a weight",
        )
    drops = dropout_rate > 0.0 and not deterministic
    if not drops and module is None and precision is None and query.shape[-1] == value.shape[-1]:
        return _fused(query, key, value, bias, mask, is_causal)
    group = query.shape[-2] // key.shape[-2]
    key, value = (jnp.repeat(item, group, axis=-2) if group > 1 else item for item in (key, value))
    logits = jnp.einsum("...qhd,...khd->...hqk", query / math.sqrt(query.shape[-1]), key, precision=precision)
    if bias is not None:
        logits += bias
    lowest = jnp.finfo(logits.dtype).min  # type: ignore[no-untyped-call]
    if mask is not None:
        logits = jnp.where(mask, logits, lowest)
    if is_causal:
        logits = jnp.where(jnp.tri(logits.shape[-2], logits.shape[-1], dtype=bool), logits, lowest)
    weights = jax.nn.softmax(logits.astype(jnp.promote_types(logits.dtype, jnp.float32))).astype(logits.dtype)
    if module is not None:
        module.sow(Intermediate, "attention_weights", weights)
    if drops:
        if dropout_rng is None:
            raise rules.LAYER_WITHOUT_RNGS.error(cls=_name())
        keep = 1.0 - dropout_rate
        shape = (1,) * (query.ndim - 2) + weights.shape[-2:] if broadcast_dropout else weights.shape
        kept = jax.random.bernoulli(dropout_rng, keep, shape)
        weights = weights * (kept.astype(weights.dtype) / jnp.asarray(keep, weights.dtype))
    return jnp.einsum("...hqk,...khd->...qhd", weights, value, precision=precision)


def _fused(query: Any, key: Any, value: Any, bias: Any, mask: Any, is_causal: bool) -> jax.Array:
    """The function of JAX, which takes one batch axis."""
    batch = query.shape[:-3]

    def flat(x: Any, own: int) -> Any:
        return jnp.reshape(x, (-1, *x.shape[len(x.shape) - own :]))

    def flat_mask(x: Any) -> Any:
        if x is None:
            return None
        x = jnp.broadcast_to(x, (*batch, *x.shape[max(x.ndim - 3, 0) :])) if x.ndim > 3 else x
        return flat(x, 3) if x.ndim > 3 else jnp.reshape(x, (1,) * (4 - x.ndim) + x.shape)

    y: jax.Array = jax.nn.dot_product_attention(
        flat(query, 3),
        flat(key, 3),
        flat(value, 3),
        flat_mask(bias),
        flat_mask(None if mask is None else jnp.asarray(mask, bool)),
        is_causal=is_causal,
    )
    return jnp.reshape(y, query.shape)


def _require_attention(query: Any, key: Any, value: Any) -> None:
    shapes = f"query {query.shape}, key {key.shape}, value {value.shape}"
    problems = (
        (not query.ndim == key.ndim == value.ndim or query.ndim < 3, "query, key and value must have the same rank"),
        (not query.shape[:-3] == key.shape[:-3] == value.shape[:-3], "their batch dims must match"),
        (key.shape[-3:-1] != value.shape[-3:-1], "heads of key and value, and their lengths must match"),
        (query.shape[-1] != key.shape[-1], "query and key depths must match"),
        (
            key.ndim > 1 and (not key.shape[-2] or query.shape[-2] % key.shape[-2]),
            "heads of the query must be a multiple of those of the key",
        ),
    )
    for wrong, what in problems:
        if wrong:
            raise rules.LAYER_ARGUMENTS.error(
                cls=_name(),
                problem=f"{what}: {shapes}",
                mend="bring them to the shape (..., places, heads, features)",
            )


def _require_logits(name: str, array: Any, query: Any, key: Any) -> None:
    """Raise unless an array broadcasts to the logits."""
    logits = (*query.shape[:-3], query.shape[-2], query.shape[-3], key.shape[-3])
    if array is not None and not broadcasts(jnp.shape(array), logits):
        raise rules.LAYER_INPUT_SHAPE.error(
            layer=_name(), argument=name, expected=logits, given=tuple(jnp.shape(array))
        )


def _name() -> str:
    """The function, and the module that calls it, if there is one."""
    caller = next(callers(), None)
    return "dot_product_attention" if caller is None else f"{name_of(caller)} > dot_product_attention"


class MultiHeadAttention(Module):
    """Attention of several heads, between linear layers.

    Variables: ``query``, ``key``, ``value`` and ``out``, each a :class:`LinearGeneral`: kernels ``(in_features, heads,
        head size)`` and ``(heads, head size, out_features)``; ``query_ln`` and ``key_ln`` with ``normalize_qk``;
        ``rngs`` with dropout; ``cached_key``, ``cached_value`` of shape ``(..., length, key heads, head size)`` and
        ``cache_index``, ``Cache``, after :meth:`init_cache`.

    Args:
        num_heads: number of heads.
        in_features: size of the last axis of the input.
        qkv_features: features of all heads together; ``in_features`` by default.
        out_features: size of the last axis of the output; ``in_features`` by default.
        num_kv_heads: number of heads of keys and values, which divides ``num_heads``; as many by default.
        in_kv_features: size of the last axis of what keys and values are made from; ``in_features`` by default.
        dtype: dtype to compute in; by default what inputs and parameters promote to.
        param_dtype: dtype of the parameters.
        broadcast_dropout: whether all elements of the batch and all heads drop the same weights.
        dropout_rate: probability of dropping a weight.
        deterministic: whether there is no dropout.
        precision: precision of the products.
        kernel_init: initializer of the kernels.
        out_kernel_init: initializer of the last kernel; ``kernel_init`` by default.
        bias_init: initializer of the biases.
        out_bias_init: initializer of the last bias; ``bias_init`` by default.
        use_bias: whether there are biases.
        attention_fn: takes what :func:`dot_product_attention` takes.
        decode: whether each call gives one place of a sequence, and keys and values of those before are in the cache.
        normalize_qk: whether queries and keys go through a LayerNorm.
        qkv_promote_dtype, out_promote_dtype, ln_promote_dtype: bring inputs and parameters to one dtype.
        qkv_dot_general, out_dot_general, qkv_dot_general_cls, out_dot_general_cls: the products, as for
            :class:`LinearGeneral`.
        rngs: the stream ``params`` gives the keys, the stream ``dropout`` those of the dropout.
        keep_rngs: whether the layer keeps a stream for dropout; otherwise calls pass ``rngs``.
        kernel_metadata, out_kernel_metadata, bias_metadata, out_bias_metadata, query_ln_scale_metadata,
            key_ln_scale_metadata: metadata of the parameters.

    Raises:
        LayerArgumentError: the features or the heads cannot be divided.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> layer = nnx.MultiHeadAttention(4, 8, decode=False, rngs=nnx.Rngs(0))
    >>> layer(jnp.ones((2, 5, 8))).shape
    (2, 5, 8)
    """

    def __init__(
        self,
        num_heads: int,
        in_features: int,
        qkv_features: int | None = None,
        out_features: int | None = None,
        num_kv_heads: int | None = None,
        in_kv_features: int | None = None,
        *,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        broadcast_dropout: bool = True,
        dropout_rate: float = 0.0,
        deterministic: bool | None = None,
        precision: Any = None,
        kernel_init: Callable[..., Any] = _default_kernel_init,
        out_kernel_init: Callable[..., Any] | None = None,
        bias_init: Callable[..., Any] = initializers.zeros,
        out_bias_init: Callable[..., Any] | None = None,
        use_bias: bool = True,
        attention_fn: Callable[..., Any] = dot_product_attention,
        decode: bool | None = None,
        normalize_qk: bool = False,
        qkv_promote_dtype: Callable[..., Any] = promote_dtype,
        out_promote_dtype: Callable[..., Any] = promote_dtype,
        ln_promote_dtype: Callable[..., Any] = promote_dtype,
        qkv_dot_general: Callable[..., Any] | None = None,
        out_dot_general: Callable[..., Any] | None = None,
        qkv_dot_general_cls: Any = None,
        out_dot_general_cls: Any = None,
        rngs: Rngs,
        keep_rngs: bool = True,
        kernel_metadata: Mapping[str, Any] = NO_METADATA,
        out_kernel_metadata: Mapping[str, Any] = NO_METADATA,
        bias_metadata: Mapping[str, Any] = NO_METADATA,
        out_bias_metadata: Mapping[str, Any] = NO_METADATA,
        query_ln_scale_metadata: Mapping[str, Any] = NO_METADATA,
        key_ln_scale_metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        self.num_heads = num_heads
        self.in_features = in_features
        self.qkv_features: int = in_features if qkv_features is None else qkv_features
        self.out_features: int = in_features if out_features is None else out_features
        self.in_kv_features: int = in_features if in_kv_features is None else in_kv_features
        self.num_kv_heads: int = num_heads if num_kv_heads is None else num_kv_heads
        sizes = ("num_heads", "num_kv_heads", "in_features", "in_kv_features", "qkv_features", "out_features")
        given = {name: getattr(self, name) for name in sizes}
        require_arguments(self, "nnx.MultiHeadAttention", **given, dropout_rate=dropout_rate)
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.broadcast_dropout = broadcast_dropout
        self.dropout_rate = dropout_rate
        self.deterministic = deterministic
        self.precision = precision
        self.use_bias = use_bias
        self.attention_fn = attention_fn
        self.decode = decode
        self.normalize_qk = normalize_qk
        self.qkv_promote_dtype = qkv_promote_dtype
        self.out_promote_dtype = out_promote_dtype
        self.ln_promote_dtype = ln_promote_dtype
        self.qkv_dot_general = qkv_dot_general
        self.out_dot_general = out_dot_general
        self.qkv_dot_general_cls = qkv_dot_general_cls
        self.out_dot_general_cls = out_dot_general_cls
        self.head_dim: int = self.qkv_features // num_heads

        def project(features: int, heads: int) -> LinearGeneral:
            return LinearGeneral(
                features,
                (heads, self.head_dim),
                dtype=dtype,
                param_dtype=param_dtype,
                kernel_init=kernel_init,
                bias_init=bias_init,
                use_bias=use_bias,
                precision=precision,
                promote_dtype=qkv_promote_dtype,
                dot_general=qkv_dot_general,
                dot_general_cls=qkv_dot_general_cls,
                rngs=rngs,
                kernel_metadata=kernel_metadata,
                bias_metadata=bias_metadata,
            )

        def norm(metadata: Mapping[str, Any]) -> LayerNorm:
            return LayerNorm(
                self.head_dim,
                use_bias=False,
                dtype=dtype,
                param_dtype=param_dtype,
                promote_dtype=ln_promote_dtype,
                rngs=rngs,
                scale_metadata=metadata,
            )

        self.query: LinearGeneral = project(in_features, num_heads)
        self.key: LinearGeneral = project(self.in_kv_features, self.num_kv_heads)
        self.value: LinearGeneral = project(self.in_kv_features, self.num_kv_heads)
        self.query_ln: LayerNorm | None = data(norm(query_ln_scale_metadata) if normalize_qk else None)
        self.key_ln: LayerNorm | None = data(norm(key_ln_scale_metadata) if normalize_qk else None)
        self.out: LinearGeneral = LinearGeneral(
            (num_heads, self.head_dim),
            self.out_features,
            axis=(-2, -1),
            kernel_init=kernel_init if out_kernel_init is None else out_kernel_init,
            bias_init=bias_init if out_bias_init is None else out_bias_init,
            use_bias=use_bias,
            dtype=dtype,
            param_dtype=param_dtype,
            precision=precision,
            promote_dtype=out_promote_dtype,
            dot_general=out_dot_general,
            dot_general_cls=out_dot_general_cls,
            rngs=rngs,
            kernel_metadata=out_kernel_metadata,
            bias_metadata=out_bias_metadata,
        )
        keeps = keep_rngs and dropout_rate > 0.0
        stream = stream_of(rngs, "dropout") if keeps else None
        self.rngs: RngStream | None = data(None if stream is None else stream.fork())
        self.cached_key: Cache[Any] | None = data(None)
        self.cached_value: Cache[Any] | None = data(None)
        self.cache_index: Cache[Any] | None = data(None)

    def __call__(
        self,
        inputs_q: Any,
        inputs_k: Any = None,
        inputs_v: Any = None,
        *,
        mask: Any = None,
        deterministic: bool | None = None,
        rngs: Rngs | RngStream | None = None,
        sow_weights: bool = False,
        decode: bool | None = None,
        is_causal: bool = False,
        out_sharding: Any = None,
        qkv_sharding: Any = None,
        input_positions: Any = None,
    ) -> jax.Array:
        """Attention of ``inputs_q`` over ``inputs_k`` and ``inputs_v``.

        Args:
            inputs_q: of shape ``(..., queries, in_features)``.
            inputs_k: of shape ``(..., keys, in_kv_features)``; ``inputs_q`` by default.
            inputs_v: likewise; ``inputs_k`` by default.
            mask: where it is false, a key is not seen; broadcast to ``(..., heads, queries, keys)``.
            deterministic: whether there is no dropout; by default the mode of the layer.
            rngs: random numbers for the dropout; by default the layer's own.
            sow_weights: whether the weights are sown as ``Intermediate``.
            decode: whether this is one place of a sequence; by default as the layer was made.
            is_causal: whether a query sees only keys at its own place and before, as it always does in decoding.
            out_sharding: sharding of the result, where the mesh has explicit axes.
            qkv_sharding: likewise of queries, keys and values.
            input_positions: the places of the elements, for an ``attention_fn`` that takes them, such as
                :func:`dot_product_attention_with_rope`.

        Returns:
            An array of shape ``(..., queries, out_features)``.

        Raises:
            LayerArgumentError: there are values without keys; nothing says whether this is decoding or training; there
                are no random numbers; or decoding without a cache.
            LayerShapeError: an input has other features, or the cache another shape.
        """
        if inputs_k is None:
            if inputs_v is not None:
                raise rules.LAYER_ARGUMENTS.error(
                    cls=type(self).__name__,
                    problem="`inputs_v` is given without `inputs_k`",
                    mend="pass what both are made from as `inputs_k`",
                )
            inputs_k = inputs_q
        if inputs_v is None:
            inputs_v = inputs_k
        decodes = self._decided("decode", decode)
        for name, inputs, size in (
            ("inputs_q", inputs_q, self.in_features),
            ("inputs_k", inputs_k, self.in_kv_features),
            ("inputs_v", inputs_v, self.in_kv_features),
        ):
            require_size(self, name, inputs, size)
            require_shape(self, name, inputs, f"(..., places, {size})", holds=inputs.ndim > 1)
        if decodes:
            self._require_place(inputs_k)
        query = self.query(inputs_q, qkv_sharding)
        key = self.key(inputs_k, qkv_sharding)
        value = self.value(inputs_v, qkv_sharding)
        if self.query_ln is not None and self.key_ln is not None:
            query, key = self.query_ln(query), self.key_ln(key)
        if decodes:
            key, value, seen = self._remember(key, value)
            if mask is not None:
                require_broadcast(self, "mask", mask, (*seen.shape[:-3], self.num_heads, *seen.shape[-2:]))
            mask, is_causal = combine_masks(mask, seen), False  # what is in the cache comes before
        dropout_rng = None
        deterministic = self.dropout_rate == 0.0 or self._decided("deterministic", deterministic)
        if not deterministic:
            dropout_rng = next_key(self, "dropout", rngs, self.rngs)
        options: dict[str, Any] = {"is_causal": True} if is_causal else {}
        if input_positions is not None:
            options["input_positions"] = input_positions
        attended = self.attention_fn(
            query,
            key,
            value,
            mask=mask,
            dropout_rng=dropout_rng,
            dropout_rate=self.dropout_rate,
            broadcast_dropout=self.broadcast_dropout,
            deterministic=deterministic,
            dtype=self.dtype,
            precision=self.precision,
            module=self if sow_weights else None,
            **options,
        )
        return self.out(attended, out_sharding)

    def _decided(self, name: str, given: bool | None) -> bool:
        decision: bool | None = getattr(self, name) if given is None else given
        if decision is None:
            raise rules.LAYER_MODE_UNDECIDED.error(cls=type(self).__name__, name=name)
        return decision

    def _cache(self) -> tuple[Cache[Any], Cache[Any], Cache[Any]]:
        if self.cached_key is None or self.cached_value is None or self.cache_index is None:
            raise rules.LAYER_ARGUMENTS.error(
                cls=type(self).__name__,
                problem="it decodes, and has no cache",
                mend="call `init_cache(input_shape)` first",
            )
        return self.cached_key, self.cached_value, self.cache_index

    def _require_place(self, inputs_k: Any) -> None:
        """Raise unless this is one place of what the cache was made for."""
        expected = (*self._cache()[0].shape[:-3], 1, self.in_kv_features)
        require_shape(self, "inputs_k", inputs_k, str(expected), holds=inputs_k.shape == expected)

    def _remember(self, key: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Put one place into the cache; returns all keys and values, and the mask of those that are there."""
        cached_key, cached_value, cache_index = self._cache()
        *batch, length, _, _ = cached_key.shape
        index = cache_index.get_value()
        for cache, new in ((cached_key, key), (cached_value, value)):
            old = cache.get_value()
            cache.set_value(jax.lax.dynamic_update_slice_in_dim(old, new.astype(old.dtype), index, axis=len(batch)))
        cache_index.set_value(index + 1)
        seen = jnp.broadcast_to(jnp.arange(length) <= index, (*batch, 1, 1, length))
        return cached_key.get_value(), cached_value.get_value(), seen

    def init_cache(self, input_shape: Sequence[int], dtype: Any = jnp.float32) -> None:
        """Make an empty cache for decoding.

        Args:
            input_shape: shape of the whole sequence: ``(..., length, in_features)``.
            dtype: dtype of the cache.
        """
        shape = (*input_shape[:-1], self.num_kv_heads, self.head_dim)
        self.cached_key = Cache(jnp.zeros(shape, dtype))
        self.cached_value = Cache(jnp.zeros(shape, dtype))
        self.cache_index = Cache(jnp.array(0, dtype=jnp.int32))

    def set_view(
        self,
        deterministic: bool | None = None,
        decode: bool | None = None,
        batch_size: int | Sequence[int] | None = None,
        max_length: int | None = None,
    ) -> None:
        """Set the mode of the layer.

        Args:
            deterministic: whether there is no dropout.
            decode: whether calls give one place of a sequence.
            batch_size: together with ``max_length``, asks for an empty cache: how many sequences it is for.
            max_length: how many places each of them has.

        Raises:
            LayerArgumentError: only one of ``batch_size`` and ``max_length`` is given.
        """
        if deterministic is not None:
            self.deterministic = deterministic
        if decode is not None:
            self.decode = decode
        if batch_size is not None and max_length is not None:
            self.init_cache((*as_tuple(batch_size), max_length, self.in_features))
        elif batch_size is not None or max_length is not None:
            raise rules.LAYER_ARGUMENTS.error(
                cls=type(self).__name__,
                problem=f"batch_size={batch_size} and max_length={max_length}, and a cache needs both",
                mend="give both, or neither",
            )
