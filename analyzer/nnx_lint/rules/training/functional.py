"""Transformations of optax that a program calls by itself: the order of what goes in (NNX618).

Invariant: what is given counts only where it certainly is the state of a transformation, which nothing else can be.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.states import OptStateVal, TransformationVal
from nnx_lint.model.values import UNKNOWN, present
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.edits import unsafe
from nnx_lint.rules.program import is_tried
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Fix
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, ".update")
def state_in_another_place(event: Called, report: Reporter) -> None:
    callee = event.callee
    tx = callee.receiver if isinstance(callee, BoundMethod) else None
    places = [place for place, value in enumerate(event.args) if _is_state(value)]
    if not isinstance(tx, TransformationVal) or len(places) != 1 or places == [1] or len(event.args) < 2:
        return
    if not is_tried(event.frame.module, event.node):
        ordinal = {0: "first", 2: "third"}.get(places[0], "last")
        problem = f"gets its state {ordinal}, and takes the gradients, the state and the parameters, in this order"
        mend = f"call `{event.name}(gradients, state, params)`"
        fix = partial(_exchanged, event, places[0])
        report(event.frame.module, event.node, fix=fix, cls=event.name, problem=problem, mend=mend)


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, "optax.apply_updates")
def state_applied(event: Called, report: Reporter) -> None:
    if any(map(_is_state, event.args)) and not is_tried(event.frame.module, event.node):
        problem = "gets the state of the optimizer, and takes the parameters and the updates"
        mend = f"call `{event.name}(params, updates)`, with what `update` returns first"
        report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)


def _is_state(value: Value | None) -> bool:
    return isinstance(present(value or UNKNOWN), OptStateVal)


def _exchanged(event: Called, place: int) -> Fix | None:
    """Exchange the state and what stands in its place."""
    call, source = event.node, event.frame.module.source
    if not isinstance(call, ast.Call) or list(call.args) != event.nodes:
        return None
    spans = [source.span(event.nodes[each]) for each in (place, 1)]
    texts = [source.segment(event.nodes[each]) for each in (1, place)]
    edits = tuple(Edit(span, text) for span, text in zip(spans, texts, strict=True))
    return unsafe("Exchange the arguments", edits)
