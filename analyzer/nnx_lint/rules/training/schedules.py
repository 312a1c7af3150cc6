"""Schedules of optax taken for the number that they give (part of NNX618).

A schedule is a function of the step. What computes with it, prints it or takes a number gets the function.

Invariants: only what certainly is a schedule of optax is meant; what an optimizer is handed is judged elsewhere.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import TransformationVal
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import given, is_asked_for, is_tried
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.values import Value

COMPUTED_WITH = {"a format": "is written as a number", "an index": "is indexed", "an operator": "is computed with"}
"""How a schedule is used as if it were a number, or a table of numbers."""

NUMBER_TAKEN = {
    "builtins.float": 0,
    "jax.numpy.array": 0,
    "jax.numpy.asarray": 0,
    "jax.numpy.float32": 0,
    "optax.add_decayed_weights": 0,
    "optax.add_noise": 0,
    "optax.clip": 0,
    "optax.clip_by_global_norm": 0,
    "optax.scale": 0,
}
"""Functions that make something of a number, or take one, and which of their arguments it is."""


def _is_schedule(value: Value | None) -> bool:
    return isinstance(value, TransformationVal) and value.schedule


@judges(rules.OPTIMIZER_TRANSFORMATION, Used, of=(TransformationVal,), when=lambda event: event.what in COMPUTED_WITH)
def schedule_as_number(event: Used, report: Reporter) -> None:
    """``-schedule``, ``0.1 * schedule``, ``f"{schedule:.2e}"``, ``schedule[step]``."""
    node, module = event.node, event.frame.module
    if not _is_schedule(event.value) or is_tried(module, node) or is_asked_for(module, node):
        return
    named = node.value if isinstance(node, ast.Subscript) else node
    name = text_of(named) if isinstance(named, (ast.Attribute, ast.Name)) else "schedule"
    problem = f"is a schedule, a function of the step, and {COMPUTED_WITH[event.what]}"
    report(module, node, cls=name, problem=problem, mend=f"call it for a step: `{name}(step)`")


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, *NUMBER_TAKEN)
def schedule_given_for_number(event: Called, report: Reporter) -> None:
    """``optax.scale(schedule)``, ``float(schedule)``."""
    args = given(event)
    place = NUMBER_TAKEN[event.subject or ""]
    node = args.node_of(place)
    if not isinstance(node, (ast.Attribute, ast.Call, ast.Name)) or not _is_schedule(args.get(place)):
        return  # of what is computed with it that is said already
    if is_tried(event.frame.module, event.node):
        return
    mend = f"call it for a step: `{event.name}({text_of(node)}(step))`"
    if event.subject == "optax.scale":
        mend = f"write `optax.scale_by_learning_rate({text_of(node)})`, which turns the sign, too"
    problem = f"gets the schedule `{text_of(node)}`, which is a function of the step, where it takes a number"
    report(event.frame.module, node, cls=event.name, problem=problem, mend=mend)
