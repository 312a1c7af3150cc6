"""Shapes of built-in layers from constructor arguments. That they are right is tested against flax by the drawing."""

import pytest

from nnx_rules import api
from nnx_rules.shapes import DEFAULTS, DIMENSIONS, DTYPES, UNTABLED, Form, Symbol, form, size


def test_numbers_make_numbers():
    assert form("nnx.Linear", ("kernel",), {"in_features": 2, "out_features": 3}) == Form((2, 3), "float32")


def test_what_is_not_known_stays_a_name_through_arithmetic():
    arguments = {"in_features": Symbol("a + b"), "hidden_features": Symbol("h"), "param_dtype": "bfloat16"}

    assert form("nnx.GRUCell", ("dense_i", "kernel"), arguments) == Form(("a + b", "3 * h"), "bfloat16")


def test_arguments_that_are_not_given_have_defaults_which_may_be_other_arguments():
    arguments = {"num_heads": 2, "in_features": 8, "qkv_features": None}

    assert form("nnx.MultiHeadAttention", ("key", "kernel"), arguments) == Form((8, 2, 4), "float32")


def test_a_shape_of_any_length_is_spliced():
    assert form("nnx.Conv", ("kernel",), {"in_features": 3, "out_features": 4, "kernel_size": 5}).shape == (5, 3, 4)
    assert form("nnx.Conv", ("kernel",), {"in_features": 3, "out_features": 4, "kernel_size": Symbol("k")}).shape == (
        "*k",
        3,
        4,
    )


def test_a_quotient_that_does_not_divide_is_not_known():
    arguments = {"in_features": 3, "out_features": 4, "kernel_size": 1, "feature_group_count": 2}

    assert form("nnx.Conv", ("kernel",), arguments).shape == (1, "?", 4)


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, pairs in UNTABLED.items() for option in pairs])
def test_an_option_that_the_table_does_not_tell_of_leaves_the_shape_open(name, option):
    path = tuple(next(iter(DIMENSIONS[name])).split("."))
    arguments = dict.fromkeys(("in_features", "out_features", "num_features", "kernel_size"), 4)

    assert form(name, path, arguments).shape is not None
    assert form(name, path, {**arguments, option[0]: "something else"}).shape is None


def test_what_the_table_lacks_is_not_known():
    assert form("nnx.Linear", ("scale",), {}) is None
    assert form("nnx.List", ("0",), {}) is None


def test_dtypes_that_no_argument_decides():
    assert form("nnx.BatchNorm", ("mean",), {"num_features": 3, "param_dtype": "bfloat16"}).dtype == "float32"


@pytest.mark.parametrize(("shape", "count"), [((), 1), ((2, 3), 6), ((2, Symbol("n")), None), ((0, 3), 0)])
def test_sizes(shape, count):
    assert size(shape) == count


def test_the_tables_are_about_classes_that_exist():
    named = {*DIMENSIONS, *DEFAULTS, *UNTABLED, *(name for name, _ in DTYPES)}

    assert named <= set(api.CLASSES)
    assert all(path in DIMENSIONS[name] for name, path in DTYPES)
