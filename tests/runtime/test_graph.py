"""Split and merge, and their variations."""

from __future__ import annotations

import collections
import copy
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from nnxkit._graph import GraphDef, NodeDef, NodeRef, RefMap, VariableDef


class Layer(nnx.Module):
    def __init__(self, size: int = 2) -> None:
        self.kernel = nnx.Param(jnp.ones((size, size)))
        self.bias = nnx.Param(jnp.zeros(size))
        self.size = size


class Model(nnx.Module):
    def __init__(self) -> None:
        self.layers = nnx.List([Layer(), Layer()])
        self.mean = nnx.BatchStat(jnp.zeros(2))
        self.scale = jnp.ones(3)
        self.name = "model"


class Special(nnx.Param):
    pass


@pytest.fixture
def model() -> Model:
    return Model()


PATHS = (
    ("layers", 0, "bias"),
    ("layers", 0, "kernel"),
    ("layers", 1, "bias"),
    ("layers", 1, "kernel"),
    ("mean",),
    ("scale",),
)


class TestSplit:
    def test_leaves_are_sorted_by_path_and_alias_the_model(self, model: Model) -> None:
        _, state = nnx.split(model)
        assert nnx.to_flat_state(state).paths == PATHS
        assert state.layers[0].kernel is model.layers[0].kernel
        assert state.scale is model.scale

    def test_filters_share_the_leaves_out(self, model: Model) -> None:
        _, params, rest = nnx.split(model, nnx.Param, ...)
        assert nnx.to_flat_state(params).paths == PATHS[:4]
        assert nnx.to_flat_state(rest).paths == PATHS[4:]

    def test_a_filter_by_value_is_asked_again_each_time(self) -> None:
        node = nnx.Dict(a=nnx.Param(jnp.zeros(())), b=nnx.Param(jnp.ones(())))

        def positive(path: Any, leaf: Any) -> bool:
            return bool(leaf[...] > 0)

        assert list(nnx.state(node, positive)) == ["b"]
        node.a[...] = 2.0
        assert list(nnx.state(node, positive)) == ["a", "b"]

    def test_bare_arrays_are_filtered_by_their_present_type(self) -> None:
        node = nnx.Dict(a=jnp.zeros(2))
        assert list(nnx.state(node, jax.Array)) == ["a"]
        node.a = np.zeros(2)
        assert list(nnx.state(node, jax.Array)) == []

    def test_a_leaf_that_no_filter_takes_is_named(self, model: Model) -> None:
        with pytest.raises(ValueError, match=r"no filter takes `mean`, `scale`") as caught:
            nnx.split(model, nnx.Param)
        assert caught.value.code == "NNX304"  # type: ignore[attr-defined]
        assert caught.value.path == ("mean",)  # type: ignore[attr-defined]

    def test_many_left_over_leaves_are_counted(self, model: Model) -> None:
        with pytest.raises(ValueError, match=r"`layers\[0\]\.bias`, .*`layers\[1\]\.bias` and 2 more"):
            nnx.split(model, nnx.BatchStat)

    @pytest.mark.parametrize(
        ("filters", "code"),
        [
            ((..., nnx.Param), "NNX302"),
            ((nnx.Variable, nnx.Param, ...), "NNX301"),
            ((nnx.Param, nnx.Param, ...), "NNX303"),
            ((nnx.Everything(), nnx.Param), "NNX301"),
            (((nnx.Param, nnx.BatchStat), Special, ...), "NNX301"),
        ],
    )
    def test_filters_that_can_never_match_are_errors(self, model: Model, filters: tuple[Any, ...], code: str) -> None:
        for function in (nnx.split, nnx.state, nnx.pop):
            with pytest.raises(ValueError, match=code):
                function(model, *filters)

    @pytest.mark.parametrize(
        "filters",
        [
            (nnx.Param, ..., ...),
            (None, nnx.Param, False, nnx.Nothing(), ...),
            (nnx.Param, nnx.Not(nnx.Param), ...),
        ],
    )
    def test_filters_that_say_so_may_be_empty(self, model: Model, filters: tuple[Any, ...]) -> None:
        _, *states = nnx.split(model, *filters)
        assert sum(len(nnx.to_flat_state(state)) for state in states) == len(PATHS)

    def test_a_number_is_no_filter(self, model: Model) -> None:
        with pytest.raises(TypeError, match="NNX306"):
            nnx.split(model, 1, ...)

    def test_a_true_that_was_cached_does_not_let_a_one_pass(self, model: Model) -> None:
        nnx.split(model, True)
        with pytest.raises(TypeError, match="NNX306"):
            nnx.split(model, 1)

    def test_a_variable_or_an_array_is_its_own_state(self) -> None:
        variable = nnx.Param(jnp.ones(2))
        graphdef, state = nnx.split(variable)
        assert state is variable
        assert nnx.merge(graphdef, state) is variable
        graphdef, nothing, state = nnx.split(variable, nnx.BatchStat, ...)
        assert (dict(nothing), state) == ({}, variable)
        assert nnx.merge(graphdef, nothing, state) is variable
        graphdef, state = nnx.split(variable[...])
        assert isinstance(nnx.merge(graphdef, state), jax.Array)

    def test_state_of_something_that_has_none(self) -> None:
        with pytest.raises(TypeError, match="NNX340"):
            nnx.state(3)

    def test_containers_and_registered_classes_are_nodes(self) -> None:
        Pair = collections.namedtuple("Pair", "y x")
        node = {"b": Pair(nnx.Param(1), [nnx.Param(2), 5]), 1: (None, jnp.ones(1)), ("k", 2): nnx.Param(3)}
        graphdef, state = nnx.split(node)
        assert nnx.to_flat_state(state).paths == ((1, 1), ("b", "x", 0), ("b", "y"), (("k", 2),))
        merged = nnx.merge(graphdef, state)
        assert isinstance(merged["b"], Pair)
        assert (merged["b"].y.get_value(), merged["b"].x[1], merged[1][0]) == (1, 5, None)
        assert nnx.graphdef(merged) == graphdef

    def test_unhashable_static_values_only_fail_when_hashed(self) -> None:
        node = nnx.Dict(a=nnx.Param(1), sizes=[1, 2])
        graphdef, state = nnx.split(node)
        assert nnx.merge(graphdef, state).sizes == [1, 2]
        with pytest.raises(TypeError, match="unhashable type: 'list'"):
            hash(graphdef)

    def test_a_container_that_contains_itself_is_an_error(self) -> None:
        loop: list[Any] = [nnx.Param(1)]
        loop.append({"again": loop})
        with pytest.raises(ValueError, match=r"`\[1\].again`"):
            nnx.split(loop)


