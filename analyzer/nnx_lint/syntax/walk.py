"""Going over syntax trees, which rules and the interpreter do all the time.

Invariants: only nodes that stand somewhere in the text are found (no operators and no contexts); outer nodes come
before inner ones, and those of one level in the order of the text, as of ``ast.walk``. What was read off a tree lives
no longer than that tree: a server takes a new one for each keystroke, and a run over many files forgets it earlier.
"""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

N = TypeVar("N", bound=ast.AST)
R = TypeVar("R")

NOTHING = frozenset[object]()
"""The empty set; Python makes a new one each time that it takes a set together, and most nodes have nothing to say."""

PLAIN = frozenset(
    {"arg", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module", "op", "ops", "simple"}
)
"""Fields that hold no nodes with a place."""

STATEMENTS = ("body", "handlers", "orelse", "finalbody", "cases")
"""The fields of statements that hold statements, or clauses of them, in the order of the text."""


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        self[kind] = fields = tuple(name for name in kind._fields if name not in PLAIN)
        return fields


FIELDS = _Fields({ast.Constant: ()})
"""The fields of a type of node that may hold nodes."""


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node."""
    found: list[ast.AST] = []
    for name in FIELDS[type(node)]:
        value: ast.AST | list[object] | str | None = getattr(node, name, None)
        if isinstance(value, list):
            for item in value:  # a comprehension would take longer: most lists have one item, or none
                if isinstance(item, ast.AST):
                    found.append(item)
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all nodes in it."""
    found = [node]
    for each in found:  # what children() does, without the calls
        for name in FIELDS[type(each)]:
            value: ast.AST | list[object] | str | None = getattr(each, name, None)
            if isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        found.append(item)
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def first_line(node: ast.stmt) -> int:
    """The line in which a statement begins, with its decorators."""
    decorators: list[ast.expr] | None = getattr(node, "decorator_list", None)
    return min(node.lineno, decorators[0].lineno) if decorators else node.lineno


class Readings:
    """What nodes remember, for a process that wants it forgotten: it is noted from the first time on that one does.

    Which file is looked at for the last time is not known, but most readings of a file are not asked for again.
    """

    def __init__(self) -> None:
        self.noted: list[tuple[dict[str, object], str]] | None = None

    def forget(self, *, over: int) -> None:
        """Let the nodes forget if they remember more than so many things, which are read again if anybody asks."""
        if self.noted is None:
            self.noted = []
        elif len(self.noted) > over:
            for held, name in self.noted:
                del held[name]
            self.noted.clear()


READINGS = Readings()


def remembered(read: Callable[[N], R]) -> Callable[[N], R]:
    """Read a node once; the node holds what was read, beside its fields, unless :data:`READINGS` are forgotten.

    What is read must not hold the node itself: nobody would collect the two.
    """
    name = f"{read.__module__}.{read.__qualname__}"  # no field has a dot

    @functools.wraps(read)
    def reading(node: N) -> R:
        held = node.__dict__
        try:
            found: R = held[name]
        except KeyError:
            found = read(node)
            held[name] = found = cast("R", NOTHING) if found == NOTHING else found
            if READINGS.noted is not None:
                READINGS.noted.append((held, name))
        return found

    return reading


@remembered
def dumped(node: ast.AST) -> str:
    """A node as a text, the same for all that are written alike."""
    return ast.dump(node)
