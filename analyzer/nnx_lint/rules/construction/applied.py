"""``graphdef.apply``: what it is given, and what is done with what comes of it (a part of NNX831).

With Linen ``apply`` takes the variables and the inputs, and returns the outputs. That of a GraphDef takes States alone;
what it gives is called with the inputs, and returns the outputs beside the structure and State afterwards.

Invariant: only the GraphDef of a known object counts, and the pair as it came out of the call.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.applying import Outcome
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.containers import DictVal
from nnx_lint.model.events import Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import GraphDefVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Array, Const, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.graphs.leaves import OF_ONE_ARRAY
from nnx_lint.rules.layers.pairs import computed_with
from nnx_lint.rules.program import is_tried
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Value

COLLECTIONS = frozenset({"params", "batch_stats"})
"""What the variables of Linen are filed under."""


@judges_calls(rules.LINEN_IDIOM, ".apply")
def applied_to_inputs(event: Called, report: Reporter) -> None:
    """``graphdef.apply({"params": params}, x)``."""
    callee = event.callee
    graphdef = callee.receiver if isinstance(callee, BoundMethod) else None
    if not isinstance(graphdef, GraphDefVal) or not isinstance(present(graphdef.of), Obj):
        return
    if any(map(_is_no_state, event.args)) and not is_tried(event.frame.module, event.node):
        problem = "`apply` of a GraphDef takes States, and gives what is called with the inputs"
        mend = f"write `output, _ = {event.name}(state)(x)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


def _is_no_state(value: Value | None) -> bool:
    """Whether a value certainly is none that holds the Variables of an object: an array, or collections of Linen."""
    if isinstance(value, DictVal) and value.exact and value.items:
        return all(isinstance(key, Const) and key.value in COLLECTIONS for key, _ in value.items)
    return isinstance(value, Array)


@judges(rules.LINEN_IDIOM, Used, of=(Outcome,))
def outcome_computed_with(event: Used, report: Reporter) -> None:
    """``graphdef.apply(state)(x) - y``."""
    found = computed_with(event)
    if found is not None:
        _report(event.frame, *found, report)


def takes_outcome(event: Called) -> bool:
    return bool(event.args) and isinstance(event.args[0], Outcome)


@judges_calls(rules.LINEN_IDIOM, "optax.*", *(f"jax.numpy.{name}" for name in OF_ONE_ARRAY), when=takes_outcome)
def outcome_as_array(event: Called, report: Reporter) -> None:
    """A function of arrays gets the pair first."""
    if event.nodes:
        _report(event.frame, event.node, event.nodes[0], report)


def _report(frame: Frame, node: ast.AST, pair: ast.expr, report: Reporter) -> None:
    if not is_tried(frame.module, node):
        name = text_of(pair)
        problem = f"`{name}` is a pair: the output, and the structure and State after the call of `apply`"
        report(frame.module, node, problem=problem, mend="unpack it: `output, _ = graphdef.apply(state)(x)`")
