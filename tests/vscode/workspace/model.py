import jax.numpy as jnp
from flax import nnx


class Block(nnx.Module):
    def __init__(self, size: int, *, rngs: nnx.Rngs):
        self.size = size
        self.linear = nnx.Linear(size, size, rngs=rngs)
        self.norm = nnx.LayerNorm(size, rngs=rngs)

    def __call__(self, x):
        return x + nnx.relu(self.norm(self.linear(x)))


class Net(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.embed = nnx.Linear(16, 32, rngs=rngs)
        self.blocks = [Block(32, rngs=rngs), Block(32, rngs=rngs)]
        self.calls = nnx.BatchStat(jnp.zeros(()))
        self.head = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)
