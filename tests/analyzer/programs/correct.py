"""Correct code in the forms that are easily taken for mistakes. Nothing may be found in it."""

from __future__ import annotations
import collections, dataclasses, functools, typing as tp
import jax, jax.numpy as jnp, numpy as np, optax
from flax import nnx, struct
from flax import linen as nn

class Config(tp.NamedTuple):
    dims: tuple[int, ...]

@struct.dataclass
class Stats:
    mean: jax.Array

class LinenNet(nn.Module):
    def setup(self):
        self.layers = [nn.Dense(3) for _ in range(3)]

class Plain:
    def __init__(self, rngs):
        self.layers = [nnx.Linear(2, 2, rngs=rngs)]

class Good(nnx.Module):
    def __init__(self, cfg: Config, use: bool, *, rngs: nnx.Rngs):
        self.cfg = cfg
        self.sizes = [1, 2, 3]
        self.names = {"a": 1}
        self.fns = [nnx.relu, nnx.gelu]
        self.dtypes = (jnp.float32, jnp.bfloat16)
        self.tx = optax.chain(optax.clip(1.0), optax.adam(1e-3))
        self.shapes = [jax.ShapeDtypeStruct((2,), jnp.float32)]
        self.layers = nnx.List([nnx.Linear(2, 2, rngs=rngs) for _ in range(3)])
        self.blocks = nnx.data([nnx.Linear(2, 2, rngs=rngs)])
        self.bias = nnx.data(None)
        if use:
            self.bias = nnx.Param(jnp.zeros(2))
        if use:
            self.norm = nnx.LayerNorm(2, rngs=rngs)
        else:
            self.norm = None
        self.drop = nnx.Dropout(0.1, rngs=rngs) if use else None
        self.init = nnx.initializers.lecun_normal()
        self.scale = jnp.ones(3)
        self.tmp = None
        del self.tmp
        self.tmp = jnp.ones(3)
        self.count = nnx.Variable(jnp.array(0))
        self.stat = Stats
        self.rngs = rngs

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        self.count[...] += 1
        self.sow(nnx.Intermediate, "x", x)
        if self.norm is not None:
            x = self.norm(x)
        return x

@nnx.jit
def step(model: Good, opt: nnx.Optimizer, x):
    def loss(m):
        return m(x).sum()
    g = nnx.grad(loss)(model)
    opt.update(model, g)
    model.count[...] += 1
    m2 = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
    m2(x)
    return model

def fit(model: Good, xs):
    model.eval()
    @nnx.jit
    def predict(m, x):
        return m(x)
    gd, params, rest = nnx.split(model, nnx.Param, ...)
    @jax.jit
    def fwd(params, rest, x):
        m = nnx.merge(gd, params, rest)
        y = m(x)
        return y, nnx.state(m)
    def scan_body(carry, x):
        m = nnx.merge(gd, carry, rest, copy=True)
        y = m(x)
        return nnx.state(m, nnx.Param), y
    jax.lax.scan(scan_body, params, xs)
    out = []
    def cb(x):
        out.append(x)
    jax.debug.callback(cb, xs)
    lin = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    ys = jax.vmap(lambda x: lin(x))(xs)
    bn = nnx.BatchNorm(2, use_running_average=True, rngs=nnx.Rngs(0))
    zs = jax.vmap(lambda x: bn(x))(xs)
    a, b = nnx.state(model, nnx.Param, nnx.BatchStat)
    s = nnx.state(model, nnx.Param)
    _, *states = nnx.split(model, nnx.Param, nnx.BatchStat, ...)
    g, p, lora, o = nnx.split(model, nnx.LoRAParam, nnx.Param, ...)
    everything = nnx.state(model, (nnx.Param, nnx.BatchStat))
    keys = nnx.state(model, "dropout")
    nnx.update(model, s)
    for k, v in s.items():
        print(k, v)
    return predict(model, xs)

class Cache(nnx.Module):
    def __init__(self):
        self._memo = {}
    def get(self, k):
        if k not in self._memo:
            self._memo[k] = len(self._memo)
        return self._memo[k]

class Obj(nnx.Module, pytree=False):
    def __init__(self, rngs):
        self.layers = [nnx.Linear(2, 2, rngs=rngs)]

class O2(nnx.Object):
    def __init__(self):
        self.x = [jnp.ones(2)]

@nnx.dataclass
class DC(nnx.Module):
    xs: list[int]
    lin: nnx.Linear
    ls: list[nnx.Linear] = nnx.data()
    name: str = nnx.static(default="x", kw_only=True)

def make_step(model: Good):
    @jax.jit
    def inner(params, x):
        return jnp.sum(model.layers[0].kernel * x)
    return inner

vmapped = nnx.vmap(lambda k: nnx.Linear(2, 2, rngs=nnx.Rngs(k)), in_axes=0)
@nnx.split_rngs(splits=5)
@nnx.vmap(in_axes=(0,), out_axes=0)
def create(rngs: nnx.Rngs):
    return nnx.Linear(2, 2, rngs=rngs)

@nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
def fwd(x, layer):
    return layer(x)

model = nnx.eval_shape(lambda: Good(Config((1,)), True, rngs=nnx.Rngs(0)))


class Scale(nnx.Module):
    def __init__(self, learn: bool):
        if learn:
            self.scale = nnx.Param(jnp.ones(2))
        else:
            self.scale = 1.0

    @functools.cached_property
    def frequencies(self):
        return nnx.Variable(jnp.arange(3.0))


class Guidance:
    def __init__(self, classifier: nnx.Module):
        self.classifier = classifier


class Guided(nnx.Module):
    def __init__(self, classifier: nnx.Module, layers: list):
        self.guidance = Guidance(classifier)
        try:
            self.layers = nnx.List([nnx.Linear(2, 2, rngs=nnx.Rngs(0))])
        except AttributeError:
            self.layers = [nnx.Linear(2, 2, rngs=nnx.Rngs(0))]

    def write(self, cache: nnx.Variable, new, lengths):
        place = [slice(None)] * 4

        def body(i, value):
            place[0] = i
            return value.at[tuple(place)].set(new)

        cache[...] = jax.lax.fori_loop(0, 3, body, cache[...])


def choose(state, filter: nnx.Param = nnx.Param):
    return nnx.split_state(state, filter, ...)
