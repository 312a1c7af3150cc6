"""The names whose kind a function asks for, to do one thing with the values of one kind and another with the others.

``if isinstance(edge, Node):`` tells of the name in its arms, which the interpreter narrows. Functions ask in many more
ways: ``kind = type(edge)`` with ``if kind is Node:`` further down, ``handlers[type(edge)]``, ``is_node =
isinstance(edge, Node)``, ``if not hasattr(edge, "index"): return``. What a caller hands over is then fit for some
lines of the function only, and which ones these are is not known.

Invariant: a type that is only shown, as in ``f"{type(model).__name__}"`` or ``type(model)(...)``, sorts nothing.
"""

from __future__ import annotations

import ast

from nnx_lint.syntax.binding import ASKING
from nnx_lint.syntax.walk import remembered, walk

KEPT = ASKING - {"getattr"}
"""What tells the kind of a value where its result gets a name; an attribute that is asked for is one to work with."""

TESTED = ASKING - {"isinstance"}
"""What tells it in a condition, beside what the interpreter narrows."""

OF_CLASSES = frozenset({"get", "issubclass"})
"""What is asked with a class: what a table has for it, whether it is below another one."""


@remembered
def sorted_in(func: ast.AST) -> frozenset[str]:
    """The names of a function whose kind decides what it does."""
    found = set[str]()
    for node in walk(func):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            found.update(_asked(_bare(node.value), KEPT))
            continue
        for part in _deciding(node):
            for item in walk(part):
                found.update(_asked(item, TESTED))
    return frozenset(found)


def _deciding(node: ast.AST) -> list[ast.expr]:
    """The parts of a node that decide what is done."""
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return [node.test]
    if isinstance(node, ast.Compare):
        return [node]
    if isinstance(node, ast.Match):
        return [node.subject]
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in OF_CLASSES:
        return node.args[:1]
    return []


def _bare(node: ast.expr) -> ast.expr:
    """An expression without what only turns it round, or names it: ``not ...``, ``... .__name__``."""
    while isinstance(node, ast.UnaryOp) or (isinstance(node, ast.Attribute) and node.attr != "__class__"):
        node = node.operand if isinstance(node, ast.UnaryOp) else node.value
    return node


def _asked(node: ast.AST, asking: frozenset[str]) -> list[str]:
    """The name whose kind an expression tells: ``type(x)``, ``x.__class__``, ``hasattr(x, "y")``."""
    asked: ast.expr | None = None
    if isinstance(node, ast.Attribute) and node.attr == "__class__":
        asked = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in asking and node.args:
        asked = node.args[0]
    return [asked.id] if isinstance(asked, ast.Name) else []
