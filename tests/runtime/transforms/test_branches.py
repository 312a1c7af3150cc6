"""``nnx.cond`` and ``nnx.switch``: what branches write, edit and return, and what they must agree in."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnxkit as nnx
from modes import MODES, without_updates
from nets import tracers
from nnx_rules.errors import GraphError, TraceContextError, TransformTypeError


class Model(nnx.Module):
    def __init__(self, w: Any = 2.0) -> None:
        self.w = nnx.Param(jnp.asarray(w))
        self.count = nnx.Variable(jnp.zeros((), int))
        self.scale = jnp.ones(())
        self.mode = "idle"

    def up(self, x: Any) -> Any:
        self.count[...] += 1
        return x * self.w

    def down(self, x: Any) -> Any:
        self.count[...] -= 1
        return x + self.w

    def __call__(self, x: Any) -> Any:
        return self.up(x)


def nothing(*args: Any) -> None:
    return None


# What runs, and what comes back


@pytest.mark.parametrize("pred", [True, False, 3, 0, np.bool_(True), jnp.array(False)])
def test_the_predicate_chooses(pred: Any, mode: dict[str, bool]) -> None:
    model = Model()
    result = nnx.cond(pred, lambda m, x: m.up(x), lambda m, x: m.down(x), model, 3.0, **mode)
    assert (result, model.count[...]) == ((6.0, 1) if pred else (5.0, -1))


@pytest.mark.parametrize(("index", "chosen"), [(0, 0), (2, 2), (9, 2), (-1, 0), (jnp.array(1), 1)])
def test_the_index_chooses_and_is_clamped(index: Any, chosen: int, mode: dict[str, bool]) -> None:
    model = Model()

    def branch(number: int, model: Model) -> Any:
        model.count[...] = 10 + number
        return model.w * number

    branches = [functools.partial(branch, number) for number in range(3)]
    assert nnx.switch(index, branches, model, **mode) == 2.0 * chosen
    assert model.count[...] == 10 + chosen


@pytest.mark.parametrize("pred", [True, False])
def test_what_one_branch_writes_the_other_leaves(pred: bool, mode: dict[str, bool]) -> None:
    model = Model()
    before = model.w.get_raw_value()

    def double(model: Model) -> None:
        model.w[...] *= 2

    nnx.cond(pred, double, nothing, model, **mode)
    assert model.w[...] == (4.0 if pred else 2.0)
    assert pred or model.w.get_raw_value() == before


def test_different_branches_write_different_variables(mode: dict[str, bool]) -> None:
    model = Model()

    def first(model: Model) -> None:
        model.w[...] = 9.0

    def second(model: Model) -> None:
        model.count[...] = 7

    nnx.cond(False, first, second, model, **mode)
    assert (model.w[...], model.count[...]) == (2.0, 7)


def test_variables_that_no_branch_writes_are_not_assigned(mode: dict[str, bool]) -> None:
    model = Model()
    model.w.set_value(jnp.ones(3))
    held = model.w.get_raw_value()
    nnx.cond(True, lambda m: m.up(1.0), lambda m: m.up(2.0), model, **mode)
    assert model.w.get_raw_value() is held
    assert model.count[...] == 1


def test_a_variable_that_holds_a_pytree(mode: dict[str, bool]) -> None:
    held = nnx.Variable({"a": jnp.zeros(2), "b": jnp.ones(())})

    def write(held: Any) -> None:
        held["a"] = held["a"] + 1

    nnx.cond(True, write, nothing, held, **mode)
    assert held["a"].tolist() == [1, 1]


def test_new_objects_in_the_result(mode: dict[str, bool]) -> None:
    model = nnx.cond(False, lambda x: Model(x), lambda x: Model(x * 2), jnp.array(3.0), **mode)
    assert isinstance(model, Model)
    assert model.w[...] == 6.0


def test_an_input_in_the_result_is_the_object_itself() -> None:
    model = Model()
    assert nnx.cond(True, lambda m: (m, m.w), lambda m: (m, m.w), model) == (model, model.w)
    assert nnx.cond(True, lambda m: m, lambda m: m, model) is model


@without_updates
def test_an_input_in_the_result_without_graph_updates(mode: dict[str, bool]) -> None:
    with pytest.raises(GraphError, match=r"the function under `nnx\.cond` returns `operands\[0\]"):
        nnx.cond(True, lambda m: m, lambda m: m, Model(), **mode)


def test_sharing_between_operands() -> None:
    model = Model()

    def write(a: Model, b: Model) -> Any:
        assert a is b
        a.up(1.0)
        return b.count[...] * 1

    assert nnx.cond(True, write, lambda a, b: a.count[...] * 1, model, model) == 1


def test_sharing_between_operands_in_tree_mode() -> None:
    model = Model()
    with pytest.raises(GraphError, match="are the same object"):
        nnx.cond(True, lambda a, b: 1.0, lambda a, b: 2.0, model, model, graph=False)


def test_a_single_branch_is_called_directly(mode: dict[str, bool]) -> None:
    model = Model()
    assert nnx.switch(0, [lambda m, x: (m.up(1.0), x)], model, "text", **mode)[1] == "text"
    assert model.count[...] == 1


# Captures


def test_captures(mode: dict[str, bool]) -> None:
    model = Model()

    def up(x: Any) -> Any:
        return model.up(x)

    for expected in (6.0, 9.0):
        assert nnx.cond(True, up, lambda x: x * 1.0, 3.0, **mode) == expected
        model.w[...] = 3.0
    assert model.count[...] == 2


ROUTES: dict[str, Callable[[Model], Callable[[Any], Any]]] = {
    "closure": lambda model: lambda x: model.up(x),
    "default": lambda model: lambda x, m=model: m.up(x),
    "partial": lambda model: functools.partial(Model.up, model),
    "bound method": lambda model: model.up,
    "instance": lambda model: model,
    "container": lambda model: lambda x, models=[model]: models[0].up(x),
    "helper": lambda model: lambda x, helper=model.up: helper(x),
}


@pytest.mark.parametrize("route", ROUTES)
def test_captures_by_every_route(route: str, mode: dict[str, bool]) -> None:
    model = Model()
    f = ROUTES[route](model)
    assert nnx.cond(True, f, lambda x: x * 1.0, 3.0, **mode) == 6.0
    assert nnx.switch(1, [lambda x: x * 1.0, f], 3.0, **mode) == 6.0
    assert model.count[...] == 2


def test_both_branches_capture_one_object(mode: dict[str, bool]) -> None:
    model = Model()
    assert nnx.cond(False, model.up, model.down, 3.0, **mode) == 5.0
    assert model.count[...] == -1


def test_what_is_captured_and_passed_is_one_object() -> None:
    model = Model()

    def branch(m: Model) -> Any:
        assert m is model_in_closure()
        m.up(1.0)

    def model_in_closure() -> Model:
        return model

    nnx.cond(True, branch, nothing, model)
    assert model.count[...] == 1


# Structure


def test_equal_edits_come_back() -> None:
    model = Model()

    def edit(value: float, model: Model) -> None:
        model.extra = nnx.Param(jnp.array(value))
        model.mode = "done"
        del model.scale

    nnx.cond(False, functools.partial(edit, 1.0), functools.partial(edit, 2.0), model)
    assert (model.extra[...], model.mode, hasattr(model, "scale")) == (2.0, "done", False)


@pytest.mark.parametrize("pred", [True, False])
def test_array_attributes_come_back_if_one_branch_writes(pred: bool) -> None:
    model = Model()

    def write(model: Model) -> None:
        model.scale = model.scale + 5

    nnx.cond(pred, write, nothing, model)
    assert model.scale == (6 if pred else 1)


@without_updates
def test_edits_are_lost_without_graph_updates(mode: dict[str, bool]) -> None:
    model = Model()

    def edit(model: Model) -> None:
        model.extra = nnx.Param(jnp.array(1.0))
        model.count[...] = 4

    nnx.cond(True, edit, nothing, model, **mode)
    assert not hasattr(model, "extra")
    assert model.count[...] == 4


def set_mode(model: Model) -> None:
    model.mode = "busy"


def add(model: Model) -> None:
    model.extra = nnx.Param(jnp.ones(2))


def delete(model: Model) -> None:
    del model.scale


def replace(model: Model) -> None:
    model.w = nnx.Param(model.w * 2)


def swap(model: Model) -> None:
    model.w, model.other = model.other, model.w


DIFFERENT_EDITS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "static": (set_mode, r"`operands\[0\]\.mode` is `'busy'` after `true_fun` of `nnx\.cond` and `'idle'` after"),
    "added": (add, r"`operands\[0\]\.extra` is a new `Param` after `true_fun` of `nnx\.cond` and missing after"),
    "deleted": (delete, r"`operands\[0\]\.scale` is missing after `true_fun` of `nnx\.cond` and an array after"),
    "replaced": (replace, r"`operands\[0\]\.w` is a new `Param` after `true_fun` of `nnx\.cond` and a `Param` after"),
}


@pytest.mark.parametrize("edit", DIFFERENT_EDITS)
def test_different_edits(edit: str) -> None:
    f, message = DIFFERENT_EDITS[edit]
    model = Model()
    before = nnx.graphdef(model), model.w
    with pytest.raises(TransformTypeError, match=message + r" `false_fun`"):
        nnx.cond(True, f, nothing, model)
    assert (nnx.graphdef(model), model.w) == before


def test_different_edits_of_a_list() -> None:
    layers = nnx.List([Model(), Model()])
    with pytest.raises(TransformTypeError, match=r"`operands\[0\]\[2\]` is missing after `branches\[0\]`"):
        nnx.switch(0, [nothing, lambda layers: layers.append(Model())], layers)


def test_swapped_variables_are_a_difference() -> None:
    model = Model()
    model.other = nnx.Param(jnp.array(3.0))
    with pytest.raises(TransformTypeError, match=r"is `operands\[0\]\.w`, a `Param` after `true_fun`"):
        nnx.cond(True, swap, nothing, model)


@pytest.mark.parametrize("pred", [True, False])
def test_equal_swaps_swap_the_objects(pred: bool) -> None:
    model = Model()
    model.other = nnx.Param(jnp.array(3.0))
    w, other = model.w, model.other
    nnx.cond(pred, swap, swap, model)
    assert model.w is other
    assert model.other is w


def test_different_metadata(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformTypeError, match=r"`operands\[0\]\.w` is a Variable with the metadata \{'unit': 'm'\}"):
        nnx.cond(True, lambda m: m.w.set_metadata(unit="m"), nothing, Model(), **mode)


def test_equal_metadata_comes_back(mode: dict[str, bool]) -> None:
    model = Model()
    nnx.cond(True, lambda m: m.w.set_metadata(unit="m"), lambda m: m.w.set_metadata(unit="m"), model, **mode)
    assert model.w.get_metadata("unit") == "m"


RESULTS: dict[str, tuple[Any, Any, str]] = {
    "containers": (lambda x: x, lambda x: (x, x), r"`result` is `\*` after `true_fun` of `nnx.cond` and `\(\*, \*\)`"),
    "keys": (lambda x: {"a": x}, lambda x: {"b": x}, r"`result` is `\{'a': \*\}` after"),
    "dtypes": (lambda x: x, lambda x: 1, r"`result` is float32\[\] after .* and int32\[\] after `false_fun`"),
    "shapes": (lambda x: {"a": x}, lambda x: {"a": jnp.ones(3)}, r"`result\.a` is float32\[\] after .* float32\[3\]"),
    "objects": (lambda x: nnx.Param(x), lambda x: x, r"`result` is "),
    "types": (
        lambda x: nnx.Param(x),
        lambda x: nnx.BatchStat(x),
        r"`result` is a new `Param` after .* new `BatchStat`",
    ),
    "inner": (lambda x: Model(x), lambda x: Model([x, x]), r"`result\.w` is float32\[\] after .* and float32\[2\]"),
    "nested": (lambda x: [nnx.Dict(a=1)], lambda x: [nnx.Dict(a=2)], r"`result\[0\]\.a` is `1` after .* and `2` after"),
}


@pytest.mark.parametrize("case", RESULTS)
def test_different_results(case: str, mode: dict[str, bool]) -> None:
    first, second, message = RESULTS[case]
    with pytest.raises(TransformTypeError, match=message):
        nnx.cond(True, first, second, 3.0, **mode)


@pytest.mark.parametrize("pred", [True, False])
def test_a_choice_between_objects_is_a_new_one(pred: bool) -> None:
    first, second, both = Model(1.0), Model(2.0), Model(3.0)

    def choose(left: bool) -> Any:
        chosen = first if left else second
        chosen.count[...] += 1
        return {"chosen": chosen, "same": both, "twice": [chosen.w, chosen.w]}

    result = nnx.cond(pred, lambda: choose(True), lambda: choose(False))
    chosen = result["chosen"]
    assert (float(chosen.w), int(chosen.count)) == (1.0 if pred else 2.0, 1)
    assert [int(model.count) for model in (first, second)] == [pred, not pred]
    assert result["same"] is both
    assert result["twice"][0] is result["twice"][1] is chosen.w
    assert chosen not in (first, second)
    chosen.w[...] += 1
    assert [float(model.w) for model in (first, second)] == [1.0, 2.0]


def test_a_choice_between_three() -> None:
    models = [Model(float(number)) for number in range(3)]
    number = jnp.array(2)
    branches = [lambda a, b, c: (a, b), lambda a, b, c: (a, c), lambda a, b, c: (c, c.w * 2)]
    message = (
        r"`result\[1\]` is a module or Pytree after `branches\[0\]` of `nnx.switch` and a value after `branches\[2\]`"
    )
    with pytest.raises(TransformTypeError, match=message):
        nnx.switch(number, branches, *models)
    branches = [*branches[:2], lambda a, b, c: (Model(7.0), c)]
    chosen, other = nnx.switch(number, branches, *models)
    assert (float(chosen.w), float(other.w)) == (7.0, 2.0)
    assert float(nnx.jit(lambda *given: nnx.switch(number, branches, *given)[1].w * 1)(*models)) == 2.0


def test_different_kinds_of_inputs_as_results() -> None:
    model = Model()
    with pytest.raises(TransformTypeError, match=r"`result` is a new `Param` after .* and a new `Variable` after"):
        nnx.cond(True, lambda: model.w, lambda: model.count)


@pytest.mark.parametrize(
    ("pred", "message"), [("a", "Pred must be a scalar"), (jnp.ones(2), r"of shape \(2,\)"), ([True], "Pred must be")]
)
def test_predicates_that_are_none(pred: Any, message: str, mode: dict[str, bool]) -> None:
    with pytest.raises(TypeError, match=message):
        nnx.cond(pred, lambda: 1.0, lambda: 2.0, **mode)


def test_indices_that_are_none(mode: dict[str, bool]) -> None:
    with pytest.raises(TypeError, match="Index type must be an integer"):
        nnx.switch(0.5, [lambda: 1.0, lambda: 2.0], **mode)
    with pytest.raises(ValueError, match="Empty branch sequence"):
        nnx.switch(0, [], **mode)


def test_exceptions_leave_everything_as_it_was(mode: dict[str, bool]) -> None:
    model = Model()

    def fail(m: Model) -> None:
        m.w[...] += 1
        m.extra = nnx.Param(m.w * 1)
        raise RuntimeError("stop")

    for f, g in ((fail, nothing), (nothing, fail)):
        with pytest.raises(RuntimeError, match="stop"):
            nnx.cond(True, f, g, model, **mode)
    assert model.w[...] == 2.0
    assert not hasattr(model, "extra")
    assert not tracers(model)


def test_objects_of_another_trace(mode: dict[str, bool]) -> None:
    model = Model()

    @jax.jit
    def outer(x: Any) -> Any:
        return nnx.cond(True, lambda m: m.up(1.0), lambda m: 0.0, model, **mode)

    with pytest.raises(TraceContextError, match="captures it"):
        outer(1.0)
    assert model.count[...] == 0
    assert not tracers(model)


@pytest.mark.parametrize("pred", [True, False])
def test_inside_of_jit_and_grad(pred: bool, mode: dict[str, bool]) -> None:
    model = Model()

    @nnx.jit(**mode)
    def loss_and_gradient(pred: Any, model: Model) -> Any:
        def loss(w: Any) -> Any:
            return nnx.cond(pred, lambda w: model.up(w), lambda w: w * 5.0, w, **mode)

        return nnx.value_and_grad(loss, **mode)(jnp.array(3.0))

    assert loss_and_gradient(pred, model) == ((6.0, 2.0) if pred else (15.0, 5.0))
    assert model.count[...] == pred


def test_each_branch_is_traced_once(mode: dict[str, bool]) -> None:
    traced = []
    branches = [lambda x: traced.append(1) or x, lambda x: traced.append(2) or x]
    nnx.cond(True, *branches, 1.0, **mode)
    assert sorted(traced) == [1, 2]


@pytest.mark.parametrize("pred", [True, False])
def test_without_compilation(pred: bool, mode: dict[str, bool]) -> None:
    model = Model()
    with jax.disable_jit():
        assert nnx.cond(pred, model.up, lambda x: x * 1.0, 3.0, **mode) == (6.0 if pred else 3.0)
    assert model.count[...] == pred


WRITES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)


@settings(max_examples=25, deadline=None)
@given(st.lists(WRITES, min_size=1, max_size=3), st.integers(-1, 4), st.sampled_from(list(MODES)))
def test_switch_is_the_branch_that_it_chooses(writes: list[list[str]], index: int, mode: str) -> None:
    """Whatever the branches write: the same as calling the chosen one."""

    def make() -> nnx.Dict:
        return nnx.Dict({name: nnx.Variable(jnp.array(i, jnp.int32)) for i, name in enumerate("abc")})

    def branch(names: list[str], model: Any) -> Any:
        for name in names:
            model[name][...] = model[name][...] * 3 + 1
        return model["a"][...] + model["c"][...]

    branches = [functools.partial(branch, names) for names in writes]
    ours, direct = make(), make()
    result = nnx.switch(index, branches, ours, **MODES[mode])
    assert result == branches[min(max(index, 0), len(branches) - 1)](direct)
    assert nnx.to_pure_dict(nnx.state(ours)) == nnx.to_pure_dict(nnx.state(direct))
