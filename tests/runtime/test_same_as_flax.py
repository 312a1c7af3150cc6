"""What flax's own tests found: each program observes the same on both libraries.

`docs/differences.md` lists where they differ; these are places where they once did and must not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit

flax_nnx = pytest.importorskip("flax.nnx")

X = jnp.arange(6.0).reshape(3, 2)
MODES: tuple[dict[str, bool], ...] = ({}, {"graph_updates": False}, {"graph": False, "graph_updates": False})
PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(observe: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Registers a program by its name."""
    PROGRAMS[observe.__name__] = observe
    return observe


def kind_of_error(call: Callable[[], Any]) -> str:
    """The builtin kind of the error that a call raises."""
    try:
        call()
    except (ValueError, TypeError, AttributeError) as error:
        return next(kind.__name__ for kind in (ValueError, TypeError, AttributeError) if isinstance(error, kind))
    return "no error"


def sowing(nnx: Any) -> Any:
    class Net(nnx.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.w = nnx.Param(jnp.array(2.0))

        def __call__(self, x: Any) -> Any:
            x = self.perturb("moved", x) * self.w
            self.sow(nnx.Intermediate, "y", x)
            self.sow(nnx.Intermediate, "y", x + 1)
            return x

    return Net()


def call(m: Any, x: Any) -> Any:
    return m(x)


def plain(nnx: Any, state: Any) -> Any:
    return nnx.to_pure_dict(state)


# -- capture -----------------------------------------------------------------------------------------------------------


def captured(nnx: Any, transform: Callable[[dict[str, Any]], Any], *args: Any) -> Any:
    found = []
    for mode in MODES:
        out, sown = nnx.capture(transform(mode), nnx.Intermediate)(sowing(nnx), *args)
        found.append((out, plain(nnx, sown)))
    return found


@program
def capture_around_jit(nnx: Any) -> Any:
    return captured(nnx, lambda mode: nnx.jit(call, **mode), X)


@program
def capture_around_remat_and_grad(nnx: Any) -> Any:
    def loss(m: Any, x: Any) -> Any:
        return nnx.remat(call)(m, x).sum()

    return captured(nnx, lambda mode: nnx.grad(loss, argnums=1, **mode), X)


@program
def capture_around_scan(nnx: Any) -> Any:
    def step(m: Any, x: Any) -> Any:
        return m(x)

    class Nets(nnx.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.net = sowing(nnx)
            self.net.w.set_value(jnp.arange(3.0))

    found = []
    for mode in MODES:
        run = nnx.scan(lambda m, x: step(m.net, x), in_axes=(0, 0), out_axes=0, **mode)
        out, sown = nnx.capture(run, nnx.Intermediate)(Nets(), X)
        found.append((out, plain(nnx, sown)))
    return found


@program
def perturbations_under_vmap(nnx: Any) -> Any:
    net = sowing(nnx)

    def record(net: Any, perturbed: Any, x: Any) -> Any:
        def loss(m: Any, perturbed: Any, x: Any) -> Any:
            out, sown = nnx.capture(m, nnx.Intermediate, init=perturbed)(x)
            return out.sum(), sown

        return nnx.grad(loss, argnums=1, has_aux=True)(net, perturbed, x)

    _, perturbed = nnx.capture(net, nnx.Perturbation)(X)
    gradients, sown = nnx.vmap(record, in_axes=(None, 0, 0))(net, perturbed, X)
    return plain(nnx, gradients), plain(nnx, sown), sorted(vars(net).keys() & {"y", "moved"})


@program
def variable_types_by_name(nnx: Any) -> Any:
    net = sowing(nnx)
    net.sow("batch_stats", "a", 3)
    net.perturb("b", 3.0, "intermediates")
    return type(net.a).__name__, net.a.get_value(), type(net.b).__name__, kind_of_error(lambda: nnx.capture(net, 3)(X))


# -- graphs ------------------------------------------------------------------------------------------------------------


@program
def empty_states_of_a_lone_variable(nnx: Any) -> Any:
    v = nnx.Param(jnp.array(1))
    _, others, params, rest = nnx.split(v, nnx.BatchStat, nnx.Param, ...)
    params[...] = 2
    nnx.update(v, others, params, rest)
    return v[...]


@program
def update_of_numbers_in_a_dict(nnx: Any) -> Any:
    node = {"a": {"b": 1, "c": nnx.Param(jnp.array(2)), "d": 3}}
    nnx.update(node, {"a": {"b": 4, "c": jnp.array(10)}})
    return node["a"]["b"], node["a"]["c"][...], node["a"]["d"]


@program
def what_has_no_children(nnx: Any) -> Any:
    return [kind_of_error(functools.partial(next, nnx.iter_children(value))) for value in (3, X, nnx.Param(1))]


@program
def classes_that_are_no_pytrees(nnx: Any) -> Any:
    class Plain(nnx.Pytree, pytree=False):  # type: ignore[misc, call-arg]
        def __init__(self) -> None:
            self.x = 1

    node = nnx.List([Plain()])
    return [
        kind_of_error(lambda: list(nnx.iter_graph(node, graph=False))),
        kind_of_error(lambda: list(nnx.iter_children(Plain(), graph=False))),
        len(list(nnx.iter_children(node, graph=True))),
    ]


@program
def left_contexts_have_no_attributes(nnx: Any) -> Any:
    with nnx.split_context() as splitter:
        graphdef, state = splitter.split(nnx.Dict(a=nnx.Param(1)))
    with nnx.merge_context() as merger:
        merger.merge(graphdef, state)
    names = ("ref_index", "index_ref", "ctxtag")
    return [hasattr(context, name) for context in (splitter, merger) for name in names]


@program
def parts_of_a_graph_state(nnx: Any) -> Any:
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    return kind_of_error(lambda: nnx.merge(nnx.unpack(model), nnx.state(model)))


@program
def identities_by_number(nnx: Any) -> Any:
    def swap(m: Any) -> None:
        m.a, m.b = m.b, m.a

    m = nnx.Dict(a=nnx.Param(1), b=nnx.BatchStat(2))
    a, b = m.a, m.b
    outside = nnx.graphlib.RefMap()
    graphdef, state = nnx.graphlib.flatten(m, ref_index=outside)
    known = nnx.graphlib.IndexMap()
    copy = nnx.graphlib.unflatten(graphdef, state, index_ref=known)
    numbers = nnx.graphlib.RefMap.from_indexmap(known)
    swap(copy)
    graphdef, state = nnx.graphlib.flatten(copy, ref_index=nnx.graphlib.RefMap(), ref_outer_index=numbers)
    objects = nnx.graphlib.IndexMap.from_refmap(outside)
    back = nnx.graphlib.unflatten(graphdef, state, outer_index_outer_ref=objects)
    return back is m, m.a is b, m.b is a


@program
def changes_from_another_trace(nnx: Any) -> Any:
    import flax.errors

    m = nnx.Dict(a=nnx.Param(1))

    def change() -> None:
        m.b = 2

    with pytest.raises(flax.errors.TraceContextError, match="Cannot mutate 'Dict' from different trace level"):
        jax.jit(change)()


# -- array references --------------------------------------------------------------------------------------------------


@program
def references_to_numbers(nnx: Any) -> Any:
    v = nnx.with_vars([nnx.Variable(1.0)], ref=True)[0]
    copy = nnx.Variable(2).copy(ref=True)
    back = copy.copy(ref=False)
    kinds = [isinstance(item.get_raw_value(), jax.Ref) for item in (v, copy, back)]
    return kinds, nnx.as_pure([v]), nnx.to_pure_dict(nnx.state(nnx.Dict(a=v))), [v.ref, back.ref]


@program
def the_class_of_hijax_variables(nnx: Any) -> Any:
    variables = (nnx.Param(1), nnx.Param(1, hijax=True), nnx.Param(1).copy(hijax=True))
    return [isinstance(v, nnx.variablelib.HijaxVariable) for v in variables]


# -- transforms --------------------------------------------------------------------------------------------------------


@program
def cotangents_of_updates(nnx: Any) -> Any:
    found = []

    def backward(residuals: Any, g: Any, updates_g: Any) -> Any:
        m_g, number_g, v_g = updates_g
        found.append((m_g.a[...], m_g.b, number_g, v_g))
        (m,) = residuals
        return jax.tree.map(jnp.ones_like, m), 1.0, nnx.Param(jnp.array(0.0))

    for mode in MODES[1:]:

        def product(m: Any, number: Any, v: Any) -> Any:
            m.a[...] += number
            return m.a[...] * m.b[...] * v[...]

        f = nnx.custom_vjp(product, **mode)
        f.defvjp(lambda m, number, v, f=f: (f(m, number, v), (m,)), backward)

        def loss(m: Any, v: Any, f: Any = f) -> Any:
            return f(m, 2.0, v) + 5 * m.a[...]

        m = nnx.Dict(a=nnx.Param(jnp.array(1.0)), b=nnx.Param(jnp.array(2.0)))
        found.append(plain(nnx, nnx.state(nnx.grad(loss, graph_updates=False)(m, nnx.Param(jnp.array(3.0))))))
    return found


@program
def prefixes_of_a_wrong_kind(nnx: Any) -> Any:
    node = nnx.Dict(a=nnx.Param(1))
    axes = nnx.StateAxes({nnx.Param: 0})
    calls = [
        lambda: nnx.vmap(call, in_axes=node),
        lambda: nnx.jit(call, in_shardings=node),
        lambda: nnx.grad(call, argnums=node),
        lambda: nnx.vmap(call, in_axes=axes, graph=False),
        lambda: nnx.grad(call, argnums=nnx.DiffState(0, nnx.Param), graph=False),
        lambda: nnx.custom_vjp(call, nondiff_argnums=(nnx.DiffState(0, nnx.Param),), graph=False),
    ]
    return list(map(kind_of_error, calls))


# -- layers and metrics ------------------------------------------------------------------------------------------------


@program
def running_statistics_have_no_gradient(nnx: Any) -> Any:
    def loss(x: Any) -> Any:
        norm = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
        out = norm(x)
        return (out**2).sum() + norm.mean[...].sum()

    return jax.grad(loss)(X)


@program
def recurrent_dropout(nnx: Any) -> Any:
    class Cell(nnx.RNNCellBase):  # type: ignore[misc]
        def __init__(self, rngs: Any) -> None:
            self.dropout = nnx.Dropout(0.5, deterministic=False, rng_collection="recurrent", rngs=rngs)

        def initialize_carry(self, shape: Any, rngs: Any = None, carry_init: Any = None) -> Any:
            return jnp.zeros(shape)

        def __call__(self, carry: Any, x: Any) -> Any:
            return carry, self.dropout(self.dropout(x))

        @property
        def num_feature_axes(self) -> int:
            return 1

    rnn = nnx.RNN(Cell(nnx.Rngs(0, recurrent=1)), broadcast_rngs="recurrent")
    return [(rnn(jnp.ones((2, 3, 4))), rnn.cell.dropout.rngs.count[...]) for _ in range(2)]


@program
def masks_of_numbers(nnx: Any) -> Any:
    return kind_of_error(lambda: nnx.metrics.Average().update(values=2, mask=jnp.ones(5)))


def as_numbers(observed: Any) -> Any:
    return jax.tree.map(np.asarray, observed)


def assert_close(a: Any, b: Any) -> None:
    if a.dtype.kind == "f":
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(a, b)


@pytest.mark.filterwarnings("ignore:\\s*Using 'Module:DeprecationWarning")  # flax wants all sowing inside of a capture
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_flax(name: str) -> None:
    ours, theirs = (as_numbers(PROGRAMS[name](library)) for library in (nnxkit, flax_nnx))
    jax.tree.map(assert_close, ours, theirs)
