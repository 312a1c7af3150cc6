"""Patterns of axes: what comes out of them, and what cannot be taken apart by them."""

from __future__ import annotations

import pytest

from nnx_rules.axis_patterns import Pattern, parsed, problem, result
from nnx_rules.shapes import UNKNOWN, Dimension, Shape
from nnx_rules.sizes import named, times


def pattern(text: str) -> Pattern:
    found = parsed(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "shape", "sizes", "expected"),
    [
        ("b (h w) c -> b h w c", (2, 12, 7), {"h": 4}, (2, 4, 3, 7)),
        ("b h w c -> b (h w) c", (2, 4, 3, 7), {}, (2, 12, 7)),
        ("b h w c->b c h w", (2, 4, 3, 7), {}, (2, 7, 4, 3)),
        ("b c -> b 1 1 c", (2, 7), {}, (2, 1, 1, 7)),
        ("b s c -> b s (r c)", (2, 3, 4), {"r": 5}, (2, 3, 20)),
        ("b s c -> b c", (2, 3, 4), {}, (2, 4)),
        ("b s (h d) -> b h s d", (UNKNOWN, 3, times(4, named("dim"))), {"h": 4}, (UNKNOWN, 4, 3, "dim")),
        ("b ... c -> b c", (2, 3, 4, 5), {}, (2, 5)),
        ("b ... -> b (...)", (2, 3, 4), {}, None),
        ("b c -> c b", None, {"b": 2}, (UNKNOWN, 2)),
        ("b (h w) -> b h w", (2, 7), {"h": 2}, None),
    ],
)
def test_the_shape_that_a_pattern_gives(
    text: str, shape: Shape | None, sizes: dict[str, Dimension], expected: Shape | None
) -> None:
    assert result(pattern(text), shape, sizes) == expected


@pytest.mark.parametrize(
    ("text", "shape", "sizes", "said"),
    [
        ("b (h w) -> b h w", None, {}, "neither `h` nor `w`"),
        ("b (h w) -> b h w", None, {"h": 2}, None),
        ("b (h w) -> b h w", (2, 7), {"h": 2}, "axis `(h w)` does not go with an axis of size 7"),
        ("b h -> h b", (2, 3, 4), {}, "names 2 axes, and the array has 3"),
        ("b ... c -> b c", (2, 3, 4), {"c": 5}, "axis `c` does not go with an axis of size 4"),
        ("b () c -> b c", (2, 3, 4), {}, "does not go with an axis of size 3"),
        ("b 1 c -> b c", (2, 1, 4), {}, None),
        ("b (h w) -> b h w", (2, UNKNOWN), {"h": 2}, None),
        ("b (2 h) -> b h", (2, 7), {}, "does not go with an axis of size 7"),
    ],
)
def test_what_no_array_can_be_taken_apart_by(
    text: str, shape: Shape | None, sizes: dict[str, Dimension], said: str | None
) -> None:
    found = problem(pattern(text), shape, sizes)
    assert found is None if said is None else found is not None and said in found


@pytest.mark.parametrize("text", ["b c", "b (c -> b c", "b b -> b", "b [c] -> b"])
def test_what_is_no_pattern(text: str) -> None:
    assert parsed(text) is None
