"""What does not fit a layer: the error says which layer, by its path, which argument, what it takes, what it got."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx
from nnx_rules.errors import LayerArgumentError, LayerShapeError

Made = Callable[[nnx.Rngs], Any]

pytestmark = pytest.mark.usefixtures("quick_compilation")

X = jnp.ones((2, 5, 8))
ATTENTION: dict[str, Any] = {"num_heads": 4, "in_features": 8, "decode": False}


class Model(nnx.Module):
    """A model with one layer, ``layer``."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.layer(*args, **kwargs)


def misfit(message: str) -> Any:
    """The error about a shape that begins with a line."""
    return pytest.raises(LayerShapeError, match=rf"^{re.escape(message)}\n")


def general(*args: Any, **kwargs: Any) -> Made:
    return lambda rngs: nnx.LinearGeneral(*args, rngs=rngs, **kwargs)


def equation(*args: Any) -> Made:
    return lambda rngs: nnx.Einsum(*args, rngs=rngs)


@pytest.mark.parametrize(
    ("make", "given", "expected"),
    [
        (general((2, 3), 4, axis=(1, -1)), (8, 2, 4), "(?, 2, ..., 3)"),
        (general((2, 3), 4, axis=(1, -1)), (3,), "(?, 2, ..., 3)"),
        (general((2, 3), 4, axis=(-2, -1)), (7, 3, 3), "(..., 2, 3)"),
        (general((3, 3), 4, axis=(1, -1)), (5, 3), "(?, 3, ..., 3)"),
        (general(3, 4, axis=2), (5, 3), "(?, ?, 3, ...)"),
        (general(3, 4, batch_axis={0: 2}), (5, 3), "(2, ..., 3)"),
        (general(3, 5, batch_axis={1: 4}), (2, 4, 3), "(?, 4, ..., 3)"),
        (equation("nta,hab->nthb", (8, 2, 4), (8, 4)), (16, 11, 3), "(?, ?, 2)"),
        (equation("nta,hab->nthb", (8, 2, 4), (8, 4)), (11, 2), "(?, ?, 2)"),
        (equation("...a,ab->...b", (2, 4)), (11, 3), "(..., 2)"),
        (equation("...xa,ab->...xb", (2, 4)), (2,), "(..., ?, 2)"),
        (equation("...a,...ab->...b", (5, 2, 4)), (3, 2), "(..., 2)"),
    ],
)
def test_sizes_of_axes(make: Made, given: tuple[int, ...], expected: str) -> None:
    with misfit(f"`Model.layer` takes `inputs` of shape {expected}, and got {given}"):
        Model(make(nnx.Rngs(0)))(jnp.ones(given))


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (equation("...a,abc->...b", (2, 4)), "kernel_shape=(2, 4) is no `abc` of `...a,abc->...b`"),
        (equation("...a,ab->...c", (2, 4)), "the result of `...a,ab->...c` has `c`, which no operand has"),
        (equation("...a,ab->...b", (2, 4), (5,)), "bias_shape=(5,) does not fit kernel_shape=(2, 4)"),
        (lambda r: nnx.Conv(3, 4, (3, 3), strides=(1, 1, 1), rngs=r), "strides=(1, 1, 1) and kernel_size=(3, 3)"),
        (
            lambda r: nnx.Conv(3, 4, 3, padding=[(1, 1), (1, 1)], rngs=r),
            "padding=((1, 1), (1, 1)) and kernel_size=(3,)",
        ),
        (lambda r: nnx.Conv(3, 4, 3, padding="SAMEISH", rngs=r), "padding='SAMEISH' is none that it knows"),
        (lambda r: nnx.Conv(3, 4, (3, 3), padding="CAUSAL", rngs=r), "causal padding has a meaning along one axis"),
        (lambda r: nnx.ConvTranspose(3, 4, 3, padding="CAUSAL", rngs=r), "padding='CAUSAL' is none that it knows"),
        (lambda r: nnx.ConvTranspose(3, 4, (3, 3), (1,), rngs=r), "strides=(1,) and kernel_size=(3, 3)"),
        (
            lambda r: nnx.WeightNorm(nnx.Linear(3, 4, rngs=r), feature_axes=2, rngs=r),
            "feature_axes=2, and a parameter has 2 axes",
        ),
        (
            lambda r: nnx.Embed(3, 4, param_dtype=jnp.int8, rngs=r),
            "`Embed`: `param_dtype` is int8, and its initializer does not make integers",
        ),
        (
            lambda r: nnx.LayerNorm(3, use_scale=jnp.ones(3), rngs=r),  # type: ignore[arg-type]
            "`LayerNorm`: whether it has a parameter is given as an array of float32 of shape (3,)",
        ),
        (lambda _: nnx.PReLU("steep"), "`PReLU`: `negative_slope_init` is 'steep', and not a number"),  # type: ignore[arg-type]
        (lambda _: nnx.PReLU(param_dtype=5), "`PReLU`: `param_dtype` is no dtype, but 5"),
        (lambda _: nnx.max_pool(X, 2), "window_shape=2 is one number"),  # type: ignore[arg-type]
        (lambda _: nnx.avg_pool(X, (2,), padding="SAMEISH"), "padding='SAMEISH', which is none of"),
    ],
)
def test_arguments(make: Made, problem: str) -> None:
    with pytest.raises(LayerArgumentError, match=re.escape(problem)):
        make(nnx.Rngs(0))


