"""What a call of a function under a transform returns: its result, the gradients of it, or something else.

Invariants: what is not known of an option of the transform makes the result unknown; what comes out belongs to the
level of the caller.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model import loops
from nnx_lint.model.classes import library_class
from nnx_lint.model.containers import Seq
from nnx_lint.model.crossing import given_back, mapped_size, refresh
from nnx_lint.model.states import GradientVal, StateVal
from nnx_lint.model.values import UNKNOWN, Array, ClassVal, Const, Obj, Unknown, Value
from nnx_rules.shapes import UNKNOWN as UNKNOWN_SIZE
from nnx_rules.shapes import Dimension, Form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame


class Given(NamedTuple):
    """The arguments of a call, the object ``of`` that is called, if any, and how many elements a map goes over."""

    args: Arguments
    of: Obj | None
    size: Dimension


def returned(
    frame: Frame,
    chain: Sequence[TransformVal],
    result: Value,
    args: Arguments,
    of: Obj | None,
    receiver: Value | None,
) -> Value:
    """What a call returns of a function under transforms, or of an object ``of``, that by itself gives ``result``.

    A method that is defined under a transform gets its ``receiver`` first.
    """
    handed = args.positional if receiver is None else [receiver, *args.positional]
    for place, applied in reversed([*enumerate(chain)]):
        # What a map gets that another one is around is not what the call gives.
        outer = chain[:place]
        whole = all(each.row.keeps_shapes or not each.row.level for each in outer)
        splits = next((each.keywords.get("splits") for each in outer if each.row.name == "nnx.split_rngs"), None)
        given = Given(args, of, mapped_size(applied, handed, splits) if whole else UNKNOWN_SIZE)
        result = RESULTS.get(applied.row.name, _crossed)(frame, applied, result, given)
    return result


def _with_captured(frame: Frame, applied: TransformVal, result: Value, given: Given) -> Value:
    """What a call returns, and for each type that is captured a State of the module that is called, or given first."""
    module = given.of if given.of is not None else given.args.get(0)
    call = applied.node
    types = call.args[1:] if isinstance(call, ast.Call) else []
    if not types:
        return refresh(result, frame.level)
    if any(isinstance(item, ast.Starred) for item in types):
        return UNKNOWN
    known = module if isinstance(module, Obj) and module.cls.is_pytree else UNKNOWN
    return Seq("tuple", [result, *(StateVal(known, frame.level, UNKNOWN) for _ in types)], frame.level)


def _crossed(frame: Frame, applied: TransformVal, result: Value, given: Given) -> Value:
    return given_back(applied, result, frame.level, given.size)


def _scanned(frame: Frame, applied: TransformVal, result: Value, given: Given) -> Value:
    return loops.scanned(applied, frame, result, given.size)


def _unknown(frame: Frame, applied: TransformVal, result: Value, given: Given) -> Value:
    return UNKNOWN


def _gradient(frame: Frame, applied: TransformVal, result: Value, given: Given) -> Value:
    """The gradients that ``nnx.grad`` computes: a State of what it differentiates."""
    aux = applied.keywords.get("has_aux", applied.keywords.get("**"))
    if aux is not None and not isinstance(aux, Const):
        return UNKNOWN
    gradients = _gradients(frame, applied, given.args)
    if not (aux is not None and aux.value):
        return gradients
    auxiliary = result.items[1] if isinstance(result, Seq) and result.exact and len(result.items) == 2 else UNKNOWN
    return Seq("tuple", [gradients, refresh(auxiliary, frame.level)], frame.level)


def _value_and_gradient(frame: Frame, applied: TransformVal, result: Value, given: Given) -> Value:
    value = _crossed(frame, applied, result, given)
    if applied.keywords.keys().isdisjoint(("has_aux", "**")) and isinstance(value, (Array, Unknown)):
        value = Array(frame.level, Form(()))  # what is differentiated is a number
    return Seq("tuple", [value, _gradients(frame, applied, given.args)], frame.level)


def _gradients(frame: Frame, applied: TransformVal, args: Arguments) -> Value:
    from nnx_lint.model.library import FilterVal

    argnums: Value = applied.keywords.get("argnums", Const(0))
    wanted: Value | None = None
    if isinstance(argnums, FilterVal):
        chosen = argnums.args
        argnums, wanted = chosen.get(0, "argnum") or UNKNOWN, chosen.get(1, "filter")
    if isinstance(argnums, Seq) and argnums.exact and argnums.type == "tuple":
        return Seq("tuple", [_gradient_of(frame, applied, args, each, None) for each in argnums.items], frame.level)
    return _gradient_of(frame, applied, args, argnums, wanted)


def _gradient_of(frame: Frame, applied: TransformVal, args: Arguments, argnum: Value, wanted: Value | None) -> Value:
    """The gradients with respect to one argument."""
    position = argnum.value if isinstance(argnum, Const) else None
    model = args.get(position) if isinstance(position, int) and not isinstance(position, bool) else None
    param = library_class("nnx.Param")
    if model is None or param is None:
        return UNKNOWN
    known = applied.row.name in {"nnx.grad", "nnx.value_and_grad"} and applied.modes.writes_back
    others = tuple(value for place, value in enumerate(args.positional) if place != position and value is not None)
    if not known or not isinstance(model, Obj) or not model.cls.is_pytree:
        return GradientVal(model, beside=others)
    state = StateVal(model, frame.level, wanted or ClassVal(param))
    state.beside = others
    return state


RESULTS = {
    "jax.grad": _gradient,
    "nnx.grad": _gradient,
    "jax.value_and_grad": _value_and_gradient,
    "nnx.value_and_grad": _value_and_gradient,
    "jax.jacfwd": _unknown,
    "jax.jacrev": _unknown,
    "jax.hessian": _unknown,
    "jax.make_jaxpr": _unknown,
    "nnx.make_jaxpr": _unknown,
    "nnx.capture": _with_captured,
    "nnx.scan": _scanned,
    "nnx.checkify": _unknown,
    "jax.experimental.checkify.checkify": _unknown,
}
"""What a call of a transformed function returns, where it is not what the function returns."""
