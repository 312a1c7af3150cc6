"""Two interleaved spirals, told apart by a small network.

A training step as one writes it in Python: it calls the model, differentiates the loss with respect to it, and lets the
optimizer change it in place. `nnx.jit` compiles the step without being told about model and optimizer: what a function
captures is an input, and what it changes (the parameters, a running estimate of the input's scale, the optimizer's
moments) comes back.
"""

import itertools

import jax
import jax.numpy as jnp
import optax

import nnxkit as nnx

STEPS, REPORT_EVERY, BATCH = 1200, 200, 256


class Scale(nnx.Variable[jax.Array]):
    """A running mean of squares: state that training changes, but no gradient does."""


class Linear(nnx.Module):
    """`x @ kernel + bias`: float32[..., inputs] -> float32[..., outputs]."""

    def __init__(self, inputs: int, outputs: int, *, rngs: nnx.Rngs) -> None:
        self.kernel = nnx.Param(jax.random.normal(rngs.params(), (inputs, outputs)) * (2 / inputs) ** 0.5)
        self.bias = nnx.Param(jnp.zeros(outputs))

    def __call__(self, x: jax.Array) -> jax.Array:
        y: jax.Array = x @ self.kernel[...] + self.bias[...]
        return y


class SpiralNet(nnx.Module):
    """Points in the plane, float32[batch, 2], to one logit each, float32[batch]."""

    def __init__(self, width: int, depth: int, *, rngs: nnx.Rngs) -> None:
        sizes = [2] + [width] * depth + [1]
        self.scale = Scale(jnp.ones(2))
        self.layers = nnx.List([Linear(i, o, rngs=rngs) for i, o in itertools.pairwise(sizes)])

    def __call__(self, x: jax.Array) -> jax.Array:
        self.scale[...] = 0.99 * self.scale[...] + 0.01 * jnp.square(x).mean(axis=0)
        x = x / jnp.sqrt(self.scale[...])
        for layer in self.layers[:-1]:
            x = jax.nn.silu(layer(x))
        return self.layers[-1](x)[:, 0]


def spirals(key: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Draw noisy points of both spirals: float32[count, 2], and which spiral each is of: int32[count]."""
    key_position, key_label, key_noise = jax.random.split(key, 3)
    label = jax.random.bernoulli(key_label, shape=(count,)).astype(jnp.int32)
    turn = jnp.sqrt(jax.random.uniform(key_position, (count,))) * 3 * jnp.pi
    angle = turn + jnp.pi * label
    points = jnp.stack([turn * jnp.cos(angle), turn * jnp.sin(angle)], axis=-1)
    return points + 0.2 * jax.random.normal(key_noise, points.shape), label


def main() -> None:
    """Train, and print the loss and the accuracy on points that were not trained on."""
    model = SpiralNet(width=64, depth=3, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)

    def step(key: jax.Array) -> jax.Array:
        points, labels = spirals(key, BATCH)

        def loss_of(model: SpiralNet) -> jax.Array:
            losses: jax.Array = optax.sigmoid_binary_cross_entropy(model(points), labels)
            return losses.mean()

        loss: jax.Array
        loss, gradients = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, gradients)
        return loss

    train_step = nnx.jit(step)
    for number, key in enumerate(jax.random.split(jax.random.key(1), STEPS), start=1):
        loss = train_step(key)
        if number == 1 or number % REPORT_EVERY == 0:
            print(f"step {number:5d}   loss {loss:.4f}")

    points, labels = spirals(jax.random.key(2), 4096)
    accuracy = ((model(points) > 0) == labels).mean()
    print(f"accuracy on 4096 new points: {accuracy:.1%}")


if __name__ == "__main__":
    main()
