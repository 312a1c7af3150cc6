"""Calls that a program makes to see whether they fail, for nothing that they return.

Invariants: the innermost ``try`` with handlers around the call says afterwards that it has gone well, or nothing of it
lasts: it binds nothing but constants, returns nothing else, and calls nothing but what only speaks to the user.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.rules.program import ancestors
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

TELLING = frozenset({"print", "debug", "info", "log", "warning", "write"})
"""Functions that only say something to who runs the program."""


def is_probe(module: Module, call: ast.AST) -> bool:
    """Whether all that is asked is whether a call fails: ``try: f(x); return True``, ``try: f(x); print("fits")``."""
    inner = call
    for outer in ancestors(module, call):
        if isinstance(outer, ast.Try) and outer.handlers and isinstance(inner, ast.stmt) and inner in outer.body:
            later = outer.body[outer.body.index(inner) + 1 :]
            said = (part.value for part in later if isinstance(part, (ast.Assign, ast.Return)))
            lasting = any(_lasts(part, call) for statement in outer.body for part in walk(statement))
            return not lasting or any(isinstance(value, ast.Constant) for value in said)
        inner = outer
    return False


def _lasts(part: ast.AST, call: ast.AST) -> bool:
    """Whether a statement leaves something behind, or may do so, besides the call in question."""
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
        return part.value is not call and last_name(part.value.func) not in TELLING
    kept = part.value if isinstance(part, (ast.Assign, ast.AnnAssign, ast.Return)) else None
    return kept is not None and not isinstance(kept, ast.Constant)
