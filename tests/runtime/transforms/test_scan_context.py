"""``nnx.scan`` in its surroundings: streams, exceptions, other transforms, threads, and what calls leave behind."""

from __future__ import annotations

import concurrent.futures
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnxkit as nnx
from modes import MODES
from nets import tracers
from nnx_rules.errors import (
    RngArgumentError,
    TraceContextError,
)
from nnxkit import Carry
from scanned import XS, Layer, Model, stack

# Randomness


def test_unsplit_streams(mode: dict[str, bool]) -> None:
    draw = nnx.scan(lambda rngs: rngs.normal(), in_axes=0, out_axes=0, **mode)
    rngs = nnx.Rngs(0)
    with pytest.raises(
        RngArgumentError, match=r"axis 0 of `args\[0\]\.default`.*a single key(.|\n)*split_rngs\(splits"
    ):
        draw(rngs)
    split = nnx.split_rngs(splits=3)(draw)(rngs)
    assert len(set(split.tolist())) == 3
    assert (rngs.default.key.shape, rngs.default.count[...]) == ((), 1)


@pytest.mark.parametrize("how", ["captured", "carried"])
def test_streams_advance(how: str, mode: dict[str, bool]) -> None:
    rngs, reference = nnx.Rngs(0), nnx.Rngs(0)
    if how == "captured":
        _, drawn = nnx.scan(lambda c, x: (c, rngs.normal()), **mode)(0.0, XS)
    else:
        _, drawn = nnx.scan(lambda rngs, x: (rngs, rngs.normal()), **mode)(rngs, XS)
    assert jnp.allclose(drawn, jnp.array([reference.normal() for _ in range(3)]))
    assert rngs.default.count[...] == 3


def test_layers_made_with_split_streams(mode: dict[str, bool]) -> None:
    @nnx.split_rngs(splits=3)
    @nnx.scan(in_axes=0, out_axes=0, **mode)
    def make(rngs: nnx.Rngs) -> Layer:
        return Layer(2, rngs=rngs)

    layers = make(nnx.Rngs(0))
    assert layers.linear.kernel.shape == (3, 2, 2)
    assert len({float(kernel.sum()) for kernel in layers.linear.kernel[...]}) == 3


# Exceptions, traces, transforms around


def test_exceptions_leave_everything_as_it_was(mode: dict[str, bool]) -> None:
    captured, carried, scanned = Model(), Model(), Model(shape=(3,))

    def fail(carry: Any, element: Any) -> Any:
        for model in (captured, carry, element):
            model.total[...] += 1
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        nnx.scan(fail, **mode)(carried, scanned)
    assert (captured.total[...], carried.total[...], scanned.total.tolist()) == (0, 0, [0, 0, 0])
    assert not tracers(captured, carried, scanned)


def test_objects_of_another_trace(mode: dict[str, bool]) -> None:
    model = Model()
    with pytest.raises(TraceContextError, match="captures it"):
        jax.jit(lambda x: nnx.scan(model.step, **mode)(x, XS))(0.0)
    assert model.total[...] == 0
    assert not tracers(model)


def test_inside_of_jit_grad_and_vmap(mode: dict[str, bool]) -> None:
    model = Model()
    f = nnx.scan(model.step, **mode)
    assert nnx.jit(lambda x: f(x, XS)[0], **mode)(1.0) == 7.0
    value, gradient = nnx.value_and_grad(lambda x: f(x, XS * x)[0], **mode)(jnp.array(1.0))
    assert (value, gradient) == (7.0, 7.0)
    reader = nnx.scan(lambda c, x: (c * model.w, x), **mode)
    assert nnx.vmap(lambda x: reader(x, XS)[0], **mode)(jnp.arange(2.0)).tolist() == [0.0, 8.0]
    assert model.total[...] == 6.0


