"""A training script as people write them, with the mistakes that they make. ``# finds:`` names the rules on a line."""

from __future__ import annotations
import typing as tp
import functools
import jax, jax.numpy as jnp, optax
from flax import nnx

class Kernel(nnx.Module):
    def __init__(self, active: list[int] | None = None):
        self.active = active

class Combo(Kernel):
    def __init__(self, kernels: list[Kernel], op: tp.Callable):
        super().__init__()
        self.kernels = kernels  # finds: data-in-static-attribute
        self.op = op

class MLP(nnx.Module):
    def __init__(self, dims: tp.Sequence[int], *, rngs: nnx.Rngs):
        layers = []
        for din, dout in zip(dims[:-1], dims[1:]):
            layers.append(nnx.Linear(din, dout, rngs=rngs))
            layers.append(nnx.relu)
        self.layers = layers  # finds: data-in-static-attribute
        self.head = nnx.Sequential([nnx.Linear(2, 2, rngs=rngs), nnx.relu])  # finds: nested-plain-container

    def _build(self, n, rngs):
        return [nnx.Linear(n, n, rngs=rngs) for _ in range(3)]

class ResNet(nnx.Module):
    def __init__(self, stages=(2, 2), *, rngs):
        self.stages = {}
        for i, n in enumerate(stages):
            self.stages[f"stage{i}"] = self._make_stage(n, rngs)  # finds: static-container-filled
        self.norms = tuple(nnx.LayerNorm(4, rngs=rngs) for _ in stages)  # finds: data-in-static-attribute

    def _make_stage(self, n, rngs):
        return nnx.List([nnx.Conv(3, 3, (3, 3), rngs=rngs) for _ in range(n)])

class Attn(nnx.Module):
    def __init__(self, dim, use_norm: bool, *, rngs):
        self.q = nnx.Linear(dim, dim, rngs=rngs)
        self.cache = None
        self.norm = None
        if use_norm:
            self.norm = nnx.LayerNorm(dim, rngs=rngs)  # finds: data-to-static-attribute

    def init_cache(self, shape):
        self.cache = nnx.Cache(jnp.zeros(shape))  # finds: data-to-static-attribute

    def __call__(self, x):
        if self.cache is None:
            raise ValueError
        self.cache = self.cache.value + x
        return self.q(x)

class Buf(nnx.Module):
    def __init__(self):
        self.metrics = {"loss": jnp.zeros(()), "n": 0}  # finds: data-in-static-attribute
        self.history: list = []

    def log(self, v: jax.Array):
        self.history.append(v)
        self.metrics["loss"] = v

@functools.partial(jax.jit, static_argnums=(0,))
def run(cfg, params):
    return params

class Trainer:
    def __init__(self, model: MLP, opt: nnx.Optimizer):
        self.model = model
        self.opt = opt

    @nnx.jit  # finds: transform-of-plain-self
    def step(self, x):
        return self.model(x)

def train(model: MLP, data):
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"))  # finds: unused-result

    @nnx.jit
    def train_step(batch):
        def loss_fn(model):
            return model(batch).mean()
        loss, grads = nnx.value_and_grad(loss_fn)(model)  # finds: captured-into-transform
        optimizer.update(model, grads)  # finds: captured-mutation captured-stateful-call
        metrics.update(loss=loss)  # finds: captured-stateful-call
        return loss
    for batch in data:
        train_step(batch)

def sample(rngs: nnx.Rngs, n):
    def body(i, carry):
        return carry + jax.random.normal(rngs.sample(), ())  # finds: captured-rngs
    return jax.lax.fori_loop(0, n, body, 0.0)

drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
@jax.vmap
def apply(x):
    return drop(x)  # finds: captured-stateful-call

model = MLP([1, 2, 3], rngs=nnx.Rngs(0))
graphdef, params, rest = nnx.split(model, nnx.Param)  # finds: split-unpack-arity
graphdef, a, b = nnx.split(model, nnx.Variable, nnx.Param)  # finds: unreachable-filter
state = nnx.split(model)
nnx.update(model, state)  # finds: split-not-unpacked
loss_grad = jax.jit(model.__call__)
