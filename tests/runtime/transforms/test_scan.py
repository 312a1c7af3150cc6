"""``nnx.scan``: what is scanned over, carried, broadcast and captured, and what comes back of it."""

from __future__ import annotations

import concurrent.futures
import functools
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnxkit as nnx
from nets import count_carried
from nnx_rules.errors import (
    GraphError,
    RngArgumentError,
    TraceContextError,
    TransformArgumentError,
    TransformTypeError,
)
from nnxkit import Carry

MODES: dict[str, dict[str, bool]] = {"default": {}, "values": {"graph_updates": False}, "tree": {"graph": False}}


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> dict[str, bool]:
    return MODES[request.param]


class Model(nnx.Module):
    """With ``shape=(n,)`` what a vmap over n would have made."""

    def __init__(self, w: Any = 2.0, shape: tuple[int, ...] = ()) -> None:
        self.w = nnx.Param(jnp.broadcast_to(jnp.asarray(w, jnp.float32), shape))
        self.total = nnx.BatchStat(jnp.zeros(shape))
        self.mode = "idle"

    def add(self, x: Any) -> Any:
        self.total[...] += x
        return x * self.w

    def step(self, carry: Any, x: Any) -> Any:
        return carry + self.add(x), x

    def __call__(self, carry: Any, x: Any) -> Any:
        return self.step(carry, x)


class Layer(nnx.Module):
    def __init__(self, size: int, *, rngs: nnx.Rngs) -> None:
        self.linear = nnx.Linear(size, size, rngs=rngs)
        self.calls = nnx.Variable(jnp.zeros((), jnp.int32))

    def __call__(self, x: Any) -> Any:
        self.calls[...] += 1
        return jnp.tanh(self.linear(x))


def stack(count: int, size: int) -> Layer:
    @nnx.split_rngs(splits=count)
    @nnx.vmap
    def make(rngs: nnx.Rngs) -> Layer:
        return Layer(size, rngs=rngs)

    return make(nnx.Rngs(0))  # type: ignore[no-any-return]


def tracers(*objects: Any) -> Iterator[Any]:
    for _, value in nnx.iter_graph(objects):
        held = value.get_raw_value() if isinstance(value, nnx.Variable) else value
        yield from (leaf for leaf in jax.tree.leaves(held) if isinstance(leaf, jax.core.Tracer))


XS = jnp.arange(3.0)


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


@pytest.mark.parametrize("mode", [MODES["values"], MODES["tree"]])
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
    axes = nnx.prefix(model, {nnx.Param: 0, ...: None}, graph=graph) if hasattr(nnx, "prefix") else None
    if axes is None:
        pytest.skip("nnx.prefix is not there yet")
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


@pytest.mark.parametrize("mode", [MODES["values"], MODES["tree"]])
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


def add(model: Any) -> None:
    model.extra = nnx.Param(jnp.ones(2))


def static(model: Any) -> None:
    model.mode = "busy"


def replace(model: Any) -> None:
    model.w = nnx.Param(model.w + 1)


def metadata(model: Any) -> None:
    model.w.set_metadata(unit="m")


