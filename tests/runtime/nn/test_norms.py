"""Normalization layers and reparametrizations: as in flax, and what they raise."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx as flax_nnx
from hypothesis import given, settings
from hypothesis import strategies as st

import nnxkit as nnx
from layer_peers import EXACT, HALF, arrays, assert_same_layer, assert_same_values
from nnx_rules.errors import LayerArgumentError, LayerShapeError

X = arrays((2, 6, 4))[0] * 3 + 1
MASK = jax.random.bernoulli(jax.random.key(4), 0.6, X.shape).at[:, 0].set(True)

NORMS: dict[str, Any] = {
    "batch": lambda n, r, **o: n.BatchNorm(4, **o, rngs=r),
    "batch along another axis": lambda n, r, **o: n.BatchNorm(6, axis=1, **o, rngs=r),
    "layer": lambda n, r, **o: n.LayerNorm(4, **o, rngs=r),
    "layer over two axes": lambda n, r, **o: n.LayerNorm(24, reduction_axes=(1, 2), feature_axes=(1, 2), **o, rngs=r),
    "layer without parameters": lambda n, r, **o: n.LayerNorm(4, use_bias=False, use_scale=False, **o, rngs=r),
    "rms": lambda n, r, **o: n.RMSNorm(4, **o, rngs=r),
    "group": lambda n, r, **o: n.GroupNorm(4, 2, **o, rngs=r),
    "group of one": lambda n, r, **o: n.GroupNorm(4, None, 1, use_bias=False, **o, rngs=r),
    "instance": lambda n, r, **o: n.InstanceNorm(4, **o, rngs=r),
    "instance along another axis": lambda n, r, **o: n.InstanceNorm(6, feature_axes=1, use_scale=False, **o, rngs=r),
}


@settings(max_examples=12, deadline=None)
@given(
    name=st.sampled_from(sorted(NORMS)),
    fast=st.booleans(),
    dtype=st.sampled_from([None, jnp.bfloat16, jnp.float32]),
    param_dtype=st.sampled_from([jnp.float32, jnp.bfloat16]),
    input_dtype=st.sampled_from([jnp.float32, jnp.bfloat16, jnp.float16]),
    masked=st.booleans(),
)
def test_norms(name: str, fast: bool, dtype: Any, param_dtype: Any, input_dtype: Any, masked: bool) -> None:
    x = X.astype(input_dtype)
    options = {"use_fast_variance": fast, "dtype": dtype, "param_dtype": param_dtype}
    exact = input_dtype == param_dtype == jnp.float32 and dtype in (None, jnp.float32)
    assert_same_layer(
        lambda n, rngs: NORMS[name](n, rngs, **options),
        lambda _, layer: layer(x, mask=MASK) if masked else layer(x),
        **(EXACT if exact else HALF),
    )


def test_batch_norm_of_stored_statistics() -> None:
    assert_same_layer(
        lambda n, rngs: n.BatchNorm(4, scale_init=n.initializers.normal(1.0), rngs=rngs),
        lambda _, layer: (layer(X), layer(X, use_running_average=True)),
    )


@pytest.mark.parametrize("axes", [(1, -1), (2,), (-1,), (0, 1, 2), 1])
def test_group_norm_over_any_axes(axes: Any) -> None:
    """The last axis goes by groups, whether it is named or not."""
    y = nnx.GroupNorm(4, 2, reduction_axes=axes, rngs=nnx.Rngs(0))(X)
    grouped = X.reshape(2, 6, 2, 2)
    over = (*tuple({axis % 3 for axis in np.atleast_1d(axes)} - {2}), 3)
    mean, var = grouped.mean(over, keepdims=True), grouped.var(over, keepdims=True)
    expected = ((grouped - mean) / jnp.sqrt(var + 1e-6)).reshape(X.shape)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


LAYERS: dict[str, Any] = {
    "linear": lambda n, r: n.Linear(4, 3, rngs=r),
    "conv": lambda n, r: n.Conv(4, 3, 3, rngs=r),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("options", [{}, {"n_steps": 3}, {"update_stats": False}], ids=str)
def test_spectral_norm(layer: str, options: dict[str, Any]) -> None:
    assert_same_layer(
        lambda n, rngs: n.SpectralNorm(LAYERS[layer](n, rngs), rngs=rngs, **options),
        lambda _, layer: (layer(X), layer(X)),
    )


def test_spectral_norm_bounds_the_singular_values() -> None:
    layer = nnx.SpectralNorm(nnx.Linear(4, 3, rngs=nnx.Rngs(0)), n_steps=50, rngs=nnx.Rngs(1))
    layer(X)
    assert float(jnp.linalg.svd(layer.layer_instance.kernel[...])[1][0]) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize(
    "options", [{}, {"feature_axes": None}, {"feature_axes": (0, -1)}, {"use_scale": False}], ids=str
)
def test_weight_norm(layer: str, options: dict[str, Any]) -> None:
    """The scales are ``Param``s, which in flax depends on the version."""
    results = []
    for library in (nnx, flax_nnx):
        made = library.WeightNorm(LAYERS[layer](library, library.Rngs(0)), rngs=library.Rngs(1), **options)
        results.append((made(X), made.layer_instance.kernel[...]))
    assert_same_values("weight norm", results[0], results[1], **EXACT)


def test_weight_norm_trains_its_scales() -> None:
    layer = nnx.WeightNorm(nnx.Linear(4, 3, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(1))
    gradients = nnx.grad(lambda layer: layer(X).sum())(layer)
    assert gradients["scales"]["kernel",].shape == (3,)
    layer.scales["kernel",][...] = jnp.array([1.0, 2.0, 3.0])
    layer(X)
    np.testing.assert_allclose(jnp.linalg.norm(layer.layer_instance.kernel[...], axis=0), [1, 2, 3], rtol=1e-5)


class TestErrors:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda r: nnx.GroupNorm(4, rngs=r), "4 features cannot be divided: 32 groups"),
            (lambda r: nnx.GroupNorm(4, None, 3, rngs=r), "4 features cannot be divided: 3 features a group"),
            (lambda r: nnx.GroupNorm(4, 2, 2, rngs=r), "num_groups=2 and group_size=2, and exactly one"),
            (lambda r: nnx.GroupNorm(4, None, None, rngs=r), "num_groups=None and group_size=None"),
            (lambda r: nnx.InstanceNorm(2, feature_axes=0, rngs=r)(X), "the first axis is the batch"),
            (
                lambda r: nnx.SpectralNorm(nnx.Conv(4, 3, 3, rngs=r), error_on_non_matrix=True, rngs=r)(X),
                "a parameter has 3 axes, and `error_on_non_matrix` is set",
            ),
        ],
    )
    def test_arguments(self, make: Any, message: str) -> None:
        with pytest.raises(LayerArgumentError, match=message):
            make(nnx.Rngs(0))

    @pytest.mark.parametrize("layer", [nnx.BatchNorm, nnx.LayerNorm, nnx.RMSNorm, nnx.InstanceNorm, nnx.GroupNorm])
    def test_shapes(self, layer: Any) -> None:
        made = layer(32, rngs=nnx.Rngs(0))
        with pytest.raises(LayerShapeError, match=rf"`{layer.__name__}` takes `x` of shape \(\.\.\., 32\), and got"):
            made(X)
