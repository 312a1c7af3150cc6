"""The order of results (NNX462, and a part of NNX463): names that take what a function returns under these very names,
in another order.

``opt_state, loss`` is what the step returns, and ``loss, opt_state = step(...)`` takes it. In a loop that fails in the
second round, far from here.

Invariants: names alone prove nothing, as an exchange may be meant: a name that stood for one kind of thing, such as the
state of an optimizer, takes another kind, and would take its own kind in the order of the function. The function is
known, and all its ends return the same names, as far as they are names; a call that is given its arguments in another
order than the parameters of these names means the exchange.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Unpacked
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import GraphDefVal, OptStateVal, StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Array, Obj
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.autodiff.gradients import (
    AUX_WITH_VALUE,
    gradient_call,
    transformed_by,
    unpacks_call,
    unpacks_result,
)
from nnx_lint.rules.bindings import value_of
from nnx_lint.rules.callees import called_value
from nnx_lint.rules.program import in_test, resolved, results_of
from nnx_lint.rules.traces.mends import COMPILING
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.dotted import last_name
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules import autodiff as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Value


@judges(rules.GRADIENT_RESULTS, Unpacked, when=unpacks_call)
def results_in_another_order(event: Unpacked, report: Reporter) -> None:
    call, target, frame = event.value_node, event.target, event.frame
    if not isinstance(call, ast.Call) or not isinstance(target, (ast.Tuple, ast.List)):
        return
    taken = [_last(item) for item in target.elts]
    func = _function_of(called_value(frame.env, call.func)) if len(set(taken)) == len(taken) else None
    given = _names_returned(func, len(taken)) if func is not None else []
    places = [
        place
        for place, (name, other) in enumerate(zip(taken, given, strict=False))
        if name != other and name in given and other in taken
    ]
    if not places or func is None or in_test(frame) or not _is_another_kind(event, target, places, given, taken):
        return
    moved = [(taken[place], given[place]) for place in places]
    if _is_exchanged(func, call, {name for name, _ in moved}):
        return
    written = {_last(item): frame.module.source.segment(item) for item in target.elts}
    others = (written[name] for name in taken if name not in given)
    report(
        frame.module,
        target,
        transform=text_of(call.func),
        aux="",
        verb="returns",
        results=f"`{', '.join(name or '...' for name in given)}`",
        problem=f"`{written[moved[0][0]]}` takes `{moved[0][1]}`",
        mend=", ".join(written[name] if name in taken else next(others, "_") for name in given),
    )


@judges(rules.TUPLE_LOSS, Unpacked, when=unpacks_call)
def loss_behind_aux(event: Unpacked, report: Reporter) -> None:
    """A loss ends with ``return logits, loss``, and ``(loss, logits), grads = ...`` takes what it gives: the first of
    both is differentiated.
    """
    call, target, frame = event.value_node, event.target, event.frame
    pair = target.elts[0] if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 2 else None
    if not isinstance(call, ast.Call) or not isinstance(pair, ast.Tuple) or len(pair.elts) != 2:
        return
    transform, aux, text = gradient_call(frame, call.func)
    func = _differentiated(frame, call.func) if aux and (transform or "").endswith("value_and_grad") else None
    given = _names_returned(func, 2) if func is not None else []
    taken = [_last(item) for item in pair.elts]
    if func is not None and given == taken[::-1] and "loss" in taken[0] and "loss" not in taken[1]:
        first, mend = f"`{given[0]}` before `{given[1]}`", f"return the loss first: `return {', '.join(taken)}`"
        report(frame.module, call, transform=text, function=func.name, given=first, mend=mend)


BESIDE = re.compile(r"(^|_)(aux|info|logits|logs|metrics|stats)$")
"""How names end that stand for what a loss returns beside its value."""


@judges(rules.GRADIENT_RESULTS, Unpacked, when=unpacks_result)
def aux_from_gradients(event: Unpacked, report: Reporter) -> None:
    """``_, metrics = nnx.value_and_grad(loss_fn, has_aux=True)(model)``: the metrics are the gradients."""
    names = [part.id for part in getattr(event.target, "elts", ()) if isinstance(part, ast.Name)]
    if len(names) != 2 or event.count != 2 or not names[0].startswith("_") or not BESIDE.search(names[1]):
        return
    frame, node = event.frame, event.value_node
    call = value_of(frame.module, node) if isinstance(node, ast.Name) else node
    name, aux, text = gradient_call(frame, call.func) if isinstance(call, ast.Call) else (None, None, "")
    if aux and (name or "").endswith("value_and_grad"):
        slots: dict[str, Any] = {
            "transform": text,
            "aux": " with `has_aux=True`",
            "verb": "returns",
            "results": AUX_WITH_VALUE,
        }
        mend = f"({names[0]}, {names[1]}), _"
        report(frame.module, event.target, **slots, problem=f"`{names[1]}` takes the gradients", mend=mend)


def _differentiated(frame: Frame, func: ast.expr) -> FuncVal | None:
    """The function of the project that an expression gives the gradients of."""
    if isinstance(func, ast.Call):
        found = called_value(frame.env, func.args[0]) if func.args else None
    else:
        found = transformed_by(frame.env, func)
    while isinstance(found, (BoundMethod, Transformed)):
        found = found.func
    return found if isinstance(found, FuncVal) and found.wraps is None else None


def _is_another_kind(
    event: Unpacked, target: ast.Tuple | ast.List, places: list[int], given: list[str], taken: list[str]
) -> bool:
    """Whether a name that stands for one kind of thing takes another kind, and would not in the function's order."""
    results = event.value.items if isinstance(event.value, Seq) and event.value.exact else []
    if len(results) != len(given):
        return False
    for place in places:
        before = _kind(resolved(event.frame.env, target.elts[place]))
        meant = _kind(results[given.index(taken[place])])
        if before is not None and before is meant and _kind(results[place]) not in {None, before}:
            return True
    return False


