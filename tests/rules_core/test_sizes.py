"""Sizes by their names: what is said of them holds for all numbers that the names may stand for."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_rules import sizes
from nnx_rules.shapes import UNKNOWN, Dimension
from nnx_rules.sizes import Size, differ, divided, is_local, minus, named, plus, shared, times, two_names, where

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("a", "b", "c")
DIM, HIDDEN = named("dim"), named("hidden")

Pair = tuple[Dimension, "Callable[[dict[str, int]], int]"]
"""A size, and how to compute the number that it is."""


def _leaf(name: str) -> Pair:
    return named(name), lambda values: values[name]


def _number(value: int) -> Pair:
    return value, lambda values: value


def _both(name: str, left: Pair, right: Pair) -> Pair:
    function = {"Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "FloorDiv": operator.floordiv}[name]
    return sizes.OPERATIONS[name](left[0], right[0]), lambda values: function(left[1](values), right[1](values))


def _expressions() -> st.SearchStrategy[Pair]:
    leaves = st.sampled_from(NAMES).map(_leaf) | st.integers(1, 6).map(_number)
    sums = ("Add", "Sub", "Mult")
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(_both, st.sampled_from(sums), inner, inner)
            | st.builds(_both, st.just("FloorDiv"), inner, st.integers(1, 4).map(_number))
        ),
        max_leaves=6,
    )


VALUES = st.fixed_dictionaries({name: st.integers(1, 12) for name in NAMES})


@given(_expressions(), VALUES)
def test_arithmetic_gives_the_number_that_the_program_computes(pair: Pair, values: dict[str, int]) -> None:
    size, compute = pair
    number = compute(values)
    if isinstance(size, int):
        assert size == number
    elif isinstance(size, Size) and not size.rounded:
        assert where(size, values.__getitem__) == number
    elif isinstance(size, Size):
        bound = sum(count * values_of(product, values) for product, count in size.terms.items())
        assert number <= bound


def values_of(product: tuple[str, ...], values: dict[str, int]) -> int:
    number = 1
    for name in product:
        number *= values[name]
    return number


@given(_expressions(), _expressions(), VALUES)
def test_sizes_that_differ_are_never_the_same_number(left: Pair, right: Pair, values: dict[str, int]) -> None:
    one, other = left[1](values), right[1](values)
    if differ(left[0], right[0]) and min(one, other) > 0:
        assert one != other


@given(_expressions())
def test_no_size_differs_from_itself(pair: Pair) -> None:
    assert not differ(pair[0], pair[0])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (times(4, DIM), DIM),
        (plus(DIM, 1), DIM),
        (divided(DIM, 2), DIM),
        (times(2, plus(DIM, HIDDEN)), plus(DIM, HIDDEN)),
        (3, 4),
    ],
)
def test_more_of_the_same_differs(left: Dimension, right: Dimension) -> None:
    assert differ(left, right)
    assert differ(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (DIM, HIDDEN),
        (times(4, DIM), HIDDEN),
        (DIM, 4),
        (plus(DIM, HIDDEN), DIM),  # there may be nothing to add
        (times(DIM, HIDDEN), DIM),
        (times(2, divided(DIM, 2)), DIM),
        (divided(DIM, 2), divided(DIM, 3)),
        (UNKNOWN, DIM),
    ],
)
def test_what_may_be_equal_does_not_differ(left: Dimension, right: Dimension) -> None:
    assert not differ(left, right)
    assert not differ(right, left)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (times(4, DIM), "4*dim"),
        (plus(DIM, HIDDEN), "hidden + dim"),
        (minus(DIM, 1), "dim - 1"),
        (divided(DIM, 2), "dim//2"),
        (divided(times(HIDDEN, DIM), HIDDEN), "dim"),
        (shared(times(2, DIM), 2), "dim"),
        (divided(DIM, HIDDEN), "dim//hidden"),
        (minus(DIM, divided(DIM, 2)), "?"),
        (minus(DIM, DIM), 0),
        (times(minus(DIM, HIDDEN), divided(DIM, 2)), "?"),  # one may be the larger one
    ],
)
def test_a_size_reads_as_it_is_computed(size: Dimension, text: object) -> None:
    assert size == text


def test_a_size_is_known_where_its_names_are() -> None:
    assert where(times(4, DIM), {"dim": 16}.__getitem__) == 64
    assert where(times(4, DIM), {"dim": times(2, HIDDEN)}.__getitem__) == "8*hidden"
    assert where(plus(DIM, HIDDEN), {"dim": 16, "hidden": UNKNOWN}.__getitem__) == UNKNOWN


HEADS, WIDTH = named("heads"), divided(DIM, named("heads"))


@pytest.mark.parametrize(
    ("left", "right", "names"),
    [
        (DIM, HIDDEN, ("dim", "hidden")),
        (times(4, DIM), times(4, HIDDEN), ("dim", "hidden")),
        (times(HEADS, HIDDEN), times(DIM, HIDDEN), ("heads", "dim")),
        (times(HEADS, HIDDEN), HIDDEN, ("heads", 1)),
        (times(2, HIDDEN), times(HEADS, HIDDEN), (2, "heads")),
        (DIM, 64, ("dim", 64)),
        (DIM, WIDTH, ("heads", 1)),  # as many times as there are heads
        (times(HEADS, WIDTH), DIM, None),
        (DIM, times(4, HIDDEN), None),
        (times(DIM, HIDDEN), HEADS, None),
        (plus(DIM, 1), HIDDEN, None),
        (divided(times(3, DIM), 2), HIDDEN, None),
        (DIM, UNKNOWN, None),
        (8, 4, None),
    ],
)
def test_the_names_that_tell_two_sizes_apart(left: Dimension, right: Dimension, names: object) -> None:
    assert two_names(left, right) == names


def test_a_size_of_one_function_is_no_size_of_another() -> None:
    assert is_local(times(2, named("length@12")))
    assert not is_local(times(2, DIM))
    assert not is_local(8)
    assert where(times(2, named("length@12")), lambda name: UNKNOWN) == UNKNOWN
    assert where(divided(DIM, HEADS), {"dim": 12, "heads": 4}.__getitem__) == 3
