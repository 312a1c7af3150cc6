"""``List``, ``Dict`` and ``Sequential``."""

from __future__ import annotations

import pickle
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from nnx_rules.errors import AttributeStatusError, TraceContextError
from nnxkit._epoch import EPOCH


def array(n: int = 2) -> jax.Array:
    return jnp.ones(n)


class TestList:
    def test_elements_are_data_or_static_one_by_one(self) -> None:
        xs = nnx.List([1, array(), "a", nnx.Param(1)])
        assert [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(xs)[0]] == [
            "[1]",
            "[3].value",
        ]
        xs[0] = nnx.data(5)
        assert len(jax.tree.leaves(xs)) == 3
        with pytest.raises(AttributeStatusError, match="cannot take an array"):
            xs[2] = array()

    def test_containers_of_data_are_refused(self) -> None:
        with pytest.raises(AttributeStatusError, match="holds data"):
            nnx.List([[array()]])
        xs = nnx.List([1])
        for add in (xs.append, lambda x: xs.insert(0, x), lambda x: xs.extend([x])):
            with pytest.raises(AttributeStatusError, match="holds data"):
                add([array()])
            assert list(xs) == [1]
            assert vars(xs).keys() == {"_length", "0"}

    @pytest.mark.parametrize(
        "remove", [lambda xs: xs.pop(1), lambda xs: xs.__delitem__(1), lambda xs: xs.__delitem__(slice(1, 2))]
    )
    def test_nothing_stays_behind(self, remove: Any) -> None:
        xs = nnx.List([array(1), array(2), "s"])
        remove(xs)
        assert [leaf.shape for leaf in jax.tree.leaves(xs)] == [(1,)]
        assert vars(xs).keys() == {"_length", "0", "1"}
        assert xs._pytree__nodes == {"_length": False, "0": True, "1": False}

    def test_identity(self) -> None:
        a, b = nnx.List([1]), nnx.List([1])
        assert a == a
        assert a != b
        assert len({a, b}) == 2
        outer = nnx.List([a, b])
        assert outer.index(b) == 1
        outer.remove(b)
        assert list(outer) == [a]
        assert b not in outer

    def test_errors(self) -> None:
        xs = nnx.List([1])
        for use in (lambda: xs[1], lambda: xs.__setitem__(-2, 0), lambda: xs.__delitem__(1), nnx.List().pop):
            with pytest.raises(IndexError, match="out of range"):
                use()

    def test_slices_are_plain_lists(self) -> None:
        assert nnx.List([1, 2, 3])[1:] == [2, 3]
        assert type(nnx.List([1])[:]) is list

    def test_pickle(self) -> None:
        assert list(pickle.loads(pickle.dumps(nnx.List([1, "a"])))) == [1, "a"]

    @given(
        st.lists(st.integers()),
        st.lists(
            st.tuples(
                st.sampled_from(
                    ["append", "insert", "pop", "del", "set", "slice", "delslice", "extend", "reverse", "clear"]
                ),
                st.integers(-6, 6),
                st.integers(-6, 6),
            ),
            max_size=8,
        ),
    )
    def test_is_a_list(self, start: list[int], edits: list[tuple[str, int, int]]) -> None:
        def apply(xs: Any, name: str, i: int, j: int) -> Any:
            match name:
                case "append":
                    xs.append(i)
                case "insert":
                    xs.insert(i, j)
                case "pop":
                    return xs.pop(i)
                case "del":
                    del xs[i]
                case "set":
                    xs[i] = j
                case "slice":
                    xs[i:j] = [1, 2]
                case "delslice":
                    del xs[i:j]
                case "extend":
                    xs.extend([i, j])
                case "reverse":
                    xs.reverse()
                case "clear":
                    xs.clear()
            return None

        ours, theirs = nnx.List(start), list(start)
        for edit in edits:
            try:
                expected = apply(theirs, *edit)
            except IndexError:
                with pytest.raises(IndexError, match="out of range"):
                    apply(ours, *edit)
            else:
                assert apply(ours, *edit) == expected
            assert list(ours) == theirs
            assert len(ours) == len(theirs)
            assert vars(ours).keys() == {"_length", *map(str, range(len(theirs)))}
            assert list(ours[::-1]) == theirs[::-1]

    @pytest.mark.parametrize(
        "edit",
        [
            lambda xs: xs.append(1),
            lambda xs: xs.insert(0, 1),
            lambda xs: xs.pop(),
            lambda xs: xs.__delitem__(0),
            lambda xs: xs.__setitem__(0, 1),
            lambda xs: xs.__setitem__(slice(0, 1), [1]),
            lambda xs: xs.reverse(),
        ],
        ids=["append", "insert", "pop", "del", "set", "slice", "reverse"],
    )
    def test_trace_and_version(self, edit: Any) -> None:
        xs = nnx.List([0, "a"])

        @jax.jit
        def f(x: Any) -> Any:
            edit(xs)
            return x

        with pytest.raises(TraceContextError, match="Cannot mutate `List`"):
            f(1.0)
        assert list(xs) == [0, "a"]
        object.__setattr__(xs, "_nnx_version", 1)
        epoch = EPOCH.value
        edit(xs)
        assert xs._nnx_version > 1
        assert EPOCH.value > epoch

    def test_subclass_with_its_own_init(self) -> None:
        class Stack(nnx.List[Any]):
            def __init__(self, n: int) -> None:
                super().__init__(range(n))

        xs = Stack(3)
        xs.insert(0, 9)
        assert list(xs) == [9, 0, 1, 2]


