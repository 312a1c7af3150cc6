"""Captured objects under every transform: read, written, shared with arguments, and through several transforms.

Two tables: by which *routes* a function reaches a model, and what each *transform* makes of a function of one number.
"""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec

import nnxkit as nnx

F = Callable[..., Any]
Mode = Mapping[str, Any]

MODES: Mapping[str, Mode] = {
    "default": {},
    "no updates": {"graph": True, "graph_updates": False},
    "tree": {"graph": False},
}


class Net(nnx.Module):
    """A parameter that is read, and a count that is written."""

    def __init__(self, scale: float = 2.0) -> None:
        self.scale = nnx.Param(jnp.asarray(scale))
        self.count = nnx.BatchStat(jnp.asarray(0.0))


def body(net: Net, *args: Any) -> Any:
    """What the functions under the transforms do. Loops pass the number of the step before the number itself."""
    net.count[...] += 1.0
    return jnp.sin(args[-1]) * net.scale[...]


# ---- routes: how a function comes to a model


class Holder(nnx.Module):
    def __init__(self, net: Net) -> None:
        self.net = net

    def __call__(self, *args: Any) -> Any:
        return body(self.net, *args)

    def step(self, *args: Any) -> Any:
        return self(*args)


class Trainer:
    """Neither a Pytree nor a Variable."""

    def __init__(self, net: Net) -> None:
        self.nets = {"main": net}
        self.step_once = nnx.jit(self.step)

    def __call__(self, *args: Any) -> Any:
        return body(self.nets["main"], *args)

    def step(self, *args: Any) -> Any:
        return self(*args)


def by_global(source: str, **names: Any) -> F:
    names = {"__name__": "users_module", "body": body, **names}
    exec(source, names)
    return names["f"]  # type: ignore[no-any-return]


def by_cell(net: Net) -> F:
    return lambda *args: body(net, *args)


def by_default(net: Net) -> F:
    def f(*args: Any, net: Net = net) -> Any:
        return body(net, *args)

    return f


def by_module(net: Net) -> F:
    config = types.ModuleType("users_config")
    config.net = net  # type: ignore[attr-defined]
    return by_global("def f(*args): return body(config.net, *args)", config=config)


def by_helper(net: Net) -> F:
    helper = by_global("def f(*args): return body(net, *args)", net=net)
    return lambda *args: next(iter([helper(x) for x in args[-1:]]))


def by_wrapper(net: Net) -> F:
    f = by_cell(net)
    return functools.wraps(f)(lambda *args: f(*args))


def by_parts(net: Net) -> F:
    scale, count = net.scale, [net.count]
    part = SimpleNamespace(scale=scale, count=count[0])
    return lambda *args: body(part, *args)  # type: ignore[arg-type]


def by_instance(net: Net) -> F:
    trainer = Trainer(net)
    return lambda *args: trainer.step(*args)


ROUTES: Mapping[str, Callable[[Net], F]] = {
    "cell": by_cell,
    "global": lambda net: by_global("def f(*args): return body(net, *args)", net=net),
    "attribute of a module": by_module,
    "default": by_default,
    "partial": lambda net: functools.partial(body, net),
    "container": lambda net: by_global("def f(*args): return body(nets[0]['a'], *args)", nets=[{"a": net}]),
    "helper": by_helper,
    "wrapper": by_wrapper,
    "its Variables": by_parts,
    "method": lambda net: Holder(net).step,
    "Module": lambda net: Holder(net),
    "instance": by_instance,
    "method of an instance": lambda net: Trainer(net).step,
    "callable instance": lambda net: Trainer(net),
    "jitted method in an instance": lambda net: Trainer(net).step_once,
}


# ---- transforms: what they make of a function of one number


def same(f: F) -> F:
    return f


def thrice(f: F) -> F:
    return lambda x: f(f(f(x)))


def derivative(f: F) -> F:
    return jax.grad(f)


@dataclass(frozen=True)
class Transform:
    """A transform.

    Attributes:
        of: a function of one number, made with the transform in a mode.
        pure: the same for a function without state.
        calls: how often the function runs in one call, as far as its writes tell.
    """

    of: Callable[[F, Mode], F]
    pure: Callable[[F], F] = same
    calls: int = 1


def _value_and_grad(f: F, mode: Mode) -> F:
    return lambda x: sum(nnx.value_and_grad(f, **mode)(x))


def _while_loop(f: F, mode: Mode) -> F:
    def loop(x: Any) -> Any:
        step = lambda carry: (carry[0] + 1, f(carry[1]))  # noqa: E731
        return nnx.while_loop(lambda carry: carry[0] < 3, step, (0, x), **mode)[1]

    return loop


def _shard_map(f: F, mode: Mode) -> F:
    mesh = jax.make_mesh((1,), ("a",))
    spec = PartitionSpec()
    return lambda x: nnx.shard_map(f, mesh=mesh, in_specs=(spec,), out_specs=spec, **mode)(x)


