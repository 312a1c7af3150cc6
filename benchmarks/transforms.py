"""Transforms of nnxkit against raw JAX, and flax.nnx beside them.

*Dispatch*: a call of a function that was compiled before. Models of 72 and 702 leaves, with the state of Adam, are
arguments; the function either adds one to every leaf, or reads them all. Raw is ``jax.jit`` over the flat list of the
same arrays. *Static edit* sets a static attribute of one layer back and forth between the calls, both structures being
compiled before; *captured* reaches the objects through a closure instead of arguments. A call is timed until it
returns; its arrays are awaited outside of the measured time.

*Tracing*: a train step with Adam on blocks of Linear, BatchNorm, Dropout, as ``jax.jit`` traces it, without lowering
and compiling, against the same step as functions of dictionaries. The function is a new one each time. The two steps
are run once before, and must agree.

*Memory*: what calls with ever new objects of one structure leave behind.

The contestants of a measure take turns in one run, in rotating order (in dispatch, nnxkit and the peers each with raw),
and without garbage collection meanwhile; medians are reported.

Run with ``python benchmarks/transforms.py``.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from graph_ops import define_model, edit_static

CALLS = 10
"""Calls in a turn, where calls are short."""

BATCH, WIDTH, RATE, MOMENTUM, EPSILON = 8, 16, 0.1, 0.99, 1e-5


@dataclass(frozen=True)
class Contestant:
    """One way to do what is measured.

    Attributes:
        call: the measured call.
        wait: waits for its arrays.
        edit: what happens before each call, with its number.
    """

    call: Callable[[], Any]
    wait: Callable[[Any], Any] = jax.block_until_ready
    edit: Callable[[int], None] = lambda turn: None


OWN_TURNS = 3
"""How many times more turns nnxkit and raw get than the peers: their calls are short."""


def take_turns(contestants: dict[str, Contestant], turns: int, calls: int = 1) -> dict[str, float]:
    """Median seconds of a call of each. A turn is several calls, as in a loop that does nothing else."""
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    names = list(contestants)
    gc.collect()
    gc.disable()
    for turn in range(-2, turns):  # the first turns compile
        start = turn % len(names)
        for name in (*names[start:], *names[:start]):
            contestant = contestants[name]
            for call in range(calls):
                contestant.edit(turn * calls + call)
                begin = time.perf_counter()
                result = contestant.call()
                seconds = time.perf_counter() - begin
                contestant.wait(result)
                if turn >= 0:
                    samples[name].append(seconds)
    gc.enable()
    return {name: statistics.median(values) for name, values in samples.items()}


# Dispatch


def write_all(nnx: Any) -> Callable[..., None]:
    """Adds one to everything in a model and its optimizer."""

    def write(*objects: Any) -> None:
        nnx.update(objects, jax.tree.map(lambda leaf: leaf + 1, nnx.state(objects)))

    return write


def read_all(nnx: Any) -> Callable[..., jax.Array]:
    """Reads everything in a model and its optimizer."""

    def read(*objects: Any) -> jax.Array:
        return sum_of(jax.tree.leaves(nnx.state(objects)))

    return read


def sum_of(leaves: Sequence[jax.Array]) -> jax.Array:
    return jnp.concatenate([leaf.ravel() for leaf in leaves]).sum()


def make_objects(nnx: Any, blocks: int) -> tuple[Any, Any]:
    """A model and its optimizer."""
    model = define_model(nnx)(blocks)
    return model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)


def passed(nnx: Any, function: Callable[..., Any], blocks: int, *, edits: bool = False, **options: Any) -> Contestant:
    """The objects are arguments."""
    model, optimizer = make_objects(nnx, blocks)
    jitted = nnx.jit(function, **options)
    edit = (lambda turn: edit_static(model, turn)) if edits else Contestant.edit
    return Contestant(lambda: jitted(model, optimizer), await_model(model), edit)


def captured(nnx: Any, function: Callable[..., Any], blocks: int) -> Contestant:
    """The objects are captured."""
    model, optimizer = make_objects(nnx, blocks)
    jitted = nnx.jit(lambda: function(model, optimizer))
    return Contestant(jitted, await_model(model))


def partial(nnx: Any, function: Callable[..., Any], blocks: int) -> Contestant:
    """The objects are looked at once, by ``cached_partial``."""
    model, optimizer = make_objects(nnx, blocks)
    return Contestant(nnx.cached_partial(nnx.jit(function), model, optimizer), await_model(model))


def await_model(model: Any) -> Callable[[Any], Any]:
    """Waits for the result of a call and for what it wrote into the model; one computation makes both."""
    return lambda result: jax.block_until_ready((result, model.blocks[0].first.kernel.get_value()))


def raw(nnx: Any, blocks: int, *, writes: bool) -> Contestant:
    """``jax.jit`` on the flat list of arrays."""
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(nnx.state(make_objects(nnx, blocks)))]
    if not writes:
        read = jax.jit(lambda leaves: sum_of(leaves))
        return Contestant(lambda: read(leaves))
    write = jax.jit(lambda leaves: [leaf + 1 for leaf in leaves])

    def call() -> None:
        leaves[:] = write(leaves)

    return Contestant(call, lambda result: jax.block_until_ready(leaves[0]))


def dispatch(nnx: Any, flax_nnx: Any, blocks: int) -> dict[str, dict[str, Contestant]]:
    """The measures, and who takes part."""
    measures: dict[str, dict[str, Contestant]] = {}
    for measure, make, edits in (
        ("all updated", write_all, False),
        ("nothing updated", read_all, False),
        ("all updated, static edit", write_all, True),
    ):
        own, peer = make(nnx), make(flax_nnx)
        measures[measure] = {
            "raw": raw(nnx, blocks, writes=make is write_all),
            "nnxkit": passed(nnx, own, blocks, edits=edits),
            "flax": passed(flax_nnx, peer, blocks, edits=edits),
        }
        if not edits:
            measures[measure] |= {
                "nnxkit captured": captured(nnx, own, blocks),
                "flax graph=False": passed(flax_nnx, peer, blocks, graph=False),
                "flax cached_partial": partial(flax_nnx, peer, blocks),
            }
    return measures


def report_dispatch(nnx: Any, flax_nnx: Any, sizes: Sequence[int], turns: int) -> None:
    others = ("nnxkit", "nnxkit captured", "flax", "flax graph=False", "flax cached_partial")
    print(f"| leaves | measure | raw µs | {' | '.join(others)} | captured ÷ passed |")
    print(f"|---:|---|{'---:|' * (len(others) + 2)}")
    for blocks in sizes:
        leaves = len(jax.tree.leaves(nnx.state(make_objects(nnx, blocks))))
        count = f"{6 * blocks} + {leaves - 6 * blocks}"
        for measure, contestants in dispatch(nnx, flax_nnx, blocks).items():
            # In two rounds, each against raw: a peer that runs milliseconds of Python empties the caches for the next.
            ratios: dict[str, float] = {}
            raw_seconds = 0.0
            for peers, more in ((True, 1), (False, OWN_TURNS)):
                chosen = {name: one for name, one in contestants.items() if name == "raw" or ("flax" in name) is peers}
                seconds = take_turns(chosen, turns * more, CALLS)
                raw_seconds = seconds["raw"]
                ratios.update((name, seconds[name] / raw_seconds) for name in chosen)
            own, captured_ratio = ratios["nnxkit"], ratios.get("nnxkit captured")
            shown = [f"{ratios[name]:.2f}" if name in ratios else "" for name in others]
            shown.append("" if captured_ratio is None else f"{captured_ratio / own:.2f}")
            print(f"| {count} | {measure} | {raw_seconds * 1e6:.0f} | {' | '.join(shown)} |", flush=True)


# Tracing


def define_network(nnx: Any) -> Callable[[int], Any]:
    """The traced model over one of the libraries; takes the number of blocks (7 leaves each; the head has 2)."""

    class Block(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.linear = nnx.Linear(WIDTH, WIDTH, use_bias=False, rngs=rngs)
            self.norm = nnx.BatchNorm(WIDTH, momentum=MOMENTUM, epsilon=EPSILON, rngs=rngs)
            self.dropout = nnx.Dropout(RATE, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.dropout(jax.nn.relu(self.norm(self.linear(x))))

    class Network(nnx.Module):
        def __init__(self, blocks: int) -> None:
            rngs = nnx.Rngs(0)
            self.blocks = nnx.List([Block(rngs) for _ in range(blocks)])
            self.head = nnx.Linear(WIDTH, 1, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    return Network


def make_step(nnx: Any) -> Callable[..., jax.Array]:
    """A new train step on objects."""

    def step(model: Any, optimizer: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        def loss_of(model: Any) -> jax.Array:
            return ((model(x) - y) ** 2).mean()

        loss, grads = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, grads)
        return loss

    return step


def forward(params: Any, stats: Any, streams: Any, x: jax.Array) -> tuple[jax.Array, Any, Any]:
    """The network on dictionaries; returns new statistics and random streams, too."""
    new_stats, new_streams = [], []
    for layer, stat, stream in zip(params["blocks"], stats, streams, strict=True):
        x = x @ layer["kernel"]
        mean = x.mean(0)
        var = jnp.maximum(0.0, (x * x).mean(0) - mean * mean)
        new_stats.append(
            {
                "mean": MOMENTUM * stat["mean"] + (1 - MOMENTUM) * mean,
                "var": MOMENTUM * stat["var"] + (1 - MOMENTUM) * var,
            }
        )
        x = (x - mean) * (jax.lax.rsqrt(var + EPSILON) * layer["scale"]) + layer["bias"]
        x = jax.nn.relu(x)
        key = jax.random.fold_in(stream["key"], stream["count"])
        new_streams.append({"key": stream["key"], "count": stream["count"] + 1})
        x = jnp.where(jax.random.bernoulli(key, 1 - RATE, x.shape), x / (1 - RATE), 0.0)
    return x @ params["head"]["kernel"] + params["head"]["bias"], new_stats, new_streams


def make_functional_step(tx: optax.GradientTransformation) -> Callable[..., Any]:
    """A new train step on dictionaries."""

    def step(params: Any, stats: Any, streams: Any, opt_state: Any, x: jax.Array, y: jax.Array) -> Any:
        def loss_of(params: Any) -> tuple[jax.Array, Any]:
            prediction, *rest = forward(params, stats, streams, x)
            return ((prediction - y) ** 2).mean(), rest

        (loss, rest), grads = jax.value_and_grad(loss_of, has_aux=True)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return loss, optax.apply_updates(params, updates), *rest, opt_state

    return step


def functional_arguments(network: Any, tx: optax.GradientTransformation) -> tuple[Any, ...]:
    """The parameters, statistics, random streams and optimizer state of a network."""
    params = {
        "blocks": [
            {
                "kernel": block.linear.kernel.get_value(),
                "scale": block.norm.scale.get_value(),
                "bias": block.norm.bias.get_value(),
            }
            for block in network.blocks
        ],
        "head": {"kernel": network.head.kernel.get_value(), "bias": network.head.bias.get_value()},
    }
    stats = [{"mean": block.norm.mean.get_value(), "var": block.norm.var.get_value()} for block in network.blocks]
    streams = [
        {"key": block.dropout.rngs.key.get_value(), "count": block.dropout.rngs.count.get_value()}
        for block in network.blocks
    ]
    return params, stats, streams, tx.init(params)


def require_agreement(nnx: Any) -> None:
    """Raise unless the train steps on objects and on dictionaries do the same."""
    tx = optax.adam(1e-3)
    network = define_network(nnx)(3)
    optimizer = nnx.Optimizer(network, tx, wrt=nnx.Param)
    x, y = data()
    results = make_functional_step(tx)(*functional_arguments(network, tx), x, y)
    loss = make_step(nnx)(network, optimizer, x, y)
    expected = (results[0], *results[1:4])
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(raw_bits(a), raw_bits(b), rtol=1e-4, atol=1e-6),
        (loss, *functional_arguments(network, tx)[:3]),
        expected,
    )


def raw_bits(array: jax.Array) -> jax.Array:
    return jax.random.key_data(array) if jnp.issubdtype(array.dtype, jax.dtypes.prng_key) else array


def data() -> tuple[jax.Array, jax.Array]:
    x = jax.random.normal(jax.random.key(0), (BATCH, WIDTH))
    return x, x.sum(1, keepdims=True)


def tracing(nnx: Any, flax_nnx: Any, blocks: int) -> dict[str, Contestant]:
    """Who takes part."""
    tx = optax.adam(1e-3)
    x, y = data()
    arguments = functional_arguments(define_network(nnx)(blocks), tx)

    def trace_with(library: Any) -> Contestant:
        network = define_network(library)(blocks)
        optimizer = library.Optimizer(network, tx, wrt=library.Param)
        return Contestant(lambda: library.jit(make_step(library)).trace(network, optimizer, x, y), ignore)

    def trace_functional() -> Any:
        return jax.jit(make_functional_step(tx)).trace(*arguments, x, y)

    return {
        "hand-written": Contestant(trace_functional, ignore),
        "nnxkit": trace_with(nnx),
        "flax": trace_with(flax_nnx),
    }


def ignore(result: Any) -> None:
    """A trace has nothing to wait for."""


def report_tracing(nnx: Any, flax_nnx: Any, sizes: Sequence[int], traces: int) -> None:
    require_agreement(nnx)
    print("| leaves of the model | step | equations | ms | ÷ hand-written |")
    print("|---:|---|---:|---:|---:|")
    for blocks in sizes:
        contestants = tracing(nnx, flax_nnx, blocks)
        medians = take_turns(contestants, traces)
        for name, seconds in medians.items():
            traced = contestants[name].call()
            equations = len(getattr(traced, "traced", traced).jaxpr.eqns)  # flax wraps what jax.jit gives
            ratio = "" if name == "hand-written" else f"{seconds / medians['hand-written']:.2f}"
            print(f"| {7 * blocks + 2} | {name} | {equations} | {seconds * 1e3:.1f} | {ratio} |", flush=True)


# Memory


current: Any = None
"""The model that a function captures as a global."""


def memory(nnx: Any) -> dict[str, Callable[[], None]]:
    """Calls with new objects."""
    make_model = define_model(nnx)
    write = write_all(nnx)
    jitted = nnx.jit(write)
    jitted_global = nnx.jit(lambda: write(current))

    def new_arguments() -> None:
        jitted(make_model(1))

    def shared_arguments() -> None:
        model = make_model(1)
        jitted(model, model.blocks)

    def new_captures() -> None:
        global current
        current = make_model(1)
        jitted_global()

    return {"a new model": new_arguments, "a new model, shared": shared_arguments, "a new global": new_captures}


def held() -> np.ndarray:
    """Blocks of memory, Python objects and arrays that there are."""
    gc.collect()
    return np.array([sys.getallocatedblocks(), len(gc.get_objects()), len(jax.live_arrays())])


def report_memory(nnx: Any, calls: int) -> None:
    print(f"| {calls:,} calls with | blocks of memory more | Python objects more | arrays more |")
    print("|---|---:|---:|---:|")
    for name, call in memory(nnx).items():
        for _ in range(1000):  # until caches of bounded size are full
            call()
        before = held()
        for _ in range(calls):
            call()
        print(f"| {name} | {' | '.join(map(str, held() - before))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=21, help="turns of each contestant in dispatch")
    parser.add_argument("--traces", type=int, default=11, help="measured traces of each contestant")
    parser.add_argument("--calls", type=int, default=10_000, help="calls with new objects")
    arguments = parser.parse_args()

    from flax import nnx as flax_nnx

    import nnxkit

    report_dispatch(nnxkit, flax_nnx, (12, 117), arguments.turns)
    print()
    report_tracing(nnxkit, flax_nnx, (10, 100), arguments.traces)
    print()
    report_memory(nnxkit, arguments.calls)


if __name__ == "__main__":
    main()
