"""Captures in the attributes of instances of plain classes, and the stand-ins of such instances."""

from __future__ import annotations

import abc
import enum
import functools
import gc
import threading
import weakref
from collections import UserList
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from nnx_rules.errors import TraceContextError
from nnxkit._transforms import _captures
from nnxkit._transforms._captures import Captures, captures_of

T = TypeVar("T")


def variable(value: Any) -> nnx.Variable[Any]:
    return nnx.Variable(value)


def only(captures: Captures) -> Any:
    (found,) = captures.objects
    return found


def rebound(f: Callable[..., Any], *inner: Any) -> Callable[..., Any]:
    return captures_of(f).rebind(inner)


class Trainer:
    """Holds state, and what is none."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.calls = 0
        self.last: Any = None
        self.lock = threading.Lock()
        self.log: list[Any] = []

    def __call__(self) -> Any:
        return self.model.get_value()

    def read(self) -> Any:
        return self()

    @property
    def value(self) -> Any:
        return self.model.get_value()

    def count(self) -> None:
        self.calls += 1

    def replace(self) -> None:
        self.model = nnx.Variable(5)

    def delete(self) -> None:
        del self.model


class Slots:
    __slots__ = ("model", "unset")

    def __init__(self, model: Any) -> None:
        self.model = model


class SlotsBelow(Slots):
    """A slot of the same name as its base has, another one, and a ``__dict__``."""

    __slots__ = ("__dict__", "calls", "model")

    def __init__(self, model: Any) -> None:
        super().__init__(0)
        Slots.model.__set__(self, model)  # type: ignore[attr-defined]
        self.model = model
        self.calls = 0
        self.extra = 0


@dataclass
class Data:
    model: Any
    calls: int = 0


@dataclass(frozen=True)
class Frozen:
    model: Any
    calls: int = 0


@dataclass(frozen=True, slots=True)
class FrozenSlots:
    model: Any
    calls: int = 0


class Base(abc.ABC, Generic[T]):
    @abc.abstractmethod
    def read(self) -> T: ...


class Concrete(Base[int]):
    def __init__(self, model: Any) -> None:
        self.model = model

    def read(self) -> Any:
        return self.model.get_value()


class Mangled:
    def __init__(self, model: Any) -> None:
        self.__model = model

    @property
    def model(self) -> Any:
        return self.__model


class SetsByItself:
    def __init__(self, model: Any) -> None:
        self.model = model

    def __setattr__(self, name: str, value: Any) -> None:
        assert isinstance(value, nnx.Variable), "runs for the stand-in"
        super().__setattr__(name, value)


class Delegates:
    def __init__(self, model: Any) -> None:
        self.inner = SimpleNamespace(model=model)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Names(SimpleNamespace):
    pass


KINDS: dict[str, Callable[[Any], Any]] = {
    "plain class": Trainer,
    "slots": Slots,
    "slots below slots": SlotsBelow,
    "dataclass": Data,
    "frozen dataclass": Frozen,
    "frozen dataclass with slots": FrozenSlots,
    "abstract and generic bases": Concrete,
    "private attribute": Mangled,
    "own __setattr__": SetsByItself,
    "own __getattr__": Delegates,
    "namespace": lambda model: SimpleNamespace(model=model),
    "class below a namespace": lambda model: Names(model=model),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kind(kind: str) -> None:
    outer, inner = variable(1), variable(10)
    holder = KINDS[kind](outer)
    captures = captures_of(lambda: (holder, holder.model))
    assert only(captures) is outer
    copy, seen = captures.rebind([inner])()
    assert seen is inner
    assert type(copy) is type(holder)
    assert copy is not holder
    assert holder.model is outer
    assert captures.is_current()


def test_signature() -> None:
    def make(holder: Any) -> Callable[[], Any]:
        return lambda: holder

    def signature(holder: Any) -> Any:
        return captures_of(make(holder)).signature

    assert signature(Data(variable(1))) == signature(Data(variable(2), calls=5))
    assert signature(Data(variable(1))) != signature(Frozen(variable(1)))
    assert signature(SimpleNamespace(a=variable(1))) != signature(SimpleNamespace(b=variable(1)))


GLOBAL = Data(variable(1))


class TestRoutes:
    def check(self, f: Callable[..., Any]) -> Captures:
        captures = captures_of(f)
        assert only(captures).get_value() == 1
        assert f() == 1
        assert captures.rebind([variable(10)])() == 10
        assert f() == 1
        return captures

    def test_cell(self) -> None:
        trainer = Trainer(variable(1))
        captures = self.check(lambda: trainer.read())
        assert captures.names == ("trainer.model",)

    def test_global(self) -> None:
        assert self.check(lambda: GLOBAL.model.get_value()).names == ("GLOBAL.model",)

    def test_default(self) -> None:
        def f(*, trainer: Any = Trainer(variable(1))) -> Any:  # noqa: B008
            return trainer.read()

        self.check(f)

    def test_partial(self) -> None:
        self.check(functools.partial(lambda trainer: trainer.value, Trainer(variable(1))))

    def test_bound_method(self) -> None:
        assert self.check(Trainer(variable(1)).read).names == ("self.model",)

    def test_method_that_is_captured(self) -> None:
        read = Trainer(variable(1)).read
        self.check(lambda: read())

    def test_callable_instance(self) -> None:
        self.check(Trainer(variable(1)))

    def test_container(self) -> None:
        trainers = {"a": [Trainer(variable(1))]}
        self.check(lambda: trainers["a"][0].value)

    def test_instance_in_an_instance(self) -> None:
        outer = SimpleNamespace(trainers=[Trainer(variable(1))])
        assert self.check(lambda: outer.trainers[0].value).names == ("outer.trainers[0].model",)

    def test_method_of_a_model_of_an_instance(self) -> None:
        holder = Data(variable(1).get_value)
        self.check(lambda: holder.model())

    def test_transform_in_an_attribute(self) -> None:
        class Jitted:
            def __init__(self) -> None:
                self.model = variable(1)
                self.step = nnx.jit(self._step)

            def _step(self) -> Any:
                return self.model.get_value() + 0

        trainer = Jitted()
        self.check(lambda: int(trainer.step()))
        self.check(trainer.step)

    def test_array_beside(self) -> None:
        holder = SimpleNamespace(model=variable(1), data=jnp.zeros(3))
        copy = rebound(lambda: holder, variable(10))()
        assert copy.data is holder.data


class TestGraphs:
    def test_self_reference(self) -> None:
        holder = SimpleNamespace(model=variable(1))
        holder.me = holder
        copy = rebound(lambda: holder, variable(10))()
        assert copy.me.me is copy
        assert copy.model.get_value() == 10
        assert holder.me is holder

    def test_parent_links(self) -> None:
        parent = SimpleNamespace(children=[])
        parent.children += [SimpleNamespace(parent=parent, model=variable(i)) for i in range(3)]
        inner = [variable(10 + i) for i in range(3)]
        copy = rebound(lambda: parent, *inner)()
        assert [child.model for child in copy.children] == inner
        assert all(child.parent is copy for child in copy.children)

    def test_function_in_an_attribute(self) -> None:
        holder = SimpleNamespace(model=variable(1))
        holder.read = lambda: holder.model.get_value()
        assert rebound(lambda: holder.read(), variable(10))() == 10
        assert rebound(holder.read, variable(10))() == 10

    def test_shared(self) -> None:
        holder = SimpleNamespace(model=variable(1))
        both = [holder, SimpleNamespace(it=holder)]
        one, two = rebound(lambda: both, variable(10))()
        assert two.it is one

    def test_parts_without_objects_are_the_same(self) -> None:
        trainer = Trainer(variable(1))
        trainer.last = Data(0)
        copy = rebound(lambda: trainer, variable(10))()
        assert copy.lock is trainer.lock
        assert copy.log is trainer.log
        assert copy.last is trainer.last

    def test_instance_without_objects_is_itself(self) -> None:
        trainer = Trainer(0)
        f = lambda: trainer  # noqa: E731
        assert rebound(f) is f
        assert rebound(trainer) is trainer
        method = trainer.read
        assert rebound(method) is method

    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
    def test_any_graph(self, links: list[tuple[int, int]]) -> None:
        """Each copy refers to the copies of what the original refers to, if that leads to an object."""
        holders = [SimpleNamespace(number=i) for i in range(6)]
        holders[5].model = variable(1)
        for number, (source, target) in enumerate(links):
            setattr(holders[source], f"link{number}", holders[target])
        leads = {5}
        for _ in holders:
            leads |= {source for source, target in links if target in leads}
        copies = rebound(lambda: holders, variable(10))()
        for i, (copy, holder) in enumerate(zip(copies, holders, strict=True)):
            assert (copy is not holder) == (i in leads)
            assert vars(copy).keys() == vars(holder).keys()
        for number, (source, target) in enumerate(links):
            if source in leads:
                assert getattr(copies[source], f"link{number}") is copies[target]


class Colour(enum.Enum):
    RED = "red"


class WithFinalizer:
    def __init__(self, model: Any) -> None:
        self.model = model

    def __del__(self) -> None:
        pass


class Failure(Exception):
    def __init__(self, model: Any) -> None:
        self.model = model


class Worker(threading.Thread):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model


class Models(list[Any]):
    def __init__(self, model: Any) -> None:
        self.model = model


class Proxy:
    def __init__(self, model: Any) -> None:
        self.model = model

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)


def coloured(model: Any) -> Any:
    Colour.RED.model = model  # type: ignore[attr-defined]
    return Colour.RED


OPAQUE: dict[str, Callable[[Any], Any]] = {
    "enumeration": coloured,
    "finalizer": WithFinalizer,
    "exception": Failure,
    "thread": Worker,
    "below list": Models,
    "own __getattribute__": Proxy,
    "class of the standard library": lambda model: UserList([model]),
    "weak reference": weakref.ref,
    "class": lambda model: type("Local", (), {"model": model, "__module__": __name__}),
}


@pytest.mark.parametrize("kind", OPAQUE)
def test_opaque(kind: str) -> None:
    model = variable(1)
    holder = OPAQUE[kind](model)
    f = lambda: holder  # noqa: E731
    captures = captures_of(f)
    assert captures.objects == ()
    assert captures.rebind([]) is f


def test_instances_of_libraries_are_opaque() -> None:
    cls = type("Tool", (), {"__module__": "jax.tools"})
    tool = cls()
    tool.model = variable(1)
    captures = captures_of(lambda: tool)
    assert captures.objects == ()
    tool = cls()
    assert captures.is_current()


def test_instances_of_installed_packages_are_looked_into_from_within_only(monkeypatch: pytest.MonkeyPatch) -> None:
    package = SimpleNamespace(__name__="package.a", __file__="/x/lib/python3.11/site-packages/package/a.py")
    monkeypatch.setitem(__import__("sys").modules, "package.a", package)
    holder = type("Holder", (), {"__module__": "package.a"})()
    holder.model = variable(1)
    inside: dict[str, Any] = {**vars(package), "holder": holder}
    outside: dict[str, Any] = {"__name__": "elsewhere", "holder": holder}
    for names in (inside, outside):
        exec("def f(): return holder.model", names)
    assert only(captures_of(inside["f"])) is holder.model
    assert captures_of(outside["f"]).objects == ()


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
        gc.collect()
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
