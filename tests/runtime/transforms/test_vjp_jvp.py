"""``nnx.vjp`` and ``nnx.jvp``: tangents and cotangents of objects, in every mode."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from modes import MODES, every_mode, in_graph_mode, without_updates
from nets import values
from nnx_rules.errors import GraphError, TransformArgumentError, TransformTypeError

ONE, THREE = jnp.array(1.0), jnp.array(3.0)


class Net(nnx.Module):
    def __init__(self, w: Any = 2.0, b: Any = 1.0) -> None:
        self.w = nnx.Param(jnp.asarray(w))
        self.b = nnx.BatchStat(jnp.asarray(b))

    def __call__(self, x: Any) -> Any:
        return self.w * x


class Counted(Net):
    def __init__(self) -> None:
        super().__init__()
        self.n = nnx.Variable(jnp.array(0))


def times(m: Any, x: Any) -> Any:
    return m.w * x


class TestVjp:
    @every_mode
    def test_cotangents_have_the_types_of_the_arguments(self, mode: Any) -> None:
        net = Net()
        out, pullback = nnx.vjp(times, net, THREE, **mode)
        of_net, of_x = pullback(ONE)
        assert (float(out), values(of_net), float(of_x)) == (6.0, {"w": 3.0, "b": 0.0}, 2.0)
        assert (type(of_net), type(of_net.w), type(of_net.b)) == (Net, nnx.Param, nnx.BatchStat)
        assert of_net is not net
        assert values(net) == {"w": 2.0, "b": 1.0}

    @every_mode
    @pytest.mark.parametrize(
        ("f", "primal", "read"),
        [
            (lambda v: v * 2, nnx.Param(jnp.array(2.0)), lambda c: c.get_value()),
            (lambda v: v * 2, nnx.BatchStat(jnp.array(2.0)), lambda c: c.get_value()),
            (lambda s: s["w"] * 2, nnx.state(Net()), lambda c: c["w"].get_value()),
            (lambda d: d["a"].w + d["b"][0], {"a": Net(), "b": [ONE]}, lambda c: c["a"].w.get_value() + c["b"][0]),
            (lambda v: v["x"] * 2, nnx.Variable({"x": jnp.array(2.0)}), lambda c: c.get_value()["x"]),
        ],
    )
    def test_kinds_of_arguments(self, mode: Any, f: Any, primal: Any, read: Any) -> None:
        _, pullback = nnx.vjp(f, primal, **mode)
        (cotangent,) = pullback(ONE)
        assert type(cotangent) is type(primal)
        assert float(read(cotangent)) == 2.0

    @every_mode
    def test_integers_have_cotangents_without_content(self, mode: Any) -> None:
        _, pullback = nnx.vjp(times, Counted(), 3, **mode)
        of_net, of_x = pullback(ONE)
        assert of_net.n.get_value().dtype == jax.dtypes.float0
        assert of_x.dtype == jax.dtypes.float0

    @every_mode
    def test_writes_come_back_once_and_at_once(self, mode: Any) -> None:
        net, calls = Net(), []

        def f(m: Any, x: Any) -> Any:
            calls.append(1)
            m.b[...] += 1
            return m.w * x * m.b

        out, pullback = nnx.vjp(f, net, THREE, **mode)
        assert values(net) == {"w": 2.0, "b": 2.0}
        assert (float(out), values(pullback(ONE)[0])) == (12.0, {"w": 6.0, "b": 6.0})
        assert values(pullback(jnp.array(2.0))[0]) == {"w": 12.0, "b": 12.0}
        assert (values(net)["b"], len(calls)) == (2.0, 1)

    @every_mode
    def test_aux(self, mode: Any) -> None:
        out, pullback, aux = nnx.vjp(lambda m, x: (m.w * x, {"a": m.b * 5}), Net(), THREE, has_aux=True, **mode)
        assert (float(out), float(aux["a"]), float(pullback(ONE)[1])) == (6.0, 5.0, 2.0)

    @every_mode
    def test_aux_is_a_pair(self, mode: Any) -> None:
        message = r"under `nnx\.vjp` with `has_aux=True` returns an array of shape \(\) instead of a pair"
        with pytest.raises(TransformArgumentError, match=message):
            nnx.vjp(times, Net(), THREE, has_aux=True, **mode)

    @every_mode
    def test_a_new_module_as_result(self, mode: Any) -> None:
        out, pullback = nnx.vjp(lambda m: Net(m.w * 2, m.b * 1), Net(), **mode)
        assert (type(out), values(out)) == (Net, {"w": 4.0, "b": 1.0})
        (of_net,) = pullback(Net(5.0, 7.0))
        assert values(of_net) == {"w": 10.0, "b": 7.0}

    def test_a_returned_input_is_itself(self) -> None:
        net = Net()

        def f(m: Any) -> Any:
            m.w[...] *= 3
            return m

        out, pullback = nnx.vjp(f, net)
        assert out is net
        assert values(pullback(Net(1.0, 10.0))[0]) == {"w": 3.0, "b": 10.0}

    @without_updates
    def test_a_returned_input_is_refused(self, mode: Any) -> None:
        with pytest.raises(GraphError, match=r"under `nnx\.vjp` returns `args\[0\]\.b`, a `BatchStat` of its inputs"):
            nnx.vjp(lambda m: m, Net(), **mode)

    @in_graph_mode
    def test_an_argument_that_is_given_twice_has_one_cotangent(self, mode: Any) -> None:
        net = Net()
        _, pullback = nnx.vjp(lambda a, b: a.w * b.w, net, net, **mode)
        first, second = pullback(ONE)
        assert first is second
        assert values(first) == {"w": 4.0, "b": 0.0}

    def test_an_argument_that_is_given_twice_is_no_tree(self) -> None:
        net = Net()
        with pytest.raises(GraphError, match=r"args\[0\]"):
            nnx.vjp(lambda a, b: a.w * b.w, net, net, graph=False)

    @every_mode
    def test_forms(self, mode: Any) -> None:
        for transformed in (nnx.vjp(times, **mode), nnx.vjp(**mode)(times), nnx.vjp(has_aux=False, **mode)(times)):
            out, pullback = transformed(Net(), THREE)
            assert (float(out), float(pullback(ONE)[1])) == (6.0, 2.0)

    @every_mode
    def test_keyword_arguments(self, mode: Any) -> None:
        @nnx.vjp(**mode)
        def f(m: Any, x: Any, *, scale: Any) -> Any:
            return m.w * x * scale

        out, pullback = f(Net(), x=THREE, scale=2.0)
        assert float(out) == 12.0
        assert [float(cotangent) for cotangent in pullback(ONE)[1:]] == [4.0]

    @every_mode
    def test_structure_of_the_cotangent(self, mode: Any) -> None:
        out, pullback = nnx.vjp(lambda m: {"a": m.w * 2, "n": Net(m.w * 1, m.b * 1)}, Net(), **mode)
        del out
        message = r"given to what `nnx\.vjp` returned does not fit the result: "
        with pytest.raises(TransformArgumentError, match=message + r"it has nothing for `result\.n\.b`"):
            pullback({"a": ONE, "n": nnx.Param(ONE)})
        with pytest.raises(TransformArgumentError, match=message + r"it has nothing for `result\.n\.b`"):
            pullback({"a": ONE})
        with pytest.raises(TransformArgumentError, match=message + r"there is no `result\.c`"):
            pullback({"a": ONE, "n": Net(), "c": ONE})
        with pytest.raises(
            TransformArgumentError, match=message + r"for `result\.a` it is int32\[\], and must be float32\[\]"
        ):
            pullback({"a": jnp.array(1), "n": Net()})
        with pytest.raises(
            TransformArgumentError, match=message + r"for `result\.n\.w` it is float32\[3\], and must be float32\[\]"
        ):
            pullback({"a": ONE, "n": Net(jnp.zeros(3))})

    def test_reduce_axes(self) -> None:
        with pytest.raises(NotImplementedError, match="reduce_axes"):
            nnx.vjp(times, Net(), THREE, reduce_axes=("a",))

    @every_mode
    def test_nothing_is_changed_by_a_function_that_raises(self, mode: Any) -> None:
        net = Net()
        before = [net.w.get_raw_value(), net.b.get_raw_value()]

        def f(m: Any) -> Any:
            m.b[...] += m.w
            raise KeyError("later")

        with pytest.raises(KeyError, match="later"):
            nnx.vjp(f, net, **mode)
        assert [net.w.get_raw_value(), net.b.get_raw_value()] == before

    def test_edits_come_back(self) -> None:
        net = Net()

        def f(m: Any) -> Any:
            m.extra = nnx.Param(m.w * 2)
            m.label = "new"
            return m.extra * 2

        _, pullback = nnx.vjp(f, net)
        assert (float(net.extra.get_value()), net.label) == (4.0, "new")
        assert values(pullback(ONE)[0]) == {"w": 4.0, "b": 0.0}


class TestJvp:
    @every_mode
    def test_tangents_have_the_types_of_the_arguments(self, mode: Any) -> None:
        net, direction = Net(), Net(1.0)
        out, tangent = nnx.jvp(times, (net, THREE), (direction, jnp.array(0.0)), **mode)
        assert (float(out), float(tangent)) == (6.0, 3.0)
        assert (values(net), values(direction)) == ({"w": 2.0, "b": 1.0}, {"w": 1.0, "b": 1.0})

    @every_mode
    def test_forms(self, mode: Any) -> None:
        for transformed in (nnx.jvp(times, **mode), nnx.jvp(**mode)(times)):
            assert float(transformed([Net(), THREE], [Net(1.0), ONE])[1]) == 5.0

    @every_mode
    def test_a_module_may_be_its_own_tangent(self, mode: Any) -> None:
        net = Net()
        assert float(nnx.jvp(lambda m: m.w**2, (net,), (net,), **mode)[1]) == 8.0

    @every_mode
    def test_writes_come_back_to_the_primals_only(self, mode: Any) -> None:
        net, direction = Net(), Net(1.0)

        def f(m: Any) -> Any:
            m.b[...] += m.w
            return m.b * 2

        _, tangent = nnx.jvp(f, (net,), (direction,), **mode)
        assert (float(tangent), values(net), values(direction)["b"]) == (4.0, {"w": 2.0, "b": 3.0}, 1.0)

    @every_mode
    def test_aux_and_a_module_as_result(self, mode: Any) -> None:
        out, tangent, aux = nnx.jvp(
            lambda m: (Net(m.w * 2, 1.0), m.b * 7), (Net(),), (Net(1.0, 0.0),), has_aux=True, **mode
        )
        assert (values(out), values(tangent), float(aux)) == ({"w": 4.0, "b": 1.0}, {"w": 2.0, "b": 0.0}, 7.0)

    def test_a_returned_input_has_a_tangent(self) -> None:
        net = Net()
        out, tangent = nnx.jvp(lambda m: m, (net,), (Net(5.0, 6.0),))
        assert out is net
        assert (tangent is net, values(tangent)) == (False, {"w": 5.0, "b": 6.0})

    @every_mode
    def test_variables_and_arrays(self, mode: Any) -> None:
        v, x = nnx.Param(jnp.array(2.0)), [THREE]
        _, tangent = nnx.jvp(lambda x, v: v * x[0], (x, v), ([ONE], nnx.Param(jnp.array(10.0))), **mode)
        assert float(tangent) == 32.0

    @every_mode
    def test_tangents_of_integers(self, mode: Any) -> None:
        tangent = Counted()
        with pytest.raises(
            TransformTypeError, match=r"for `primals\[0\]\.n` it is int32\[\], and must be \[\('float0', 'V'\)\]\[\]"
        ):
            nnx.jvp(lambda m: m.w * 2, (Counted(),), (tangent,), **mode)
        tangent.n.set_value(np.zeros((), jax.dtypes.float0))
        assert float(nnx.jvp(lambda m: m.w * m.n, (Counted(),), (tangent,), **mode)[1]) == 0.0

    @every_mode
    @pytest.mark.parametrize(
        ("primals", "tangents", "problem"),
        [
            (Net(), (Net(),), r"`primals` is a Net, and must be a tuple or a list"),
            ((Net(),), Net(), r"`tangents` is a Net, and must be a tuple or a list"),
            ((Net(),), (nnx.state(Net()),), r"the containers or objects are of other types"),
            ((nnx.Param(ONE),), (ONE,), r"the containers or objects are of other types"),
            ((Net(),), (Net(), ONE), r"there is no `primals\[1\]`"),
            ((Net(), ONE), (Net(),), r"it has nothing for `primals\[1\]`"),
            ((Counted(),), (Net(),), r"it has nothing for `primals\[0\]\.n`"),
            ((Net(),), (Net(jnp.ones(2)),), r"for `primals\[0\]\.w` it is float32\[2\], and must be float32\[\]"),
        ],
    )
    def test_tangents_that_do_not_fit(self, mode: Any, primals: Any, tangents: Any, problem: str) -> None:
        message = r"the tangents given to `nnx\.jvp` do not fit the arguments: " + problem
        with pytest.raises(TransformTypeError, match=message):
            nnx.jvp(lambda *args: 1.0, primals, tangents, **mode)

    @in_graph_mode
    def test_shared_arguments_share_tangents(self, mode: Any) -> None:
        net, direction = Net(), Net(1.0)
        assert float(nnx.jvp(lambda a, b: a.w * b.w, (net, net), (direction, direction), **mode)[1]) == 4.0
        with pytest.raises(TransformTypeError, match=r"there is no `primals\[1\]\.b`"):
            nnx.jvp(lambda a, b: a.w * b.w, (net, net), (direction, Net(1.0)), **mode)


class TestCaptures:
    """What is captured is a constant to the derivative, and its writes come back."""

    @every_mode
    @pytest.mark.parametrize("route", ["closure", "partial", "method", "instance", "helper"])
    def test_routes(self, mode: Any, route: str) -> None:
        class Layer(Net):
            def __call__(self, x: Any) -> Any:
                self.b[...] += 1
                return self.w * x * self.b

            def named(self, x: Any) -> Any:
                return self(x)

        net = Layer()

        def helper(x: Any) -> Any:
            return net(x)

        functions = {
            "closure": lambda x: net(x),
            "partial": functools.partial(Layer.__call__, net),
            "method": net.named,
            "instance": net,
            "helper": lambda x: helper(x),
        }
        out, pullback = nnx.vjp(functions[route], THREE, **mode)
        assert (float(out), [float(c) for c in pullback(ONE)]) == (12.0, [4.0])
        assert values(net) == {"w": 2.0, "b": 2.0}
        out, tangent = nnx.jvp(functions[route], (THREE,), (ONE,), **mode)
        assert (float(out), float(tangent)) == (18.0, 6.0)
        assert values(net) == {"w": 2.0, "b": 3.0}

    @every_mode
    def test_an_argument_that_is_captured_as_well(self, mode: Any) -> None:
        net = Net()
        _, pullback = nnx.vjp(lambda m: m.w * net.w, net, **mode)
        assert values(pullback(ONE)[0]) == {"w": 4.0, "b": 0.0}

    @every_mode
    def test_variables_before_captured_modules(self, mode: Any) -> None:
        net, v = Net(), nnx.Param(jnp.array(5.0))
        _, tangent = nnx.jvp(lambda v, x: net(v * x), (v, ONE), (nnx.Param(jnp.array(1.0)), jnp.array(10.0)), **mode)
        assert float(tangent) == 2.0 * (1 + 50)

    @every_mode
    def test_a_variable_of_a_captured_module(self, mode: Any) -> None:
        """It is met within the module, before the other argument."""
        net, v = Net(), nnx.Param(jnp.array(5.0))
        tangents = nnx.Param(jnp.array(1.0)), nnx.Param(jnp.array(10.0))
        _, tangent = nnx.jvp(lambda v, w: v * net.w, (v, net.w), tangents, **mode)
        assert float(tangent) == 1.0 * 2 + 5 * 10.0

    @every_mode
    def test_on_a_method(self, mode: Any) -> None:
        class Layer(Net):
            @nnx.vjp(**mode)
            def pulled(self, x: Any) -> Any:
                return self.w * x

        out, pullback = Layer().pulled(THREE)
        of_self, of_x = pullback(ONE)
        assert (float(out), values(of_self), float(of_x)) == (6.0, {"w": 3.0, "b": 0.0}, 2.0)


class TestNesting:
    @every_mode
    def test_under_jit(self, mode: Any) -> None:
        @nnx.jit(**mode)
        def f(m: Any, x: Any) -> Any:
            out, pullback = nnx.vjp(times, m, x, **mode)
            _, tangent = nnx.jvp(times, (m, x), (m, x), **mode)
            of_m, _ = pullback(out)
            return out, of_m.w * 1, tangent

        assert [float(item) for item in f(Net(), THREE)] == [6.0, 18.0, 12.0]

    @every_mode
    def test_second_derivative(self, mode: Any) -> None:
        def first(m: Any) -> Any:
            _, pullback = nnx.vjp(lambda m: m.w**3, m, **mode)
            return pullback(ONE)[0].w * 1

        _, tangent = nnx.jvp(first, (Net(),), (Net(1.0),), **mode)
        assert float(tangent) == 6 * 2.0

    @every_mode
    def test_over_jit(self, mode: Any) -> None:
        net = Net()

        @nnx.jit(**mode)
        def f(m: Any, x: Any) -> Any:
            m.b[...] += 1
            return m.w * x * m.b

        _, pullback = nnx.vjp(f, net, THREE, **mode)
        assert values(pullback(ONE)[0]) == {"w": 6.0, "b": 6.0}
        assert values(net)["b"] == 2.0

    def test_a_pullback_outlives_edits_of_the_model(self) -> None:
        net = Net()
        _, pullback = nnx.vjp(times, net, THREE)
        net.more = nnx.Param(ONE)
        del net.b
        assert values(pullback(ONE)[0]) == {"w": 3.0, "b": 0.0}


@given(
    st.lists(st.floats(-2, 2, width=32), min_size=2, max_size=2),
    st.lists(st.floats(-2, 2, width=32), min_size=2, max_size=2),
    st.sampled_from(sorted(MODES)),
)
def test_vjp_is_the_transpose_of_jvp(at: list[float], direction: list[float], mode: str) -> None:
    """⟨c, J t⟩ = ⟨Jᵀ c, t⟩."""

    def f(m: Any, x: Any) -> Any:
        return jnp.stack([jnp.sin(m.w) * x, m.w * m.b])

    primals = Net(at[0], at[1]), THREE
    tangents = Net(direction[0], direction[1]), ONE
    cotangent = jnp.array([0.5, -1.5])
    _, tangent = nnx.jvp(f, primals, tangents, **MODES[mode])
    _, pullback = nnx.vjp(f, *primals, **MODES[mode])
    of_net, of_x = pullback(cotangent)
    transposed = of_net.w * direction[0] + of_net.b * direction[1] + of_x
    np.testing.assert_allclose(jnp.vdot(cotangent, tangent), transposed, rtol=1e-4, atol=1e-5)
