"""Transforms inside transforms: all nestings of depth three agree with plain Python, in results, state, gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx

SIZE = 3


class Layer(nnx.Module):
    """A layer that counts its calls and remembers what it saw."""

    def __init__(self) -> None:
        self.kernel = nnx.Param(jnp.linspace(-1.0, 1.0, SIZE * SIZE).reshape(SIZE, SIZE))
        self.bias = nnx.Param(jnp.linspace(0.1, 0.3, SIZE))
        self.calls = nnx.Variable(jnp.array(0))
        self.scale = nnx.BatchStat(jnp.array(1.0))

    def __call__(self, x: jax.Array) -> jax.Array:
        self.calls[...] += 1
        self.scale[...] = self.scale * 0.9
        return jnp.tanh(x @ self.kernel + self.bias) * self.scale


Function = Callable[[Layer, jax.Array], jax.Array]


def in_scan(f: Function) -> Function:
    step = nnx.scan(lambda m, x: (m, f(m, x)), in_axes=(nnx.Carry, 0), out_axes=(nnx.Carry, 0))
    return lambda m, xs: step(m, xs)[1]


def in_captured_scan(f: Function) -> Function:
    def scanned(m: Layer, xs: jax.Array) -> jax.Array:
        return nnx.scan(lambda c, x: (c, f(m, x)))(0, xs)[1]

    return scanned


def in_loop(f: Function) -> Function:
    def looped(m: Layer, xs: jax.Array) -> jax.Array:
        outputs = []
        for x in xs:
            outputs.append(f(m, x))
        return jnp.stack(outputs)

    return looped


def in_map(f: Function) -> Function:
    """What vmap means for state under the axis None: every element sees it as it was, and leaves it the same."""

    def mapped(m: Layer, xs: jax.Array) -> jax.Array:
        copies = [nnx.clone(m) for _ in xs]
        outputs = [f(copy, x) for copy, x in zip(copies, xs, strict=True)]
        nnx.update(m, nnx.state(copies[0]))
        return jnp.stack(outputs)

    return mapped


TRANSFORMS: dict[str, tuple[Callable[[Function], Function], Callable[[Function], Function], bool]] = {
    # the transform, its meaning, and whether it takes one axis more
    "jit": (nnx.jit, lambda f: f, False),
    "remat": (nnx.remat, lambda f: f, False),
    "vmap": (lambda f: nnx.vmap(f, in_axes=(None, 0)), in_map, True),
    "scan": (in_scan, in_loop, True),
    "captured": (in_captured_scan, in_loop, True),
}


def nested(names: tuple[str, ...]) -> tuple[Function, Function, jax.Array]:
    """The layer under these transforms, innermost first, its meaning, and an input."""

    def call(m: Layer, x: jax.Array) -> jax.Array:
        return m(x)

    transformed, plain = call, call
    axes = 0
    for name in names:
        transform, meaning, is_axis = TRANSFORMS[name]
        transformed, plain = transform(transformed), meaning(plain)
        axes += is_axis
    shape = (2,) * axes + (SIZE,)
    return transformed, plain, jnp.linspace(-2.0, 2.0, int(np.prod(shape))).reshape(shape)


NESTINGS = list(itertools.product(TRANSFORMS, repeat=3))


@pytest.mark.parametrize("names", NESTINGS, ids="-".join)
def test_nesting(names: tuple[str, ...]) -> None:
    transformed, plain, x = nested(names)
    ours, reference = Layer(), Layer()
    value, grads = nnx.value_and_grad(lambda m: (transformed(m, x) ** 2).sum())(ours)

    np.testing.assert_allclose(value, (plain(reference, x) ** 2).sum(), rtol=1e-5)
    for name in ("calls", "scale"):
        np.testing.assert_allclose(getattr(ours, name)[...], getattr(reference, name)[...], rtol=1e-5)

    direction = jnp.cos(jnp.arange(SIZE * SIZE, dtype=jnp.float32)).reshape(SIZE, SIZE)

    def loss(change: float) -> jax.Array:
        model = Layer()
        model.kernel[...] += change * direction
        return (plain(model, x) ** 2).sum()

    slope = (loss(1e-2) - loss(-1e-2)) / 2e-2
    np.testing.assert_allclose((grads["kernel"][...] * direction).sum(), slope, rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("names", list(itertools.permutations(TRANSFORMS, 2)), ids="-".join)
def test_nesting_raises_and_changes_nothing(names: tuple[str, ...]) -> None:
    class Broken(Layer):
        def __call__(self, x: jax.Array) -> jax.Array:
            super().__call__(x)
            raise RuntimeError("broken on purpose")

    transformed, _, x = nested(names)
    model = Broken()
    with pytest.raises(RuntimeError, match="broken on purpose"):
        transformed(model, x)
    assert int(model.calls[...]) == 0
    assert not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(nnx.state(model)))
