"""``nnx.while_loop`` and ``nnx.fori_loop``: what goes from step to step, and what may not change on the way."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnxkit as nnx
from modes import MODES
from nets import count_carried, tracers
from nnx_rules.errors import GraphError, TraceContextError, TransformArgumentError, TransformTypeError


class Model(nnx.Module):
    def __init__(self, w: Any = 2.0) -> None:
        self.w = nnx.Param(jnp.asarray(w, jnp.float32))
        self.count = nnx.Variable(jnp.zeros((), jnp.int32))
        self.scale = jnp.ones(())
        self.mode = "idle"

    def up(self, x: Any) -> Any:
        self.count[...] += 1
        return x * self.w

    def step(self, i: Any, x: Any) -> Any:
        return self.up(x)

    def __call__(self, i: Any, x: Any) -> Any:
        return self.up(x)


def below(limit: int) -> Callable[[Any], Any]:
    """A condition on the last part of the carry."""
    return lambda carry: carry[-1] < limit


def looped(name: str, body: Callable[[Any], Any], init: Any, steps: int, **mode: bool) -> Any:
    """The same loop by either function."""
    if name == "fori_loop":
        return nnx.fori_loop(0, steps, lambda i, carry: body(carry), init, **mode)
    carry, _ = nnx.while_loop(
        lambda carry: carry[1] < steps, lambda carry: (body(carry[0]), carry[1] + 1), (init, 0), **mode
    )
    return carry


NAMES = ["while_loop", "fori_loop"]


# Values


def test_arrays(mode: dict[str, bool]) -> None:
    assert nnx.while_loop(lambda x: x < 3, lambda x: x + 1, 0, **mode) == 3
    assert nnx.fori_loop(1, 4, lambda i, x: x + i, 0, **mode) == 6
    assert nnx.fori_loop(jnp.array(0), jnp.array(3), lambda i, x: x + i, 0, **mode) == 3
    assert nnx.fori_loop(0, 3, lambda i, x: x + i, 0.0, unroll=3, **mode) == 3
    assert nnx.while_loop(cond_fun=lambda x: x < 3, body_fun=lambda x: x + 1, init_val=0, **mode) == 3


@pytest.mark.parametrize("name", NAMES)
def test_python_numbers_are_promoted(name: str, mode: dict[str, bool]) -> None:
    result = looped(name, lambda x: x + 0.5, 0, 3, **mode)
    assert (result, result.dtype) == (1.5, jnp.float32)


@pytest.mark.parametrize("name", NAMES)
def test_a_module_in_the_carry(name: str, mode: dict[str, bool]) -> None:
    model = Model()

    def body(carry: Any) -> Any:
        model, x = carry
        x = model.up(x)
        model.w[...] += 1
        return model, x

    result, x = looped(name, body, (model, 1.0), 3, **mode)
    assert (x, model.count[...], model.w[...]) == (24.0, 3, 5.0)
    assert (result is model) == (not mode)
    assert result.w is model.w


@pytest.mark.parametrize("name", NAMES)
def test_a_variable_in_the_carry(name: str, mode: dict[str, bool]) -> None:
    total = nnx.Variable(jnp.array(1.0))

    def body(v: Any) -> Any:
        v[...] *= 2
        return v

    assert looped(name, body, total, 3, **mode) is total
    assert total[...] == 8


@pytest.mark.parametrize("name", NAMES)
def test_containers_in_the_carry(name: str, mode: dict[str, bool]) -> None:
    models = {"a": Model(1.0), "b": [Model(2.0), jnp.array(0.0)]}

    def body(carry: Any) -> Any:
        carry["a"].count[...] += 1
        return {"a": carry["a"], "b": [carry["b"][0], carry["b"][1] + carry["b"][0].up(1.0)]}

    result = looped(name, body, models, 2, **mode)
    assert result["b"][1] == 4.0
    assert (result["a"].count is models["a"].count, result["b"][0].w is models["b"][0].w) == (True, True)
    assert (models["a"].count[...], models["b"][0].count[...]) == (2, 2)


def test_no_step_at_all(mode: dict[str, bool]) -> None:
    model = Model()
    held = model.w.get_raw_value()

    def body(i: Any, carry: Any) -> Any:
        carry[0].w[...] = 9.0
        return carry

    result = nnx.fori_loop(0, 0, body, (model, 1), **mode)
    assert (result[0].w is model.w, result[1], model.w[...]) == (True, 1, held)
    dynamic = nnx.fori_loop(0, jnp.array(0), body, (model, 1), **mode)
    assert (dynamic[0].w is model.w, dynamic[1], model.w[...]) == (True, 1, held)


def test_variables_that_no_step_writes_are_not_assigned(mode: dict[str, bool]) -> None:
    model = Model()
    held = model.w.get_raw_value()
    nnx.fori_loop(0, 3, model.step, 1.0, **mode)
    assert model.w.get_raw_value() is held
    assert model.count[...] == 3


def test_what_no_step_writes_is_a_constant_of_the_loop(mode: dict[str, bool]) -> None:
    model = Model()

    def run() -> Any:
        return nnx.fori_loop(0, 3, lambda i, x: x * model.w, 1.0, **mode)

    def run_carried() -> Any:
        return nnx.fori_loop(0, 3, lambda i, carry: (carry[0], carry[1] * carry[0].w), (model, 1.0), **mode)[1]

    for f in (run, run_carried):
        (loop,) = [eqn for eqn in jax.make_jaxpr(f)().eqns if eqn.primitive.name == "scan"]
        assert count_carried(loop) == 2  # the index, and x


@pytest.mark.parametrize("name", NAMES)
def test_a_variable_that_holds_a_pytree(name: str, mode: dict[str, bool]) -> None:
    held = nnx.Variable({"a": jnp.zeros(2), "b": jnp.ones(())})

    def body(x: Any) -> Any:
        held["a"] = held["a"] + held["b"]
        return x

    looped(name, body, 0, 3, **mode)
    assert held["a"].tolist() == [3, 3]


def test_random_streams_advance(mode: dict[str, bool]) -> None:
    rngs, reference = nnx.Rngs(0), nnx.Rngs(0)
    expected = [reference.normal() for _ in range(3)]
    drawn = nnx.fori_loop(0, 3, lambda i, xs: xs.at[i].set(rngs.normal()), jnp.zeros(3), **mode)
    assert jnp.allclose(drawn, jnp.array(expected))
    _, drawn = nnx.fori_loop(0, 3, lambda i, c: (c[0], c[1].at[i].set(c[0].normal())), (rngs, jnp.zeros(3)), **mode)
    assert jnp.allclose(drawn, jnp.array([reference.normal() for _ in range(3)]))
    assert rngs.default.count[...] == 6


def test_a_state_in_the_carry(mode: dict[str, bool]) -> None:
    state = nnx.state(Model(), nnx.Param)

    def body(i: Any, state: Any) -> Any:
        state["w"][...] *= 2
        return state

    assert nnx.fori_loop(0, 3, body, state, **mode)["w"] is state["w"]
    assert state["w"][...] == 16


def test_array_attributes_in_the_carry(mode: dict[str, bool]) -> None:
    model = Model()

    def body(i: Any, model: Model) -> Model:
        model.scale = model.scale * 2
        return model

    result = nnx.fori_loop(0, 3, body, model, **mode)
    assert result.scale == 8
    assert model.scale == (1 if mode else 8)
    assert result.w is model.w


def test_one_object_twice_in_the_carry() -> None:
    model = Model()

    def body(i: Any, carry: Any) -> Any:
        a, b = carry
        assert a is b
        a.count[...] += 1
        return b, a

    result = nnx.fori_loop(0, 3, body, (model, model))
    assert result == (model, model)
    assert model.count[...] == 3
    with pytest.raises(GraphError, match="are the same object"):
        nnx.fori_loop(0, 3, body, (model, model), graph=False)


# Captures


ROUTES: dict[str, Callable[[Model], Callable[[Any, Any], Any]]] = {
    "closure": lambda model: lambda i, x: model.up(x),
    "default": lambda model: lambda i, x, m=model: m.up(x),
    "partial": lambda model: functools.partial(Model.step, model),
    "bound method": lambda model: model.step,
    "instance": lambda model: model,
    "container": lambda model: lambda i, x, models=[model]: models[0].up(x),
    "helper": lambda model: lambda i, x, helper=model.up: helper(x),
}


@pytest.mark.parametrize("route", ROUTES)
def test_captures_by_every_route(route: str, mode: dict[str, bool]) -> None:
    model = Model()
    f = ROUTES[route](model)
    assert nnx.fori_loop(0, 3, f, 1.0, **mode) == 8.0
    x, _ = nnx.while_loop(below(3), lambda carry: (f(0, carry[0]), carry[1] + 1), (1.0, 0), **mode)
    assert x == 8.0
    assert model.count[...] == 6


def test_the_condition_reads_captures(mode: dict[str, bool]) -> None:
    model = Model()

    def body(x: Any) -> Any:
        model.count[...] += 2
        return x + 1

    assert nnx.while_loop(lambda x: model.count[...] < 5, body, 0, **mode) == 3
    assert model.count[...] == 6


def test_what_is_captured_and_carried_is_one_object() -> None:
    model = Model()

    def body(i: Any, carried: Model) -> Model:
        assert carried is model
        model.count[...] += 1
        return carried

    assert nnx.fori_loop(0, 3, body, model) is model
    assert model.count[...] == 3


def test_a_captured_module_as_the_carry_that_comes_out_is_another_object() -> None:
    model, other = Model(), Model()
    with pytest.raises(TransformArgumentError, match=r"another `Model` as `init_val` than it was given"):
        nnx.fori_loop(0, 3, lambda i, carry: other, model)


# What may not change


def replaced_module(carry: Any) -> Any:
    return Model(carry[0].w + 1), carry[1] + 1


def retyped_variable(carry: Any) -> Any:
    carry[0].w = nnx.BatchStat(carry[0].w + 1)
    return carry[0], carry[1] + 1


def added(carry: Any) -> Any:
    carry[0].extra = nnx.Param(carry[0].w + 1)
    return carry[0], carry[1] + 1


def static(carry: Any) -> Any:
    carry[0].mode = "busy"
    return carry[0], carry[1] + 1


def deleted(carry: Any) -> Any:
    del carry[0].scale
    return carry[0], carry[1] + 1


def metadata(carry: Any) -> Any:
    carry[0].w.set_metadata(unit="m")
    return carry[0], carry[1] + 1


CHANGES: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "module": (replaced_module, r"another `Model` as `init_val\[0\]`", r"as `init_val\[0\]\.count`"),
    "variable": (retyped_variable, r"`init_val\[0\]\.w` is a `Param` before .* and a new", r"is a `Param` before"),
    "added": (added, r"`init_val\[0\]\.extra` is missing before a step", r"`init_val\[0\]\.extra` is missing before"),
    "static": (static, r"`init_val\[0\]\.mode` is `'idle'` before .* and `'busy'` after", r"is `'idle'` before"),
    "deleted": (deleted, r"`init_val\[0\]\.scale` is an array before .* and missing", r"an array before"),
    "metadata": (
        metadata,
        r"`init_val\[0\]\.w` is a Variable with the metadata \{\} before .*'unit'",
        r"metadata \{\}",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_structure_that_changes(change: str, mode: dict[str, bool]) -> None:
    body, default, other = CHANGES[change]
    model = Model()
    before = nnx.graphdef(model), model.w
    with pytest.raises(TransformArgumentError, match=other if mode else default):
        nnx.while_loop(below(3), body, (model, 0), **mode)
    assert (nnx.graphdef(model), model.w) == before
    assert not tracers(model)


def test_swapped_objects(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformArgumentError, match=r"as `init_val\[0\](\.count)?` than it was given"):
        nnx.fori_loop(0, 3, lambda i, carry: (carry[1], carry[0]), (Model(), Model()), **mode)


def test_another_carry(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformTypeError, match=r"goes into a step of `nnx\.while_loop` as `\*` and .* `\(\*, \*\)`"):
        nnx.while_loop(lambda x: x < 3, lambda x: (x, x), 0, **mode)
    with pytest.raises(TransformTypeError, match=r"the carry goes into a step of `nnx\.fori_loop`"):
        nnx.fori_loop(0, 3, lambda i, model: model.w[...], Model(), **mode)


def test_another_type(mode: dict[str, bool]) -> None:
    message = r"`init_val\[0\]` goes into a step of `nnx\.fori_loop` as float32\[2\] and comes out as float32\[4\]"
    with pytest.raises(TransformTypeError, match=message):
        nnx.fori_loop(0, 3, lambda i, c: (jnp.concatenate([c[0], c[0]]),), (jnp.ones(2),), **mode)
    message = r"`init_val` goes into a step of `nnx\.while_loop` as int32\[\] and comes out as float32\[\]"
    with pytest.raises(TransformTypeError, match=message):
        nnx.while_loop(lambda x: x < 3, lambda x: x + 0.5, jnp.zeros((), jnp.int32), **mode)


def test_another_type_of_a_variable(mode: dict[str, bool]) -> None:
    model = Model()
    with pytest.raises(TransformTypeError, match=r"`model\.w` goes into a step of `nnx\.fori_loop` as float32\[\] and"):
        nnx.fori_loop(0, 3, lambda i, x: model.w.set_value(jnp.ones(3)) or x, 0, **mode)
    assert model.w[...] == 2.0


WRITERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "value": (lambda model: model.count.set_value(model.count + 1), r"`init_val\[0\]\.count`"),
    "metadata": (lambda model: model.w.set_metadata(unit="m"), r"`init_val\[0\]\.w`"),
    "static": (lambda model: setattr(model, "mode", "busy"), r"`init_val\[0\]\.mode`"),
    "array": (lambda model: setattr(model, "scale", model.scale + 1), r"`init_val\[0\]\.scale`"),
}


@pytest.mark.parametrize("what", WRITERS)
def test_a_condition_that_writes(what: str) -> None:
    write, path = WRITERS[what]
    model = Model()

    def condition(carry: Any) -> Any:
        write(carry[0])
        return carry[1] < 3

    with pytest.raises(TransformArgumentError, match=r"`cond_fun` of `nnx\.while_loop` changes " + path):
        nnx.while_loop(condition, lambda carry: (carry[0], carry[1] + 1), (model, 0))
    assert (model.count[...], model.mode, model.scale) == (0, "idle", 1)


def test_a_condition_that_writes_to_a_capture(mode: dict[str, bool]) -> None:
    rngs = nnx.Rngs(0)
    with pytest.raises(TransformArgumentError, match=r"changes `rngs\.default\.count`; a condition can only read"):
        nnx.while_loop(lambda x: rngs.uniform() < x, lambda x: x / 2, 1.0, **mode)
    assert rngs.default.count[...] == 0


def test_conditions_that_are_none(mode: dict[str, bool]) -> None:
    with pytest.raises(TypeError, match="cond_fun must return a boolean scalar"):
        nnx.while_loop(lambda x: x, lambda x: x + 1, 0, **mode)
    with pytest.raises(TypeError, match="cond_fun must return a boolean scalar"):
        nnx.while_loop(lambda v: v, lambda v: v, nnx.Variable(jnp.array(True)), **mode)


# Exceptions, traces, transforms around


def test_exceptions_leave_everything_as_it_was(mode: dict[str, bool]) -> None:
    model = Model()

    def fail(i: Any, carried: Model) -> Model:
        carried.w[...] += 1
        model.count[...] += 1
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        nnx.fori_loop(0, 3, fail, model if not mode else Model(), **mode)
    assert (model.w[...], model.count[...]) == (2.0, 0)
    assert not tracers(model)


def test_objects_of_another_trace(mode: dict[str, bool]) -> None:
    model = Model()
    with pytest.raises(TraceContextError, match="captures it"):
        jax.jit(lambda x: nnx.fori_loop(0, 3, model.step, x, **mode))(1.0)
    assert model.count[...] == 0
    assert not tracers(model)


def test_inside_of_jit_and_grad(mode: dict[str, bool]) -> None:
    model = Model()

    @nnx.jit(**mode)
    def run(model: Model, x: Any) -> Any:
        return nnx.value_and_grad(lambda x: nnx.fori_loop(0, 3, model.step, x, **mode), **mode)(x)

    assert run(model, jnp.array(1.0)) == (8.0, 8.0)
    assert run(model, jnp.array(1.0)) == (8.0, 8.0)
    assert model.count[...] == 6


def test_a_loop_in_a_loop(mode: dict[str, bool]) -> None:
    model = Model()

    def outer(i: Any, x: Any) -> Any:
        return nnx.fori_loop(0, 2, lambda j, y: nnx.cond(j == i, model.up, lambda y: y, y, **mode), x, **mode)

    assert nnx.fori_loop(0, 3, outer, 1.0, **mode) == 4.0
    assert model.count[...] == 2


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_without_compilation(steps: int, mode: dict[str, bool]) -> None:
    model = Model()

    def body(carry: Any) -> Any:
        carried, i = carry
        if i == 1:
            model.w[...] = 7.0
        carried[...] += 1
        return carried, i + 1

    total = nnx.Variable(jnp.zeros(()))
    with jax.disable_jit():
        result, i = nnx.while_loop(below(steps), body, (total, 0), **mode)
    assert (result is total, total[...], i, model.w[...]) == (True, steps, steps, 7.0 if steps > 1 else 2.0)


def test_the_body_is_traced_once(mode: dict[str, bool]) -> None:
    traced = []
    nnx.fori_loop(0, 5, lambda i, x: traced.append(i) or x, 1.0, **mode)
    assert len(traced) == 1
    traced.clear()
    nnx.while_loop(lambda x: x < 5, lambda x: traced.append(1) or x + 1, 1.0, **mode)
    assert len(traced) == 1


STEPS = st.lists(st.sampled_from(["a += i", "b = a * 2", "c += x", "x += b", "x = c - x"]), max_size=4)
ACTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a += i": lambda m, i, x: (m.a.set_value(m.a + i), x)[1],
    "b = a * 2": lambda m, i, x: (m.b.set_value(m.a * 2), x)[1],
    "c += x": lambda m, i, x: (m.c.set_value(m.c + x), x)[1],
    "x += b": lambda m, i, x: x + m.b,
    "x = c - x": lambda m, i, x: m.c - x,
}


@settings(max_examples=25, deadline=None)
@given(STEPS, st.integers(0, 4), st.booleans(), st.sampled_from(list(MODES)))
def test_a_loop_is_the_python_loop(actions: list[str], steps: int, captured: bool, mode: str) -> None:
    def make() -> nnx.Dict:
        return nnx.Dict({name: nnx.Variable(jnp.array(i, jnp.int32)) for i, name in enumerate("abc")})

    def body(i: Any, model: Any, x: Any) -> Any:
        for action in actions:
            x = ACTIONS[action](model, i, x)
        return x

    ours, direct = make(), make()
    x = jnp.array(1, jnp.int32)
    if captured:
        result = nnx.fori_loop(0, steps, lambda i, x: body(i, ours, x), x, **MODES[mode])
    else:
        _, result = nnx.fori_loop(0, steps, lambda i, c: (c[0], body(i, c[0], c[1])), (ours, x), **MODES[mode])
    for i in range(steps):
        x = body(jnp.array(i, jnp.int32), direct, x)
    assert result == x
    assert nnx.to_pure_dict(nnx.state(ours)) == nnx.to_pure_dict(nnx.state(direct))
