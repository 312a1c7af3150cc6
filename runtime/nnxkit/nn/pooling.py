"""Pooling: one number for each window, by features. Inputs are ``(batch..., spatial..., features)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nnx_rules.layers import PADDINGS
from nnx_rules.rules import modules as rules

Padding = str | Sequence[tuple[int, int]]


def pool(
    inputs: jax.Array,
    init: Any,
    reduce_fn: Callable[..., Any],
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Padding,
) -> jax.Array:
    """Reduce windows with any function.

    Args:
        inputs: of shape ``(batch..., spatial..., features)``, with any number of batch axes.
        init: the value to begin with.
        reduce_fn: combines two values.
        window_shape: size of the window along each spatial axis.
        strides: steps of the window; one by default.
        padding: ``"SAME"``, ``"VALID"``, or a pair of numbers for each spatial axis.

    Returns:
        An array with the axes of the inputs.

    Raises:
        LayerArgumentError: the inputs have fewer axes than the window, ``strides`` or ``padding`` another number, or
            the padding another name; or a number is given for all axes.
    """
    for name, given in (("window_shape", window_shape), ("strides", strides)):
        if isinstance(given, int):
            raise rules.LAYER_ARGUMENTS.error(
                cls="pool", problem=f"{name}={given} is one number", mend="give one for each axis: `(2, 2)` for images"
            )
    count = len(window_shape)
    steps = tuple(strides or (1,) * count)
    pairs = padding if isinstance(padding, str) else tuple(padding)
    wrong = (
        (inputs.ndim < count + 1, f"a window of {count} axes, and inputs of shape {inputs.shape}"),
        (len(steps) != count, f"a window of {count} axes, and strides={steps}"),
        (not isinstance(pairs, str) and len(pairs) != count, f"a window of {count} axes, and padding={pairs}"),
        (isinstance(pairs, str) and pairs.upper() not in PADDINGS, f"padding={pairs!r}, which is none of {PADDINGS}"),
    )
    for problem, text in wrong:
        if problem:
            raise rules.LAYER_ARGUMENTS.error(
                cls="pool", problem=text, mend="inputs are (batch..., spatial..., features), and the window is spatial"
            )
    batch = (1,) * (inputs.ndim - count - 1)
    y: jax.Array = lax.reduce_window(
        inputs,
        init,
        reduce_fn,
        (*batch, *window_shape, 1),
        (*batch, *steps, 1),
        pairs if isinstance(pairs, str) else (*((0, 0) for _ in batch), *pairs, (0, 0)),
    )
    return y


def avg_pool(
    inputs: jax.Array,
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    count_include_pad: bool = True,
) -> jax.Array:
    """The mean of each window; see :func:`pool`.

    Args:
        inputs: of shape ``(batch..., spatial..., features)``.
        window_shape: size of the window along each spatial axis.
        strides: steps of the window; one by default.
        padding: ``"SAME"``, ``"VALID"``, or a pair of numbers for each spatial axis.
        count_include_pad: whether padding counts as elements.

    Raises:
        LayerArgumentError: the numbers of axes do not go together.
    """
    total = pool(inputs, 0.0, lax.add, window_shape, strides, padding)
    if count_include_pad:
        size = 1
        for length in window_shape:
            size *= length
        return total / size
    ones = jnp.ones((*inputs.shape[:-1], 1))  # counts are exact in float32
    return total / pool(ones, 0.0, lax.add, window_shape, strides, padding)


def max_pool(
    inputs: jax.Array, window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID"
) -> jax.Array:
    """The largest of each window; see :func:`pool`.

    Raises:
        LayerArgumentError: the numbers of axes do not go together.
    """
    return pool(inputs, -jnp.inf, lax.max, window_shape, strides, padding)


def min_pool(
    inputs: jax.Array, window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID"
) -> jax.Array:
    """The smallest of each window; see :func:`pool`.

    Raises:
        LayerArgumentError: the numbers of axes do not go together.
    """
    return pool(inputs, jnp.inf, lax.min, window_shape, strides, padding)
