"""Graph operations of nnxkit and flax.nnx, side by side.

The same model is defined once, over both libraries: blocks of Linear, LayerNorm, Linear, whose layers have as many
attributes as those of flax. Every operation is measured for both in one run, taking turns, and the median is reported.

*Warm*: nothing but values changed since the last call, as in a training loop. *Static edit*: a static attribute of one
layer is set before every call, as by ``model.eval()``. *Replaced*: one Variable is replaced before every call, so that
the graph has to be walked again. The edits are outside of the measured time.

Run with ``python benchmarks/graph_ops.py``.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp


def define_model(nnx: Any) -> Callable[[int], Any]:
    """The model over one of the libraries; takes the number of blocks (6 leaves each)."""

    class Linear(nnx.Module):
        def __init__(self, din: int, dout: int) -> None:
            self.kernel = nnx.Param(jnp.ones((din, dout)))
            self.bias = nnx.Param(jnp.zeros((dout,)))
            self.in_features = din
            self.out_features = dout
            self.use_bias = True
            self.dtype = None
            self.param_dtype = jnp.float32
            self.precision = None
            self.dot_general = jax.lax.dot_general
            self.promote_dtype = jnp.promote_types
            self.preferred_element_type = None

    class LayerNorm(nnx.Module):
        def __init__(self, features: int) -> None:
            self.scale = nnx.Param(jnp.ones((features,)))
            self.bias = nnx.Param(jnp.zeros((features,)))
            self.num_features = features
            self.epsilon = 1e-6
            self.dtype = None
            self.param_dtype = jnp.float32
            self.use_bias = True
            self.use_scale = True
            self.reduction_axes = -1
            self.feature_axes = -1
            self.axis_name = None
            self.axis_index_groups = None
            self.use_fast_variance = True
            self.promote_dtype = jnp.promote_types

    class Block(nnx.Module):
        def __init__(self) -> None:
            self.first = Linear(4, 4)
            self.norm = LayerNorm(4)
            self.second = Linear(4, 4)

    class Model(nnx.Module):
        def __init__(self, blocks: int) -> None:
            self.blocks = nnx.List([Block() for _ in range(blocks)])

    return Model


def operations(nnx: ModuleType, model: Any) -> dict[str, Callable[[], Any]]:
    """The measured calls."""
    graphdef, state = nnx.split(model)
    other = jax.tree.map(lambda leaf: leaf + 1, state)
    return {
        "split": lambda: nnx.split(model),
        "state": lambda: nnx.state(model, nnx.Param),
        "merge": lambda: nnx.merge(graphdef, state),
        "update": lambda: nnx.update(model, other),
        "clone": lambda: nnx.clone(model),
    }


def edit_static(model: Any, turn: int) -> None:
    layer = model.blocks[len(model.blocks) // 2].first
    layer.use_bias = turn % 2 == 0


def replace_variable(model: Any, turn: int) -> None:
    layer = model.blocks[len(model.blocks) // 2].first
    layer.bias = type(layer.bias)(layer.bias[...])


EDITS: dict[str, Callable[[Any, int], None]] = {
    "warm": lambda model, turn: None,
    "static edit": edit_static,
    "replaced": replace_variable,
}


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(
    libraries: dict[str, ModuleType], blocks: int, rounds: int, edit: Callable[[Any, int], None]
) -> dict[str, dict[str, float]]:
    """Median seconds by operation and library."""
    models = {name: define_model(nnx)(blocks) for name, nnx in libraries.items()}
    calls = {name: operations(nnx, models[name]) for name, nnx in libraries.items()}
    medians: dict[str, dict[str, float]] = {}
    for operation in calls["nnxkit"]:
        samples: dict[str, list[float]] = {name: [] for name in libraries}
        for turn in range(-3, rounds):
            for name, model in models.items():
                edit(model, turn)
                seconds = timed(calls[name][operation])
                if turn >= 0:
                    samples[name].append(seconds)
        medians[operation] = {name: statistics.median(values) for name, values in samples.items()}
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=101, help="measured calls of each operation")
    rounds: int = parser.parse_args().rounds

    from flax import nnx as flax_nnx

    import nnxkit

    libraries: dict[str, ModuleType] = {"flax": flax_nnx, "nnxkit": nnxkit}
    print("| leaves | structure | operation | flax.nnx µs | nnxkit µs | ratio |")
    print("|---:|---|---|---:|---:|---:|")
    for blocks in (12, 117):
        for structure, edit in EDITS.items():
            gc.collect()
            gc.disable()
            for operation, seconds in measure(libraries, blocks, rounds, edit).items():
                flax_us, own_us = seconds["flax"] * 1e6, seconds["nnxkit"] * 1e6
                times = f"{flax_us:.0f} | {own_us:.0f} | {flax_us / own_us:.1f}×"
                print(f"| {6 * blocks} | {structure} | `{operation}` | {times} |")
            gc.enable()


if __name__ == "__main__":
    main()