@pytest.mark.parametrize("rate", [None, "0.5", [0.5], 2j])
def test_a_rate_that_is_no_number(rate: Any) -> None:
    model = Model(nnx.Dropout(rate, rngs=nnx.Rngs(0)))
    assert model.layer(X, deterministic=True) is X
    with pytest.raises(LayerArgumentError, match=re.escape(f"`Model.layer`: `rate` is {rate!r}, and not a number")):
        model(X)


@pytest.mark.parametrize("rate", [np.float32(0.5), jnp.array(0.5), nnx.Variable(jnp.array(0.5))])
def test_a_rate_of_any_library(rate: Any) -> None:
    assert nnx.Dropout(rate, rngs=nnx.Rngs(0))(X).shape == X.shape


def test_integers_from_an_initializer_that_makes_them() -> None:
    layer = nnx.Linear(2, 3, kernel_init=nnx.initializers.ones, param_dtype=jnp.int32, rngs=nnx.Rngs(0))
    assert layer.kernel.dtype == jnp.int32


def test_what_each_axis_may_be_given() -> None:
    layer = nnx.Conv(3, 4, [3, 3], strides=[2, 1], padding=[1], rngs=nnx.Rngs(0))
    assert layer(jnp.ones((1, 5, 5, 3))).shape == (1, 3, 5, 4)
    assert nnx.Conv(3, 4, 3, padding="same_lower", rngs=nnx.Rngs(0))(jnp.ones((5, 3))).shape == (5, 4)


@pytest.mark.parametrize("layer", [nnx.BatchNorm, nnx.LayerNorm, nnx.RMSNorm, nnx.GroupNorm])
def test_norms(layer: Any) -> None:
    made = Model(layer(4, **({"num_groups": 2} if layer is nnx.GroupNorm else {}), rngs=nnx.Rngs(0)))
    with pytest.raises(LayerShapeError, match=r"`Model.layer` takes `x` of shape \(\.\.\., 4\), and got \(3, 5\)"):
        made(jnp.ones((3, 5)))
    with pytest.raises(LayerShapeError, match=r"of shape with the axes \(-1,\), and got \(\)"):
        made(jnp.ones(()))
    with pytest.raises(LayerShapeError, match=r"`mask` of shape \(3, 4\), and got \(7, 1\)"):
        made(jnp.ones((3, 4)), mask=jnp.ones((7, 1), bool))


def test_axes_of_norms() -> None:
    with pytest.raises(LayerShapeError, match=r"with the axes \(3,\), and got \(3, 4\)"):
        nnx.BatchNorm(4, axis=3, rngs=nnx.Rngs(0))(jnp.ones((3, 4)))
    with pytest.raises(LayerShapeError, match=r"with the axes \(-1, 1\), and got \(3, 4\)"):
        nnx.LayerNorm(4, reduction_axes=(-1, 1), rngs=nnx.Rngs(0))(jnp.ones((3, 4)))
    with pytest.raises(LayerShapeError, match=r"with 4 features along \(0, 1\), and got \(3, 4\)"):
        nnx.LayerNorm(4, feature_axes=(0, 1), rngs=nnx.Rngs(0))(jnp.ones((3, 4)))
    with pytest.raises(LayerShapeError, match=r"`inputs` of shape with the axes \(4,\), and got \(2, 5\)"):
        nnx.Dropout(0.5, broadcast_dims=(4,), rngs=nnx.Rngs(0))(jnp.ones((2, 5)))


