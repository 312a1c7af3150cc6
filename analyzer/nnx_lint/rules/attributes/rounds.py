"""Layers that a loop of a constructor makes, of which only the last one stays (NNX152).

Invariant: a loop is judged only if each round certainly comes to the assignment and nothing in the loop reads the
attribute: a loop that chains layers, or looks for one and leaves, means what it says.
"""

from __future__ import annotations

import ast

from nnx_lint.model.events import AttributeSet
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.program import ancestors
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import attributes as rules


@judges(rules.ATTRIBUTE_OF_LAST_ROUND, AttributeSet, of=(Obj,))
def attribute_of_last_round(event: AttributeSet, report: Reporter) -> None:
    node, value = event.node, event.value
    if event.frame.initializing is not event.obj or not isinstance(node, ast.Assign):
        return
    if not isinstance(value, Obj) or not value.cls.derives_from("nnx.Module") or not isinstance(node.value, ast.Call):
        return
    loop = next(ancestors(event.frame.module, node), None)
    if not isinstance(loop, ast.For) or node not in loop.body or not is_long(loop.iter):
        return
    if not any(isinstance(target, ast.Attribute) and target.attr == event.name for target in node.targets):
        return
    if any(isinstance(item, (ast.Break, ast.Return)) or _reads(item, event.name) for item in walk(loop)):
        return
    report(event.frame.module, node, cls=event.obj.cls.name, path=event.name, value=value.describe())


def _reads(node: ast.AST, name: str) -> bool:
    """Whether a node reads an attribute of this name, or hands on the object that has it."""
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.ctx, ast.Load)
    given = [*node.args, *(item.value for item in node.keywords)] if isinstance(node, ast.Call) else []
    return any(is_name(item, "self") for item in given)


def is_long(iterable: ast.expr) -> bool:
    """Whether a loop may have more than one round."""
    if isinstance(iterable, (ast.List, ast.Tuple)):
        return len(iterable.elts) > 1
    counted = isinstance(iterable, ast.Call) and is_name(iterable.func, "range")
    last = iterable.args[0] if isinstance(iterable, ast.Call) and counted and len(iterable.args) == 1 else None
    return not (isinstance(last, ast.Constant) and isinstance(last.value, int) and last.value < 2)