class TestGraphDef:
    def test_is_equal_and_hashes_alike_for_equal_structures(self) -> None:
        first, second = nnx.graphdef(Model()), nnx.graphdef(Model())
        assert first is not second
        assert first == second
        assert hash(first) == hash(second)

    @pytest.mark.parametrize(
        "edit",
        [
            lambda m: setattr(m, "name", "other"),
            lambda m: setattr(m, "extra", 1),
            lambda m: delattr(m, "scale"),
            lambda m: setattr(m, "name", nnx.data("model")),
            lambda m: m.mean.set_metadata(unit="m"),
            lambda m: setattr(m.layers[0], "bias", m.layers[1].bias),
            lambda m: setattr(m, "mean", nnx.Param(jnp.zeros(2))),
            lambda m: m.layers.append(Layer()),
        ],
    )
    def test_differs_after_a_structural_edit(self, model: Model, edit: Any) -> None:
        before = nnx.graphdef(model)
        hash(before)
        edit(model)
        assert nnx.graphdef(model) != before

    @pytest.mark.parametrize(("a", "b"), [(1, True), (1, 1.0), (0, False)])
    def test_static_values_of_other_types_differ(self, a: Any, b: Any) -> None:
        assert nnx.graphdef(nnx.Dict(a=a)) != nnx.graphdef(nnx.Dict(a=b))

    def test_survives_pickling_and_copying(self, model: Model) -> None:
        graphdef = nnx.graphdef(model)
        hash(graphdef)
        again = pickle.loads(pickle.dumps(graphdef))
        assert again == graphdef
        assert hash(again) == hash(graphdef)
        assert nnx.graphdef(nnx.merge(again, nnx.state(model))) == graphdef
        assert copy.deepcopy(graphdef) == graphdef

    def test_is_a_pytree_without_leaves(self, model: Model) -> None:
        graphdef, state = nnx.split(model)
        assert jax.tree.leaves(graphdef) == []
        out, total = jax.jit(lambda g, s: (g, sum(map(jnp.sum, jax.tree.leaves(s)))))(graphdef, state)
        assert out == graphdef
        assert total == 11.0

    def test_lists_nodes_and_attributes_in_depth_first_order(self) -> None:
        node = nnx.Dict(b=nnx.Param(1), a=nnx.List([]))
        node.c = node.b
        node.self = node
        graphdef = nnx.graphdef(node)
        kinds = [(type(item), getattr(item, "index", None)) for item in graphdef.nodes]
        assert kinds == [(NodeDef, 0), (NodeDef, 1), (VariableDef, 2), (NodeRef, 2), (NodeRef, 0)]
        keys = [key for key, _ in graphdef.attributes]
        assert keys == ["_pytree__nodes", "a", "_pytree__nodes", "_length", "b", "c", "self"]
        assert graphdef.num_leaves == 1

    def test_is_made_again_from_its_parts(self, model: Model) -> None:
        model.again = model.layers[0]
        graphdef = nnx.graphdef(model)
        again: GraphDef[Any] = GraphDef(graphdef.nodes, graphdef.attributes, graphdef.num_leaves)
        assert again == graphdef
        with pytest.raises(ValueError, match="have 6 leaves, not 7"):
            GraphDef(graphdef.nodes, graphdef.attributes, 7)

    def test_prints_its_definitions(self) -> None:
        assert repr(nnx.graphdef(nnx.Param(1))) == (
            "GraphDef(nodes=[VariableDef(\n  type='Param',\n  index=0,\n  outer_index=None,\n"
            "  metadata={'hijax': False, 'ref': False, 'eager_sharding': True}\n)], attributes=[], num_leaves=1)"
        )


