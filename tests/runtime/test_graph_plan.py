"""Plans: found once, valid until the structure changes, and never in the way of the garbage collector."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from nnxkit._epoch import EPOCH
from nnxkit._graph._plan import make_plan, plan_of


class Inner(nnx.Module):
    def __init__(self) -> None:
        self.w = nnx.Param(jnp.ones(2))
        self.size = 2


class Outer(nnx.Module):
    def __init__(self) -> None:
        self.inner = Inner()
        self.array = jnp.zeros(2)
        self.boxed = nnx.data([nnx.Param(jnp.ones(1)), {"k": jnp.zeros(1)}])


@pytest.fixture
def model() -> Outer:
    return Outer()


def change_variable_value(model: Outer) -> None:
    model.inner.w[...] = jnp.zeros(2)


def change_array(model: Outer) -> None:
    model.array = jnp.ones(2)


def change_boxed_array(model: Outer) -> None:
    model.boxed[1]["k"] = jnp.ones(1)


@pytest.mark.parametrize("edit", [change_variable_value, change_array, change_boxed_array])
def test_a_change_of_values_keeps_the_plan(model: Outer, edit: Callable[[Outer], None]) -> None:
    plan = plan_of(model)
    epoch = EPOCH.value
    edit(model)
    assert plan_of(model) is plan
    assert EPOCH.value == epoch


STRUCTURAL: dict[str, Callable[[Outer], Any]] = {
    "static value": lambda m: setattr(m.inner, "size", 3),
    "new attribute": lambda m: setattr(m.inner, "new", 1),
    "deleted attribute": lambda m: delattr(m.inner, "size"),
    "replaced Variable": lambda m: setattr(m.inner, "w", nnx.Param(jnp.ones(2))),
    "replaced node": lambda m: setattr(m, "inner", Inner()),
    "array becomes a number": lambda m: setattr(m, "array", 1.0),
    "status": lambda m: setattr(m.inner, "size", nnx.data(2)),
    "metadata": lambda m: m.inner.w.set_metadata(unit="m"),
    "list grows": lambda m: m.boxed.append(nnx.Param(1)),
    "list item": lambda m: m.boxed.__setitem__(0, nnx.Param(jnp.ones(1))),
    "dict key": lambda m: m.boxed[1].__setitem__("new", jnp.zeros(1)),
    "dict value becomes static": lambda m: m.boxed[1].__setitem__("k", "text"),
}


@pytest.mark.parametrize("edit", STRUCTURAL.values(), ids=STRUCTURAL.keys())
def test_a_structural_edit_makes_a_new_plan(model: Outer, edit: Callable[[Outer], Any]) -> None:
    plan = plan_of(model)
    edit(model)
    renewed = plan_of(model)
    assert renewed is not plan
    fresh = make_plan(model)
    assert renewed.graphdef == fresh.graphdef
    assert renewed.paths == fresh.paths
    assert list(map(id, renewed.leaves())) == list(map(id, fresh.leaves()))


def test_an_edit_of_another_graph_keeps_the_plan(model: Outer) -> None:
    other = Outer()
    plan, _ = plan_of(model), plan_of(other)
    other.inner.size = 7
    assert plan_of(model) is plan


def test_an_edit_of_a_submodule_reaches_every_root() -> None:
    model = nnx.Dict(a=Outer())
    above, below = plan_of(model), plan_of(model.a)
    model.a.inner.size = 9
    assert plan_of(model) is not above
    assert plan_of(model.a) is not below


def test_construction_does_not_move_the_epoch(model: Outer) -> None:
    plan_of(model)
    epoch = EPOCH.value
    nnx.merge(*nnx.split(Outer()))
    assert EPOCH.value == epoch


def test_unchanged_parts_are_not_looked_at_again(model: Outer) -> None:
    before = plan_of(model)
    model.extra = 1
    after = plan_of(model)
    unchanged = [record for record in after.graphdef.records if any(record is old for old in before.graphdef.records)]
    assert len(unchanged) >= 2


def test_values_are_those_of_now(model: Outer) -> None:
    nnx.state(model)
    model.array = jnp.full(2, 5.0)
    model.boxed[1]["k"] = jnp.full(1, 6.0)
    state = nnx.state(model)
    assert state.array is model.array
    assert state.boxed[1].k is model.boxed[1]["k"]


def test_the_state_of_before_is_not_changed_by_a_new_plan(model: Outer) -> None:
    before = nnx.state(model)
    old = model.inner.w
    model.inner.w = nnx.Param(jnp.zeros(2))
    assert before.inner.w is old


def test_a_planned_model_is_freed_without_the_collector() -> None:
    gc.disable()
    try:
        model = Outer()
        nnx.state(model, nnx.Param)
        nnx.split(model)
        nnx.clone(model)
        dead = weakref.ref(model.inner.w)
        del model
        assert dead() is None
    finally:
        gc.enable()


def test_a_plan_does_not_keep_a_replaced_array(model: Outer) -> None:
    nnx.state(model)
    array = model.array
    model.array = jnp.ones(2)
    assert sys.getrefcount(array) == 2


def test_graphs_may_be_deep() -> None:
    value: Any = nnx.Param(1)
    for _ in range(300):
        value = nnx.Dict(next=value)
    graphdef, state = nnx.split(value)
    assert len(nnx.to_flat_state(state).paths[0]) == 300
    assert nnx.graphdef(nnx.merge(graphdef, state)) == graphdef


EDITS = (*STRUCTURAL.values(), change_variable_value, change_array)


@given(st.lists(st.sampled_from(EDITS), max_size=6))
def test_a_kept_plan_always_equals_a_fresh_one(edits: list[Callable[[Outer], Any]]) -> None:
    model = Outer()
    for edit in edits:
        plan_of(model)
        try:
            edit(model)
        except (AttributeError, KeyError, TypeError):
            continue  # an earlier edit took away what this one works on
        kept, fresh = plan_of(model), make_plan(model)
        assert kept.graphdef == fresh.graphdef
        assert kept.paths == fresh.paths
        assert list(map(id, kept.leaves())) == list(map(id, fresh.leaves()))


class TestStaticEdits:
    def test_keep_everything_but_the_graphdef(self) -> None:
        model = nnx.Dict(layers=nnx.List([nnx.Dropout(0.5), nnx.Linear(2, 2, rngs=nnx.Rngs(0))]))
        before = plan_of(model)
        model.layers[0].deterministic = True
        after = plan_of(model)
        assert after is not before
        assert after.paths is before.paths
        assert after.sources is before.sources
        assert after.graphdef != before.graphdef
        assert after.graphdef == nnx.graphdef(nnx.clone(model))
        assert plan_of(model) is after

    def test_of_the_root_and_back(self) -> None:
        model = nnx.Dict(a=nnx.Param(1), size=3)
        first = nnx.graphdef(model)
        model.size = 4
        second = nnx.graphdef(model)
        model.size = 3
        assert first != second
        assert nnx.graphdef(model) == first

    def test_with_another_variable_are_more_than_static(self) -> None:
        model = nnx.Dict(a=nnx.Param(1), b=nnx.Param(2), size=3)
        before = plan_of(model)
        model.size = 4
        model.a = nnx.Param(5)
        assert plan_of(model).sources is not before.sources
        assert nnx.state(model).a is model.a

    def test_with_other_metadata_are_more_than_static(self) -> None:
        model = nnx.Dict(a=nnx.Param(1), size=3)
        nnx.graphdef(model)
        model.size = 4
        model.a.set_metadata(note="x")
        assert nnx.graphdef(model) == nnx.graphdef(nnx.clone(model))

    def test_of_a_status_make_a_leaf(self) -> None:
        model = nnx.Dict(size=3)
        assert nnx.split(model)[1] == {}
        model.size = nnx.data(3)
        assert nnx.split(model)[1] == {"size": 3}
