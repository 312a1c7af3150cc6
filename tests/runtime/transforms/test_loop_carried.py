"""Steps of a loop that return new Variables in the carry: their values go on, and the caller's stay as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nets import tracers
from nnx_rules.errors import TransformArgumentError, TransformTypeError

Carry = dict[str, Any]
Step = Callable[[Carry], Carry]


def made() -> Carry:
    """A carry with all kinds of what it can hold."""
    model = nnx.Dict(w=nnx.Param(jnp.array(2.0)), count=nnx.Variable(jnp.array(0)))
    total = jax.tree.map(jnp.zeros_like, nnx.state(model, nnx.Param))
    first, second = nnx.BatchStat(jnp.array(0.0), unit="m"), nnx.BatchStat(jnp.array(1.0), unit="m")
    return {"model": model, "total": total, "first": first, "second": second, "x": jnp.array(3.0)}


def new_state(carry: Carry) -> Carry:
    grads = nnx.grad(lambda model: (model.w * carry["x"]) ** 2)(carry["model"])
    carry["model"].count[...] += 1
    return {**carry, "total": jax.tree.map(jnp.add, carry["total"], grads)}


def new_variable(carry: Carry) -> Carry:
    return {**carry, "first": nnx.BatchStat(carry["first"] + carry["x"], unit="m"), "x": carry["x"] + 1}


def copied(carry: Carry) -> Carry:
    return {**carry, "first": carry["first"].copy(carry["first"] * 2 + 1)}


def moved(carry: Carry) -> Carry:
    return {**carry, "first": carry["second"], "second": carry["first"].copy(carry["first"] + carry["second"])}


def swapped(carry: Carry) -> Carry:
    return {**carry, "first": carry["second"], "second": carry["first"]}


def written_beside(carry: Carry) -> Carry:
    carry["second"][...] += carry["first"][...]
    carry["model"].w[...] += 1
    return new_variable(carry)


def renewed_beside(carry: Carry) -> Carry:
    carry["model"].count = nnx.Variable(carry["model"].count + 1)
    return new_variable(carry)


STEPS = [new_state, new_variable, copied, moved, swapped, written_beside, renewed_beside]


def in_python(step: Step, carry: Carry) -> Carry:
    for _ in range(3):
        carry = step(carry)
    return carry


def scan(step: Step, carry: Carry) -> Carry:
    done: Carry = nnx.scan(step, length=3, in_axes=nnx.Carry, out_axes=nnx.Carry)(carry)
    return done


def scan_with_results(step: Step, carry: Carry) -> Carry:
    done, numbers = nnx.scan(lambda carry, x: (step(carry), x))(carry, jnp.arange(3))
    assert numbers.tolist() == [0, 1, 2]
    return dict(done)


def fori_loop(step: Step, carry: Carry) -> Carry:
    return nnx.fori_loop(0, 3, lambda i, carry: step(carry), carry)


def values(carry: Carry) -> Any:
    state = nnx.to_pure_dict(nnx.state(carry["model"])), nnx.to_pure_dict(carry["total"])
    return jax.tree.map(float, (*state, carry["first"][...], carry["second"][...], carry["x"]))


def variables(carry: Carry) -> list[Any]:
    return [carry["first"], carry["second"], carry["total"]["w"]]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("run", [scan, scan_with_results, fori_loop])
def test_as_in_python(run: Callable[[Step, Carry], Carry], step: Step, compiled: bool) -> None:
    one, old = made(), made()
    expected = in_python(step, one)
    with jax.disable_jit(not compiled):
        done = run(step, old)
    assert values(done) == values(expected)
    assert values(old) == values(one)
    assert done["model"] is old["model"]
    assert not tracers(old["model"])
    for after, plain in zip(variables(done), variables(expected), strict=True):
        assert type(after) is type(plain)
        assert after.get_metadata() == plain.get_metadata()
    kept = [after is before for before, after in zip(variables(old), variables(done), strict=True)]
    if step is swapped:  # which of them is where depends on the number of steps, so both are new
        assert all(after is not before for after in variables(done)[:2] for before in variables(old))
    else:
        assert kept == [after is before for before, after in zip(variables(one), variables(expected), strict=True)]


def test_again_without_a_trace() -> None:
    """What the steps did is known, too, where JAX does not trace them again."""
    step = nnx.scan(new_variable, length=3, in_axes=nnx.Carry, out_axes=nnx.Carry)
    for _ in range(2):
        old = made()
        done = step(old)
        assert done["first"] is not old["first"]
        assert (float(done["first"][...]), float(old["first"][...])) == (12, 0)
    compiled = nnx.jit(step)
    for _ in range(2):
        assert float(compiled(made())["first"][...]) == 12


def test_steps_that_differ() -> None:
    """Without compilation, the last step may be one that returns what it was given."""
    old = nnx.Variable(jnp.array(0))
    with jax.disable_jit():
        new = nnx.fori_loop(0, 4, lambda i, total: nnx.Variable(total + 1) if i < 2 else total, old)
    assert (int(new[...]), int(old[...])) == (2, 0)

    def step(i: Any, total: nnx.Variable[jax.Array]) -> nnx.Variable[jax.Array]:
        if i == 0:
            return nnx.Variable(total + 1)
        total[...] += 1
        return total

    with jax.disable_jit():
        new = nnx.fori_loop(0, 4, step, old)
    assert (int(new[...]), int(old[...])) == (4, 0)


def test_gradients_of_the_loop() -> None:
    def loss(w: nnx.Param[jax.Array]) -> Any:
        return nnx.fori_loop(0, 3, lambda i, total: nnx.Variable(total * w), nnx.Variable(jnp.array(1.0)))[...]

    assert float(nnx.grad(loss)(nnx.Param(jnp.array(2.0)))[...]) == 12


def held_by_a_module(carry: Carry) -> Any:
    carry["model"].also = carry["first"]
    return lambda carry: {**carry, "first": nnx.BatchStat(carry["first"] + 1, unit="m")}


def held_by_the_step(carry: Carry) -> Any:
    first = carry["first"]
    return lambda carry: {**carry, "first": nnx.BatchStat(carry["first"] + first, unit="m")}


def there_twice(carry: Carry) -> Any:
    carry["second"] = carry["first"]
    return lambda carry: {**carry, "first": nnx.BatchStat(carry["first"] + 1, unit="m")}


def given_to_two(carry: Carry) -> Any:
    def step(carry: Carry) -> Carry:
        new = nnx.BatchStat(carry["first"] + 1, unit="m")
        return {**carry, "first": new, "second": new}

    return step


def of_the_carry_already(carry: Carry) -> Any:
    return lambda carry: {**carry, "first": carry["second"]}


def of_a_module(carry: Carry) -> Any:
    carry["model"].stat = nnx.BatchStat(jnp.array(0.0), unit="m")
    return lambda carry: {**carry, "first": carry["model"].stat}


def given_to_a_module(carry: Carry) -> Any:
    carry["model"].stat = nnx.BatchStat(jnp.array(0.0), unit="m")

    def step(carry: Carry) -> Carry:
        new = carry["model"].stat = nnx.BatchStat(carry["first"] + 1, unit="m")
        return {**carry, "first": new}

    return step


def captured(carry: Carry) -> Any:
    other = nnx.BatchStat(jnp.array(0.0), unit="m")
    return lambda carry: {**carry, "first": other}


def written(carry: Carry) -> Any:
    def step(carry: Carry) -> Carry:
        carry["first"][...] += 1
        return new_variable(carry)

    return step


def of_another_type(carry: Carry) -> Any:
    return lambda carry: {**carry, "first": nnx.Variable(carry["first"] + 1, unit="m")}


def of_more_than_an_array(carry: Carry) -> Any:
    carry["first"] = nnx.BatchStat({"a": jnp.array(0.0)}, unit="m")
    return lambda carry: {**carry, "first": nnx.BatchStat({"a": carry["first"]["a"] + 1}, unit="m")}


OTHERS = [
    held_by_a_module,
    held_by_the_step,
    there_twice,
    given_to_two,
    of_the_carry_already,
    of_a_module,
    given_to_a_module,
    captured,
    written,
    of_another_type,
    of_more_than_an_array,
]


@pytest.mark.parametrize("make", OTHERS)
@pytest.mark.parametrize("run", [scan, fori_loop])
def test_what_is_not_alone(run: Callable[[Step, Carry], Carry], make: Callable[[Carry], Any]) -> None:
    carry = made()
    step = make(carry)
    before = nnx.graphdef(carry["model"]), float(carry["second"][...])
    cls = "Variable" if make is of_another_type else "BatchStat"
    message = rf"returns another `{cls}` as `(args\[0\]|init_val)\.(first|second)` than it was given"
    with pytest.raises(TransformArgumentError, match=message):
        run(step, carry)
    assert (nnx.graphdef(carry["model"]), float(carry["second"][...])) == before
    assert not tracers(carry["model"])


def test_other_metadata() -> None:
    with pytest.raises(TransformArgumentError, match=r"first` is a Variable with .*'m'.* before .*'s'"):
        scan(lambda carry: {**carry, "first": nnx.BatchStat(carry["first"] + 1, unit="s")}, made())


def test_another_dtype() -> None:
    with pytest.raises(TransformTypeError, match=r"first` goes into a step of .* as float32\[\] and .* float32\[2\]"):
        scan(lambda carry: {**carry, "first": nnx.BatchStat(jnp.zeros(2), unit="m")}, made())


def test_a_module_is_to_stay() -> None:
    with pytest.raises(TransformArgumentError, match=r"returns another `Dict` as `init_val\.model` than it was given"):
        fori_loop(lambda carry: {**carry, "model": nnx.clone(carry["model"])}, made())


@pytest.mark.parametrize("step", [new_state, new_variable, copied])
def test_where_there_may_be_no_step(step: Step) -> None:
    with pytest.raises(TransformArgumentError, match=r"returns another `\w+` as `init_val\.(first|total\.w)` than"):
        nnx.while_loop(lambda carry: carry["x"] < 6, step, made())


@pytest.mark.parametrize("mode", [{"graph": False}, {"graph_updates": False}])
def test_without_graph_updates(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformArgumentError, match=r"returns another `BatchStat` as `init_val\.first` than"):
        nnx.fori_loop(0, 3, lambda i, carry: new_variable(carry), made(), **mode)
