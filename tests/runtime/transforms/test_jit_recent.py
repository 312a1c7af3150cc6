"""A call that `nnx.jit` recognises as the last one again does what the slow way does, whatever happened in between."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx
from nnx_rules.errors import TraceContextError, TransformTypeError


class Layer(nnx.Module):
    def __init__(self, value: float) -> None:
        self.weight = nnx.Param(jnp.asarray(value))
        self.mode = "train"


class Pair(nnx.Module):
    def __init__(self, first: Layer, second: Layer) -> None:
        self.first = first
        self.second = second


def value_of(layer: Layer) -> float:
    return float(layer.weight[...])


class Traced:
    """Counts the traces of a jitted function."""

    def __init__(self, f: Callable[..., Any], **options: Any) -> None:
        self.traces = 0

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.traces += 1
            return f(*args, **kwargs)

        self.jitted = nnx.jit(counted, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.jitted(*args, **kwargs)


def increment(layer: Layer, by: Any = 1.0) -> Any:
    layer.weight[...] += by
    return layer.weight[...] * 1


def test_writes_every_time() -> None:
    step, layer = Traced(increment), Layer(0.0)
    assert [float(step(layer)) for _ in range(5)] == [1, 2, 3, 4, 5]
    assert value_of(layer) == 5
    assert step.traces == 1


def test_sees_values_written_outside() -> None:
    step, layer = Traced(increment), Layer(0.0)
    step(layer), step(layer)
    layer.weight[...] = jnp.asarray(10.0)
    assert float(step(layer)) == 11
    assert step.traces == 1


def test_sees_static_edits() -> None:
    step, layer = Traced(lambda layer: len(layer.mode)), Layer(0.0)
    assert [step(layer), step(layer)] == [5, 5]
    layer.mode = "eval"
    assert [step(layer), step(layer)] == [4, 4]
    layer.mode = "train"
    assert [step(layer), step(layer)] == [5, 5]
    assert step.traces == 2


def test_sees_static_edits_that_something_else_saw() -> None:
    step, layer = Traced(lambda layer: len(layer.mode)), Layer(0.0)
    assert [step(layer), step(layer)] == [5, 5]
    layer.mode = "eval"
    nnx.split(layer)
    assert [step(layer), step(layer)] == [4, 4]


def test_sees_edits_below() -> None:
    step = Traced(lambda pair: pair.first.weight[...] + 10 * pair.second.weight[...])
    pair = Pair(Layer(1.0), Layer(2.0))
    assert [float(step(pair)), float(step(pair))] == [21, 21]
    pair.second = Layer(3.0)
    assert [float(step(pair)), float(step(pair))] == [31, 31]
    pair.second = pair.first
    assert [float(step(pair)), float(step(pair))] == [11, 11]
    assert step.traces == 2


def test_sees_metadata() -> None:
    step, layer = Traced(lambda layer: layer.weight.get_metadata("note", 0)), Layer(0.0)
    assert [step(layer), step(layer)] == [0, 0]
    layer.weight.set_metadata("note", 7)
    assert [step(layer), step(layer)] == [7, 7]


def test_order_of_arguments_counts() -> None:
    step = Traced(lambda a, b: a.weight[...] - b.weight[...])
    a, b = Layer(3.0), Layer(1.0)
    assert [float(step(a, b)), float(step(a, b)), float(step(b, a)), float(step(b, a))] == [2, 2, -2, -2]


def test_same_object_twice_is_not_two() -> None:
    def write(a: Layer, b: Layer) -> Any:
        a.weight[...] += 1.0
        return b.weight[...] * 1

    step, a, b = Traced(write), Layer(0.0), Layer(100.0)
    assert [float(step(a, b)), float(step(a, b))] == [100, 100]
    assert [float(step(a, a)), float(step(a, a))] == [3, 4]
    assert [float(step(a, b)), float(step(a, b))] == [100, 100]
    assert value_of(a) == 6


def test_shallow_copy_shares_variables() -> None:
    def write(a: Layer, b: Layer) -> Any:
        a.weight[...] += 1.0
        return b.weight[...] * 1

    step, a = Traced(write), Layer(0.0)
    b = copy.copy(a)
    assert b.weight is a.weight
    assert [float(step(a, a)), float(step(a, b)), float(step(a, b)), float(step(b, a))] == [1, 2, 3, 4]


def test_bare_arguments() -> None:
    step, layer = Traced(increment), Layer(0.0)
    for by in (1.0, np.asarray(1.0), jnp.asarray(1.0), 1, True, np.float32(1.0)):
        step(layer, by), step(layer, by)
    assert value_of(layer) == 12
    with pytest.raises(TransformTypeError, match=r"`args\[1\]` is a str"):
        step(layer, "one")
    assert value_of(layer) == 12
    step(layer, 1.0)
    assert value_of(layer) == 13


def test_arguments_in_containers_and_keywords() -> None:
    def write(layers: list[Layer], *, by: Any) -> None:
        for layer in layers:
            layer.weight[...] += by["much"]

    step, a, b = Traced(write), Layer(0.0), Layer(10.0)
    for _ in range(3):
        step([a, b], by={"much": 1.0})
    step([b], by={"much": 1.0})
    step([a, b], by={"much": 1.0})
    assert (value_of(a), value_of(b)) == (4, 15)
    assert step.traces == 2


def test_static_arguments_count() -> None:
    step, layer = Traced(lambda layer, mode: len(mode), static_argnums=1), Layer(0.0)
    assert [step(layer, "a"), step(layer, "a"), step(layer, "bb"), step(layer, "a")] == [1, 1, 2, 1]


def test_dtype_changes_trace_again() -> None:
    step, layer = Traced(lambda layer: layer.weight[...] * 1), Layer(0.0)
    step(layer), step(layer)
    layer.weight.set_value(jnp.asarray(1, jnp.int32))
    assert step(layer).dtype == jnp.int32
    assert step(layer).dtype == jnp.int32
    assert step.traces == 2


def test_captures_are_looked_at() -> None:
    layer = Layer(0.0)

    def write(by: Any) -> Any:
        return increment(layer, by)

    step = Traced(write)
    assert [float(step(1.0)), float(step(1.0))] == [1, 2]
    old, layer = layer, Layer(50.0)
    assert [float(step(1.0)), float(step(1.0))] == [51, 52]
    assert value_of(old) == 2
    assert step.traces == 1


def test_captured_object_that_is_also_passed() -> None:
    captured = Layer(0.0)

    def write(layer: Layer) -> Any:
        captured.weight[...] += 1.0
        return layer.weight[...] * 1

    step, other = Traced(write), Layer(100.0)
    assert [float(step(other)), float(step(other))] == [100, 100]
    assert [float(step(captured)), float(step(captured))] == [3, 4]
    assert [float(step(other)), float(step(other))] == [100, 100]
    assert value_of(captured) == 6


def test_write_from_another_trace_raises() -> None:
    step, layer = Traced(increment), Layer(0.0)
    step(layer), step(layer)

    def outer(x: jax.Array) -> Any:
        return step(layer, x)

    with pytest.raises(TraceContextError, match="from a different trace level"):
        jax.jit(outer)(1.0)
    assert value_of(layer) == 2
    step(layer)
    assert value_of(layer) == 3


def test_new_structure_comes_back() -> None:
    def add(layer: Layer) -> None:
        layer.weight[...] += 1.0
        if not hasattr(layer, "count"):
            layer.count = nnx.Variable(jnp.asarray(0))
        layer.count[...] += 1

    step, layer = Traced(add), Layer(0.0)
    for _ in range(4):
        step(layer)
    assert int(layer.count[...]) == 4
    assert value_of(layer) == 4
    assert step.traces == 2


def test_unhashable_static_values_are_compared() -> None:
    class Listed(nnx.Module):
        def __init__(self) -> None:
            self.sizes = nnx.static([1])

    step, model = Traced(lambda model: sum(model.sizes)), Listed()
    assert [step(model), step(model)] == [1, 1]
    model.sizes.append(2)
    assert [step(model), step(model)] == [3, 3]


def test_clear_cache_forgets() -> None:
    step, layer = Traced(increment), Layer(0.0)
    step(layer), step(layer)
    step.jitted.clear_cache()
    step(layer)
    assert step.traces == 2
    assert value_of(layer) == 3


def test_keeps_no_object_alive() -> None:
    step, layer = Traced(increment), Layer(0.0)
    step(layer), step(layer)
    seen = weakref.ref(layer)
    del layer
    gc.collect()
    assert seen() is None
    assert float(step(Layer(5.0))) == 6
