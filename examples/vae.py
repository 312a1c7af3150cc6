"""A variational autoencoder draws digits: randomness inside a Module, and a loss that the model leaves behind.

The encoder adds its divergence from the prior to the intermediates with `sow`; `nnx.pop` takes it out again in the
step. Noise comes from the model's own stream, which `nnx.jit` advances like any other state. Source: Kingma and
Welling, "Auto-Encoding Variational Bayes", 2013.
"""

import jax
import jax.numpy as jnp
import optax
from digits import load

import nnxkit as nnx

EPOCHS, BATCH, HIDDEN, LATENT = 40, 64, 256, 8


class Loss(nnx.Variable[jax.Array]):
    """A part of the loss that a layer computes, nats of each image: float32[batch]."""


class Encoder(nnx.Module):
    """Images, float32[batch, 64], to draws from the posterior, float32[batch, LATENT]."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(64, HIDDEN, rngs=rngs)
        self.mean = nnx.Linear(HIDDEN, LATENT, rngs=rngs)
        self.log_std = nnx.Linear(HIDDEN, LATENT, rngs=rngs)
        self.noise = rngs.noise.fork()

    def __call__(self, x: jax.Array) -> jax.Array:
        x = nnx.silu(self.hidden(x))
        mean, log_std = self.mean(x), self.log_std(x)
        divergence = (jnp.square(mean) + jnp.exp(2 * log_std) - 1).sum(-1) / 2 - log_std.sum(-1)
        self.sow(Loss, "divergence", divergence)
        return mean + jnp.exp(log_std) * jax.random.normal(self.noise(), mean.shape)


class Decoder(nnx.Module):
    """Latent vectors, float32[batch, LATENT], to logits of the pixels, float32[batch, 64]."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(LATENT, HIDDEN, rngs=rngs)
        self.pixels = nnx.Linear(HIDDEN, 64, rngs=rngs)

    def __call__(self, z: jax.Array) -> jax.Array:
        return self.pixels(nnx.silu(self.hidden(z)))


class VAE(nnx.Module):
    """Images, float32[batch, 64], to logits of the same pixels."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.encoder = Encoder(rngs=rngs)
        self.decoder = Decoder(rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.decoder(self.encoder(x))


def bound(model: VAE, x: jax.Array) -> jax.Array:
    """The negative evidence bound of images, float32[batch, 64], in nats: their mean."""
    logits = model(x)
    divergence = sum(jax.tree.leaves(nnx.pop(model, Loss)))
    return (optax.sigmoid_binary_cross_entropy(logits, x).sum(-1) + divergence).mean()


def picture(image: jax.Array) -> list[str]:
    """An image, float32[64], in characters."""
    return ["".join(" .:oO@"[round(5 * float(pixel))] for pixel in row) for row in image.reshape(8, 8)]


def main() -> None:
    """Train, and print the bound on images that were not trained on, and some digits that nobody wrote."""
    train, test = load()
    model = VAE(rngs=nnx.Rngs(0, noise=1))
    optimizer = nnx.Optimizer(model, optax.adam(2e-3), wrt=nnx.Param)

    @nnx.jit
    def train_step(x: jax.Array) -> jax.Array:
        loss, gradients = nnx.value_and_grad(bound)(model, x)
        optimizer.update(model, gradients)
        return loss

    per_epoch = len(train.labels) // BATCH
    for number, batch in enumerate(train.batches(BATCH, EPOCHS), start=1):
        loss = train_step(jnp.asarray(batch.images.reshape(BATCH, 64)))
        if number == 1 or number % (10 * per_epoch) == 0:
            print(f"epoch {number // per_epoch:3d}   loss {loss:.2f}")

    print(
        f"nats for each of {len(test.labels)} new images: {bound(model, jnp.asarray(test.images.reshape(-1, 64))):.2f}"
    )
    drawn = jax.nn.sigmoid(model.decoder(jax.random.normal(jax.random.key(2), (6, LATENT))))
    for rows in zip(*map(picture, drawn), strict=True):
        print("   ".join(rows))


if __name__ == "__main__":
    main()
