"""Parsing a text, a broken one too.

A sound text costs one ``ast.parse``; one that does not parse goes to :mod:`~nnx_lint.syntax.recovery`, which blanks
what is broken so that the rest still answers.

Invariants: nothing is raised, and there is always a tree; every part of the text that is not in the tree is covered by
a blank and by an error, or by a note.
"""

from __future__ import annotations

import ast

from nnx_lint.syntax.trees import MAX_SIZE, Parsed, attempt


def parse(text: str) -> Parsed:
    """Parse a text."""
    outcome = attempt(text) if len(text) <= MAX_SIZE else None
    return Parsed(outcome) if isinstance(outcome, ast.Module) else _recovered(text, broken=outcome is not None)


def _recovered(text: str, *, broken: bool) -> Parsed:
    from nnx_lint.syntax.layout import split_lines
    from nnx_lint.syntax.recovery import recover

    return recover(split_lines(text), text, broken=broken)
