"""``nnx.jit`` by stages: traced, lowered, compiled."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nets import Net, Traces, value
from nnx_rules.errors import TransformTypeError


class TestStages:
    def jitted(self, traces: Traces | None = None) -> Any:
        def f(net: Net, x: Any) -> Any:
            if traces is not None:
                traces.note()
            net.mean[...] += x
            return net, net(x)

        return nnx.jit(f)

    def test_lower_compile_call(self) -> None:
        traces, net = Traces(), Net()
        compiled = self.jitted(traces).lower(net, 1.0).compile()

        assert value(net.mean) == 0.0
        same, y = compiled(net, 3.0)
        compiled(net, 4.0)
        other = Net(5.0)
        compiled(other, 1.0)

        assert same is net
        assert float(y) == 16.0
        assert (value(net.mean), value(other.mean)) == (7.0, 1.0)
        assert traces.count == 1

    def test_trace_and_its_stages(self) -> None:
        net = Net()
        traced = self.jitted().trace(net, 1.0)

        assert "add" in str(traced.jaxpr)
        lowered = traced.lower()
        assert "stablehlo" in lowered.as_text() or "module" in lowered.as_text()
        compiled = lowered.compile()
        assert compiled.cost_analysis() is not None
        assert compiled.memory_analysis() is not None
        compiled(net, 2.0)
        assert value(net.mean) == 2.0

    def test_another_structure(self) -> None:
        net = Net()
        compiled = self.jitted().lower(net, 1.0).compile()
        net.mode = "eval"

        with pytest.raises(TransformTypeError, match=r"(?s)another structure than.*`nnx\.jit`.*NNX408"):
            compiled(net, 1.0)
        assert value(net.mean) == 0.0

    def test_another_shape(self) -> None:
        net = Net()
        compiled = self.jitted().lower(net, 1.0).compile()

        with pytest.raises(TypeError, match=r"called with float32\[2\]"):
            compiled(net, jnp.ones(2))
        assert value(net.mean) == 0.0

    def test_static_arguments(self) -> None:
        f = nnx.jit(lambda net, n: net.mean.set_value(net.mean + n), static_argnums=1)
        net = Net()
        compiled = f.lower(net, 2).compile()

        compiled(net, 2)

        assert value(net.mean) == 2.0
        with pytest.raises(TransformTypeError, match="another structure"):
            compiled(net, 3)

    def test_lowered_for_abstract_objects(self) -> None:
        net = Net()
        abstract = nnx.clone(net)
        nnx.update(abstract, jax.eval_shape(lambda: nnx.state(net)))

        compiled = self.jitted().lower(abstract, jax.ShapeDtypeStruct((), jnp.float32)).compile()
        _, y = compiled(net, jnp.float32(3.0))

        assert float(y) == 16.0
        assert value(net.mean) == 3.0

    def test_eval_shape(self) -> None:
        net = Net()

        result, y = self.jitted().eval_shape(net, 1.0)

        assert result is not net
        assert isinstance(result, Net)
        assert isinstance(result.mean.get_raw_value(), jax.ShapeDtypeStruct)
        assert (y.shape, y.dtype) == ((), jnp.float32)
        assert value(net.mean) == 0.0

    def test_a_method_of_an_instance(self) -> None:
        class Counter(nnx.Module):
            def __init__(self) -> None:
                self.count = nnx.Variable(jnp.array(0))

            @nnx.jit
            def up(self, by: Any) -> None:
                self.count[...] += by

        counter = Counter()

        Counter.up.lower(counter, 1).compile()(counter, 1)

        assert value(counter.count) == 1

    def test_captures(self) -> None:
        net = Net()
        f = nnx.jit(lambda x: net.mean.set_value(net.mean + x))

        f.lower(1.0).compile()(3.0)

        assert value(net.mean) == 3.0
