"""Schedules that count epochs where the optimizer counts batches (part of NNX618).

``optax.cosine_decay_schedule(1e-3, EPOCHS)`` is at its end after as many steps as there are epochs. Where each batch is
a step, that is within the first epoch, and the rest of the training goes on with a rate of nothing.

Invariants: the number is one name that says that it counts epochs, and the schedule is written
in what the optimizer is made of; the loop over the range of that very name has a loop
inside of it that takes the steps, seen from the step itself; nothing asks the schedule for an epoch, or gathers several
batches for one step.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import Array, HostArray, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import bound_to, value_of
from nnx_lint.rules.program import FUNCTIONS, ancestors, given, is_tried, resolved
from nnx_lint.syntax.binding import is_name, names_in
from nnx_lint.syntax.walk import children, walk
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

HORIZONS = {
    "optax.cosine_decay_schedule": (1, "decay_steps"),
    "optax.cosine_onecycle_schedule": (0, "transition_steps"),
    "optax.linear_onecycle_schedule": (0, "transition_steps"),
    "optax.linear_schedule": (2, "transition_steps"),
    "optax.polynomial_schedule": (3, "transition_steps"),
    "optax.warmup_cosine_decay_schedule": (3, "decay_steps"),
}
"""Schedules that go from one rate to another, with the argument that says in how many steps."""

EPOCHS = re.compile(r"(?:^|_)epochs?$", re.IGNORECASE)
"""How a number of epochs is called."""

GATHERED = re.compile(r"MultiSteps|apply_every|every_k_schedule|inject_hyperparams|inject_stateful")
"""What makes one step of several batches, or sets the rate by hand."""


class Counted(list[tuple[ast.expr, str]]):
    """Schedules whose steps are as many as there are epochs: the number, the function."""


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, *HORIZONS)
def counted_in_epochs(event: Called, report: Reporter) -> None:
    node, module = given(event).node_of(*HORIZONS[event.subject or ""]), event.frame.module
    named = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    if node is None or not EPOCHS.search(named) or module.mentions(GATHERED) or is_tried(module, event.node):
        return
    bound = bound_to(module, event.node)
    name = bound.target.id if bound is not None and isinstance(bound.target, ast.Name) else None
    if name is None or not _asked_for_epochs(module, name):
        report.memory(Counted).append((node, event.name))


def _asked_for_epochs(module: Module, name: str) -> bool:
    """Whether the program calls a schedule by itself, with the number of an epoch."""
    calls = (call for call in walk(module.tree) if isinstance(call, ast.Call) and is_name(call.func, name))
    return any("epoch" in text_of(argument).lower() for call in calls for argument in call.args)


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, ".update")
def steps_of_batches(event: Called, report: Reporter) -> None:
    """A step that a loop inside of the loop over the epochs takes."""
    counted, callee = report.memory(Counted), event.callee
    owner = callee.receiver if isinstance(callee, BoundMethod) else None
    if not counted or not isinstance(owner, Obj) or getattr(owner.cls, "canonical", "") not in OPTIMIZERS:
        return
    module, call = owner.origin or (event.frame.module, None)
    parts = _made_of(module, call) if call is not None else []
    for node, function in [entry for entry in counted if entry[0] in parts]:
        if _goes_through_epochs(event.frame, event.node, module, text_of(node)):
            counted.remove((node, function))
            problem = f"takes `{text_of(node)}` for a number of steps, and each batch is a step: it ends too early"
            mend = f"count the batches, too: `{text_of(node)} * steps_per_epoch`"
            report(module, node, cls=function, problem=problem, mend=mend)


def _made_of(module: Module, call: ast.AST) -> list[ast.AST]:
    """All that stands in a call, and in what names in it are bound to."""
    found = [call]
    for node in found:
        bound = value_of(module, node) if isinstance(node, ast.Name) else None
        found += [*children(node), *([bound] if bound is not None and bound not in found else [])]
    return found


def _goes_through_epochs(frame: Frame, node: ast.AST, module: Module, name: str) -> bool:
    """Whether a place is in a loop over batches, and that one in the loop over the range of a name."""
    inner = False
    for each, at, loop in _loops(frame, node, module):
        if isinstance(loop, ast.For) and _counts_to(loop.iter, name):
            return inner
        inner = inner or not (isinstance(loop, ast.For) and _chooses(each, at, loop))
    return False


def _loops(frame: Frame, node: ast.AST, module: Module) -> Iterator[tuple[Frame, ast.AST, ast.AST]]:
    """The loops of a file around a place, and around the calls that lead to it, from the inside to the outside: what
    runs, the call in the loop, the loop.
    """
    at: ast.AST | None = node
    for each in frame.outwards():
        if at is None:
            return
        for outer in ancestors(each.module, at):
            if isinstance(outer, FUNCTIONS):
                break
            if isinstance(outer, (ast.For, ast.While)) and each.module is module:
                yield each, at, outer
        at = each.call


def _chooses(frame: Frame, call: ast.AST, loop: ast.For) -> bool:
    """Whether each round may take one step with another model or optimizer: the loop says which."""
    named = set(names_in(loop.target))
    given = [call.func, *call.args, *(item.value for item in call.keywords)] if isinstance(call, ast.Call) else []
    return any(_is_tracked(frame, each) for each in given if not named.isdisjoint(names_in(each)))


def _is_tracked(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression may be a module, an optimizer, or a method of something that has them."""
    chosen = next((part for part in walk(node) if isinstance(part, ast.Subscript)), None)
    if chosen is not None:
        return not isinstance(resolved(frame.env, chosen.value), (Array, HostArray))
    value = resolved(frame.env, node)
    return isinstance(value, BoundMethod) or (isinstance(value, Obj) and value.cls.tracked)


def _counts_to(iterated: ast.expr, name: str) -> bool:
    """Whether a loop goes over the range of a name, from zero or one on."""
    while isinstance(iterated, ast.Call) and not is_name(iterated.func, "range") and iterated.args:
        if "trange" in text_of(iterated.func):
            break
        iterated = iterated.args[0]
    if not isinstance(iterated, ast.Call) or not 1 <= len(iterated.args) <= 2:
        return False
    last = iterated.args[-1]
    return text_of(last.left if isinstance(last, ast.BinOp) and isinstance(last.op, ast.Add) else last) == name
