"""Convolutions and pooling: as in flax, and what they raise."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx as flax_nnx
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import nnxkit as nnx
from layer_peers import EXACT, HALF, arrays, assert_same_layer, assert_same_values
from nnx_rules.errors import LayerArgumentError, LayerShapeError


@settings(max_examples=6, deadline=None)
@given(
    kernel=st.sampled_from([(3, 3), (2, 5), (1, 4)]),
    strides=st.sampled_from([1, 2, (1, 3)]),
    padding=st.sampled_from(["SAME", "VALID", "CIRCULAR", "REFLECT", 1, ((1, 2), (0, 3)), "valid"]),
    dilation=st.sampled_from([1, 2]),
    groups=st.sampled_from([1, 2]),
    use_bias=st.booleans(),
    dtype=st.sampled_from([None, jnp.bfloat16]),
)
def test_conv(kernel: Any, strides: Any, padding: Any, dilation: int, groups: int, use_bias: bool, dtype: Any) -> None:
    (x,) = arrays((2, 12, 13, 4))
    assert_same_layer(
        lambda n, rngs: n.Conv(
            4,
            6,
            kernel,
            strides,
            padding=padding,
            kernel_dilation=dilation,
            feature_group_count=groups,
            use_bias=use_bias,
            bias_init=n.initializers.normal(1.0),
            dtype=dtype,
            rngs=rngs,
        ),
        lambda _, layer: layer(x),
        **(EXACT if dtype is None else HALF),
    )


@pytest.mark.parametrize("shape", [(12, 4), (2, 12, 4), (3, 2, 12, 4)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_causal_and_batch_axes(shape: tuple[int, ...], dilation: int) -> None:
    (x,) = arrays(shape)
    assert_same_layer(
        lambda n, rngs: n.Conv(4, 6, 3, padding="CAUSAL", kernel_dilation=dilation, rngs=rngs),
        lambda _, layer: layer(x),
    )


def test_causal_does_not_see_what_comes() -> None:
    (x,) = arrays((8, 3))
    layer = nnx.Conv(3, 2, 3, padding="CAUSAL", rngs=nnx.Rngs(0))
    np.testing.assert_array_equal(layer(x)[:5], layer(x.at[5:].set(7.0))[:5])


@settings(max_examples=6, deadline=None)
@given(
    kernel=st.sampled_from([(3, 3), (2, 5), (1, 4)]),
    strides=st.sampled_from([1, 2, (1, 3), (3, 4), None]),
    padding=st.sampled_from(["SAME", "VALID", "CIRCULAR", 1, ((1, 2), (0, 3))]),
    dilation=st.sampled_from([None, 2]),
    transpose=st.booleans(),
)
def test_conv_transpose(kernel: Any, strides: Any, padding: Any, dilation: Any, transpose: bool) -> None:
    (x,) = arrays((2, 5, 6, 4))
    assert_same_layer(
        lambda n, rngs: n.ConvTranspose(
            4,
            3,
            kernel,
            strides,
            padding=padding,
            kernel_dilation=dilation,
            transpose_kernel=transpose,
            bias_init=n.initializers.normal(1.0),
            rngs=rngs,
        ),
        lambda _, layer: layer(x),
    )


def test_transposed_kernel_is_the_transpose() -> None:
    """<conv(x), y> = <x, conv_transpose(y)> with the same kernel."""
    x, y = arrays((1, 8, 3), (1, 8, 5))
    conv = nnx.Conv(3, 5, 3, use_bias=False, rngs=nnx.Rngs(0))
    transpose = nnx.ConvTranspose(5, 3, 3, use_bias=False, transpose_kernel=True, rngs=nnx.Rngs(1))
    transpose.kernel.set_value(conv.kernel.get_value())
    np.testing.assert_allclose(jnp.vdot(conv(x), y), jnp.vdot(x, transpose(y)), rtol=1e-5)


@pytest.mark.parametrize("layer", ["Conv", "ConvTranspose"])
def test_mask(layer: str) -> None:
    x, weights = arrays((2, 9, 4), (3, 4, 6))
    assert_same_layer(
        lambda n, rngs: getattr(n, layer)(4, 6, 3, mask=weights > 0, rngs=rngs), lambda _, layer: layer(x)
    )


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(["avg_pool", "max_pool", "min_pool"]),
    window=st.sampled_from([(2, 2), (2, 3), (3, 1)]),
    strides=st.sampled_from([None, (2, 1), (2, 2)]),
    padding=st.sampled_from(["VALID", "SAME", ((1, 0), (0, 1))]),
    batch=st.sampled_from([(), (2,), (3, 2)]),
    count=st.booleans(),
)
def test_pooling(name: str, window: Any, strides: Any, padding: Any, batch: Any, count: bool) -> None:
    # flax takes any number of batch axes in the plainest case only.
    assume(len(batch) == 1 or (count and isinstance(padding, str)))
    assume(count or name == "avg_pool")
    (x,) = arrays((*batch, 6, 7, 3))
    options = {} if count else {"count_include_pad": False}
    own, peer = (getattr(library, name)(x, window, strides, padding, **options) for library in (nnx, flax_nnx))
    assert_same_values(name, own, peer, **EXACT)


class TestErrors:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda r: nnx.Conv(3, 8, 3, feature_group_count=2, rngs=r), "in_features=3 cannot be divided by"),
            (lambda r: nnx.Conv(4, 7, 3, feature_group_count=2, rngs=r), "out_features=7 cannot be divided by"),
            (lambda r: nnx.max_pool(jnp.ones((2, 3)), (2, 2)), "a window of 2 axes, and inputs of shape"),
            (lambda r: nnx.max_pool(jnp.ones((2, 4, 3)), (2,), (1, 1)), "a window of 1 axes, and strides="),
            (lambda r: nnx.avg_pool(jnp.ones((4, 3)), (2,), None, ((0, 0), (0, 0))), "and padding="),
        ],
    )
    def test_arguments(self, make: Any, message: str) -> None:
        with pytest.raises(LayerArgumentError, match=message):
            make(nnx.Rngs(0))

    @pytest.mark.parametrize("layer", [nnx.Conv, nnx.ConvTranspose])
    def test_shapes(self, layer: Any) -> None:
        made = layer(3, 8, (3, 3), rngs=nnx.Rngs(0))
        name = layer.__name__
        with pytest.raises(LayerShapeError, match=rf"`{name}` takes `inputs` of shape \(\.\.\., axis, axis, 3\)"):
            made(jnp.ones((2, 5, 5, 4)))
        with pytest.raises(LayerShapeError, match=r"and got \(5, 3\)"):
            made(jnp.ones((5, 3)))
        with pytest.raises(LayerShapeError, match=r"`mask` of shape \(3, 3, 8\), and got \(2, 3, 8\)"):
            layer(3, 8, 3, mask=jnp.ones((2, 3, 8)), rngs=nnx.Rngs(0))(jnp.ones((5, 3)))
