"""Dotted expressions: the names that one begins and ends with, and what a call calls, however that is written."""

from __future__ import annotations

import ast


def root_of(node: ast.expr | None) -> str | None:
    """The name that a dotted expression begins with; ``None`` for every other expression."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def last_name(node: ast.expr | None) -> str:
    """The name that a dotted expression ends with, also behind something that is no name; empty for all others."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def dotted_name(node: ast.expr | None) -> str | None:
    """A name, or names with dots between them: ``self.model``; ``None`` for every other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else None


def called_by(call: ast.Call) -> ast.expr:
    """What a call calls: ``f``, of ``f(x)`` and of ``f.__call__(x)``."""
    func = call.func
    return func.value if isinstance(func, ast.Attribute) and func.attr == "__call__" else func
