"""Two networks of one class, each with an optimizer, that are mixed up in an update (a part of NNX612).

An actor and a critic, or the two of a pair, often have the same layers: the gradients of one fit the other, and nothing
fails where they change places.

Invariants: each network is made by a call of its own, which stands in no loop, and each has an optimizer: a copy that
takes a step for the original, as in meta-learning, has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.leaves import made_first
from nnx_lint.model.states import GradientVal, StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.autodiff.gradients import Exchanged
from nnx_lint.rules.program import FUNCTIONS, LOOPS, enclosing, in_test
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value


class Owners:
    """The networks that have an optimizer, by where they were made."""

    def __init__(self) -> None:
        self.made: set[int] = set()


@judges_calls(rules.GRADIENTS_MISMATCH, *OPTIMIZERS)
def note_owner(event: Called, report: Reporter) -> None:
    made = _optimized(event.result)
    if made is not None:
        report.memory(Owners).made.add(made)


@judges_calls(rules.GRADIENTS_MISMATCH, ".update")
def networks_mixed_up(event: Called, report: Reporter) -> None:
    owner = present(event.callee.receiver) if isinstance(event.callee, BoundMethod) else UNKNOWN
    if not isinstance(owner, Obj) or not owner.cls.derives_from("nnx.Optimizer") or len(event.args) != 2:
        return
    grads = present(event.args[1] or UNKNOWN)
    of = grads.of if isinstance(grads, (StateVal, GradientVal)) else None
    optimized, model, differentiated = _optimized(owner), _made(event.args[0]), _made(of)
    if None in {optimized, model, differentiated} or optimized == model == differentiated:
        return
    owners = report.memory(Owners).made | _kept(event.frame.receiver)
    if not {optimized, model, differentiated} <= owners or in_test(event.frame):
        return
    if any(grads is each for each in report.memory(Exchanged).values):
        return
    if model == optimized:
        report(event.frame.module, event.nodes[1], problem="are those of another network, which has an optimizer too")
    else:
        problem = "go to the optimizer of another network, and this one has an optimizer too"
        report(event.frame.module, event.nodes[1], problem=problem)


def _kept(holder: Value | None) -> set[int | None]:
    """The networks for which an object, such as an agent, keeps an optimizer."""
    held = [attribute_of(holder, name) for name in attribute_names(holder)] if isinstance(holder, Obj) else []
    return {_optimized(attr.value) for attr in held if attr is not None}


def _optimized(optimizer: Value) -> int | None:
    """The network that an optimizer was made for."""
    if not isinstance(optimizer, Obj) or not optimizer.cls.derives_from("nnx.Optimizer"):
        return None
    return _made((optimizer.args or {}).get("model"))


def _made(value: Value | None) -> int | None:
    """What tells a network from all others: the call that makes it, which runs once."""
    obj = present(value) if value is not None else None
    if not isinstance(obj, Obj) or obj.assumed or obj.merged or not obj.cls.derives_from("nnx.Module"):
        return None
    origin = made_first(obj).origin
    if origin is None or isinstance(enclosing(*origin, *LOOPS, *FUNCTIONS), LOOPS):
        return None
    return id(origin[1])