def test_gradients_of_scanned_layers() -> None:
    layers, x = stack(3, 4), jnp.ones((2, 4))

    def scanned(layers: Layer) -> Any:
        return nnx.scan(lambda x, layer: layer(x), in_axes=(Carry, 0), out_axes=Carry)(x, layers).sum()

    def unrolled(layers: Layer) -> Any:
        y = x
        for i in range(3):
            y = jnp.tanh(y @ layers.linear.kernel[i] + layers.linear.bias[i])
        return y.sum()

    ours, expected = nnx.grad(scanned)(layers), nnx.grad(unrolled)(layers)
    assert jax.tree.all(jax.tree.map(lambda a, b: jnp.allclose(a, b, atol=1e-5), ours, expected))
    assert layers.calls.tolist() == [1, 1, 1]


@pytest.mark.parametrize("how", ["carried", "captured"])
def test_training_in_a_scan(how: str) -> None:
    xs = jax.random.normal(jax.random.key(0), (4, 8, 3))

    def make() -> tuple[Any, Any]:
        model = nnx.Linear(3, 1, rngs=nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)

    def train(model: Any, optimizer: Any, x: Any) -> Any:
        loss, gradients = nnx.value_and_grad(lambda model: ((model(x)[:, 0] - x.sum(1)) ** 2).mean())(model)
        optimizer.update(model, gradients)
        return loss

    ours, direct = make(), make()
    if how == "carried":
        result, losses = nnx.scan(lambda pair, x: (pair, train(*pair, x)))(ours, xs)
        assert result == ours
    else:
        losses = nnx.scan(lambda x: train(*ours, x), in_axes=0, out_axes=0)(xs)
    expected = [train(*direct, x) for x in xs]
    assert jnp.allclose(losses, jnp.array(expected), atol=1e-5)
    states = nnx.state(ours), nnx.state(direct)
    assert jax.tree.all(jax.tree.map(lambda a, b: jnp.allclose(a, b, atol=1e-5), *states))


def test_a_scan_in_a_scan(mode: dict[str, bool]) -> None:
    model = Model()

    def outer(carry: Any, row: Any) -> Any:
        return nnx.scan(model.step, **mode)(carry, row)

    carry, ys = nnx.scan(outer, **mode)(0.0, jnp.arange(6.0).reshape(2, 3))
    assert (carry, ys.shape, model.total[...]) == (30.0, (2, 3), 15.0)


def test_the_function_is_traced_once(mode: dict[str, bool]) -> None:
    traced = []
    nnx.scan(lambda c, x: (traced.append(x) or c, x), **mode)(0.0, XS)
    assert len(traced) == 1


def test_without_compilation(mode: dict[str, bool]) -> None:
    model, scanned = Model(), Model(shape=(3,))

    def step(carry: Any, element: Any) -> Any:
        element.total[...] = carry
        return model.step(carry, element.w[...])

    with jax.disable_jit():
        carry, ys = nnx.scan(step, **mode)(0.0, scanned)
    assert (carry, ys.tolist(), model.total[...]) == (12.0, [2, 2, 2], 6.0)
    assert scanned.total.tolist() == [0, 4, 8]


