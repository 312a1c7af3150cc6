"""Several threads under transforms at once: the same function, the same model, tracing at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nets import ALL_MODES, Modes, Net, tracers, value
from nnx_rules.errors import GraphError
from threads import THREADS, together

ROUNDS = 20


@pytest.mark.parametrize("modes", ALL_MODES)
class TestEachMode:
    def test_one_function_and_a_model_for_each_thread(self, modes: Modes) -> None:
        nets = [Net(float(number)) for number in range(THREADS)]

        @nnx.jit(**modes)
        def step(net: Net, x: Any) -> Any:
            net.mean[...] += x
            return net(x)

        def work(number: int) -> list[float]:
            return [float(step(nets[number], float(turn))) for turn in range(ROUNDS)]

        assert together(work) == [[number * turn + 10.0 for turn in range(ROUNDS)] for number in range(THREADS)]
        assert [value(net.mean) for net in nets] == [sum(range(ROUNDS))] * THREADS

    def test_one_model_that_all_threads_read(self, modes: Modes) -> None:
        net = Net(3.0)
        read = nnx.jit(lambda net, x: net(x), **modes)
        captured = nnx.jit(lambda x: net(x), **modes)

        def work(number: int) -> set[float]:
            return {
                float(f(number)) for _ in range(ROUNDS) for f in (lambda x: read(net, x), captured)
            }  # fmt: skip

        assert together(work) == [{3.0 * number + 10.0} for number in range(THREADS)]

    def test_all_threads_trace_for_different_shapes(self, modes: Modes) -> None:
        inside = threading.Barrier(THREADS, timeout=60)
        nets = [Net() for _ in range(THREADS)]

        @nnx.jit(**modes)
        def step(net: Net, x: Any) -> Any:
            inside.wait()  # all threads are in this trace at once
            net.mean[...] = jnp.sum(x)
            inside.wait()
            return net.weight * x

        def work(number: int) -> list[float]:
            shaped: list[float] = step(nets[number], jnp.ones(number + 1)).tolist()
            return shaped

        assert together(work) == [[2.0] * (number + 1) for number in range(THREADS)]
        assert [value(net.mean) for net in nets] == [1.0, 2.0, 3.0, 4.0]
        assert tracers(*nets) == []

    def test_all_threads_take_gradients(self, modes: Modes) -> None:
        nets = [Net(float(number)) for number in range(THREADS)]

        def loss(x: Any, net: Net) -> Any:
            net.mean[...] += 1
            return net.weight * x * x

        gradient = nnx.grad(loss, **modes)

        def work(number: int) -> list[float]:
            return [float(gradient(float(turn), nets[number])) for turn in range(5)]

        assert together(work) == [[2.0 * number * turn for turn in range(5)] for number in range(THREADS)]
        assert [value(net.mean) for net in nets] == [5.0] * THREADS


@jax.tree_util.register_pytree_node_class
class Meeting:
    """A value that makes threads wait for each other where JAX flattens it: between the call and the trace."""

    def __init__(self, x: Any, wait: Callable[[], Any] | None) -> None:
        self.x = x
        self.wait = wait

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        if self.wait is not None:
            self.wait()
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple[Any]) -> Meeting:
        return cls(*children, None)


def test_each_thread_traces_its_own_call() -> None:
    inside = threading.Barrier(THREADS, timeout=60)
    nets = [Net() for _ in range(THREADS)]
    for number, net in enumerate(nets):
        net.mode = str(number)
        net.meeting = nnx.Variable(Meeting(jnp.array(1.0), inside.wait))

    @nnx.jit
    def name(net: Any) -> Any:
        net.seen = net.mode
        return net.weight * int(net.mode)

    assert together(lambda number: float(name(nets[number]))) == [0.0, 2.0, 4.0, 6.0]
    assert [net.seen for net in nets] == ["0", "1", "2", "3"]


def test_structures_that_change_in_each_thread() -> None:
    nets = [Net() for _ in range(THREADS)]

    @nnx.jit
    def flip(net: Net) -> Any:
        net.mode = "eval" if net.mode == "train" else "train"
        return net.weight * (1.0 if net.mode == "eval" else -1.0)

    def work(number: int) -> list[float]:
        return [float(flip(nets[number])) for _ in range(6)]

    assert together(work) == [[2.0, -2.0] * 3] * THREADS


def test_new_attributes_in_each_thread() -> None:
    @nnx.jit
    def grow(net: Any, x: Any) -> None:
        net.layers.append(nnx.Param(x))

    def work(number: int) -> list[Any]:
        net = nnx.Dict(layers=nnx.List([]))
        for turn in range(4):
            grow(net, float(turn))
        return [value(layer) for layer in net.layers]

    assert together(work) == [[0.0, 1.0, 2.0, 3.0]] * THREADS


def test_the_mode_is_that_of_the_thread_that_transforms() -> None:
    def tie(one: Net, same: Net) -> None:
        one.mode = "edited"

    def work(number: int) -> str:
        with nnx.set_graph_mode(number % 2 == 0):
            f = nnx.jit(tie)
        net = Net()
        try:
            f(net, net)
        except GraphError:
            return "tree"
        return "graph" if net.mode == "edited" else "lost"

    assert together(work) == ["graph", "tree", "graph", "tree"]


def test_one_thread_raises_while_the_others_go_on() -> None:
    nets = [Net() for _ in range(THREADS)]
    inside = threading.Barrier(THREADS, timeout=60)

    @nnx.jit
    def step(net: Net, x: Any) -> None:
        net.mean[...] += jnp.sum(x)
        inside.wait()
        if x.shape == (1,):
            raise RuntimeError("this one")

    def work(number: int) -> str:
        try:
            step(nets[number], jnp.ones(number + 1))
        except RuntimeError as error:
            return str(error).partition("\n")[0]
        return "done"

    assert together(work) == ["this one", "done", "done", "done"]
    assert [value(net.mean) for net in nets] == [0.0, 2.0, 3.0, 4.0]
    assert tracers(*nets) == []
