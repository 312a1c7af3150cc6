"""Whatever raises under a transform, the caller's objects are as they were; none holds a tracer, and all work on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nets import ALL_MODES, Modes, Net, tracers, value
from nnx_rules.errors import GraphError, TraceContextError, TransformArgumentError


class Stop(Exception):
    """Raised by the functions of these tests."""


class Photo:
    """All that can be seen of objects: identities of the values, structure, attributes that are no graph."""

    def __init__(self, *roots: Any) -> None:
        self.roots = roots
        self.before = self.take()

    def take(self) -> list[Any]:
        seen: list[Any] = []
        for root in self.roots:
            seen.append(nnx.graphdef(root))
            for path, found in nnx.iter_graph(root):
                held = found.get_raw_value() if isinstance(found, nnx.Variable) else found
                seen.append((path, id(found), id(held), found.get_metadata() if held is not found else None))
        return seen

    def check(self) -> None:
        assert self.take() == self.before
        assert tracers(*self.roots) == []


def loss(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a float result, whatever `f` returns."""
    return lambda net, x: (jnp.float32(0.0) * x + net.weight, f(net, x))


TRANSFORMS: dict[str, Callable[..., Callable[..., Any]]] = {
    "jit": nnx.jit,
    "grad": lambda f, **modes: nnx.grad(loss(f), argnums=1, has_aux=True, **modes),
    "value_and_grad": lambda f, **modes: nnx.value_and_grad(loss(f), argnums=1, has_aux=True, **modes),
    "jit of grad": lambda f, **modes: nnx.jit(nnx.grad(loss(f), argnums=1, has_aux=True, **modes), **modes),
    "grad of jit": lambda f, **modes: nnx.grad(loss(nnx.jit(f, **modes)), argnums=1, has_aux=True, **modes),
    "jit of jit": lambda f, **modes: nnx.jit(lambda *args: nnx.jit(f, **modes)(*args), **modes),
}
"""Each calls a function of a module and a number under a transform."""

Transform = Callable[..., Callable[..., Any]]


@pytest.fixture(params=TRANSFORMS.values(), ids=TRANSFORMS.keys())
def transform(request: pytest.FixtureRequest) -> Transform:
    found: Transform = request.param
    return found


def write_all(net: Any, x: Any) -> None:
    """Every kind of change."""
    net.mean[...] += x
    net.weight.set_value(jnp.ones(3) * x)
    net.weight.set_metadata(layer="first")
    net.offset = net.offset * x
    net.mode = "changed"
    net.new = nnx.Param(x)
    net.inner.bias = nnx.Param(x)
    net.inner.child = Net()
    del net.mean


def raise_after_writing(net: Any, x: Any) -> None:
    write_all(net, x)
    raise Stop("in the function")


def raise_exit(net: Any, x: Any) -> None:
    write_all(net, x)
    raise KeyboardInterrupt("in the function")


def misfit(net: Any, x: Any) -> None:
    write_all(net, x)
    jnp.ones(2) + jnp.ones(3)


def concretise(net: Any, x: Any) -> None:
    write_all(net, x)
    jax.jit(bool)(x)


FAILURES = {
    raise_after_writing: (Stop, "in the function"),
    raise_exit: (KeyboardInterrupt, "in the function"),
    misfit: (TypeError, "incompatible shapes"),
    concretise: (jax.errors.TracerBoolConversionError, "boolean conversion of traced array"),
}


@pytest.mark.parametrize("modes", ALL_MODES)
class TestTrace:
    """What raises while the function is traced."""

    @pytest.mark.parametrize("function", FAILURES, ids=lambda function: function.__name__)
    def test_nothing_has_changed(self, transform: Transform, modes: Modes, function: Callable[..., Any]) -> None:
        net = Net()
        photo = Photo(net)
        error, text = FAILURES[function]

        with pytest.raises(error, match=text):
            transform(function, **modes)(net, 2.0)

        photo.check()
        assert float(net(1.0)) == 12.0

    def test_captured_objects(self, transform: Transform, modes: Modes) -> None:
        net, passed = Net(), Net()
        photo = Photo(net, passed)

        def f(other: Any, x: Any) -> None:
            write_all(net, x)
            write_all(other, x)
            raise Stop("with captures")

        with pytest.raises(Stop, match="with captures"):
            transform(f, **modes)(passed, 2.0)

        photo.check()

    def test_the_next_call_works(self, transform: Transform, modes: Modes) -> None:
        net, fails = Net(), [True]

        def f(net: Net, x: Any) -> None:
            net.mean[...] += x
            if fails:
                raise Stop("this time")

        transformed = transform(f, **modes)
        with pytest.raises(Stop, match="this time"):
            transformed(net, 2.0)
        fails.clear()
        transformed(net, 3.0)

        assert value(net.mean) == 3.0
        assert tracers(net) == []


