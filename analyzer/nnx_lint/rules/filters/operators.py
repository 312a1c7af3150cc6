"""Filters that are joined by operators of Python (NNX321).

``or`` and ``and`` give one of their operands, and ``not`` a bool. All filters are true, so which one it is stands in
the text: ``nnx.Param or nnx.BatchStat`` is ``nnx.Param``, whatever the model.

Invariant: the operands that decide are certainly filters; one that may be ``None`` is there to have a default.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.library import FilterVal
from nnx_lint.model.values import ClassVal
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import constant_of, value_of
from nnx_lint.rules.edits import unsafe
from nnx_lint.rules.filters.reading import FILTERING, gives_filters, single_filters
from nnx_lint.rules.program import binds, canonical_of, resolved, scopes_around
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.dotted import root_of
from nnx_rules import api
from nnx_rules.rules import filters as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module

COMBINED = {"or": "nnx.Any", "and": "nnx.All", "not": "nnx.Not"}
"""The filter that says what an operator was meant to say."""


@judges_calls(rules.PYTHON_OPERATOR_ON_FILTERS, *FILTERING, when=gives_filters)
def python_operator_on_filters(event: Called, report: Reporter) -> None:
    for single in single_filters(event):
        for part in single.given.parts():
            node = value_of(part.module, part.node) or constant_of(part.module, part.node) or part.node
            operator, operands = _operator(node)
            if not operator or not all(_is_filter(part.module, each) for each in operands[:-1] or operands):
                continue
            segments = [part.module.source.segment(each) for each in operands]
            result = {"or": f"`{segments[0]}`", "and": f"`{segments[-1]}`", "not": "`False`, which matches nothing"}[
                operator
            ]
            name = spelled(COMBINED[operator], part.module, event.frame.env)
            mend = f"{name or COMBINED[operator]}({', '.join(segments)})"
            edit = Edit(part.module.source.span(node), mend)
            fix = unsafe(f"Write `{mend}`", (edit,)) if name is not None else None
            text = " ".join(part.module.source.segment(node).split())
            report(part.module, node, fix=fix, filter=text, result=result, operator=operator, mend=f"`{mend}`")


def _operator(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """The operator of Python that an expression consists of, and its operands."""
    if isinstance(node, ast.BoolOp):
        return "or" if isinstance(node.op, ast.Or) else "and", node.values
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return "not", [node.operand]
    return "", []


def _is_filter(module: Module, node: ast.expr) -> bool:
    """Whether an expression certainly is a filter that is true."""
    if isinstance(node, ast.Call):
        return canonical_of(module.env, node.func) in api.FILTER_CLASSES
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(_is_filter(module, each) for each in node.elts)
    if isinstance(node, (ast.BoolOp, ast.Lambda)):
        return isinstance(node, ast.Lambda) or all(_is_filter(module, each) for each in node.values)
    if any(binds(scope, root_of(node) or "") for scope in scopes_around(module, node)[:-1]):
        return False  # it may be None there
    value = resolved(module.env, node)
    return isinstance(value, (FilterVal, FuncVal)) or (isinstance(value, ClassVal) and value.cls.is_variable)
