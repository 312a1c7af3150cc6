"""A small model for the tests of transforms, and what they ask about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx

Modes = dict[str, Any]
"""Keywords that choose a mode."""

ALL_MODES = [
    pytest.param({}, id="default"),
    pytest.param({"graph_updates": False}, id="no-updates"),
    pytest.param({"graph": False}, id="tree"),
]


class Net(nnx.Module):
    """A Variable of each kind that matters, a bare array, a static attribute, and a submodule."""

    def __init__(self, factor: float = 2.0) -> None:
        self.weight = nnx.Param(jnp.array(factor))
        self.mean = nnx.BatchStat(jnp.array(0.0))
        self.offset = nnx.data(jnp.array(1.0))
        self.mode = "train"
        self.inner = nnx.Dict(bias=nnx.Param(jnp.array(10.0)))

    def __call__(self, x: Any) -> Any:
        return x * self.weight + self.inner.bias


class Wave(nnx.Module):
    """A scalar model that counts its calls in a BatchStat, for tests of derivatives."""

    def __init__(self, w: Any = 2.0, b: Any = 1.0) -> None:
        self.w = nnx.Param(jnp.asarray(w, jnp.float32))
        self.b = nnx.BatchStat(jnp.asarray(b, jnp.float32))

    def __call__(self, x: Any) -> Any:
        self.b[...] += 1
        return jnp.sin(self.w * x)


def values(node: Any) -> dict[str, float]:
    """The values of a model with the attributes of `Wave`."""
    return {"w": float(node.w.get_value()), "b": float(node.b.get_value())}


class Traces:
    """Counts how often a function is traced."""

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        self.count += 1


def value(variable: Any) -> Any:
    """What a Variable holds, as Python has it."""
    return np.asarray(variable.get_raw_value()).tolist()


def tracers(*roots: Any) -> list[str]:
    """The paths below which there is a tracer."""
    return [str(path) for root in roots for path, leaf in _leaves(root) if isinstance(leaf, jax.core.Tracer)]


def _leaves(root: Any) -> Iterator[tuple[Any, Any]]:
    for path, found in nnx.iter_graph(root):
        held = found.get_raw_value() if isinstance(found, nnx.Variable) else found
        if not isinstance(held, nnx.Pytree):
            yield from ((path, leaf) for leaf in jax.tree.leaves(held))


def count_carried(loop: Any) -> int:
    """How many values a ``scan`` equation of a jaxpr carries; JAX 0.12 says it in another way than 0.10."""
    params = loop.params
    return params["num_carry"] if "num_carry" in params else len(params["ft_in"].unpack()[1])