class TestResultChecks:
    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_no_array_in_the_result(self, modes: Modes) -> None:
        net = Net()
        photo = Photo(net)

        def f(net: Net, x: Any) -> Any:
            write_all(net, x)
            return object()

        with pytest.raises(TypeError, match="object"):
            nnx.jit(f, **modes)(net, 2.0)

        photo.check()

    @pytest.mark.parametrize("modes", ALL_MODES[1:])
    def test_an_object_of_the_inputs_in_the_result(self, transform: Transform, modes: Modes) -> None:
        net = Net()
        photo = Photo(net)

        def f(net: Net, x: Any) -> Any:
            net.mean[...] += x
            return net.weight

        with pytest.raises(GraphError, match="NNX401"):
            transform(f, **modes)(net, 2.0)

        photo.check()

    @pytest.mark.parametrize("modes", ALL_MODES)
    @pytest.mark.parametrize(
        ("result", "error", "text"),
        [
            (lambda net: net.weight[...], TransformArgumentError, "NNX412"),
            (lambda net: (jnp.ones(2), 1), TypeError, "scalar"),
            (lambda net: (1, 1), TypeError, "real"),
            (lambda net: (None, 1), TypeError, "scalar|None"),
            (lambda net: ((net.weight * 1.0, 1.0), 1), TypeError, "scalar|tuple"),
        ],
        ids=["no pair", "vector", "integer", "none", "tuple"],
    )
    def test_what_is_no_loss(self, modes: Modes, result: Callable[..., Any], error: type[Exception], text: str) -> None:
        net = Net()
        photo = Photo(net)

        def f(x: Any, net: Net) -> Any:
            net.mean[...] += x
            return result(net)

        for transform in (nnx.grad, nnx.value_and_grad):
            with pytest.raises(error, match=text):
                transform(f, has_aux=True, **modes)(1.0, net)

        photo.check()


@pytest.mark.parametrize("modes", ALL_MODES)
class TestRun:
    """What raises while a compiled function runs."""

    def test_nans(self, modes: Modes) -> None:
        net = Net()
        photo = Photo(net)
        f = nnx.jit(lambda net, x: net.mean.set_value(jnp.log(x) * 0), **modes)

        with jax.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
            f(net, jnp.float32(0.0))

        photo.check()


class TestWriteBack:
    """What raises when changes are brought back: they are checked before the first one is made."""

    @pytest.mark.parametrize("modes", ALL_MODES)
    @pytest.mark.parametrize("outer", [jax.jit, jax.grad, jax.checkpoint], ids=lambda outer: outer.__name__)
    def test_one_object_of_another_trace_level(self, outer: Callable[..., Any], modes: Modes) -> None:
        captured = Net()
        photo = Photo(captured)
        seen = []

        @nnx.jit(**modes)
        def write(own: Any, other: Any, x: Any) -> None:
            for net in (own, other):
                net.mean[...] += x

        def f(x: Any) -> Any:
            own = Net()
            own_photo = Photo(own)
            with pytest.raises(TraceContextError, match="NNX201"):
                write(own, captured, x)
            assert own_photo.take() == own_photo.before
            seen.append(own)
            return x

        outer(f)(1.0)

        assert seen
        photo.check()

    @pytest.mark.parametrize(
        "change",
        [
            lambda net, x: setattr(net, "offset", x),
            lambda net, x: setattr(net, "mode", "eval"),
            lambda net, x: setattr(net, "new", nnx.Param(x)),
            lambda net, x: delattr(net, "mean"),
            lambda net, x: net.weight.set_metadata(layer=1),
            lambda net, x: setattr(net, "inner", nnx.Dict()),
            lambda net, x: net.inner.bias.set_value(x),
        ],
        ids=["bare array", "static", "new", "deleted", "metadata", "submodule", "nested value"],
    )
    @pytest.mark.parametrize("edits", [True, False])
    def test_each_kind_of_change(self, change: Callable[..., Any], edits: bool) -> None:
        captured = Net()
        photo = Photo(captured)

        @nnx.jit
        def write(own: Any, other: Any, x: Any) -> None:
            own.mean[...] += x
            if edits:
                own.mode = "written"
            change(other, x)

        @jax.jit
        def f(x: Any) -> Any:
            own = Net()
            own_photo = Photo(own)
            with pytest.raises(TraceContextError, match="different trace level"):
                write(own, captured, x)
            assert own_photo.take() == own_photo.before
            return x

        f(1.0)

        photo.check()

    def test_calls_that_do_not_trace(self) -> None:
        net = Net()
        write = nnx.jit(lambda net, x: net.mean.set_value(x))
        write(net, jnp.float32(1.0))
        photo = Photo(net)

        with pytest.raises(TraceContextError, match="NNX201"):
            jax.jit(lambda x: write(net, x))(jnp.float32(2.0))

        photo.check()


@pytest.mark.parametrize("modes", ALL_MODES)
def test_errors_of_the_library_are_what_is_raised(modes: Modes) -> None:
    """An error inside of a trace arrives as it was raised, and not as one that came after it."""
    captured = Net()

    @jax.jit
    def f(x: Any) -> Any:
        captured.mean[...] = x
        return x

    with pytest.raises(TraceContextError, match=r"(?s)Cannot mutate `BatchStat`.*NNX201"):
        nnx.jit(lambda x: f(x), **modes)(1.0)

    assert tracers(captured) == []