def _custom_vjp(f: F, mode: Mode) -> F:
    g = nnx.custom_vjp(f, **mode)
    g.defvjp(lambda x: (f(x), x), lambda x, cotangent: (cotangent,))
    return g


def _checkify(f: F, mode: Mode) -> F:
    return lambda x: nnx.checkify(f, **mode)(x)[1]


TRANSFORMS: Mapping[str, Transform] = {
    "jit": Transform(lambda f, mode: nnx.jit(f, **mode)),
    "grad": Transform(lambda f, mode: nnx.grad(f, **mode), derivative),
    "value_and_grad": Transform(_value_and_grad, lambda f: lambda x: sum(jax.value_and_grad(f)(x))),
    "vjp": Transform(lambda f, mode: lambda x: nnx.vjp(f, x, **mode)[0]),
    "jvp": Transform(lambda f, mode: lambda x: nnx.jvp(f, (x,), (jnp.ones(()),), **mode)[1], derivative),
    "remat": Transform(lambda f, mode: nnx.remat(f, **mode)),
    "vmap": Transform(lambda f, mode: lambda x: nnx.vmap(f, **mode)(jnp.stack([x, x]))[0]),
    "pmap": Transform(lambda f, mode: lambda x: nnx.pmap(f, **mode)(x[None])[0]),
    "shard_map": Transform(_shard_map),
    "scan": Transform(
        lambda f, mode: nnx.scan(f, length=3, in_axes=nnx.Carry, out_axes=nnx.Carry, **mode), thrice, calls=3
    ),
    "fori_loop": Transform(lambda f, mode: lambda x: nnx.fori_loop(0, 3, f, x, **mode), thrice, calls=3),
    "while_loop": Transform(_while_loop, thrice, calls=3),
    "cond": Transform(lambda f, mode: lambda x: nnx.cond(True, f, lambda x: x, x, **mode)),
    "switch": Transform(lambda f, mode: lambda x: nnx.switch(1, [lambda x: x, f], x, **mode)),
    "custom_vjp": Transform(_custom_vjp),
    "checkify": Transform(_checkify),
}

SOME_ROUTES = ("global", "method", "instance")
CASES = {
    *itertools.product(["jit", "grad", "vmap", "scan", "while_loop", "cond"], ROUTES, ["default"]),
    *itertools.product(TRANSFORMS, SOME_ROUTES, MODES),
}
"""One transform of each kind meets every route, and every transform every mode."""


def expected(transform: Transform, scale: float, x: Any) -> Any:
    return transform.pure(lambda x: jnp.sin(x) * scale)(x)


def tracers(*objects: Any) -> Iterator[Any]:
    for leaf in jax.tree.leaves([nnx.state(item) for item in objects]):
        if isinstance(leaf, jax.core.Tracer):
            yield leaf


@pytest.mark.parametrize(("name", "route", "mode"), sorted(CASES))
def test_read_and_written(name: str, route: str, mode: str) -> None:
    transform, net, x = TRANSFORMS[name], Net(), jnp.asarray(0.5)
    f = transform.of(ROUTES[route](net), MODES[mode])
    scale, count = net.scale, net.count
    assert jnp.allclose(f(x), expected(transform, 2.0, x))
    assert net.count[...] == transform.calls
    net.scale[...] = 3.0  # type: ignore[index]
    assert jnp.allclose(f(x), expected(transform, 3.0, x))
    assert net.count[...] == 2 * transform.calls
    assert (net.scale, net.count) == (scale, count)
    assert not list(tracers(net))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_nothing_changes_if_it_raises(name: str, mode: str) -> None:
    net = Net()

    def f(*args: Any) -> Any:
        body(net, *args)
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        TRANSFORMS[name].of(f, MODES[mode])(jnp.asarray(0.5))
    assert net.count[...] == 0
    assert not list(tracers(net))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_another_model_under_the_name(name: str) -> None:
    """What is read is what the name stands for at the time of the call."""
    transform, x = TRANSFORMS[name], jnp.asarray(0.5)
    trainer = SimpleNamespace(net=Net())
    f = transform.of(lambda *args: body(trainer.net, *args), {})
    f(x)
    trainer.net = other = Net(3.0)
    assert jnp.allclose(f(x), expected(transform, 3.0, x))
    assert other.count[...] == transform.calls


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("route", SOME_ROUTES)
def test_abstract(route: str, mode: str) -> None:
    """What runs on shapes alone writes nothing."""
    net = Net()
    f = ROUTES[route](net)
    assert nnx.eval_shape(f, jnp.asarray(0.5), **MODES[mode]).shape == ()
    assert "sin" in str(nnx.make_jaxpr(f, **MODES[mode])(jnp.asarray(0.5)))
    assert net.count[...] == 0
    assert not list(tracers(net))


