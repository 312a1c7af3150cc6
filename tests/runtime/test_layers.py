"""Linear, BatchNorm, Dropout, activations: shapes, Variables, and the same numbers as flax."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx
from nnx_rules.errors import TraceContextError


class TestLinear:
    def test_variables(self) -> None:
        layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
        assert [(p, type(v), v.shape) for p, v in nnx.to_flat_state(nnx.state(layer))] == [
            (("bias",), nnx.Param, (3,)),
            (("kernel",), nnx.Param, (2, 3)),
        ]
        assert nnx.Linear(2, 3, use_bias=False, rngs=nnx.Rngs(0)).bias is None

    @pytest.mark.parametrize("shape", [(2,), (4, 2), (4, 5, 2)])
    def test_is_affine(self, shape: tuple[int, ...]) -> None:
        layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
        layer.bias[...] = jnp.arange(3.0)
        x = jax.random.normal(jax.random.key(1), shape)
        np.testing.assert_allclose(layer(x), x @ layer.kernel + jnp.arange(3.0), rtol=1e-6)

    def test_dtypes(self) -> None:
        layer = nnx.Linear(2, 3, dtype=jnp.bfloat16, param_dtype=jnp.float16, rngs=nnx.Rngs(0))
        assert layer.kernel.dtype == jnp.float16
        assert layer(jnp.ones(2)).dtype == jnp.bfloat16
        assert nnx.Linear(2, 3, rngs=nnx.Rngs(0))(jnp.ones(2, jnp.int32)).dtype == jnp.float32
        assert nnx.Linear(2, 3, preferred_element_type=jnp.float32, dtype=jnp.bfloat16, rngs=nnx.Rngs(0))(
            jnp.ones(2)
        ).dtype == (jnp.float32)
        with pytest.raises(ValueError, match="dtype must be a float or complex type"):
            nnx.Linear(2, 3, dtype=jnp.int32, rngs=nnx.Rngs(0))(jnp.ones(2))

    def test_wrong_input(self) -> None:
        with pytest.raises(TypeError, match="`Linear` takes `inputs` of shape"):
            nnx.Linear(2, 3, rngs=nnx.Rngs(0))(jnp.ones(4))
        with pytest.raises(TypeError, match="rngs"):
            nnx.Linear(2, 3)  # type: ignore[call-arg]

    def test_metadata(self) -> None:
        layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0), kernel_metadata={"a": 1}, bias_metadata={"b": 2})
        assert (layer.kernel.a, layer.bias.b) == (1, 2)

    def test_transposed_jit(self) -> None:
        layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
        x = jnp.ones((4, 2))
        np.testing.assert_allclose(jax.jit(lambda m, x: m(x))(layer, x), layer(x), rtol=1e-6)


class TestBatchNorm:
    def test_variables(self) -> None:
        layer = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
        assert [(p[0], type(v), v.shape) for p, v in nnx.to_flat_state(nnx.state(layer))] == [
            ("bias", nnx.Param, (3,)),
            ("mean", nnx.BatchStat, (3,)),
            ("scale", nnx.Param, (3,)),
            ("var", nnx.BatchStat, (3,)),
        ]

    @pytest.mark.parametrize("fast", [True, False])
    def test_normalizes(self, fast: bool) -> None:
        layer = nnx.BatchNorm(3, use_fast_variance=fast, rngs=nnx.Rngs(0))
        y = layer(jax.random.normal(jax.random.key(0), (50, 3)) * 3 + 2)
        np.testing.assert_allclose(y.mean(0), 0, atol=1e-5)
        np.testing.assert_allclose(y.std(0), 1, atol=1e-3)

    def test_running_statistics(self) -> None:
        layer = nnx.BatchNorm(3, momentum=0.9, rngs=nnx.Rngs(0))
        x = jax.random.normal(jax.random.key(0), (50, 3)) * 3 + 2
        layer(x)
        np.testing.assert_allclose(layer.mean[...], 0.1 * x.mean(0), rtol=1e-5)
        np.testing.assert_allclose(layer.var[...], 0.9 + 0.1 * x.var(0), rtol=1e-4)
        layer.eval()
        before = layer.mean[...]
        np.testing.assert_allclose(layer(x), (x - layer.mean) / jnp.sqrt(layer.var + 1e-5), rtol=1e-4)
        assert layer.mean[...] is before

    def test_mode_is_needed(self) -> None:
        layer = nnx.BatchNorm(3, use_running_average=None, rngs=nnx.Rngs(0))
        with pytest.raises(ValueError, match="its `use_running_average` is None"):
            layer(jnp.ones((2, 3)))
        assert layer(jnp.ones((2, 3)), use_running_average=True).shape == (2, 3)

    def test_captured(self) -> None:
        layer = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
        with pytest.raises(TraceContextError, match="Cannot mutate `BatchStat`"):
            jax.jit(lambda x: layer(x))(jnp.ones((2, 3)))

    def test_over_devices(self) -> None:
        layer = nnx.BatchNorm(3, axis_name="d", rngs=nnx.Rngs(0))
        x = jax.random.normal(jax.random.key(0), (4, 5, 3))

        def f(layer: nnx.BatchNorm, x: jax.Array) -> jax.Array:
            return layer(x)

        y = jax.vmap(f, in_axes=(None, 0), axis_name="d")(layer, x)
        whole = nnx.BatchNorm(3, rngs=nnx.Rngs(0))(x.reshape(20, 3)).reshape(4, 5, 3)
        np.testing.assert_allclose(y, whole, atol=1e-5)


class TestDropout:
    def test_rate(self) -> None:
        layer = nnx.Dropout(0.25, rngs=nnx.Rngs(0))
        y = layer(jnp.ones(10_000))
        assert set(np.unique(y)) == {0, np.float32(1 / 0.75)}
        assert abs(float((y == 0).mean()) - 0.25) < 0.02
        assert layer.rngs.count == 1

    def test_extremes(self) -> None:
        x = jnp.ones(5)
        assert nnx.Dropout(0.0)(x) is x
        assert nnx.Dropout(1.0)(x).tolist() == [0] * 5
        assert nnx.Dropout(0.5)(x, deterministic=True) is x

    def test_broadcast(self) -> None:
        y = nnx.Dropout(0.5, broadcast_dims=(-1,), rngs=nnx.Rngs(0))(jnp.ones((20, 4)))
        assert all(len(set(row.tolist())) == 1 for row in y)

    def test_sources_of_randomness(self) -> None:
        x = jnp.ones(64)
        key = nnx.Rngs(dropout=3).dropout()
        expected = nnx.Dropout(0.5)(x, rngs=key)
        assert (nnx.Dropout(0.5)(x, rngs=nnx.Rngs(dropout=3)) == expected).all()
        assert (nnx.Dropout(0.5)(x, rngs=nnx.RngStream(3, tag="q")) == expected).all()
        rngs = nnx.Rngs(0)
        assert nnx.Dropout(0.5, rngs=rngs).rngs is not rngs.default

    def test_errors(self) -> None:
        with pytest.raises(ValueError, match="NNX808"):
            nnx.Dropout(0.5)(jnp.ones(3))
        with pytest.raises(ValueError, match="its `deterministic` is None"):
            nnx.Dropout(0.5, deterministic=None)(jnp.ones(3))
        with pytest.raises(TypeError, match="rngs must be Rngs, an RngStream or None, not int"):
            nnx.Dropout(0.5, rngs=5)  # type: ignore[arg-type]


ACTIVATIONS = [
    *("celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu"),
    *("log_sigmoid", "log_softmax", "logsumexp", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax"),
    *("softplus", "standardize", "swish", "tanh"),
]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    flax_nnx = pytest.importorskip("flax.nnx")
    x = jnp.linspace(-3, 3, 8)
    np.testing.assert_array_equal(getattr(nnx, name)(x), getattr(flax_nnx, name)(x))


class TestSameAsFlax:
    """The same seed gives the same parameters and the same outputs, bit by bit."""

    def both(self, build: Any, *inputs: Any) -> None:
        flax_nnx = pytest.importorskip("flax.nnx")
        ours, theirs = build(nnx), build(flax_nnx)
        for x in inputs:
            np.testing.assert_array_equal(ours(x), theirs(x))
        states = [dict(jax.tree_util.tree_leaves_with_path(m.state(o))) for m, o in ((nnx, ours), (flax_nnx, theirs))]
        assert [jax.tree_util.keystr(p) for p in states[0]] == [jax.tree_util.keystr(p) for p in states[1]]
        for left, right in zip(states[0].values(), states[1].values(), strict=True):
            if jnp.issubdtype(left.dtype, jax.dtypes.prng_key):
                left, right = jax.random.key_data(left), jax.random.key_data(right)
            np.testing.assert_array_equal(left, right)

    X = np.asarray(jax.random.normal(jax.random.key(9), (5, 4, 3)) * 2 + 1)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"use_bias": False},
            {"dtype": jnp.bfloat16},
            {"param_dtype": jnp.float16},
            {"preferred_element_type": jnp.float32},
        ],
    )
    def test_linear(self, options: dict[str, Any]) -> None:
        self.both(lambda m: m.Linear(3, 7, rngs=m.Rngs(0), **options), self.X, self.X[0, 0], self.X.astype(np.int32))

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"use_bias": False, "use_scale": False},
            {"axis": 1},
            {"momentum": 0.5, "epsilon": 1e-2},
            {"use_fast_variance": False},
            {"dtype": jnp.bfloat16},
            {"use_running_average": True},
        ],
    )
    def test_batch_norm(self, options: dict[str, Any]) -> None:
        features = 4 if options.get("axis") == 1 else 3
        self.both(
            lambda m: m.BatchNorm(features, rngs=m.Rngs(0), **options), self.X, self.X * 3, self.X.astype(np.float16)
        )

    def test_batch_norm_mask(self) -> None:
        flax_nnx = pytest.importorskip("flax.nnx")
        mask = np.arange(5)[:, None, None] < 3
        ours, theirs = (m.BatchNorm(3, rngs=m.Rngs(0))(self.X, mask=mask) for m in (nnx, flax_nnx))
        np.testing.assert_array_equal(ours, theirs)

    @pytest.mark.parametrize(
        "options", [{}, {"broadcast_dims": (0,)}, {"deterministic": True}, {"rng_collection": "noise"}]
    )
    def test_dropout(self, options: dict[str, Any]) -> None:
        self.both(lambda m: m.Dropout(0.3, rngs=m.Rngs(0, noise=4), **options), self.X, self.X)
