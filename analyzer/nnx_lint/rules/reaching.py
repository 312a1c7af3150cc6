"""The code that may run when some code does, by what names it.

A function without decorators runs only where something names it: what calls it, hands it on, or looks it up by a text.
So one that nothing names in the code that runs, and in what that names, does not run.

Invariants: too much rather than too little. Functions of other modules than those that are given are not seen; a
decorator or a base class may have a function called by whoever it likes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnx_lint.model.modules import Module

DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)


def running(modules: Iterable[Module], roots: Iterable[tuple[Module, ast.AST]]) -> Iterator[tuple[Module, ast.AST]]:
    """The nodes that may run when ``roots`` do, each with its module; nodes may come twice."""
    todo = list(roots)
    waiting: dict[str, list[tuple[Module, ast.AST]]] = {}
    for module in dict.fromkeys(modules):
        for name, func in _functions(module.tree):
            waiting.setdefault(name, []).append((module, func))
    todo += waiting.pop(ANYBODY, ())
    for module, root in todo:
        for node in walk(root):
            yield module, node
            todo += waiting.pop(_named(node), ())


ANYBODY = ""
"""The name of what may run without being named."""


def _named(node: ast.AST) -> str:
    """What a node names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ANYBODY


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The functions of a module, by what names them."""
    methods: dict[ast.AST, str] = {}
    for node in walk(tree):
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, DEFS):
                    special = item.name.startswith("__")
                    methods[item] = ANYBODY if node.bases else node.name if special else item.name
        elif isinstance(node, ast.Lambda):
            yield ANYBODY, node
        elif isinstance(node, DEFS):
            yield ANYBODY if node.decorator_list else methods.get(node, node.name), node
