"""A convolutional network reads handwritten digits: batch norm, dropout, metrics, training and evaluation mode.

`nnx.view` gives the same model in the other mode: it shares every Variable, so it is made once, before the training,
and sees what is learned.
"""

import jax
import jax.numpy as jnp
import optax
from digits import load

import nnxkit as nnx

EPOCHS, BATCH = 20, 64


class CNN(nnx.Module):
    """Images, float32[batch, 8, 8, 1], to logits, float32[batch, 10]."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.conv1 = nnx.Conv(1, 32, (3, 3), rngs=rngs)
        self.norm1 = nnx.BatchNorm(32, rngs=rngs)
        self.conv2 = nnx.Conv(32, 64, (3, 3), rngs=rngs)
        self.norm2 = nnx.BatchNorm(64, rngs=rngs)
        self.dropout = nnx.Dropout(0.3, rngs=rngs)
        self.out = nnx.Linear(2 * 2 * 64, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = nnx.max_pool(nnx.relu(self.norm1(self.conv1(x))), (2, 2), strides=(2, 2))
        x = nnx.max_pool(nnx.relu(self.norm2(self.conv2(x))), (2, 2), strides=(2, 2))
        return self.out(self.dropout(x.reshape(len(x), -1)))


def main() -> None:
    """Train, and print the accuracy on images that were not trained on."""
    train, test = load()
    model = CNN(rngs=nnx.Rngs(0, dropout=1))
    evaluated = nnx.view(model, deterministic=True, use_running_average=True)
    steps = EPOCHS * (len(train.labels) // BATCH)
    optimizer = nnx.Optimizer(model, optax.adamw(optax.cosine_decay_schedule(3e-3, steps)), wrt=nnx.Param)
    metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))

    @nnx.jit
    def train_step(images: jax.Array, labels: jax.Array) -> None:
        def loss_of(model: CNN) -> tuple[jax.Array, jax.Array]:
            logits = model(images)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), logits

        (loss, logits), gradients = nnx.value_and_grad(loss_of, has_aux=True)(model)
        optimizer.update(model, gradients)
        metrics.update(loss=loss, logits=logits, labels=labels)

    per_epoch = len(train.labels) // BATCH
    for number, batch in enumerate(train.batches(BATCH, EPOCHS), start=1):
        train_step(jnp.asarray(batch.images), jnp.asarray(batch.labels))
        if number % (5 * per_epoch) == 0:
            values = metrics.compute()
            print(f"epoch {number // per_epoch:3d}   loss {values['loss']:.4f}   accuracy {values['accuracy']:.1%}")
            metrics.reset()

    accuracy = (nnx.jit(evaluated)(jnp.asarray(test.images)).argmax(-1) == test.labels).mean()
    print(f"accuracy on {len(test.labels)} new images: {accuracy:.1%}")


if __name__ == "__main__":
    main()