@pytest.mark.parametrize(
    "given", [(2, 1, 4, 5), (2, 1, 5, 6), (3, 1, 5, 5), (2, 3, 5, 5), (2, 1, 1, 5, 5), (4,), (2, 5, 5)], ids=str
)
def test_masks(given: tuple[int, ...]) -> None:
    layer = Model(nnx.MultiHeadAttention(**ATTENTION, rngs=nnx.Rngs(0)))
    with misfit(f"`Model.layer > dot_product_attention` takes `mask` of shape (2, 4, 5, 5), and got {given}"):
        layer(X, mask=jnp.ones(given, bool))


def test_attention() -> None:
    layer = Model(nnx.MultiHeadAttention(**ATTENTION, rngs=nnx.Rngs(0)))
    for mask in (jnp.ones((5, 5), bool), jnp.ones((1, 1, 1, 5)), jnp.ones((2, 4, 5, 5), int)):
        assert layer(X, mask=mask).shape == X.shape
    with pytest.raises(LayerArgumentError, match=r"`Model.layer > dot_product_attention`: .*lengths must match"):
        layer(X, X, X[:, :4])
    with pytest.raises(LayerShapeError, match=r"`Model.layer` takes `inputs_q` of shape \(\.\.\., places, 8\)"):
        layer(X[0, 0])
    layer.layer.init_cache((2, 5, 8))
    with pytest.raises(LayerShapeError, match=r"takes `mask` of shape \(2, 4, 1, 5\), and got \(2, 1, 1, 4\)"):
        layer(X[:, :1], decode=True, mask=jnp.ones((2, 1, 1, 4)))
    q = jnp.ones((5, 4, 2))
    with pytest.raises(LayerShapeError, match=r"^`dot_product_attention` takes `bias` of shape \(4, 5, 5\), and got"):
        nnx.dot_product_attention(q, q, q, bias=jnp.ones((4, 5, 6)))


CELLS = [nnx.LSTMCell, nnx.OptimizedLSTMCell, nnx.GRUCell, nnx.SimpleCell]


@pytest.mark.parametrize("cell", CELLS)
def test_carries(cell: Any) -> None:
    made = cell(3, 4, rngs=nnx.Rngs(0))
    pair = cell in CELLS[:2]

    def carry(*shape: int) -> Any:
        return (jnp.ones((2, 4)), jnp.ones(shape)) if pair else jnp.ones(shape)

    x = jnp.ones((2, 3))
    assert jax.tree.leaves(made(carry(1, 4), x))[0].shape == (2, 4)
    for shape in [(3, 4), (2, 5), ()]:
        with misfit(f"`Model.layer` takes `carry` of shape (2, 4), and got {shape}"):
            Model(made)(carry(*shape), x)
    wrong, message = (jnp.ones((2, 4)), "a pair of arrays") if pair else ((x, x), "one array, and it got 2 of them")
    with pytest.raises(LayerArgumentError, match=f"`Model.layer`: its carry is {message}"):
        Model(made)(wrong, x)
    rnn = Model(nnx.RNN(made))
    with pytest.raises(LayerShapeError, match=rf"`Model.layer > {cell.__name__}` takes `carry` of shape \(2, 4\)"):
        rnn(jnp.ones((2, 5, 3)), initial_carry=carry(3, 4))


def test_sequences() -> None:
    rnn = Model(nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))))
    with pytest.raises(LayerShapeError, match=r"`Model.layer > GRUCell.dense_i` takes `inputs` of shape \(\.\.\., 3\)"):
        rnn(jnp.ones((2, 5, 7)))
    with pytest.raises(LayerShapeError, match=r"`inputs` of shape \(\.\.\., time, axis\), and got \(3,\)"):
        rnn(jnp.ones(3))
    for time_major in (False, True):
        x = jnp.ones((5, 2, 3) if time_major else (2, 5, 3))
        with pytest.raises(LayerShapeError, match=r"`seq_lengths` of shape \(2,\), and got \(3,\)"):
            rnn(x, seq_lengths=jnp.ones(3, int), return_carry=True, time_major=time_major)
    with pytest.raises(LayerArgumentError, match=r"`Model.layer` takes `seq_lengths` of integers, and got float32"):
        rnn(jnp.ones((2, 5, 3)), seq_lengths=jnp.ones(2))


