"""State and FlatState: two forms of the same values."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from nnx_rules.errors import StateMismatchError

keys = st.one_of(
    st.integers(0, 12), st.sampled_from(["a", "b", "a10", "a9"]), st.tuples(st.sampled_from("xy"), st.integers(0, 1))
)
trees = st.recursive(
    st.dictionaries(keys, st.integers(), max_size=3),
    lambda inner: st.dictionaries(keys, st.one_of(st.integers(), inner), max_size=3),
    max_leaves=8,
)


def prune(tree: dict[Any, Any]) -> dict[Any, Any]:
    """A tree without empty levels, which hold no leaf."""
    pruned = {key: prune(value) if isinstance(value, dict) else value for key, value in tree.items()}
    return {key: value for key, value in pruned.items() if value != {}}


class TestMapping:
    def test_items_are_attributes(self) -> None:
        state = nnx.State({"a": {"b": 1}, "c": 2})
        assert state.a.b == state["a"]["b"] == 1
        assert isinstance(state.a, nnx.State)
        assert (len(state), list(state), "a" in state, "z" in state) == (2, ["a", "c"], True, False)
        with pytest.raises(AttributeError, match="No attribute 'z' in State"):
            _ = state.z
        with pytest.raises(KeyError, match="z"):
            _ = state["z"]
        assert {"a", "c"} <= set(dir(state))

    def test_writes_go_through_views(self) -> None:
        state = nnx.State({"a": {"b": 1}})
        inner = state.a
        inner.b = 5
        inner["new"] = {"deep": 6}
        assert state == {"a": {"b": 5, "new": {"deep": 6}}}
        del state.a.b
        del state.a["new"]["deep"]
        assert state == {"a": {"new": {}}}
        with pytest.raises(AttributeError, match="No attribute 'b' in State"):
            del state.a.b

    def test_writes_are_seen_by_graph_functions(self) -> None:
        node = nnx.Dict(a=nnx.Dict(w=nnx.Param(1)), b=nnx.Param(2))
        graphdef, state = nnx.split(node)
        view = state.a
        assert jax.tree.leaves(state) == [1, 2]
        view.w = nnx.Param(7)
        assert jax.tree.leaves(state) == [7, 2]
        assert nnx.merge(graphdef, state).a.w.get_value() == 7
        del state["b"]
        with pytest.raises(ValueError, match="NNX331"):
            nnx.merge(graphdef, state)

    def test_does_not_write_to_what_it_was_made_from(self) -> None:
        source = {"a": {"b": 1}}
        state = nnx.State(source)
        state.a.b = 2
        again = nnx.State(state)
        again.a.b = 3
        assert (source["a"]["b"], state.a.b) == (1, 2)
        assert copy.copy(state) == state
        assert pickle.loads(pickle.dumps(state)) == state

    def test_compares_by_content_and_has_no_hash(self) -> None:
        assert nnx.State({"a": {"b": 1}}) == nnx.State({"a": {"b": 1}})
        assert nnx.State({"a": 1}) != nnx.State({"a": 2})
        assert nnx.State({}) != 1
        with pytest.raises(TypeError, match="unhashable"):
            hash(nnx.State({}))

    def test_the_union_takes_the_right_side(self) -> None:
        left = nnx.State({"a": {"b": 1, "c": 2}})
        assert left | {"a": {"b": 5}, "d": 6} == {"a": {"b": 5, "c": 2}, "d": 6}
        assert left == {"a": {"b": 1, "c": 2}}
        with pytest.raises(TypeError, match="unsupported operand"):
            left | 3  # type: ignore[operator]

    def test_prints_nested(self) -> None:
        state = nnx.State({"a": {"b": 1}, 0: nnx.Param(jnp.ones(2))})
        value = "Param( # 2 (8 B)\n    value=Array([1., 1.], dtype=float32)\n  )"
        assert repr(state) == f"State({{\n  'a': {{\n    'b': 1\n  }},\n  0: {value}\n}})"
        assert repr(nnx.State({})) == "State({})"


class TestTree:
    def test_paths_are_dictionary_keys(self) -> None:
        state = nnx.State({"b": {"c": nnx.Param(1)}, "a": 2})
        paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(state)[0]]
        assert paths == ["['a']", "['b']['c'].value"]

    def test_flat_and_nested_states_have_one_structure(self) -> None:
        node = nnx.Dict(a=nnx.List([nnx.Param(1)]), b=nnx.Param(2))
        flat = nnx.state(node)
        nested = nnx.State({"a": {0: nnx.Param(3)}, "b": nnx.Param(4)})
        assert jax.tree.structure(flat) == jax.tree.structure(nested)
        added = jax.tree.map(lambda x, y: x + y, flat, nested)
        assert nnx.to_pure_dict(added) == {"a": {0: 4}, "b": 6}

    def test_levels_may_mix_integers_and_strings(self) -> None:
        mixed = nnx.State({"a": {"x": 1, 2: 2, "y": {1: 3, "z": 4}}})
        doubled = jax.tree.map(lambda leaf: leaf * 2, mixed)
        assert doubled == {"a": {"x": 2, 2: 4, "y": {1: 6, "z": 8}}}
        assert jax.tree.leaves(mixed) == [2, 1, 3, 4]
        assert [len(path) for path, _ in jax.tree_util.tree_flatten_with_path(mixed)[0]] == [2, 2, 3, 3]

    @given(trees)
    def test_a_round_trip_through_jax_keeps_everything(self, tree: dict[Any, Any]) -> None:
        state = nnx.State(tree)
        leaves, structure = jax.tree.flatten(state)
        assert jax.tree.unflatten(structure, leaves) == state
        assert leaves == nnx.to_flat_state(state).leaves
        assert jax.tree.map(lambda leaf: leaf, state) == tree


class TestFlatState:
    @given(trees)
    def test_is_the_sorted_form_of_a_state(self, tree: dict[Any, Any]) -> None:
        flat = nnx.to_flat_state(nnx.State(tree))
        assert nnx.FlatState(reversed(list(flat)), sort=True) == flat
        assert nnx.from_flat_state(flat) == prune(tree)
        assert nnx.from_flat_state(dict(flat), cls=dict) == prune(tree)

    def test_is_a_sequence(self) -> None:
        flat = nnx.FlatState([(("b",), 1), (("a", 0), 2)], sort=True)
        assert flat.paths == (("a", 0), ("b",))
        assert flat[0] == (("a", 0), 2)
        assert isinstance(flat[:1], nnx.FlatState)
        assert list(flat[1:]) == [(("b",), 1)]
        assert nnx.FlatState([(("b",), 1), (("a",), 2)], sort=False).paths == (("b",), ("a",))
        assert repr(flat) == "FlatState([\n  (('a', 0), 2),\n  (('b',), 1)\n])"

    def test_is_a_pytree_of_its_leaves(self) -> None:
        flat = nnx.FlatState([(("b",), 1), (("a",), nnx.Param(2))], sort=True)
        assert jax.tree.leaves(flat) == [2, 1]
        assert jax.tree.map(lambda leaf: leaf + 1, flat).paths == flat.paths

    def test_splits_filters_and_merges(self) -> None:
        flat = nnx.FlatState([(("b",), 1), (("a",), nnx.Param(2))], sort=True)
        params, rest = flat.split(nnx.Param, ...)
        assert (params.paths, rest.paths) == ((("a",),), (("b",),))
        assert flat.filter(nnx.Param).paths == (("a",),)
        with pytest.raises(ValueError, match="no filter takes `b`"):
            flat.split(nnx.Param)
        merged = nnx.FlatState.merge(rest, params, {("b",): 9}.items())
        assert merged.paths == flat.paths
        assert merged[1] == (("b",), 9)

    @pytest.mark.parametrize("items", [[(("a",), 1), (("a", "b"), 2)], [(("a", "b"), 2), (("a",), 1)]])
    def test_a_path_cannot_continue_another(self, items: list[Any]) -> None:
        with pytest.raises(ValueError, match="`a` is a leaf in one State and a subtree in another"):
            nnx.from_flat_state(items)


class TestFunctions:
    state = nnx.State({"a": {0: nnx.Param(1), 1: nnx.BatchStat(2)}, "c": 3})

    def test_map_sees_paths_and_leaves(self) -> None:
        assert nnx.map_state(lambda path, leaf: len(path), self.state) == {"a": {0: 2, 1: 2}, "c": 1}
        assert type(nnx.map_state(lambda path, leaf: 0, {"a": 1})) is dict

    def test_split_and_filter(self) -> None:
        params, rest = nnx.split_state(self.state, nnx.Param, ...)
        assert nnx.to_pure_dict(params) == {"a": {0: 1}}
        assert nnx.to_pure_dict(rest) == {"a": {1: 2}, "c": 3}
        assert nnx.to_pure_dict(nnx.filter_state(self.state, nnx.BatchStat)) == {"a": {1: 2}}
        with pytest.raises(ValueError, match=r"no filter takes `a\[1\]`, `c`"):
            nnx.split_state(self.state, nnx.Param)

    @given(trees, trees)
    def test_merge_takes_the_right_most(self, left: dict[Any, Any], right: dict[Any, Any]) -> None:
        flat_left, flat_right = (dict(nnx.to_flat_state(nnx.State(tree))) for tree in (left, right))
        if any(new[: len(old)] == old for old in flat_left for new in flat_right if len(new) > len(old)):
            with pytest.raises(StateMismatchError, match="is a leaf in one State and a subtree in another"):
                nnx.merge_state(nnx.State(prune(left)), nnx.State(prune(right)))
            return
        merged = dict(nnx.to_flat_state(nnx.merge_state(nnx.State(prune(left)), nnx.State(prune(right)))))
        assert {**flat_left, **flat_right}.items() >= merged.items() >= flat_right.items()

    def test_merge_refuses_a_subtree_over_a_leaf(self) -> None:
        with pytest.raises(ValueError, match=r"`a\[0\]` is a leaf in one State and a subtree in another"):
            nnx.merge_state(self.state, {"a": {0: {"deep": 1}}})

    def test_pure_dictionaries_there_and_back(self) -> None:
        pure = nnx.to_pure_dict(self.state)
        assert pure == {"a": {0: 1, 1: 2}, "c": 3}
        assert nnx.to_pure_dict(self.state, lambda leaf: 7) == {"a": {0: 7, 1: 7}, "c": 7}
        target = nnx.State(self.state)
        nnx.replace_by_pure_dict(target, {"a": {0: 10}})
        assert isinstance(target.a[0], nnx.Param)
        assert nnx.to_pure_dict(target) == {"a": {0: 10, 1: 2}, "c": 3}
        assert self.state.a[0].get_value() == 1

    def test_replace_refuses_unknown_paths_and_writes_nothing(self) -> None:
        target = nnx.State(self.state)
        with pytest.raises(ValueError, match="holds `q`"):
            nnx.replace_by_pure_dict(target, {"c": 4, "q": 1})
        assert target.c == 3

    def test_digit_strings_become_integers_again(self) -> None:
        assert nnx.restore_int_paths({"1": {"2": 3}, "a": {"x": 4}}) == {1: {2: 3}, "a": {"x": 4}}


@pytest.mark.parametrize(
    ("use", "new"),
    [
        (lambda s: s.flat_state(), "to_flat_state"),
        (lambda s: nnx.State.from_flat_path({("a",): 1}), "from_flat_state"),
        (lambda s: s.split(...), "split_state"),
        (lambda s: s.filter(...), "filter_state"),
        (lambda s: nnx.State.merge(s, s), "merge_state"),
        (lambda s: s.map(lambda path, leaf: leaf), "map_state"),
        (lambda s: s.to_pure_dict(), "to_pure_dict"),
        (lambda s: s.replace_by_pure_dict({}), "replace_by_pure_dict"),
        (lambda s: s - {"a": 0}, "filter_state"),
        (lambda s: nnx.pure(s), "as_pure"),
        (lambda s: nnx.vars_as(s, ref=False), "with_vars"),
    ],
)
def test_old_names_work_and_say_what_to_use(use: Any, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"use `nnx.{new}`"):
        result = use(nnx.State({"a": 1}))
    assert result in ({"a": 1}, {}, None) or list(result) == [(("a",), 1)]
