"""``nnx-lint graph``: draws a Module as the analyzer sees it."""

from __future__ import annotations


def graph(words: list[str]) -> int:
    """Draw; the flags are those of the drawing."""
    from nnx_lint.drawing import run

    return run(words)
