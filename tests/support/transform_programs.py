"""Programs that call one transform on one object graph, written once and run on nnxkit and on flax.nnx.

A `Program` is a point in a space: *transform × mode × structure × edits × result × access*. The tables of this module
say what each coordinate means; a program is valid if its coordinates fit each other. `observe` runs it on one library.

All numbers are small dyadic ones, so different orders of the same float operations give the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from graph_facts import Observation, observe_call

SIZE = 3
"""The length of every Variable: of the mapped axis where the subject is mapped, and the number of iterations."""


class Interrupted(Exception):
    """What the function of a program raises where a program asks for it."""


@dataclass(frozen=True)
class Program:
    """A call of a transform; each field but the last is a key of the table of that name."""

    transform: str
    mode: str = "default"
    structure: str = "net"
    edits: tuple[str, ...] = ()
    result: str = "array"
    captured: bool = False

    @property
    def is_valid(self) -> bool:
        """Whether the structure has what the edits and the result name, and the transform can be asked this way."""
        structure, transform = STRUCTURES[self.structure], TRANSFORMS[self.transform]
        return (
            all(EDITS[edit].needs <= structure.has for edit in self.edits)
            and RESULTS[self.result].needs <= structure.has
            and (self.result == "none" or transform.has_result)
            and self.mode in transform.modes
        )

    def __str__(self) -> str:
        access = "captured " if self.captured else ""
        return f"{self.transform} ({self.mode}) of {access}{self.structure}: {', '.join(self.edits)} -> {self.result}"


# ---- modes

MODES: Mapping[str, Mapping[str, bool]] = {
    "default": {"graph": True, "graph_updates": True},
    "no updates": {"graph": True, "graph_updates": False},
    "tree": {"graph": False},
}


# ---- structures: what the function receives


@functools.cache
def classes(nnx: Any) -> SimpleNamespace:
    """The Modules of the programs, on one library."""

    class Net(nnx.Module):  # type: ignore[misc]
        def __init__(self, value: Any = 1.0) -> None:
            self.w = nnx.Param(jnp.broadcast_to(jnp.asarray(value, jnp.float32), (SIZE,)))
            self.b = nnx.BatchStat(jnp.zeros(SIZE))
            self.k = 3

        def __call__(self, x: Any) -> Any:
            return jnp.sum(self.w[...]) * x

    class Pair(nnx.Module):  # type: ignore[misc]
        def __init__(self, first: Any, second: Any) -> None:
            self.p = first
            self.q = second

    return SimpleNamespace(Net=Net, Pair=Pair)


@dataclass(frozen=True)
class Structure:
    """How a subject is built, where its first net is, and what it offers to edits and results."""

    build: Callable[[Any], Any]
    net: Callable[[Any], Any]
    has: frozenset[str]


def _net(nnx: Any) -> Any:
    return classes(nnx).Net(jnp.arange(1.0, SIZE + 1))


def _with(**attributes: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A builder of a net with more attributes, each made from the library and the net."""

    def build(nnx: Any) -> Any:
        net = _net(nnx)
        for name, make in attributes.items():
            setattr(net, name, make(nnx, net))
        return net

    return build


def _shared(nnx: Any) -> Any:
    net = _net(nnx)
    return classes(nnx).Pair(net, net)


def _twice(nnx: Any) -> Any:
    net = _net(nnx)
    return {"p": net, "q": net}


def _cycle(nnx: Any) -> Any:
    net = _net(nnx)
    net.child = classes(nnx).Pair(net, 1)
    return net


def _itself(subject: Any) -> Any:
    return subject


