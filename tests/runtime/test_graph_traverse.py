"""Walks and maps over live graphs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx


class Layer(nnx.Module):
    def __init__(self) -> None:
        self.w = nnx.Param(jnp.ones(2))
        self.size = 2


def paths(node: Any) -> list[Any]:
    return [path for path, _ in nnx.iter_graph(node) if not (path and str(path[-1]).startswith("_pytree__"))]


class TestIterGraph:
    def test_children_come_first_and_nodes_once(self) -> None:
        layer = Layer()
        assert paths([layer, {"again": layer}]) == [(0, "size"), (0, "w"), (0,), (1,), ()]

    def test_bookkeeping_comes_before_the_attributes(self) -> None:
        names = [(path, type(value).__name__) for path, value in nnx.iter_graph(Layer())]
        assert names[:2] == [(("_pytree__nodes",), "HashableMapping"), (("_pytree__state",), "PytreeState")]

    def test_none_is_reported_at_every_path(self) -> None:
        assert paths(nnx.Dict(a=None, b=None, c=(), d=())) == [("a",), ("b",), ("c",), ("d",), ()]

    def test_self_cycles_end(self) -> None:
        node = nnx.Dict()
        node.me = node
        assert paths(node) == [()]

    def test_a_leaf_is_reported_alone(self) -> None:
        assert list(nnx.iter_graph(3)) == [((), 3)]


class TestFindDuplicates:
    def test_groups_paths_of_nodes_variables_and_arrays(self) -> None:
        layer, array = Layer(), jnp.ones(3)
        node = [layer, {"b": layer, "a": array}, array, layer.w]
        assert nnx.find_duplicates(node) == [[(0,), (1, "b")], [(0, "w"), (3,)], [(1, "a"), (2,)]]
        assert nnx.find_duplicates(node, only=nnx.Param) == [[(0, "w"), (3,)]]

    def test_numbers_and_text_are_no_duplicates(self) -> None:
        assert nnx.find_duplicates([1, 1, "a", "a", None, None]) == []

    def test_a_cycle_is_a_duplicate(self) -> None:
        node = nnx.Dict()
        node.me = node
        assert nnx.find_duplicates(node) == [[(), ("me",)]]


class TestMap:
    def test_other_values_are_wrapped_again(self) -> None:
        node = nnx.Dict(a=nnx.Param(jnp.ones(1), unit="m"), b=jnp.ones(1))
        doubled = nnx.map(lambda path, leaf: leaf[...] * 2, node)
        assert isinstance(doubled.a, nnx.Param)
        assert (doubled.a.unit, doubled.a.sum(), doubled.b.sum()) == ("m", 2, 2)
        assert isinstance(nnx.map(lambda p, leaf: leaf[...], node, recreate_variables=False).a, jax.Array)

    def test_variables_are_used_as_they_are(self) -> None:
        node = nnx.Dict(a=nnx.Param(1))
        assert nnx.map(lambda path, leaf: leaf, node).a is node.a
        assert isinstance(nnx.map(lambda path, leaf: nnx.BatchStat(2), node).a, nnx.BatchStat)

    def test_a_lone_variable_has_the_empty_path(self) -> None:
        assert nnx.map(lambda path, leaf: len(path), nnx.Param(5)).get_value() == 0


class TestRecursiveMap:
    def test_replaces_nodes(self) -> None:
        class Wrapper(nnx.Module):
            def __init__(self, inner: Any) -> None:
                self.inner = inner

        node = nnx.Dict(a=Layer(), b=nnx.List([Layer(), 3]))
        node.c = node.a
        out = nnx.recursive_map(lambda path, value: Wrapper(value) if isinstance(value, Layer) else value, node)
        assert isinstance(out.a, Wrapper)
        assert out.a is out.c
        assert out.a.inner is not node.a
        assert out.a.inner.w is node.a.w
        assert isinstance(out.b[0], Wrapper)
        assert isinstance(node.a, Layer)

    def test_rebuilds_containers_and_keeps_cycles(self) -> None:
        node = nnx.Dict(box=nnx.data([nnx.Param(1), (2, {"k": jnp.ones(1)})]))
        node.me = node
        seen: list[Any] = []
        out = nnx.recursive_map(lambda path, value: (seen.append(path), value)[1], node)
        assert out is not node
        assert out.me is out
        assert out.box[1][0] == 2
        assert seen[-1] == ()
        assert ("box", 1, 1, "k") in seen


class TestConversions:
    def test_as_pure_unwraps(self) -> None:
        assert nnx.as_pure({"a": nnx.Param(1), "b": [2]}) == {"a": 1, "b": [2]}

    def test_with_vars_moves_values_into_references_and_back(self) -> None:
        node = nnx.Dict(a=nnx.Param(jnp.ones(2)), b=nnx.BatchStat(jnp.ones(2)))
        refs = nnx.with_vars(node, ref=True, only=nnx.Param)
        assert nnx.is_array_ref(refs.a.get_raw_value())
        assert refs.a.get_metadata("ref") is True
        assert refs.b is node.b
        back = nnx.with_vars(refs, ref=False)
        assert isinstance(back.a.get_raw_value(), jax.Array)
        assert back.a.get_metadata("ref") is False

    def test_with_vars_refuses_shared_variables(self) -> None:
        shared = nnx.Param(jnp.ones(1))
        with pytest.raises(ValueError, match=r"found at `\[0\]` and `\[1\]`"):
            nnx.with_vars([shared, shared], ref=True)
        out = nnx.with_vars([shared, shared], ref=True, allow_duplicates=True)
        assert out[0] is out[1]

    def test_to_refs_and_to_arrays_are_inverse(self) -> None:
        node = [jnp.ones(1), nnx.Param(jnp.zeros(1)), "text"]
        refs = nnx.to_refs(node)
        assert nnx.is_array_ref(refs[0])
        assert nnx.is_array_ref(refs[1].get_raw_value())
        refs[0][...] = jnp.full(1, 4.0)
        arrays = nnx.to_arrays(refs)
        assert arrays[0].sum() == 4
        assert nnx.graphdef(arrays) == nnx.graphdef(node)

    def test_shared_references_become_arrays_on_request(self) -> None:
        shared = nnx.array_ref(jnp.ones(1))
        arrays = nnx.to_arrays([shared, shared], allow_duplicates=True)
        assert isinstance(arrays[1], jax.Array)

    def test_references_keep_identity_through_split_and_merge(self) -> None:
        shared = nnx.array_ref(jnp.ones(1))
        graphdef, state = nnx.split({"a": shared, "b": [shared]})
        assert nnx.to_flat_state(state).paths == (("a",),)
        merged = nnx.merge(graphdef, state)
        assert merged["a"] is merged["b"][0]
