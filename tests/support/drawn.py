"""A program that tests draw."""

MODEL = """\
import jax
import jax.numpy as jnp
from flax import nnx


class Mlp(nnx.Module):
    def __init__(self, dim, hidden, *, rngs, bias=True):
        self.dim = dim
        self.up = nnx.Linear(dim, hidden, use_bias=bias, rngs=rngs)
        self.down = nnx.Linear(hidden, dim, use_bias=bias, rngs=rngs)
        self.act = nnx.relu


class Model(nnx.Module):
    def __init__(self, vocab: int, dim: int = 8, depth: int = 3, *, rngs: nnx.Rngs):
        self.embed = nnx.Embed(vocab, dim, rngs=rngs)
        self.blocks = nnx.List([Mlp(dim, 4 * dim, rngs=rngs) for _ in range(depth)])
        self.position = nnx.Param(jnp.zeros((16, dim), jnp.bfloat16))
        self.head = self.embed
        self.norm = nnx.BatchNorm(dim, rngs=rngs) if depth > 1 else None
        self.plain = [nnx.Linear(3, 4, rngs=rngs)]


model = Model(100, rngs=nnx.Rngs(0))
"""
