"""``cond``, ``switch`` and the loops outside of a compiled function: what is traced again, and what is seen."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx
from nnxkit._transforms import _eager, _kept

STEP = 1.0
TABLE = {"step": 1.0}


class Traces:
    """How often a function ran. A class is no constant that could change, so counting in it changes nothing."""

    count = 0


def traces(call: Callable[[], Any], times: int = 3) -> int:
    """How often functions run in some calls after the first."""
    call()
    before = Traces.count
    for _ in range(times):
        call()
    return Traces.count - before


class Model(nnx.Module):
    def __init__(self, size: int = 2) -> None:
        self.w = nnx.Param(jnp.ones(size))
        self.count = nnx.Variable(jnp.array(0))
        self.by = 1

    def up(self, x: Any) -> Any:
        Traces.count += 1
        self.count[...] += self.by
        return x * self.w.sum()

    def __call__(self, x: Any) -> Any:
        return self.up(x)


def up(model: Model, x: Any) -> Any:
    return model.up(x)


def step(i: Any, carry: tuple[Model, Any]) -> Any:
    model, x = carry
    return model, model.up(x)


CALLS: dict[str, Callable[..., Any]] = {
    "cond": lambda model, x, mode: nnx.cond(True, up, up, model, x, **mode),
    "switch": lambda model, x, mode: nnx.switch(1, [up, up, up], model, x, **mode),
    "branches made for the call": lambda model, x, mode: nnx.cond(
        True, lambda x: model.up(x), lambda x: model(x), x, **mode
    ),
    "methods": lambda model, x, mode: nnx.cond(True, model.up, model.up, x, **mode),
    "modules": lambda model, x, mode: nnx.cond(True, model, model, x, **{**mode, "graph_updates": False}),
    "fori_loop": lambda model, x, mode: nnx.fori_loop(0, 1, step, (model, x), **mode)[1],
    "while_loop": lambda model, x, mode: nnx.while_loop(
        lambda carry: carry[2] < 1, lambda carry: (carry[0], carry[0].up(carry[1]), carry[2] + 1), (model, x, 0), **mode
    )[1],
}
"""Each multiplies by the sum of ``w``, and counts."""


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    _eager._kept.clear()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_equal_calls_are_traced_once(call: Any, mode: dict[str, bool]) -> None:
    model = Model()
    assert traces(lambda: call(model, 3.0, mode)) == 0
    assert model.count[...] == 4
    model.w[...] += 1
    assert call(model, 1.0, mode) == 4
    other = Model()
    assert traces(lambda: call(other, 3.0, mode)) == 0
    assert (model.count[...], other.count[...]) == (5, 4)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_structure_and_types_are_seen(call: Any, mode: dict[str, bool]) -> None:
    model = Model()
    for _ in range(2):
        call(model, 1.0, mode)
    model.by = 10
    assert call(model, 1.0, mode) == 2
    assert model.count[...] == 12
    model.w.set_value(jnp.ones(5))
    for _ in range(2):
        assert call(model, 1.0, mode) == 5
    assert call(Model(7), jnp.ones(2), mode).tolist() == [7, 7]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls_inside_of_a_trace(call: Any, mode: dict[str, bool]) -> None:
    model = Model()
    for _ in range(2):
        assert call(model, 1.0, mode) == 2
        assert nnx.jit(lambda model, x: call(model, x, mode))(model, 2.0) == 4
        assert jax.vmap(lambda x: call(Model(), x, mode))(jnp.arange(3.0)).tolist() == [0, 2, 4]
        assert jax.jvp(lambda x: call(Model(), x, mode), (1.0,), (3.0,)) == (2, 6)
        with jax.disable_jit():
            assert call(model, 2.0, mode) == 4
    assert model.count[...] == 6


def results(read: Callable[[Any], Any], *changes: Callable[[], None]) -> list[Any]:
    """What a function gives under `nnx.cond` and `nnx.fori_loop`, before and after changes."""
    found = []
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            chosen = nnx.cond(True, read, read, 1.0)
            assert chosen == nnx.fori_loop(0, 1, lambda i, x: read(x), 1.0)
        found.append(float(chosen))
    return found


def test_a_change_of_a_global_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    this = __name__
    assert results(lambda x: x * STEP, lambda: monkeypatch.setattr(f"{this}.STEP", 2.0)) == [1, 2]
    assert results(lambda x: x * TABLE["step"], lambda: monkeypatch.setitem(TABLE, "step", 2.0)) == [1, 2]


def test_a_change_of_a_closure_is_seen() -> None:
    by: Any = 1.0
    items, options = [1.0], functools.partial(jnp.multiply, 1.0)

    class Settings:
        by = 1.0

    settings = Settings()

    def change(value: Any) -> Callable[[], None]:
        def change() -> None:
            nonlocal by
            by = value

        return change

    numbers = [change(value) for value in (2.0, np.float32(3), np.array(4.0), jnp.array(5.0), True)]
    assert results(lambda x: x * by, *numbers) == [1, 2, 3, 4, 5, 1]
    by = abs
    functions = [change(f) for f in (lambda x: x * 3, functools.partial(jnp.multiply, 4.0))]
    assert results(lambda x: by(x), *functions) == [1, 3, 4]
    by = (1.0, 2.0)
    assert results(lambda x: x * sum(by), change((1.0, 4.0)), change([5.0])) == [3, 5, 5]
    assert results(lambda x: x * items[0], lambda: items.__setitem__(0, 2.0)) == [1, 2]
    assert results(lambda x: x * settings.by, lambda: setattr(settings, "by", 2.0)) == [1, 2]
    assert results(lambda x: options(x)) == [1]


def helper(x: Any) -> Any:
    return x * 2


class Reader(nnx.Module):
    by = 1.0

    def __init__(self) -> None:
        self.layer = nnx.Dict(model=Model())

    def __call__(self, x: Any) -> Any:
        Traces.count += 1
        return helper(x) * self.by


def test_a_change_of_what_methods_read_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader()

    def call() -> float:
        return float(nnx.cond(True, lambda r, x: r(x), lambda r, x: x, reader, 1.0))

    assert traces(call) == 0
    monkeypatch.setattr(Reader, "by", 2.0)
    assert (call(), call()) == (4, 4)
    monkeypatch.setitem(globals(), "helper", lambda x: x * 5)
    assert (call(), call()) == (10, 10)
    monkeypatch.setattr(Reader, "__call__", lambda self, x: x)
    assert (call(), call()) == (1, 1)
    monkeypatch.setattr(Reader, "__call__", lambda self, x: x * TABLE["step"])
    assert call() == 1
    monkeypatch.setitem(TABLE, "step", 7.0)
    assert call() == 7
    other = nnx.Variable(jnp.array(3.0))
    monkeypatch.setattr(Reader, "__call__", lambda self, x: x * other)
    assert call() == 3
    other[...] = 4.0
    assert call() == 4


def test_functions_of_one_code_read_their_own_closures() -> None:
    def times(by: Any) -> Callable[[Any], Any]:
        return lambda x, factor=by: x * by * factor

    assert [float(nnx.cond(True, times(by), times(-by), 1.0)) for by in (1, 2, 3, 2, 1)] == [1, 4, 9, 4, 1]
    assert float(nnx.cond(False, times(2), times(3), 1.0)) == 9


def test_bounds_and_unrolling_are_seen() -> None:
    def double(i: Any, x: Any) -> Any:
        return x * 2

    assert [float(nnx.fori_loop(0, upper, double, 1.0)) for upper in (1, 3, 1, 0)] == [2, 8, 2, 1]
    assert [float(nnx.fori_loop(jnp.array(0), upper, double, 1.0)) for upper in (1, np.int32(3))] == [2, 8]
    assert [float(nnx.fori_loop(0, 4, double, 1.0, unroll=unroll)) for unroll in (1, 2, True)] == [16, 16, 16]


def test_what_comes_out_as_it_went_in_is_the_very_array() -> None:
    model, x = Model(), jnp.ones(2)
    value = model.w.get_raw_value()
    for _ in range(2):
        assert nnx.cond(True, lambda m, x: (m.up(1.0), x)[1], lambda m, x: x, model, x) is x
        assert nnx.fori_loop(0, 2, lambda i, c: (c[0].up(1.0), c)[1], (model, x))[1] is x
        assert model.w.get_raw_value() is value
    assert model.count[...] == 6
    assert isinstance(nnx.cond(True, lambda x: x, lambda x: x, 1.0), jax.Array)


def test_objects_come_out_as_the_callers() -> None:
    model = Model()
    for _ in range(2):
        assert nnx.fori_loop(0, 2, lambda i, m: (m.up(1.0), m)[1], model) is model
        assert nnx.cond(True, lambda m: m, lambda m: m, model) is model
        first, second = nnx.cond(True, lambda m: (m, Model()), lambda m: (m, Model()), model)
        assert first is model
        assert second is not model
        nnx.cond(True, lambda m: setattr(m, "new", Model()), lambda m: setattr(m, "new", Model()), model)
        assert model.new.count[...] == 0
        del model.new


def test_what_is_kept_refers_to_nothing_of_a_call() -> None:
    def call() -> list[weakref.ref[Any]]:
        model, x = Model(), jnp.ones(2)

        def branch(x: Any) -> Any:
            return model.up(x)

        nnx.cond(True, branch, branch, x)
        return [weakref.ref(item) for item in (model, model.w, branch, x)]

    gone = call()
    gc.collect()
    assert len(_eager._kept) == 1
    assert [ref() for ref in gone] == [None] * 4


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _kept.Structures[Any](3)
    monkeypatch.setattr(_eager, "_kept", kept)

    def add(by: Any) -> Callable[[Any], Any]:
        return lambda x: x + by

    for by in range(5):
        assert nnx.cond(True, add(by), add(by), 1) == 1 + by
    assert len(kept) == 3


def test_a_call_that_raised_can_be_repeated() -> None:
    model = Model()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="division"):
            nnx.cond(True, lambda m: 1 / 0, lambda m: 1.0, model)
    assert nnx.cond(True, up, up, model, 1.0) == 2
