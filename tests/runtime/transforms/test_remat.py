"""``nnx.remat``: results, gradients, writes and captures; and how often the function is traced."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx
from modes import MODES, every_mode
from nets import Wave as Net
from nets import values
from nnx_rules.errors import GraphError, TraceContextError, TransformArgumentError


def test_the_name_in_jax() -> None:
    assert nnx.checkpoint is nnx.remat


class TestCall:
    @every_mode
    def test_result_and_writes(self, mode: Any) -> None:
        net = Net()
        out = nnx.remat(lambda m, x: m(x), **mode)(net, 3.0)
        assert (float(out), values(net)) == (float(jnp.sin(6.0)), {"w": 2.0, "b": 2.0})

    @every_mode
    def test_decorators(self, mode: Any) -> None:
        class Layer(Net):
            @nnx.remat(prevent_cse=False, **mode)
            def twice(self, x: Any) -> Any:
                return self(self(x))

        layer = Layer()
        assert float(layer.twice(1.0)) == pytest.approx(float(jnp.sin(2 * jnp.sin(2.0))))
        assert values(layer)["b"] == 3.0

    @every_mode
    @pytest.mark.parametrize("static_argnums", [2, -1, (0, 2)])
    def test_static_arguments_that_are_left_out(self, mode: Any, static_argnums: Any) -> None:
        f = nnx.remat(lambda m, x, flag=True: m.w * x if flag is True else x, static_argnums=static_argnums, **mode)

        assert float(f(Net(), 3.0)) == float(f(Net(), x=3.0)) == 6.0

    @pytest.mark.parametrize("static_argnums", [2, (2,), [2], -1, (-1,)])
    def test_static_arguments(self, mode: Any, static_argnums: Any) -> None:
        f = nnx.remat(lambda m, x, flag: m.w * x if flag else x, static_argnums=static_argnums, **mode)
        assert (float(f(Net(), 3.0, True)), float(f(Net(), 3.0, False))) == (6.0, 3.0)

    @every_mode
    def test_static_arguments_by_keyword(self, mode: Any) -> None:
        f = nnx.remat(lambda m, x, flag=False: m.w * x if flag else x, static_argnums=2, **mode)
        assert float(f(Net(), flag=True, x=3.0)) == 6.0

    @every_mode
    def test_a_static_module_is_an_input(self, mode: Any) -> None:
        net = Net()

        def loss(m: Any) -> Any:
            return nnx.remat(lambda m, x, name: m(x) if name == "sin" else x, static_argnums=(0, 2), **mode)(
                m, 3.0, "sin"
            )

        assert float(nnx.grad(loss, **mode)(net).w.get_value()) == pytest.approx(3 * float(jnp.cos(6.0)))
        assert values(net)["b"] == 2.0

    @every_mode
    def test_other_arguments_are_traced(self, mode: Any) -> None:
        with pytest.raises(jax.errors.TracerBoolConversionError, match="Attempted boolean conversion"):
            nnx.remat(lambda m, flag: m.w if flag else 0.0, **mode)(Net(), True)

    @every_mode
    def test_keyword_only_arguments(self, mode: Any) -> None:
        assert float(nnx.remat(lambda m, *, k: m.w * k, **mode)(Net(), k=2.0)) == 4.0

    @every_mode
    def test_static_positions(self, mode: Any) -> None:
        message = r"`static_argnums` of `nnx\.remat` has 3, and the call has this many positional arguments: 1"
        with pytest.raises(TransformArgumentError, match=message):
            nnx.remat(lambda m: m.w * 1, static_argnums=3, **mode)(Net())
        with pytest.raises(TransformArgumentError, match=r"`static_argnums` of `nnx\.remat` has a str"):
            nnx.remat(lambda m: m.w * 1, static_argnums=("m",), **mode)(Net())

    @every_mode
    def test_policy(self, mode: Any) -> None:
        def count(policy: Any) -> int:
            f = nnx.remat(lambda m, x: jnp.sin(jnp.sin(m.w * x)), policy=policy, **mode)
            graphdef, state = nnx.split(Net())
            jaxpr = jax.make_jaxpr(jax.grad(lambda s: f(nnx.merge(graphdef, s), 3.0)))(state)
            return str(jaxpr).count(" sin ")

        policies = jax.checkpoint_policies
        assert count(policies.nothing_saveable) > count(policies.everything_saveable) == 2

    def test_edits_come_back_and_inputs_are_returned(self) -> None:
        net = Net()

        def f(m: Any) -> Any:
            m.extra = nnx.Param(m.w * 2)
            return m

        assert nnx.remat(f)(net) is net
        assert float(net.extra.get_value()) == 4.0

    @pytest.mark.parametrize("mode", [MODES["without updates"], MODES["tree"]])
    def test_returned_inputs_are_refused(self, mode: Any) -> None:
        with pytest.raises(GraphError, match=r"under `nnx\.remat` returns `args\[0\]\.w`, a `Param` of its inputs"):
            nnx.remat(lambda m: m.w, **mode)(Net())

    @every_mode
    def test_nothing_is_changed_by_a_function_that_raises(self, mode: Any) -> None:
        net = Net()
        before = [net.w.get_raw_value(), net.b.get_raw_value()]

        def f(m: Any, x: Any) -> Any:
            m(x)
            raise KeyError("later")

        with pytest.raises(KeyError, match="later"):
            nnx.remat(f, **mode)(net, 1.0)
        assert [net.w.get_raw_value(), net.b.get_raw_value()] == before

    @every_mode
    def test_raw_transforms_keep_the_check_of_trace_levels(self, mode: Any) -> None:
        net = Net()
        with pytest.raises(TraceContextError, match=r"Cannot mutate `net\.b` from a different trace level"):
            jax.jit(lambda x: nnx.remat(lambda x: net(x), **mode)(x))(1.0)
        assert values(net)["b"] == 1.0


class TestCaptures:
    @every_mode
    @pytest.mark.parametrize("route", ["closure", "partial", "method", "instance", "helper"])
    def test_routes(self, mode: Any, route: str) -> None:
        net = Net()

        def helper(x: Any) -> Any:
            return net(x)

        functions = {
            "closure": lambda x: net(x),
            "partial": functools.partial(Net.__call__, net),
            "method": net.__call__,
            "instance": net,
            "helper": lambda x: helper(x),
        }
        f = nnx.remat(functions[route], **mode)
        assert float(f(3.0)) == float(jnp.sin(6.0))
        assert values(net)["b"] == 2.0
        net.w[...] = 1.0
        assert float(f(3.0)) == float(jnp.sin(3.0))

    @every_mode
    def test_gradients_flow_to_what_is_captured(self, mode: Any) -> None:
        def loss(m: Any) -> Any:
            return nnx.remat(lambda x: m(x), **mode)(3.0)

        net = Net()
        assert float(nnx.grad(loss, **mode)(net).w.get_value()) == pytest.approx(3 * float(jnp.cos(6.0)))
        assert values(net)["b"] == 2.0


class TestTraces:
    def test_a_function_is_traced_once_for_each_structure(self) -> None:
        traces = []

        @nnx.remat
        def block(m: Any, x: Any) -> Any:
            traces.append(1)
            return m(x)

        layers = [Net(), Net(1.0), Net(3.0)]

        @nnx.jit
        def run(layers: Any, x: Any) -> Any:
            for layer in layers:
                x = block(layer, x)
            return x

        expected = functools.reduce(lambda x, w: jnp.sin(w * x), (2.0, 1.0, 3.0), 0.5)
        assert float(run(layers, jnp.float32(0.5))) == pytest.approx(float(expected))
        assert [values(layer)["b"] for layer in layers] == [2.0] * 3
        assert len(traces) == 1
        for layer in layers:
            layer.flag = True
        run(layers, jnp.float32(0.5))
        assert len(traces) == 2

    def test_static_values_are_told_apart(self) -> None:
        f = nnx.remat(lambda m, k: m.w * (10 if k is True else k), static_argnums=1)
        assert [float(f(Net(), k)) for k in (1, True, 2.0, 2)] == [2.0, 20.0, 4.0, 4.0]

    def test_static_values_without_hash(self) -> None:
        f = nnx.remat(lambda m, ks: m.w * ks[0], static_argnums=1)
        assert [float(f(Net(), [k])) for k in (1.0, 2.0)] == [2.0, 4.0]


class TestNesting:
    @every_mode
    def test_gradient_of_jitted_remat_in_remat(self, mode: Any) -> None:
        block = nnx.remat(nnx.jit(nnx.remat(lambda m, x: m(x), **mode), **mode), **mode)
        net = Net()
        grads = nnx.jit(nnx.grad(lambda m, x: block(m, block(m, x)), **mode), **mode)(net, 0.5)
        expected = jax.grad(lambda w: jnp.sin(w * jnp.sin(w * 0.5)))(2.0)
        np.testing.assert_allclose(grads.w.get_value(), expected, rtol=1e-5)
        assert values(net)["b"] == 3.0

    @every_mode
    def test_under_vmap_and_scan(self, mode: Any) -> None:
        net = Net()

        def step(x: Any, _: Any) -> Any:
            return nnx.remat(lambda m, x: jnp.sin(m.w * x), **mode)(net, x), x

        def run(x: Any) -> Any:
            return nnx.scan(step, length=2, **mode)(x, None)[0]

        out = nnx.vmap(run, **mode)(jnp.array([0.5, 1.0]))
        np.testing.assert_allclose(out, jnp.sin(2 * jnp.sin(2 * jnp.array([0.5, 1.0]))), rtol=1e-5)
