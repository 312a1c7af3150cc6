"""Training steps, construction and import of nnxkit, beside flax.nnx, equinox and JAX without a library.

*Steps*: a CNN, a character-level GPT and an MLP of 50 layers, each defined once over nnxkit and flax and once over
equinox, trained by Adam. *Functional* is the same mathematics as a pure function of flat lists of arrays under
`jax.jit`: what one would write by hand, with nothing around the compiled program. Small models are those where Python
takes longer than the arithmetic; in the large ones it is the other way round. A turn is a loop of steps that is awaited
at its end, as in training; the contestants take turns in one run, and medians are reported. All but equinox begin with
the same numbers, and must agree on the loss.

*Construction* makes a model of 500 modules. *Import* is a fresh process that imports the library, less one that
imports jax.

    python benchmarks/training.py [--quick]
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from _turns import in_turns

Step = Callable[[], Any]
"""A training step; gives the loss."""


class Size(NamedTuple):
    """How large the models of a row are."""

    batch: int
    width: int


# The models, over nnxkit or flax.


def cnn(nnx: Any, size: Size) -> Any:
    class CNN(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.conv1 = nnx.Conv(1, size.width, (3, 3), rngs=rngs)
            self.conv2 = nnx.Conv(size.width, 2 * size.width, (3, 3), rngs=rngs)
            self.hidden = nnx.Linear(49 * 2 * size.width, 128, rngs=rngs)
            self.out = nnx.Linear(128, 10, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = nnx.avg_pool(nnx.relu(self.conv1(x)), (2, 2), strides=(2, 2))
            x = nnx.avg_pool(nnx.relu(self.conv2(x)), (2, 2), strides=(2, 2))
            return self.out(nnx.relu(self.hidden(x.reshape(len(x), -1))))

    return CNN(nnx.Rngs(0))


def gpt(nnx: Any, size: Size) -> Any:
    class Block(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            width = size.width
            self.norm1 = nnx.LayerNorm(width, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(4, width, decode=False, rngs=rngs)
            self.norm2 = nnx.LayerNorm(width, rngs=rngs)
            self.widen = nnx.Linear(width, 4 * width, rngs=rngs)
            self.narrow = nnx.Linear(4 * width, width, rngs=rngs)

        def __call__(self, x: Any, mask: Any) -> Any:
            x = x + self.attention(self.norm1(x), mask=mask)
            return x + self.narrow(nnx.gelu(self.widen(self.norm2(x))))

    class GPT(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.embed = nnx.Embed(96, size.width, rngs=rngs)
            self.blocks = nnx.List([Block(rngs) for _ in range(4)])
            self.norm = nnx.LayerNorm(size.width, rngs=rngs)

        def __call__(self, text: Any) -> Any:
            x, mask = self.embed(text), nnx.make_causal_mask(text)
            for block in self.blocks:
                x = block(x, mask)
            return self.embed.attend(self.norm(x))

    return GPT(nnx.Rngs(0))


def mlp(nnx: Any, size: Size) -> Any:
    class MLP(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.layers = nnx.List([nnx.Linear(size.width, size.width, rngs=rngs) for _ in range(50)])

        def __call__(self, x: Any) -> Any:
            for layer in self.layers:
                x = x + nnx.relu(layer(x))
            return x

    return MLP(nnx.Rngs(0))


# The same over equinox, whose layers take one example.


def eqx_cnn(size: Size) -> Any:
    keys = jax.random.split(jax.random.key(0), 4)
    return eqx.nn.Sequential(
        [
            eqx.nn.Lambda(lambda x: x.transpose(2, 0, 1)),
            eqx.nn.Conv2d(1, size.width, 3, padding=1, key=keys[0]),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.AvgPool2d(2, 2),
            eqx.nn.Conv2d(size.width, 2 * size.width, 3, padding=1, key=keys[1]),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.AvgPool2d(2, 2),
            eqx.nn.Lambda(jnp.ravel),
            eqx.nn.Linear(49 * 2 * size.width, 128, key=keys[2]),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.Linear(128, 10, key=keys[3]),
        ]
    )


class EqxBlock(eqx.Module):
    norm1: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    norm2: eqx.nn.LayerNorm
    widen: eqx.nn.Linear
    narrow: eqx.nn.Linear

    def __init__(self, width: int, key: Any) -> None:
        keys = jax.random.split(key, 3)
        self.norm1, self.norm2 = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
        self.attention = eqx.nn.MultiheadAttention(4, width, key=keys[0])
        self.widen = eqx.nn.Linear(width, 4 * width, key=keys[1])
        self.narrow = eqx.nn.Linear(4 * width, width, key=keys[2])

    def __call__(self, x: Any, mask: Any) -> Any:
        y = jax.vmap(self.norm1)(x)
        x = x + self.attention(y, y, y, mask=mask)
        return x + jax.vmap(self.narrow)(jax.nn.gelu(jax.vmap(self.widen)(jax.vmap(self.norm2)(x))))


class EqxGPT(eqx.Module):
    embed: eqx.nn.Embedding
    blocks: list[EqxBlock]
    norm: eqx.nn.LayerNorm

    def __init__(self, width: int) -> None:
        keys = jax.random.split(jax.random.key(0), 5)
        self.embed = eqx.nn.Embedding(96, width, key=keys[0])
        self.blocks = [EqxBlock(width, key) for key in keys[1:]]
        self.norm = eqx.nn.LayerNorm(width)

    def __call__(self, text: Any) -> Any:
        x, mask = jax.vmap(self.embed)(text), jnp.tril(jnp.ones((len(text), len(text)), bool))
        for block in self.blocks:
            x = block(x, mask)
        return jax.vmap(self.norm)(x) @ self.embed.weight.T


class EqxMLP(eqx.Module):
    layers: list[eqx.nn.Linear]

    def __init__(self, width: int) -> None:
        self.layers = [eqx.nn.Linear(width, width, key=key) for key in jax.random.split(jax.random.key(0), 50)]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + jax.nn.relu(layer(x))
        return x


class Task(NamedTuple):
    """A model, and what it is trained on: ``data`` gives inputs and targets, ``loss`` compares outputs with these."""

    make: Callable[[Any, Size], Any]
    make_eqx: Callable[[Size], Any]
    data: Callable[[Size], tuple[Any, Any]]
    loss: Callable[[Any, Any], Any]
    small: Size
    large: Size


def cross_entropy(logits: Any, labels: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def images(size: Size) -> tuple[Any, Any]:
    key = jax.random.key(1)
    return jax.random.normal(key, (size.batch, 28, 28, 1)), jax.random.randint(key, (size.batch,), 0, 10)


def texts(size: Size) -> tuple[Any, Any]:
    text = jax.random.randint(jax.random.key(1), (size.batch, 65), 0, 96)
    return text[:, :-1], text[:, 1:]


def vectors(size: Size) -> tuple[Any, Any]:
    x = jax.random.normal(jax.random.key(1), (size.batch, size.width))
    return x, jnp.roll(x, 1, axis=1)


TASKS = {
    "CNN": Task(cnn, eqx_cnn, images, cross_entropy, Size(1, 4), Size(64, 32)),
    "GPT": Task(gpt, lambda size: EqxGPT(size.width), texts, cross_entropy, Size(1, 16), Size(8, 128)),
    "MLP of 50 layers": Task(
        mlp, lambda size: EqxMLP(size.width), vectors, lambda y, z: jnp.square(y - z).mean(), Size(1, 8), Size(256, 256)
    ),
}


def transform() -> optax.GradientTransformation:
    return optax.adam(1e-3)


# The contestants.


def objects(nnx: Any, task: Task, size: Size, how: str) -> Step:
    """Model and optimizer are objects that the step changes; ``how`` says how the step is compiled."""
    model = task.make(nnx, size)
    optimizer = nnx.Optimizer(model, transform(), wrt=nnx.Param)
    inputs, targets = task.data(size)

    def step(model: Any, optimizer: Any, inputs: Any, targets: Any) -> Any:
        loss, gradients = nnx.value_and_grad(lambda model: task.loss(model(inputs), targets))(model)
        optimizer.update(model, gradients)
        return loss

    if how == "cached_partial":
        cached = nnx.cached_partial(nnx.jit(step), model, optimizer)
        return lambda: cached(inputs, targets)
    jitted = nnx.jit(step)
    return lambda: jitted(model, optimizer, inputs, targets)


def functional(nnx: Any, task: Task, size: Size) -> Step:
    """A pure function of flat lists of arrays."""
    graphdef, state = nnx.split(task.make(nnx, size))
    parameters, structure = jax.tree.flatten(state)
    adam = transform()
    inputs, targets = task.data(size)

    def loss_of(parameters: Any, inputs: Any, targets: Any) -> Any:
        model = nnx.merge(graphdef, jax.tree.unflatten(structure, parameters))
        return task.loss(model(inputs), targets)

    @jax.jit
    def step(parameters: Any, moments: Any, inputs: Any, targets: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(parameters, inputs, targets)
        updates, moments = adam.update(gradients, moments)
        return optax.apply_updates(parameters, updates), moments, loss

    held = [parameters, adam.init(parameters)]

    def call() -> Any:
        held[0], held[1], loss = step(*held, inputs, targets)
        return loss

    return call


def equinox(task: Task, size: Size) -> Step:
    """A step of equinox: model and moments go in and come out."""
    adam = transform()
    model = task.make_eqx(size)
    inputs, targets = task.data(size)

    @eqx.filter_jit
    def step(model: Any, moments: Any, inputs: Any, targets: Any) -> Any:
        loss_of = eqx.filter_value_and_grad(lambda model: task.loss(jax.vmap(model)(inputs), targets))
        loss, gradients = loss_of(model)
        updates, moments = adam.update(gradients, moments)
        return eqx.apply_updates(model, updates), moments, loss

    held = [model, adam.init(eqx.filter(model, eqx.is_array))]

    def call() -> Any:
        held[0], held[1], loss = step(*held, inputs, targets)
        return loss

    return call


def contestants(task: Task, size: Size) -> dict[str, Step]:
    from flax import nnx as flax_nnx

    import nnxkit

    return {
        "functional": functional(nnxkit, task, size),
        "nnxkit": objects(nnxkit, task, size, "jit"),
        "flax cached_partial": objects(flax_nnx, task, size, "cached_partial"),
        "flax": objects(flax_nnx, task, size, "jit"),
        "equinox": equinox(task, size),
    }


def times_of(steps: dict[str, Step], turns: int, calls: int) -> dict[str, float]:
    """The median time of a step of each, in seconds."""
    losses = {name: float(step()) for name, step in steps.items()}  # compiles
    same = [loss for name, loss in losses.items() if name != "equinox"]
    if max(same) - min(same) > 1e-4 * abs(same[0]):
        raise RuntimeError(f"the contestants do not compute the same: {losses}")

    def loop(step: Step) -> float:
        begin = time.perf_counter()
        for _ in range(calls):
            loss = step()
        jax.block_until_ready(loss)
        return (time.perf_counter() - begin) / calls

    gc.collect()
    gc.disable()
    medians = in_turns({name: partial(loop, step) for name, step in steps.items()}, turns, unmeasured=1)
    gc.enable()
    return medians


def construction(turns: int) -> dict[str, float]:
    """The median time to make a model of 500 modules, in seconds; its arrays are not awaited."""
    from flax import nnx as flax_nnx

    import nnxkit

    def make(nnx: Any) -> float:
        class Block(nnx.Module):
            def __init__(self, rngs: Any) -> None:
                self.norm = nnx.LayerNorm(8, rngs=rngs)
                self.linear1 = nnx.Linear(8, 8, rngs=rngs)
                self.linear2 = nnx.Linear(8, 8, rngs=rngs)
                self.dropout = nnx.Dropout(0.1, rngs=rngs)

        begin = time.perf_counter()
        model = nnx.List([Block(nnx.Rngs(0)) for _ in range(100)])
        seconds = time.perf_counter() - begin
        jax.block_until_ready(jax.tree.leaves(model))
        return seconds

    return in_turns({"nnxkit": partial(make, nnxkit), "flax": partial(make, flax_nnx)}, turns, unmeasured=1)


def imports(turns: int) -> dict[str, float]:
    """The median time of a process that imports something, in seconds."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def load(name: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import jax, {name}"], env=environment, check=True)
        return time.perf_counter() - begin

    names = ("jax", "nnxkit", "flax.nnx", "equinox")
    return in_turns({name: partial(load, name) for name in names}, turns, unmeasured=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few turns: to see that it runs")
    turns = 3 if parser.parse_args().quick else 31
    print(f"Python {sys.version.split()[0]}, jax {jax.__version__}, {jax.devices()[0].device_kind}\n")
    heading: tuple[str, ...] | None = None
    for large in (False, True):
        for name, task in TASKS.items():
            size = task.large if large else task.small
            medians = times_of(contestants(task, size), turns, 4 if large else 20)
            if heading is None:
                heading = tuple(medians)
                print("| model | batch, width | functional ms |", " | ".join(heading[1:]), "|")
                print("|---|---|" + "---:|" * len(heading))
            base = medians["functional"]
            ratios = " | ".join(f"{medians[each] / base:.2f}" for each in heading[1:])
            print(f"| {name} | {size.batch}, {size.width} | {base * 1e3:.2f} | {ratios} |", flush=True)

    made = construction(turns)
    ratio = made["nnxkit"] / made["flax"]
    print("\n| construction of 500 modules | nnxkit ms | flax ms | ratio |\n|---|---:|---:|---:|")
    print(f"| aim ≤ 0.5 | {made['nnxkit'] * 1e3:.1f} | {made['flax'] * 1e3:.1f} | {ratio:.2f} |")

    loaded = imports(turns // 3)
    print("\n| import | ms beyond `import jax` |\n|---|---:|")
    for name in ("nnxkit", "flax.nnx", "equinox"):
        print(f"| `{name}` | {(loaded[name] - loaded['jax']) * 1e3:.0f} |")


if __name__ == "__main__":
    main()
