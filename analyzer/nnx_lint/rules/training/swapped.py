"""Losses that get labels where they take logits, and the reverse (part of NNX622).

Other libraries take what is true first, optax takes it second. Where both have one shape nothing fails, and the model
is trained to be what the loss makes of the labels.

Invariants: the function that computes the loss calls its first parameter and gives what comes of that last; what it
gives first it was itself given, as it is, under a name that does not speak of a prediction.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.rules.bindings import values_in
from nnx_lint.rules.program import FUNCTIONS, binds, calls_in, enclosing, names_of_parameters
from nnx_lint.syntax.parameters import positional_names

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

PREDICTED = re.compile(r"log|pred|out|scor|hat|prob|recon", re.IGNORECASE)
"""What names say that speak of predictions."""


def is_swapped(module: Module, call: ast.AST, first: ast.expr | None, second: ast.expr | None) -> bool:
    """Whether a loss that takes what a model gives first, and what is true second, certainly gets the reverse."""
    func = enclosing(module, call, *FUNCTIONS)
    if not isinstance(func, FUNCTIONS) or first is None or second is None:
        return False
    model = next(iter(positional_names(func.args)), None)
    return model is not None and _is_made(func, second, model) and _is_given(module, func, first)


def _is_made(func: ast.AST, node: ast.expr, model: str) -> bool:
    """Whether an expression is what the parameter gives when it is called, or one of the things that it gives."""
    if isinstance(node, ast.Name):
        values = values_in(func).get(node.id, [])
        node = values[0] if len(values) == 1 else node
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == model


def _is_given(module: Module, func: ast.AST, node: ast.expr) -> bool:
    """Whether an expression is a parameter of the function, or of one around it, or a part of one."""
    whole = node
    while isinstance(whole, (ast.Subscript, ast.Attribute)):
        whole = whole.value
    if not isinstance(whole, ast.Name) or PREDICTED.search(ast.unparse(node)):
        return False
    values = values_in(func).get(whole.id, [])
    if values:
        return len(values) == 1 and not isinstance(values[0], ast.Call) and _is_given(module, func, values[0])
    scope: ast.AST | None = func
    while scope is not None and not binds(scope, whole.id):
        scope = enclosing(module, scope, *FUNCTIONS)
    if not isinstance(scope, FUNCTIONS) or whole.id not in names_of_parameters(scope):
        return False
    return not any(isinstance(item.func, ast.Name) and item.func.id == whole.id for item in calls_in(scope))