_MODULE = frozenset({"variable", "net"})
STRUCTURES: Mapping[str, Structure] = {
    "variable": Structure(lambda nnx: nnx.Param(jnp.arange(1.0, SIZE + 1)), _itself, frozenset({"variable"})),
    "net": Structure(_net, _itself, _MODULE),
    "counter": Structure(_with(n=lambda nnx, net: nnx.Variable(jnp.zeros(SIZE, jnp.int32))), _itself, _MODULE | {"n"}),
    "array": Structure(_with(a=lambda nnx, net: jnp.ones(SIZE)), _itself, _MODULE | {"a"}),
    "keys": Structure(_with(rngs=lambda nnx, net: nnx.Rngs(0, other=1)), _itself, _MODULE | {"rngs"}),
    "nested": Structure(
        _with(child=lambda nnx, net: _net(nnx), layers=lambda nnx, net: nnx.List([_net(nnx), _net(nnx)])),
        _itself,
        _MODULE | {"layers"},
    ),
    "plain list": Structure(
        _with(items=lambda nnx, net: nnx.data([nnx.Param(jnp.ones(SIZE))])), _itself, _MODULE | {"items"}
    ),
    "tied": Structure(_with(again=lambda nnx, net: net.w), _itself, _MODULE),
    "shared": Structure(_shared, lambda pair: pair.p, _MODULE),
    "twice": Structure(_twice, lambda subject: subject["p"], _MODULE),
    "pair": Structure(lambda nnx: [_net(nnx), _net(nnx)], lambda subject: subject[1], _MODULE),
    "cycle": Structure(_cycle, _itself, _MODULE),
}


# ---- edits: what the function does to the net


@dataclass(frozen=True)
class Edit:
    """A change of the net, or of the Variable where the subject is one."""

    apply: Callable[[Any, Any, Any], None]
    needs: frozenset[str] = _MODULE


def _set(name: str, make: Callable[[Any, Any, Any], Any]) -> Edit:
    return Edit(lambda nnx, net, x: setattr(net, name, make(nnx, net, x)))


def _weight(net: Any) -> Any:
    """The first Variable."""
    return net.w if hasattr(net, "k") else net


def _scale(nnx: Any, net: Any, x: Any) -> None:
    weight = _weight(net)
    weight[...] = weight[...] * 2


def _note(nnx: Any, net: Any, x: Any) -> None:
    _weight(net).set_metadata(note="inside")


def _where_b_is(change: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], None]:
    """An edit of `b`, which an earlier edit may have taken away."""
    return lambda nnx, net, x: change(nnx, net, x) if hasattr(net, "b") else None


def _add_input(nnx: Any, net: Any, x: Any) -> None:
    net.b[...] = net.b[...] + x


def _count(nnx: Any, net: Any, x: Any) -> None:
    net.n[...] = net.n[...] + 1


def _draw(nnx: Any, net: Any, x: Any) -> None:
    net.w[...] = net.w[...] + net.rngs.other.randint((), 0, 9)


def _cast(nnx: Any, net: Any, x: Any) -> None:
    net.b.set_value(net.b[...].astype(jnp.int32))


def _reshape(nnx: Any, net: Any, x: Any) -> None:
    net.b.set_value(jnp.ones((2, *net.b.shape)))


def _delete(nnx: Any, net: Any, x: Any) -> None:
    del net.b


def _swap(nnx: Any, net: Any, x: Any) -> None:
    net.w, net.b = net.b, net.w


def _move(nnx: Any, net: Any, x: Any) -> None:
    net.moved = net.b
    del net.b


def _append(nnx: Any, net: Any, x: Any) -> None:
    net.items.append(nnx.Param(net.w[...] + 1))


def _grow(nnx: Any, net: Any, x: Any) -> None:
    net.layers.append(classes(nnx).Pair(nnx.Param(net.w[...] + 1), 2))


def _write_item(nnx: Any, net: Any, x: Any) -> None:
    net.items[0][...] = net.items[0][...] + 1


def _write_layer(nnx: Any, net: Any, x: Any) -> None:
    net.layers[1].w[...] = net.layers[1].w[...] + 1


def _interrupt(nnx: Any, net: Any, x: Any) -> None:
    raise Interrupted("asked for")


