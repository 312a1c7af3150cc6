"""Sums and products that are all of a statement (NNX225): ``x + self.mlp(x)``, where ``x = x + self.mlp(x)`` was meant.

Invariants: an array is computed with for nothing only inside of a function, where no test expects it to fail; something
in the expression is certainly an array, so that no class of the project gives the operator another meaning.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_lint.model.events import Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import Array, Obj
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.program import ancestors, is_measured, is_tried
from nnx_lint.rules.updates.discarded import is_shown
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame


def _of_operation(event: Called) -> bool:
    """Whether what a call gives may be computed with in a statement that is nothing but an operation."""
    return isinstance(event.frame.discards, ast.BinOp) and isinstance(event.result, Array)


@judges(rules.UNUSED_RESULT, Called, when=_of_operation)
def unused_sum(event: Called, report: Reporter) -> None:
    _all_of_statement(event.frame, event.node, report)


def _is_operand(event: Used) -> bool:
    return event.what == "an operator" and isinstance(event.frame.discards, ast.BinOp)


@judges(rules.UNUSED_RESULT, Used, of=(Obj,), when=_is_operand)
def unused_sum_with_variable(event: Used, report: Reporter) -> None:
    if isinstance(event.value, Obj) and event.value.cls.is_variable:
        _all_of_statement(event.frame, event.node, report)


def _all_of_statement(frame: Frame, node: ast.AST, report: Reporter) -> None:
    """Report the statement of which an operand, or an operation, is a part, and that is nothing but operations."""
    whole, module = frame.discards, frame.module
    if whole is None or frame.func is None or is_shown(frame) or is_measured(frame.env, frame.func.node):
        return
    operations = itertools.takewhile(lambda each: isinstance(each, ast.BinOp), ancestors(module, node))
    if (node is not whole and whole not in operations) or is_tried(module, whole):
        return
    first: ast.expr = whole
    while isinstance(first, ast.BinOp):
        first = first.left
    mend = f"write `{first.id} = {text_of(whole)}`" if isinstance(first, ast.Name) else "bind the result to a name"
    report(module, whole, name=text_of(whole), result="computes an array", mend=mend)
