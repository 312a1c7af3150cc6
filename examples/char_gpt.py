"""A small GPT learns to write like Python's documentation, character by character.

The text is what `help()` prints, half a million characters that every Python has with it. The blocks are one Module
whose Variables have a leading axis, made by `nnx.vmap` and run by `nnx.scan`: the program that XLA compiles is as long
as one block. Generating reads one character at a time and keeps keys and values in the cache of each attention.
"""

from pydoc_data.topics import topics

import jax
import jax.numpy as jnp
import numpy as np
import optax

import nnxkit as nnx

STEPS, BATCH, CONTEXT, WIDTH, HEADS, DEPTH = 300, 16, 64, 96, 4, 3


class Block(nnx.Module):
    """Attention, and a network for each place, both residual: float32[batch, length, WIDTH] to the same."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.norm1 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.widen = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.narrow = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x: jax.Array, mask: jax.Array | None) -> jax.Array:
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.narrow(nnx.gelu(self.widen(self.norm2(x))))


class GPT(nnx.Module):
    """Characters, int32[batch, length], to the logits of the next ones, float32[batch, length, characters]."""

    def __init__(self, characters: int, *, rngs: nnx.Rngs) -> None:
        @nnx.split_rngs(splits=DEPTH)
        @nnx.vmap
        def make_blocks(rngs: nnx.Rngs) -> Block:
            return Block(rngs=rngs)

        self.embed = nnx.Embed(characters, WIDTH, rngs=rngs)
        self.places = nnx.Embed(CONTEXT, WIDTH, rngs=rngs)
        self.blocks = make_blocks(rngs)
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)

    def __call__(self, text: jax.Array, first: jax.Array | int = 0, mask: jax.Array | None = None) -> jax.Array:
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def through(x: jax.Array, block: Block) -> jax.Array:
            return block(x, mask)

        x = self.embed(text) + self.places(first + jnp.arange(text.shape[1]))
        return self.embed.attend(self.norm(through(x, self.blocks)))


def generate(model: GPT, prompt: jax.Array, key: jax.Array) -> jax.Array:
    """Continue a text, int32[prompt], to int32[CONTEXT], drawing each character from what the model expects next."""
    writer = nnx.view(model, decode=True)

    @nnx.vmap
    def make_caches(blocks: Block) -> None:
        blocks.attention.init_cache((1, CONTEXT, WIDTH))

    make_caches(writer.blocks)

    @nnx.jit
    def step(character: jax.Array, place: jax.Array, key: jax.Array) -> jax.Array:
        logits = writer(character[None, None], place)
        return jax.random.categorical(key, logits[0, 0] / 0.8)

    text = list(prompt)
    for place, key_of_place in enumerate(jax.random.split(key, CONTEXT - 1)):
        following = step(text[place], jnp.asarray(place), key_of_place)
        if place + 1 >= len(prompt):
            text.append(following)
    return jnp.stack(text)


def main() -> None:
    """Train, print the loss in nats a character, on text that was not trained on too, and some lines of its own."""
    text = "\n".join(topics[name] for name in sorted(topics))
    alphabet = sorted(set(text))
    codes = np.array([alphabet.index(character) for character in text], dtype=np.int32)
    train, test = codes[: -len(codes) // 20], codes[-len(codes) // 20 :]
    model = GPT(len(alphabet), rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(optax.warmup_cosine_decay_schedule(0, 4e-3, 30, STEPS)), wrt=nnx.Param)
    causal = nnx.make_causal_mask(jnp.ones((1, CONTEXT)))

    def loss_of(model: GPT, batch: jax.Array) -> jax.Array:
        logits = model(batch[:, :-1], mask=causal)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:]).mean()

    @nnx.jit
    def train_step(batch: jax.Array) -> jax.Array:
        loss, gradients = nnx.value_and_grad(loss_of)(model, batch)
        optimizer.update(model, gradients)
        return loss

    def draw(codes: np.ndarray, count: int, generator: np.random.Generator) -> jax.Array:
        begins = generator.integers(0, len(codes) - CONTEXT - 1, count)
        return jnp.asarray(codes[begins[:, None] + np.arange(CONTEXT + 1)])

    generator = np.random.default_rng(0)
    for number in range(1, STEPS + 1):
        loss = train_step(draw(train, BATCH, generator))
        if number == 1 or number % (STEPS // 6) == 0:
            print(f"step {number:4d}   loss {loss:.3f}")

    print(f"loss on new text: {nnx.jit(loss_of)(model, draw(test, 256, generator)):.3f}")
    prompt = jnp.array([alphabet.index(character) for character in "The "])
    print("a sample:", repr("".join(alphabet[code] for code in generate(model, prompt, jax.random.key(1)))))


if __name__ == "__main__":
    main()
