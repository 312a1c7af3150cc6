"""Modules: sow, perturb, capture, modes, views, iteration."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nnx_rules.errors import SowError, TraceContextError, UnknownAttributeError


class Block(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.linear = nnx.Linear(2, 2, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.linear(x)
        self.sow(nnx.Intermediate, "h", x)
        return self.perturb("p", x)


class Net(nnx.Module):
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.first, self.second = Block(rngs), Block(rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.norm = nnx.BatchNorm(2, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.second(self.first(x))

    def half(self, x: jax.Array) -> jax.Array:
        return self.first(x)


X = jnp.ones((1, 2))


class TestSow:
    def test_appends(self) -> None:
        m = nnx.Module()
        assert m.sow(nnx.Intermediate, "h", 1)
        assert m.sow(nnx.Intermediate, "h", 2)
        assert type(m.h) is nnx.Intermediate
        assert m.h.get_value() == (1, 2)

    def test_reduces(self) -> None:
        m = nnx.Module()
        for value in (1, 5, 3):
            m.sow(nnx.Intermediate, "h", value, reduce_fn=max, init_fn=lambda: 0)
        assert m.h.get_value() == 5

    @pytest.mark.parametrize("present", [1, nnx.Param(1), nnx.Perturbation(1), None])
    def test_wrong_attribute(self, present: Any) -> None:
        m = nnx.Module()
        m.h = present
        with pytest.raises(SowError, match=r"`Module.h` is .*, so no `Intermediate` can be sown"):
            m.sow(nnx.Intermediate, "h", 1)

    def test_method_of_the_class_is_not_hidden(self) -> None:
        with pytest.raises(SowError, match=r"`Net.half`"):
            Net().sow(nnx.Intermediate, "half", 1)

    def test_captured_module(self) -> None:
        m = nnx.Module()
        with pytest.raises(TraceContextError, match="Cannot mutate `Module`"):
            jax.jit(lambda x: m.sow(nnx.Intermediate, "h", x))(1.0)
        assert vars(m) == {}

    def test_pop(self) -> None:
        net = Net()
        net(X)
        popped = nnx.pop(net, nnx.Intermediate)
        assert set(popped) == {"first", "second"}
        assert not hasattr(net.first, "h")


class TestPerturb:
    def test_zeros_then_added(self) -> None:
        m = nnx.Module()
        assert m.perturb("p", jnp.ones(3)).tolist() == [1, 1, 1]
        assert type(m.p) is nnx.Perturbation
        assert m.p[...].tolist() == [0, 0, 0]
        m.p[...] = jnp.full(3, 2.0)
        assert m.perturb("p", jnp.ones(3)).tolist() == [3, 3, 3]

    def test_wrong_attribute(self) -> None:
        m = nnx.Module()
        m.p = nnx.Param(1)
        with pytest.raises(SowError, match=r"`Module\.p` is a Param"):
            m.perturb("p", jnp.ones(1))

    def test_gradient(self) -> None:
        net = Net()
        net(X)
        graphdef, perturbations, rest = nnx.split(net, nnx.Perturbation, ...)

        def loss(perturbations: Any) -> Any:
            return jnp.sum(nnx.merge(graphdef, perturbations, rest, copy=True)(X))

        grads = jax.grad(loss)(perturbations)
        assert grads["second"]["p"][...].tolist() == [[1, 1]]


class TestCapture:
    def test_leaves_nothing_behind(self) -> None:
        net = Net()
        names = {id(m): set(vars(m)) for _, m in nnx.iter_modules(net)}
        out, inner = nnx.capture(net, nnx.Intermediate)(X)
        assert (out == nnx.capture(net, nnx.Perturbation)(X)[0]).all()
        assert sorted(inner) == ["first", "second"]
        assert (inner["second"]["h"].get_value()[0] == out).all()
        assert {id(m): set(vars(m)) for _, m in nnx.iter_modules(net)} == names

    def test_function_and_method(self) -> None:
        net = Net()
        _, state = nnx.capture(lambda m, x: m(x) + m(x), nnx.Intermediate)(net, X)
        assert len(state["first"]["h"].get_value()) == 2
        _, state = nnx.capture(net.half, nnx.Intermediate)(X)
        assert list(state) == ["first"]

    def test_several_types(self) -> None:
        _, sown, perturbed = nnx.capture(Net(), nnx.Intermediate, nnx.Perturbation)(X)
        assert list(sown["first"]) == ["h"]
        assert list(perturbed["first"]) == ["p"]

    def test_what_is_no_variable_type(self) -> None:
        with pytest.raises(
            TypeError, match=r"nnx.capture takes Variable types, such as nnx.Intermediate, and got a str"
        ):
            nnx.capture(Net(), "intermediates")

    def test_only_inside(self) -> None:
        m = nnx.Module()

        def record(m: nnx.Module) -> Any:
            return m.sow(nnx.Intermediate, "h", 1, capture_noop=True), m.perturb("p", 2.0, capture_noop=True)

        assert record(m) == (False, 2.0)
        assert not {"h", "p"} & vars(m).keys()
        _, sown, perturbed = nnx.capture(record, nnx.Intermediate, nnx.Perturbation)(m)
        assert (sown["h"].get_value(), perturbed["p"].get_value()) == ((1,), 0.0)

    def test_no_types(self) -> None:
        assert nnx.capture(Net())(X).shape == (1, 2)

    def test_init(self) -> None:
        net = Net()
        plain, perturbations = nnx.capture(net, nnx.Perturbation)(X)
        ones = jax.tree.map(jnp.ones_like, perturbations)
        out, _ = nnx.capture(net, nnx.Intermediate, init=ones)(X)
        expected = net.second.linear(net.first.linear(X) + 1) + 1
        assert jnp.allclose(out, expected)
        assert not jnp.allclose(out, plain)
        assert not hasattr(net.first, "p")

    def test_existing_attributes_are_left_alone(self) -> None:
        net = Net()
        net(X)
        before = net.first.h.get_value()
        _, state = nnx.capture(net, nnx.Intermediate)(X)
        assert len(state["first"]["h"].get_value()) == 1
        assert len(net.first.h.get_value()) == len(before) == 1

    def test_exception(self) -> None:
        net = Net()

        def fail(m: Net) -> None:
            m(X)
            raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            nnx.capture(fail, nnx.Intermediate)(net)
        assert set(vars(net.first)) == {"linear"}
        assert nnx.Module().sow(nnx.Intermediate, "h", 1)

    def test_modules_that_are_not_the_root(self) -> None:
        one, other = Block(nnx.Rngs(0)), Block(nnx.Rngs(1))
        _, state = nnx.capture(lambda a, b, x: a(b(x)), nnx.Intermediate)(one, other, X)
        assert list(state) == ["h"]
        assert vars(one).keys() == vars(other).keys() == {"linear"}

    def test_inside_a_trace(self) -> None:
        def f(net: Net, x: Any) -> Any:
            _, state = nnx.capture(net, nnx.Intermediate)(x)
            return state

        state = jax.jit(f)(Net(), X)
        assert state["first"]["h"].get_value()[0].shape == (1, 2)

    def test_method_outputs(self) -> None:
        original = vars(Net)["__call__"]
        _, state = nnx.capture(Net(), nnx.Intermediate, method_outputs=nnx.Intermediate)(X)
        assert len(state["__call__"].get_value()) == 1
        assert set(state["first"]) == {"__call__", "h", "linear"}
        assert vars(Net)["__call__"] is original

    def test_nested(self) -> None:
        net = Net()

        def outer(m: Net) -> Any:
            m.first.sow(nnx.Intermediate, "outer", 1)
            return nnx.capture(m, nnx.Intermediate)(X)

        (_, inner), outside = nnx.capture(outer, nnx.Intermediate)(net)
        assert list(inner["first"]) == ["h"]
        assert list(outside["first"]) == ["outer"]


class TestModes:
    def test_train_and_eval(self) -> None:
        net = Net()
        net.eval()
        assert (net.drop.deterministic, net.norm.use_running_average) == (True, True)
        net.train()
        assert (net.drop.deterministic, net.norm.use_running_average) == (False, False)
        net.eval(rate=0.25)
        assert net.drop.rate == 0.25
        nnx.Module().train()

    @pytest.mark.parametrize("mode", ["train", "eval", "set_attributes"])
    def test_typo(self, mode: str) -> None:
        net = Net()
        with pytest.raises(
            UnknownAttributeError, match="no module in `Net` has the attribute `determinstic`"
        ) as caught:
            getattr(net, mode)(determinstic=True)
        assert "did you mean `deterministic`?" in str(caught.value)

    def test_mode_given_twice(self) -> None:
        with pytest.raises(TypeError, match="is set by the mode itself"):
            Net().train(deterministic=True)

    def test_set_attributes(self) -> None:
        net = Net()
        net.set_attributes(nnx.BatchNorm, momentum=0.5)
        assert net.norm.momentum == 0.5
        net.set_attributes(lambda path, m: path == ("drop",), rate=0.1)
        assert net.drop.rate == 0.1
        with pytest.raises(UnknownAttributeError, match="`rate`"):
            net.set_attributes(nnx.BatchNorm, rate=0.3)
        net.set_attributes(nnx.BatchNorm, raise_if_not_found=False, rate=0.3)
        assert net.drop.rate == 0.1

    def test_class_attributes_and_properties(self) -> None:
        class Mode(nnx.Module):
            flag = False

        m = Mode()
        m.set_attributes(flag=True)
        assert (m.flag, Mode.flag) == (True, False)


class TestViews:
    def test_view(self) -> None:
        net = Net()
        view = nnx.view(net, deterministic=True, use_running_average=True)
        assert (view.drop.deterministic, view.norm.use_running_average) == (True, True)
        assert (net.drop.deterministic, net.norm.use_running_average) == (False, False)
        assert view.norm.scale is net.norm.scale
        assert view.norm is not net.norm

    def test_only(self) -> None:
        net = Net()
        view = nnx.view(net, only=nnx.BatchNorm, use_running_average=True)
        assert view.norm.use_running_average
        with pytest.raises(UnknownAttributeError, match="`deterministic`"):
            nnx.view(net, only=nnx.BatchNorm, deterministic=True)
        with pytest.raises(UnknownAttributeError, match="did you mean `deterministic`"):
            nnx.view(net, determinstic=True)
        nnx.view(net, raise_if_not_found=False, typo=1)

    def test_with_attributes(self) -> None:
        net = Net()
        other = nnx.with_attributes(net, rate=0.25)
        assert (other.drop.rate, net.drop.rate) == (0.25, 0.5)
        assert other.norm.scale is net.norm.scale
        with pytest.raises(UnknownAttributeError, match="`zork`"):
            nnx.with_attributes(net, zork=1)

    def test_info(self) -> None:
        assert nnx.view_info(Net()) == (
            "BatchNorm:\n"
            "  use_running_average: bool | None = None\n"
            "    whether the stored statistics are used instead of those of the batch.\n"
            "Dropout:\n"
            "  deterministic: bool | None = None\n"
            "    whether the layer passes its input through."
        )


class TestIteration:
    def test_modules(self) -> None:
        shared = nnx.Module()
        node = nnx.Dict(a=nnx.List([shared]), b=shared, c=nnx.Param(1))
        assert [path for path, _ in nnx.iter_modules(node)] == [("a", 0), ("a",), ()]

    def test_children(self) -> None:
        node = nnx.Dict(c=nnx.Param(1), a=nnx.Module(), n=1, x=jnp.ones(1))
        assert [key for key, _ in nnx.iter_children(node)] == ["a", "c"]
        assert [key for key, _ in nnx.iter_module_children(node)] == ["a"]

    def test_deprecated_methods(self) -> None:
        node = nnx.Dict(a=nnx.Module())
        with pytest.warns(DeprecationWarning, match="iter_modules"):
            assert len(list(node.iter_modules())) == 2
        with pytest.warns(DeprecationWarning, match="iter_children"):
            assert len(list(node.iter_children())) == 1