class TestMerge:
    def test_is_the_inverse_of_split(self, model: Model) -> None:
        graphdef, params, rest = nnx.split(model, nnx.Param, ...)
        merged = nnx.merge(graphdef, rest, params)
        assert isinstance(merged, Model)
        assert merged is not model
        assert merged.layers[1].kernel is model.layers[1].kernel
        assert nnx.graphdef(merged) == graphdef
        assert list(vars(merged)) == ["layers", "mean", "name", "scale"]

    def test_copies_variables_on_request(self, model: Model) -> None:
        merged = nnx.merge(*nnx.split(model), copy=True)
        merged.mean[...] = jnp.ones(2)
        assert model.mean.sum() == 0

    def test_keeps_sharing_and_cycles(self) -> None:
        node = nnx.Dict(a=Layer())
        node.b = node.a
        node.tied = node.a.kernel
        node.me = node
        merged = nnx.merge(*nnx.split(node))
        assert merged.a is merged.b
        assert merged.tied is merged.a.kernel
        assert merged.me is merged

    @pytest.mark.parametrize("form", ["state", "flat", "dict", "leaves", "pure", "graph state"])
    def test_takes_values_in_many_forms(self, model: Model, form: str) -> None:
        graphdef, state = nnx.split(model)
        forms = {
            "state": state,
            "flat": nnx.to_flat_state(state),
            "dict": dict(state),
            "leaves": nnx.to_flat_state(state).leaves,
            "pure": nnx.to_pure_dict(state),
            "graph state": nnx.unpack(model),
        }
        merged = nnx.merge(graphdef, forms[form])
        assert nnx.graphdef(merged) == graphdef
        assert merged.layers[0].kernel.sum() == 4

    def test_bare_values_stay_bare_on_request(self, model: Model) -> None:
        graphdef, state = nnx.split(model)
        merged = nnx.merge(graphdef, nnx.as_pure(state), recreate_variables=False)
        assert isinstance(merged.mean, jax.Array)

    def test_wrapped_values_get_the_recorded_metadata(self) -> None:
        graphdef, state = nnx.split(nnx.Dict(a=nnx.Param(1, unit="m")))
        assert nnx.merge(graphdef, nnx.to_pure_dict(state)).a.unit == "m"

    def test_refuses_missing_leaves(self, model: Model) -> None:
        graphdef, params, _ = nnx.split(model, nnx.Param, ...)
        with pytest.raises(ValueError, match="do not hold `mean`, `scale`") as caught:
            nnx.merge(graphdef, params)
        assert caught.value.code == "NNX331"  # type: ignore[attr-defined]

    def test_refuses_unknown_leaves(self, model: Model) -> None:
        graphdef, state = nnx.split(model)
        with pytest.raises(ValueError, match="hold `new`, which the graphdef does not know"):
            nnx.merge(graphdef, state, {"new": nnx.Param(1)})

    def test_refuses_the_same_leaf_twice(self, model: Model) -> None:
        graphdef, state = nnx.split(model)
        with pytest.raises(ValueError, match="NNX344"):
            nnx.merge(graphdef, state, state)

    def test_refuses_another_variable_type(self, model: Model) -> None:
        graphdef, state = nnx.split(model)
        state["mean"] = nnx.Param(jnp.zeros(2))
        with pytest.raises(ValueError, match="`mean` is a `Param` in the State and a `BatchStat` in the graphdef"):
            nnx.merge(graphdef, state)

    def test_refuses_a_list_of_another_length(self, model: Model) -> None:
        graphdef, state = nnx.split(model)
        with pytest.raises(ValueError, match="has 6 leaves, and the list given holds 5"):
            nnx.merge(graphdef, nnx.to_flat_state(state).leaves[1:])

    @pytest.mark.parametrize("arguments", [lambda g, s: (s, g), lambda g, s: (g,), lambda g, s: (g, (s,), s)])
    def test_refuses_other_arguments(self, model: Model, arguments: Any) -> None:
        with pytest.raises(TypeError, match="NNX334"):
            nnx.merge(*arguments(*nnx.split(model)))

    def test_belongs_to_the_trace_in_which_it_is_merged(self, model: Model) -> None:
        graphdef, state = nnx.split(model)

        @jax.jit
        def step(state: Any) -> Any:
            merged = nnx.merge(graphdef, state)
            merged.name = "changed"
            merged.mean[...] += 1
            return nnx.state(merged)

        assert step(state).mean.sum() == 2
        assert model.name == "model"


