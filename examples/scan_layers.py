"""Forty layers at the price of one: layers are made by `nnx.vmap`, run by `nnx.scan`, and recomputed by `nnx.remat`.

The Variables of all layers are one Variable with a leading axis each. XLA compiles the body once, whatever the depth,
and the backward pass keeps only what goes from layer to layer. Dropout draws another mask in each layer, because each
layer has a stream of its own.
"""

import time

import jax
import jax.numpy as jnp
import optax
from digits import load

import nnxkit as nnx

DEPTH, WIDTH, EPOCHS, BATCH = 40, 64, 10, 64


class Layer(nnx.Module):
    """A residual layer: float32[batch, WIDTH] to the same."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.linear1 = nnx.Linear(WIDTH, 2 * WIDTH, rngs=rngs)
        self.linear2 = nnx.Linear(2 * WIDTH, WIDTH, kernel_init=nnx.initializers.zeros_init(), rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x + self.dropout(self.linear2(nnx.gelu(self.linear1(self.norm(x)))))


class Net(nnx.Module):
    """Images, float32[batch, 64], to logits, float32[batch, 10]."""

    def __init__(self, depth: int, *, rngs: nnx.Rngs) -> None:
        @nnx.split_rngs(splits=depth)
        @nnx.vmap
        def make_layers(rngs: nnx.Rngs) -> Layer:
            return Layer(rngs=rngs)

        self.embed = nnx.Linear(64, WIDTH, rngs=rngs)
        self.layers = make_layers(rngs)
        self.out = nnx.Linear(WIDTH, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        @nnx.remat
        def through(x: jax.Array, layer: Layer) -> jax.Array:
            return layer(x)

        return self.out(through(self.embed(x), self.layers))


def train(depth: int, epochs: int) -> tuple[Net, float]:
    """Train a network; returns it, and the seconds that the first step took, most of them to trace and to compile."""
    digits, _ = load()
    model = Net(depth, rngs=nnx.Rngs(0, dropout=1))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(images: jax.Array, labels: jax.Array) -> jax.Array:
        def loss_of(model: Net) -> jax.Array:
            return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

        loss, gradients = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, gradients)
        return loss

    first = None
    for batch in digits.batches(BATCH, epochs):
        begin = time.perf_counter()
        loss = step(jnp.asarray(batch.images.reshape(BATCH, 64)), jnp.asarray(batch.labels))
        if first is None:
            loss.block_until_ready()
            first = time.perf_counter() - begin
    assert first is not None
    return model, first


def main() -> None:
    """Train, and print how long the first step takes for few and for many layers, and the accuracy."""
    _, test = load()
    _, few = train(2, epochs=1)
    model, many = train(DEPTH, EPOCHS)
    print(f"first step: {few:.1f} s for 2 layers, {many:.1f} s for {DEPTH}")
    print("shape of a kernel of all layers:", model.layers.linear1.kernel.shape)

    evaluated = nnx.view(model, deterministic=True)
    accuracy = (nnx.jit(evaluated)(jnp.asarray(test.images.reshape(-1, 64))).argmax(-1) == test.labels).mean()
    print(f"accuracy on {len(test.labels)} new images: {accuracy:.1%}")


if __name__ == "__main__":
    main()
