"""What the rules say of layers, against the layers: they fail where the rules say so, and else give these shapes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnx_rules import layers
from nnx_rules.errors import LayerArgumentError, LayerShapeError
from nnx_rules.shapes import Form

jax = pytest.importorskip("jax")
nnx = pytest.importorskip("nnxkit")

SIZES = st.integers(2, 5)
AXES = st.lists(st.integers(3, 6), min_size=2, max_size=2)


NAMES = (
    *("Linear", "LinearGeneral", "Einsum", "LayerNorm", "RMSNorm", "GroupNorm", "MultiHeadAttention"),
    *("Conv", "ConvTranspose", "LoRA"),
)


@st.composite
def made(draw: st.DrawFn) -> tuple[str, dict[str, object], tuple[int, ...]]:
    """A class of layers, its constructor arguments, and the shape of an input."""
    name = draw(st.sampled_from(NAMES))
    size, last, out = draw(SIZES), draw(SIZES), draw(SIZES)
    arguments: dict[str, object] = {
        "Linear": {"in_features": size, "out_features": out},
        "LayerNorm": {"num_features": size},
        "RMSNorm": {"num_features": size},
        "GroupNorm": {"num_features": size, "num_groups": out},
        "MultiHeadAttention": {"num_heads": out, "in_features": size, "decode": False},
        "Conv": {
            "in_features": size,
            "out_features": out,
            "kernel_size": (draw(st.integers(1, 3)), 2),
            "strides": draw(st.sampled_from([1, 2, (1, 2)])),
            "padding": draw(st.sampled_from(["SAME", "VALID", "CIRCULAR", 1, ((0, 1), (2, 0))])),
            "kernel_dilation": draw(st.sampled_from([1, (1, 2)])),
        },
        "ConvTranspose": {
            "in_features": size,
            "out_features": out,
            "kernel_size": (draw(st.integers(1, 3)), 2),
            "strides": draw(st.sampled_from([1, 2, (1, 2)])),
            "padding": draw(st.sampled_from(["SAME", "VALID"])),
        },
        "LinearGeneral": draw(
            st.sampled_from(
                [
                    {"in_features": size, "out_features": (out, 2)},
                    {"in_features": (4, size), "out_features": out, "axis": (-2, -1)},
                    {"in_features": 2, "out_features": (out,), "axis": 0},
                ]
            )
        ),
        "Einsum": {
            "einsum_str": draw(st.sampled_from(["...i,ij->...j", "abci,ij->abcj", "...bi,ij->...jb"])),
            "kernel_shape": (size, out),
            "bias_shape": None,
        },
        "LoRA": {"in_features": size, "lora_rank": 2, "out_features": out},
    }[name]
    return f"nnx.{name}", arguments, (2, *draw(AXES), last)


@settings(max_examples=40, deadline=None)
@given(made())
def test_layers_do_what_the_rules_say(drawn: tuple[str, dict[str, object], tuple[int, ...]]) -> None:
    name, arguments, shape = drawn
    kind = getattr(nnx, name.removeprefix("nnx."))
    options = dict(arguments)
    if name == "nnx.LoRA":
        positional = [options.pop(key) for key in ("in_features", "lora_rank", "out_features")]
    else:
        positional = []
    wrong = layers.problem(name, arguments)
    if wrong is not None:
        with pytest.raises(LayerArgumentError, match="cannot be divided"):
            kind(*positional, **options, rngs=nnx.Rngs(0))
        return
    layer = kind(*positional, **options, rngs=nnx.Rngs(0))

    form, mismatch = layers.call(name, arguments, Form(shape, "float32"))

    inputs = jax.ShapeDtypeStruct(shape, "float32")
    if mismatch is not None:
        # JAX itself says it of layers that look at axes in ways of their own.
        general = name in {"nnx.LinearGeneral", "nnx.Einsum"}
        error = (LayerShapeError, TypeError, ValueError) if general else LayerShapeError
        with pytest.raises(error, match="dot_general|einsum|Einstein|size" if general else "takes `"):
            jax.eval_shape(layer, inputs)
    else:
        assert form is not None
        assert jax.eval_shape(layer, inputs).shape == form.shape
