"""Modules, modes, containers and gradients where a page cannot say it: other forms, and what looks like a mistake."""

from pathlib import Path

import pytest

from marked import expect, program

RULES = (
    "NNX46",
    "NNX407",
    "NNX412",
    "NNX414",
    "NNX443",
    "NNX601",
    "NNX64",
    "NNX80",
    "NNX83",
    "NNX84",
    "NNX85",
    "NNX86",
)

LIB = {
    "lib.py": """\
from flax import nnx

class Base(nnx.Module):
    def __init__(self, size, rngs: nnx.Rngs):
        self.inner = nnx.Linear(size, size, rngs=rngs)

    def encode(self, x):
        return self.inner(x)

class Sower(nnx.Module):
    def note(self, x):
        self.sow(nnx.Intermediate, "seen", x)
        return x

class Shown(nnx.Intermediate):
    pass
"""
}

FORMS = {
    "a base in another file": """
        from lib import Base

        class Net(Base):
            def __init__(self, size, rngs):
                self.head = nnx.Linear(size, 1, rngs=rngs)  # NNX830

            def __call__(self, x):
                return self.head(self.encode(x))
        """,
    "a layer of the library as a base": """
        class Scaled(nnx.LayerNorm):
            def __init__(self, size):
                self.size = size  # NNX830
        """,
    "a name behind an alias": """
        import flax.nnx as nn
        layers = nn.ModuleList([])  # NNX832
        """,
    "a block made in a forward pass": """
        from lib import Base

        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.rngs = rngs

            def __call__(self, x):
                base = Base(2, rngs=self.rngs)  # NNX833
                return base.encode(x)
        """,
    "a parameter made in a forward pass": """
        class Net(nnx.Module):
            def __call__(self, x):
                w = nnx.Param(jnp.ones((2, 2)))  # NNX833
                x = x @ w[...] + jnp.sum(w[...])
                return x * nnx.Param(jnp.ones(2))  # NNX833
        """,
    "a factory of initializers given by name": """
        init = nnx.initializers.lecun_normal
        nnx.Linear(2, 2, kernel_init=init, rngs=nnx.Rngs(0))  # NNX835
        """,
    "a method that torch calls by itself": """
        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.inner = nnx.Linear(2, 2, rngs=rngs)

            def forward(self, x):
                return self.inner(x)

        class Model(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.net = Net(rngs)

            def __call__(self, x):
                return self.net(x)  # NNX836
        """,
    "a helper of the module sows": """
        from lib import Sower

        class Net(nnx.Module):
            def __init__(self):
                self.part = Sower()

            def __call__(self, x):
                return self.part.note(x)

        @nnx.jit
        def step(net, x):
            return net(x)

        def train(net: Net):
            for _ in range(3):
                step(net, jnp.ones(2))  # NNX640

        net = Net()
        for _ in range(3):
            step(net, jnp.ones(2))  # NNX640
        """,
    "a type below the captured one": """
        from lib import Shown

        class Net(nnx.Module):
            def __call__(self, x):
                self.sow(Shown, "seen", x)
                return x

        def run(x):
            captured = nnx.capture(Net(), nnx.Intermediate)  # NNX645
            return captured(x)
        """,
    "a slip in a submodule's attribute": """
        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.layers = nnx.List([nnx.BatchNorm(2, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)])

        def evaluate():
            net = Net(nnx.Rngs(0))
            return nnx.with_attributes(net, use_runing_average=True)  # NNX801
        """,
    "a flag of a base class": """
        class Base(nnx.Module):
            def __init__(self):
                self.training = True

        class Net(Base):
            pass

        def main():
            net = Net()
            net.eval()  # NNX841
            return net
        """,
    "a list in an attribute": """
        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.layers = nnx.List([nnx.Linear(2, 2, rngs=rngs) for _ in range(3)])

            def drop_first(self):
                del self.layers[0]  # NNX851
                self.layers.pop(0)  # NNX851

            def __call__(self, name):
                return self.layers["first"], self.layers + [name]  # NNX852 NNX852
        """,
    "a loss with two results": """
        def loss(model, x):
            y = model(x)
            return y.mean(), {"y": y}

        def step(model, x):
            value, aux, grads = nnx.value_and_grad(loss, has_aux=True)(model, x)  # NNX462
            return grads

        def other(model: nnx.Linear, x):
            return nnx.grad(loss)(model, x)  # NNX463
        """,
    "plain arrays in a model": """
        class Net(nnx.Module):
            def __init__(self, size):
                self.w = jnp.zeros((size, size))
                self.b = nnx.BatchStat(jnp.zeros(size))

        def step():
            net = Net(2)
            return nnx.grad(lambda net: net.w.sum())(net)  # NNX460
        """,
    "a flag of a jitted method": """
        class Net(nnx.Module):
            @nnx.jit
            def run(self, x, train):
                y = x * 2
                if train and y is not None:  # NNX465
                    return y
                return x

        Net().run(jnp.ones(2), True)
        """,
    "sizes as Linen gives them": """
        Dense = functools.partial(nnx.Linear, use_bias=False)

        def make(rngs: nnx.Rngs):
            return Dense(3, rngs=rngs), nnx.Conv(features=8, kernel_size=(3,), rngs=rngs)  # NNX838 NNX838
        """,
    "a flag that a block would take": """
        class Block(nnx.Module):
            def __call__(self, x, *, training: bool = False):
                return x * 2 if training else x

        class Net(nnx.Module):
            def __init__(self):
                self.block = Block()
                self.norm = nnx.BatchNorm(2, rngs=nnx.Rngs(0))

            def __call__(self, x, use_running_average=True, training=False):
                x = self.norm(x)  # NNX843
                return self.block(x)  # NNX843
        """,
    "a number of the state donated": """
        step = jax.jit(lambda params, x: params + x, donate_argnums=(0,))

        def train(x):
            params = jnp.ones(2)
            new = step(params, x)
            return new, params + 1  # NNX467
        """,
}