def test_base_of_lora() -> None:
    layer = nnx.LoRA(3, 2, 4, base_module=nnx.Linear(3, 5, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(0))
    with pytest.raises(
        LayerShapeError, match=r"`LoRA` takes `base_module\(x\)` of shape \(\.\.\., 4\), and got \(2, 5\)"
    ):
        layer(jnp.ones((2, 3)))


def test_lists_are_arrays() -> None:
    layer = nnx.Linear(3, 4, rngs=nnx.Rngs(0))
    assert jnp.array_equal(layer([1.0, 2.0, 3.0]), layer(jnp.array([1.0, 2.0, 3.0])))
    assert layer([jnp.ones(3), jnp.zeros(3)]).shape == (2, 4)


def unfit(message: str) -> Any:
    """The error about an argument of a constructor that begins with a line; flax raises a TypeError for it."""
    return pytest.raises(LayerArgumentError, match=rf"^{re.escape(message)}\n")


SIZED: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Linear": (nnx.Linear, {"in_features": 3, "out_features": 4}),
    "LoRALinear": (nnx.LoRALinear, {"in_features": 3, "out_features": 4, "lora_rank": 2}),
    "LoRA": (nnx.LoRA, {"in_features": 3, "lora_rank": 2, "out_features": 4}),
    "LinearGeneral": (nnx.LinearGeneral, {"in_features": 3, "out_features": 4}),
    "Einsum": (nnx.Einsum, {"einsum_str": "...a,ab->...b", "kernel_shape": (3, 4)}),
    "Conv": (nnx.Conv, {"in_features": 3, "out_features": 4, "kernel_size": 3}),
    "ConvTranspose": (nnx.ConvTranspose, {"in_features": 3, "out_features": 4, "kernel_size": 3}),
    "Embed": (nnx.Embed, {"num_embeddings": 3, "features": 4}),
    "MultiHeadAttention": (nnx.MultiHeadAttention, {"num_heads": 2, "in_features": 4}),
    "GroupNorm": (nnx.GroupNorm, {"num_features": 4, "num_groups": 2}),
    **{norm.__name__: (norm, {"num_features": 4}) for norm in (nnx.BatchNorm, nnx.LayerNorm, nnx.RMSNorm)},
    **{cell.__name__: (cell, {"in_features": 3, "hidden_features": 4}) for cell in CELLS},
}


@pytest.mark.parametrize("name", SIZED)
def test_sizes(name: str) -> None:
    make, arguments = SIZED[name]
    for argument, given in arguments.items():
        if isinstance(given, str):
            continue
        for wrong in (-2, 2.5, "3", *((None,) if argument != "num_groups" else ())):
            with pytest.raises(TypeError, match=rf"^`\w+`: {argument}=\(?{wrong!r},?\)? is no size\n"):
                make(**{**arguments, argument: wrong}, rngs=nnx.Rngs(0))


def test_sizes_of_other_types() -> None:
    alike: list[Any] = [np.int64(3), jnp.int32(3)]
    for size in alike:
        assert nnx.Linear(size, 4, rngs=nnx.Rngs(0)).kernel.shape == (3, 4)
    assert nnx.Linear(0, 4, kernel_init=nnx.initializers.zeros, rngs=nnx.Rngs(0)).kernel.shape == (0, 4)

    def scaled(key: Any, shape: Any, dtype: Any) -> Any:  # as those of JAX before 0.12
        return jnp.ones(shape, dtype) / (1 // shape[0])

    with unfit("`Linear`: a parameter of shape (0, 4) has no scale to be initialised with"):
        nnx.Linear(0, 4, kernel_init=scaled, rngs=nnx.Rngs(0))


@pytest.mark.parametrize("make", [nnx.Linear, nnx.LinearGeneral, nnx.LoRA])
def test_what_parameters_are_made_with(make: Any) -> None:
    name = make.__name__
    layer = functools.partial(make, 3, 4, **({"out_features": 5} if make is nnx.LoRA else {}))
    for wrong, shown in ((jax.random.key(0), "an array of key<fry>"), (0, "0")):
        with pytest.raises(AttributeError, match=rf"^`{name}` needs `nnx.Rngs` as its `rngs`, and gets {shown}\n"):
            layer(rngs=wrong)
    init = "a_initializer" if make is nnx.LoRA else "kernel_init"
    with unfit(f"`{name}`: an initializer is 0.02, which cannot be called"):
        layer(rngs=nnx.Rngs(0), **{init: 0.02})
    with unfit(f"`{name}`: `param_dtype` is no dtype, but 'floaty'"):
        layer(rngs=nnx.Rngs(0), param_dtype="floaty")

    def broken(*_: Any) -> Any:
        raise ValueError("of its own")

    with pytest.raises(ValueError, match=r"^of its own$"):
        layer(rngs=nnx.Rngs(0), **{init: broken})
