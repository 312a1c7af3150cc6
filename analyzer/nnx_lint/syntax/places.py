"""Which statement a place of a text is in, and what that one stands in, however deep that is.

A chain of a thousand `elif` is a thousand statements in each other. Who goes down from the top to find a place pays for
all of them with every question, so the statements of a text are numbered once, in the order of the text: the last one
that begins at a place or before it is the one that the place is in.

Invariants: clauses (``except``, ``case``) count as statements, so no expression follows on a statement inside of its
own; the table holds no tree, and lives as long as the tree that it is of.
"""

from __future__ import annotations

import ast
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.syntax.walk import STATEMENTS, remembered

if TYPE_CHECKING:
    from collections.abc import Iterator

CLAUSES = (ast.ExceptHandler, ast.match_case)


class _Places(NamedTuple):
    """Statements and clauses in the order of the text, where each begins, and the number of the one around it."""

    starts: array[int]
    nodes: list[ast.AST]
    around: array[int]


def begin(node: ast.AST) -> tuple[int, int]:
    """Where a node begins: its line and column; what has no place comes before everything."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def end(node: ast.AST) -> tuple[int, int]:
    """Where a node ends."""
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


def standing_in(tree: ast.Module, line: int, column: int) -> Iterator[ast.AST]:
    """The statements and clauses that a place is in, innermost first."""
    places = _places(tree)
    number = bisect_right(places.starts, _point(line, column)) - 1
    while number >= 0:
        yield places.nodes[number]
        number = places.around[number]


@remembered
def _places(tree: ast.Module) -> _Places:
    places = _Places(array("Q"), [], array("l"))
    todo: list[tuple[ast.AST, int]] = [(statement, -1) for statement in reversed(tree.body)]
    while todo:
        node, outer = todo.pop()
        number = len(places.nodes)
        places.starts.append(_start(node))
        places.nodes.append(node)
        places.around.append(outer)
        for name in reversed(STATEMENTS):
            todo += ((each, number) for each in reversed(getattr(node, name, ())))
    return places


def _start(node: ast.AST) -> int:
    """Where a statement begins, with its decorators, or a clause."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = decorators[0] if decorators else node.pattern if isinstance(node, ast.match_case) else node
    return _point(getattr(first, "lineno"), getattr(first, "col_offset"))  # noqa: B009


def _point(line: int, column: int) -> int:
    return line << 32 | column
