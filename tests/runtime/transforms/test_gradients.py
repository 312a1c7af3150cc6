"""``nnx.grad`` and ``nnx.value_and_grad``: what is differentiated, what comes back, and against finite differences."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from modes import MODES, every_mode, in_graph_mode, without_updates
from nnx_rules.errors import GraphError, TransformArgumentError, TransformTypeError

TWO, THREE = jnp.array(2.0), jnp.array(3.0)


class Net(nnx.Module):
    def __init__(self, w: Any = 2.0, b: Any = 1.0) -> None:
        self.w = nnx.Param(jnp.asarray(w, jnp.float32))
        self.b = nnx.BatchStat(jnp.asarray(b, jnp.float32))
        self.name = "net"

    def __call__(self, x: Any) -> Any:
        self.b[...] += 1
        return self.w**2 * x


class Counted(Net):
    def __init__(self) -> None:
        super().__init__()
        self.n = nnx.Variable(jnp.array(0))


class Bare(nnx.Module):
    def __init__(self) -> None:
        self.w = nnx.Param(TWO)
        self.a = nnx.data(THREE)


class Pair(nnx.Module):
    """One Variable at two places."""

    def __init__(self) -> None:
        self.first = self.second = nnx.Param(THREE)


def square(m: Any) -> Any:
    return m.w**2


def product(m: Any, x: Any) -> Any:
    return m.w**2 * x


def numbers(gradient: Any) -> dict[str, float]:
    """The gradient of a `Net`, whatever it is, by attribute."""
    state = gradient if isinstance(gradient, nnx.State) else nnx.state(gradient)
    return {key: float(state[key].get_value()) for key in state}


class TestModules:
    @every_mode
    def test_a_state_of_params_or_a_module(self, mode: Any) -> None:
        net = Net()
        gradient = nnx.grad(lambda m: m.w**2 + 5 * m.b, **mode)(net)
        if mode:
            assert (type(gradient), gradient.name) == (Net, "net")
            assert numbers(gradient) == {"w": 4.0, "b": 5.0}
        else:
            assert type(gradient) is nnx.State
            assert numbers(gradient) == {"w": 4.0}
        assert type(gradient.w) is nnx.Param
        assert numbers(net) == {"w": 2.0, "b": 1.0}

    @every_mode
    def test_metadata(self, mode: Any) -> None:
        net = Net()
        net.w.set_metadata("note", "kept")
        assert nnx.grad(square, **mode)(net).w.get_metadata("note") == "kept"

    @without_updates
    def test_bare_arrays(self, mode: Any) -> None:
        gradient = nnx.grad(lambda m: m.w * m.a, **mode)(Bare())
        assert (float(gradient.w.get_value()), float(gradient.a)) == (3.0, 2.0)

    @every_mode
    def test_an_empty_module(self, mode: Any) -> None:
        gradient = nnx.grad(lambda m, x: x, **mode)(nnx.Dict(), TWO)
        assert type(gradient) is (nnx.Dict if mode else nnx.State)
        assert not nnx.state(gradient) if mode else not gradient

    @in_graph_mode
    def test_a_shared_variable_has_one_gradient(self, mode: Any) -> None:
        gradient = nnx.grad(lambda m: m.first * m.second, **mode)(Pair())
        assert float(gradient.first.get_value()) == 6.0
        if mode:
            assert gradient.first is gradient.second
        else:
            assert set(gradient) == {"first"}

    def test_a_shared_variable_is_no_tree(self) -> None:
        with pytest.raises(
            GraphError, match=r"args\[0\]\.first.*args\[0\]\.second|args\[0\]\.second.*args\[0\]\.first"
        ):
            nnx.grad(lambda m: m.first * m.second, graph=False)(Pair())

    @in_graph_mode
    def test_a_module_that_is_given_twice(self, mode: Any) -> None:
        net = Net()
        first, second = nnx.grad(lambda a, b: a.w * b.w, argnums=(0, 1), **mode)(net, net)
        assert numbers(first)["w"] == 4.0
        assert (second is first) if mode else not second

    @in_graph_mode
    def test_half_of_a_module_that_is_given_twice(self, mode: Any) -> None:
        net = Net()
        with pytest.raises(GraphError, match=r"`args\[0\]\..` and `args\[1\]\..` are the same object, .* `nnx\.grad`"):
            nnx.grad(lambda a, b: a.w * b.w, **mode)(net, net)

    def test_a_cycle(self) -> None:
        for mode in (MODES["default"], MODES["without updates"]):
            a, b = Net(), Net()
            a.other, b.other = b, a
            gradient = nnx.grad(lambda m: m.w * m.other.w, **mode)(a)
            assert float(gradient.other.w.get_value()) == 2.0


class TestOtherArguments:
    @every_mode
    @pytest.mark.parametrize(
        ("f", "argument", "read"),
        [
            (lambda x: x**2, TWO, float),
            (lambda x: x**2, 2.0, float),
            (lambda v: v**2, nnx.Param(TWO), lambda g: float(g.get_value())),
            (lambda v: v**2, nnx.BatchStat(TWO), lambda g: float(g.get_value())),
            (lambda v: v["a"] ** 2, nnx.Param({"a": TWO}), lambda g: float(g.get_value()["a"])),
            (lambda s: s["w"] ** 2, nnx.state(Net()), lambda g: float(g["w"].get_value())),
            (lambda d: d["a"][0] ** 2, {"a": [TWO, None]}, lambda g: float(g["a"][0])),
        ],
    )
    def test_kinds(self, mode: Any, f: Any, argument: Any, read: Any) -> None:
        gradient = nnx.grad(f, **mode)(argument)
        assert read(gradient) == 4.0
        assert type(gradient) is (type(argument) if not isinstance(argument, float) else type(TWO))

    @every_mode
    def test_a_state_of_all_kinds(self, mode: Any) -> None:
        gradient = nnx.grad(lambda s: s["w"] * s["b"], **mode)(nnx.state(Net()))
        assert numbers(gradient) == {"w": 1.0, "b": 2.0}

    @every_mode
    def test_a_container_of_modules(self, mode: Any) -> None:
        gradient = nnx.grad(lambda ms: ms["a"].w * ms["b"][0].w, **mode)({"a": Net(), "b": [Net(5.0)]})
        assert (numbers(gradient["a"])["w"], numbers(gradient["b"][0])["w"]) == (5.0, 2.0)
        assert type(gradient["a"]) is (Net if mode else nnx.State)

    @every_mode
    def test_what_is_not_differentiated_may_be_anything(self, mode: Any) -> None:
        def f(m: Any, flag: Any, name: Any, rngs: Any) -> Any:
            assert (flag, name) == (True, "a")
            return m.w * rngs.normal() ** 0

        assert numbers(nnx.grad(f, **mode)(Net(), True, "a", nnx.Rngs(0)))["w"] == 1.0


class TestArgnums:
    @every_mode
    @pytest.mark.parametrize(
        ("argnums", "expected"), [(1, 4.0), (-1, 4.0), ((1,), (4.0,)), ([1], (4.0,)), ((-1,), (4.0,))]
    )
    def test_of_arrays(self, mode: Any, argnums: Any, expected: Any) -> None:
        gradient = nnx.grad(product, argnums=argnums, **mode)(Net(), THREE)
        assert jax.tree.map(float, gradient) == expected

    @every_mode
    def test_order(self, mode: Any) -> None:
        of_x, of_m = nnx.grad(product, argnums=(1, 0), **mode)(Net(), THREE)
        assert (float(of_x), numbers(of_m)["w"]) == (4.0, 12.0)

    def test_negative_ones_take_params_as_well(self) -> None:
        assert numbers(nnx.grad(lambda x, m: m.w * x, argnums=-1)(THREE, Net())) == {"w": 3.0}

    @every_mode
    @pytest.mark.parametrize(
        ("argnums", "error", "message"),
        [
            (2, TransformTypeError, "`argnums` of `nnx.grad` has position 2, and the call has .*: 2"),
            (-3, TransformTypeError, "`argnums` of `nnx.grad` has position -3"),
            ((0, 0), TransformArgumentError, "`argnums` of `nnx.grad` has position 0 twice"),
            ((0, -2), TransformArgumentError, "`argnums` of `nnx.grad` has position -2 twice"),
            (("m",), TransformTypeError, "`argnums` of `nnx.grad` holds a str"),
        ],
    )
    def test_that_do_not_fit(self, mode: Any, argnums: Any, error: Any, message: str) -> None:
        with pytest.raises(error, match=message):
            nnx.grad(product, argnums=argnums, **mode)(Net(), THREE)

    @every_mode
    def test_arguments_by_name(self, mode: Any) -> None:
        assert numbers(nnx.grad(product, **mode)(x=THREE, m=Net()))["w"] == 12.0

    @every_mode
    def test_arguments_by_keyword_only_are_constants(self, mode: Any) -> None:
        def f(m: Any, *, other: Any, k: Any = 2) -> Any:
            other.b[...] += 1
            return m.w * other.w * k

        other = Net(5.0)
        assert numbers(nnx.grad(f, **mode)(Net(), other=other))["w"] == 10.0
        assert numbers(other)["b"] == 2.0


@every_mode
@pytest.mark.parametrize("argnums", [2, -1, (2,)])
def test_parameters_that_are_left_out(mode: Any, argnums: Any) -> None:
    gradients = nnx.grad(lambda m, x, scale=2.0: m.w * x * scale, argnums=argnums, **mode)(Net(), THREE)

    assert np.sum(gradients) == 6.0


class TestDiffState:
    @pytest.mark.parametrize("argument", [nnx.Param, nnx.BatchStat, ...])
    def test_an_array_is_differentiated_whatever_the_filter(self, argument: Any) -> None:
        arrays = {"x": THREE}

        gradient = nnx.grad(lambda arrays, m: arrays["x"] * m.w, argnums=nnx.DiffState(0, argument))(arrays, Net())

        assert gradient == {"x": nnx.grad(lambda x, m: x * m.w)(THREE, Net())}

    @pytest.mark.parametrize(
        ("argument", "expected"),
        [
            (nnx.BatchStat, {"b": 5.0}),
            ((nnx.Param, nnx.BatchStat), {"w": 4.0, "b": 5.0}),
            (..., {"w": 4.0, "b": 5.0}),
            (nnx.Not(nnx.Param), {"b": 5.0}),
            (nnx.PathContains("w"), {"w": 4.0}),
        ],
    )
    @pytest.mark.parametrize("place", [0, -1])
    def test_filters(self, argument: Any, expected: Any, place: int) -> None:
        gradient = nnx.grad(lambda m: m.w**2 + 5 * m.b, argnums=nnx.DiffState(place, argument))(Net())
        assert type(gradient) is nnx.State
        assert numbers(gradient) == expected

    def test_with_positions(self) -> None:
        of_m, of_x = nnx.grad(product, argnums=(nnx.DiffState(0, nnx.Param), 1))(Net(), THREE)
        assert (numbers(of_m), float(of_x)) == ({"w": 12.0}, 4.0)

    @without_updates
    def test_other_modes(self, mode: Any) -> None:
        with pytest.raises(TransformArgumentError, match=r"`argnums` of `nnx\.grad` holds a `DiffState`"):
            nnx.grad(square, argnums=nnx.DiffState(0, nnx.Param), **mode)(Net())

    def test_it_is_a_value(self) -> None:
        assert nnx.DiffState(0, nnx.Param) == nnx.DiffState(0, nnx.Param) != nnx.DiffState(0, ...)
        assert len({nnx.DiffState(0, nnx.Param), nnx.DiffState(0, nnx.Param)}) == 1


class TestIntegers:
    @without_updates
    @pytest.mark.parametrize("make", [Counted, lambda: nnx.Dict(r=nnx.Rngs(0))])
    def test_are_refused(self, mode: Any, make: Any) -> None:
        message = r"`nnx\.grad` cannot differentiate with respect to `args\[0\]\.\S+`, whose dtype is"
        with pytest.raises(TransformTypeError, match=message):
            nnx.grad(lambda m: 1.0, **mode)(make())

    def test_are_no_params(self) -> None:
        assert numbers(nnx.grad(square)(Counted())) == {"w": 4.0}
        with pytest.raises(TransformTypeError, match=r"args\[0\]\.n`, whose dtype is int32"):
            nnx.grad(square, argnums=nnx.DiffState(0, ...))(Counted())

    @without_updates
    def test_are_allowed(self, mode: Any) -> None:
        gradient = nnx.grad(square, allow_int=True, **mode)(Counted())
        assert gradient.n.get_value().dtype == jax.dtypes.float0
        assert float(gradient.w.get_value()) == 4.0


class TestResults:
    @every_mode
    def test_forms(self, mode: Any) -> None:
        value, gradient = nnx.value_and_grad(square, **mode)(Net())
        assert (float(value), numbers(gradient)["w"]) == (4.0, 4.0)

        def with_aux(m: Any) -> Any:
            return m.w**2, {"twice": m.w * 2}

        gradient, aux = nnx.grad(with_aux, has_aux=True, **mode)(Net())
        assert (numbers(gradient)["w"], float(aux["twice"])) == (4.0, 4.0)
        (value, aux), gradient = nnx.value_and_grad(with_aux, has_aux=True, **mode)(Net())
        assert (float(value), float(aux["twice"]), numbers(gradient)["w"]) == (4.0, 4.0, 4.0)

    @every_mode
    def test_decorators(self, mode: Any) -> None:
        @nnx.grad(argnums=1, **mode)
        def of_x(m: Any, x: Any) -> Any:
            return m.w * x

        class Layer(Net):
            @nnx.value_and_grad(argnums=1, **mode)
            def with_slope(self, x: Any) -> Any:
                return self(x)

        layer = Layer()
        assert float(of_x(Net(), THREE)) == 2.0
        assert [float(item) for item in layer.with_slope(THREE)] == [12.0, 4.0]
        assert numbers(layer)["b"] == 2.0

    @every_mode
    def test_a_new_module_beside_the_loss(self, mode: Any) -> None:
        _, (new, variable) = nnx.grad(lambda m: (m.w**2, (Net(m.w * 3), nnx.Cache(m.w * 5))), has_aux=True, **mode)(
            Net()
        )
        assert (type(new), numbers(new)["w"], float(variable.get_value())) == (Net, 6.0, 10.0)

    def test_an_input_beside_the_loss(self) -> None:
        net = Net()
        _, (same, w) = nnx.grad(lambda m: (m.w**2, (m, m.w)), has_aux=True)(net)
        assert same is net
        assert w is net.w

    @without_updates
    def test_an_input_beside_the_loss_is_refused(self, mode: Any) -> None:
        with pytest.raises(GraphError, match=r"under `nnx\.grad` returns `args\[0\]\.w`, a `Param` of its inputs"):
            nnx.grad(lambda m: (m.w**2, m.w), has_aux=True, **mode)(Net())

    @every_mode
    @pytest.mark.parametrize("result", [jnp.ones(2), None, "a", (1.0, 2.0), jnp.array(1)])
    def test_that_are_no_losses(self, mode: Any, result: Any) -> None:
        with pytest.raises(TypeError, match=r"scalar|real-valued|real- or complex|not a valid JAX type|Gradient only"):
            nnx.grad(lambda m: result, **mode)(Net())

    @every_mode
    @pytest.mark.parametrize("result", [1.0, (1.0, 2.0, 3.0), [1.0, 2.0]])
    def test_that_are_no_pairs(self, mode: Any, result: Any) -> None:
        with pytest.raises(TransformArgumentError, match=r"under `nnx\.grad` with `has_aux=True` returns"):
            nnx.grad(lambda m: result, has_aux=True, **mode)(Net())

    @every_mode
    def test_holomorphic(self, mode: Any) -> None:
        gradient = nnx.grad(lambda z: z**2, holomorphic=True, **mode)(jnp.array(1 + 2j))
        assert complex(gradient) == 2 + 4j
        with pytest.raises(TypeError, match="complex"):
            nnx.grad(square, holomorphic=True, **mode)(Net())

    def test_reduce_axes(self) -> None:
        with pytest.raises(NotImplementedError, match="reduce_axes"):
            nnx.grad(square, reduce_axes=("batch",))


class TestWrites:
    @every_mode
    def test_come_back_once(self, mode: Any) -> None:
        net = Net()
        traces = []

        def f(m: Any) -> Any:
            traces.append(1)
            return m(THREE)

        assert numbers(nnx.grad(f, **mode)(net))["w"] == 12.0
        assert (numbers(net), len(traces)) == ({"w": 2.0, "b": 2.0}, 1)

    @every_mode
    def test_the_derivative_is_with_respect_to_what_came_in(self, mode: Any) -> None:
        net = Net()

        def f(m: Any) -> Any:
            m.w[...] = m.w * 2
            return m.w**2

        assert numbers(nnx.grad(f, **mode)(net))["w"] == 16.0
        assert numbers(net)["w"] == 4.0

    @every_mode
    def test_metadata(self, mode: Any) -> None:
        net = Net()

        def f(m: Any) -> Any:
            m.b.set_metadata("seen", True)
            return m.w**2

        nnx.grad(f, **mode)(net)
        assert net.b.get_metadata("seen") is True

    def test_edits_of_the_structure(self) -> None:
        net = Net()

        def f(m: Any) -> Any:
            m.extra = nnx.Param(m.w * 2)
            m.name = "other"
            del m.b
            return m.extra**2

        assert numbers(nnx.grad(f)(net)) == {"w": 16.0}
        assert (numbers(net), net.name) == ({"w": 2.0, "extra": 4.0}, "other")

    @every_mode
    def test_nothing_is_changed_by_a_function_that_raises(self, mode: Any) -> None:
        net = Net()
        before = [net.w.get_raw_value(), net.b.get_raw_value()]

        def f(m: Any) -> Any:
            m(THREE)
            m.extra = nnx.Param(m.w * 1)
            raise KeyError("later")

        with pytest.raises(KeyError, match="later"):
            nnx.grad(f, **mode)(net)
        assert [net.w.get_raw_value(), net.b.get_raw_value()] == before
        assert not hasattr(net, "extra")


class TestCaptures:
    @every_mode
    @pytest.mark.parametrize("route", ["closure", "partial", "method", "instance", "helper", "default"])
    def test_are_constants_that_can_be_written(self, mode: Any, route: str) -> None:
        net = Net()

        def helper(x: Any) -> Any:
            return net(x)

        functions: dict[str, Callable[..., Any]] = {
            "closure": lambda x: net(x),
            "partial": functools.partial(Net.__call__, net),
            "method": net.__call__,
            "instance": net,
            "helper": lambda x: helper(x),
            "default": lambda x, m=net: m(x),
        }
        assert float(nnx.grad(functions[route], **mode)(THREE)) == 4.0
        assert numbers(net) == {"w": 2.0, "b": 2.0}

    @every_mode
    def test_what_is_passed_as_well_is_differentiated(self, mode: Any) -> None:
        net = Net()
        assert numbers(nnx.grad(lambda m: m.w * net.w, **mode)(net))["w"] == 4.0


# ---- against finite differences


def finite_difference(f: Callable[[float], float], at: float, step: float = 1e-2) -> float:
    """The derivative, to the fourth order."""
    return (8 * (f(at + step) - f(at - step)) - (f(at + 2 * step) - f(at - 2 * step))) / (12 * step)


WRAPPERS: dict[str, Callable[[Any, Any], Any]] = {
    "jit": lambda f, mode: nnx.jit(f, **mode),
    "remat": lambda f, mode: nnx.remat(f, **mode),
    "vmap": lambda f, mode: lambda m, x: nnx.vmap(f, in_axes=(None, 0), **mode)(m, jnp.stack([x, x])).mean(),
    "scan": lambda f, mode: (
        lambda m, x: nnx.scan(
            lambda c, _: (f(m, c), None), length=1, in_axes=(nnx.Carry, None), out_axes=(nnx.Carry, 0), **mode
        )(x, None)[0]
    ),
    "cond": lambda f, mode: lambda m, x: nnx.cond(x > 0, lambda m, x: f(m, x), lambda m, x: x, m, x, **mode),
    "vjp": lambda f, mode: lambda m, x: nnx.vjp(f, m, x, **mode)[0],
}


@every_mode
@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(WRAPPERS, repeat=2)))
def test_combinations_agree_with_finite_differences(mode: Any, outer: str, inner: str) -> None:
    def f(m: Any, x: Any) -> Any:
        return jnp.sin(m.w * x) + m.w * m.b

    wrapped = WRAPPERS[outer](WRAPPERS[inner](f, mode), mode)
    of_net, of_x = nnx.grad(wrapped, argnums=(0, 1), **mode)(Net(0.7, 0.3), jnp.array(1.1))
    by_w = finite_difference(lambda w: float(np.sin(w * 1.1) + w * 0.3), 0.7)
    by_x = finite_difference(lambda x: float(np.sin(0.7 * x) + 0.7 * 0.3), 1.1)
    np.testing.assert_allclose([float(of_net.w.get_value()), float(of_x)], [by_w, by_x], rtol=1e-4)


@given(
    st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.sampled_from(["default", "without updates"]),
)
def test_gradients_of_shared_variables_are_sums_over_their_uses(ws: list[float], uses: list[int], mode: str) -> None:
    """A product of Variables, some used several times."""
    variables = [nnx.Param(jnp.array(w)) for w in ws]
    model = nnx.List([variables[use % len(ws)] for use in uses])

    def loss(model: Any) -> Any:
        return sum(jnp.sin(v * (number + 1)) for number, v in enumerate(model))

    gradient = nnx.grad(loss, **MODES[mode])(model)
    seen = set()
    for place, variable in enumerate(model):
        if id(variable) not in seen:
            seen.add(id(variable))
            w = float(variable.get_value())
            expected = sum((number + 1) * np.cos(w * (number + 1)) for number, v in enumerate(model) if v is variable)
            np.testing.assert_allclose(gradient[place].get_value(), expected, rtol=1e-4, atol=1e-4)
