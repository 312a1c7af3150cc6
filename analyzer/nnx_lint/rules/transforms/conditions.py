"""What decides which branch is taken, and whether a loop goes on: one value, not an array of several (NNX826).

Invariants: only a shape that is known is judged; one that may have no axes at all is not known.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.events import Ran
from nnx_lint.model.forms import held_array
from nnx_lint.model.values import Array
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import given, is_tried, keyword_node, resolved
from nnx_rules import layers
from nnx_rules.rules import modules as rules
from nnx_rules.shape_algebra import is_whole

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value
    from nnx_rules.shapes import Shape

DECIDING = {
    f"{library}.{name}": argument
    for library in ("jax.lax", "nnx")
    for name, argument in (("cond", "pred"), ("switch", "index"))
}
"""Functions that choose a branch, and the parameter, their first, by which they do."""


@judges_calls(rules.ARRAY_SHAPES, *DECIDING)
def branch_condition(event: Called, report: Reporter) -> None:
    subject, args = event.subject or "", given(event)
    shape, node = _several(args.get(0, DECIDING[subject])), args.node_of(0, DECIDING[subject])
    if shape is not None and node is not None and not is_tried(event.frame.module, event.node):
        problem = f"`{subject}` takes one branch, and is to choose it by an array of shape {layers.shown(shape)}"
        mend = "to choose for each element write `jnp.where`; for one choice reduce it: `jnp.all`, `jnp.any`"
        report(event.frame.module, node, problem=problem, mend=mend)


def is_while(event: Ran) -> bool:
    """Whether a function of a ``while_loop`` has run."""
    return event.scope.row.name.endswith(".while_loop")


@judges(rules.ARRAY_SHAPES, Ran, when=is_while)
def loop_condition(event: Ran, report: Reporter) -> None:
    func, shape = event.scope.frame.func if event.scope.frame is not None else None, _several(event.result)
    if shape is None or func is None or is_tried(event.frame.module, event.node):
        return
    first = event.node.args[0] if isinstance(event.node, ast.Call) and event.node.args else None
    first = keyword_node(event.node, "cond_fun") if first is None else first
    condition = resolved(event.frame.env, first) if not isinstance(first, ast.Lambda) else None
    if first is func.node or (isinstance(condition, FuncVal) and condition.node is func.node):
        problem = f"the condition of `{event.scope.text}` returns an array of shape {layers.shown(shape)}"
        mend = "it returns one truth value: reduce it by `jnp.all` or `jnp.any`, or take an element"
        report(func.module, func.node, problem=problem, mend=mend)


def _several(value: Value | None) -> Shape | None:
    """The shape of an array that is no single value."""
    held = held_array(value) if value is not None else None
    shape = held.form.shape if isinstance(held, Array) and held.form is not None else None
    return shape if shape and is_whole(shape) else None
