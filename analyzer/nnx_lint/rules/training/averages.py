"""Moving averages with their weights swapped (NNX628): what is kept is nearly all of the newest values.

``optax.incremental_update(new, old, step)`` takes the step of the new values and the rest of the old ones. With the two
in the other order, or a decay for the step, the average is nearly the model itself: a target network moves at once.

Invariants: the weight of the old values is a number that the program says, and not zero, which is a plain copy; what is
old is known by what the result replaces.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.expressions import text_of
from nnx_lint.model.naming import value_at
from nnx_lint.model.values import Const
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.graphs.copying import source_of, updated_with
from nnx_lint.rules.program import FUNCTIONS, ancestors, enclosing, given, in_test, is_tried, reads_of
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.parameters import positional_names
from nnx_rules.rules import training as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame

LITTLE = 0.05
"""What is kept of the old values, where nobody means it: an average forgets all in a few steps."""


@judges_calls(rules.AVERAGE_WEIGHTS, "optax.incremental_update")
def updated_by_steps(event: Called, report: Reporter) -> None:
    args = given(event)
    operands = [args.node_of(0, "new_tensors"), args.node_of(1, "old_tensors")]
    step = args.get(2, "step_size")
    if isinstance(step, Const) and type(step.value) is float:
        _judge(event, operands, [step.value, 1 - step.value], report)


@judges_calls(rules.AVERAGE_WEIGHTS, *TREE_MAPS)
def averaged_by_leaves(event: Called, report: Reporter) -> None:
    """``jax.tree.map(lambda old, new: 0.005 * old + 0.995 * new, target, online)``."""
    func = event.args[0] if len(event.args) == 3 else None
    body = func.node.body if isinstance(func, FuncVal) and isinstance(func.node, ast.Lambda) else None
    if not isinstance(func, FuncVal) or not isinstance(body, ast.BinOp) or not isinstance(body.op, ast.Add):
        return
    names = positional_names(func.node.args)
    weights = [_weight(event.frame, body, name) for name in names]
    if len(names) == 2 and None not in weights:
        _judge(event, [*event.nodes[1:]], [weight for weight in weights if weight is not None], report)


def _weight(frame: Frame, total: ast.BinOp, name: str) -> float | None:
    """The number that a sum multiplies what has a name with."""
    for term in (total.left, total.right):
        sides = (term.left, term.right) if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult) else ()
        for one, other in (sides, sides[::-1]) if sides else ():
            if is_name(one, name):
                return _number(frame, other)
    return None


def _number(frame: Frame, node: ast.expr) -> float | None:
    """A number that is written, or has a name; or what is left of one: ``1 - decay``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant):
        rest = _number(frame, node.right)
        return 1 - rest if rest is not None and node.left.value in (1, 1.0) else None
    value = Const(node.value) if isinstance(node, ast.Constant) else value_at(frame, node)
    return value.value if isinstance(value, Const) and type(value.value) is float else None


def _judge(event: Called, operands: list[ast.expr | None], weights: list[float], report: Reporter) -> None:
    frame, module = event.frame, event.frame.module
    target = _replaced(frame, event.node)
    if target is None or in_test(frame) or is_tried(module, event.node):
        return
    kept = [_stands_for(frame, node, target) for node in operands]
    if kept.count(True) == 1 and 0 < round(weights[kept.index(True)], 9) <= LITTLE:
        old, new = operands[kept.index(True)], operands[kept.index(False)]
        if old is not None and new is not None:
            share = f"{round(weights[kept.index(True)], 6):g}"
            shown = [text_of(source_of(frame, node) or node) for node in (old, new)]
            report(module, event.node, name=event.name, share=share, old=shown[0], new=shown[1])


def _replaced(frame: Frame, node: ast.AST) -> str | None:
    """What a result is put into: the name or attribute, or the object that ``nnx.update`` changes."""
    bound = bound_to(frame.module, node)
    if bound is None or isinstance(next(ancestors(frame.module, node), None), ast.Call):
        into = updated_with(frame, node)
        return text_of(into) if into is not None else None
    if isinstance(bound.target, ast.Name):
        scope = enclosing(frame.module, node, *FUNCTIONS) or frame.module.tree
        for read in reads_of(scope, bound.target.id):
            into = updated_with(frame, read)
            if into is not None:
                return text_of(into)
    return text_of(bound.target)


def _stands_for(frame: Frame, node: ast.expr | None, target: str) -> bool:
    """Whether an operand is what a result replaces, or the State of it."""
    if node is None:
        return False
    source = source_of(frame, node)
    return target in {text_of(node), text_of(source) if source is not None else ""}
