"""Objects for the tests of ``nnx.scan``."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

import nnxkit as nnx

XS = jnp.arange(3.0)


class Model(nnx.Module):
    """With ``shape=(n,)`` what a vmap over n would have made."""

    def __init__(self, w: Any = 2.0, shape: tuple[int, ...] = ()) -> None:
        self.w = nnx.Param(jnp.broadcast_to(jnp.asarray(w, jnp.float32), shape))
        self.total = nnx.BatchStat(jnp.zeros(shape))
        self.mode = "idle"

    def add(self, x: Any) -> Any:
        self.total[...] += x
        return x * self.w

    def step(self, carry: Any, x: Any) -> Any:
        return carry + self.add(x), x

    def __call__(self, carry: Any, x: Any) -> Any:
        return self.step(carry, x)


class Layer(nnx.Module):
    def __init__(self, size: int, *, rngs: nnx.Rngs) -> None:
        self.linear = nnx.Linear(size, size, rngs=rngs)
        self.calls = nnx.Variable(jnp.zeros((), jnp.int32))

    def __call__(self, x: Any) -> Any:
        self.calls[...] += 1
        return jnp.tanh(self.linear(x))


def stack(count: int, size: int) -> Layer:
    @nnx.split_rngs(splits=count)
    @nnx.vmap
    def make(rngs: nnx.Rngs) -> Layer:
        return Layer(size, rngs=rngs)

    return make(nnx.Rngs(0))  # type: ignore[no-any-return]
