"""The stand-ins of instances of plain classes: what may be bound on them, which changes are noticed, what is freed."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from captured import rebound, variable
from instances import Data, Frozen, Slots, SlotsBelow, Trainer
from nnx_rules.errors import TraceContextError
from nnxkit._transforms import _captures
from nnxkit._transforms._captures import captures_of


class TestBindings:
    """What a copied function sets on stand-ins."""

    @pytest.mark.parametrize("make", [Trainer, Data, SlotsBelow])
    def test_other_attribute(self, make: Callable[[Any], Any]) -> None:
        holder = make(variable(1))

        def f() -> Any:
            holder.calls += holder.model.get_value()
            holder.fresh = holder.calls

        rebound(f, *[variable(10) for _ in captures_of(f).objects])()
        assert (holder.calls, holder.fresh) == (10, 10)

    def test_not_before_the_return(self) -> None:
        trainer = Trainer(variable(1))
        original = weakref.ref(trainer)
        seen: list[int] = []

        def f() -> None:
            trainer.count()
            seen.append(original().calls)  # type: ignore[union-attr]

        rebound(f, variable(10))()
        assert seen == [0]
        assert trainer.calls == 1

    def test_nothing_if_it_raises(self) -> None:
        trainer = Trainer(variable(1))

        def f() -> None:
            trainer.count()
            raise KeyError("no")

        with pytest.raises(KeyError, match="no"):
            rebound(f, variable(10))()
        assert trainer.calls == 0

    def test_nothing_if_something_is_bound_in_place_of_an_object(self) -> None:
        one, two = Trainer(variable(1)), Trainer(variable(2))

        def f() -> None:
            one.count()
            two.replace()

        with pytest.raises(TraceContextError, match=r"`two\.model` leads to a captured object"):
            rebound(f, variable(10), variable(20))()
        assert one.calls == 0
        assert two.model.get_value() == 2

    @pytest.mark.parametrize("method", [Trainer.replace, Trainer.delete])
    def test_attribute_of_an_object(self, method: Callable[[Any], None]) -> None:
        trainer = Trainer(variable(1))
        with pytest.raises(TraceContextError, match=r"`trainer\.model` .*binds something else") as error:
            rebound(lambda: method(trainer), variable(10))()
        assert error.value.code == "NNX216"
        assert trainer.model.get_value() == 1

    def test_slot_of_an_object(self) -> None:
        holder = Slots(variable(1))
        with pytest.raises(TraceContextError, match=r"`holder\.model`"):
            rebound(lambda: setattr(holder, "model", 1), variable(10))()

    def test_deleted_attribute(self) -> None:
        trainer = Trainer(variable(1))

        def f() -> None:
            del trainer.last

        rebound(f, variable(10))()
        assert not hasattr(trainer, "last")

    def test_deleted_slot(self) -> None:
        holder = Slots(variable(1))
        holder.unset = 1

        def f() -> None:
            del holder.unset

        rebound(f, variable(10))()
        assert not hasattr(holder, "unset")

    def test_frozen(self) -> None:
        holder = Frozen(variable(1))

        def f() -> None:
            with pytest.raises(FrozenInstanceError, match="calls"):
                holder.calls = 1  # type: ignore[misc]
            object.__setattr__(holder, "calls", 2)

        rebound(f, variable(10))()
        assert holder.calls == 2

    def test_captured_object_under_another_name(self) -> None:
        trainer = Trainer(variable(1))
        model = trainer.model

        def f() -> None:
            trainer.last = trainer.model

        rebound(f, variable(10))()
        assert trainer.last is model

    def test_stand_in_under_another_name(self) -> None:
        names: dict[str, Any] = {"__name__": "users_module", "trainer": Trainer(variable(1)), "best": None}
        exec("def f():\n global best\n trainer.last = best = trainer", names)
        rebound(names["f"], variable(10))()
        assert names["trainer"].last is names["best"] is names["trainer"]

    def test_cached_property(self) -> None:
        class Lazy:
            def __init__(self) -> None:
                self.model = variable(1)

            @functools.cached_property
            def shape(self) -> Any:
                return (2, 3)

        lazy = Lazy()
        assert rebound(lambda: lazy.shape, variable(10))() == (2, 3)
        assert vars(lazy)["shape"] == (2, 3)


class TestCurrent:
    CHANGES: tuple[tuple[str, Callable[[], Any], Callable[[Any], object], bool], ...] = (
        ("object replaced", lambda: Data(variable(1)), lambda h: setattr(h, "model", variable(2)), False),
        ("object removed", lambda: Data(variable(1)), lambda h: delattr(h, "model"), False),
        ("slot replaced", lambda: Slots(variable(1)), lambda h: setattr(h, "model", variable(2)), False),
        ("slot set", lambda: Slots(0), lambda h: setattr(h, "unset", variable(2)), False),
        ("number counted", lambda: Data(variable(1)), lambda h: setattr(h, "calls", 5), True),
        ("number counted where no object is", lambda: Data(0), lambda h: setattr(h, "calls", 5), True),
        ("array replaced", lambda: Data(jnp.zeros(2)), lambda h: setattr(h, "model", jnp.ones(3)), True),
        ("attribute added", lambda: Data(variable(1)), lambda h: setattr(h, "more", 1), False),
        ("object added", lambda: Data(0), lambda h: setattr(h, "more", variable(1)), False),
        ("object in place of a number", lambda: Data(0), lambda h: setattr(h, "calls", variable(1)), False),
        ("renamed", lambda: Data(variable(1)), lambda h: vars(h).update(other=vars(h).pop("model")), False),
        ("other __dict__", lambda: Data(variable(1)), lambda h: setattr(h, "__dict__", {"a": 1, "b": 2}), False),
        ("inner", lambda: Data(Data(0)), lambda h: setattr(h.model, "model", variable(1)), False),
        ("inner replaced", lambda: Data(Data(0)), lambda h: setattr(h, "model", Data(variable(1))), False),
        ("list filled", lambda: Data([]), lambda h: h.model.append(variable(1)), False),
        ("element of a list", lambda: Data([variable(1)]), lambda h: h.model.__setitem__(0, variable(2)), False),
        ("dictionary filled", lambda: Data({}), lambda h: h.model.update(a=variable(1)), False),
        ("beside an object", lambda: [variable(1), Data(0)], lambda h: setattr(h[1], "model", variable(1)), False),
        ("in a tuple", lambda: (Data(0),), lambda h: setattr(h[0], "model", variable(1)), False),
        ("unchanged", lambda: Data([Data(variable(1)), Data(0)]), lambda h: None, True),
    )  # fmt: skip

    @pytest.mark.parametrize(("make", "change", "current"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
    def test_change(self, make: Callable[[], Any], change: Callable[[Any], object], current: bool) -> None:
        holder = make()
        captures = captures_of(lambda: holder)
        assert captures.is_current()
        change(holder)
        assert captures.is_current() is current

    GROWTH: tuple[tuple[str, Any, Callable[[Any], object], bool], ...] = (
        ("number", [0.5], lambda c: c.append(0.25), True),
        ("first number", [], lambda c: c.append(0.25), True),
        ("record", [{"loss": 0.5}], lambda c: c.append({"loss": (0.25, [jnp.ones(2)])}), True),
        ("key", {"a": 1}, lambda c: c.update(b=[2]), True),
        ("fewer", [1, 2], lambda c: c.clear(), True),
        ("object", [0.5], lambda c: c.append(variable(1)), False),
        ("record of an object", [{"loss": 0.5}], lambda c: c.append({"loss": [variable(1)]}), False),
        ("function", [0.5], lambda c: c.append(lambda: 0), False),
        ("instance", [0.5], lambda c: c.append(Data(0)), False),
        ("object under a key", {"a": 1}, lambda c: c.update(b=variable(1)), False),
        ("object among others", [1.5, 2.5], lambda c: c.__setitem__(slice(None), [variable(1), 2.5, 3.5]), False),
        ("object before", [1.5, 2.5], lambda c: c.__setitem__(slice(None), [variable(1)]), False),
        ("itself", [0.5], lambda c: c.append(c), False),
        ("functions where functions were", [lambda: 0], lambda c: c.append(lambda: 0), False),
    )

    @pytest.mark.parametrize(("data", "grow", "current"), [c[1:] for c in GROWTH], ids=[c[0] for c in GROWTH])
    def test_growing_data(self, data: Any, grow: Callable[[Any], object], current: bool) -> None:
        """What is recorded beside a model in each step is no reason for another look, unless it holds something."""
        holder = SimpleNamespace(data=data, model=variable(1))
        first = captures_of(lambda: holder)
        grow(data)
        assert first.is_current() is current
        assert first.is_current() is current
        again = captures_of(lambda: holder, first)
        assert again.objects == captures_of(lambda: holder).objects
        data.clear()
        data.update(b=variable(1)) if isinstance(data, dict) else data.extend([1.5, 2.5, 3.5, variable(1)])
        assert not again.is_current()
        assert len(captures_of(lambda: holder, again).objects) == 2

    def test_data_are_looked_through_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        holder = SimpleNamespace(data=[{"loss": 0.5}] * 100, model=variable(1), count=0)
        first = captures_of(lambda: holder)
        looked_at: list[Any] = []
        shape_of = _captures.shape_of
        monkeypatch.setattr(_captures, "shape_of", lambda value: looked_at.append(value) or shape_of(value))
        holder.count = None
        assert not first.is_current()
        second = captures_of(lambda: holder, first)
        assert len(looked_at) < 10
        holder.count = 0
        captures_of(lambda: holder, second)
        assert len(looked_at) < 20

    def test_self_of_a_method(self) -> None:
        trainer = Trainer(None)
        captures = captures_of(trainer.read)
        trainer.model = variable(1)
        assert not captures.is_current()
        captures = captures_of(trainer)
        trainer.model = variable(2)
        assert not captures.is_current()

    def test_so_many_are_watched(self) -> None:
        """The nearest ones; what is found later is found at the next look."""
        first = holder = SimpleNamespace()
        for _ in range(100):
            holder.next = SimpleNamespace()
            holder = holder.next
        captures = captures_of(lambda: first)
        holder.model = variable(1)
        assert captures.is_current()
        assert len(captures_of(lambda: first).objects) == 1
        first.next.model = variable(1)
        assert not captures.is_current()

    def test_what_leads_to_objects_is_watched_always(self) -> None:
        holders = [Data(variable(i)) for i in range(100)]
        captures = captures_of(lambda: holders)
        assert len(captures.objects) == 100
        holders[-1].model = variable(1)
        assert not captures.is_current()

    def test_elements_of_a_list_without_objects_are_not(self) -> None:
        samples = [Data(0)]
        captures = captures_of(lambda: samples)
        samples[0].calls = variable(1)  # type: ignore[assignment]
        assert captures.is_current()


class TestMemory:
    def test_old_object_is_freed_at_once(self) -> None:
        trainer = Trainer(variable(1))
        captures = captures_of(trainer.read)
        old = weakref.ref(trainer.model)
        trainer.model = variable(2)
        assert old() is None
        assert not captures.is_current()

    def test_stand_ins_are_freed(self) -> None:
        trainer = Trainer(variable(1))
        gc.disable()
        try:
            copy = rebound(lambda: weakref.ref(trainer), variable(10))
            reference = copy()
            assert reference() is not None
            del copy
        finally:
            gc.enable()
        gc.collect(1)  # the young ones; the rest is what JAX keeps of thousands of tests
        assert reference() is None


def test_under_jit() -> None:
    """The whole way: updates come back, later changes are seen, and nothing is compiled anew for them."""
    traces = []

    @dataclass
    class Training:
        model: nnx.Linear = field(default_factory=lambda: nnx.Linear(2, 1, rngs=nnx.Rngs(0)))
        steps: int = 0

        def step(self, x: jax.Array) -> jax.Array:
            self.steps += 1
            traces.append(1)
            self.model.bias[...] += 1.0
            return self.model(x)

    training = Training()
    step = nnx.jit(training.step)
    x = jnp.ones((1, 2))
    expected = training.model(x) + 1
    assert jnp.allclose(step(x), expected)
    assert jnp.allclose(step(x), expected + 1)
    training.model = nnx.Linear(2, 1, rngs=nnx.Rngs(1))
    expected = training.model(x) + 1
    assert jnp.allclose(step(x), expected)
    assert training.model.bias[...] == 1.0
    assert len(traces) == 1
    assert training.steps == 1