KINDS = (Array, DictVal, GraphDefVal, Obj, OptStateVal, StateVal)


def _kind(value: Value | None) -> object:
    """What sort of thing a value is, where that is known: an optimizer is none of the other objects."""
    value = present(value) if value is not None else UNKNOWN
    if isinstance(value, Obj) and any(map(value.cls.derives_from, OPTIMIZERS)):
        return OPTIMIZERS
    return type(value) if isinstance(value, KINDS) else None


def _last(node: ast.expr) -> str:
    """The name that something is bound to, of an attribute its own, without the word for what is new about it; nothing
    for other targets.
    """
    name = last_name(node)
    return next((name.removeprefix(word) for word in NEW if name.startswith(word)), name)


NEW = ("new_", "next_", "updated_")
"""What names of results begin with that take the place of an argument."""


def _function_of(value: Value | None) -> FuncVal | None:
    """The function of the project whose results a call gives as they are."""
    while isinstance(value, (BoundMethod, Transformed)):
        if isinstance(value, Transformed) and value.applied.row.name not in COMPILING:
            return None
        value = value.func
    return value if isinstance(value, FuncVal) and value.wraps is None else None


def _names_returned(func: FuncVal, count: int) -> list[str]:
    """The names of that many results of a function, empty for one without; nothing if its ends differ in them."""
    results = results_of(func.node)
    found = [[_last(item) for item in each.elts] for each in results if isinstance(each, ast.Tuple)]
    if not found or len(found) != len(results) or any(names != found[0] for names in found):
        return []
    named = [name for name in found[0] if name]
    return found[0] if len(found[0]) == count and len({*named}) == len(named) else []


def _is_exchanged(func: FuncVal, call: ast.Call, names: set[str]) -> bool:
    """Whether a call hands over one of some things for a parameter that has the name of another one."""
    parameters = syntax_parameters.positional_names(func.node.args)
    if isinstance(call.func, ast.Attribute) and parameters[:1] == ["self"]:
        parameters = parameters[1:]
    pairs = [*zip(parameters, call.args, strict=False), *((item.arg, item.value) for item in call.keywords)]
    return any(
        parameter != _last(value) and (parameter in names or _last(value) in names) for parameter, value in pairs
    )
