"""Transformations of optax that a program calls by itself: what goes in, and in which order (NNX618).

Invariant: what is given counts only where it certainly is the state of a transformation, which nothing else can be.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.events import Ran
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import OptStateVal, TransformationVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import NONE, UNKNOWN
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.autodiff.gradients import of_one_number
from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.edits import unsafe
from nnx_lint.rules.program import FUNCTIONS, ancestors, assigned_in, canonical_of, enclosing, given, is_tried, uses_in
from nnx_lint.syntax.binding import is_name, names_in
from nnx_lint.syntax.parameters import positional_names
from nnx_rules.rules import training as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Fix
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, ".update")
def update_without_params(event: Called, report: Reporter) -> None:
    """A transformation is called that needs the parameters besides the gradients, as all with weight decay do, or what
    a line search goes by.
    """
    callee, args = event.callee, given(event)
    tx = callee.receiver if isinstance(callee, BoundMethod) else None
    if not isinstance(tx, TransformationVal) or args.starred or "**" in event.keywords:
        return
    lacking = [name for name in tx.asks if name != "params" and name not in event.keywords]
    if lacking:
        listed = ", ".join(f"`{name}`" for name in lacking)
        problem = f"gets no {listed}, and `{tx.maker}` needs {'them' if len(lacking) > 1 else 'it'} by name"
        mend = f"write `{event.name}(gradients, state, params, {', '.join(f'{name}={name}' for name in lacking)})`"
        report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)
        return
    if "params" not in tx.asks:
        return
    value = args.get(2, "params")
    if len(event.args) + ("state" in event.keywords) == 2 and (value is None or value is NONE):
        problem = f"gets no parameters, and `{tx.maker}` needs them besides the gradients"
        mend = f"pass them third: `{event.name}(gradients, state, params)`"
        report(event.frame.module, event.node, cls=event.name, problem=problem, mend=mend)


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


@judges(rules.OPTIMIZER_TRANSFORMATION, Ran, when=of_one_number)
def gradients_applied(event: Ran, report: Reporter) -> None:
    """Gradients as they are, in the place of what a transformation makes of them: they are added, so the loss grows."""
    module = event.frame.module
    taken = bound_to(module, event.node)
    target = taken.target if taken is not None else None
    if event.scope.row.name.endswith("value_and_grad"):
        target = target.elts[1] if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 2 else None
    if taken is None or not isinstance(target, ast.Name):
        return
    scope = enclosing(module, taken.statement, *FUNCTIONS) or module.tree
    for use in uses_in(scope).get(target.id, ()) if assigned_in(scope)[target.id] == 1 else ():
        call = next(ancestors(module, use), None)
        if isinstance(call, ast.Call) and canonical_of(event.frame.env, call.func) in TREE_MAPS:
            _judge_step(module, event.node, call, use, report)
        if not isinstance(call, ast.Call) or len(call.args) != 2 or call.args[1] is not use:
            continue
        if canonical_of(event.frame.env, call.func) == "optax.apply_updates" and not is_tried(module, call):
            problem = "adds the gradients as they are to the parameters, so that the loss grows"
            mend = (
                f"add what the transformation makes of them: `updates, state = tx.update({target.id}, state, params)`"
            )
            report(module, use, cls=text_of(call.func), problem=problem, mend=mend)


def _judge_step(module: Module, derivative: ast.AST, call: ast.Call, use: ast.AST, report: Reporter) -> None:
    """``jax.tree.map(lambda p, g: p - lr * g, grads, params)``: parameters that are subtracted from gradients."""
    step, trees = call.args[0], call.args[1:]
    if not isinstance(step, ast.Lambda) or len(trees) != 2 or trees[0] is not use or is_tried(module, call):
        return
    names, body = positional_names(step.args), step.body
    of = derivative.args[0] if isinstance(derivative, ast.Call) and derivative.args else None
    if len(names) != 2 or of is None or text_of(of) != text_of(trees[1]) or not isinstance(trees[1], ast.Name):
        return
    if not isinstance(body, ast.BinOp) or not isinstance(body.op, ast.Sub) or not is_name(body.left, names[0]):
        return
    if names[1] in names_in(body.right) and names[0] not in names_in(body.right):
        first, second = map(text_of, trees)
        problem = f"subtracts the parameters `{second}` from the gradients `{first}`: `{names[0]}` are the gradients"
        mend = f"exchange the trees: `{text_of(call.func)}(..., {second}, {first})`"
        report(module, call, cls=text_of(call.func), problem=problem, mend=mend)


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
