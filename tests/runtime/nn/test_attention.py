"""Attention and its masks: as in flax, and what they raise."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx as flax_nnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nnxkit as nnx
from layer_peers import EXACT, HALF, arrays, assert_same_layer, assert_same_values
from nnx_rules.errors import LayerArgumentError, LayerShapeError

pytestmark = pytest.mark.usefixtures("quick_compilation")

X, Y = arrays((2, 5, 8), (2, 7, 6))
MASK = jax.random.bernoulli(jax.random.key(4), 0.6, (2, 1, 5, 5)).at[..., 0].set(True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"qkv_features": 16, "out_features": 6},
        {"num_kv_heads": 1, "normalize_qk": True},
        {"use_bias": False, "precision": "highest"},
        {"dtype": jnp.bfloat16},
        {"dropout_rate": 0.3, "deterministic": False},
        {"dropout_rate": 0.3, "deterministic": False, "broadcast_dropout": False},
        {"dropout_rate": 0.5, "deterministic": True, "normalize_qk": True},
    ],
    ids=str,
)
def test_multi_head_attention(options: dict[str, Any]) -> None:
    assert_same_layer(
        lambda n, rngs: n.MultiHeadAttention(2, 8, decode=False, rngs=rngs, **options),
        lambda _, layer: layer(X, X + 1, X * 2, mask=MASK),
        **(HALF if "dtype" in options else EXACT),
    )


def test_ways_to_attend() -> None:
    assert_same_layer(
        lambda n, rngs: n.MultiHeadAttention(2, 8, decode=False, rngs=rngs),
        lambda _, layer: (layer(X), layer(X, mask=MASK), layer(X, X + 1), layer(X, is_causal=True)),
    )


def test_attention_over_something_else() -> None:
    assert_same_layer(
        lambda n, rngs: n.MultiHeadAttention(4, 8, in_kv_features=6, decode=False, rngs=rngs),
        lambda _, layer: layer(X, Y),
    )


@pytest.mark.parametrize("options", [{}, {"num_kv_heads": 1, "normalize_qk": True}], ids=str)
def test_decoding(options: dict[str, Any]) -> None:
    def decode(_: Any, layer: Any) -> Any:
        layer.init_cache((2, 5, 8))
        return [layer(X[:, place : place + 1]) for place in range(3)]

    assert_same_layer(lambda n, rngs: n.MultiHeadAttention(2, 8, decode=True, rngs=rngs, **options), decode)


def test_decoding_is_causal_attention() -> None:
    layer = nnx.MultiHeadAttention(4, 8, decode=True, rngs=nnx.Rngs(0))
    layer.init_cache(X.shape)
    steps = [layer(X[:, place : place + 1]) for place in range(5)]
    whole = layer(X, decode=False, is_causal=True)
    np.testing.assert_allclose(jnp.concatenate(steps, 1), whole, rtol=1e-5, atol=1e-6)


def test_weights_are_sown() -> None:
    layer = nnx.MultiHeadAttention(4, 8, decode=False, rngs=nnx.Rngs(0))
    plain, sown = layer(X, mask=MASK), layer(X, mask=MASK, sow_weights=True)
    np.testing.assert_allclose(plain, sown, rtol=1e-5, atol=1e-6)
    (weights,) = nnx.pop(layer, nnx.Intermediate)["attention_weights"].get_value()
    assert weights.shape == (2, 4, 5, 5)
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)
    assert not np.asarray(weights)[~np.broadcast_to(MASK, weights.shape)].any()


def test_modes() -> None:
    layer = nnx.MultiHeadAttention(4, 8, decode=False, dropout_rate=0.5, rngs=nnx.Rngs(0))
    layer.eval()
    assert layer.deterministic is True
    np.testing.assert_array_equal(layer(X), layer(X))
    layer.train()
    assert layer.deterministic is False
    assert not np.array_equal(layer(X), layer(X))


BATCHES = {"none": (), "one": (2,), "two": (2, 3)}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batch=st.sampled_from(sorted(BATCHES)),
    kv_heads=st.sampled_from([1, 2, 4]),
    with_bias=st.booleans(),
    with_mask=st.booleans(),
    one_head=st.booleans(),
    options=st.sampled_from(
        [
            {},
            {"is_causal": True},
            {"dtype": jnp.bfloat16},
            {"dropout_rate": 0.4, "dropout_rng": jax.random.key(3)},
            {"dropout_rate": 0.4, "dropout_rng": jax.random.key(3), "broadcast_dropout": False},
            {"dropout_rate": 0.4, "deterministic": True},
        ]
    ),
)
def test_dot_product_attention(
    batch: str, kv_heads: int, with_bias: bool, with_mask: bool, one_head: bool, options: dict[str, Any]
) -> None:
    shape = BATCHES[batch]
    heads = 1 if one_head else 4
    # flax has groups of heads only where JAX's function computes the attention.
    kv_heads = 4 if "dropout_rng" in options else kv_heads
    q, k, v, bias, scores = arrays(
        (*shape, 5, 4, 8),
        (*shape, 7, kv_heads, 8),
        (*shape, 7, kv_heads, 8),
        (*shape, heads, 5, 7),
        (*shape, heads, 5, 7),
    )
    mask = (scores > 0).at[..., 0].set(True)
    own, peer = (
        jax.jit(lambda bias, mask, library=library: library.dot_product_attention(q, k, v, bias, mask, **options))(
            bias if with_bias else None, mask if with_mask else None
        )
        for library in (nnx, flax_nnx)
    )
    assert_same_values("attention", own, peer, **(HALF if "dtype" in options else EXACT))


def test_a_view_with_a_cache() -> None:
    layer = nnx.MultiHeadAttention(2, 8, rngs=nnx.Rngs(0))
    decoding = nnx.view(layer, decode=True, batch_size=2, max_length=5)
    assert decoding.cached_key is not None
    assert (decoding.cached_key.shape, decoding.decode) == ((2, 5, 2, 4), True)
    assert (layer.cached_key, layer.decode) == (None, None)
    with pytest.raises(LayerArgumentError, match="batch_size=None and max_length=5, and a cache needs both"):
        layer.set_view(max_length=5)


@pytest.mark.parametrize("shape", [(5,), (2, 5), (3, 2, 5)])
@pytest.mark.parametrize("extra", [0, 2])
def test_masks(shape: tuple[int, ...], extra: int) -> None:
    x = arrays(shape)[0] > 0
    for library in (nnx, flax_nnx):
        results = [
            (library.make_causal_mask(x, extra), library.make_attention_mask(x, x[..., :3], extra_batch_dims=extra))
            for library in (nnx, flax_nnx)
        ]
        assert_same_values("masks", results[0], results[1], **EXACT)
        assert library.combine_masks(None, None) is None
        combined = library.combine_masks(jnp.ones((1, 2)), None, jnp.array([[1, 0], [0, 1]]), dtype=bool)
        assert combined.tolist() == [[True, False], [False, True]]


class TestErrors:
    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda r: nnx.MultiHeadAttention(3, 8, rngs=r), "qkv_features=8 cannot be divided by num_heads=3"),
            (lambda r: nnx.MultiHeadAttention(4, 8, num_kv_heads=3, rngs=r), "num_heads=4 cannot be divided"),
            (lambda r: nnx.MultiHeadAttention(4, 8, rngs=r)(X), "called while its `decode` is None"),
            (lambda r: nnx.MultiHeadAttention(4, 8, decode=True, rngs=r)(X), "it decodes, and has no cache"),
            (lambda r: nnx.MultiHeadAttention(4, 8, decode=False, rngs=r)(X, inputs_v=X), "without `inputs_k`"),
            (
                lambda r: nnx.MultiHeadAttention(4, 8, decode=False, dropout_rate=0.5, rngs=r)(X),
                "called while its `deterministic` is None",
            ),
            (
                lambda r: nnx.MultiHeadAttention(
                    4, 8, decode=False, dropout_rate=0.5, deterministic=False, keep_rngs=False, rngs=r
                )(X),
                "draws random numbers when it is called, and has no stream",
            ),
            (lambda r: nnx.combine_masks(jnp.ones((1, 2)), jnp.ones(2)), r"masks of shapes \(1, 2\), \(2,\)"),
            (lambda r: nnx.dot_product_attention(X, X[0], X[0]), "must have the same rank"),
            (lambda r: nnx.dot_product_attention(X, X[:1, :, :], X), "their lengths must match"),
            (lambda r: nnx.dot_product_attention(X, X[..., :3], X), "depths must match"),
            (lambda r: nnx.dot_product_attention(X, X[:, :2], X[:, :2]), "must be a multiple"),
            (lambda r: nnx.dot_product_attention(X, X, X, dropout_rate=0.5), "has no stream"),
        ],
    )
    def test_arguments(self, call: Any, message: str) -> None:
        with pytest.raises(LayerArgumentError, match=message):
            call(nnx.Rngs(0))

    def test_shapes(self) -> None:
        layer = nnx.MultiHeadAttention(4, 8, decode=False, rngs=nnx.Rngs(0))
        with pytest.raises(LayerShapeError, match=r"`MultiHeadAttention` takes `inputs_k` of shape \(\.\.\., 8\)"):
            layer(X, Y)
        layer.init_cache((2, 5, 8))
        with pytest.raises(LayerShapeError, match=r"`inputs_k` of shape \(2, 1, 8\), and got \(2, 2, 8\)"):
            layer(X[:, :2], decode=True)


def test_decoding_is_causal_anyway() -> None:
    tokens = jax.random.normal(jax.random.key(0), (1, 4, 4))

    def decoded(*, is_causal: bool) -> jax.Array:
        layer = nnx.MultiHeadAttention(2, 4, decode=True, rngs=nnx.Rngs(0))
        layer.init_cache(tokens.shape)
        return jnp.concatenate([layer(tokens[:, t : t + 1], is_causal=is_causal) for t in range(4)], axis=1)

    np.testing.assert_allclose(decoded(is_causal=True), decoded(is_causal=False))


@pytest.mark.parametrize("rate", [-0.5, 1.0, float("nan")])
def test_rates_that_leave_nothing(rate: float) -> None:
    q = jnp.ones((1, 2, 1, 4))
    with pytest.raises(LayerArgumentError, match=r"dropout_rate must be in the range \[0, 1\)"):
        nnx.dot_product_attention(q, q, q, dropout_rate=rate, deterministic=False, dropout_rng=jax.random.key(0))
