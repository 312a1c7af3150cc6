"""``nnx.jit``: functions and how they are called, under the transforms of JAX, and options."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import nnxkit as nnx
from nets import Net, Traces, value
from nnx_rules.errors import GraphError, TraceContextError, TransformArgumentError, TransformTypeError

# ---- functions, and how they are called


class TestFunctions:
    def test_decorator_with_and_without_arguments(self) -> None:
        @nnx.jit
        def one(net: Net) -> Any:
            """Docs of one."""
            return net(1.0)

        @nnx.jit(static_argnames=("deep",))
        def two(net: Net, deep: bool) -> Any:
            return net(1.0) if deep else net(0.0)

        three = functools.partial(nnx.jit, graph=False)(lambda net: net(1.0))

        assert (one.__name__, one.__doc__, two.__name__) == ("one", "Docs of one.", "two")
        assert one.__wrapped__(Net()) == 12.0
        assert [float(item) for item in (one(Net()), two(Net(), True), two(Net(), deep=False), three(Net()))] == [
            12.0, 12.0, 10.0, 12.0,
        ]  # fmt: skip

    def test_repr_names_the_transform(self) -> None:
        assert repr(nnx.jit(len)) == "nnx.jit(<built-in function len>)"

    def test_keyword_only_parameters_and_defaults(self) -> None:
        @nnx.jit
        def f(net: Net, x: Any = 1.0, *rest: Any, scale: Any = 1.0, **more: Any) -> Any:
            return scale * net(x) + sum(rest) + sum(more.values())

        net = Net()

        assert float(f(net)) == 12.0
        assert float(f(net, 2.0)) == 14.0
        assert float(f(net=net, x=2.0, scale=2.0)) == 28.0
        assert float(f(net, 2.0, 1.0, 1.0, scale=1.0, a=2.0, b=3.0)) == 21.0

    def test_the_order_of_keywords_does_not_matter(self) -> None:
        traces = Traces()

        @nnx.jit
        def f(**kwargs: Any) -> Any:
            traces.note()
            kwargs["a"].mean[...] = kwargs["x"] * 1.0
            return kwargs["a"].weight - kwargs["b"].weight

        one, two = Net(1.0), Net(2.0)

        assert float(f(a=one, b=two, x=3.0)) == -1.0
        assert float(f(x=4.0, b=two, a=one)) == -1.0
        assert (value(one.mean), value(two.mean)) == (4.0, 0.0)
        assert traces.count == 1

    def test_objects_in_containers(self) -> None:
        one, two = Net(1.0), Net(2.0)

        @nnx.jit
        def f(nets: dict[str, Any]) -> Any:
            for net in nets["all"]:
                net.mean[...] = net.weight * 2
            return nets["x"]

        f({"all": (one, two), "x": 1.0})

        assert (value(one.mean), value(two.mean)) == (2.0, 4.0)

    def test_a_module_as_default_argument(self) -> None:
        net = Net()

        @nnx.jit
        def f(x: Any, net: Net = net) -> Any:
            net.mean[...] += x
            return net(x)

        assert float(f(1.0)) == 12.0
        assert value(net.mean) == 1.0
        other = Net(3.0)
        assert float(f(1.0, other)) == 13.0
        assert (value(net.mean), value(other.mean)) == (1.0, 1.0)

    def test_methods(self) -> None:
        class Counter(nnx.Module):
            def __init__(self) -> None:
                self.count = nnx.Variable(jnp.array(0))

            @nnx.jit
            def __call__(self, by: Any) -> Any:
                self.count[...] += by
                return self.count * 1

            @nnx.jit(static_argnames="times")
            def many(self, by: Any, *, times: int) -> Any:
                for _ in range(times):
                    self(by)

        class Named(Counter):
            def __init__(self) -> None:
                super().__init__()
                self.name = "named"

        for counter in (Counter(), Named()):
            assert int(counter(2)) == 2
            counter.many(3, times=2)
            assert value(counter.count) == 8
            assert int(Counter.__call__(counter, 1)) == 9

    def test_a_method_of_a_list(self) -> None:
        class Stack(nnx.List[Any]):
            @nnx.jit
            def __call__(self, x: Any) -> Any:
                for layer in self:
                    layer.mean[...] += 1
                    x = layer(x)
                return x

        stack = Stack([Net(1.0), Net(2.0)])

        assert float(stack(1.0)) == 32.0
        assert [value(net.mean) for net in stack] == [1.0, 1.0]

    def test_an_instance_as_the_function(self) -> None:
        net = Net()
        f = nnx.jit(net)

        assert float(f(1.0)) == 12.0
        net.weight[...] = jnp.array(3.0)
        assert float(f(1.0)) == 13.0

    def test_a_bound_method_as_the_function(self) -> None:
        class Counter(nnx.Module):
            def __init__(self) -> None:
                self.count = nnx.Variable(jnp.array(0))

            def up(self, by: Any) -> Any:
                self.count[...] += by
                return self

        counter = Counter()
        up = nnx.jit(counter.up)

        assert up(2) is counter
        up(3)
        assert value(counter.count) == 5

    def test_a_partial(self) -> None:
        net = Net()

        def f(net: Net, x: Any, *, scale: Any) -> Any:
            net.mean[...] += 1
            return net(x) * scale

        g = nnx.jit(functools.partial(f, net, scale=2.0))

        assert float(g(1.0)) == 24.0
        assert value(net.mean) == 1.0

    def test_a_global_that_is_bound_to_another_object(self) -> None:
        names: dict[str, Any] = {"net": Net(1.0), "__name__": "users"}
        exec("def f(x):\n    net.mean[...] += x\n    return net.weight * x", names)
        f = nnx.jit(names["f"])

        assert float(f(2.0)) == 2.0
        first, names["net"] = names["net"], Net(5.0)
        assert float(f(2.0)) == 10.0
        assert (value(first.mean), value(names["net"].mean)) == (2.0, 2.0)

    def test_jit_in_jit(self) -> None:
        net = Net()

        @nnx.jit
        def inner(net: Net, x: Any) -> Any:
            net.mean[...] += x
            net.mode = "seen"
            return net

        @nnx.jit
        def outer(net: Net) -> Any:
            assert inner(net, 1.0) is net
            assert net.mode == "seen"
            inner(net, 2.0)
            return net.mean * 10

        assert float(outer(net)) == 30.0
        assert value(net.mean) == 3.0
        assert net.mode == "seen"

    def test_recursion_through_the_jitted_function(self) -> None:
        net = Net()

        @nnx.jit(static_argnums=1)
        def countdown(net: Net, n: int) -> Any:
            net.mean[...] += 1
            if n:
                countdown(net, n - 1)

        countdown(net, 2)

        assert value(net.mean) == 3.0


# ---- under the transforms of JAX


class TestUnderJax:
    """A raw transform of JAX does not know of objects: what it captures may be read, and not written."""

    @pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad, jax.checkpoint], ids=lambda t: t.__name__)
    def test_captured_objects(self, transform: Callable[..., Any]) -> None:
        net = Net()
        read = nnx.jit(lambda net, x: net(x))
        write = nnx.jit(lambda net, x: net.mean.set_value(x))
        x = jnp.ones(3) if transform is jax.vmap else 1.0

        transform(lambda x: read(net, x))(x)
        with pytest.raises(TraceContextError, match=r"(?s)different trace level.*NNX201"):
            transform(lambda x: (write(net, x), x)[1])(x)

        assert value(net.mean) == 0.0
        assert value(net.weight) == 2.0

    def test_objects_made_inside(self) -> None:
        step = nnx.jit(lambda net, x: net.mean.set_value(net.weight * x))

        @jax.jit
        def f(x: Any) -> Any:
            net = Net()
            step(net, x)
            return net.mean[...]

        assert float(f(3.0)) == 6.0

    def test_a_module_as_argument_of_jax(self) -> None:
        @jax.jit
        def f(net: Net, x: Any) -> Any:
            nnx.jit(lambda net: net.mean.set_value(x))(net)
            return net

        net = Net()
        new = f(net, 3.0)

        assert value(new.mean) == 3.0
        assert value(net.mean) == 0.0


# ---- options


def mesh_sharding(*axes: str | None) -> NamedSharding:
    return NamedSharding(jax.make_mesh((1,), ("data",)), PartitionSpec(*axes))


class TestStaticArguments:
    @pytest.mark.parametrize(
        ("options", "call"),
        [
            ({"static_argnums": 1}, lambda f, net: f(net, "up")),
            ({"static_argnums": (1,)}, lambda f, net: f(net, "up")),
            ({"static_argnums": -1}, lambda f, net: f(net, "up")),
            ({"static_argnums": 1}, lambda f, net: f(net, how="up")),
            ({"static_argnames": "how"}, lambda f, net: f(net, "up")),
            ({"static_argnames": ("how",)}, lambda f, net: f(net=net, how="up")),
            ({"static_argnums": 1, "static_argnames": "how"}, lambda f, net: f(net, how="up")),
        ],
    )
    def test_by_number_and_by_name(self, options: dict[str, Any], call: Callable[..., Any]) -> None:
        traces = Traces()

        @nnx.jit(**options)
        def f(net: Net, how: str) -> Any:
            traces.note()
            net.mean[...] += {"up": 1, "down": -1}[how]

        net = Net()
        call(f, net)
        call(f, net)

        assert value(net.mean) == 2.0
        assert traces.count == 1

    def test_each_value_is_traced_once(self) -> None:
        traces = Traces()

        @nnx.jit(static_argnums=0)
        def f(n: Any, x: Any) -> Any:
            traces.note()
            return x * n

        assert [float(f(n, 2.0)) for n in (1, 2, 1, 2)] == [2.0, 4.0, 2.0, 4.0]
        assert traces.count == 2
        assert f(True, 2).dtype == jnp.int32  # equal to 1, and another type
        assert f(1.0, 2).dtype == jnp.float32

    @pytest.mark.parametrize("argument", [[1, 2], {"a": 1}, np.ones(2)], ids=["list", "dict", "array"])
    def test_without_hash(self, argument: Any) -> None:
        f = nnx.jit(lambda net, how: None, static_argnums=1)

        with pytest.raises(TransformArgumentError, match=r"(?s)[Nn]on-hashable static argument.*NNX407"):
            f(Net(), argument)

    def test_objects_are_refused(self) -> None:
        f = nnx.jit(lambda x, net: None, static_argnames="net")

        with pytest.raises(TransformArgumentError, match=r"(?s)NNX407.*graph objects as ordinary arguments"):
            f(1.0, Net())
        with pytest.raises(TransformArgumentError, match=r"(?s)NNX407"):
            f(1.0, net=nnx.Param(1.0))


class TestNotAnArray:
    @pytest.mark.parametrize("value", ["text", nnx.Variable("text")], ids=["argument", "variable"])
    def test_its_path_is_named(self, value: Any) -> None:
        with pytest.raises(TransformTypeError, match=r"(?s)`args\[1\]\.v` is a str, and `nnx\.jit`.*NNX415"):
            nnx.jit(lambda x, tree: x)(1.0, {"v": value})


class TestMissingParameter:
    @pytest.mark.parametrize(
        ("options", "given"),
        [
            ({"static_argnames": "nett"}, "'nett', which is to be static"),
            ({"static_argnums": 1}, "1, which is to be static"),
            ({"donate_argnums": (0, -2)}, "-2, which is to be donated"),
            ({"donate_argnames": ("net", "x")}, "'x', which is to be donated"),
        ],
        ids=str,
    )
    def test_it_is_named(self, options: dict[str, Any], given: str) -> None:
        with pytest.raises(TransformArgumentError, match=rf"(?s)has no parameter {given}.*NNX414"):
            nnx.jit(lambda net: None, **options)

    def test_functions_that_take_any(self) -> None:
        f = nnx.jit(lambda *args, **kwargs: args[0] + len(args[2]), static_argnums=2, static_argnames="more")

        assert float(f(1.0, 2.0, (1, 2), more="text")) == 3.0


class TestDonation:
    @pytest.mark.parametrize(
        ("options", "call"),
        [
            ({"donate_argnums": 0}, lambda f, net: f(net, 1.0)),
            ({"donate_argnums": (0,)}, lambda f, net: f(net, 1.0)),
            ({"donate_argnums": -2}, lambda f, net: f(net, 1.0)),
            ({"donate_argnames": "net"}, lambda f, net: f(net, 1.0)),
            ({"donate_argnames": ("net",)}, lambda f, net: f(net=net, x=1.0)),
        ],
    )
    def test_by_number_and_by_name(self, options: dict[str, Any], call: Callable[..., Any]) -> None:
        net = Net()
        weight, mean = net.weight.get_raw_value(), net.mean.get_raw_value()

        @nnx.jit(**options)
        def f(net: Net, x: Any) -> Any:
            net.mean[...] += x

        call(f, net)

        assert weight.is_deleted()
        assert mean.is_deleted()
        # What was not written is there all the same.
        assert (value(net.weight), value(net.mean), value(net.inner.bias)) == (2.0, 1.0, 10.0)
        call(f, net)
        assert value(net.mean) == 2.0

    def test_other_arguments_and_captures_are_kept(self) -> None:
        captured, kept, donated = Net(1.0), Net(2.0), Net(3.0)
        arrays = captured.weight.get_raw_value(), kept.weight.get_raw_value()

        @nnx.jit(donate_argnums=1)
        def f(kept: Net, donated: Net) -> Any:
            return kept.weight + donated.weight + captured.weight

        assert float(f(kept, donated)) == 6.0
        assert not any(array.is_deleted() for array in arrays)
        assert captured.weight.get_raw_value() is arrays[0]
        assert value(donated.weight) == 3.0

    def test_an_object_that_is_donated_and_not(self) -> None:
        net = Net()

        with pytest.raises(GraphError, match=r"(?s)`args\[0\].*` and `args\[1\].*` are the same object.*NNX402"):
            nnx.jit(lambda a, b: None, donate_argnums=0)(net, net)

    def test_an_array(self) -> None:
        x = jnp.ones(3)

        y = nnx.jit(lambda net, x: x + 1, donate_argnums=1)(Net(), x)

        assert x.is_deleted()
        assert y.tolist() == [2.0, 2.0, 2.0]


class TestShardings:
    def test_one_for_all(self) -> None:
        replicated = mesh_sharding()
        net = Net()

        nnx.jit(lambda net: net.mean.set_value(net.mean + 1), in_shardings=replicated)(net)

        assert net.mean.get_raw_value().sharding == replicated

    def test_one_for_each_argument_and_by_filter(self) -> None:
        replicated, split = mesh_sharding(), mesh_sharding("data")
        state = nnx.StateSharding({nnx.Param: split, ...: replicated})
        linear = nnx.BatchNorm(4, rngs=nnx.Rngs(0))

        @nnx.jit(in_shardings=(state, None), out_shardings=split)
        def f(norm: Any, x: Any) -> Any:
            norm.mean[...] += x
            norm.scale[...] += x
            return norm.scale * 1

        result = f(linear, 1.0)

        assert result.sharding == split
        assert linear.scale.get_raw_value().sharding == split
        assert linear.mean.get_raw_value().sharding == replicated

    def test_new_module_by_filter(self) -> None:
        replicated, split = mesh_sharding(), mesh_sharding("data")
        state = nnx.StateSharding({nnx.PathContains("scale"): split, ...: replicated})

        norm = nnx.jit(lambda: nnx.BatchNorm(4, rngs=nnx.Rngs(0)), out_shardings=state)()

        assert norm.scale.get_raw_value().sharding == split
        assert norm.bias.get_raw_value().sharding == replicated

    def test_a_tuple_of_another_length(self) -> None:
        sharding = mesh_sharding()

        with pytest.raises(TransformArgumentError, match=r"(?s)`in_shardings` of `nnx\.jit` does not fit.*NNX404"):
            nnx.jit(lambda net: None, in_shardings=(sharding, sharding))(Net())

    def test_filters_without_graph_updates(self) -> None:
        state = nnx.StateSharding({...: mesh_sharding()})

        with pytest.raises(TransformArgumentError, match=r"(?s)`in_shardings` of `nnx\.jit` holds a `StateSharding`"):
            nnx.jit(lambda net: None, in_shardings=(state,), graph_updates=False)(Net())


class TestOtherOptions:
    @pytest.mark.parametrize(
        "options",
        [
            {"keep_unused": True},
            {"inline": True},
            {"compiler_options": {"xla_cpu_enable_fast_math": False}},
            {"backend": "cpu"},
        ],
        ids=lambda options: next(iter(options)),
    )
    @pytest.mark.filterwarnings("ignore:backend and device argument on jit is deprecated:DeprecationWarning")
    def test_they_reach_jax(self, options: dict[str, Any]) -> None:
        net = Net()

        nnx.jit(lambda net, unused: net.mean.set_value(net.mean + 1), **options)(net, 3.0)

        assert value(net.mean) == 1.0

    def test_unknown_compiler_option(self) -> None:
        with pytest.raises(Exception, match="no_such_option"):
            nnx.jit(lambda net: net(1.0), compiler_options={"no_such_option": "1"})(Net())

    def test_inline_leaves_no_call_in_the_outer_program(self) -> None:
        net = Net()

        def calls(jit: Any, inline: bool) -> int:
            f = jit(lambda x: net(x), inline=inline)
            return str(jax.make_jaxpr(f)(1.0)).count("jit[")

        # When the calls go is up to JAX: early in 0.10, late in 0.12.
        assert calls(nnx.jit, inline=False) == 1
        assert calls(nnx.jit, inline=True) == calls(jax.jit, inline=True)

    def test_keep_unused(self) -> None:
        def arguments(keep_unused: bool) -> int:
            f = nnx.jit(lambda net, unused: net.weight * 1, keep_unused=keep_unused)
            return len(jax.tree.leaves(f.lower(Net(), 1.0).compile().input_shardings))

        assert arguments(True) > arguments(False)

    def test_unknown_option(self) -> None:
        with pytest.raises(TypeError, match="no_such_option"):
            nnx.jit(lambda: None, no_such_option=1)