EDITS: Mapping[str, Edit] = {
    "scale": Edit(_scale, frozenset({"variable"})),
    "note": Edit(_note, frozenset({"variable"})),
    "interrupt": Edit(_interrupt, frozenset({"variable"})),
    "add input": Edit(_where_b_is(_add_input)),
    "count": Edit(_count, _MODULE | {"n"}),
    "draw": Edit(_draw, _MODULE | {"rngs"}),
    "cast": Edit(_where_b_is(_cast)),
    "reshape": Edit(_where_b_is(_reshape)),
    "replace": _set("w", lambda nnx, net, x: nnx.Param(net.w[...] * 2)),
    "attach": _set("new", lambda nnx, net, x: nnx.Param(net.w[...] + 1)),
    "attach net": _set("sub", lambda nnx, net, x: classes(nnx).Pair(nnx.Param(net.w[...] + 1), 2)),
    "alias": _set("also", lambda nnx, net, x: net.w),
    "static": _set("k", lambda nnx, net, x: 5),
    "delete": Edit(_where_b_is(_delete)),
    "swap": Edit(_where_b_is(_swap)),
    "move": Edit(_where_b_is(_move)),
    "write array": Edit(lambda nnx, net, x: setattr(net, "a", net.a + 1), _MODULE | {"a"}),
    "append": Edit(_append, _MODULE | {"items"}),
    "grow": Edit(_grow, _MODULE | {"layers"}),
    "write item": Edit(_write_item, _MODULE | {"items"}),
    "write layer": Edit(_write_layer, _MODULE | {"layers"}),
}
STRUCTURAL = frozenset(
    {"replace", "attach", "attach net", "alias", "static", "delete", "swap", "move", "append", "grow", "write array"}
)
"""Edits that come back only where the mode has graph updates."""


# ---- results: what the function returns


@dataclass(frozen=True)
class Result:
    make: Callable[[Any, Any, Any], Any]
    needs: frozenset[str] = frozenset({"variable"})


def _loss(net: Any, x: Any) -> Any:
    """A number that depends on every Variable of the net that is there."""
    total = x * 2
    for name, power in (("w", 2), ("b", 1), ("new", 1)):
        if hasattr(net, name):
            total = total + jnp.sum(getattr(net, name)[...] ** power) * x
    return total if hasattr(net, "k") else total + jnp.sum(net[...] ** 2) * x


def _fresh_twice(nnx: Any, net: Any, x: Any) -> Any:
    variable = nnx.Cache(x * 2)
    return variable, [variable]


RESULTS: Mapping[str, Result] = {
    "array": Result(lambda nnx, net, x: _weight(net)[...] * x),
    "none": Result(lambda nnx, net, x: None),
    "input": Result(lambda nnx, net, x: net),
    "weight": Result(lambda nnx, net, x: [net.w], _MODULE),
    "fresh": Result(lambda nnx, net, x: {"y": x + 1, "net": classes(nnx).Pair(nnx.Cache(x * 2), "static")}),
    "fresh twice": Result(_fresh_twice),
}


# ---- transforms

Body = Callable[..., tuple[Any, Any]]
"""`(subject, x) -> (loss, result)`, or `x -> (loss, result)` where the subject is captured."""


def _second(body: Body) -> Callable[..., Any]:
    return lambda *args: body(*args)[1]


@dataclass(frozen=True)
class Call:
    """What a transform is asked to do: the function, its arguments, the mode, the function without its edits, and a
    change of the subject from outside.

    The functions that runners make close over functions and numbers only, never over a call: it holds the subject.
    """

    nnx: Any
    body: Body
    args: tuple[Any, ...]
    options: Mapping[str, bool]
    calm: Body
    disturb: Callable[[], None]

    def axes(self, subject: Any, x: Any) -> tuple[Any, ...]:
        """An entry for each argument."""
        return (subject, x)[-len(self.args) :]

    @property
    def returning(self) -> Callable[..., Any]:
        """The function without the loss."""
        return _second(self.body)

    @property
    def xs(self) -> Any:
        """An input for each of `SIZE` calls."""
        return jnp.arange(1.0, SIZE + 1)

    def with_xs(self) -> tuple[Any, ...]:
        return (*self.args[:-1], self.xs)


@dataclass(frozen=True)
class Transform:
    run: Callable[[Call], Any]
    has_result: bool = True
    neutral: str | None = None
    """The transform that treats an argument as this one treats a capture, if that is another one."""
    modes: frozenset[str] = field(default_factory=lambda: frozenset(MODES))


