"""`Pytree`: classes and their declarations, construction, trace levels, flattening by JAX, copies, versions."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
import sys
import types
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from boxes import Box, Dataclass, Fielded, array, status
from nnx_rules.errors import (
    AttributeStatusError,
    ClassDefinitionError,
    ClassLayoutError,
    StatusTagArgumentError,
    StatusTagError,
    TraceContextError,
)


class TestConstruction:
    def test_container_filled_in_init(self) -> None:
        class Filled(nnx.Pytree):
            def __init__(self) -> None:
                self.xs: list[Any] = []
                self.xs.append(array())

        with pytest.raises(AttributeStatusError, match=r"`Filled.xs` is static, but data was put into it") as caught:
            Filled()
        assert caught.value.code == "NNX104"
        assert caught.value.first_assigned is not None

    def test_container_filled_afterwards_is_found_by_check_pytree(self) -> None:
        obj = Box([])
        obj.x.append(array())
        with pytest.raises(AttributeStatusError, match="data was put into it"):
            nnx.check_pytree(obj)

    def test_tag_put_into_data_is_found(self) -> None:
        obj = Box(nnx.data([]))
        obj.x.append(nnx.data(1))
        with pytest.raises(StatusTagError, match="inside its value"):
            nnx.check_pytree(obj)

    @pytest.mark.parametrize("write", ["vars", "object"])
    def test_bypass_gets_a_status_when_construction_ends(self, write: str) -> None:
        class Bypass(nnx.Pytree):
            def __init__(self, value: Any) -> None:
                if write == "vars":
                    vars(self)["x"] = value
                else:
                    object.__setattr__(self, "x", value)

        assert status(Bypass(array())) == "data"
        assert status(Bypass(1)) == "static"
        obj = Bypass(nnx.data(3))
        assert (obj.x, status(obj)) == (3, "data")
        with pytest.raises(AttributeStatusError, match="holds data"):
            Bypass([array()])

    def test_bypass_afterwards_is_flattened_by_kind(self) -> None:
        obj = Box(1)
        vars(obj)["y"] = array()
        assert len(jax.tree.leaves(obj)) == 1

    def test_super_init_is_not_needed(self) -> None:
        class Child(Box):
            def __init__(self) -> None:
                self.y = array()

        assert status(Child(), "y") == "data"

    def test_attributes_may_be_set_in_new(self) -> None:
        class Early(nnx.Pytree):
            def __new__(cls) -> Early:
                self = super().__new__(cls)
                self.x = array()
                return self

        assert status(Early()) == "data"

    def test_no_arguments_without_init(self) -> None:
        with pytest.raises(TypeError, match=r"Module\(\) takes no arguments"):
            nnx.Module(1)  # type: ignore[call-arg]

    def test_properties_are_set_through_their_setter(self) -> None:
        class Property(nnx.Pytree):
            @property
            def p(self) -> Any:
                return self._p

            @p.setter
            def p(self, value: Any) -> None:
                self._p = value

        obj = Property()
        obj.p = array()
        assert vars(obj).keys() == {"_p"}
        assert len(jax.tree.leaves(obj)) == 1

    def test_a_setter_gets_the_value_of_a_mark(self) -> None:
        stored: dict[str, Any] = {}

        class Property(nnx.Pytree):
            @property
            def p(self) -> Any:
                return stored["p"]

            @p.setter
            def p(self, value: Any) -> None:
                stored["p"] = value

        Property().p = nnx.data([1])
        assert stored == {"p": [1]}

    def test_generic_and_protocol_bases(self) -> None:
        T = TypeVar("T")

        class Base(nnx.Module, Generic[T]):
            def __init__(self, x: T) -> None:
                self.x = x

        assert status(Base[jax.Array](array())) == "data"


class TestClasses:
    def test_slots_are_refused(self) -> None:
        with pytest.raises(ClassLayoutError, match="`Slotted` is a Pytree and has `__slots__`"):

            class Slotted(nnx.Pytree):
                __slots__ = ("x",)

    def test_empty_slots_are_fine(self) -> None:
        class Slotless(nnx.Pytree):
            __slots__ = ()

        obj = Slotless()
        obj.x = 1
        assert obj.x == 1

    def test_pytree_false(self) -> None:
        class Unchecked(nnx.Pytree, pytree=False):
            def __init__(self) -> None:
                self.a = [array()]
                self.b = "s"
                self.b = array()

        obj = Unchecked()
        assert jax.tree.leaves([obj]) == [obj]

        class Child(Unchecked):
            pass

        with pytest.raises(AttributeStatusError, match="holds data"):
            Child()

    def test_object_is_pytree_false_for_all_subclasses(self) -> None:
        class Child(nnx.Object):
            def __init__(self) -> None:
                self.a = [array()]

        class Grandchild(Child):
            pass

        obj = Grandchild()
        assert jax.tree.leaves([obj]) == [obj]
        with pytest.raises(ClassDefinitionError, match=r"derives from `nnx\.Object`"):

            class Wrong(nnx.Object, pytree=True):
                pass

    def test_unknown_class_keyword(self) -> None:
        with pytest.raises(TypeError, match="takes no keyword arguments"):

            class Strict(nnx.Pytree, strict=True):  # type: ignore[call-arg]
                pass

    def test_conflicting_declarations(self) -> None:
        class Base(nnx.Pytree):
            x: nnx.Data[int]

        with pytest.raises(ClassDefinitionError, match=r"`Child.x` is declared static, but it is already data"):

            class Child(Base):
                x: int = nnx.static()

        with pytest.raises(ClassDefinitionError, match="is declared data, but it is already static"):

            class Both(nnx.Pytree):
                x: nnx.Static[int] = nnx.data(default=1)

    def test_an_annotation_takes_the_place_of_an_inherited_declaration(self) -> None:
        class Base(nnx.Pytree):
            x: nnx.Data[int]

        class Child(Base):
            x: nnx.Static[int]

            def __init__(self) -> None:
                self.x = 1

        assert jax.tree.leaves(Child()) == []

    def test_declarations_are_inherited(self) -> None:
        class Child(Fielded):
            pass

        obj = Child()
        obj.d = 1
        assert status(obj, "d") == "data"

    def test_string_annotations(self) -> None:
        class Quoted(nnx.Pytree):
            a: nnx.Data[OnlyForTypeCheckers]  # type: ignore[name-defined]  # noqa: F821
            b: nnx.Static[int]
            c: int

        obj = Quoted()
        obj.a, obj.c = 1, 1
        assert (status(obj, "a"), status(obj, "c")) == ("data", "static")
        with pytest.raises(AttributeStatusError, match="is marked static"):
            obj.b = array()

    def test_string_annotations_through_an_alias(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = types.ModuleType("alias_module")
        vars(module).update(N=nnx)
        monkeypatch.setitem(sys.modules, "alias_module", module)
        exec("class C(N.Pytree):\n    x: 'N.Data[list[Unknown]]'\n", vars(module))
        obj = vars(module)["C"]()
        obj.x = [array()]
        assert status(obj) == "data"


class TestDataclasses:
    def test_specifiers(self) -> None:
        @nnx.dataclass
        class Foo(nnx.Pytree):
            i: int = nnx.data()
            x: jax.Array
            a: int
            s: str = nnx.static(default="hi", kw_only=True)

        foo = Foo(1, array(), 2)
        assert {name: status(foo, name) for name in "ixas"} == {"i": "data", "x": "data", "a": "static", "s": "static"}
        assert foo.s == "hi"

    def test_specifiers_override_inference(self) -> None:
        obj = Dataclass(d=1, m=1, free=array())
        assert [status(obj, name) for name in ("d", "s", "m", "n", "free")] == [
            "data",
            "static",
            "data",
            "static",
            "data",
        ]
        with pytest.raises(AttributeStatusError, match="is marked static"):
            Dataclass(s=array())

    def test_default_factory(self) -> None:
        @nnx.dataclass
        class Foo(nnx.Pytree):
            xs: list[Any] = nnx.data(default_factory=list)

        assert Foo().xs is not Foo().xs

    def test_repr_and_hash(self) -> None:
        obj = Dataclass()
        assert repr(obj).startswith("Dataclass(\n  d=0,")
        with pytest.raises(TypeError, match="unhashable"):
            hash(obj)

    def test_unknown_options(self) -> None:
        with pytest.raises(ClassLayoutError, match="does not take `frozen`"):
            nnx.dataclass(frozen=True)

    def test_static_metadata_must_be_bool(self) -> None:
        with pytest.raises(ClassDefinitionError, match="not a bool"):

            class Foo(nnx.Pytree):
                x: int = dataclasses.field(metadata={"static": 1})

    @pytest.mark.parametrize("tag", [nnx.data, nnx.static])
    def test_arguments(self, tag: Any) -> None:
        with pytest.raises(StatusTagArgumentError, match="takes either one value or the keywords"):
            tag(1, default=2)
        with pytest.raises(StatusTagArgumentError, match="`typo`"):
            tag(typo=1)

    def test_post_init(self) -> None:
        @nnx.dataclass
        class Foo(nnx.Pytree):
            n: int

            def __post_init__(self) -> None:
                self.w = jnp.ones(self.n)

        assert status(Foo(2), "w") == "data"


def change_attribute(obj: Any) -> None:
    obj.x = 1


def change_new(obj: Any) -> None:
    obj.new = 1


def change_delete(obj: Any) -> None:
    del obj.x


CHANGES = {"set": change_attribute, "new": change_new, "delete": change_delete}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad, jax.checkpoint, functools.partial(jax.eval_shape)])
class TestTraceLevels:
    def run(self, transform: Any, function: Any) -> Any:
        if transform is jax.vmap:
            return jax.vmap(function)(jnp.ones(1))
        if isinstance(transform, functools.partial):
            return jax.eval_shape(function, 1.0)
        return transform(function)(1.0)

    def test_captured(self, change: str, transform: Any) -> None:
        obj = Box(0)

        def function(x: Any) -> Any:
            CHANGES[change](obj)
            return x

        with pytest.raises(TraceContextError, match="Cannot mutate `Box` from a different trace level"):
            self.run(transform, function)
        assert vars(obj) == {"x": 0}

    def test_own(self, change: str, transform: Any) -> None:
        def function(x: Any) -> Any:
            CHANGES[change](Box(0))
            return x

        self.run(transform, function)


def test_argument_belongs_to_the_trace() -> None:
    @jax.jit
    def f(obj: Box) -> Box:
        obj.x = obj.x + 1
        return obj

    assert f(Box(jnp.array(1))).x == 2


def test_copies_made_in_a_trace_belong_to_it() -> None:
    obj = Box(0)

    @jax.jit
    def f(x: Any) -> Any:
        for copied in (copy.copy(obj), copy.deepcopy(obj), pickle.loads(pickle.dumps(obj))):
            copied.x = 1
        return x

    f(1.0)


class Nested(nnx.Pytree):
    def __init__(self) -> None:
        self.b = Box(array())
        self.name = "n"
        self.a = nnx.data([1, array()])
        self.layers = nnx.List([array() for _ in range(11)])


class TestJaxTree:
    def test_paths_are_sorted(self) -> None:
        paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(Nested())[0]]
        assert paths == [".a[0]", ".a[1]", ".b.x", *(f".layers[{i}]" for i in range(11))]

    def test_round_trip(self) -> None:
        leaves, treedef = jax.tree.flatten(Nested())
        obj = jax.tree.unflatten(treedef, leaves)
        assert list(vars(obj)) == ["a", "b", "layers", "name"]
        assert jax.tree.structure(obj) == treedef
        assert len(obj.layers) == 11
        assert type(obj.b) is Box

    def test_init_does_not_run(self) -> None:
        class Strict(nnx.Pytree):
            def __init__(self, x: Any) -> None:
                self.x = x
                self.calls = calls
                calls.append(1)

        calls: list[int] = []
        obj = jax.tree.map(lambda x: x, Strict(1))
        assert calls == [1]
        assert obj.x == 1

    def test_arbitrary_leaves(self) -> None:
        sentinel = object()
        obj = jax.tree.map(lambda _: sentinel, Nested())
        assert obj.b.x is sentinel
        assert jax.tree.map(lambda _: None, Box(array())).x is None
        assert jax.eval_shape(lambda: Box(array())).x.shape == (2,)

    def test_static_values_are_structure(self) -> None:
        assert jax.tree.structure(Box(1)) == jax.tree.structure(Box(1))
        assert jax.tree.structure(Box(1)) != jax.tree.structure(Box(2))
        assert jax.tree.structure(Box(nnx.data(1))) != jax.tree.structure(Box(1))
        assert hash(jax.tree.structure(Box(1))) == hash(jax.tree.structure(Box(1)))

    @given(st.dictionaries(st.text(min_size=1), st.integers() | st.builds(array) | st.text(), max_size=6))
    def test_any_attributes_round_trip(self, attributes: dict[str, Any]) -> None:
        obj = nnx.Pytree()
        for name, value in attributes.items():
            if not name.startswith("_"):
                setattr(obj, name, value)
        leaves, treedef = jax.tree.flatten(obj)
        again = jax.tree.unflatten(treedef, leaves)
        assert vars(again) == vars(obj)
        assert again._pytree__nodes == obj._pytree__nodes


class Cyclic(nnx.Module):
    def __init__(self) -> None:
        self.me = self
        self.w = nnx.Param(array())


class TestCopies:
    def test_copy_shares_variables(self) -> None:
        obj = Box(nnx.Param(1))
        copied = copy.copy(obj)
        copied.y = 1
        assert copied.x is obj.x
        assert not hasattr(obj, "y")

    def test_deepcopy(self) -> None:
        shared = nnx.Param(array())
        obj = nnx.Dict(a=shared, b=nnx.List([shared]), f=len, options=[1])
        copied = copy.deepcopy(obj)
        assert copied.a is copied.b[0]
        assert copied.a is not shared
        assert (copied.a[...] == shared[...]).all()
        assert copied.options == [1]
        assert copied.options is not obj.options
        copied.a[...] = jnp.zeros(2)
        assert shared[0] == 1
        assert copied._pytree__nodes == obj._pytree__nodes

    def test_deepcopy_of_unchecked_containers(self) -> None:
        obj = nnx.Object()
        obj.xs = [nnx.Param(1)]
        copied = copy.deepcopy(obj)
        assert copied.xs[0] is not obj.xs[0]

    @pytest.mark.parametrize(
        "clone", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"]
    )
    def test_self_cycles(self, clone: Any) -> None:
        obj = clone(Cyclic())
        assert obj.me is obj
        assert obj.w.shape == (2,)

    @pytest.mark.parametrize("pickler", ["pickle", "cloudpickle"])
    def test_pickle(self, pickler: str) -> None:
        obj = Nested()
        module = pytest.importorskip(pickler)
        again = module.loads(module.dumps(obj))
        assert jax.tree.structure(again) == jax.tree.structure(obj)
        assert again._pytree__nodes == obj._pytree__nodes

    def test_cloudpickle_of_a_local_class(self) -> None:
        class Local(nnx.Pytree):
            d: nnx.Data[int]

            def __init__(self) -> None:
                self.d = 1
                self.w = nnx.Param(array())

        cloudpickle = pytest.importorskip("cloudpickle")
        again = cloudpickle.loads(cloudpickle.dumps(Local()))
        assert len(jax.tree.leaves(again)) == 2
        again.d = 2
        assert status(again, "d") == "data"


class TestVersions:
    """Structural edits of planned objects, and only these, bump the version and the epoch."""

    def planned(self, value: Any = 1) -> Any:
        obj = Box(value)
        object.__setattr__(obj, "_nnx_version", 1)
        return obj

    def epoch(self) -> int:
        from nnxkit._epoch import EPOCH

        return EPOCH.value

    def test_construction_does_not_count(self) -> None:
        before = self.epoch()
        obj = Nested()
        obj.new = 1
        del obj.new
        assert (self.epoch(), obj._nnx_version) == (before, 0)

    @pytest.mark.parametrize(
        ("first", "second", "structural"),
        [
            (1, 2, True),
            (jnp.ones(2), jnp.zeros(3), False),
            (jnp.ones(2), np.zeros(3), False),
            (nnx.Param(1), nnx.Param(1), True),
            (jnp.ones(2), nnx.Param(1), True),
            (jnp.ones(2), nnx.data([1]), True),
            (1, nnx.data(1), True),
        ],
    )
    def test_reassignment(self, first: Any, second: Any, structural: bool) -> None:
        obj = self.planned(first)
        before = self.epoch()
        obj.x = second
        assert (self.epoch() > before, obj._nnx_version > 1) == (structural, structural)

    def test_same_object(self) -> None:
        obj = self.planned("mode")
        obj.x = obj.x
        assert obj._nnx_version == 1

    def test_new_and_deleted_attributes(self) -> None:
        obj = self.planned()
        obj.y = array()
        assert obj._nnx_version > 1
        version = obj._nnx_version
        del obj.y
        assert obj._nnx_version > version
