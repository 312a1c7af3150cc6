"""Fine-tuning: which part of the state is frozen, trained, or saved."""

import jax
from flax import nnx


class Backbone(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.stem = nnx.Conv(3, 32, kernel_size=(3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(32, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.adapter = nnx.LoRA(32, 4, 32, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        return self.adapter(self.dropout(nnx.relu(self.norm(self.stem(images)))))


model = Backbone(rngs=nnx.Rngs(0))

# LoRAParam is a Param: nothing is left for the second filter.
graphdef, frozen, trained, rest = nnx.split(model, nnx.Param, nnx.LoRAParam, ...)

# The batch statistics and the dropout keys match neither filter.
graphdef, trained, frozen = nnx.split(model, nnx.LoRAParam, nnx.Param)

# `...` takes everything, the state after it is always empty.
everything, statistics = nnx.state(model, ..., nnx.BatchStat)

# Three filters make four values.
graphdef, params, statistics = nnx.split(model, nnx.Param, nnx.BatchStat, ...)

# A filter is a type, a tag, a predicate, `...`, `None` or a tuple of these; a number is none of them.
head = nnx.state(model, (nnx.Param, 0))
