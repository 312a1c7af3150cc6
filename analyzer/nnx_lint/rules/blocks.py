"""Edits of whole statements: a block around some of them, new ones at the ends of a function, names for what is new.

Invariants: lines are moved only where nothing but indentation changes, so that no string with line breaks lies among
them; a statement is put only where it begins a line of its own; a new name is one that the file does not use at all.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Span
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.modules import Module
    from nnx_lint.source import SourceFile


def in_block(source: SourceFile, statements: Sequence[ast.stmt], head: str) -> tuple[Edit, ...] | None:
    """Put statements that follow each other into a block: ``head`` is its first line, without the colon."""
    first = source.span(statements[0]).start
    begin, end = source.location(first)[0], source.location(source.span(statements[-1]).end)[0]
    margin = source.text[source.line_start(begin) : first]
    if margin.strip() or not _alone(source, statements[-1], end) or any(map(_spans_lines, statements)):
        return None
    if _is_decorated(statements[0]):
        return None
    step = _step(source.tree)
    # What is added follows the indentation that is there: tabs after spaces may mean another block than the reverse.
    lines = [Edit(Span(first, first), f"{head}:\n{margin}{step}")]
    for line in range(begin + 1, end + 1):
        start = source.line_start(line)
        if source.text[start : _end_of(source, line)].strip():
            place = start + len(margin) if source.text.startswith(margin, start) else start
            lines.append(Edit(Span(place, place), step))
    return tuple(lines)


def append_to_block(source: SourceFile, block: Sequence[ast.stmt], text: str) -> tuple[Edit, ...] | None:
    """Put a statement of one line after the last one of a block, which has to have lines of its own."""
    last = block[-1]
    start, end = source.span(last).start, source.span(last).end
    line = source.location(end)[0]
    margin = source.text[source.line_start(source.location(start)[0]) : start]
    if isinstance(last, (ast.Return, ast.Raise)) or margin.strip() or not _alone(source, last, line):
        return None
    place = _end_of(source, line)
    return (Edit(Span(place, place), f"\n{margin}{text}"),)


def prepend_to_block(source: SourceFile, block: Sequence[ast.stmt], text: str) -> tuple[Edit, ...] | None:
    """Put statements before the first one of a block, after its docstring; their lines are indented as the block is."""
    first = block[1] if len(block) > 1 and _is_docstring(block[0]) else block[0]
    if _is_docstring(first) or _is_decorated(first):
        return None
    start = source.span(first).start
    place = source.line_start(source.location(start)[0])
    margin = source.text[place:start]
    if margin.strip() or not margin:
        return None
    step = _step(source.tree)
    lines = (margin + line.replace("\t", step) if line else "" for line in text.split("\n"))
    return (Edit(Span(place, place), "".join(f"{line}\n" for line in lines)),)


def fresh(module: Module, name: str) -> str:
    """A name that begins like another one, and that nothing in a file is called."""
    used = module.all_of(_words)
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in used)


@remembered
def _words(statement: ast.AST) -> frozenset[str]:
    """The names, attributes and keywords in a statement."""
    found: set[str] = set()
    for node in walk(statement):
        for field in ("id", "attr", "arg", "name"):
            word = getattr(node, field, None)
            if isinstance(word, str):
                found.add(word)
    return frozenset(found)


def _is_decorated(statement: ast.stmt) -> bool:
    """Whether a statement begins with a decorator, before its own place."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(statement, kinds) and bool(statement.decorator_list)


def _is_docstring(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _alone(source: SourceFile, last: ast.stmt, line: int) -> bool:
    """Whether nothing but a comment follows a statement in its last line."""
    rest = source.text[source.span(last).end : _end_of(source, line)].strip()
    return not rest or rest.startswith("#")


def _end_of(source: SourceFile, line: int) -> int:
    """Where a line ends, before its line break."""
    end = source.line_start(line + 1) if line < source.line_count else len(source.text)
    return source.line_start(line) + len(source.text[source.line_start(line) : end].rstrip("\r\n"))


def _spans_lines(statement: ast.stmt) -> bool:
    """Whether a statement has a string with line breaks, which indentation would change."""
    strings = (node for node in walk(statement) if isinstance(node, (ast.Constant, ast.JoinedStr)))
    return any(node.end_lineno != node.lineno for node in strings)


@remembered
def _step(tree: ast.Module) -> str:
    """How far the file indents a block."""
    for node in walk(tree):
        below: list[ast.stmt] = getattr(node, "body", []) if isinstance(node, ast.stmt) else []
        if isinstance(node, ast.stmt) and below and below[0].lineno > node.lineno:
            width = below[0].col_offset - node.col_offset
            return " " * width if width > 0 else "    "
    return "    "