class TestDict:
    def test_items_are_attributes(self) -> None:
        d = nnx.Dict({"a": 1}, b=array())
        assert d.a == d["a"] == 1
        d.c = 3
        d["e"] = nnx.Param(1)
        assert list(d) == ["a", "b", "c", "e"]
        assert len(d) == 4
        assert [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(d)[0]] == [
            ".b",
            ".e.value",
        ]
        del d["b"]
        assert d.pop("c") == 3
        assert len(jax.tree.leaves(d)) == 1

    def test_errors(self) -> None:
        d = nnx.Dict(a=1)
        with pytest.raises(KeyError, match="zz"):
            d["zz"]
        with pytest.raises(KeyError, match="zz"):
            del d["zz"]
        with pytest.raises(AttributeError, match="no attribute 'zz'"):
            _ = d.zz
        with pytest.raises(TypeError, match="attribute name must be string"):
            nnx.Dict({1: 2})
        with pytest.raises(AttributeStatusError, match="holds data"):
            d["b"] = [array()]

    def test_equality_and_hash(self) -> None:
        assert nnx.Dict(a=1) == nnx.Dict(a=1) == {"a": 1}
        assert nnx.Dict(a=1) != {"a": 2}
        assert len({nnx.Dict(), nnx.Dict()}) == 2

    def test_mapping_methods(self) -> None:
        d: nnx.Dict[Any] = nnx.Dict(a=1)
        assert d.setdefault("b", 2) == 2
        d.update(c=3)
        assert dict(d.items()) == {"a": 1, "b": 2, "c": 3}
        assert d.get("zz", 5) == 5
        assert {**d} == {"a": 1, "b": 2, "c": 3}

    @pytest.mark.parametrize("edit", [lambda d: d.__setitem__("a", 2), lambda d: d.pop("a"), lambda d: d.clear()])
    def test_trace(self, edit: Any) -> None:
        d = nnx.Dict(a=1)

        @jax.jit
        def f(x: Any) -> Any:
            edit(d)
            return x

        with pytest.raises(TraceContextError, match="Cannot mutate `Dict`"):
            f(1.0)
        assert dict(d) == {"a": 1}


class TestSequential:
    def test_chain(self) -> None:
        s = nnx.Sequential(lambda x: x + 1, lambda x: (x, 2), lambda a, b: {"c": a, "d": b}, lambda c, d: c * d)
        assert s(1) == 4

    def test_empty_is_identity(self) -> None:
        assert nnx.Sequential()(5) == 5

    def test_first_layer_takes_all_arguments(self) -> None:
        assert nnx.Sequential(lambda x, y=0: x + y)(1, y=2) == 3

    def test_rngs_go_to_those_that_take_them(self) -> None:
        s = nnx.Sequential(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), nnx.Dropout(0.5), lambda x: x)
        assert s(array(), rngs=nnx.Rngs(0)).shape == (2,)

    def test_layers(self) -> None:
        s = nnx.Sequential(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), nnx.relu)
        assert isinstance(s.layers, nnx.List)
        assert [path for path, _ in nnx.iter_modules(s)] == [("layers", 0), ("layers",), ()]