class TestOthers:
    def test_clone_copies_nodes_and_variables(self, model: Model) -> None:
        clone = nnx.clone(model)
        clone.layers[0].kernel[...] = 0.0
        assert model.layers[0].kernel.sum() == 4
        assert nnx.graphdef(clone) == nnx.graphdef(model)
        assert clone.scale is model.scale

    def test_clone_can_share_variables_and_copy_arrays(self, model: Model) -> None:
        shared = nnx.clone(model, variables=False, arrays=True)
        assert shared.mean is model.mean
        assert shared.scale is not model.scale
        copied = nnx.clone(model, arrays=True)
        assert copied.mean.get_raw_value() is not model.mean.get_raw_value()

    def test_clone_copies_containers_in_variables_without_hooks(self) -> None:
        node = nnx.Dict(a=nnx.Variable([1, 2], on_get_value=lambda variable, value: ["hook"]))
        clone = nnx.clone(node)
        clone.a.get_raw_value().append(3)
        assert node.a.get_raw_value() == [1, 2]

    def test_unpack_bundles_structure_and_values(self, model: Model) -> None:
        params, rest = nnx.unpack(model, nnx.Param, ...)
        assert isinstance(params, nnx.GraphState)
        assert nnx.graphdef(nnx.merge(params, rest)) == nnx.graphdef(model)
        assert list(rest) == ["mean", "scale"]
        mapped = jax.tree.map(lambda leaf: leaf + 1, rest)
        assert isinstance(mapped, nnx.GraphState)
        assert mapped.mean.sum() == 2
        with pytest.raises(ValueError, match="NNX345"):
            nnx.merge(params, nnx.unpack(Layer()))

    def test_flatten_numbers_objects_across_calls(self, model: Model) -> None:
        numbers: RefMap[int] = RefMap()
        graphdef, flat = nnx.graph.flatten(model, ref_index=numbers)
        assert flat.paths == PATHS
        assert numbers[model] == 0
        again, empty = nnx.graph.flatten([model, model.mean], ref_index=numbers)
        assert len(empty) == 0
        built: dict[int, Any] = {}
        first = nnx.graph.unflatten(graphdef, flat, index_ref=built)
        second = nnx.graph.unflatten(again, empty, index_ref=built)
        assert second[0] is first
        assert second[1] is first.mean
        with pytest.raises(ValueError, match="NNX341"):
            nnx.graph.unflatten(again, empty)

    def test_flatten_without_paths_gives_a_list(self, model: Model) -> None:
        _, leaves = nnx.graph.flatten(model, with_paths=False)
        assert len(leaves) == len(PATHS)
        assert leaves[-1] is model.scale

    def test_call_is_out_of_place(self) -> None:
        class Counter(nnx.Module):
            def __init__(self) -> None:
                self.count = nnx.Variable(jnp.array(0))

            def up(self, by: int) -> str:
                self.count[...] += by
                return "done"

        counters = {"a": [Counter()]}
        pair = nnx.split(counters)
        result, (graphdef, state) = nnx.call(pair)["a"][0].up(2)
        assert result == "done"
        assert nnx.merge(graphdef, state)["a"][0].count == 2
        assert counters["a"][0].count == 0
        with pytest.raises(TypeError, match="NNX334"):
            nnx.call(pair[0])


