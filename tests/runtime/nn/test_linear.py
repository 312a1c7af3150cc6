"""Linear, LinearGeneral, Einsum, Embed, LoRA: as in flax, and what they raise."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnxkit as nnx
from layer_peers import EXACT, HALF, arrays, assert_same_layer
from nnx_rules.errors import LayerArgumentError, LayerShapeError

DTYPES = st.sampled_from([None, jnp.float32, jnp.bfloat16])
few = settings(max_examples=5, deadline=None)


def tolerance(*dtypes: Any) -> dict[str, float]:
    return HALF if jnp.bfloat16 in dtypes else EXACT


def randomly(library: Any) -> Any:
    return library.initializers.normal(1.0)


@few
@given(DTYPES, DTYPES, DTYPES, st.booleans(), st.sampled_from([(3,), (5, 3), (2, 4, 3)]))
def test_linear(dtype: Any, param_dtype: Any, input_dtype: Any, use_bias: bool, shape: tuple[int, ...]) -> None:
    (x,) = arrays(shape, dtype=input_dtype or jnp.float32)
    options = {"dtype": dtype, "param_dtype": param_dtype or jnp.float32, "use_bias": use_bias}
    assert_same_layer(
        lambda n, rngs: n.Linear(3, 4, bias_init=randomly(n), rngs=rngs, **options),
        lambda _, layer: layer(x),
        **tolerance(dtype, param_dtype, input_dtype),
    )


@pytest.mark.parametrize(
    ("in_features", "out_features", "options"),
    [
        (4, 5, {}),
        (4, (5, 6), {}),
        ((3, 4), (5, 6), {"axis": (1, 2)}),
        ((3, 4), 5, {"axis": (-2, -1), "use_bias": False}),
        (4, (5, 6), {"batch_axis": {0: 2}}),
        (4, 5, {"batch_axis": {0: 2, 1: 3}}),
        (4, 5, {"dot_general_cls": lambda: jax.lax.dot_general}),
        (4, 5, {"preferred_element_type": jnp.float32, "precision": "highest"}),
    ],
)
def test_linear_general(in_features: Any, out_features: Any, options: dict[str, Any]) -> None:
    (x,) = arrays((2, 3, 4))
    assert_same_layer(
        lambda n, rngs: n.LinearGeneral(in_features, out_features, bias_init=randomly(n), rngs=rngs, **options),
        lambda _, layer: layer(x),
    )


def test_linear_general_takes_axes_in_any_order() -> None:
    (x,) = arrays((2, 3, 4))
    layer = nnx.LinearGeneral((4, 3), 5, axis=(-1, 1), use_bias=False, rngs=nnx.Rngs(0))
    np.testing.assert_allclose(layer(x), jnp.einsum("bij,jio->bo", x, layer.kernel[...]), rtol=1e-5)


@pytest.mark.parametrize(
    ("equation", "kernel", "bias", "shape"),
    [
        ("nta,hab->nthb", (8, 2, 4), (8, 4), (3, 5, 2)),
        ("nta,hab->nbth", (8, 2, 4), (4, 8), (3, 5, 2)),
        ("...ta,hab->...thb", (8, 2, 4), (8, 4), (6, 3, 5, 2)),
        (" nta, hab -> nthb ", (8, 2, 4), None, (3, 5, 2)),
    ],
)
def test_einsum(equation: str, kernel: Any, bias: Any, shape: tuple[int, ...]) -> None:
    (x,) = arrays(shape)
    axes_differ = bias == (4, 8)
    assert_same_layer(
        lambda n, rngs: n.Einsum(
            equation, kernel, bias, bias_init=n.initializers.ones if axes_differ else randomly(n), rngs=rngs
        ),
        lambda _, layer: layer(x),
    )


def test_einsum_with_the_equation_at_the_call() -> None:
    (x,) = arrays((3, 5, 2))
    layer = nnx.Einsum(None, (8, 2, 4), rngs=nnx.Rngs(0))
    np.testing.assert_allclose(layer(x, "nta,hab->nthb"), jnp.einsum("nta,hab->nthb", x, layer.kernel[...]), rtol=1e-5)
    with pytest.raises(LayerArgumentError, match="it has no equation"):
        layer(x)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("dtype", [None, jnp.bfloat16])
def test_embed(rows: int, dtype: Any) -> None:
    numbers = jnp.array([[0, 0], [rows - 1, 0]])
    (query,) = arrays((3, 4))
    assert_same_layer(
        lambda n, rngs: n.Embed(rows, 4, dtype=dtype, rngs=rngs),
        lambda _, layer: (layer(numbers), layer.attend(query)),
        **tolerance(dtype),
    )


def test_embed_of_a_number_that_is_not_there() -> None:
    layer = nnx.Embed(3, 2, rngs=nnx.Rngs(0))
    assert np.isnan(layer(jnp.array([5]))).all()


@pytest.mark.parametrize("base", [False, True])
def test_lora(base: bool) -> None:
    (x,) = arrays((5, 3))
    assert_same_layer(
        lambda n, rngs: n.LoRA(
            3, 2, 4, base_module=n.Linear(3, 4, rngs=rngs) if base else None, b_initializer=randomly(n), rngs=rngs
        ),
        lambda _, layer: layer(x),
    )


def test_lora_linear() -> None:
    (x,) = arrays((5, 3))
    assert_same_layer(
        lambda n, rngs: n.LoRALinear(3, 4, lora_rank=2, b_initializer=randomly(n), bias_init=randomly(n), rngs=rngs),
        lambda _, layer: layer(x),
    )


def test_lora_of_a_function() -> None:
    (x,) = arrays((5, 3))
    layer = nnx.LoRA(3, 2, 3, base_module=lambda x: 2 * x, rngs=nnx.Rngs(0))
    np.testing.assert_allclose(layer(x), 2 * x, rtol=1e-6)
    with pytest.raises(LayerArgumentError, match="`base_module` is a int, which cannot be called"):
        nnx.LoRA(3, 2, 3, base_module=3, rngs=nnx.Rngs(0))(x)  # type: ignore[arg-type]


class Network(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.blocks = nnx.List([nnx.Linear(3, 4, rngs=rngs), nnx.Linear(5, 2, rngs=rngs)])
        self.table = nnx.Embed(7, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x


class TestErrors:
    def test_names_the_layer_by_its_path(self) -> None:
        network = Network(nnx.Rngs(0))
        expected = r"`Network\.blocks\[1\]` takes `inputs` of shape \(\.\.\., 5\), and got \(6, 4\)"
        with pytest.raises(LayerShapeError, match=expected):
            network(jnp.ones((6, 3)))
        with pytest.raises(LayerShapeError, match=expected):
            nnx.jit(lambda network, x: network(x))(network, jnp.ones((6, 3)))
        with pytest.raises(LayerShapeError, match=r"`Linear` takes `inputs` of shape \(\.\.\., 3\), and got \(\)"):
            network.blocks[0](jnp.ones(()))

    def test_is_what_jax_raises(self) -> None:
        for kind in (TypeError, ValueError):
            with pytest.raises(kind, match="takes `inputs`"):
                nnx.Linear(2, 3, rngs=nnx.Rngs(0))(jnp.ones(4))

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda r: nnx.LinearGeneral((3, 4), 5, rngs=r), "in_features has 2 sizes, and axis=-1 names 1 axis"),
            (lambda r: nnx.Einsum("ab,bc", (2, 3), rngs=r), "'ab,bc' is not an equation of two operands"),
            (lambda r: nnx.Einsum("ab,bc,cd->ad", (2, 3), rngs=r), "is not an equation of two operands"),
        ],
    )
    def test_arguments(self, make: Any, message: str) -> None:
        with pytest.raises(LayerArgumentError, match=message):
            make(nnx.Rngs(0))

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda r: nnx.Embed(3, 5, rngs=r).attend(jnp.ones((2, 4))), r"`query` of shape \(\.\.\., 5\)"),
            (lambda r: nnx.LoRA(3, 2, 5, rngs=r)(jnp.ones((2, 4))), r"`LoRA` takes `x` of shape \(\.\.\., 3\)"),
        ],
    )
    def test_shapes(self, call: Any, message: str) -> None:
        with pytest.raises(LayerShapeError, match=message):
            call(nnx.Rngs(0))

    @pytest.mark.parametrize("dtype", [jnp.float32, jnp.bool_])
    def test_embed_takes_integers(self, dtype: Any) -> None:
        with pytest.raises(
            LayerArgumentError,
            match=f"`_Looker.network.table` takes `inputs` of integers, and got {jnp.dtype(dtype).name}",
        ):
            _Looker(Network(nnx.Rngs(0)))(jnp.zeros(2, dtype))


class _Looker(nnx.Module):
    def __init__(self, network: Network) -> None:
        self.network = network

    def __call__(self, x: Any) -> Any:
        return self.network.table(x)
