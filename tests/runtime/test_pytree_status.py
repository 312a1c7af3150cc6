"""Which attributes of a `Pytree` are data: by value, by tag, by declaration, and after reassignment."""

from __future__ import annotations

import collections
import functools
import linecache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boxes
import nnxkit as nnx
from boxes import Box, Dataclass, Fielded, array, status
from nnx_rules.errors import (
    AttributeStatusError,
    StatusTagError,
)


@nnx.register_data_type
class Registered:
    pass


class RegisteredChild(Registered):
    pass


class Point(collections.namedtuple("Point", "a b")):
    __slots__ = ()


DATA = {
    "array": array(),
    "key": jax.random.key(0),
    "numpy array": np.ones(2),
    "variable": nnx.Param(1),
    "ref": nnx.array_ref(jnp.ones(2)),
    "module": nnx.Linear(1, 1, rngs=nnx.Rngs(0)),
    "empty module": nnx.Module(),
    "list": nnx.List([]),
    "dict": nnx.Dict(),
    "rngs": nnx.Rngs(0),
    "object": nnx.Object(),
    "registered": Registered(),
}


STATIC = {
    "int": 1,
    "float": 1.5,
    "bool": True,
    "str": "s",
    "none": None,
    "numpy scalar": np.float32(1),
    "function": len,
    "lambda": lambda: 1,
    "shape": jax.ShapeDtypeStruct((2,), jnp.float32),
    "optax": optax.adam(1e-3),
    "empty list": [],
    "list": [1, "a"],
    "dict": {"a": 1},
    "tuple": (1, (2, 3)),
    "namedtuple": Point(1, 2),
    "set of arrays": {id(array())},
    "deque of arrays": collections.deque([array()]),
    "partial of arrays": functools.partial(len, array()),
    "closure": functools.partial(lambda a: a, array()),
    "subclass of registered": RegisteredChild(),
    "type": nnx.Param,
    "dtype": jnp.float32,
}


CONTAINERS = {
    "list": [array()],
    "dict": {"a": 1, "b": nnx.Param(1)},
    "tuple": (1, (2, array())),
    "namedtuple": Point(1, nnx.Module()),
    "nested": [1, {"a": (2, [np.ones(1)])}],
    "list of modules": [nnx.Module()],
}


@pytest.mark.parametrize("inside", [True, False], ids=["in __init__", "afterwards"])
class TestFirstAssignment:
    def assign(self, value: Any, inside: bool) -> nnx.Pytree:
        if inside:
            return Box(value)
        obj = nnx.Pytree()
        obj.x = value
        return obj

    @pytest.mark.parametrize("name", DATA)
    def test_data(self, name: str, inside: bool) -> None:
        obj = self.assign(DATA[name], inside)
        assert status(obj) == "data"
        assert obj.x is DATA[name]

    @pytest.mark.parametrize("name", STATIC)
    def test_static(self, name: str, inside: bool) -> None:
        obj = self.assign(STATIC[name], inside)
        assert status(obj) == "static"
        assert obj.x is STATIC[name]

    @pytest.mark.parametrize("name", CONTAINERS)
    def test_container_with_data(self, name: str, inside: bool) -> None:
        with pytest.raises(AttributeStatusError, match=r"x` is static, but its value, .* holds data") as caught:
            self.assign(CONTAINERS[name], inside)
        assert caught.value.code == "NNX101"

    @pytest.mark.parametrize("name", [*DATA, *STATIC, *CONTAINERS])
    def test_tagged_data(self, name: str, inside: bool) -> None:
        value = {**DATA, **STATIC, **CONTAINERS}[name]
        obj = self.assign(nnx.data(value), inside)
        assert status(obj) == "data"
        assert obj.x is value

    @pytest.mark.parametrize("name", STATIC)
    def test_tagged_static(self, name: str, inside: bool) -> None:
        assert status(self.assign(nnx.static(STATIC[name]), inside)) == "static"

    @pytest.mark.parametrize("name", DATA)
    def test_data_tagged_static(self, name: str, inside: bool) -> None:
        with pytest.raises(AttributeStatusError, match="is marked static, but its value") as caught:
            self.assign(nnx.static(DATA[name]), inside)
        assert caught.value.code == "NNX102"

    @pytest.mark.parametrize("value", [[nnx.data(1)], {"a": nnx.static(2)}, (1, [nnx.data(1)])])
    def test_tag_inside_a_container(self, value: Any, inside: bool) -> None:
        with pytest.raises(StatusTagError, match=r"inside its value"):
            self.assign(value, inside)
        with pytest.raises(StatusTagError, match=r"inside its value"):
            self.assign(nnx.data(value), inside)

    def test_tag_inside_a_tag(self, inside: bool) -> None:
        with pytest.raises(StatusTagError, match=r"`nnx.static` inside its value"):
            self.assign(nnx.data(nnx.static(1)), inside)

    def test_field_specifier_instead_of_a_value(self, inside: bool) -> None:
        with pytest.raises(StatusTagError, match=r"assigned `nnx.data\(\)`, which holds no value"):
            self.assign(nnx.data(), inside)


