"""Ways to call transforms, as short expressions on either library: forms of their arguments, results and mistakes.

A way gets the library and the options of a mode, and returns something. The names say which transform it is, and what
is special about the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from transform_programs import STRUCTURES

XS = jnp.arange(3.0)


def net_of(nnx: Any) -> Any:
    return STRUCTURES["net"].build(nnx)


def axes_by_type(nnx: Any) -> Any:
    return nnx.StateAxes({nnx.BatchStat: None, ...: 0})


def total(net: Any, x: Any = 1.0) -> Any:
    return jnp.sum(net.w[...] ** 2) * x + jnp.sum(net.b[...])


def with_aux(net: Any) -> Any:
    return total(net), {"w": net.w[...] * 2}


def add_one(net: Any) -> Any:
    net.b[...] = net.b[...] + 1
    return net.w[...] * 2


def named(x: Any, *, k: Any) -> Any:
    return x * k


CALLS: Mapping[str, Callable[[Any, Mapping[str, bool]], Any]] = {
    # jit
    "jit: static by number": lambda nnx, o: nnx.jit(lambda x, k: x * k if k else x, static_argnums=1, **o)(2.0, 3),
    "jit: static by name": lambda nnx, o: nnx.jit(lambda x, k: x * k if k else x, static_argnames="k", **o)(2.0, k=3),
    "jit: static, given otherwise": lambda nnx, o: nnx.jit(named, static_argnames="k", **o)(2.0, k=3),
    "jit: unhashable static": lambda nnx, o: nnx.jit(lambda x, k: x, static_argnums=1, **o)(2.0, [1]),
    "jit: unknown static name": lambda nnx, o: nnx.jit(lambda x: x, static_argnames="k", **o)(2.0),
    "jit: static number too large": lambda nnx, o: nnx.jit(lambda x: x, static_argnums=3, **o)(2.0),
    "jit: keyword-only": lambda nnx, o: nnx.jit(named, **o)(2.0, k=3.0),
    "jit: object by name": lambda nnx, o: nnx.jit(lambda *, net: add_one(net), **o)(net=net_of(nnx)),
    "jit: donated": lambda nnx, o: nnx.jit(add_one, donate_argnums=0, **o)(net_of(nnx)),
    "jit: lowered and compiled": lambda nnx, o: nnx.jit(add_one, **o).lower(net_of(nnx)).compile()(net_of(nnx)),
    "jit: eval_shape": lambda nnx, o: nnx.jit(add_one, **o).eval_shape(net_of(nnx)),
    "jit: text": lambda nnx, o: nnx.jit(lambda text: 1.0, **o)("text"),
    "jit: text as a result": lambda nnx, o: nnx.jit(lambda x: "text", **o)(1.0),
    "jit: with options first": lambda nnx, o: nnx.jit(static_argnums=1, **o)(lambda x, k: x * k)(1.0, 2),
    # grad
    "grad: a Variable": lambda nnx, o: nnx.grad(lambda v: v[...] ** 2, **o)(nnx.BatchStat(2.0)),
    "grad: a State": lambda nnx, o: nnx.grad(lambda s: total(s), **o)(nnx.state(net_of(nnx))),
    "grad: an array": lambda nnx, o: nnx.grad(lambda x: x**2, **o)(3.0),
    "grad: an integer": lambda nnx, o: nnx.grad(lambda x: x**2, **o)(3),
    "grad: a dict": lambda nnx, o: nnx.grad(lambda d: total(d["n"], d["x"]), **o)({"n": net_of(nnx), "x": 2.0}),
    "grad: aux": lambda nnx, o: nnx.grad(with_aux, has_aux=True, **o)(net_of(nnx)),
    "grad: value and aux": lambda nnx, o: nnx.value_and_grad(with_aux, has_aux=True, **o)(net_of(nnx)),
    "grad: argnums in another order": lambda nnx, o: nnx.grad(total, argnums=(1, 0), **o)(net_of(nnx), 2.0),
    "grad: argnums in a list": lambda nnx, o: nnx.grad(total, argnums=[0, 1], **o)(net_of(nnx), 2.0),
    "grad: one argnum in a tuple": lambda nnx, o: nnx.grad(total, argnums=(0,), **o)(net_of(nnx)),
    "grad: last argument": lambda nnx, o: nnx.grad(total, argnums=-1, **o)(net_of(nnx), 2.0),
    "grad: too large an argnum": lambda nnx, o: nnx.grad(total, argnums=2, **o)(net_of(nnx), 2.0),
    "grad: text as argnums": lambda nnx, o: nnx.grad(total, argnums="0", **o)(net_of(nnx)),
    "grad: a filter": lambda nnx, o: nnx.grad(total, argnums=nnx.DiffState(0, nnx.BatchStat), **o)(net_of(nnx)),
    "grad: a filter and a number": lambda nnx, o: nnx.grad(
        total, argnums=(nnx.DiffState(0, (nnx.BatchStat, nnx.Param)), 1), **o
    )(net_of(nnx), 2.0),
    "grad: a filter repeated": lambda nnx, o: nnx.grad(total, argnums=(0, nnx.DiffState(0, ...)), **o)(net_of(nnx)),
    "grad: no number": lambda nnx, o: nnx.grad(lambda net: net.w[...], **o)(net_of(nnx)),
    "grad: None": lambda nnx, o: nnx.grad(lambda net: None, **o)(net_of(nnx)),
    "grad: integer result": lambda nnx, o: nnx.grad(lambda x: x.astype(int), **o)(jnp.ones(())),
    "grad: holomorphic": lambda nnx, o: nnx.grad(lambda x: x**2, holomorphic=True, **o)(1.0),
    "grad: second argument by name": lambda nnx, o: nnx.grad(total, **o)(net_of(nnx), x=2.0),
    "grad: with options first": lambda nnx, o: nnx.grad(argnums=1, **o)(total)(net_of(nnx), 2.0),
    "grad: of grad": lambda nnx, o: nnx.grad(lambda x: nnx.grad(lambda y: y**3, **o)(x), **o)(2.0),
    # vjp, jvp
    "vjp: wrong cotangent": lambda nnx, o: nnx.vjp(total, net_of(nnx), 2.0, **o)[1]((1.0, 2.0)),
    "vjp: later": lambda nnx, o: nnx.vjp(total, **o)(net_of(nnx), 2.0)[1](jnp.ones(())),
    "jvp: later": lambda nnx, o: nnx.jvp(total, **o)((net_of(nnx),), (net_of(nnx),)),
    "jvp: a State for an object": lambda nnx, o: nnx.jvp(total, (net_of(nnx),), (nnx.state(net_of(nnx)),), **o),
    # vmap
    "vmap: axes": lambda nnx, o: nnx.vmap(lambda x, y: x + y, in_axes=(0, None), **o)(XS, 1.0),
    "vmap: too few axes": lambda nnx, o: nnx.vmap(lambda x, y: x + y, in_axes=(0,), **o)(XS, 1.0),
    "vmap: axes in a list": lambda nnx, o: nnx.vmap(lambda x, y: x + y, in_axes=[0, None], **o)(XS, 1.0),
    "vmap: negative axes": lambda nnx, o: nnx.vmap(lambda x: x, in_axes=-1, out_axes=-1, **o)(jnp.ones((2, 3))),
    "vmap: axis too large": lambda nnx, o: nnx.vmap(lambda x: x, in_axes=5, **o)(XS),
    "vmap: no axis": lambda nnx, o: nnx.vmap(lambda x: x, in_axes=None, **o)(1.0),
    "vmap: axis_size": lambda nnx, o: nnx.vmap(lambda x: x, in_axes=None, axis_size=3, **o)(1.0),
    "vmap: wrong axis_size": lambda nnx, o: nnx.vmap(lambda x: x, axis_size=2, **o)(XS),
    "vmap: different sizes": lambda nnx, o: nnx.vmap(lambda x, y: x, **o)(XS, jnp.ones(4)),
    "vmap: nothing to map": lambda nnx, o: nnx.vmap(lambda: 1.0, **o)(),
    "vmap: axis_name": lambda nnx, o: nnx.vmap(lambda x: jax.lax.psum(x, "i"), axis_name="i", **o)(XS),
    "vmap: axes of a dict": lambda nnx, o: nnx.vmap(lambda d: d["a"] + d["b"], in_axes=({"a": 0, "b": None},), **o)(
        {"a": XS, "b": 1.0}
    ),
    "vmap: unmapped output": lambda nnx, o: nnx.vmap(lambda x: (x, 1.0), out_axes=(0, None), **o)(XS),
    "vmap: mapped output as unmapped": lambda nnx, o: nnx.vmap(lambda x: x, out_axes=None, **o)(XS),
    "vmap: a Module is made": lambda nnx, o: nnx.vmap(lambda x: nnx.Dict(v=nnx.Param(x), k=2), **o)(XS),
    "vmap: out_axes by filter": lambda nnx, o: nnx.vmap(
        lambda x: nnx.Dict(v=nnx.Param(x), b=nnx.BatchStat(2.0)), out_axes=axes_by_type(nnx), **o
    )(XS),
    "vmap: axes that do not cover": lambda nnx, o: nnx.vmap(add_one, in_axes=(nnx.StateAxes({nnx.Param: 0}),), **o)(
        net_of(nnx)
    ),
    "vmap: axes of an array by filter": lambda nnx, o: nnx.vmap(lambda x: x, in_axes=(axes_by_type(nnx),), **o)(XS),
    "vmap: keyword argument": lambda nnx, o: nnx.vmap(lambda x, k: x * k, **o)(XS, k=XS),
    "vmap: unsplit keys": lambda nnx, o: nnx.vmap(lambda rngs: rngs.normal(), **o)(nnx.Rngs(0)),
    "vmap: split keys": lambda nnx, o: nnx.vmap(lambda rngs: rngs.normal(), **o)(nnx.Rngs(0).split(3)),
    "vmap: unsplit keys, unmapped": lambda nnx, o: nnx.vmap(lambda rngs: rngs.normal(), in_axes=None, axis_size=3, **o)(
        nnx.Rngs(0)
    ),
    "vmap: keys split around it": lambda nnx, o: nnx.split_rngs(splits=3)(nnx.vmap(lambda r: r.normal(), **o))(
        nnx.Rngs(0)
    ),
    # scan
    "scan: default": lambda nnx, o: nnx.scan(lambda c, x: (c + x, c * x), **o)(1.0, XS),
    "scan: carry only": lambda nnx, o: nnx.scan(lambda c: c + 1, in_axes=nnx.Carry, out_axes=nnx.Carry, length=3, **o)(
        1.0
    ),
    "scan: carry second": lambda nnx, o: nnx.scan(
        lambda x, c: (x, c + x), in_axes=(0, nnx.Carry), out_axes=(0, nnx.Carry), **o
    )(XS, 1.0),
    "scan: no carry": lambda nnx, o: nnx.scan(lambda x: x + 1, in_axes=0, out_axes=0, **o)(XS),
    "scan: other axes": lambda nnx, o: nnx.scan(
        lambda c, x: (c + x.sum(), x), in_axes=(nnx.Carry, -1), out_axes=(nnx.Carry, 1), **o
    )(1.0, jnp.ones((2, 3))),
    "scan: no length": lambda nnx, o: nnx.scan(lambda c: c + 1, in_axes=nnx.Carry, out_axes=nnx.Carry, **o)(1.0),
    "scan: wrong length": lambda nnx, o: nnx.scan(lambda c, x: (c, x), length=4, **o)(1.0, XS),
    "scan: reverse and unrolled": lambda nnx, o: nnx.scan(lambda c, x: (c + x, c * x), reverse=True, unroll=2, **o)(
        1.0, XS
    ),
    "scan: two carries": lambda nnx, o: nnx.scan(lambda c, d: (c, d), in_axes=(nnx.Carry, nnx.Carry), **o)(1.0, 1.0),
    "scan: nested carry": lambda nnx, o: nnx.scan(lambda c, x: (c, x), in_axes=((nnx.Carry,), 0), **o)((1.0,), XS),
    "scan: carry in, none out": lambda nnx, o: nnx.scan(lambda c, x: c, out_axes=0, **o)(1.0, XS),
    "scan: output not mapped": lambda nnx, o: nnx.scan(lambda c, x: (c, x), out_axes=(nnx.Carry, None), **o)(1.0, XS),
    "scan: axes in a list": lambda nnx, o: nnx.scan(lambda c, x: (c, x), in_axes=[nnx.Carry, 0], **o)(1.0, XS),
    "scan: a carry that changes": lambda nnx, o: nnx.scan(lambda c, x: (jnp.ones(2), x), **o)(1.0, XS),
    "scan: None for xs": lambda nnx, o: nnx.scan(lambda c, x: (c + 1, x), length=3, **o)(1.0, None),
    "scan: by filter, carried": lambda nnx, o: nnx.scan(
        lambda c, net: (c, add_one(net)), in_axes=(nnx.Carry, nnx.StateAxes({nnx.BatchStat: nnx.Carry, ...: 0})), **o
    )(1.0, net_of(nnx)),
    "scan: keys in the carry": lambda nnx, o: nnx.scan(lambda r, x: (r, r.normal()), **o)(nnx.Rngs(0), XS),
    # branches and loops
    "cond: different results": lambda nnx, o: nnx.cond(True, lambda x: x, lambda x: (x, x), 1.0, **o),
    "cond: different types": lambda nnx, o: nnx.cond(True, lambda x: x, lambda x: 1, 1.0, **o),
    "cond: no scalar": lambda nnx, o: nnx.cond(XS, lambda x: x, lambda x: x, 1.0, **o),
    "cond: by name": lambda nnx, o: nnx.cond(pred=True, true_fun=lambda: 1.0, false_fun=lambda: 2.0, **o),
    "switch: out of range": lambda nnx, o: nnx.switch(7, [lambda x: x, lambda x: x + 1], 1.0, **o),
    "switch: no branch": lambda nnx, o: nnx.switch(0, [], 1.0, **o),
    "switch: a float": lambda nnx, o: nnx.switch(0.0, [lambda x: x, lambda x: x], 1.0, **o),
    "while_loop: numbers": lambda nnx, o: nnx.while_loop(lambda c: c < 3, lambda c: c + 1, 0, **o),
    "while_loop: no condition": lambda nnx, o: nnx.while_loop(lambda c: c, lambda c: c + 1, 0, **o),
    "while_loop: another structure": lambda nnx, o: nnx.while_loop(lambda c: c < 3, lambda c: (c, c), 0, **o),
    "while_loop: another object": lambda nnx, o: nnx.while_loop(
        lambda c: jnp.sum(c.a[...]) < 9, lambda c: nnx.Dict(a=nnx.Param(c.a[...] + 1)), nnx.Dict(a=nnx.Param(XS)), **o
    ),
    "fori_loop: numbers": lambda nnx, o: nnx.fori_loop(0, 3, lambda i, c: c + i, 0.0, **o),
    "fori_loop: no iteration": lambda nnx, o: nnx.fori_loop(0, 0, lambda i, net: net, net_of(nnx), **o).k,
    # the rest
    "remat: static": lambda nnx, o: nnx.remat(lambda x, k: x * k if k else x, static_argnums=-1, **o)(2.0, 3),
    "remat: traced": lambda nnx, o: nnx.remat(lambda x, k: x * k if k else x, **o)(2.0, True),
    "remat: with options first": lambda nnx, o: nnx.remat(prevent_cse=False, **o)(add_one)(net_of(nnx)),
    "eval_shape: a new Module": lambda nnx, o: nnx.eval_shape(lambda: nnx.Dict(v=nnx.Param(XS)), **o),
    "eval_shape: by name": lambda nnx, o: nnx.eval_shape(lambda net, *, k: net.w[...] * k, net_of(nnx), k=2.0, **o),
    "custom_vjp: no rule": lambda nnx, o: nnx.custom_vjp(lambda x: x, **o)(1.0),
    # keyword-only parameters, Modules and their methods as functions
    "jit: an instance": lambda nnx, o: nnx.jit(net_of(nnx), **o)(2.0),
    "grad: an instance": lambda nnx, o: nnx.grad(net_of(nnx), **o)(2.0),
    "vmap: an instance": lambda nnx, o: nnx.vmap(net_of(nnx), **o)(XS),
    "cond: instances": lambda nnx, o: nnx.cond(True, net_of(nnx), net_of(nnx), 2.0, **o),
    "jit: a bound method": lambda nnx, o: nnx.jit(net_of(nnx).__call__, **o)(2.0),
    "grad: a bound method": lambda nnx, o: nnx.grad(net_of(nnx).__call__, **o)(2.0),
    "vmap: a bound method": lambda nnx, o: nnx.vmap(net_of(nnx).__call__, **o)(XS),
    "remat: a bound method": lambda nnx, o: nnx.remat(net_of(nnx).__call__, **o)(2.0),
    "cond: a bound method": lambda nnx, o: nnx.cond(True, net_of(nnx).__call__, lambda x: x * 2, 2.0, **o),
    "grad: keyword-only": lambda nnx, o: nnx.grad(named, **o)(2.0, k=3.0),
    "vmap: keyword-only": lambda nnx, o: nnx.vmap(named, **o)(XS, k=XS),
    "remat: keyword-only": lambda nnx, o: nnx.remat(named, **o)(2.0, k=3.0),
    "checkify: keyword-only": lambda nnx, o: nnx.checkify(named, **o)(2.0, k=3.0)[1],
    "grad: all by name": lambda nnx, o: nnx.grad(total, **o)(net=net_of(nnx), x=2.0),
    "vmap: axes of arguments by name": lambda nnx, o: nnx.vmap(lambda x, k: x * k, in_axes=(0, None), **o)(XS, k=2.0),
    "vmap: an unknown name": lambda nnx, o: nnx.vmap(lambda x: x, **o)(XS, unknown=XS),
    # marks
    "DiffState": lambda nnx, o: (nnx.DiffState(0, "a") == nnx.DiffState(0, "a"), repr(nnx.DiffState(0, "a"))),
    "StateAxes": lambda nnx, o: (nnx.StateAxes({"a": 0, ...: None}), [*nnx.StateAxes({"a": 0}).items()]),
    "StateAxes: same": lambda nnx, o: (
        nnx.StateAxes({"a": 0}) == nnx.StateAxes({"a": 0}),
        nnx.StateAxes({"a": 0}) == nnx.StateAxes({"a": 1}),
        hash(nnx.StateAxes({"a": 0})) == hash(nnx.StateAxes({"a": 0})),
    ),
    "StateSharding": lambda nnx, o: (nnx.StateSharding({"a": 0}).filters, nnx.StateSharding({"a": 0}).shardings),
}
