"""What is taken out of a model that sowed it: a tuple of all values under a name, used as if it were one (NNX648)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Used
from nnx_lint.model.states import SownVal
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.program import is_tried
from nnx_rules.rules import intermediates as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module

_OF_ARRAYS = """
    T all any argmax argmin astype at clip cumsum dot dtype flatten item max mean min ndim prod ravel reshape shape size
    sort squeeze std sum swapaxes tolist transpose var
"""

OF_ARRAYS = frozenset(_OF_ARRAYS.split())
"""Attributes of arrays that tuples lack."""

OF_TUPLES = frozenset(f"jax.numpy.{name}" for name in ("array", "asarray", "concatenate", "stack", "hstack", "vstack"))
"""Functions that take a tuple of arrays."""


@judges(rules.SOWN_TUPLE, Used)
def sown_value_used(event: Used, report: Reporter) -> None:
    node, value = event.node, event.value
    if not isinstance(value, SownVal) or is_tried(event.frame.module, node):
        return
    if event.what == "an operator":
        how = "computed with"
    elif event.what in OF_ARRAYS and isinstance(node, ast.Attribute):
        node, how = node.value, f"asked for `{event.what}`"
    elif event.what == "an index" and isinstance(node, ast.Subscript):
        node, how = node.value, "asked for its value by `[...]`, which a tuple does not take,"
    else:
        return
    _report(event.frame.module, node, value, how, report, event.node)


@judges_calls(rules.SOWN_TUPLE, "jax.numpy.*", "jax.nn.*")
def sown_value_given(event: Called, report: Reporter) -> None:
    module = event.frame.module
    for value, node in zip(event.args[:1], event.nodes[:1], strict=False):
        if isinstance(value, SownVal) and event.subject not in OF_TUPLES and not is_tried(module, node):
            _report(module, node, value, f"given to `{event.name}`", report)


def _report(
    module: Module, node: ast.AST, value: SownVal, how: str, report: Reporter, use: ast.AST | None = None
) -> None:
    plain = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    mend = f"{module.source.segment(node)}[0]"
    whole = use if isinstance(use, ast.Subscript) else node
    fix = unsafe("Take the first of the values", replace(module.source, whole, mend)) if plain else None
    report(module, node, fix=fix, name=value.name, how=how, mend=mend)