ACTIONS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "carry += element": lambda m, c, e, x: (m.a.set_value(m.a + e.a), x)[1],
    "capture *= 2": lambda m, c, e, x: (c.a.set_value(c.a * 2 + 1), x)[1],
    "element = carry": lambda m, c, e, x: (e.b.set_value(m.a + c.b), x)[1],
    "x += all": lambda m, c, e, x: x + m.a + c.a + e.a + e.b,
    "x = capture": lambda m, c, e, x: c.a * 1,
}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(list(ACTIONS)), max_size=4),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(list(MODES)),
)
def test_a_scan_is_the_python_loop(actions: list[str], length: int, reverse: bool, mode: str) -> None:
    def make(shape: tuple[int, ...] = ()) -> nnx.Dict:
        values = jnp.arange(length, dtype=jnp.int32) if shape else jnp.array(1, jnp.int32)
        return nnx.Dict(a=nnx.Variable(values), b=nnx.Variable(values * 2))

    def body(carried: Any, captured: Any, element: Any) -> Any:
        x = jnp.array(0, jnp.int32)
        for action in actions:
            x = ACTIONS[action](carried, captured, element, x)
        return x

    ours, direct = [[make(), make(), make((length,))] for _ in range(2)]
    captured = ours[1]
    f = nnx.scan(lambda m, e: (m, body(m, captured, e)), reverse=reverse, **MODES[mode])
    _, ys = f(ours[0], ours[2])
    results = {}
    for i in reversed(range(length)) if reverse else range(length):
        element = nnx.Dict(a=nnx.Variable(direct[2].a[i]), b=nnx.Variable(direct[2].b[i]))
        results[i] = body(direct[0], direct[1], element)
        direct[2].a[i], direct[2].b[i] = element.a[...], element.b[...]
    assert ys.tolist() == [results[i] for i in range(length)]
    for one, other in zip(ours, direct, strict=True):
        assert (one.a.tolist(), one.b.tolist()) == (other.a.tolist(), other.b.tolist())


# What is kept between calls


def test_only_new_structures_and_types_are_traced(mode: dict[str, bool]) -> None:
    traced = []
    captured = Model()

    @nnx.scan(in_axes=(Carry, None, 0), out_axes=Carry, **mode)
    def step(carry: Any, broadcast: Any, x: Any) -> Any:
        traced.append(captured.mode)
        captured.total[...] += x
        return carry * captured.w + broadcast

    assert step(1.0, 1.0, XS) == 15.0
    captured.w[...] = 1.0
    assert step(1.0, 2.0, XS) == 7.0
    assert traced == ["idle"]
    captured.mode = "busy"
    step(1.0, 1.0, XS)
    captured.mode = "idle"
    step(1.0, 1.0, XS)
    step(1.0, 1.0, jnp.arange(3))
    assert traced == ["idle", "busy", "idle"]
    assert captured.total[...] == 15.0


def test_edits_come_back_from_steps_that_were_traced_before() -> None:
    traced = []

    @nnx.scan(in_axes=(Carry, 0), out_axes=(Carry, 0))
    def step(carry: Any, layer: Any) -> Any:
        traced.append(1)
        layer.seen = nnx.Intermediate(carry)
        return carry + 1, (layer, Model(carry))

    for start in (1.0, 5.0):
        layer = nnx.Dict(w=nnx.Param(XS))
        _, (same, made) = step(start, layer)
        assert same is layer
        assert layer.seen.tolist() == made.w.tolist() == [start, start + 1, start + 2]
    assert len(traced) == 1


def test_nothing_is_kept_alive(mode: dict[str, bool]) -> None:
    step = nnx.scan(lambda model, x: (model, model.add(x)), **mode)
    model = Model()
    step(model, XS)
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None


def test_static_attributes_without_hash(mode: dict[str, bool]) -> None:
    model = Model()
    model.mode = {"factor": 2}  # type: ignore[assignment]
    step = nnx.scan(lambda m, x: (m, x * m.mode["factor"]), **mode)
    assert step(model, XS)[1].tolist() == [0, 2, 4]
    model.mode["factor"] = 3  # type: ignore[index]
    assert step(model, XS)[1].tolist() == [0, 3, 6]


def test_threads(mode: dict[str, bool]) -> None:
    step = nnx.scan(lambda model, x: (model, model.add(x)), **mode)
    together = threading.Barrier(4)

    def run(number: int) -> list[float]:
        model = Model(number)
        together.wait()
        _, ys = step(model, XS + jnp.zeros(()))
        assert model.total[...] == 3.0
        return ys.tolist()  # type: ignore[no-any-return]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [[0.0, 1.0 * n, 2.0 * n] for n in range(4)]
