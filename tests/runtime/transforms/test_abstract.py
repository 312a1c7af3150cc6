"""``nnx.eval_shape`` and ``nnx.make_jaxpr``: nothing is computed, nothing is changed."""

from __future__ import annotations

from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from modes import MODES, every_mode
from nets import Wave as Net
from nets import values
from nnx_rules.errors import GraphError, TransformArgumentError

SCALAR = jax.ShapeDtypeStruct((), jnp.float32)


class TestEvalShape:
    @every_mode
    def test_a_new_module(self, mode: Any) -> None:
        net = nnx.eval_shape(lambda: nnx.Linear(2, 3, rngs=nnx.Rngs(0)), **mode)
        assert type(net) is nnx.Linear
        assert net.kernel.get_value() == jax.ShapeDtypeStruct((2, 3), jnp.float32)
        assert type(net.kernel) is nnx.Param

    @every_mode
    def test_the_caller_keeps_its_values(self, mode: Any) -> None:
        net = Net()

        def f(m: Any, x: Any, *, k: Any) -> Any:
            return m(x) * k

        assert nnx.eval_shape(f, net, jnp.ones(3), k=2.0, **mode) == jax.ShapeDtypeStruct((3,), jnp.float32)
        assert values(net) == {"w": 2.0, "b": 1.0}

    @every_mode
    def test_randomness_is_not_used_up(self, mode: Any) -> None:
        rngs = nnx.Rngs(0)
        assert nnx.eval_shape(lambda r: r.normal((2,)), rngs, **mode).shape == (2,)
        assert int(rngs.default.count[...]) == 0

    def test_a_returned_input_is_an_abstract_copy(self) -> None:
        net = Net()

        def f(m: Any) -> Any:
            m.extra = nnx.Param(jnp.zeros(5))
            return {"same": m, "w": m.w}

        out = nnx.eval_shape(f, net)
        assert out["same"] is not net
        assert out["same"].w is out["w"]
        assert (out["w"].get_value(), out["same"].extra.get_value().shape) == (SCALAR, (5,))
        assert not hasattr(net, "extra")

    @pytest.mark.parametrize("mode", [MODES["without updates"], MODES["tree"]])
    def test_returned_inputs_are_refused(self, mode: Any) -> None:
        with pytest.raises(
            GraphError, match=r"under `nnx\.eval_shape` returns `args\[0\]\.w`, a `Param` of its inputs"
        ):
            nnx.eval_shape(lambda m: m.w, Net(), **mode)

    @every_mode
    def test_abstract_inputs(self, mode: Any) -> None:
        net = nnx.eval_shape(Net, **mode)
        assert nnx.eval_shape(lambda m, x: m(x), net, jax.ShapeDtypeStruct((4,), jnp.float32), **mode).shape == (4,)

    @pytest.mark.parametrize("route", ["closure", "method", "instance"])
    @every_mode
    def test_captures(self, mode: Any, route: str) -> None:
        net = Net()
        f = {"closure": lambda x: net(x), "method": net.__call__, "instance": net}[route]
        assert nnx.eval_shape(f, jnp.ones(2), **mode).shape == (2,)
        assert values(net) == {"w": 2.0, "b": 1.0}

    @every_mode
    def test_arguments_must_be_arrays(self, mode: Any) -> None:
        with pytest.raises(TypeError, match="non-array argument"):
            nnx.eval_shape(lambda x: 1, "a", **mode)


class TestMakeJaxpr:
    @every_mode
    def test_the_functional_form(self, mode: Any) -> None:
        jaxpr = nnx.make_jaxpr(lambda m, x: m(x), **mode)(Net(), 3.0)
        assert len(jaxpr.in_avals) == 3
        assert len(jaxpr.out_avals) == 2  # the statistic that was written, and the result
        statistic, out = jax.extend.core.jaxpr_as_fun(jaxpr)(jnp.array(1.0), jnp.array(2.0), 3.0)
        assert (float(statistic), float(out)) == (2.0, float(jnp.sin(6.0)))

    @every_mode
    def test_the_caller_keeps_its_values(self, mode: Any) -> None:
        net = Net()
        nnx.make_jaxpr(lambda x: net(x), **mode)(3.0)
        assert values(net) == {"w": 2.0, "b": 1.0}

    @every_mode
    def test_captures_are_inputs(self, mode: Any) -> None:
        net = Net()
        assert len(nnx.make_jaxpr(lambda x: net.w * x, **mode)(3.0).in_avals) == 3

    @every_mode
    @pytest.mark.parametrize("static_argnums", [1, (1,), -1])
    def test_static_arguments(self, mode: Any, static_argnums: Any) -> None:
        make = nnx.make_jaxpr(static_argnums=static_argnums, **mode)(lambda m, k: m.w * k if k else 0.0)
        assert "mul" in str(make(Net(), 2))
        assert "mul" not in str(make(Net(), 0))
        with pytest.raises(
            TransformArgumentError, match=r"`static_argnums` of `nnx\.make_jaxpr` has -?1, and the call"
        ):
            make()