REASSIGNMENT = [
    # current, assigned value, status after or code of the error
    ("static", 2, "static"),
    ("static", array(), "NNX103"),
    ("static", [array()], "NNX101"),
    ("static", nnx.data(2), "data"),
    ("static", nnx.static(2), "static"),
    ("static", nnx.static(array()), "NNX102"),
    ("data", 2, "data"),
    ("data", array(), "data"),
    ("data", [array()], "data"),
    ("data", nnx.data(2), "data"),
    ("data", nnx.static(2), "static"),
    ("data", nnx.static(array()), "NNX102"),
]


CURRENT = {
    "static": {
        "assigned": lambda: (Box(1), "x"),
        "annotated": lambda: (Fielded(), "s"),
        "field": lambda: (Dataclass(), "s"),
        "metadata": lambda: (Dataclass(), "n"),
    },
    "data": {
        "assigned": lambda: (Box(array()), "x"),
        "annotated": lambda: (Fielded(), "d"),
        "field": lambda: (Dataclass(), "d"),
        "metadata": lambda: (Dataclass(), "m"),
    },
}


@pytest.mark.parametrize(("current", "value", "expected"), REASSIGNMENT)
@pytest.mark.parametrize("origin", CURRENT["data"])
def test_reassignment(current: str, value: Any, expected: str, origin: str) -> None:
    obj, name = CURRENT[current][origin]()
    if expected.startswith("NNX"):
        before = vars(obj).copy()
        with pytest.raises(AttributeStatusError, match=f"`{type(obj).__name__}.{name}`") as caught:
            setattr(obj, name, value)
        # Until a first assignment, the status is the mark of the class body.
        assert caught.value.code == (expected if name in before else "NNX102")
        assert caught.value.path == (name,)
        assert vars(obj) == before
    else:
        setattr(obj, name, value)
        assert status(obj, name) == expected


def test_error_says_where_the_status_comes_from() -> None:
    obj = Box(1)
    with pytest.raises(AttributeStatusError, match="became static when it was first assigned") as caught:
        obj.x = array()
    error = caught.value
    assert (error.cls, error.code) == ("Box", "NNX103")
    assert error.first_assigned is not None
    file, line = error.first_assigned
    assert file == boxes.__file__
    assert linecache.getline(file, line).strip() == "self.x = value"
    assert f"first assigned: {file}:{line}" in str(error)
    assert "nnx.data(...)" in str(error)


def test_deleting_forgets_the_status() -> None:
    obj = Box(1)
    del obj.x
    assert not hasattr(obj, "x")
    assert "x" not in obj._pytree__nodes
    obj.x = array()
    assert status(obj) == "data"


def test_deleting_an_annotated_attribute_restores_its_declaration() -> None:
    obj = Fielded()
    obj.d = nnx.static(1)
    assert status(obj, "d") == "static"
    del obj.d
    obj.d = 1
    assert status(obj, "d") == "data"


def test_deleting_a_missing_attribute() -> None:
    with pytest.raises(AttributeError, match="x"):
        del nnx.Pytree().x


class TestQuestions:
    @pytest.mark.parametrize("name", DATA)
    def test_is_data(self, name: str) -> None:
        assert nnx.is_data(DATA[name])
        assert nnx.has_data(DATA[name]) == [DATA[name]]

    @pytest.mark.parametrize("name", STATIC)
    def test_is_not_data(self, name: str) -> None:
        assert not nnx.is_data(STATIC[name])
        assert nnx.has_data(STATIC[name]) == []

    @pytest.mark.parametrize("name", CONTAINERS)
    def test_containers_are_not_data_but_have_it(self, name: str) -> None:
        assert not nnx.is_data(CONTAINERS[name])
        assert len(nnx.has_data(CONTAINERS[name])) == 1

    def test_order_is_that_of_jax(self) -> None:
        assert [leaf.shape for leaf in nnx.has_data({"b": jnp.ones(1), "a": [jnp.ones(2)]})] == [(2,), (1,)]
        assert len(nnx.has_data({"b": jnp.ones(1), 1: jnp.ones(2)})) == 2

    def test_subclasses_that_jax_does_not_flatten_are_leaves(self) -> None:
        class Mine(list):  # type: ignore[type-arg]
            pass

        assert nnx.has_data(Mine([array()])) == []
        assert len(nnx.has_data(collections.OrderedDict(a=array()))) == 1

    def test_state_is_a_container(self) -> None:
        assert not nnx.is_data(nnx.State({"a": nnx.Param(1)}))
        assert len(nnx.has_data(nnx.State({"a": nnx.Param(1)}))) == 1

    def test_tracers_are_data(self) -> None:
        assert jax.jit(lambda x: jnp.array(nnx.is_data(x)))(1.0)

    @given(
        st.recursive(
            st.integers() | st.none() | st.text(), lambda kids: st.lists(kids) | st.dictionaries(st.text(), kids)
        )
    )
    def test_plain_values_have_no_data(self, value: Any) -> None:
        assert nnx.has_data(value) == []
        assert status(Box(value)) == "static"

    @given(
        st.recursive(
            st.integers() | st.builds(array),
            lambda kids: st.lists(kids) | st.tuples(kids, kids) | st.dictionaries(st.text(), kids),
        )
    )
    def test_data_leaves_are_what_jax_flattens(self, value: Any) -> None:
        expected = [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array)]
        assert {id(leaf) for leaf in nnx.has_data(value)} == {id(leaf) for leaf in expected}
