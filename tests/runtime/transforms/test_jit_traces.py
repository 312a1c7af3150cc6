"""When ``nnx.jit`` traces a function of objects anew, and when not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nets import ALL_MODES, Modes, Net, Traces, value


class TestTraces:
    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_values_do_not_matter(self, modes: Modes) -> None:
        traces, net = Traces(), Net()

        @nnx.jit(**modes)
        def f(net: Net, x: Any) -> Any:
            traces.note()
            net.mean[...] += x
            return net(x)

        f(net, jnp.array(1.0))
        net.weight[...] = jnp.array(7.0)
        f(net, jnp.array(2.0))
        f(Net(3.0), jnp.array(2.0))
        f(nnx.clone(net), jnp.array(2.0))

        assert traces.count == 1

    def test_captured_values_do_not_matter(self) -> None:
        traces, net = Traces(), Net()

        @nnx.jit
        def f(x: Any) -> Any:
            traces.note()
            return net(x)

        assert float(f(1.0)) == 12.0
        net.weight[...] = jnp.array(7.0)
        assert float(f(1.0)) == 17.0
        assert traces.count == 1

    def test_shapes_and_dtypes_do(self) -> None:
        traces = Traces()

        @nnx.jit
        def f(v: Any) -> None:
            traces.note()

        f(nnx.Param(jnp.ones(2)))
        f(nnx.Param(jnp.ones(3)))
        f(nnx.Param(jnp.ones(2)))
        f(nnx.Param(jnp.ones(2, jnp.int32)))

        assert traces.count == 3

    def test_types_of_variables_do(self) -> None:
        traces = Traces()

        @nnx.jit
        def f(v: Any) -> str:
            traces.note()
            assert type(v) is kind
            return type(v).__name__ and v[...]

        for kind in (nnx.Param, nnx.BatchStat, nnx.Param):
            f(kind(jnp.ones(2)))

        assert traces.count == 2

    def test_static_attributes_do_and_changing_one_back_finds_the_first_trace(self) -> None:
        traces, net = Traces(), Net()

        @nnx.jit
        def f(net: Net, x: Any) -> Any:
            traces.note()
            return x if net.mode == "train" else -x

        results = []
        for mode in ("train", "eval", "train", "eval", "train"):
            net.mode = mode
            results.append(float(f(net, 1.0)))

        assert results == [1.0, -1.0, 1.0, -1.0, 1.0]
        assert traces.count == 2

    def test_edits_of_the_function_itself_are_seen_by_the_next_call(self) -> None:
        traces, net = Traces(), Net()

        @nnx.jit
        def f(net: Net) -> None:
            traces.note()
            net.mode = "eval" if net.mode == "train" else "train"

        modes = []
        for _ in range(4):
            f(net)
            modes.append(net.mode)

        assert modes == ["eval", "train", "eval", "train"]
        assert traces.count == 2

    @pytest.mark.parametrize(
        ("options", "edit"),
        [
            ([1], lambda options: options.append(2)),
            ({"a": 1}, lambda options: options.update(b=2)),
            ({1}, lambda options: options.add(2)),
            ({"a": [1]}, lambda options: options["a"].append(2)),
        ],
        ids=["list", "dict", "set", "nested"],
    )
    def test_static_attributes_without_hash_do_too(self, options: Any, edit: Callable[[Any], None]) -> None:
        traces, net = Traces(), Net()
        net.options = nnx.static(copy.deepcopy(options))

        @nnx.jit
        def f(net: Any) -> Any:
            traces.note()
            return jnp.array(len(str(net.options)))

        for other in (net, net, nnx.clone(net)):
            assert int(f(other)) == len(str(options))
        assert traces.count == 1
        edit(net.options)
        for _ in range(2):
            assert int(f(net)) == len(str(net.options)) != len(str(options))
        assert traces.count == 2

    def test_metadata_does(self) -> None:
        traces, net = Traces(), Net()

        @nnx.jit
        def f(net: Net) -> None:
            traces.note()

        f(net)
        net.weight.set_metadata(layer=1)
        f(net)
        f(net)

        assert traces.count == 2

    def test_a_plain_list_that_grows_does(self) -> None:
        class Holder(nnx.Module):
            def __init__(self) -> None:
                self.history = nnx.data([jnp.array(1.0)])

        holder = Holder()
        total = nnx.jit(lambda holder: sum(holder.history))

        assert float(total(holder)) == 1.0
        holder.history.append(jnp.array(2.0))
        assert float(total(holder)) == 3.0

    def test_clear_cache(self) -> None:
        traces = Traces()

        @nnx.jit
        def f(net: Net) -> None:
            traces.note()

        f(Net())
        f.clear_cache()
        f(Net())

        assert traces.count == 2

    def test_what_the_trace_wrote_is_known_to_calls_that_do_not_trace(self) -> None:
        net = Net()
        array = net.weight.get_raw_value()
        f = nnx.jit(lambda net: net.mean.set_value(net.mean + 1))

        for _ in range(3):
            f(net)

        assert value(net.mean) == 3.0
        assert net.weight.get_raw_value() is array
