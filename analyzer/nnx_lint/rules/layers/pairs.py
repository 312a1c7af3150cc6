"""What a call of a recurrent cell returns, and what is done with it (NNX829).

A cell returns a pair: what it carries, and its output. Unpacked the other way round, or not at all, it goes wrong where
the one is used for the other. What layers get is in :mod:`~nnx_lint.rules.layers.sizes`.

Invariants: only the pair that a cell of the library returned counts, as it came out of the call.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.recurrent import Pair
from nnx_lint.model.values import Array, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.graphs.leaves import OF_ONE_ARRAY
from nnx_lint.rules.program import ancestors, is_tried, resolved
from nnx_rules.rules import modules as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame

CARRYING = frozenset({"nnx.ConvLSTMCell", "nnx.LSTMCell", "nnx.OptimizedLSTMCell"})
"""Cells that carry something else than they give."""


class Swapped:
    """The names of outputs that took what a cell carries, as has been said."""

    def __init__(self) -> None:
        self.names: set[str] = set()


@judges_calls(rules.CELL_RESULTS, "()")
def cell_results(event: Called, report: Reporter) -> None:
    """``y, carry = cell(carry, x)``."""
    cell, module = event.callee, event.frame.module
    if not isinstance(cell, Obj) or getattr(cell.cls, "canonical", "") not in CARRYING:
        return
    target = swapped(event)
    if target is not None:
        output, carry = map(text_of, target.elts)
        report.memory(Swapped).names.add(output)
        fix = unsafe("Swap the names", replace(module.source, target, f"{carry}, {output}"))
        mend = f"{carry}, {output} = {event.name}(...)"
        report(module, target, fix=fix, problem=f"`{carry}`, which it gets again, is its output", mend=mend)


def swapped(event: Called) -> ast.Tuple | None:
    """The two targets of a call of a cell, if what it carries is the second of them."""
    outer = next(ancestors(event.frame.module, event.node), None)
    target = outer.targets[0] if isinstance(outer, ast.Assign) else None
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not event.nodes:
        return None
    first, second = map(text_of, target.elts)
    return target if second == text_of(event.nodes[0]) != first else None


@judges(rules.CELL_RESULTS, Used, of=(Pair,))
def pair_computed_with(event: Used, report: Reporter) -> None:
    """The pair is added to an array, or indexed along several axes."""
    node, frame = event.node, event.frame
    if event.what == "an index":
        several = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
        if several and isinstance(node, ast.Subscript):
            _report_pair(frame, node, node.value, report)
        return
    outer = next(ancestors(frame.module, node), None)
    if event.what != "an operator" or not isinstance(outer, ast.BinOp) or not isinstance(node, ast.expr):
        return
    if isinstance(resolved(frame.env, outer.right if outer.left is node else outer.left), Array):
        _report_pair(frame, outer, node, report)


@judges_calls(rules.CELL_RESULTS, *(f"jax.numpy.{name}" for name in OF_ONE_ARRAY))
def pair_as_array(event: Called, report: Reporter) -> None:
    """A function of one array gets the pair."""
    if event.args and event.nodes and isinstance(event.args[0], Pair):
        _report_pair(event.frame, event.node, event.nodes[0], report)


def _report_pair(frame: Frame, node: ast.AST, pair: ast.expr, report: Reporter) -> None:
    if not is_tried(frame.module, node):
        name = text_of(pair)
        report(frame.module, node, problem=f"`{name}` is both of them, and no array", mend=f"carry, output = {name}")
