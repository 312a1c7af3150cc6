"""Random streams where a page cannot say it: the forms that people write, and what looks like a mistake."""

from pathlib import Path

import pytest

from marked import expect, program

LIB = {
    "lib.py": """\
from flax import nnx

class Base(nnx.Module):
    def __init__(self, size, rngs: nnx.Rngs):
        self.inner = nnx.Linear(size, size, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return self.drop(self.inner(x))

class Twice(nnx.Module):
    def __init__(self, *, streams):
        self.base = nnx.List([Base(2, streams) for _ in range(2)])
        self.head = nnx.Linear(2, 1, rngs=streams)
"""
}

FORMS = {
    "streams of a class in another file": """
        from lib import Base
        Base(2, nnx.Rngs(dropout=0))  # NNX501
        """,
    "streams that a submodule needs": """
        from lib import Twice
        Twice(streams=nnx.Rngs(params=0))  # NNX501
        """,
    "a number that nobody gives here": """
        def build(seed: int):
            return nnx.Linear(2, 2, rngs=seed)  # NNX515
        def build_by_default(seed: int = 0):
            return nnx.Linear(2, 2, rngs=seed)  # NNX515
        def build_of_either(rngs: int | nnx.Rngs):
            rngs = nnx.Rngs(rngs) if isinstance(rngs, int) else rngs
            return nnx.Linear(2, 2, rngs=rngs)
        """,
    "a seed that a default has, too": """
        def make(first=nnx.Linear(2, 2, rngs=nnx.Rngs(0))):
            one = nnx.Linear(2, 2, rngs=nnx.Rngs(0))  # NNX529
            return one, first
        """,
    "a named stream of a default": """
        streams = nnx.Rngs(0, noise=1, sample=2)
        def draw(x):
            return x + streams.noize()  # NNX513
        draw(1)
        """,
    "a slip where a part draws only sometimes": """
        class Noise(nnx.Module):
            def __init__(self, *, rngs: nnx.Rngs):
                self.on = True
                self.rngs = rngs.fork()

            def __call__(self, x):
                if not self.on:
                    return x
                return x + self.rngs.noize()  # NNX513

        class Net(nnx.Module):
            def __init__(self, *, rngs: nnx.Rngs):
                self.noise = Noise(rngs=rngs)

        Net(rngs=nnx.Rngs(0, noise=1))
        """,
    "streams given to an initializer by keyword": """
        def make(rngs: nnx.Rngs):
            return nnx.initializers.lecun_normal()(key=rngs, shape=(2, 3))  # NNX514
        """,
    "a stream as a key in a method": """
        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.rngs = rngs

            def __call__(self, x):
                return x + jax.random.normal(self.rngs.noise, x.shape)  # NNX514
        """,
    "a seed for a class of one's own": """
        class Net(nnx.Module):
            def __init__(self, size, *, rngs):
                self.inner = nnx.Linear(size, size, rngs=rngs)

        Net(2, rngs=42)  # NNX515
        Net(2, rngs=jax.random.key(0))  # NNX515
        """,
    "one stream for a layer": """
        def make(rngs: nnx.Rngs):
            drop = nnx.Dropout(0.5, rngs=rngs.dropout)
            return drop, nnx.Linear(2, 2, rngs=rngs.params)  # NNX515
        """,
    "a layer without streams through a partial": """
        Conv = functools.partial(nnx.Conv, kernel_size=(3, 3), use_bias=False)

        class Net(nnx.Module):
            def __init__(self, rngs):
                self.first = Conv(3, 8, rngs=rngs)
                self.second = Conv(8, 8)  # NNX516
        """,
    "a layer without streams below a layer of the library": """
        class Wide(nnx.Linear):
            def __init__(self, size, rngs):
                super().__init__(size, 4 * size, rngs=rngs)

        class Same(nnx.Linear):
            pass

        Same(2, 2)  # NNX516
        """,
    "streams in the place of strides": """
        def block(rngs: nnx.Rngs):
            return nnx.Conv(3, 8, (3, 3), rngs)  # NNX517
        """,
    "a loop with one seed": """
        class Net(nnx.Module):
            def __init__(self, depth):
                self.layers = nnx.List([])
                for _ in range(depth):
                    self.layers.append(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))  # NNX518
        """,
    "a comprehension with one seed": """
        class Net(nnx.Module):
            def __init__(self, depth, seed):
                self.layers = nnx.List([nnx.Linear(2, 2, rngs=nnx.Rngs(seed)) for _ in range(depth)])  # NNX518
        """,
    "a key used twice in blocks of one function": """
        def noise(rngs: nnx.Rngs, x, wide):
            key = rngs()
            x = x + jax.random.normal(key, x.shape)
            if wide:
                x = x * jax.random.uniform(key, x.shape)  # NNX519
            return x
        """,
    "a stack in a constructor": """
        class Stack(nnx.Module):
            def __init__(self, depth, rngs: nnx.Rngs):
                self.embed = nnx.Embed(10, 2, rngs=rngs)
                create = nnx.vmap(lambda rngs: nnx.Linear(2, 2, rngs=rngs), in_axes=0)
                self.layers = create(rngs)  # NNX511
        """,
    "streams and layers of one function": """
        create = nnx.vmap(lambda rngs: nnx.Linear(2, 2, rngs=rngs))

        def main():
            rngs = nnx.Rngs(0)
            drop = nnx.Dropout(0.5, rngs=rngs)
            nnx.vmap(lambda drop, x: drop(x))(drop, jnp.ones((3, 2)))  # NNX511
            return create(rngs)  # NNX511
        """,
    "decorators the wrong way round in a constructor": """
        class Stack(nnx.Module):
            def __init__(self, depth, rngs: nnx.Rngs):
                @nnx.vmap(in_axes=0)  # NNX520
                @nnx.split_rngs(splits=depth)
                def create(rngs):
                    return nnx.Linear(2, 2, rngs=rngs)

                self.layers = create(rngs)
        """,
    "an ensemble with one key": """
        create = functools.partial(nnx.vmap, in_axes=None, axis_size=3)(lambda rngs: nnx.Linear(2, 2, rngs=rngs))
        members = create(nnx.Rngs(0))  # NNX521
        """,
    "a model with dropout mapped over the batch": """
        from lib import Base

        @functools.partial(nnx.vmap, in_axes=(None, 0))
        def apply(model, x):
            return model(x)  # NNX522

        apply(Base(2, rngs=nnx.Rngs(0)), jnp.ones((3, 2)))
        """,
    "streams of a jitted step": """
        @jax.jit
        def step(rngs: nnx.Rngs, x):
            return x + rngs.noise.normal(x.shape)  # NNX523

        @jax.jit
        def other(rngs, x):
            key = rngs.noise()  # NNX523
            return x + jax.random.normal(key, x.shape)

        other(nnx.Rngs(0), jnp.ones(2))
        """,
    "a fresh seed in a forward pass": """
        class Net(nnx.Module):
            def __call__(self, x):
                rngs = nnx.Rngs(noise=0)  # NNX531
                return x + rngs.noise.normal(x.shape)
        """,
    "a default of a keyword": """
        def make(size, *, rngs: nnx.Rngs = nnx.Rngs(0)):  # NNX524
            return nnx.Linear(size, size, rngs=rngs)
        """,
    "a reseeded model": """
        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs):
                self.drop = nnx.Dropout(0.5, rngs=rngs)

        net = Net(nnx.Rngs(0))
        nnx.reseed(net, dropout=1)  # NNX527
        """,
}

