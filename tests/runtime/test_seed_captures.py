"""The pull request that the project started from: `nnx.jit`, `vmap`, `grad` and `scan`, and what a function captures.

Each promise is checked in the three modes. The programs come in two forms, with the objects as arguments (before the
pull request) and as captures (after it), and both agree.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import nnxkit as nnx

MODES = (
    pytest.param({"graph": True, "graph_updates": True}, id="graph"),
    pytest.param({"graph": True, "graph_updates": False}, id="no-updates"),
    pytest.param({"graph": False}, id="tree"),
)

pytestmark = pytest.mark.parametrize("mode", MODES)

Mode = dict[str, bool]


class Scaled(nnx.Module):
    """A parameter, and the number of calls."""

    def __init__(self, scale: float = 2.0) -> None:
        self.scale = nnx.Param(jnp.array(scale))
        self.calls = nnx.BatchStat(jnp.array(0))

    def __call__(self, x: Any) -> Any:
        self.calls[...] += 1
        return self.scale * x


class Wrapper(nnx.Module):
    """Holds another module."""

    def __init__(self, inner: Scaled) -> None:
        self.inner = inner

    def __call__(self, x: Any) -> Any:
        return self.inner(x)


def state_of(*modules: Scaled) -> list[tuple[float, int]]:
    return [(float(module.scale[...]), int(module.calls[...])) for module in modules]


# -- before and after --------------------------------------------------------------------------------------------------


def test_jit(mode: Mode) -> None:
    before, after = Scaled(), Scaled()

    @nnx.jit(**mode)
    def passed(model: Scaled, x: Any) -> Any:
        return model(x)

    @nnx.jit(**mode)
    def captured(x: Any) -> Any:
        return after(x)

    x = jnp.array(3.0)
    assert [float(captured(x)) for _ in range(3)] == [float(passed(before, x)) for _ in range(3)] == [6.0] * 3
    assert state_of(after) == state_of(before) == [(2.0, 3)]


def test_vmap(mode: Mode) -> None:
    before, after = Scaled(), Scaled()

    @nnx.vmap(in_axes=(None, 0), **mode)
    def passed(model: Scaled, x: Any) -> Any:
        assert x.shape == ()
        return model(x)

    @nnx.vmap(in_axes=(0,), **mode)
    def captured(x: Any) -> Any:
        assert x.shape == ()
        return after(x)

    xs = jnp.arange(4.0)
    assert captured(xs).tolist() == passed(before, xs).tolist() == [0.0, 2.0, 4.0, 6.0]
    assert state_of(after) == state_of(before) == [(2.0, 1)]


def test_grad(mode: Mode) -> None:
    trained, before, after = Scaled(3.0), Scaled(), Scaled()

    @nnx.grad(**mode)
    def passed(x: Any, model: Scaled) -> Any:
        return model(x) ** 2

    @nnx.grad(**mode)
    def captured(x: Any) -> Any:
        return after(x) ** 2

    x = jnp.array(3.0)
    assert float(captured(x)) == float(passed(x, before)) == 24.0
    assert state_of(after) == state_of(before) == [(2.0, 1)]

    def loss(scale: nnx.Param[Any]) -> Any:
        return after(scale[...])

    gradient = nnx.grad(loss, **mode)(trained.scale)
    assert isinstance(gradient, nnx.Param)
    assert float(gradient[...]) == 2.0
    assert state_of(after, trained) == [(2.0, 2), (3.0, 0)]


def test_scan(mode: Mode) -> None:
    before, after = Scaled(), Scaled()

    def step(carry: Any, model: Scaled, x: Any) -> tuple[Any, Any]:
        y = model(x)
        return carry + y, model.calls[...]

    def passed(model: Scaled, xs: Any) -> Any:
        carry, ys, calls = jnp.array(0.0), [], []
        for x in xs:
            carry, call = step(carry, model, x)
            ys.append(carry)
            calls.append(call)
        return carry, jnp.stack(calls)

    @nnx.scan(**mode)
    def captured(carry: Any, x: Any) -> tuple[Any, Any]:
        return step(carry, after, x)

    xs = jnp.arange(4.0)
    expected = passed(before, xs)
    found = captured(jnp.array(0.0), xs)
    assert float(found[0]) == float(expected[0]) == 12.0
    assert found[1].tolist() == expected[1].tolist() == [1, 2, 3, 4]
    assert state_of(after) == state_of(before) == [(2.0, 4)]


# -- what is promised of captures --------------------------------------------------------------------------------------

ALL: dict[str, Callable[[Callable[[Any], Any], Mode], Callable[[Any], Any]]] = {
    "jit": lambda f, mode: lambda x: nnx.jit(f, **mode)(x),
    "vmap": lambda f, mode: lambda x: nnx.vmap(f, **mode)(jnp.stack([x, x]))[0],
    "grad": lambda f, mode: lambda x: nnx.value_and_grad(f, **mode)(x)[0],
    "scan": lambda f, mode: lambda x: nnx.scan(lambda c, y: (c, f(y)), **mode)(0.0, x[None])[1][0],
}
"""Each transform as a function of one number, whatever it has to be given for that."""

each = pytest.mark.parametrize("transform", ALL.values(), ids=ALL)


@each
def test_a_bare_variable_is_captured(mode: Mode, transform: Any) -> None:
    scale, calls = nnx.Param(jnp.array(2.0)), nnx.BatchStat(jnp.array(0))

    def f(x: Any) -> Any:
        calls[...] += 1
        return x * scale[...]

    assert float(transform(f, mode)(jnp.array(3.0))) == 6.0
    assert int(calls[...]) == 1


@each
def test_several_modules_are_captured_at_once_and_those_that_share_still_do(mode: Mode, transform: Any) -> None:
    first, second = Scaled(2.0), Scaled(5.0)
    around = Wrapper(first)

    def f(x: Any) -> Any:
        assert around.inner is first
        return around(x) + first(x) + second(x)

    assert float(transform(f, mode)(jnp.array(1.0))) == 9.0
    assert state_of(first, second) == [(2.0, 2), (5.0, 1)]
    assert around.inner is first


@each
def test_what_is_changed_between_calls_is_seen_by_the_next(mode: Mode, transform: Any) -> None:
    model = Scaled()
    call = transform(lambda x: model(x), mode)

    assert float(call(jnp.array(1.0))) == 2.0
    model.scale[...] = jnp.array(7.0)
    assert float(call(jnp.array(1.0))) == 7.0
    model.scale = nnx.Param(jnp.array(8.0))
    assert float(call(jnp.array(1.0))) == 8.0
    model = Scaled(9.0)
    assert float(call(jnp.array(1.0))) == 9.0


@each
def test_functions_that_capture_no_object_are_as_ever(mode: Mode, transform: Any) -> None:
    offset, table = 2, {"scale": jnp.array(3.0)}

    assert float(transform(lambda x: jnp.add(x, offset) * table["scale"], mode)(jnp.array(1.0))) == 9.0


@each
def test_an_exception_inside_leaves_captures_as_they_were(mode: Mode, transform: Any) -> None:
    model = Scaled()

    def f(x: Any) -> Any:
        model(x)
        raise ArithmeticError("inside")

    with pytest.raises(ArithmeticError, match="inside"):
        transform(f, mode)(jnp.array(1.0))
    assert state_of(model) == [(2.0, 0)]


def test_new_values_of_captures_do_not_trace_again(mode: Mode) -> None:
    model, traces = Scaled(), 0

    def f(x: Any) -> Any:
        nonlocal traces
        traces += 1
        return model(x)

    call = nnx.jit(f, **mode)
    for scale in (1.0, 2.0, 3.0):
        model.scale[...] = jnp.array(scale)
        assert float(call(jnp.array(1.0))) == scale
    assert traces == 1


# -- captures beside arguments -----------------------------------------------------------------------------------------


def test_a_module_that_is_captured_and_passed_is_one(mode: Mode) -> None:
    model = Scaled()

    @nnx.jit(**mode)
    def f(other: Scaled, x: Any) -> Any:
        assert other is model
        return model(x) + other(x)

    assert float(f(model, jnp.array(1.0))) == 4.0
    assert state_of(model) == [(2.0, 2)]


@pytest.mark.parametrize("passed", ["whole", "part"])
def test_so_is_one_that_is_nested_in_the_other(mode: Mode, passed: str) -> None:
    part = Scaled()
    whole = Wrapper(part)

    @nnx.jit(**mode)
    def with_part(given: Scaled, x: Any) -> Any:
        return given(x) + whole(x)

    @nnx.jit(**mode)
    def with_whole(given: Wrapper, x: Any) -> Any:
        return given(x) + part(x)

    result = with_part(part, jnp.array(1.0)) if passed == "part" else with_whole(whole, jnp.array(1.0))
    assert float(result) == 4.0
    assert state_of(part) == [(2.0, 2)]


def test_the_gradient_is_for_an_argument_that_is_captured_too(mode: Mode) -> None:
    model = nnx.Dict(scale=nnx.Param(jnp.array(2.0)))

    def loss(given: nnx.Dict[Any]) -> Any:
        return given.scale[...] * model.scale[...]

    gradient = nnx.grad(loss, **mode)(model)
    assert float(gradient["scale"][...]) == 4.0


def test_positions_count_arguments_and_not_captures(mode: Mode) -> None:
    model, x, y = Scaled(), jnp.array(3.0), jnp.array(5.0)

    def loss(a: Any, b: Any) -> Any:
        return model(a) * b**2

    assert float(nnx.grad(loss, argnums=1, **mode)(x, y)) == 60.0
    dx, dy = nnx.grad(loss, argnums=(0, -1), **mode)(x, y)
    assert (float(dx), float(dy)) == (50.0, 60.0)
    assert state_of(model) == [(2.0, 2)]


@pytest.mark.parametrize("in_axes", [0, (0, None)], ids=["for-all", "for-each"])
def test_axes_are_of_arguments_and_captures_are_broadcast(mode: Mode, in_axes: Any) -> None:
    model = Scaled()
    ys = jnp.arange(3.0) if in_axes == 0 else jnp.array(1.0)

    result = nnx.vmap(lambda x, y: model(x) + y, in_axes=in_axes, **mode)(jnp.arange(3.0), ys)

    assert result.tolist() == ([0.0, 3.0, 6.0] if in_axes == 0 else [1.0, 3.0, 5.0])
    assert state_of(model) == [(2.0, 1)]


@pytest.mark.parametrize("each_argument", [True, False], ids=["for-each", "for-all"])
def test_shardings_are_of_arguments_and_captures_are_left_alone(mode: Mode, each_argument: bool) -> None:
    model = Scaled()
    rows = NamedSharding(Mesh(jax.devices()[:1], ("data",)), PartitionSpec("data"))
    call = nnx.jit(lambda x, y: model(x) + y, in_shardings=(rows, rows) if each_argument else rows, **mode)

    assert call(jnp.arange(2.0), jnp.arange(2.0)).tolist() == [0.0, 3.0]
    assert state_of(model) == [(2.0, 1)]


def test_static_arguments_stay_static_beside_captures(mode: Mode) -> None:
    model = Scaled()
    call = nnx.jit(lambda x, twice: model(x) * (2 if twice else 1), static_argnums=1, **mode)

    assert [float(call(jnp.array(1.0), flag)) for flag in (True, False)] == [4.0, 2.0]
    assert state_of(model) == [(2.0, 2)]


# -- what a transform of JAX does --------------------------------------------------------------------------------------


def test_transforms_of_jax_still_refuse(mode: Mode) -> None:
    model = Scaled()

    with nnx.set_graph_mode(mode["graph"]), pytest.raises(nnx.errors.TraceContextError, match="captured-mutation"):
        jax.jit(lambda x: model(x))(jnp.array(1.0))
    assert state_of(model) == [(2.0, 0)]
