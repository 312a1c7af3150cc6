"""``nnx.custom_vjp``: the protocol of each mode, captures, writes, and rules that do not fit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx
from modes import MODES, every_mode, without_updates
from nets import values
from nnx_rules.errors import GraphError, TransformArgumentError, TransformTypeError

ONE, THREE = jnp.array(1.0), jnp.array(3.0)


class Net(nnx.Module):
    def __init__(self, w: Any = 2.0, b: Any = 1.0) -> None:
        self.w = nnx.Param(jnp.asarray(w))
        self.b = nnx.BatchStat(jnp.asarray(b))


def split(mode: Any, g: Any) -> Any:
    """The cotangent of the result, as the backward rule of a mode gets it."""
    return g if mode else g[1]


def like(mode: Any, w: Any, b: Any = 0.0) -> Any:
    """A cotangent of a `Net`, as the backward rule of a mode returns it."""
    return Net(w, b) if mode else nnx.state(Net(w, b))


def custom(mode: Any, f: Any, fwd: Any, bwd: Any, **options: Any) -> Any:
    function = nnx.custom_vjp(f, **options, **mode)
    function.defvjp(fwd, bwd)
    return function


def grad_of(mode: Any, f: Any, *args: Any, argnums: Any = 0) -> Any:
    return nnx.grad(f, argnums=argnums, **mode)(*args)


class TestProtocol:
    @every_mode
    def test_rules_decide(self, mode: Any) -> None:
        def f(m: Any, x: Any) -> Any:
            return m.w * x

        def bwd(residuals: Any, g: Any) -> Any:
            w, x = residuals
            assert (float(w), float(x)) == (2.0, 3.0)
            g = split(mode, g)
            return like(mode, g * 100, g * 0), g * 7

        f = custom(mode, f, lambda m, x: (m.w * x, (m.w[...], x)), bwd)
        assert float(f(Net(), THREE)) == 6.0
        of_net, of_x = grad_of(mode, f, Net(), THREE, argnums=(0, 1))
        assert (float(of_net.w.get_value()), float(of_x)) == (100.0, 7.0)

    def test_cotangents_of_the_inputs(self) -> None:
        seen: list[Any] = []

        def f(ms: Any, v: Any, x: Any) -> Any:
            ms[0].b[...] += 1
            return ms[0].w * ms[1].w * v * x

        def bwd(_: Any, g: Any) -> Any:
            seen.append(g)
            return g[0]

        f = custom({}, f, lambda *args: (f_original(*args), ()), bwd)
        f_original = f.__wrapped__
        nets = [Net(), Net()]
        grads = nnx.grad(lambda ms, v, x: f(ms, v, x) + 5 * ms[0].b, argnums=(0, 1, 2))(
            nets, nnx.Param(jnp.array(3.0)), ONE
        )
        ((of_nets, of_v, of_x), of_result) = seen[0]
        assert [type(item) for item in of_nets] == [nnx.State, nnx.State]
        assert [float(of_nets[0][key].get_value()) for key in "bw"] == [5.0, 0.0]
        assert (type(of_nets[0]["b"]), type(of_v), float(of_v.get_value())) == (nnx.BatchStat, nnx.Param, 0.0)
        assert of_x is None
        assert float(of_result) == 1.0
        assert [float(grads[0][0]["w"].get_value()), float(grads[1].get_value()), float(grads[2])] == [0.0] * 3
        assert values(nets[0])["b"] == 2.0

    def test_integers_have_cotangents_without_content(self) -> None:
        def bwd(_: Any, g: Any) -> Any:
            (of_net, _), of_result = g
            assert of_net["n"].get_value().dtype == jax.dtypes.float0
            return jax.tree.map(lambda leaf: leaf, of_net), of_result * 9

        f = custom({}, lambda m, x: m.w * x, lambda m, x: (m.w * x, ()), bwd)
        net = Net()
        net.n = nnx.Variable(jnp.array(0))
        assert float(grad_of({}, f, net, ONE, argnums=1)) == 9.0

    @every_mode
    def test_none_is_zero(self, mode: Any) -> None:
        f = custom(mode, lambda m, x: m.w * x, lambda m, x: (m.w * x, ()), lambda r, g: (None, split(mode, g) * 7))
        of_net, of_x = grad_of(mode, f, Net(), THREE, argnums=(0, 1))
        assert (float(of_net.w.get_value()), float(of_x)) == (0.0, 7.0)

    @without_updates
    def test_a_module_as_result(self, mode: Any) -> None:
        def bwd(_: Any, g: Any) -> Any:
            assert type(g) is Net
            return (g,)

        f = custom(mode, lambda m: Net(m.w * 2, m.b * 1), lambda m: (Net(m.w * 2, m.b * 1), ()), bwd)
        assert values(f(Net())) == {"w": 4.0, "b": 1.0}
        assert values(grad_of(mode, lambda m: f(m).w * 3, Net())) == {"w": 3.0, "b": 0.0}

    def test_a_module_as_result_in_the_default_mode(self) -> None:
        def bwd(_: Any, g: Any) -> Any:
            (_,), (of_new, of_same, of_array) = g
            assert (type(of_new), len(of_same), float(of_array)) == (nnx.State, 0, 2.0)
            return (of_new,)

        def f(m: Any) -> Any:
            return Net(m.w * 2, m.b * 1), m, m.w * 5

        f = custom({}, f, lambda m: (f_original(m), ()), bwd)
        f_original = f.__wrapped__
        net = Net()
        assert f(net)[1] is net

        def loss(m: Any) -> Any:
            new, same, product = f(m)
            return new.w * 3 + same.w * 5 + product * 2

        assert float(grad_of({}, loss, net)["w"].get_value()) == 3.0 + 5.0

    @without_updates
    def test_returned_inputs_are_refused(self, mode: Any) -> None:
        f = custom(mode, lambda m: m.w, lambda m: (m.w, ()), lambda r, g: (None,))
        with pytest.raises(
            GraphError, match=r"under `nnx\.custom_vjp` returns `args\[0\]\.w`, a `Param` of its inputs"
        ):
            f(Net())

    @every_mode
    def test_residuals_may_hold_modules(self, mode: Any) -> None:
        def f(m: Any, x: Any) -> Any:
            m.b[...] += 1
            return m.w * x * m.b

        def bwd(residuals: Any, g: Any) -> Any:
            m, name = residuals["m"], residuals["x"]
            assert (type(m), float(m.b.get_value()), float(name)) == (Net, 2.0, 3.0)
            g = split(mode, g)
            return like(mode, g * m.w * 100), g

        f = custom(mode, f, lambda m, x: (f_original(m, x), {"m": m, "x": x}), bwd)
        f_original = f.__wrapped__
        net = Net()
        assert float(grad_of(mode, f, net, THREE).w.get_value()) == 200.0
        assert values(net) == {"w": 2.0, "b": 2.0}

    @every_mode
    def test_objects_or_states_are_taken_in_every_mode(self, mode: Any) -> None:
        for cotangent in (Net(5.0, 0.0), nnx.state(Net(5.0, 0.0))):
            f = custom(mode, lambda m: m.w * 1, lambda m: (m.w * 1, ()), lambda r, g, c=cotangent: (nnx.clone(c),))
            assert float(grad_of(mode, f, Net()).w.get_value()) == 5.0

    @pytest.mark.parametrize("mode", [MODES["default"], MODES["without updates"]])
    def test_an_argument_that_is_given_twice_adds_up(self, mode: Any) -> None:
        def bwd(_: Any, g: Any) -> Any:
            return like(mode, 3.0), like(mode, 4.0)

        f = custom(mode, lambda a, b: a.w * b.w, lambda a, b: (a.w * b.w, ()), bwd)
        assert float(grad_of(mode, lambda m: f(m, m), Net()).w.get_value()) == 7.0

    def test_cotangents_of_an_input_that_is_given_twice(self) -> None:
        """They are in the first State only, so handing them on counts them once."""

        def f(a: Any, b: Any) -> Any:
            a.b[...] = a.w * 3
            return a.w * b.w

        def bwd(_: Any, g: Any) -> Any:
            (of_a, of_b), _ = g
            assert (set(of_a), set(of_b)) == ({"w", "b"}, set())
            return of_a, of_b

        f = custom({}, f, lambda a, b: (f_original(a, b), ()), bwd)
        f_original = f.__wrapped__
        net = Net()
        gradient = grad_of({}, lambda m: f(m, m) + 5 * m.b, net, argnums=nnx.DiffState(0, ...))
        assert values_of_all(gradient) == {"w": 0.0, "b": 5.0}


class TestWrites:
    @every_mode
    def test_of_the_function_and_of_the_forward_rule(self, mode: Any) -> None:
        def f(m: Any, x: Any) -> Any:
            m.b[...] += 1
            return m.w * x

        def fwd(m: Any, x: Any) -> Any:
            m.b[...] += 5
            return m.w * x, ()

        f = custom(mode, f, fwd, lambda r, g: (None, split(mode, g)))
        net = Net()
        f(net, ONE)
        assert values(net)["b"] == 2.0
        grad_of(mode, f, net, ONE, argnums=1)
        assert values(net)["b"] == 7.0

    @every_mode
    def test_gradient_through_what_was_written(self, mode: Any) -> None:
        """The cotangent of what a Variable was set to reaches the rule in the default mode."""

        def f(m: Any) -> Any:
            m.b[...] = m.w * 3
            return m.w * 1

        def bwd(_: Any, g: Any) -> Any:
            if mode:
                return (Net(g, 0.0),)
            ((of_net,), of_result) = g
            return (nnx.state(Net(of_result + 3 * of_net["b"], 0.0)),)

        f = custom(mode, f, lambda m: (f_original(m), ()), bwd)
        f_original = f.__wrapped__

        def loss(m: Any) -> Any:
            return f(m) + 10 * m.b

        assert float(grad_of(mode, loss, Net()).w.get_value()) == (1.0 if mode else 31.0)

    def test_edits_of_the_structure(self) -> None:
        def f(m: Any) -> Any:
            m.extra = nnx.Param(m.w * 2)
            return m.w * 1

        f = custom({}, f, lambda m: (f_original(m), ()), lambda r, g: (like({}, g[1] * 4),))
        f_original = f.__wrapped__
        net = Net()
        f(net)
        assert float(net.extra.get_value()) == 4.0
        del net.extra
        _, pullback = nnx.vjp(f, net)
        assert float(net.extra.get_value()) == 4.0
        assert float(pullback(ONE)[0].w.get_value()) == 4.0

    @every_mode
    def test_nothing_is_changed_by_a_rule_that_raises(self, mode: Any) -> None:
        net = Net()
        before = [net.w.get_raw_value(), net.b.get_raw_value()]

        def fwd(m: Any) -> Any:
            m.b[...] += m.w
            raise KeyError("later")

        f = custom(mode, lambda m: m.w * 1, fwd, lambda r, g: (None,))
        with pytest.raises(KeyError, match="later"):
            grad_of(mode, f, net)
        assert [net.w.get_raw_value(), net.b.get_raw_value()] == before

    @every_mode
    def test_of_the_backward_rule(self, mode: Any) -> None:
        other = Net()

        def bwd(_: Any, g: Any) -> Any:
            other.b[...] += 1
            return (None,)

        f = custom(mode, lambda m: m.w * 1, lambda m: (m.w * 1, ()), bwd)
        message = r"the backward rule of `nnx\.custom_vjp` writes to `other\.b`, and nothing of a backward pass"
        with pytest.raises(TransformArgumentError, match=message):
            grad_of(mode, f, Net())
        assert values(other)["b"] == 1.0


class TestNondiffArgnums:
    @every_mode
    def test_static_values(self, mode: Any) -> None:
        def bwd(k: Any, name: Any, residuals: Any, g: Any) -> Any:
            assert (k, name) == (3, "times")
            return (like(mode, split(mode, g) * 100),)

        f = custom(mode, lambda m, k, name: m.w * k, lambda m, k, name: (m.w * k, ()), bwd, nondiff_argnums=(1, 2))
        assert float(f(Net(), 3, "times")) == 6.0
        assert float(grad_of(mode, f, Net(), 3, "times").w.get_value()) == 100.0

    @every_mode
    def test_negative(self, mode: Any) -> None:
        f = custom(
            mode,
            lambda m, k: m.w * k,
            lambda m, k: (m.w * k, ()),
            lambda k, r, g: (like(mode, float(k)),),
            nondiff_argnums=(-1,),
        )
        assert float(grad_of(mode, f, Net(), 3).w.get_value()) == 3.0

    @every_mode
    def test_a_module(self, mode: Any) -> None:
        def f(m: Any, x: Any) -> Any:
            m.b[...] += 1
            return m.w * x

        def bwd(m: Any, residuals: Any, g: Any) -> Any:
            assert (type(m), float(m.w.get_value())) == (Net, 2.0)
            return (split(mode, g) * m.w * 50,)

        f = custom(mode, f, lambda m, x: (f_original(m, x), ()), bwd, nondiff_argnums=(0,))
        f_original = f.__wrapped__
        net = Net()
        assert float(grad_of(mode, f, net, THREE, argnums=1)) == 100.0
        assert values(net)["b"] == 2.0
        assert float(grad_of(mode, f, net, THREE).w.get_value()) == 0.0

    def test_diff_state(self) -> None:
        """It names the part that is differentiated."""

        def bwd(_: Any, g: Any) -> Any:
            (of_net, _), of_result = g
            assert set(of_net) == {"w", "b"}
            return nnx.State({"w": of_net["w"].replace(of_result * 70)}), of_result

        def f(m: Any, x: Any) -> Any:
            m.b[...] += 1
            return m.w * x

        options = {"nondiff_argnums": (nnx.DiffState(0, nnx.Param),)}
        f = custom({}, f, lambda m, x: (f_original(m, x), ()), bwd, **options)
        f_original = f.__wrapped__
        net = Net()
        assert float(grad_of({}, f, net, THREE)["w"].get_value()) == 70.0
        assert values(net)["b"] == 2.0
        assert values_of_all(grad_of({}, f, net, THREE, argnums=nnx.DiffState(0, ...))) == {"w": 70.0, "b": 0.0}

    @without_updates
    def test_diff_state_needs_the_default_mode(self, mode: Any) -> None:
        with pytest.raises(TransformArgumentError, match=r"`nondiff_argnums` of `nnx\.custom_vjp` holds a `DiffState`"):
            nnx.custom_vjp(lambda m: m.w * 1, nondiff_argnums=(nnx.DiffState(0, nnx.Param),), **mode)

    @every_mode
    def test_positions(self, mode: Any) -> None:
        f = custom(mode, lambda m: m.w * 1, None, None, nondiff_argnums=(1,))
        with pytest.raises(TransformArgumentError, match=r"`nondiff_argnums` of `nnx\.custom_vjp` has 1, and the call"):
            f(Net())
        f = custom(mode, lambda m: m.w * 1, None, None, nondiff_argnums=(0, -1))
        with pytest.raises(TransformArgumentError, match="has position -1 twice"):
            f(Net())


def values_of_all(state: Any) -> dict[str, float]:
    return {key: float(state[key].get_value()) for key in state}


class TestArguments:
    @every_mode
    def test_by_name(self, mode: Any) -> None:
        f = custom(mode, lambda m, x: m.w * x, lambda m, x: (m.w * x, ()), lambda r, g: (None, split(mode, g) * 7))
        assert float(f(x=THREE, m=Net())) == 6.0
        assert float(nnx.grad(lambda x: f(Net(), x=x), **mode)(THREE)) == 7.0

    @every_mode
    def test_by_keyword_only(self, mode: Any) -> None:
        def fwd(x: Any, *, scale: Any) -> Any:
            return x * scale, ()

        f = custom(mode, lambda x, *, scale: x * scale, fwd, lambda r, g: (split(mode, g) * 7,))
        assert float(f(THREE, scale=2.0)) == 6.0
        assert float(nnx.grad(lambda x: f(x, scale=2.0), **mode)(THREE)) == 7.0

    @every_mode
    def test_on_a_method(self, mode: Any) -> None:
        class Layer(Net):
            @nnx.custom_vjp(**mode)
            def __call__(self, x: Any) -> Any:
                return self.w * x

        Layer.__call__.defvjp(lambda m, x: (m.w * x, ()), lambda r, g: (None, split(mode, g) * 7))
        layer = Layer()
        assert float(layer(THREE)) == 6.0
        assert float(nnx.grad(layer, **mode)(THREE)) == 7.0

    @every_mode
    def test_of_an_instance_and_of_a_bound_method(self, mode: Any) -> None:
        class Layer(Net):
            def __call__(self, x: Any) -> Any:
                self.b[...] += 1
                return self.w * x

        for number, get in enumerate((lambda layer: layer, lambda layer: layer.__call__)):
            layer = Layer()
            f = custom(mode, get(layer), lambda x, layer=layer: (layer(x), ()), lambda r, g: (split(mode, g) * 7,))
            assert float(f(THREE)) == 6.0
            assert float(nnx.grad(f, **mode)(THREE)) == 7.0
            assert (number, values(layer)["b"]) == (number, 3.0)


class TestCaptures:
    @every_mode
    def test_of_all_three_functions(self, mode: Any) -> None:
        net = Net()

        def f(x: Any) -> Any:
            net.b[...] += 1
            return net.w * x

        def fwd(x: Any) -> Any:
            return f_original(x), (net.w * x,)

        def bwd(residuals: Any, g: Any) -> Any:
            return (split(mode, g) * net.w * residuals[0],)

        f = custom(mode, f, fwd, bwd)
        f_original = f.__wrapped__
        assert (float(f(THREE)), values(net)["b"]) == (6.0, 2.0)
        assert (float(grad_of(mode, f, THREE)), values(net)["b"]) == (12.0, 3.0)
        net.w[...] = 3.0
        assert float(nnx.jit(nnx.grad(f, **mode), **mode)(THREE)) == 27.0
        assert values(net)["b"] == 4.0

    @every_mode
    def test_captured_by_an_outer_transform(self, mode: Any) -> None:
        """The rules see the objects of the outer trace, too."""
        net = Net()

        def f(x: Any) -> Any:
            return net.w * x

        f = custom(mode, f, lambda x: (net.w * x, ()), lambda r, g: (split(mode, g) * net.w * 10,))

        @nnx.jit(**mode)
        def run(m: Any, x: Any) -> Any:
            m.w[...] += 1
            return nnx.grad(f, **mode)(x)

        assert float(run(net, THREE)) == 30.0
        assert values(net)["w"] == 3.0

    @every_mode
    def test_what_is_captured_has_no_derivative(self, mode: Any) -> None:
        def loss(m: Any) -> Any:
            return custom(mode, lambda x: m.w * x, lambda x: (m.w * x, ()), lambda r, g: (None,))(ONE)

        message = r"`m\.[wb]` is differentiated, and the rules of `nnx\.custom_vjp` say nothing about it"
        with pytest.raises(TransformArgumentError, match=message):
            grad_of(mode, loss, Net())
        assert float(nnx.grad(lambda x, m: loss(m) * x, **mode)(ONE, Net())) == 2.0

    @every_mode
    def test_what_is_given_by_keyword_only_has_no_derivative(self, mode: Any) -> None:
        f = custom(mode, lambda *, m, x: m.w * x, lambda *, m, x: (m.w * x, ()), lambda r, g: ())
        with pytest.raises(TransformArgumentError, match=r"`m\.[wb]` is differentiated"):
            grad_of(mode, lambda m: f(m=m, x=1.0), Net())
        with pytest.raises(TransformArgumentError, match="`x` is differentiated"):
            grad_of(mode, lambda x: f(m=Net(), x=x), ONE)


class TestNesting:
    @every_mode
    def test_under_jit_vmap_scan_and_remat(self, mode: Any) -> None:
        f = custom(
            mode,
            lambda m, x: m.w * x,
            lambda m, x: (m.w * x, (x,)),
            lambda r, g: (like(mode, split(mode, g) * 10 * r[0]), None),
        )

        def loss(m: Any, xs: Any) -> Any:
            mapped = nnx.vmap(lambda m, x: f(m, x), in_axes=(None, 0), **mode)(m, xs).sum()
            block = nnx.remat(f, **mode)(m, xs[0])
            carry, _ = nnx.scan(lambda c, x: (c + f(m, x), x), **mode)(jnp.array(0.0), xs)
            return mapped + block + carry

        grads = nnx.jit(nnx.grad(loss, **mode), **mode)(Net(), jnp.array([1.0, 2.0]))
        assert float(grads.w.get_value()) == 10 * (3 + 1 + 3)

    @every_mode
    def test_gradient_of_jit(self, mode: Any) -> None:
        def f(m: Any, x: Any) -> Any:
            m.b[...] += 1
            return m.w * x

        f = custom(mode, f, lambda m, x: (f_original(m, x), ()), lambda r, g: (like(mode, 10.0), None))
        f_original = f.__wrapped__
        net = Net()
        assert float(grad_of(mode, nnx.jit(f, **mode), net, THREE).w.get_value()) == 10.0
        assert values(net)["b"] == 2.0

    @every_mode
    def test_right_rules_agree_with_jax(self, mode: Any) -> None:
        def f(m: Any, x: Any) -> Any:
            return jnp.sin(m.w * x)

        def bwd(residuals: Any, g: Any) -> Any:
            w, x = residuals
            g = split(mode, g) * jnp.cos(w * x)
            return like(mode, g * x), g * w

        custom_f = custom(mode, f, lambda m, x: (f(m, x), (m.w[...], x)), bwd)
        ours, theirs = (grad_of(mode, g, Net(), THREE, argnums=(0, 1)) for g in (custom_f, f))
        np.testing.assert_allclose(ours[0].w.get_value(), theirs[0].w.get_value(), rtol=1e-6)
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6)


class TestErrors:
    @every_mode
    def test_without_rules(self, mode: Any) -> None:
        @nnx.custom_vjp(**mode)
        def product(m: Any) -> Any:
            return m.w * 1

        message = r"`product` is under `nnx\.custom_vjp`, and has no forward and backward rule"
        with pytest.raises(TransformArgumentError, match=message):
            product(Net())

    @every_mode
    @pytest.mark.parametrize(
        ("returned", "message"),
        [
            (lambda g: g, "the backward rule returns an array of shape .*, and must return a tuple of 2"),
            (lambda g: (g,), "the backward rule returns a tuple .*of 1, and must return a tuple of 2"),
        ],
    )
    def test_no_tuple(self, mode: Any, returned: Any, message: str) -> None:
        f = custom(mode, lambda m, x: m.w * x, lambda m, x: (m.w * x, ()), lambda r, g: returned(split(mode, g)))
        with pytest.raises(TransformTypeError, match=message):
            grad_of(mode, f, Net(), ONE)

    @every_mode
    def test_no_pair(self, mode: Any) -> None:
        f = custom(mode, lambda m: m.w * 1, lambda m: m.w * 1, lambda r, g: (None,))
        message = r"the forward rule returns an array of shape \(\), and must return `\(result, residuals\)`"
        with pytest.raises(TransformTypeError, match=message):
            grad_of(mode, f, Net())

    @every_mode
    @pytest.mark.parametrize(
        ("returned", "path", "problem"),
        [
            (lambda: ONE, r"args\[0\]", "it is an array of shape .*, and must be a State or an object"),
            (lambda: nnx.State({"w": ONE}), r"args\[0\]\.b", "there is none"),
            (lambda: nnx.State({"w": ONE, "b": ONE, "c": ONE}), r"args\[0\]", r"there is no `args\[0\]\.c`"),
            (lambda: Net(jnp.ones(2)), r"args\[0\]\.w", r"it is float32\[2\], and must be float32\[\]"),
        ],
    )
    def test_cotangents_that_do_not_fit(self, mode: Any, returned: Any, path: str, problem: str) -> None:
        f = custom(mode, lambda m: m.w * 1, lambda m: (m.w * 1, ()), lambda r, g: (returned(),))
        message = (
            rf"the cotangent of `{path}` that the backward rule of `nnx\.custom_vjp` returns does not fit: {problem}"
        )
        with pytest.raises(TransformTypeError, match=message):
            grad_of(mode, f, Net())

    @every_mode
    def test_containers_that_do_not_fit(self, mode: Any) -> None:
        f = custom(mode, lambda d: d["a"] * 1, lambda d: (d["a"] * 1, ()), lambda r, g: ([ONE],))
        with pytest.raises(TransformTypeError, match=r"the cotangent of `args\[0\]` that the backward rule"):
            grad_of(mode, f, {"a": ONE})

    @every_mode
    def test_a_forward_rule_that_does_something_else(self, mode: Any) -> None:
        def fwd(m: Any) -> Any:
            m.b[...] += 1
            return m.w * 1, ()

        f = custom(mode, lambda m: m.w * 1, fwd, lambda r, g: (None,))
        with pytest.raises(TransformArgumentError, match=r"the forward rule of `nnx\.custom_vjp` writes or returns"):
            grad_of(mode, nnx.jit(f, **mode), Net())
