"""A training script that keeps its model, metrics and counters in module-level names."""

import jax
import jax.numpy as jnp
from flax import nnx


class Counter(nnx.Variable):
    pass


class Classifier(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(784, 128, rngs=rngs)
        self.norm = nnx.BatchNorm(128, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.output = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        return self.output(self.dropout(nnx.relu(self.norm(self.hidden(images)))))


model = Classifier(rngs=nnx.Rngs(0))
steps = Counter(jnp.array(0))


@jax.jit
def evaluate(images: jax.Array) -> jax.Array:
    steps[...] += 1
    return model(images).argmax(axis=-1)


def gradients(images: jax.Array, labels: jax.Array) -> jax.Array:
    def loss(scale: jax.Array) -> jax.Array:
        logits = model(images * scale)  # batch statistics and dropout keys change in here
        steps.value = steps.value + 1
        return -jnp.take_along_axis(nnx.log_softmax(logits), labels[:, None], axis=-1).mean()

    return jax.grad(loss)(jnp.ones(()))


def count_positive(rows: jax.Array) -> jax.Array:
    seen = Counter(jnp.array(0))

    def body(total: jax.Array, row: jax.Array) -> tuple[jax.Array, None]:
        seen[...] += 1
        return total + (row > 0).sum(), None

    total, _ = jax.lax.scan(body, jnp.array(0), rows)
    return total / seen[...]
