"""``nnx.scan``: what is scanned over, carried, broadcast and captured, and what comes back of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from modes import without_updates
from nets import count_carried
from nnx_rules.errors import (
    GraphError,
    TransformArgumentError,
)
from nnxkit import Carry
from scanned import XS, Layer, Model, stack

# Arrays: the forms of the axes


def test_a_carry_and_elements(mode: dict[str, bool]) -> None:
    carry, ys = nnx.scan(lambda carry, x: (carry + x, carry), **mode)(1, XS)
    assert (carry, carry.dtype, ys.tolist()) == (4.0, jnp.float32, [1.0, 1.0, 2.0])


FORMS: dict[str, tuple[Any, Any, Any, Any, Any]] = {
    "carry alone": (lambda c: c * 2, Carry, Carry, (1.0,), 8.0),
    "carry in a tuple": (lambda c: (c * 2,), (Carry,), (Carry,), (1.0,), (8.0,)),
    "carry last": (lambda x, c: (x, c + x), (0, Carry), (0, Carry), (XS, 1.0), (XS, 4.0)),
    "no carry": (lambda x: x * 2, 0, 0, (XS,), XS * 2),
    "no carry, two results": (lambda x: (x, -x), 0, 0, (XS,), (XS, -XS)),
    "no carry, two axes": (lambda x: (x, x), (1,), (0, 1), (jnp.ones((2, 3)),), (jnp.ones((3, 2)), jnp.ones((2, 3)))),
    "negative axes": (lambda c, x: (c, x), (Carry, -1), (Carry, -1), (0.0, jnp.ones((2, 3))), (0.0, jnp.ones((2, 3)))),
    "broadcast": (lambda c, a, x: c + a.sum() * x, (Carry, None, 0), Carry, (0.0, XS, XS), 9.0),
    "prefix trees": (
        lambda c, t: (c + t["a"], t["b"]),
        (Carry, {"a": 0, "b": None}),
        (Carry, 0),
        (0.0, {"a": XS, "b": 5.0}),
        (3.0, jnp.full(3, 5.0)),
    ),
    "a list": (lambda c, x: (c + x, x), [Carry, 0], (Carry, 0), (0.0, XS), (3.0, XS)),
    "a tuple of carries": (
        lambda c, x: ((c[0] + x, c[1]), None),
        (Carry, 0),
        (Carry, 0),
        ((0.0, 1), XS),
        ((3.0, 1), None),
    ),
    "None as elements": (lambda c, x: (c + 1, x), (Carry, 0), (Carry, 0), (0.0, None), (3.0, None)),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_axes(form: str, mode: dict[str, bool]) -> None:
    f, in_axes, out_axes, args, expected = FORMS[form]
    result = nnx.scan(f, in_axes=in_axes, out_axes=out_axes, length=3, **mode)(*args)
    assert jax.tree.structure(result) == jax.tree.structure(expected)
    assert jax.tree.all(jax.tree.map(jnp.allclose, result, expected))


def test_options_of_jax(mode: dict[str, bool]) -> None:
    _, ys = nnx.scan(lambda c, x: (c + x, c), reverse=True, **mode)(0.0, XS)
    assert ys.tolist() == [3.0, 2.0, 0.0]
    assert nnx.scan(lambda c, x: (c + x, x), unroll=2, _split_transpose=True, **mode)(0.0, XS)[0] == 3
    carry, ys = nnx.scan(lambda c, x: (c + x, x), **mode)(0.0, jnp.ones((0, 2)).sum(1))
    assert (carry, ys.shape) == (0.0, (0,))


def test_keyword_arguments(mode: dict[str, bool]) -> None:
    f = nnx.scan(lambda carry, x: (carry + x, x), **mode)
    assert f(x=XS, carry=1.0)[0] == f(1.0, x=XS)[0] == 4.0

    @nnx.scan(in_axes=(Carry,), out_axes=Carry, **mode)
    def add(carry: Any, *, x: Any) -> Any:
        return carry + x

    assert add(1.0, x=XS) == 4.0


def test_as_decorator_and_on_methods(mode: dict[str, bool]) -> None:
    class Stack(nnx.Module):
        def __init__(self) -> None:
            self.w = nnx.Param(jnp.array([1.0, 2.0, 3.0]))
            self.calls = nnx.Variable(jnp.zeros(3, jnp.int32))

        @nnx.scan(in_axes=(0, Carry), out_axes=Carry, **mode)
        def __call__(self, x: Any) -> Any:
            self.calls[...] += 1
            return x * self.w

    stack = Stack()
    assert stack(2.0) == 12.0
    assert nnx.jit(stack, **mode)(2.0) == 12.0
    assert stack.calls.tolist() == [2, 2, 2]


# Objects


def test_a_carried_module(mode: dict[str, bool]) -> None:
    model = Model()
    result, ys = nnx.scan(lambda model, x: (model, model.add(x)), **mode)(model, XS)
    assert (model.total[...], ys.tolist()) == (3.0, [0.0, 2.0, 4.0])
    assert (result is model) == (not mode)
    assert (result.w is model.w, result.total is model.total) == (True, True)


def test_a_carried_variable(mode: dict[str, bool]) -> None:
    total = nnx.Variable(jnp.zeros(()))

    @nnx.scan(**mode)
    def add(total: Any, x: Any) -> Any:
        total[...] += x
        return total, total[...]

    result, ys = add(total, XS)
    assert result is total
    assert ys.tolist() == [0.0, 1.0, 3.0]
    assert total[...] == 3


def test_scanned_layers(mode: dict[str, bool]) -> None:
    layers = stack(3, 4)

    @nnx.scan(in_axes=(Carry, 0), out_axes=Carry, **mode)
    def forward(x: Any, layer: Layer) -> Any:
        return layer(x)

    x = expected = jnp.ones((2, 4))
    for i in range(3):
        expected = jnp.tanh(expected @ layers.linear.kernel[i] + layers.linear.bias[i])
    assert jnp.allclose(forward(x, layers), expected, atol=1e-5)
    assert layers.calls.tolist() == [1, 1, 1]


def test_other_axes_of_a_module(mode: dict[str, bool]) -> None:
    model = nnx.Dict(w=nnx.Param(jnp.arange(6.0).reshape(2, 3)))

    @nnx.scan(in_axes=1, out_axes=1, **mode)
    def double(model: Any) -> Any:
        assert model.w.shape == (2,)
        model.w[...] *= 2
        return model.w[...] + 1

    assert double(model).tolist() == [[1, 3, 5], [7, 9, 11]]
    assert model.w.tolist() == [[0, 2, 4], [6, 8, 10]]


def test_modules_made_in_steps(mode: dict[str, bool]) -> None:
    _, made = nnx.scan(lambda c, x: (c + 1, Model(x)), **mode)(0, XS)
    assert isinstance(made, Model)
    assert made.w.tolist() == [0.0, 1.0, 2.0]
    assert made.total.shape == (3,)


def test_a_scanned_module_in_the_result() -> None:
    model = Model(shape=(3,))
    f = nnx.scan(lambda m: (m.total.set_value(m.w * 2), m)[1], in_axes=0, out_axes=0)
    assert f(model) is model
    assert model.total.tolist() == [4, 4, 4]


@without_updates
def test_a_scanned_module_in_the_result_without_graph_updates(mode: dict[str, bool]) -> None:
    with pytest.raises(GraphError, match=r"the function under `nnx\.scan` returns `args\[0\]"):
        nnx.scan(lambda m: m, in_axes=0, out_axes=0, **mode)(Model(shape=(3,)))


def test_state_axes() -> None:
    model = Model(shape=(3,))
    model.total.set_value(jnp.zeros(()))
    axes = nnx.StateAxes({nnx.Param: 0, nnx.BatchStat: Carry})
    ys = nnx.scan(lambda m, x: m.add(x), in_axes=(axes, 0), out_axes=0)(model, XS)
    assert ys.tolist() == [0.0, 2.0, 4.0]
    assert (model.total[...], model.w.tolist()) == (3.0, [2, 2, 2])


def test_state_axes_of_the_result() -> None:
    axes = nnx.StateAxes({nnx.Param: 1, ...: 0})
    made = nnx.scan(lambda x: nnx.Dict(p=nnx.Param(x), v=nnx.Variable(x)), in_axes=0, out_axes=axes)(jnp.ones((3, 2)))
    assert (made.p.shape, made.v.shape) == ((2, 3), (3, 2))


@pytest.mark.parametrize("graph", [True, False])
def test_prefix_objects(graph: bool) -> None:
    model = Model(shape=(3,))
    model.total.set_value(jnp.zeros(()))
    mode = {"graph": graph, "graph_updates": False}
    axes = nnx.prefix(model, {nnx.Param: 0, ...: None}, graph=graph)
    ys = nnx.scan(lambda m, x: m.add(x), in_axes=(axes, 0), out_axes=0, **mode)(model, XS)
    assert ys.tolist() == [0.0, 2.0, 4.0]
    assert model.total[...] == 3.0


def test_a_state_as_elements(mode: dict[str, bool]) -> None:
    state = nnx.state(Model(shape=(3,)), nnx.Param)
    total = nnx.scan(lambda c, s: c + s["w"], in_axes=(Carry, 0), out_axes=Carry, **mode)(0.0, state)
    assert total == 6.0


def test_variables_that_hold_pytrees(mode: dict[str, bool]) -> None:
    held = nnx.Variable({"a": jnp.zeros((2, 3)), "b": jnp.ones((2, 3))})

    @nnx.scan(in_axes=1, out_axes=0, **mode)
    def write(held: Any) -> Any:
        held["a"] = held["a"] + held["b"] * 2
        return held["a"]

    assert write(held).shape == (3, 2)
    assert held["a"].tolist() == [[2, 2, 2], [2, 2, 2]]


def test_array_attributes(mode: dict[str, bool]) -> None:
    model = nnx.Dict(a=jnp.zeros(()), w=nnx.Param(jnp.ones(())))

    def step(model: Any, x: Any) -> Any:
        model.a = model.a + x * model.w
        return model, model.a

    result, ys = nnx.scan(step, **mode)(model, XS)
    assert ys.tolist() == [0, 1, 3]
    assert (result.a, model.a) == (3, 0 if mode else 3)


def test_one_object_under_two_axes() -> None:
    model = Model(shape=(3,))
    with pytest.raises(GraphError, match=r"`args\[0\]\.(w|total)` and `args\[1\]\.\1` are the same object"):
        nnx.scan(lambda a, b: 1.0, in_axes=(0, None), out_axes=0)(model, model)


def test_metadata(mode: dict[str, bool]) -> None:
    w = nnx.Param(jnp.zeros((3, 2)), out_sharding=("layers", "embed"), eager_sharding=False)
    seen = []

    def step(carry: Any, w: Any) -> Any:
        seen.append(w.out_sharding)
        w[...] += 1
        return carry, nnx.Param(w[...], out_sharding=("embed",), eager_sharding=False)

    scan = nnx.scan(step, transform_metadata={nnx.PARTITION_NAME: "layers"}, **mode)
    _, made = scan(0.0, w)
    assert (seen, w.out_sharding, made.out_sharding) == ([("embed",)], ("layers", "embed"), ("layers", "embed"))
    assert w[...].sum() == 6
    with pytest.raises(TransformArgumentError, match="'rows'"):
        nnx.scan(step, transform_metadata={nnx.PARTITION_NAME: "rows"}, **mode)(0.0, w)


# Captures


ROUTES: dict[str, Callable[[Model], Callable[[Any, Any], Any]]] = {
    "closure": lambda model: lambda carry, x: model.step(carry, x),
    "default": lambda model: lambda carry, x, m=model: m.step(carry, x),
    "partial": lambda model: functools.partial(Model.step, model),
    "bound method": lambda model: model.step,
    "instance": lambda model: model,
    "container": lambda model: lambda carry, x, models=[model]: models[0].step(carry, x),
    "helper": lambda model: lambda carry, x, helper=model.step: helper(carry, x),
}


@pytest.mark.parametrize("route", ROUTES)
def test_captures_by_every_route(route: str, mode: dict[str, bool]) -> None:
    model = Model()
    f = nnx.scan(ROUTES[route](model), **mode)
    assert f(0.0, XS)[0] == 6.0
    model.w[...] = 3.0
    assert f(0.0, XS)[0] == 9.0
    assert model.total[...] == 6.0


def test_what_no_step_writes_is_a_constant_of_the_loop(mode: dict[str, bool]) -> None:
    graphdef, state = nnx.split(Layer(4, rngs=nnx.Rngs(0)))
    x, xs = jnp.zeros((2, 4)), jnp.ones((5, 2, 4))

    def captured(state: Any) -> Any:
        layer = nnx.merge(graphdef, state)
        return nnx.scan(lambda c, x: (layer(c + x),) * 2, **mode)(x, xs)

    def carried(state: Any) -> Any:
        layer = nnx.merge(graphdef, state)

        def step(carry: Any, x: Any) -> Any:
            c, layer = carry
            c = layer(c + x)
            return (c, layer), c

        return nnx.scan(step, **mode)((x, layer), xs)[1]

    for f in (captured, carried):
        (loop,) = [eqn for eqn in jax.make_jaxpr(f)(state).eqns if eqn.primitive.name == "scan"]
        assert count_carried(loop) == 2  # c, and the count of calls
        assert len(loop.outvars) == 3


@pytest.mark.parametrize("how", ["captured", "carried", "broadcast"])
def test_parameters_are_not_stacked_for_the_backward_pass(how: str) -> None:
    linear = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
    x, xs = jnp.zeros((2, 4)), jnp.ones((5, 2, 4))

    def loss(linear: Any) -> Any:
        if how == "captured":
            c, _ = nnx.scan(lambda c, x: (jnp.tanh(linear(c + x)), None))(x, xs)
        elif how == "carried":
            (c, _), _ = nnx.scan(lambda c, x: ((jnp.tanh(c[1](c[0] + x)), c[1]), None))((x, linear), xs)
        else:
            scan = nnx.scan(lambda m, c, x: jnp.tanh(m(c + x)), in_axes=(None, Carry, 0), out_axes=Carry)
            c = scan(linear, x, xs)
        return c.sum()

    graphdef, state = nnx.split(linear)
    jaxpr = jax.make_jaxpr(jax.grad(lambda state: loss(nnx.merge(graphdef, state))))(state)
    loops = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan"]
    assert len(loops) == 2
    # Stacked are activations, with the batch of 2; a stacked kernel would be 5 of (4, 4).
    assert not [var for var in loops[0].outvars if var.aval.shape == (5, 4, 4)]


def test_what_is_captured_and_passed_is_an_argument() -> None:
    model = Model()

    def step(carry: Any, m: Model, x: Any) -> Any:
        assert m is model
        return carry + x * model.w

    f = nnx.scan(step, in_axes=(Carry, None, 0), out_axes=Carry)
    assert f(0.0, model, XS) == 6.0


# Broadcast


def test_writing_to_what_is_broadcast() -> None:
    model = Model()
    f = nnx.scan(lambda m, x: m.add(x), in_axes=(None, 0), out_axes=0)
    with pytest.raises(TransformArgumentError, match=r"`nnx\.scan` changes `args\[0\]\.total`, whose axis is None"):
        f(model, XS)
    assert model.total[...] == 0


@without_updates
def test_broadcast_variables_are_carried_without_graph_updates(mode: dict[str, bool]) -> None:
    model = Model()
    f = nnx.scan(lambda m, x: (m.add(x), m.total[...])[1], in_axes=(None, 0), out_axes=0, **mode)
    assert f(model, XS).tolist() == [0.0, 1.0, 3.0]
    assert model.total[...] == 3.0


# Structure


def test_scanned_objects_may_be_edited() -> None:
    layers = nnx.Dict(w=nnx.Param(XS), old=nnx.Param(XS), mode="idle")

    @nnx.scan(in_axes=(Carry, 0), out_axes=Carry)
    def step(x: Any, layer: Any) -> Any:
        layer.seen = nnx.Intermediate(x)
        layer.inner = Model(x)
        layer.mode = "done"
        del layer.old
        layer.w = nnx.Param(layer.w + 1)
        return x + 1

    w = layers.w
    assert step(1.0, layers) == 4.0
    assert layers.seen.tolist() == [1, 2, 3]
    assert (layers.inner.w.tolist(), layers.inner.total.tolist()) == ([1, 2, 3], [0, 0, 0])
    assert (layers.mode, hasattr(layers, "old"), layers.w.tolist(), layers.w is w) == ("done", False, [1, 2, 3], False)


def test_sow_in_scanned_layers() -> None:
    class Sower(nnx.Module):
        def __init__(self, w: Any) -> None:
            self.w = nnx.Param(w)

        def __call__(self, x: Any) -> Any:
            self.sow(nnx.Intermediate, "x", x)
            return x * self.w

    layers = Sower(XS + 1)
    assert nnx.scan(lambda x, layer: layer(x), in_axes=(Carry, 0), out_axes=Carry)(1.0, layers) == 6.0
    (sown,) = layers.x.get_value()
    assert sown.tolist() == [1, 1, 2]
