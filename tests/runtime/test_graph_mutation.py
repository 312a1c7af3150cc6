"""Update, pop and set_metadata: all or nothing."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx
from nnx_rules.errors import TraceContextError


class Layer(nnx.Module):
    def __init__(self) -> None:
        self.kernel = nnx.Param(jnp.ones((2, 2)))
        self.bias = nnx.Param(jnp.zeros(2))


class Model(nnx.Module):
    def __init__(self) -> None:
        self.layers = nnx.List([Layer(), Layer()])
        self.mean = nnx.BatchStat(jnp.zeros(2))
        self.scale = jnp.ones(3)
        self.boxed = nnx.data({"a": jnp.zeros(1), "t": (jnp.zeros(1), nnx.Param(jnp.zeros(1)))})
        self.size = 2


@pytest.fixture
def model() -> Model:
    return Model()


def snapshot(node: Any) -> list[Any]:
    return [(path, np.asarray(leaf).tolist()) for path, leaf in nnx.to_flat_state(nnx.as_pure(nnx.state(node)))]


class TestUpdate:
    def test_writes_into_the_same_objects(self, model: Model) -> None:
        kernel, plan = model.layers[0].kernel, nnx.graphdef(model)
        nnx.update(model, jax.tree.map(lambda leaf: leaf + 1, nnx.state(model, nnx.Not(nnx.PathContains("t")))))
        assert model.layers[0].kernel is kernel
        assert kernel.sum() == 8
        assert model.scale.sum() == 6
        assert model.boxed["a"].sum() == 1
        assert nnx.graphdef(model) is plan

    @pytest.mark.parametrize("form", ["state", "dict", "flat", "graph state", "pure"])
    def test_takes_values_in_many_forms(self, model: Model, form: str) -> None:
        state = jax.tree.map(lambda leaf: leaf + 1, nnx.state(model, nnx.BatchStat))
        forms = {
            "state": state,
            "dict": dict(state),
            "flat": nnx.to_flat_state(state),
            "graph state": nnx.GraphState(nnx.graphdef(model), state),
            "pure": nnx.to_pure_dict(state),
        }
        nnx.update(model, forms[form])
        assert isinstance(model.mean, nnx.BatchStat)
        assert model.mean.sum() == 2

    def test_the_last_state_wins(self, model: Model) -> None:
        nnx.update(model, {"mean": jnp.ones(2)}, {"mean": jnp.full(2, 3.0)})
        assert model.mean.sum() == 6

    def test_reaches_a_shared_variable_by_any_path(self) -> None:
        node = nnx.Dict(a=nnx.Param(jnp.zeros(1)))
        node.b = node.a
        nnx.update(node, {"b": jnp.ones(1)})
        assert node.a.sum() == 1

    def test_takes_over_metadata(self, model: Model) -> None:
        nnx.update(model, {"mean": nnx.BatchStat(jnp.zeros(2), unit="m")})
        assert model.mean.unit == "m"

    def test_dtypes_may_change(self, model: Model) -> None:
        nnx.update(model, {"mean": jnp.zeros(2, jnp.bfloat16)})
        assert model.mean.dtype == jnp.bfloat16

    def test_runs_no_hooks(self) -> None:
        node = nnx.Dict(a=nnx.Param(jnp.zeros(1), on_set_value=lambda variable, value: value + 100))
        nnx.update(node, {"a": jnp.ones(1)})
        assert node.a.get_raw_value().sum() == 1

    def test_writes_through_array_references(self) -> None:
        reference = nnx.array_ref(jnp.zeros(2))
        node = nnx.Dict(a=reference, b=nnx.Param(jnp.zeros(2), ref=True))
        inside = node.b.get_raw_value()
        nnx.update(node, {"a": jnp.ones(2), "b": jnp.ones(2)})
        assert node.a is reference
        assert node.b.get_raw_value() is inside
        assert reference[...].sum() == inside[...].sum() == 2

    def test_array_references_keep_their_shape(self) -> None:
        node = nnx.Dict(a=nnx.Param(jnp.zeros(1)), b=nnx.array_ref(jnp.zeros(2)))
        with pytest.raises(ValueError, match=r"NNX336"):
            nnx.update(node, {"a": jnp.ones(1), "b": jnp.ones(3)})
        assert node.a.sum() == 0

    def test_a_variable_is_updated_by_a_value(self) -> None:
        variable = nnx.Param(jnp.zeros(1))
        nnx.update(variable, nnx.Param(jnp.ones(1)))
        nnx.update(variable, jnp.full(1, 5.0))
        assert variable.sum() == 5

    @pytest.mark.parametrize(
        ("bad", "code"),
        [
            ({"new": jnp.zeros(1)}, "NNX335"),
            ({"layers": {5: {"kernel": jnp.zeros((2, 2))}}}, "NNX335"),
            ({"size": 3}, "NNX335"),
            ({"mean": jnp.zeros(3)}, "NNX336"),
            ({"scale": jnp.zeros(())}, "NNX336"),
            ({"boxed": {"a": np.zeros(2)}}, "NNX336"),
            ({"layers": jnp.zeros(1)}, "NNX338"),
            ({"mean": {"deeper": jnp.zeros(1)}}, "NNX338"),
            ({"scale": nnx.Param(jnp.ones(3))}, "NNX338"),
            ({"boxed": {"t": {0: jnp.ones(1)}}}, "NNX347"),
        ],
    )
    def test_what_does_not_fit_changes_nothing(self, model: Model, bad: Any, code: str) -> None:
        before = snapshot(model)
        good = {"layers": {0: {"kernel": jnp.zeros((2, 2)), "bias": jnp.ones(2)}}}
        with pytest.raises(ValueError, match=code):
            nnx.update(model, good, bad)
        assert snapshot(model) == before

    @pytest.mark.parametrize(
        "arguments", [lambda m, s: (s, m), lambda m, s: (m, 3), lambda m, s: (m, [s]), lambda m, s: (3, s)]
    )
    def test_other_arguments_are_errors(self, model: Model, arguments: Any) -> None:
        with pytest.raises(TypeError, match="NNX337"):
            nnx.update(*arguments(model, nnx.state(model)))

    def test_a_captured_model_is_left_alone(self, model: Model) -> None:
        before = snapshot(model)

        @jax.jit
        def step(x: jax.Array) -> jax.Array:
            nnx.update(model, {"scale": x})
            return x

        with pytest.raises(TraceContextError, match="Cannot mutate"):
            step(jnp.zeros(3))
        assert snapshot(model) == before


class TestPop:
    def test_removes_and_returns(self, model: Model) -> None:
        params, stats = nnx.pop(model, nnx.All(nnx.Param, nnx.PathContains("layers")), nnx.BatchStat)
        assert len(nnx.to_flat_state(params)) == 4
        assert list(stats) == ["mean"]
        assert not hasattr(model, "mean")
        assert not hasattr(model.layers[0], "kernel")
        assert nnx.graphdef(model) == nnx.graphdef(nnx.clone(model))

    def test_removes_every_reference(self) -> None:
        shared = nnx.Param(jnp.zeros(1))
        node = nnx.Dict(a=shared, b=shared, c=nnx.data({"d": shared}), e=nnx.List([shared, nnx.BatchStat(1)]))
        state = nnx.pop(node, nnx.Param)
        assert nnx.to_flat_state(state).paths == (("a",),)
        assert sorted(node) == ["c", "e"]
        assert node.c == {}
        assert [type(item) for item in node.e] == [nnx.BatchStat]

    def test_removes_several_elements_of_a_list(self) -> None:
        node = nnx.List([nnx.Param(0), nnx.BatchStat(1), nnx.Param(2), nnx.BatchStat(3)])
        state = nnx.pop(node, nnx.Param)
        assert nnx.to_flat_state(state).paths == ((0,), (2,))
        assert [item.get_value() for item in node] == [1, 3]

    def test_removes_bare_arrays(self) -> None:
        node = nnx.Dict(a=jnp.zeros(1), b=2)
        assert list(nnx.pop(node, ...)) == ["a"]
        assert dict(node) == {"b": 2}

    @pytest.mark.parametrize("box", [list, tuple])
    def test_cannot_take_out_of_a_list_or_tuple(self, box: type) -> None:
        node = nnx.Dict(a=nnx.Param(1), b=nnx.data(box([nnx.Param(2)])))
        with pytest.raises(ValueError, match=r"`b\[0\]` is in a") as caught:
            nnx.pop(node, nnx.Param)
        assert caught.value.code == "NNX318"  # type: ignore[attr-defined]
        assert hasattr(node, "a")

    def test_needs_a_filter(self, model: Model) -> None:
        with pytest.raises(ValueError, match="NNX316"):
            nnx.pop(model)

    def test_is_checked_against_the_trace(self) -> None:
        node = nnx.Dict(a=nnx.Param(jnp.zeros(1)), inner=nnx.Dict(b=nnx.Param(jnp.zeros(1))))

        @jax.jit
        def step(x: jax.Array) -> jax.Array:
            nnx.pop(node, nnx.Param)
            return x

        with pytest.raises(TraceContextError, match="Cannot mutate `Dict`"):
            step(jnp.zeros(1))
        assert hasattr(node, "a")
        assert hasattr(node.inner, "b")

    def test_removes_nothing_if_something_cannot_go(self) -> None:
        captured = nnx.Dict(a=nnx.Param(jnp.zeros(1)))

        @jax.jit
        def step(x: jax.Array) -> jax.Array:
            local = nnx.Dict(captured=captured, z=nnx.Param(x))
            with pytest.raises(TraceContextError, match="Cannot mutate `Dict`"):
                nnx.pop(local, nnx.Param)
            assert hasattr(local, "z")
            return x

        step(jnp.zeros(1))
        assert hasattr(captured, "a")


class TestSetMetadata:
    def test_sets_what_the_filter_selects(self, model: Model) -> None:
        nnx.set_metadata(model, only=nnx.BatchStat, unit="m")
        assert model.mean.unit == "m"
        assert not model.layers[0].kernel.has_metadata("unit")
        nnx.set_metadata(model, unit="k")
        assert model.layers[0].kernel.unit == "k"

    def test_is_part_of_the_structure(self, model: Model) -> None:
        before = nnx.graphdef(model)
        nnx.set_metadata(model, unit="m")
        assert nnx.graphdef(model) != before


class TestUpdateOfReferences:
    def test_takes_metadata_over_and_keeps_the_reference(self) -> None:
        node = nnx.Dict(a=nnx.Param(jnp.zeros(2), ref=True))
        reference = node.a.get_raw_value()
        nnx.update(node, nnx.State({"a": nnx.Param(jnp.ones(2), note="new", ref=True)}))
        assert node.a.get_raw_value() is reference
        assert (node.a[...] == 1).all()
        assert node.a.note == "new"