class TestTreeMode:
    def test_trees_are_fine(self, model: Model) -> None:
        assert nnx.split(model, graph=False)[0] == nnx.graphdef(model)

    def test_sharing_and_cycles_are_errors(self) -> None:
        tied = nnx.Dict(a=nnx.Param(1))
        tied.b = tied.a
        cycle = nnx.Dict()
        cycle.me = cycle
        for node in (tied, cycle):
            for function in (nnx.split, nnx.state, nnx.graphdef, nnx.clone, nnx.iter_graph):
                with pytest.raises(ValueError, match="NNX339"):
                    function(node, graph=False)

    def test_objects_are_errors(self) -> None:
        class Plain(nnx.Object):
            pass

        with pytest.raises(ValueError, match="is no JAX pytree"):
            nnx.split(Plain(), graph=False)

    def test_the_setting_is_scoped(self) -> None:
        tied = nnx.Dict(a=nnx.Param(1))
        tied.b = tied.a
        with nnx.set_graph_mode(False):
            assert not nnx.set_graph_mode.current_value()
            with pytest.raises(ValueError, match="NNX339"):
                nnx.split(tied)
            nnx.split(tied, graph=True)
        assert nnx.set_graph_mode.current_value()
        nnx.set_graph_updates(False)
        assert not nnx.set_graph_updates.current_value()
        nnx.set_graph_updates(True)


values = st.recursive(
    st.one_of(st.integers(), st.text(max_size=2), st.none(), st.builds(nnx.Param, st.integers(0, 9))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.integers(0, 9), st.sampled_from("abc")), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(values)
def test_merge_of_split_is_the_identity_on_containers(value: Any) -> None:
    graphdef, state = nnx.split(value)
    merged = nnx.merge(graphdef, state)
    assert nnx.graphdef(merged) == graphdef
    assert merged == value
