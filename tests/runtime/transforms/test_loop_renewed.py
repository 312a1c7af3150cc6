"""Steps of a loop that put a new object into the place of an old one: what is left is what a loop of Python leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nets import tracers
from nnx_rules.errors import TransformArgumentError, TransformTypeError


class Cell(nnx.Module):
    def __init__(self, scale: Any) -> None:
        self.scale = nnx.Param(jnp.asarray(scale, jnp.float32))
        self.last = jnp.zeros(())


class Model(nnx.Module):
    def __init__(self) -> None:
        self.state = nnx.BatchStat(jnp.zeros(()))
        self.tied = nnx.Intermediate(jnp.ones(()), unit="m")
        self.also_tied = self.tied
        self.cell = Cell(2.0)
        self.a, self.b = jnp.zeros(()), jnp.ones(())


Step = Callable[[Model, Any], Any]


def variable(model: Model, x: Any) -> Any:
    model.state = nnx.BatchStat(model.state[...] + x)
    return x + model.state[...]


def twice(model: Model, x: Any) -> Any:
    return variable(model, variable(model, x))


def at_both_places(model: Model, x: Any) -> Any:
    model.tied = model.also_tied = nnx.Intermediate(model.tied[...] + x, unit="m")
    return x + 1


def module(model: Model, x: Any) -> Any:
    old = model.cell
    model.cell = Cell(old.scale + x)
    model.cell.last = x
    return x + old.last


def module_around_the_same_variable(model: Model, x: Any) -> Any:
    old = model.cell
    old.scale[...] += 1
    model.cell = Cell(0.0)
    model.cell.scale = old.scale
    return x + old.scale


def arrays_that_move(model: Model, x: Any) -> Any:
    model.a, model.b = model.b, model.a + model.b
    return variable(model, x)


def written_beside(model: Model, x: Any) -> Any:
    model.cell.scale[...] += x
    model.cell.last = x
    return variable(model, x) + model.cell.scale


STEPS: list[Step] = [
    variable,
    twice,
    at_both_places,
    module,
    module_around_the_same_variable,
    arrays_that_move,
    written_beside,
]


def in_python(step: Step, model: Model, x: Any) -> Any:
    for _ in range(3):
        x = step(model, x)
    return x


def scan(step: Step, model: Model, x: Any) -> Any:
    def body(carry: Any) -> Any:
        return carry[0], step(*carry)

    return nnx.scan(body, length=3, in_axes=nnx.Carry, out_axes=nnx.Carry)((model, x))[1]


def captured(step: Step, model: Model, x: Any) -> Any:
    return nnx.scan(lambda x: step(model, x), length=3, in_axes=nnx.Carry, out_axes=nnx.Carry)(x)


def fori_loop(step: Step, model: Model, x: Any) -> Any:
    return nnx.fori_loop(0, 3, lambda i, carry: (carry[0], step(*carry)), (model, x))[1]


def objects(model: Model) -> list[Any]:
    return [model.state, model.tied, model.also_tied, model.cell, model.cell.scale]


def look(run: Callable[..., Any], step: Step) -> tuple[Any, Any, list[int]]:
    """The result, the values, and which of the objects are those of before."""
    model = Model()
    before = objects(model)
    result = run(step, model, jnp.ones(()))
    after = objects(model)
    assert not tracers(model)
    kept = [place for place, (one, other) in enumerate(zip(before, after, strict=True)) if one is other]
    return float(result), jax.tree.map(float, nnx.to_pure_dict(nnx.state(model))), kept


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("run", [scan, captured, fori_loop])
def test_as_in_python(run: Callable[..., Any], step: Step, compiled: bool) -> None:
    expected = look(in_python, step)
    with jax.disable_jit(not compiled):
        assert look(run, step) == expected


def test_the_old_object_keeps_its_value() -> None:
    model = Model()
    old = model.state
    scan(variable, model, jnp.ones(()))
    assert model.state is not old
    assert old[...] == 0


def test_steps_that_differ() -> None:
    """Without compilation, the last step may be one that puts nothing new there."""
    model = Model()

    def step(i: Any, model: Model) -> Model:
        if i < 2:
            variable(model, 1.0)
        return model

    with jax.disable_jit():
        nnx.fori_loop(0, 4, step, model)
    assert model.state[...] == 2


def test_what_is_scanned_over_is_stacked() -> None:
    model = nnx.Dict(w=nnx.Param(jnp.arange(3.0)), total=nnx.BatchStat(jnp.zeros(())))
    axes = nnx.StateAxes({nnx.BatchStat: nnx.Carry, ...: 0})

    @nnx.scan(in_axes=(axes, 0), out_axes=0)
    def step(model: Any, x: Any) -> Any:
        model.total = nnx.BatchStat(model.total[...] + x)
        model.w = nnx.Param(model.w * 2)
        return model.total[...], nnx.Param(x)

    totals, made = step(model, jnp.arange(1.0, 4.0))
    assert totals.tolist() == [1, 3, 6]
    assert made[...].tolist() == [1, 2, 3]
    assert model.total[...] == 6
    assert model.w[...].tolist() == [0, 2, 4]


def of_another_type(model: Any) -> None:
    model.state = nnx.Param(model.state[...])


def of_other_metadata(model: Any) -> None:
    model.tied = model.also_tied = nnx.Intermediate(model.tied[...], unit="s")


def at_one_of_two_places(model: Any) -> None:
    model.tied = nnx.Intermediate(model.tied[...], unit="m")


def written_before(model: Any) -> None:
    model.state[...] += 1
    model.state = nnx.BatchStat(model.state[...])


def swapped(model: Any) -> None:
    model.state, model.cell.scale = model.cell.scale, model.state


def of_another_structure(model: Any) -> None:
    model.cell = nnx.Dict(scale=nnx.Param(model.cell.scale[...]), last=model.cell.last)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (of_another_type, r"`init_val\.state` is a `BatchStat` before .* and a new `Param` after"),
        (of_other_metadata, r"`init_val\.(also_)?tied` is a `Intermediate` before .* a new `Intermediate` after"),
        (at_one_of_two_places, r"`init_val\.tied` is .*a `Intermediate` before .* a new `Intermediate`"),
        (written_before, r"`init_val\.state` is a `BatchStat` before .* and a new `BatchStat` after"),
        (swapped, r"`init_val\.\w+(\.scale)?` is a `\w+` before .* and `init_val"),
        (of_another_structure, r"`init_val\.cell` is a `Cell` before .* and a new `Dict` after"),
    ],
)
def test_what_does_not_fit(edit: Callable[[Any], None], message: str) -> None:
    model = Model()
    before = objects(model)
    with pytest.raises(TransformArgumentError, match=message):
        nnx.fori_loop(0, 3, lambda i, model: (edit(model), model)[1], model)
    assert all(one is other for one, other in zip(before, objects(model), strict=True))


def test_where_nobody_knows_whether_there_is_a_step() -> None:
    def step(carry: Any) -> Any:
        return carry[0], variable(*carry)

    with pytest.raises(TransformArgumentError, match=r"`init_val\[0\]\.state` is a `BatchStat` before .* and a new"):
        nnx.while_loop(lambda carry: carry[1] < 3, step, (Model(), jnp.ones(())))


def test_a_value_of_another_type() -> None:
    def step(i: Any, model: Model) -> Model:
        model.state = nnx.BatchStat(jnp.ones(2))
        return model

    with pytest.raises(TransformTypeError, match=r"`init_val\.state` goes into a step .* as float32\[\] and comes out"):
        nnx.fori_loop(0, 3, step, Model())
