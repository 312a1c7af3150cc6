"""A run that is cut off goes on where it was: model, optimizer and random streams come back from a checkpoint.

The run is one object, so one call saves all of it. The first half trains and ends; the second half is a new object,
made without arrays and filled from the newest checkpoint. It ends with the numbers, to the bit, of a run that was never
cut off. Weights alone go into a safetensors file, which every framework reads.
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from digits import load

import nnxkit as nnx

STEPS, CUT, BATCH = 120, 60, 64


class Net(nnx.Module):
    """Images, float32[batch, 64], to logits, float32[batch, 10]."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(64, 128, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.out = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.out(self.dropout(nnx.relu(self.hidden(x))))


class Run(nnx.Module):
    """Everything that training changes."""

    def __init__(self) -> None:
        self.model = Net(rngs=nnx.Rngs(0, dropout=1))
        self.optimizer = nnx.Optimizer(self.model, optax.adam(1e-3), wrt=nnx.Param)
        self.drawn = nnx.RngStream(2, tag="batches")


def train(run: Run, begin: int, end: int, manager: nnx.checkpoints.Manager | None = None) -> None:
    """Steps ``begin`` to ``end``, with a checkpoint after each that the manager wants."""
    digits, _ = load()
    images, labels = jnp.asarray(digits.images.reshape(-1, 64)), jnp.asarray(digits.labels)

    @nnx.jit
    def step(run: Run) -> jax.Array:
        chosen = jax.random.randint(run.drawn(), (BATCH,), 0, len(labels))

        def loss_of(model: Net) -> jax.Array:
            return optax.softmax_cross_entropy_with_integer_labels(model(images[chosen]), labels[chosen]).mean()

        loss, gradients = nnx.value_and_grad(loss_of)(run.model)
        run.optimizer.update(run.model, gradients)
        return loss

    for number in range(begin, end):
        loss = step(run)
        if manager is not None:
            manager.save(number, run)
        if (number + 1) % 30 == 0:
            print(f"step {number + 1:4d}   loss {loss:.4f}")


def main() -> None:
    """Train in two halves and in one go, and print whether both end with the same numbers."""
    with tempfile.TemporaryDirectory() as folder:
        with nnx.checkpoints.Manager(Path(folder, "run"), keep=2, every=20) as manager:
            train(Run(), 0, CUT + 5, manager)
            print("cut off; checkpoints of steps", manager.steps)

        with nnx.checkpoints.Manager(Path(folder, "run")) as manager:
            run = nnx.eval_shape(Run)
            last = manager.restore(run)
            train(run, last + 1, STEPS)

        whole = Run()
        train(whole, 0, STEPS)
        same = jax.tree.map(lambda a, b: bool(jnp.all(a == b)), nnx.state(run), nnx.state(whole))
        print(f"the same as a run that was not cut off: {all(jax.tree.leaves(same))}")

        weights = Path(folder, "weights.safetensors")
        nnx.checkpoints.save_safetensors(weights, run.model)
        fresh = Net(rngs=nnx.Rngs(7))
        nnx.checkpoints.load_safetensors(weights, fresh)
        print(f"weights from a file: {np.array_equal(fresh.out.kernel, run.model.out.kernel)}")


if __name__ == "__main__":
    main()