def _plain(name: str) -> Callable[[Call], Any]:
    return lambda call: getattr(call.nnx, name)(call.returning, **call.options)(*call.args)


def _again(call: Call) -> Any:
    """A second and a third call: of what the first one left behind, and of what was changed from outside."""
    function = call.nnx.jit(call.returning, **call.options)
    results = [function(*call.args), function(*call.args)]
    call.disturb()
    return [*results, function(*call.args)]


def _grad(name: str, argnums: Any) -> Callable[[Call], Any]:
    def run(call: Call) -> Any:
        chosen = argnums if len(call.args) == 2 else 0
        return getattr(call.nnx, name)(call.body, argnums=chosen, has_aux=True, **call.options)(*call.args)

    return run


def _vjp(call: Call) -> Any:
    out, pull, aux = call.nnx.vjp(call.body, *call.args, has_aux=True, **call.options)
    return out, pull(jnp.ones(())), aux


def _jvp(call: Call) -> Any:
    tangents = (*(call.nnx.clone(subject) for subject in call.args[:-1]), jnp.ones(()))
    return call.nnx.jvp(call.body, call.args, tangents, has_aux=True, **call.options)


def _custom_vjp(call: Call) -> Any:
    """A rule that doubles: the cotangent of every leaf is two."""
    updates = call.options.get("graph_updates")

    def two(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.full_like(leaf, 2), tree)

    def forward(*args: Any) -> Any:
        return rule(*args), args

    def backward(kept: Any, cotangent: Any) -> Any:
        if updates:
            return tuple(jnp.full((), 2.0) if given is None else two(given) for given in cotangent[0])
        return two(kept)

    body = call.body
    rule = call.nnx.custom_vjp(lambda *args: body(*args)[0], **call.options)
    rule.defvjp(forward, backward)
    return call.nnx.grad(rule, **call.options)(*call.args)


def _vmap(subject: Any) -> Callable[[Call], Any]:
    return lambda call: call.nnx.vmap(call.returning, in_axes=call.axes(subject, 0), **call.options)(*call.with_xs())


def _vmap_by_filter(call: Call) -> Any:
    axes = call.nnx.StateAxes({call.nnx.BatchStat: None, ...: 0})
    return call.nnx.vmap(call.returning, in_axes=call.axes(axes, 0), **call.options)(*call.with_xs())


def _scan_carry(call: Call) -> Any:
    if len(call.args) == 1:
        return _scan(0)(call)
    function = call.returning
    step = call.nnx.scan(lambda subject, x: (subject, function(subject, x)), **call.options)
    return step(*call.with_xs())


def _scan(subject: Any) -> Callable[[Call], Any]:
    def run(call: Call) -> Any:
        carry, function = call.nnx.Carry, call.returning
        step = call.nnx.scan(
            lambda total, *args: (total + 1, function(*args)),
            in_axes=(carry, *call.axes(subject, 0)),
            out_axes=(carry, 0),
            **call.options,
        )
        return step(jnp.zeros(()), *call.with_xs())

    return run


def _while_loop(call: Call) -> Any:
    function = call.body

    def body(carry: Any) -> Any:
        *subject, i = carry
        function(*subject, jnp.ones(()))
        return (*subject, i + 1)

    return call.nnx.while_loop(lambda carry: carry[-1] < SIZE, body, (*call.args[:-1], 0), **call.options)


def _fori_loop(call: Call) -> Any:
    function = call.body

    def body(i: Any, carry: Any) -> Any:
        function(*carry, jnp.ones(()))
        return carry

    return call.nnx.fori_loop(0, SIZE, body, call.args[:-1], **call.options)


def _branches(*choice: bool) -> Callable[[Call], Any]:
    """A `switch` whose branches edit or do not; the last one is taken, and `cond` where there are two."""

    def run(call: Call) -> Any:
        branches = [_second(call.body if edits else call.calm) for edits in choice]
        if len(branches) == 2:
            return call.nnx.cond(jnp.array(False), *branches, *call.args, **call.options)
        return call.nnx.switch(jnp.array(len(branches) - 1), branches, *call.args, **call.options)

    return run


