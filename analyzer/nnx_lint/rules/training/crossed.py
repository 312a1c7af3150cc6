"""Two networks that are mixed up in an update (a part of NNX612).

An actor and a critic, or the two of a pair, often have the same layers: the gradients of one fit the other, and nothing
fails where they change places. A step that is given both, such as a generator and a discriminator, says nothing of
their classes: it is judged by what it calls them.

Invariants: where the networks are known, each is made by a call of its own, which stands in no loop, and each has an
optimizer: a copy that takes a step for the original, as in meta-learning, has none. Where a step is given them, both
are parameters of it, declared to be modules and bound to nothing else, and neither is called a copy of the other.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.later import is_set_later
from nnx_lint.model.leaves import made_first
from nnx_lint.model.states import GradientVal, StateVal
from nnx_lint.model.unions import options, present
from nnx_lint.model.values import UNKNOWN, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.autodiff.gradients import Exchanged
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import FUNCTIONS, LOOPS, assigned_in, enclosing, in_test, names_of_parameters
from nnx_lint.rules.training.optimizers import updated
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
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


@judges_calls(rules.GRADIENTS_MISMATCH, ".update")
def parameters_mixed_up(event: Called, report: Reporter) -> None:
    """The gradients of one parameter of a function, or of a part of one, go into the update of another."""
    found = updated(event)
    if found is None or found[1] or len(event.args) != 2 or event.frame.func is None:
        return
    grads = present(event.args[1] or UNKNOWN)
    if not isinstance(grads, (StateVal, GradientVal)):
        return
    own, given = (_parameter_for(event.frame, value) for value in (event.args[0], grads.of))
    if own is None or given is None or own == given or COPIES.search(own) or COPIES.search(given):
        return
    one, other = set(own.split("_")), set(given.split("_"))
    if (one <= other or other <= one) and one ^ other != {"target"}:
        return  # `model` and `train_model` may be two views of one
    report(event.frame.module, event.nodes[1], problem=f"are those of `{given}`, and the model is `{own}`")


COPIES = re.compile(
    r"adapt|behav|clone|cop(y|ied)|compute|ema|fast|global|half|inner|learn|local|look|master|meta|mixed|nois|outer"
    r"|perturb|prob|shadow|slow|view|worker"
)
"""What says of a model that it takes steps for another one, or another one for it."""


def _parameter_for(frame: Frame, value: Value | None) -> str | None:
    """The parameter of a function that has a module as its value, one of some, and has had no other one."""
    known = options(present(value or UNKNOWN))
    if frame.func is None or not all(map(is_module, known)):
        return None
    bound = assigned_in(frame.func.node)
    held = ((name, frame.env.names.get(name)) for name in names_of_parameters(frame.func.node) if not bound[name])
    found = [name for name, each in held if any(one is other for one in options(each or UNKNOWN) for other in known)]
    return found[0] if len(found) == 1 else _attribute_for(frame.receiver, known) if not found else None


def _attribute_for(holder: Value | None, known: Sequence[Value]) -> str | None:
    """The attribute in which an object keeps a module that its constructor was given, and keeps no other one later."""
    if not isinstance(holder, Obj) or not all(
        isinstance(each, Obj) and isinstance(each.node, ast.arg) for each in known
    ):
        return None
    held = ((name, attribute_of(holder, name)) for name in attribute_names(holder))
    found = [name for name, attr in held if attr is not None and any(attr.value is each for each in known)]
    return found[0] if len(found) == 1 and not is_set_later(holder.cls, found[0]) else None


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