EDITS: dict[str, tuple[Callable[[Any], None], str]] = {
    "added": (add, r"\.extra` is missing before a step of `nnx\.scan` and a (new )?`Param` after it"),
    "static": (static, r"\.mode` is `'idle'` before a step of `nnx\.scan` and `'busy'` after it"),
    "replaced": (replace, r"\.w` is a `Param` before a step of `nnx\.scan` and a new `Param`|another `Param` as `args"),
    "metadata": (metadata, r"\.w` is a Variable with the metadata \{\} before"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_carried_objects_may_not_be_edited(edit: str, mode: dict[str, bool]) -> None:
    f, message = EDITS[edit]
    model = Model()
    before = nnx.graphdef(model), model.w
    with pytest.raises(TransformArgumentError, match=message):
        nnx.scan(lambda model, x: (f(model), (model, x))[1], **mode)(model, XS)
    assert (nnx.graphdef(model), model.w) == before
    assert not list(tracers(model))


@pytest.mark.parametrize("edit", ["added", "static", "replaced"])
@pytest.mark.parametrize("how", ["captured", "broadcast"])
def test_other_objects_may_not_be_edited(edit: str, how: str) -> None:
    f, message = EDITS[edit]
    model = Model()
    before = nnx.graphdef(model)
    if how == "captured":
        scan = functools.partial(nnx.scan(lambda carry, x: (f(model), (carry, x))[1]), 0.0, XS)
    else:
        scan = functools.partial(nnx.scan(lambda m, x: (f(m), x)[1], in_axes=(None, 0), out_axes=0), model, XS)
    with pytest.raises(TransformArgumentError, match=message):
        scan()
    assert nnx.graphdef(model) == before


def test_new_attributes_may_not_be_carried() -> None:
    model = nnx.Dict(w=nnx.Param(XS), total=nnx.BatchStat(jnp.zeros(())))
    axes = nnx.StateAxes({nnx.BatchStat: Carry, ...: 0})

    def step(model: Any, x: Any) -> Any:
        model.extra = nnx.BatchStat(x)
        return x

    with pytest.raises(TransformArgumentError, match=r"`args\[0\]\.extra` is missing before a step"):
        nnx.scan(step, in_axes=(axes, 0), out_axes=0)(model, XS)
    assert not hasattr(model, "extra")


def test_another_carry(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformTypeError, match=r"the carry goes into a step of `nnx\.scan` as `\*` and"):
        nnx.scan(lambda c, x: ((c, c), x), **mode)(0.0, XS)
    with pytest.raises(
        TransformTypeError, match=r"`args\[0\]` goes into a step of `nnx\.scan` as float32\[\] and comes"
    ):
        nnx.scan(lambda c, x: (jnp.ones(3), x), **mode)(0.0, XS)
    with pytest.raises(
        TransformArgumentError, match=r"returns another `Model` as `args\[0\]|as `args\[0\]\.total` than"
    ):
        nnx.scan(lambda c, x: (Model(), x), **mode)(Model(), XS)
    with pytest.raises(
        TransformTypeError, match=r"`args\[0\]\.total` goes into a step of `nnx\.scan` as float32\[\] and"
    ):
        nnx.scan(lambda c, x: (c.total.set_value(jnp.ones(2)), (c, x))[1], **mode)(Model(), XS)


# Axes and lengths that make no sense


AXES: dict[str, tuple[Any, Any, str]] = {
    "two carries": ((Carry, Carry), (Carry, 0), r"`in_axes` of `nnx\.scan` is \(Carry, Carry\): only one value can be"),
    "two carries out": ((Carry, 0), (Carry, Carry), r"`out_axes` of `nnx\.scan` is \(Carry, Carry\): only one value"),
    "nested": (({"a": Carry}, 0), 0, r"`in_axes` of `nnx\.scan` is .*: `Carry` is inside of a container"),
    "nested out": ((Carry, 0), [(Carry, 0)], r"`Carry` is inside of a container"),
    "an instance": ((Carry(), 0), (Carry, 0), r"`Carry` is used as it is, without a call"),
    "only in": ((Carry, 0), 0, r"`out_axes` of `nnx\.scan` is 0: it has no `Carry`, and the other one has"),
    "only out": ((0, 0), (Carry, 0), r"`in_axes` of `nnx\.scan` is \(0, 0\): it has no `Carry`, and the other one"),
    "broadcast result": ((Carry, 0), (Carry, None), r"each step has its own result, which cannot be broadcast"),
    "state axes": (0, nnx.StateAxes({...: None}), r"each step has its own result, which cannot be broadcast"),
    "carried part": (0, nnx.StateAxes({nnx.Param: Carry, ...: 0}), r"a part of a result cannot be carried"),
    "no axis": ((Carry, "rows"), (Carry, 0), r"`in_axes` of `nnx\.scan` is \(Carry, 'rows'\): `'rows'` is no axis"),
}


@pytest.mark.parametrize("case", AXES)
def test_axes_that_make_no_sense(case: str, mode: dict[str, bool]) -> None:
    in_axes, out_axes, message = AXES[case]
    with pytest.raises(TransformArgumentError, match=message):
        nnx.scan(lambda *args: args, in_axes=in_axes, out_axes=out_axes, **mode)


def test_axes_that_do_not_fit_the_call(mode: dict[str, bool]) -> None:
    identity = nnx.scan(lambda c, x: (c, x), **mode)
    with pytest.raises(TransformArgumentError, match=r"only one argument can be carried"):
        nnx.scan(lambda a, b: (a, b), in_axes=Carry, out_axes=Carry, length=2, **mode)(1.0, 2.0)
    with pytest.raises(TransformArgumentError, match=r"`in_axes` of `nnx\.scan` does not fit"):
        identity(0.0, XS, XS)
    with pytest.raises(TransformTypeError, match=r"`in_axes` of `nnx\.scan` is a dict"):
        nnx.scan(lambda c: c, in_axes={"a": 0}, out_axes=0, **mode)(XS)
    with pytest.raises(TransformArgumentError, match=r"is to map over axis 0 of `args\[1\]`, whose shape is \(\)"):
        identity(0.0, 1.0)
    with pytest.raises(TransformArgumentError, match=r"which has 2 elements, and over 3 of axis 0 of `args\[1\]\[0\]`"):
        identity(0.0, (XS, jnp.ones(2)))


def test_lengths_that_make_no_sense(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformArgumentError, match=r"there is nothing to scan over, and no `length`"):
        nnx.scan(lambda c, x: (c, x), **mode)(0.0, None)
    with pytest.raises(TransformArgumentError, match=r"`length` is 2, and there are 3 elements to scan over"):
        nnx.scan(lambda c, x: (c, x), length=2, **mode)(0.0, XS)


def test_results_that_do_not_fit(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformArgumentError, match=r"a tuple of 2 values, and returns an array"):
        nnx.scan(lambda c, x: c, **mode)(0.0, XS)
    with pytest.raises(TransformArgumentError, match=r"a tuple of 2 values, and returns 3 of them"):
        nnx.scan(lambda c, x: (c, x, x), **mode)(0.0, XS)
    with pytest.raises(TransformArgumentError, match=r"`out_axes` of `nnx\.scan` does not fit"):
        nnx.scan(lambda c, x: (c, x), out_axes=(Carry, {"a": 0}), **mode)(0.0, XS)


@pytest.mark.parametrize("mode", [MODES["values"], MODES["tree"]])
def test_filter_prefixes_belong_to_the_default_mode(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformArgumentError, match=r"holds a `StateAxes`, which a transform without graph updates"):
        nnx.scan(lambda m: 1.0, in_axes=(nnx.StateAxes({...: 0}),), out_axes=0, **mode)(Model(shape=(3,)))


# Randomness


def test_unsplit_streams(mode: dict[str, bool]) -> None:
    draw = nnx.scan(lambda rngs: rngs.normal(), in_axes=0, out_axes=0, **mode)
    rngs = nnx.Rngs(0)
    with pytest.raises(
        RngArgumentError, match=r"axis 0 of `args\[0\]\.default`.*a single key(.|\n)*split_rngs\(splits"
    ):
        draw(rngs)
    split = nnx.split_rngs(splits=3)(draw)(rngs)
    assert len(set(split.tolist())) == 3
    assert (rngs.default.key.shape, rngs.default.count[...]) == ((), 1)


@pytest.mark.parametrize("how", ["captured", "carried"])
def test_streams_advance(how: str, mode: dict[str, bool]) -> None:
    rngs, reference = nnx.Rngs(0), nnx.Rngs(0)
    if how == "captured":
        _, drawn = nnx.scan(lambda c, x: (c, rngs.normal()), **mode)(0.0, XS)
    else:
        _, drawn = nnx.scan(lambda rngs, x: (rngs, rngs.normal()), **mode)(rngs, XS)
    assert jnp.allclose(drawn, jnp.array([reference.normal() for _ in range(3)]))
    assert rngs.default.count[...] == 3


def test_layers_made_with_split_streams(mode: dict[str, bool]) -> None:
    @nnx.split_rngs(splits=3)
    @nnx.scan(in_axes=0, out_axes=0, **mode)
    def make(rngs: nnx.Rngs) -> Layer:
        return Layer(2, rngs=rngs)

    layers = make(nnx.Rngs(0))
    assert layers.linear.kernel.shape == (3, 2, 2)
    assert len({float(kernel.sum()) for kernel in layers.linear.kernel[...]}) == 3


# Exceptions, traces, transforms around


def test_exceptions_leave_everything_as_it_was(mode: dict[str, bool]) -> None:
    captured, carried, scanned = Model(), Model(), Model(shape=(3,))

    def fail(carry: Any, element: Any) -> Any:
        for model in (captured, carry, element):
            model.total[...] += 1
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        nnx.scan(fail, **mode)(carried, scanned)
    assert (captured.total[...], carried.total[...], scanned.total.tolist()) == (0, 0, [0, 0, 0])
    assert not list(tracers(captured, carried, scanned))


def test_objects_of_another_trace(mode: dict[str, bool]) -> None:
    model = Model()
    with pytest.raises(TraceContextError, match="captures it"):
        jax.jit(lambda x: nnx.scan(model.step, **mode)(x, XS))(0.0)
    assert model.total[...] == 0
    assert not list(tracers(model))


def test_inside_of_jit_grad_and_vmap(mode: dict[str, bool]) -> None:
    model = Model()
    f = nnx.scan(model.step, **mode)
    assert nnx.jit(lambda x: f(x, XS)[0], **mode)(1.0) == 7.0
    value, gradient = nnx.value_and_grad(lambda x: f(x, XS * x)[0], **mode)(jnp.array(1.0))
    assert (value, gradient) == (7.0, 7.0)
    reader = nnx.scan(lambda c, x: (c * model.w, x), **mode)
    assert nnx.vmap(lambda x: reader(x, XS)[0], **mode)(jnp.arange(2.0)).tolist() == [0.0, 8.0]
    assert model.total[...] == 6.0


def test_gradients_of_scanned_layers() -> None:
    layers, x = stack(3, 4), jnp.ones((2, 4))

    def scanned(layers: Layer) -> Any:
        return nnx.scan(lambda x, layer: layer(x), in_axes=(Carry, 0), out_axes=Carry)(x, layers).sum()

    def unrolled(layers: Layer) -> Any:
        y = x
        for i in range(3):
            y = jnp.tanh(y @ layers.linear.kernel[i] + layers.linear.bias[i])
        return y.sum()

    ours, expected = nnx.grad(scanned)(layers), nnx.grad(unrolled)(layers)
    assert jax.tree.all(jax.tree.map(lambda a, b: jnp.allclose(a, b, atol=1e-5), ours, expected))
    assert layers.calls.tolist() == [1, 1, 1]


@pytest.mark.parametrize("how", ["carried", "captured"])
def test_training_in_a_scan(how: str) -> None:
    xs = jax.random.normal(jax.random.key(0), (4, 8, 3))

    def make() -> tuple[Any, Any]:
        model = nnx.Linear(3, 1, rngs=nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)

    def train(model: Any, optimizer: Any, x: Any) -> Any:
        loss, gradients = nnx.value_and_grad(lambda model: ((model(x)[:, 0] - x.sum(1)) ** 2).mean())(model)
        optimizer.update(model, gradients)
        return loss

    ours, direct = make(), make()
    if how == "carried":
        result, losses = nnx.scan(lambda pair, x: (pair, train(*pair, x)))(ours, xs)
        assert result == ours
    else:
        losses = nnx.scan(lambda x: train(*ours, x), in_axes=0, out_axes=0)(xs)
    expected = [train(*direct, x) for x in xs]
    assert jnp.allclose(losses, jnp.array(expected), atol=1e-5)
    states = nnx.state(ours), nnx.state(direct)
    assert jax.tree.all(jax.tree.map(lambda a, b: jnp.allclose(a, b, atol=1e-5), *states))


def test_a_scan_in_a_scan(mode: dict[str, bool]) -> None:
    model = Model()

    def outer(carry: Any, row: Any) -> Any:
        return nnx.scan(model.step, **mode)(carry, row)

    carry, ys = nnx.scan(outer, **mode)(0.0, jnp.arange(6.0).reshape(2, 3))
    assert (carry, ys.shape, model.total[...]) == (30.0, (2, 3), 15.0)


def test_the_function_is_traced_once(mode: dict[str, bool]) -> None:
    traced = []
    nnx.scan(lambda c, x: (traced.append(x) or c, x), **mode)(0.0, XS)
    assert len(traced) == 1


def test_without_compilation(mode: dict[str, bool]) -> None:
    model, scanned = Model(), Model(shape=(3,))

    def step(carry: Any, element: Any) -> Any:
        element.total[...] = carry
        return model.step(carry, element.w[...])

    with jax.disable_jit():
        carry, ys = nnx.scan(step, **mode)(0.0, scanned)
    assert (carry, ys.tolist(), model.total[...]) == (12.0, [2, 2, 2], 6.0)
    assert scanned.total.tolist() == [0, 4, 8]


ACTIONS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "carry += element": lambda m, c, e, x: (m.a.set_value(m.a + e.a), x)[1],
    "capture *= 2": lambda m, c, e, x: (c.a.set_value(c.a * 2 + 1), x)[1],
    "element = carry": lambda m, c, e, x: (e.b.set_value(m.a + c.b), x)[1],
    "x += all": lambda m, c, e, x: x + m.a + c.a + e.a + e.b,
    "x = capture": lambda m, c, e, x: c.a * 1,
}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(list(ACTIONS)), max_size=4),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(list(MODES)),
)
def test_a_scan_is_the_python_loop(actions: list[str], length: int, reverse: bool, mode: str) -> None:
    def make(shape: tuple[int, ...] = ()) -> nnx.Dict:
        values = jnp.arange(length, dtype=jnp.int32) if shape else jnp.array(1, jnp.int32)
        return nnx.Dict(a=nnx.Variable(values), b=nnx.Variable(values * 2))

    def body(carried: Any, captured: Any, element: Any) -> Any:
        x = jnp.array(0, jnp.int32)
        for action in actions:
            x = ACTIONS[action](carried, captured, element, x)
        return x

    ours, direct = [[make(), make(), make((length,))] for _ in range(2)]
    captured = ours[1]
    f = nnx.scan(lambda m, e: (m, body(m, captured, e)), reverse=reverse, **MODES[mode])
    _, ys = f(ours[0], ours[2])
    results = {}
    for i in reversed(range(length)) if reverse else range(length):
        element = nnx.Dict(a=nnx.Variable(direct[2].a[i]), b=nnx.Variable(direct[2].b[i]))
        results[i] = body(direct[0], direct[1], element)
        direct[2].a[i], direct[2].b[i] = element.a[...], element.b[...]
    assert ys.tolist() == [results[i] for i in range(length)]
    for one, other in zip(ours, direct, strict=True):
        assert (one.a.tolist(), one.b.tolist()) == (other.a.tolist(), other.b.tolist())


