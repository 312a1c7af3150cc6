"""Edits that several fixes share: put a call around an expression or take one away, give a call, a function or a class
one more argument, parameter or base, leave out a statement.

Invariants: text outside of the edit stays as it is, comments included; an edit is only made where it certainly keeps
the expression's meaning.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.source import SourceFile


def unsafe(title: str, edits: tuple[Edit, ...] | None) -> Fix | None:
    """A fix that is right in most programs only, where its edits could be made."""
    return Fix(title, edits, Applicability.UNSAFE) if edits is not None else None


def wrap(source: SourceFile, node: ast.expr, callee: str) -> tuple[Edit, ...]:
    """Put ``callee(...)`` around an expression."""
    span = source.span(node)
    bare = isinstance(node, ast.Tuple) and not is_parenthesized(source, node)
    opening, closing = (f"{callee}((", "))") if bare else (f"{callee}(", ")")
    return Edit(Span(span.start, span.start), opening), Edit(Span(span.end, span.end), closing)


def unwrap(source: SourceFile, call: ast.Call) -> tuple[Edit, ...]:
    """Replace a call by its only argument."""
    outer, inner = source.span(call), source.span(call.args[0])
    text = source.text
    # Parentheses and white space around the argument go with the call. Where there is a comment among them, or the
    # argument has line breaks that only they allow, they stay.
    comments = "#" in text[outer.start : inner.start] or "#" in text[inner.end : outer.end]
    if comments or not _stands_alone(text[inner.start : inner.end]):
        func = source.span(call.func)
        return (Edit(func, ""),)
    return Edit(Span(outer.start, inner.start), ""), Edit(Span(inner.end, outer.end), "")


def _stands_alone(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def replace(source: SourceFile, node: ast.AST, text: str) -> tuple[Edit, ...]:
    """Replace a node."""
    return (Edit(source.span(node), text),)


def exchange(source: SourceFile, one: ast.AST, other: ast.AST) -> tuple[Edit, ...]:
    """Put two nodes into each other's places."""
    return (*replace(source, one, source.segment(other)), *replace(source, other, source.segment(one)))


def insert(offset: int, text: str) -> tuple[Edit, ...]:
    """Insert text at an offset."""
    return (Edit(Span(offset, offset), text),)


def append_argument(source: SourceFile, call: ast.Call, text: str) -> tuple[Edit, ...]:
    """Give a call one more argument, after the others."""
    given = [*call.args, *(item.value for item in call.keywords)]
    close = source.span(call).end - 1
    if not given:
        return insert(close, text)
    end = max(source.span(item).end for item in given)
    while source.text[end] == ")" and end < close:
        end += 1  # parentheses around the last argument
    return insert(end, f", {text}")


def remove_argument(source: SourceFile, call: ast.Call, node: ast.expr) -> tuple[Edit, ...] | None:
    """Leave out an argument of a call, by position or keyword, with the comma that sets it apart from the others."""
    given = [*call.args, *call.keywords]
    found = next((item for item in given if node in (item, getattr(item, "value", None))), None)
    if found is None:
        return None
    places = sorted(source.span(item) for item in given)
    at, text = places.index(source.span(found)), source.text
    if at:
        start, end = text.index(",", places[at - 1].end), places[at].end
    else:
        start = places[0].start
        end = places[1].start if len(places) > 1 else places[0].end
    left = text[start:end]
    # Parentheses around an argument, and comments, are nobody's to tear apart.
    return (Edit(Span(start, end), ""),) if left.count("(") == left.count(")") and "#" not in left else None


def prepend_argument(source: SourceFile, call: ast.Call, text: str) -> tuple[Edit, ...] | None:
    """Give a call one more argument, before the others."""
    opening = _OPENING.match(source.text, source.span(call.func).end)
    if opening is None or any(isinstance(item, ast.GeneratorExp) for item in call.args):
        return None
    return insert(opening.end(), f"{text}, " if call.args or call.keywords else text)


def prepend_parameter(source: SourceFile, func: Function, name: str) -> tuple[Edit, ...] | None:
    """Give a function one more parameter, before the others."""
    given = func.args
    alone = not any((given.posonlyargs, given.args, given.vararg, given.kwonlyargs, given.kwarg))
    start = source.span(func).start
    if isinstance(func, ast.Lambda):
        return insert(start + len("lambda"), f" {name}" if alone else f" {name},")
    opening = _HEAD.match(source.text, start)
    return insert(opening.end(), name if alone else f"{name}, ") if opening is not None else None


def add_base(source: SourceFile, cls: ast.ClassDef, name: str) -> tuple[Edit, ...] | None:
    """Give a class that has no base one."""
    head = _CLASS.match(source.text, source.span(cls).start)
    if cls.bases or cls.keywords or head is None:
        return None
    return (Edit(Span(head.end("name"), head.end()), f"({name}):"),)


def insert_before(source: SourceFile, statement: ast.stmt, text: str) -> tuple[Edit, ...] | None:
    """Put a statement of one line before another one, which has to begin its line, or to follow a semicolon there."""
    start = source.span(statement).start
    line = source.location(start)[0]
    head = source.text[source.line_start(line) : start]
    if not head.strip():
        return insert(source.line_start(line), f"{head}{text}\n")
    return insert(start, f"{text}; ") if head.rstrip().endswith(";") else None


def remove_statement(source: SourceFile, block: Sequence[ast.stmt], statement: ast.stmt) -> tuple[Edit, ...] | None:
    """Leave out a statement with its lines; the only one of a block becomes ``pass``."""
    if len(block) == 1:
        return replace(source, statement, "pass")
    span = source.span(statement)
    first, last = source.location(span.start)[0], source.location(span.end)[0]
    start = source.line_start(first)
    end = source.line_start(last + 1) if last < source.line_count else len(source.text)
    if not (source.text[start : span.start].strip() or source.text[span.end : end].strip()):
        return (Edit(Span(start, end), ""),)
    place = block.index(statement)
    if place and source.text[(before := source.span(block[place - 1]).end) : span.start].strip(" \t") == ";":
        return (Edit(Span(before, span.end), ""),)
    return None  # something else stands in these lines


Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_OPENING = re.compile(r"[\s)]*\(\s*")
_HEAD = re.compile(r"(?:async\s+)?def\s+\w+\s*\(\s*")
_CLASS = re.compile(r"class\s+(?P<name>\w+)\s*(?:\(\s*\))?\s*:")


def is_parenthesized(source: SourceFile, node: ast.Tuple) -> bool:
    """Whether a tuple is written with parentheses of its own."""
    try:
        call = ast.parse(f"f({source.segment(node)}\n)", mode="eval").body
    except SyntaxError:
        return False
    return isinstance(call, ast.Call) and len(call.args) == 1 and isinstance(call.args[0], ast.Tuple)
