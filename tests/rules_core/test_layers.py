"""What built-in layers ask of their arguments and inputs; the layers themselves are asked in tests/conformance."""

import pytest

from nnx_rules import layers
from nnx_rules.layers import ANY, call, problem, window
from nnx_rules.shapes import UNKNOWN, Form, Symbol


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("nnx.GroupNorm", {"num_features": 6}, "6 features cannot be divided: 32 groups"),
        ("nnx.GroupNorm", {"num_features": 6, "num_groups": 3}, None),
        ("nnx.GroupNorm", {"num_features": 6, "num_groups": None, "group_size": 4}, "6 features cannot be divided"),
        ("nnx.GroupNorm", {"num_features": 6, "group_size": 3}, "exactly one has to be given"),
        ("nnx.GroupNorm", {"num_features": Symbol("n")}, None),
        ("nnx.GroupNorm", {"num_features": 6, "num_groups": UNKNOWN}, None),
        (
            "nnx.MultiHeadAttention",
            {"num_heads": 3, "in_features": 8},
            "qkv_features=8 cannot be divided by num_heads=3",
        ),
        ("nnx.MultiHeadAttention", {"num_heads": 3, "in_features": 8, "qkv_features": 9}, None),
        ("nnx.MultiHeadAttention", {"num_heads": 4, "in_features": 8, "num_kv_heads": 3}, "num_heads=4 cannot be"),
        ("nnx.Conv", {"in_features": 3, "out_features": 8}, None),
        ("nnx.Conv", {"in_features": 4, "out_features": 6, "feature_group_count": 4}, "out_features=6 cannot be"),
        ("nnx.Einsum", {"einsum_str": "ij,jk"}, "is not an equation"),
        ("nnx.Einsum", {"einsum_str": "...i,ij->...j"}, None),
        ("nnx.Linear", {"in_features": 0}, None),
    ],
)
def test_arguments_that_do_not_go_together(name, arguments, said):
    found = problem(name, arguments)

    assert (found is None) == (said is None)
    if found is not None and said is not None:
        assert said in found.problem


@pytest.mark.parametrize(
    ("name", "arguments", "given", "result"),
    [
        ("nnx.Linear", {"in_features": 4, "out_features": 8}, (2, 4), (2, 8)),
        ("nnx.Linear", {"in_features": 4, "out_features": 8}, None, (ANY, 8)),
        ("nnx.Linear", {"in_features": 4, "out_features": UNKNOWN}, (2, 4), (2, UNKNOWN)),
        ("nnx.Embed", {"num_embeddings": 3, "features": 8}, (2, 5), (2, 5, 8)),
        ("nnx.LayerNorm", {"num_features": 8}, (2, 8), (2, 8)),
        ("nnx.LayerNorm", {"num_features": 8}, None, (ANY, 8)),
        ("nnx.Dropout", {"rate": 0.5}, (2, 8), (2, 8)),
        ("nnx.MultiHeadAttention", {"num_heads": 2, "in_features": 8}, (2, 5, 8), (2, 5, 8)),
        ("nnx.Conv", {"in_features": 1, "out_features": 8, "kernel_size": (3, 3)}, (2, 9, 9, 1), (2, 9, 9, 8)),
        (
            "nnx.Conv",
            {"in_features": 1, "out_features": 8, "kernel_size": (3, 3), "strides": 2, "padding": "VALID"},
            (2, 9, 8, 1),
            (2, 4, 3, 8),
        ),
        ("nnx.ConvTranspose", {"in_features": 1, "out_features": 8}, (2, 9, 9, 1), (2, 9, 9, 8)),
    ],
)
def test_what_comes_out_of_a_layer(name, arguments, given, result):
    form, wrong = call(name, arguments, Form(given))

    assert wrong is None
    assert form is not None
    assert form.shape == result


@pytest.mark.parametrize(
    ("name", "arguments", "given", "expected"),
    [
        ("nnx.Linear", {"in_features": 4, "out_features": 8}, Form((2, 3)), "(..., 4)"),
        ("nnx.Linear", {"in_features": 4, "out_features": 8}, Form((ANY, 3)), "(..., 4)"),
        ("nnx.Linear", {"in_features": 4, "out_features": 8}, Form((4, UNKNOWN)), None),
        ("nnx.BatchNorm", {"num_features": 4}, Form((2, 3)), "(..., 4)"),
        ("nnx.BatchNorm", {"num_features": 4, "axis": 1}, Form((2, 3)), None),
        ("nnx.LayerNorm", {"num_features": 4}, Form((2, 1)), None),
        ("nnx.LayerNorm", {"num_features": 1}, Form((2, 4)), None),
        ("nnx.Embed", {"num_embeddings": 4, "features": 2}, Form((2,), "float32"), "integers"),
        ("nnx.Embed", {"num_embeddings": 4, "features": 2}, Form((2,), "int32"), None),
        ("nnx.Unheard", {"in_features": 4}, Form((2, 3)), None),
    ],
)
def test_what_a_layer_cannot_take(name, arguments, given, expected):
    _, wrong = call(name, arguments, given)

    assert (wrong.expected if wrong is not None else None) == expected


@pytest.mark.parametrize(
    ("axes", "size", "strides", "padding", "result"),
    [
        ((8, 8), (2, 2), (2, 2), "VALID", (4, 4)),
        ((8, 8), (3, 3), None, "VALID", (6, 6)),
        ((7,), 3, 2, "SAME", (4,)),
        ((7, UNKNOWN), 3, 2, "SAME", (4, UNKNOWN)),
        ((7,), (3, 3), 1, "VALID", (UNKNOWN,)),
        ((2,), 3, 1, "VALID", (UNKNOWN,)),
        ((7,), 3, 1, ((1, 1),), (7,)),
    ],
)
def test_a_window_that_goes_along_axes(axes, size, strides, padding, result):
    assert window(axes, size, strides, padding) == result


def test_shapes_are_shown_as_in_python():
    assert [layers.shown(shape) for shape in ((2, 8), (8,), (ANY, 16), (4, UNKNOWN, 16))] == [
        "(2, 8)",
        "(8,)",
        "(..., 16)",
        "(4, ?, 16)",
    ]
