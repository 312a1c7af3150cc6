"""Which statement a place of a text is in, and what that one stands in, however deep that is.

A chain of a thousand `elif` is a thousand statements in each other. Who goes down from the top to find a place pays for
all of them with every question, so the statements in each one at the top of a text are numbered once, in the order of
the text: the last one that begins at a place or before it is the one that the place is in.

Invariants: clauses (``except``, ``case``) count as statements, so no expression follows on a statement inside of its
own; a table does not hold what it is of, and lives as long as that.
"""

from __future__ import annotations

import ast
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.syntax.walk import STATEMENTS, first_line, remembered

if TYPE_CHECKING:
    from collections.abc import Iterator

CLAUSES = (ast.ExceptHandler, ast.match_case)


class _Places(NamedTuple):
    """Statements and clauses in a statement, in the order of the text: where each begins, counted from the line of that
    statement, and the number of the one around it, -1 for the statement itself.
    """

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
    number = bisect_right(_starts(tree), _point(line, column)) - 1
    if number < 0:
        return
    top = tree.body[number]
    places = _places(top)
    number = bisect_right(places.starts, _point(line - first_line(top), column)) - 1
    while number >= 0:
        yield places.nodes[number]
        number = places.around[number]
    yield top


@remembered
def _starts(tree: ast.Module) -> array[int]:
    """Where the statements of a text begin that stand in no other one."""
    return array("Q", [_start(statement) for statement in tree.body])


@remembered
def _places(top: ast.stmt) -> _Places:
    """An edit leaves most statements as they are but for their line, and what is known of these."""
    places, base = _Places(array("Q"), [], array("l")), first_line(top)
    todo = [(each, -1) for each in _inside(top)]
    while todo:
        node, outer = todo.pop()
        number = len(places.nodes)
        places.starts.append(_start(node, base))
        places.nodes.append(node)
        places.around.append(outer)
        todo += [(each, number) for each in _inside(node)]
    return places


def _inside(node: ast.AST) -> list[ast.AST]:
    """The statements and clauses right below a node, the last one first."""
    return [each for name in _BLOCKS[type(node)] for each in reversed(getattr(node, name, ()))]


class _Blocks(dict[type[ast.AST], tuple[str, ...]]):
    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        self[kind] = fields = tuple(name for name in reversed(STATEMENTS) if name in kind._fields)
        return fields


_BLOCKS = _Blocks()
"""The fields of a type of node that hold statements, the last one first: most statements have none."""


def _start(node: ast.AST, base: int = 0) -> int:
    """Where a statement begins, with its decorators, or a clause."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = decorators[0] if decorators else node.pattern if isinstance(node, ast.match_case) else node
    return _point(getattr(first, "lineno") - base, getattr(first, "col_offset"))  # noqa: B009


def _point(line: int, column: int) -> int:
    return line << 32 | column