CLEAN = {
    "a base that others complete": """
        class Base(nnx.Module):
            def __init__(self, size):
                self.size = size

            def width(self):
                return self.size

        class Fixed(Base):
            size = 3

            def __init__(self):
                self.depth = 1

        class Named(Base):
            def __init__(self):
                self.build()

            def build(self):
                self.size = 3

        class Other(Base):
            def __init__(self):
                Base.__init__(self, 3)
        """,
    "a layer that is made anew": """
        class Scaled(nnx.Linear):
            def __init__(self, size):
                self.scale = nnx.Param(jnp.ones(size))

            def __call__(self, x):
                return x * self.scale
        """,
    "names that are asked for": """
        if hasattr(nnx, "Dense"):
            layer = nnx.Dense
        try:
            from flax.nnx import ModuleList
        except ImportError:
            ModuleList = nnx.List
        """,
    "a factory method": """
        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.rngs = rngs

            def make(self, size):
                return nnx.Linear(size, size, rngs=self.rngs)

            def __call__(self, x):
                layer = nnx.Linear(2, 2, rngs=self.rngs)
                return layer
        """,
    "parameters that go somewhere": """
        class Net(nnx.Module):
            def __call__(self, x):
                w = nnx.Param(x)
                self.w = nnx.Param(x)
                nnx.update(self, {"w": nnx.Param(x)})
                return w

            def make(self, x):
                return nnx.Param(x) * 2
        """,
    "a cache that comes later": """
        class Net(nnx.Module):
            def __call__(self, x):
                if not hasattr(self, "cache"):
                    self.cache = nnx.Cache(x)
                return self.cache[...]
        """,
    "a base without a call": """
        class Base(nnx.Module):
            def run(self, x):
                return self(x)

        class Net(Base):
            def __call__(self, x):
                return x

        def apply(model: Base, x):
            return model(x)

        Net().run(1)
        """,
    "methods with familiar names": """
        class Net(nnx.Module):
            def init(self, x):
                return x

            def apply(self, x):
                return x

            def setup(self):
                self.size = 3

            def param(self, name):
                return name

        net = Net()
        net.init(1), net.apply(1), net.setup(), net.param("w")
        """,
    "sown and taken out": """
        class Net(nnx.Module):
            def __call__(self, x):
                self.sow(nnx.Intermediate, "seen", x)
                return x

        net = Net()
        for _ in range(3):
            net(jnp.ones(2))
            seen = nnx.pop(net, nnx.Intermediate)
        """,
    "captured in other ways": """
        class Net(nnx.Module):
            def __call__(self, x):
                self.sow(nnx.Intermediate, "seen", x)
                return x

        @nnx.jit
        def step(net, x):
            return nnx.capture(net, nnx.Intermediate)(x)

        net = Net()
        for _ in range(3):
            y, seen = step(net, jnp.ones(2))
        """,
    "attributes of parts that are not known": """
        class Net(nnx.Module):
            def __init__(self, part, rngs: nnx.Rngs):
                self.part = part
                self.drop = nnx.Dropout(0.5, rngs=rngs)

        def make(part):
            net = Net(part, nnx.Rngs(0))
            net.set_attributes(temperature=2.0)
            net.eval(frozen=True)
            return nnx.view(net, temperature=1.0)
        """,
    "a flag that the program sets": """
        class Net(nnx.Module):
            def __init__(self):
                self.training = True

        net = Net()
        net.eval()
        net.training = False
        """,
    "a list that is rebuilt": """
        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.layers = nnx.List([nnx.Linear(2, 2, rngs=rngs) for _ in range(3)])

            def shorten(self, index):
                self.layers.pop()
                self.layers = nnx.List(list(self.layers)[1:])
                return self.layers[index], self.layers[1:], self.layers == [1]
        """,
    "gradients with auxiliary values": """
        def loss(model, x):
            y = model(x)
            return y.mean(), {"y": y}

        def pair(model, x):
            return loss(model, x)

        def step(model, x):
            (value, aux), grads = nnx.value_and_grad(loss, has_aux=True)(model, x)
            grads, aux = nnx.grad(pair, has_aux=True)(model, x)
            value, grads = nnx.value_and_grad(lambda model: model(x).sum())(model)
            return grads
        """,
    "flags that are static or left to a default": """
        @functools.partial(jax.jit, static_argnums=(1,), static_argnames="wide")
        def run(x, train, wide=False, scale=None):
            if scale is None:
                scale = 1
            if train and wide:
                return x * scale
            return x

        run(jnp.ones(2), True, wide=True)
        run(jnp.ones(2), False)
        """,
    "layers made in other ways": """
        Dense = functools.partial(nnx.Linear, out_features=8)

        def make(config, sizes, rngs):
            layers = [nnx.Linear(**config), nnx.Linear(*sizes, rngs=rngs), Dense(3, rngs=rngs)]
            return nnx.Sequential(*layers), nnx.Dict(features=3), nnx.List(), nnx.PReLU()
        """,
    "flags that are used or handed on": """
        class Block(nnx.Module):
            def __call__(self, x, training: bool = False):
                return x * 2 if training else x

        class Net(nnx.Module):
            def __init__(self):
                self.block = Block()
                self.drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0))

            def __call__(self, x, training: bool = False, wide: bool = True, deterministic: bool | None = None):
                return self.block(x, training), self.drop(x)

            def other(self, x, training: bool = False):
                return self.block(x)
        """,
    "a donated name that is bound anew": """
        step = jax.jit(lambda params, x: params + x, donate_argnums=0)

        def train(params, x):
            params = jnp.ones(2)
            for _ in range(3):
                params = step(params, x)
            new = step(params, x)
            params = new
            return params + 1
        """,
    "modules with some Param": """
        class Net(nnx.Module):
            def __init__(self, part, rngs: nnx.Rngs):
                self.w = jnp.zeros(2)
                self.part = part

        def step(part):
            net = Net(part, nnx.Rngs(0))
            return nnx.grad(lambda net: net.w.sum())(net)
        """,
}


@pytest.mark.parametrize("name", FORMS)
def test_is_found(name: str, tmp_path: Path) -> None:
    expect(tmp_path, LIB | program(FORMS[name]), rules=RULES)


@pytest.mark.parametrize("name", CLEAN)
def test_is_clean(name: str, tmp_path: Path) -> None:
    expect(tmp_path, LIB | program(CLEAN[name]), rules=RULES)
