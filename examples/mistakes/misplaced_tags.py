"""An actor-critic agent with `nnx.data` and `nnx.static` in the wrong places."""

import jax
import jax.numpy as jnp
from flax import nnx


class Agent(nnx.Module):
    def __init__(self, observations: int, actions: int, *, rngs: nnx.Rngs):
        # The scale of the observations is fixed, so it was thought to be "static".
        self.scale = nnx.static(jnp.ones(observations))
        self.encoder = nnx.Linear(observations, 64, rngs=rngs)
        self.heads = {
            "policy": nnx.data(nnx.Linear(64, actions, rngs=rngs)),
            "value": nnx.data(nnx.Linear(64, 1, rngs=rngs)),
        }
        self.ensemble = [nnx.data(nnx.Linear(64, 1, rngs=rngs)) for _ in range(3)]

    def __call__(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        hidden = nnx.relu(self.encoder(observation * self.scale))
        return self.heads["policy"](hidden), self.heads["value"](hidden)


class ReplayBuffer(nnx.Module):
    """Keeps the last observations as an explicit pytree attribute."""

    observations: nnx.Static[jax.Array]

    def __init__(self, capacity: int, observations: int):
        self.observations = jnp.zeros((capacity, observations))
        self.position = nnx.Variable(nnx.data(jnp.array(0)))
