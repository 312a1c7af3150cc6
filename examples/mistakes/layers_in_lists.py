"""A small vision transformer whose blocks sit in plain Python containers."""

import jax
import jax.numpy as jnp
from flax import nnx


class Block(nnx.Module):
    def __init__(self, width: int, heads: int, *, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, width, decode=False, rngs=rngs)
        self.expand = nnx.Linear(width, 4 * width, rngs=rngs)
        self.contract = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        tokens = tokens + self.attention(self.norm(tokens))
        return tokens + self.contract(nnx.gelu(self.expand(tokens)))


class VisionTransformer(nnx.Module):
    def __init__(self, depth: int, width: int, *, patches: int, rngs: nnx.Rngs):
        self.positions = nnx.Param(jnp.zeros((patches, width)))
        self.blocks = [Block(width, heads=4, rngs=rngs) for _ in range(depth)]
        self.heads = {"class": nnx.Linear(width, 10, rngs=rngs)}

    def __call__(self, tokens: jax.Array) -> jax.Array:
        tokens = tokens + self.positions
        for block in self.blocks:
            tokens = block(tokens)
        return self.heads["class"](tokens.mean(axis=1))


class Decoder(nnx.Module):
    def __init__(self, widths: list[int], *, rngs: nnx.Rngs):
        self.layers = []
        for inputs, outputs in zip(widths, widths[1:]):
            self.layers.append(nnx.Linear(inputs, outputs, rngs=rngs))
        self.running_mean = None
        self.reset_statistics(widths[0])

    def reset_statistics(self, width: int) -> None:
        self.running_mean = jnp.zeros(width)
