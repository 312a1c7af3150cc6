"""Training step by step beside flax: three models, the same seed and data, the same loss at every step."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from sklearn.datasets import load_digits

import nnxkit

pytestmark = pytest.mark.usefixtures("quick_compilation")

STEPS, BATCH = 200, 32


def mlp(nnx: Any, rngs: Any) -> Any:
    """Layers in a List, dropout, layer norm."""

    class MLP(nnx.Module):
        def __init__(self) -> None:
            sizes = [64, 48, 48, 10]
            self.layers = nnx.List([nnx.Linear(i, o, rngs=rngs) for i, o in itertools.pairwise(sizes)])
            self.norms = nnx.List([nnx.LayerNorm(size, rngs=rngs) for size in sizes[1:-1]])
            self.dropout = nnx.Dropout(0.2, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = x.reshape(len(x), -1)
            for layer, norm in zip(self.layers[:-1], self.norms, strict=True):
                x = self.dropout(nnx.gelu(norm(layer(x))))
            return self.layers[-1](x)

    return MLP()


def cnn(nnx: Any, rngs: Any) -> Any:
    """Convolutions, batch norm with its running statistics, group norm, pooling."""

    class CNN(nnx.Module):
        def __init__(self) -> None:
            self.conv1 = nnx.Conv(1, 8, (3, 3), rngs=rngs)
            self.norm1 = nnx.BatchNorm(8, momentum=0.9, rngs=rngs)
            self.conv2 = nnx.Conv(8, 16, (3, 3), strides=2, use_bias=False, rngs=rngs)
            self.norm2 = nnx.GroupNorm(16, num_groups=4, rngs=rngs)
            self.out = nnx.Linear(2 * 2 * 16, 10, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = nnx.relu(self.norm1(self.conv1(x)))
            x = nnx.avg_pool(nnx.relu(self.norm2(self.conv2(x))), (2, 2), strides=(2, 2))
            return self.out(x.reshape(len(x), -1))

    return CNN()


def transformer(nnx: Any, rngs: Any) -> Any:
    """Rows of pixels as a sequence: stacked blocks made by vmap and run by scan, attention, tied embedding."""

    class Block(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.norm = nnx.RMSNorm(16, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(4, 16, decode=False, normalize_qk=True, rngs=rngs)
            self.mix = nnx.Linear(16, 16, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = x + self.attention(self.norm(x), mask=nnx.make_causal_mask(x[..., 0]))
            return x + nnx.silu(self.mix(x))

    class Transformer(nnx.Module):
        def __init__(self) -> None:
            self.embed = nnx.Linear(8, 16, rngs=rngs)

            @nnx.split_rngs(splits=3)
            @nnx.vmap(in_axes=0, out_axes=0)
            def blocks(rngs: Any) -> Any:
                return Block(rngs)

            self.blocks = blocks(rngs)
            self.classes = nnx.Embed(10, 16, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
            def through(x: Any, block: Any) -> Any:
                return block(x)

            return self.classes.attend(through(self.embed(x[..., 0]), self.blocks).mean(1))

    return Transformer()


def losses(nnx: Any, make: Any) -> list[float]:
    """The loss of each step of a training that is written once, for either library."""
    digits = load_digits()
    images, labels = (digits.images[..., None] / 16).astype(np.float32), digits.target.astype(np.int32)
    model = make(nnx, nnx.Rngs(0, dropout=1))
    schedule = optax.warmup_cosine_decay_schedule(0, 1e-2, 20, STEPS)
    optimizer = nnx.Optimizer(model, optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule)), wrt=nnx.Param)

    @nnx.jit
    def step(model: Any, optimizer: Any, images: Any, labels: Any) -> Any:
        def loss_of(model: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

        loss, gradients = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, gradients)
        return loss

    generator = np.random.default_rng(0)
    seen = []
    for _ in range(STEPS):
        chosen = generator.integers(0, len(labels), BATCH)
        seen.append(step(model, optimizer, jnp.asarray(images[chosen]), jnp.asarray(labels[chosen])))
    return [float(loss) for loss in jax.device_get(seen)]


@pytest.mark.slow
@pytest.mark.parametrize("make", [mlp, cnn, transformer])
def test_losses_are_those_of_flax(make: Any) -> None:
    from flax import nnx as flax_nnx

    ours, theirs = losses(nnxkit, make), losses(flax_nnx, make)
    assert ours[-1] < ours[0] / 2
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
