"""Metrics that are computed while they are empty (NNX625): ``reset()`` stands before ``compute()``, and not after it.

Invariants: both stand in one block, and no statement between them mentions the metric, nor calls anything of the
project, which may have a name of its own for it.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import present
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.edits import unsafe
from nnx_lint.rules.program import block_of, calls_in, canonical_of, in_test, statement_of
from nnx_lint.syntax.binding import names_in
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import dumped
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


@judges_calls(rules.EMPTY_METRIC, ".compute")
def computed_empty(event: Called, report: Reporter) -> None:
    callee, frame, module = event.callee, event.frame, event.frame.module
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    func = event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(receiver, Obj) or not isinstance(func, ast.Attribute) or in_test(frame):
        return
    statement = statement_of(module, event.node)
    if not receiver.cls.derives_from("nnx.metrics.Metric") or statement is None or isinstance(statement, ast.Assert):
        return
    name, block = text_of(func.value), block_of(module, statement)
    for earlier in reversed(block[: block.index(statement)]):
        if _resets(earlier, func.value):
            where = (related(module, earlier, f"`{name}` is reset here"),)
            fix = partial(_exchanged, module, earlier, statement)
            report(module, event.node, fix=fix, related=where, name=name)
            return
        if _may_fill(frame, earlier, root_of(func.value)):
            return


def _resets(statement: ast.stmt, metric: ast.expr) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    return isinstance(method, ast.Attribute) and method.attr == "reset" and dumped(method.value) == dumped(metric)


def _may_fill(frame: Frame, statement: ast.stmt, root: str | None) -> bool:
    """Whether a statement may put something into a metric: it mentions the metric, or calls what no library has."""
    if root in names_in(statement):
        return True
    return any(canonical_of(frame.env, call.func) is None for call in calls_in(statement))


def _exchanged(module: Module, first: ast.stmt, second: ast.stmt) -> Fix | None:
    """Let both statements change places."""
    source = module.source
    spans, texts = (source.span(first), source.span(second)), (source.segment(first), source.segment(second))
    if isinstance(second, (ast.Return, ast.With, ast.For, ast.If, ast.While, ast.Try)) or any(
        "\n" in text for text in texts
    ):
        return None
    return unsafe("Compute first", (Edit(spans[0], texts[1]), Edit(spans[1], texts[0])))
