"""Objects for the tests of ``nnx.vmap``."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import nnxkit as nnx

XS = jnp.arange(3.0)


class Scale(nnx.Module):
    """A parameter and a statistic, each with one value or with one for each element."""

    def __init__(self, w: Any = (1.0, 2.0, 3.0), b: Any = (0.0, 0.0, 0.0)) -> None:
        self.w = nnx.Param(jnp.asarray(w))
        self.b = nnx.BatchStat(jnp.asarray(b))

    def __call__(self, x: Any) -> Any:
        return self.w * x


def single() -> Scale:
    return Scale(2.0, 1.0)


def close(value: Any, expected: Any) -> bool:
    return np.array_equal(np.asarray(value), np.asarray(expected))
