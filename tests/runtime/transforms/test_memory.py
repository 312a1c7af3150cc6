"""What transforms keep: nothing of the objects that they were called with, and nothing for more of the same kind."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nets import ALL_MODES, Modes, Net
from nnxkit._transforms import _joint, _kept

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "jit": lambda f, **modes: nnx.jit(f, **modes),
    "jit with options": lambda f, **modes: nnx.jit(f, donate_argnums=0, **modes),
    "grad": lambda f, **modes: nnx.grad(lambda net, x: (x * net.weight, f(net, x))[0], argnums=1, **modes),
    "jit of grad": lambda f, **modes: nnx.jit(
        nnx.grad(lambda net, x: (x * net.weight, f(net, x))[0], argnums=1, **modes), **modes
    ),
}


def step(net: Net, x: Any) -> None:
    net.mean[...] += x


def edit(net: Net, x: Any) -> None:
    net.mean[...] += x
    net.mode = "edited"
    net.extra = nnx.Param(x)


def is_dead(*refs: weakref.ref[Any]) -> bool:
    """Whether none of the objects is there any more."""
    gc.collect()
    return all(ref() is None for ref in refs)


@pytest.mark.parametrize("modes", ALL_MODES)
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("function", [step, edit], ids=lambda function: function.__name__)
def test_arguments_are_not_kept(name: str, modes: Modes, function: Callable[..., None]) -> None:
    transformed = TRANSFORMS[name](function, **modes)
    net = Net()
    array = weakref.ref(net.weight.get_raw_value())
    net_ref, variable = weakref.ref(net), weakref.ref(net.weight)

    transformed(net, 1.0)
    transformed(net, 2.0)
    del net

    assert is_dead(net_ref, variable, array)


@pytest.mark.parametrize("modes", ALL_MODES)
def test_a_captured_object_that_was_replaced_is_not_kept(modes: Modes) -> None:
    names: dict[str, Any] = {"net": Net(1.0), "__name__": "users"}
    exec("def f(x):\n    net.mean[...] += x\n    return net.weight * x", names)
    f = nnx.jit(names["f"], **modes)
    f(1.0)
    first = weakref.ref(names["net"])

    names["net"] = Net(2.0)
    f(1.0)

    assert is_dead(first)


def test_a_function_that_is_gone_takes_what_it_captured_along() -> None:
    def counter() -> tuple[weakref.ref[Any], Any]:
        net = Net()

        @nnx.jit
        def f(x: Any) -> None:
            net.mean[...] += x

        return weakref.ref(net), f

    ref, f = counter()
    f(1.0)
    assert not is_dead(ref)
    del f

    assert is_dead(ref)


def test_results_are_not_kept() -> None:
    make = nnx.jit(lambda x: Net(x))
    net = make(1.0)
    ref = weakref.ref(net)
    del net

    assert is_dead(ref)


def test_objects_of_a_failed_trace_are_not_kept() -> None:
    inner: list[weakref.ref[Any]] = []

    @nnx.jit
    def f(net: Net) -> None:
        inner.append(weakref.ref(net))
        raise RuntimeError("stop")

    net = Net()
    with pytest.raises(RuntimeError, match="stop"):
        f(net)

    assert is_dead(inner[0])


def test_objects_of_a_trace_are_not_kept() -> None:
    inner: list[weakref.ref[Any]] = []

    @nnx.jit
    def f(net: Net, x: Any) -> None:
        inner.append(weakref.ref(net))
        net.mean[...] += x
        net.extra = nnx.Param(x)

    f(Net(), 1.0)

    assert is_dead(inner[0])


@pytest.mark.parametrize("modes", ALL_MODES)
@pytest.mark.parametrize("function", [step, edit], ids=lambda function: function.__name__)
def test_new_objects_of_the_same_structure_leave_nothing(modes: Modes, function: Callable[..., None]) -> None:
    transformed = nnx.jit(function, **modes)

    def calls(count: int) -> None:
        for _ in range(count):
            transformed(Net(), 1.0)

    def kept() -> tuple[int, int]:
        gc.collect()
        return len(jax.live_arrays()), len(gc.get_objects())

    calls(20)
    arrays, objects = kept()
    calls(300)
    arrays_after, objects_after = kept()

    assert arrays_after <= arrays
    assert objects_after - objects < 150  # less than one object for two calls


def test_what_is_known_about_sharing_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_joint, "KEPT_SHARINGS", 8)
    f = nnx.jit(lambda a, b, v: (a.mean.set_value(a.mean + 1), v * 1)[1])

    for _ in range(20):
        a: Any = Net()
        b = Net()
        a.tied = b.weight
        f(a, b, a.weight)

    assert len(_joint._sharings) <= 8


def test_the_number_of_compiled_structures_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kept, "MAX_STRUCTURES", 4)
    f = nnx.jit(lambda net: net.weight * net.scale)
    net: Any = Net()

    for scale in range(10):
        net.scale = scale
        assert float(f(net)) == 2.0 * scale
    net.scale = 0

    assert float(f(net)) == 0.0
    assert len(f.compiled) <= 4


def test_structures_without_hash_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kept, "MAX_STRUCTURES", 4)
    f = nnx.jit(lambda net: net.weight * len(net.options))
    net: Any = Net()
    net.options = nnx.static([])

    for count in range(10):
        assert float(f(net)) == 2.0 * count
        net.options.append(0)

    assert len(f.compiled) <= 4


def test_a_donated_buffer_is_free() -> None:
    net: Any = nnx.Param(jnp.ones(1000))
    f = nnx.jit(lambda v: v.set_value(v + 1), donate_argnums=0)
    before = len(jax.live_arrays())

    for _ in range(5):
        f(net)

    assert len(jax.live_arrays()) == before
