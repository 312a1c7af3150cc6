"""Edits of expressions that several fixes share: put a call around one, take a call away from around one.

Invariants: text outside of the edit stays as it is, comments included; an edit is only made where it certainly keeps
the expression's meaning.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Span

if TYPE_CHECKING:
    from nnx_lint.source import SourceFile


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


def is_parenthesized(source: SourceFile, node: ast.Tuple) -> bool:
    """Whether a tuple is written with parentheses of its own."""
    try:
        call = ast.parse(f"f({source.segment(node)}\n)", mode="eval").body
    except SyntaxError:
        return False
    return isinstance(call, ast.Call) and len(call.args) == 1 and isinstance(call.args[0], ast.Tuple)
