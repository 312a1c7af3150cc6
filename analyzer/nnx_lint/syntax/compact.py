"""Syntax trees that take half of the room.

Python keeps what a node says in a dictionary, and most of the memory of a run over many files went there. The nodes of
our trees have slots instead: their types are below those of ``ast``, with the same names and fields. The number of a
line, too, is there once for all nodes, and so is the list of nothing. A string that stands as a statement is empty: it
does nothing, and descriptions are a third of the texts of some packages. Who wants to read one does so in the source.

Invariants: ``isinstance`` and patterns see the types of ``ast``; whoever looks a type itself up does so in a table that
is :func:`for_both`, since nodes that were made by hand have no slots.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeVar, cast

from nnx_lint.syntax.walk import FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T", bound=ast.AST)
V = TypeVar("V")


class _Compact(dict[type[ast.AST], type[ast.AST]]):
    def __missing__(self, kind: type[ast.AST]) -> type[ast.AST]:
        slots = {"__slots__": (*kind._fields, *kind._attributes), "__module__": __name__}
        self[kind] = compacted = type(kind.__name__, (kind,), slots)
        FIELDS[compacted] = FIELDS[kind]
        return compacted


COMPACT = _Compact()
"""The types with slots, by those without."""


_NOTHING: list[ast.AST] = []
"""What all lists are of which there is nothing: nobody changes a tree."""

_LINES: list[int] = []
"""The numbers of lines, as many as the longest text so far has: Python makes a large number anew each time."""


def for_both(table: Mapping[type[T], V]) -> dict[type[T], V]:
    """What a table has for types of nodes, for those with slots, too."""
    both: dict[Any, V] = dict(table)
    both.update((COMPACT[kind], value) for kind, value in table.items())
    return both


def compact(tree: ast.Module) -> ast.Module:
    """A tree whose nodes have slots, for one that must not be used any more.

    One that is too deep may keep the nodes that it had.
    """
    last = tree.body[-1].end_lineno if tree.body else None
    _LINES.extend(range(len(_LINES), (last or 0) + 1))
    try:
        return cast("ast.Module", _converted(tree))
    except RecursionError:
        return tree


def _converted(node: ast.AST) -> ast.AST:
    kind, held = type(node), node.__dict__
    for name in FIELDS[kind]:
        value: list[object] | ast.AST | str | None = held.get(name)
        if isinstance(value, list):
            for place, each in enumerate(value):  # a new list would have room for more
                if isinstance(each, ast.AST):
                    value[place] = _converted(each)
            held[name] = value or _NOTHING
        elif isinstance(value, ast.AST):
            held[name] = _converted(value)
    if "lineno" in held:
        held["lineno"], held["end_lineno"] = _LINES[held["lineno"]], _LINES[held["end_lineno"]]
        if kind is ast.Expr and isinstance(held["value"], ast.Constant) and isinstance(held["value"].value, str):
            held["value"].value = ""
    return COMPACT[kind](**held)