def _checkify(call: Call) -> Any:
    error, out = call.nnx.checkify(call.returning, **call.options)(*call.args)
    return error.get(), out


def _shard_map(call: Call) -> Any:
    spec = jax.sharding.PartitionSpec()
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    return call.nnx.shard_map(call.returning, mesh=mesh, in_specs=spec, out_specs=spec, **call.options)(*call.args)


def _within(outer: str, inner: Callable[[Call], Any]) -> Callable[[Call], Any]:
    """The inner transform, called in the function of the outer one."""

    def run(call: Call) -> Any:
        nnx, body, options, calm, disturb = call.nnx, call.body, call.options, call.calm, call.disturb

        def function(*args: Any) -> Any:
            return inner(Call(nnx, body, args, options, calm, disturb))

        return getattr(call.nnx, outer)(function, **call.options)(*call.args)

    return run


def _eval_shape(call: Call) -> Any:
    return call.nnx.eval_shape(call.returning, *call.args, **call.options)


TRANSFORMS: Mapping[str, Transform] = {
    "jit": Transform(_plain("jit")),
    "jit again": Transform(_again),
    "remat": Transform(_plain("remat")),
    "eval_shape": Transform(_eval_shape),
    "checkify": Transform(_checkify),
    "grad": Transform(_grad("grad", 0), neutral="grad of x"),
    "grad of x": Transform(_grad("grad", 1)),
    "value_and_grad": Transform(_grad("value_and_grad", (1, 0)), neutral="grad of x"),
    "vjp": Transform(_vjp, neutral="remat"),
    "jvp": Transform(_jvp, neutral="remat"),
    "custom_vjp": Transform(_custom_vjp, has_result=False),
    "vmap": Transform(_vmap(0), neutral="vmap broadcast"),
    "vmap broadcast": Transform(_vmap(None)),
    "vmap by filter": Transform(_vmap_by_filter, neutral="vmap broadcast", modes=frozenset({"default"})),
    "scan carry": Transform(_scan_carry),
    "scan xs": Transform(_scan(0), neutral="scan carry"),
    "scan broadcast": Transform(_scan(None), neutral="scan carry"),
    "while_loop": Transform(_while_loop, has_result=False),
    "fori_loop": Transform(_fori_loop, has_result=False),
    "cond both": Transform(_branches(True, True)),
    "cond one": Transform(_branches(True, False)),
    "switch": Transform(_branches(False, False, True)),
    "jit in jit": Transform(_within("jit", _plain("jit"))),
    "vmap in jit": Transform(_within("jit", _vmap(0)), neutral="vmap broadcast"),
    "grad in jit": Transform(_within("jit", _grad("grad", 0)), neutral="grad of x"),
    "jit in remat": Transform(_within("remat", _plain("jit"))),
    "scan in jit": Transform(_within("jit", lambda call: _scan_carry(call)[1])),
    "shard_map in jit": Transform(_within("jit", _shard_map)),
}


# ---- running


def observe(nnx: Any, program: Program) -> Observation:
    """Run a program on a library."""
    structure = STRUCTURES[program.structure]
    subject, x = structure.build(nnx), jnp.full((), 2.0)

    def body_with(*edits: str) -> Body:
        def body(subject: Any, x: Any) -> tuple[Any, Any]:
            net = structure.net(subject)
            for edit in edits:
                EDITS[edit].apply(nnx, net, x)
            return _loss(net, x), RESULTS[program.result].make(nnx, net, x)

        return (lambda x: body(subject, x)) if program.captured else body

    def disturb() -> None:
        net = structure.net(subject)
        _weight(net)[...] = _weight(net)[...] + 1
        if net is not _weight(net):
            net.k = 7

    args = (x,) if program.captured else (subject, x)
    call = Call(nnx, body_with(*program.edits), args, MODES[program.mode], body_with(), disturb)
    return observe_call(nnx, subject, lambda: TRANSFORMS[program.transform].run(call))