CLEAN = {
    "streams made of whatever is given": """
        class Net(nnx.Module):
            def __init__(self, size, rngs=0):
                if isinstance(rngs, int):
                    rngs = nnx.Rngs(rngs)
                self.inner = nnx.Linear(size, size, rngs=rngs)

        Net(2, 1)
        Net(2)
        """,
    "layers in a branch": """
        class Net(nnx.Module):
            def __init__(self, size, rngs: nnx.Rngs, drop=0.0):
                if drop:
                    self.drop = nnx.Dropout(drop, rngs=rngs)
                self.inner = nnx.Linear(size, size, rngs=rngs)

        Net(2, nnx.Rngs(params=0))
        """,
    "streams of a name of one's own": """
        rngs = nnx.Rngs(0, noise=1)
        rngs.noises_of_all(), rngs.sampling(), rngs.param()
        """,
    "a class that takes a key": """
        class Net(nnx.Module):
            def __init__(self, size, key):
                self.inner = nnx.Linear(size, size, rngs=nnx.Rngs(key))

        Net(2, jax.random.key(0))
        """,
    "optional streams": """
        class Net(nnx.Module):
            def __init__(self, size, rngs: nnx.Rngs | None = None):
                rngs = rngs or nnx.Rngs(0)
                self.inner = nnx.Linear(size, size, rngs=rngs)

        Net(2)
        Net(2, None)
        """,
    "arguments of unknown length": """
        def make(*args, **kwargs):
            return nnx.Linear(*args), nnx.Linear(2, 2, **kwargs)
        """,
    "a seed for each": """
        class Net(nnx.Module):
            def __init__(self, depth, seed):
                self.a = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
                self.b = nnx.Linear(2, 2, rngs=nnx.Rngs(1))
                self.c = nnx.List([nnx.Linear(2, 2, rngs=nnx.Rngs(i)) for i in range(depth)])
        """,
    "streams of a call where none are given": """
        class Net(nnx.Module):
            def __call__(self, x, rngs=None, seed=0):
                rngs = nnx.Rngs(0) if rngs is None else rngs
                other = nnx.Rngs(seed)
                return x + rngs.normal(x.shape) + other.normal(x.shape)
        """,
    "a key for each": """
        def noise(rngs: nnx.Rngs, x, wide):
            key = rngs()
            if wide:
                return jax.random.normal(key, x.shape)
            x = jax.random.uniform(key, x.shape)
            key = rngs()
            return x + jax.random.normal(key, x.shape)
        """,
    "a stack of split streams": """
        class Stack(nnx.Module):
            def __init__(self, depth, rngs: nnx.Rngs):
                self.embed = nnx.Embed(10, 2, rngs=rngs)
                create = nnx.vmap(lambda rngs: nnx.Linear(2, 2, rngs=rngs))
                self.a = create(rngs.split(depth))
                self.b = create(rngs.fork(split=depth))
                self.c = nnx.split_rngs(splits=depth)(create)(rngs)

        def ensemble(rngs):
            return nnx.vmap(lambda rngs: nnx.Linear(2, 2, rngs=rngs))(rngs)
        """,
    "streams that a function makes anew": """
        create = nnx.vmap(lambda rngs: nnx.Linear(2, 2, rngs=rngs))

        def main():
            rngs = nnx.Rngs(0)
            rngs = rngs.split(3)
            return create(rngs)

        def other(rngs: nnx.Rngs):
            head = nnx.Linear(2, 2, rngs=rngs)
            rngs = rngs.fork(split=3)
            return head, create(rngs)
        """,
    "streams split around a map": """
        rngs = nnx.Rngs(0)
        create = nnx.vmap(lambda rngs: nnx.Linear(2, 2, rngs=rngs))
        with nnx.split_rngs(rngs, splits=3):
            layers = create(rngs)
        """,
    "a model that comes back": """
        @jax.jit
        def step(graphdef, state, x):
            model = nnx.merge(graphdef, state)
            y = model(x)
            return y, nnx.state(model)

        @jax.jit
        def draw(rngs, x):
            return x + rngs.normal(x.shape), nnx.state(rngs)

        draw(nnx.Rngs(0), jnp.ones(2))
        """,
    "a model in evaluation": """
        drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
        drop.eval()
        nnx.vmap(lambda drop, x: drop(x), in_axes=(None, 0))(drop, jnp.ones((3, 2)))
        """,
}


@pytest.mark.parametrize("name", FORMS)
def test_is_found(name: str, tmp_path: Path) -> None:
    expect(tmp_path, LIB | program(FORMS[name]), rules=("NNX5",))


@pytest.mark.parametrize("name", CLEAN)
def test_is_clean(name: str, tmp_path: Path) -> None:
    expect(tmp_path, LIB | program(CLEAN[name]), rules=("NNX5",))
