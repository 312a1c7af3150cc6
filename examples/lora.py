"""Fine-tuning by filter: a network that reads digits learns to read them upside down, with 5% more parameters.

`nnx.LoRA` wraps a trained layer. A filter says what is trained: gradients are taken with respect to the `LoRAParam`s
only, the optimizer holds moments for these only, and everything else stays as it was, to the bit. Source: Hu et al.,
"LoRA: Low-Rank Adaptation of Large Language Models", 2021.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from digits import Digits, load

import nnxkit as nnx

RANK, WIDTH, BATCH = 4, 256, 64


class Net(nnx.Module):
    """Images, float32[batch, 8, 8, 1], to logits, float32[batch, 10]."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.hidden1 = nnx.Linear(64, WIDTH, rngs=rngs)
        self.hidden2 = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.out = nnx.Linear(WIDTH, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x.reshape(len(x), -1)
        return self.out(nnx.relu(self.hidden2(nnx.relu(self.hidden1(x)))))


def adapt(model: Net, rngs: nnx.Rngs) -> None:
    """Put an adapter around each layer of a trained model; it computes the same as before."""
    for name in ("hidden1", "hidden2", "out"):
        layer = getattr(model, name)
        setattr(model, name, nnx.LoRA(layer.in_features, RANK, layer.out_features, base_module=layer, rngs=rngs))


def train(model: Net, digits: Digits, wrt: nnx.filterlib.Filter, *, epochs: int, rate: float) -> None:
    """Train those Variables of a model that a filter takes."""
    optimizer = nnx.Optimizer(model, optax.adam(rate), wrt=wrt)

    @nnx.jit
    def step(images: jax.Array, labels: jax.Array) -> None:
        def loss_of(model: Net) -> jax.Array:
            return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

        gradients = nnx.grad(loss_of, argnums=nnx.DiffState(0, wrt))(model)
        optimizer.update(model, gradients)

    for batch in digits.batches(BATCH, epochs):
        step(jnp.asarray(batch.images), jnp.asarray(batch.labels))


def accuracy(model: Net, digits: Digits) -> float:
    """The share of images that a model reads right."""
    return float((model(jnp.asarray(digits.images)).argmax(-1) == digits.labels).mean())


def size(model: Net, wrt: nnx.filterlib.Filter) -> int:
    """How many numbers those Variables of a model hold that a filter takes."""
    return sum(leaf.size for leaf in jax.tree.leaves(nnx.state(model, wrt)))


def main() -> None:
    """Train upright, adapt, train upside down, and print what each did."""
    upright, upright_test = load()
    turned, turned_test = (Digits(each.images[:, ::-1, ::-1], each.labels) for each in (upright, upright_test))

    model = Net(rngs=nnx.Rngs(0))
    train(model, upright, nnx.Param, epochs=15, rate=1e-3)
    right, turned_right = accuracy(model, upright_test), accuracy(model, turned_test)
    print(f"trained upright:   accuracy upright {right:.1%}, turned {turned_right:.1%}")

    adapt(model, nnx.Rngs(1))
    adapters = nnx.LoRAParam
    base = nnx.All(nnx.Param, nnx.Not(adapters))
    before = jax.tree.map(np.array, nnx.state(model, base))
    print(f"numbers to train:  {size(model, adapters)} of {size(model, nnx.Param)}")
    train(model, turned, adapters, epochs=30, rate=3e-3)
    print(f"adapted to turned: accuracy turned {accuracy(model, turned_test):.1%}")
    same = jax.tree.map(np.array_equal, before, nnx.state(model, base))
    print(f"the base is as it was: {all(jax.tree.leaves(same))}")


if __name__ == "__main__":
    main()