# ---- captured and passed


def _carried(loop: Callable[[F, Any], Any]) -> Callable[[F, Any, Any], Any]:
    def call(f: F, net: Any, x: Any) -> Any:
        return loop(lambda *args: (args[-1][0], f(*args[-1])), (net, x))[1]

    return call


PASSED: Mapping[str, Callable[[Mode], Callable[[F, Any, Any], Any]]] = {
    "jit": lambda mode: lambda f, net, x: nnx.jit(f, **mode)(net, x),
    "grad": lambda mode: lambda f, net, x: nnx.grad(f, argnums=1, **mode)(net, x),
    "value_and_grad": lambda mode: lambda f, net, x: nnx.value_and_grad(f, argnums=1, **mode)(net, x)[1],
    "vmap": lambda mode: lambda f, net, x: nnx.vmap(f, in_axes=(None, 0), **mode)(net, x[None])[0],
    "cond": lambda mode: lambda f, net, x: nnx.cond(x < 10, f, lambda net, x: x, net, x, **mode),
    "switch": lambda mode: lambda f, net, x: nnx.switch(1, [lambda net, x: x, f], net, x, **mode),
    "fori_loop": lambda mode: _carried(lambda f, init: nnx.fori_loop(0, 1, f, init, **mode)),
    "scan": lambda mode: _carried(
        lambda f, init: nnx.scan(f, length=1, in_axes=nnx.Carry, out_axes=nnx.Carry, **mode)(init)
    ),
    "remat": lambda mode: lambda f, net, x: nnx.remat(f, **mode)(net, x),
    "vjp": lambda mode: lambda f, net, x: nnx.vjp(functools.partial(f, net), x, **mode)[0],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PASSED)
@pytest.mark.parametrize("captured", ["the same", "its owner", "its part"])
def test_passed_too(captured: str, name: str, mode: str) -> None:
    """An object that is captured and passed is one object inside; also if only a part of it is passed."""
    holder = Holder(Net())
    get, passed = {
        "the same": (lambda: holder.net, holder.net),
        "its owner": (lambda: holder.net, holder.net),
        "its part": (lambda: holder.net, holder),
    }[captured]
    owner, net = holder, holder.net
    seen: list[bool] = []

    def f(argument: Any, x: Any) -> Any:
        inner = argument.net if isinstance(argument, Holder) else argument
        outer = owner.net if captured == "its owner" else net
        seen.append(inner is outer)
        inner.count[...] += 1
        outer.count[...] += inner.count[...]
        return x * inner.scale[...]

    PASSED[name](MODES[mode])(f, passed, jnp.asarray(0.5))
    assert seen
    assert all(seen)
    assert get().count[...] == 2
    assert not list(tracers(holder))


# ---- transforms of transforms

NESTABLE = ["jit", "grad", "remat", "vmap", "scan", "cond", "value_and_grad", "vjp", "fori_loop"]


def _of_one_number(f: F) -> F:
    return lambda *args: f(args[-1])


def check_nested(names: tuple[str, ...], mode: str) -> None:
    net, x = Net(), jnp.asarray(0.5)
    f, pure, calls = by_cell(net), lambda x, scale: jnp.sin(x) * scale, 1
    for name in reversed(names):
        transform = TRANSFORMS[name]
        f, calls = _of_one_number(transform.of(f, MODES[mode])), calls * transform.calls
    for scale in (2.0, 3.0):
        net.scale[...] = scale  # type: ignore[index]
        reference: F = functools.partial(pure, scale=scale)
        for name in reversed(names):
            reference = TRANSFORMS[name].pure(reference)
        assert jnp.allclose(f(x), reference(x), rtol=1e-4)
    assert net.count[...] == 2 * calls
    assert not list(tracers(net))


@pytest.mark.parametrize("names", list(itertools.product(NESTABLE, repeat=2)), ids="-".join)
def test_two_transforms(names: tuple[str, ...]) -> None:
    check_nested(names, "default")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "names",
    [
        ("jit", "grad", "scan"),
        ("jit", "vmap", "grad"),
        ("grad", "jit", "cond"),
        ("scan", "value_and_grad", "jit"),
        ("jit", "grad", "grad"),
        ("jit", "fori_loop", "grad", "jit"),
    ],
    ids="-".join,
)
def test_several_transforms(names: tuple[str, ...], mode: str) -> None:
    check_nested(names, mode)


def test_under_jax() -> None:
    """A transform of JAX lifts nothing, and says so; what is inside of it is not to blame."""
    net = Net()
    step = nnx.grad(by_cell(net))
    with pytest.raises(nnx.errors.TraceContextError, match="from a different trace level") as error:
        jax.jit(step)(0.5)
    assert error.value.code == "NNX201"
    assert net.count[...] == 0