# What is kept between calls


def test_only_new_structures_and_types_are_traced(mode: dict[str, bool]) -> None:
    traced = []
    captured = Model()

    @nnx.scan(in_axes=(Carry, None, 0), out_axes=Carry, **mode)
    def step(carry: Any, broadcast: Any, x: Any) -> Any:
        traced.append(captured.mode)
        captured.total[...] += x
        return carry * captured.w + broadcast

    assert step(1.0, 1.0, XS) == 15.0
    captured.w[...] = 1.0
    assert step(1.0, 2.0, XS) == 7.0
    assert traced == ["idle"]
    captured.mode = "busy"
    step(1.0, 1.0, XS)
    captured.mode = "idle"
    step(1.0, 1.0, XS)
    step(1.0, 1.0, jnp.arange(3))
    assert traced == ["idle", "busy", "idle"]
    assert captured.total[...] == 15.0


def test_edits_come_back_from_steps_that_were_traced_before() -> None:
    traced = []

    @nnx.scan(in_axes=(Carry, 0), out_axes=(Carry, 0))
    def step(carry: Any, layer: Any) -> Any:
        traced.append(1)
        layer.seen = nnx.Intermediate(carry)
        return carry + 1, (layer, Model(carry))

    for start in (1.0, 5.0):
        layer = nnx.Dict(w=nnx.Param(XS))
        _, (same, made) = step(start, layer)
        assert same is layer
        assert layer.seen.tolist() == made.w.tolist() == [start, start + 1, start + 2]
    assert len(traced) == 1


def test_nothing_is_kept_alive(mode: dict[str, bool]) -> None:
    step = nnx.scan(lambda model, x: (model, model.add(x)), **mode)
    model = Model()
    step(model, XS)
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None


def test_static_attributes_without_hash(mode: dict[str, bool]) -> None:
    model = Model()
    model.mode = {"factor": 2}  # type: ignore[assignment]
    step = nnx.scan(lambda m, x: (m, x * m.mode["factor"]), **mode)
    assert step(model, XS)[1].tolist() == [0, 2, 4]
    model.mode["factor"] = 3  # type: ignore[index]
    assert step(model, XS)[1].tolist() == [0, 3, 6]


def test_threads(mode: dict[str, bool]) -> None:
    step = nnx.scan(lambda model, x: (model, model.add(x)), **mode)
    together = threading.Barrier(4)

    def run(number: int) -> list[float]:
        model = Model(number)
        together.wait()
        _, ys = step(model, XS + jnp.zeros(()))
        assert model.total[...] == 3.0
        return ys.tolist()  # type: ignore[no-any-return]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [[0.0, 1.0 * n, 2.0 * n] for n in range(4)]
