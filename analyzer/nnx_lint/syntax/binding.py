"""The names that stand in a text, those that statements bind, and what is asked of the bodies of loops, each time that
one is run.

Invariants: what is nested in functions and classes binds no names here, and leaves only those.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.syntax.walk import STATEMENTS, children, remembered, walk

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeGuard

Loop = ast.For | ast.AsyncFor | ast.While

ASKING = frozenset({"callable", "getattr", "hasattr", "isinstance", "issubclass", "type"})
"""Functions by which a program asks what a value is."""


@remembered
def assigned_in_loop(loop: Loop) -> frozenset[str]:
    """The names that the body of a loop binds."""
    return frozenset(assigned_names(loop.body))


@remembered
def returns_in_loop(loop: Loop) -> bool:
    """Whether the body of a loop may return from the function that it is in."""
    todo: list[ast.AST] = list(loop.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Return):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for name in STATEMENTS:
                todo.extend(getattr(node, name, ()))
    return False


def assigned_names(body: Iterable[ast.stmt]) -> set[str]:
    """Names that statements bind, nested functions left out."""
    found: set[str] = set()
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            continue
        elif isinstance(node, ast.Lambda):
            continue
        todo.extend(children(node))
    return found


def is_name(node: ast.AST | None, name: str | None) -> TypeGuard[ast.Name]:
    """Whether a node is this name."""
    return isinstance(node, ast.Name) and node.id == name


def is_none(node: ast.AST | None) -> bool:
    """Whether ``None`` is written."""
    return isinstance(node, ast.Constant) and node.value is None


def imported_name(alias: ast.alias) -> str:
    """The name that an import binds: ``scipy``, of ``import scipy.sparse``."""
    return alias.asname or alias.name.partition(".")[0]


def occurrences(node: ast.AST, name: str) -> list[ast.Name]:
    """Where a name stands in a node, read or bound."""
    return [part for part in walk(node) if isinstance(part, ast.Name) and part.id == name]


def names_in(node: ast.AST) -> frozenset[str]:
    """The names that stand anywhere in a node."""
    return frozenset(part.id for part in walk(node) if isinstance(part, ast.Name))
