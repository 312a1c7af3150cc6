"""Captures in the attributes of instances of plain classes, and which instances are looked into."""

from __future__ import annotations

import abc
import enum
import functools
import threading
import weakref
from collections import UserList
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from captured import only, rebound, variable
from instances import Data, Frozen, Slots, SlotsBelow, Trainer
from nnxkit._transforms._captures import Captures, captures_of

T = TypeVar("T")


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
