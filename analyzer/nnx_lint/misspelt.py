"""Comments that are meant to silence our rules, and are written so that they silence nothing.

``# nnx: ignroe[NNX101]``, ``# nnx-lint: ignore[...]``, ``# nnx: disable=...`` and a bracket that is never closed look
like an answer to a finding, and are none. Whether such a comment is meant as one is told by three things at once: how
it begins, a word for silencing, and right behind it a rule that exists.

Invariants: prose that speaks of a rule is not meant; neither is a comment that does silence something.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Span
from nnx_lint.selection import EVERYTHING, PREFIX, matches
from nnx_lint.suppressions import OURS
from nnx_rules.rules import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

_NNX = re.compile(
    r"#\s*nnx(?:[-_ ]?lint)?\s*:?\s*(?P<word>[a-z][a-z_-]*)\s*(?:[\[(=:]\s*)?(?P<rules>[^\])#]*)[\])]?", re.IGNORECASE
)
_NOQA = re.compile(r"#\s*noqa\s*:\s*\[?(?P<rules>[^\])#]*)\]?", re.IGNORECASE)
_RULE = re.compile(r"[\w-]+")

WORDS = ("ignore", "ignore-file")

OTHERS = frozenset({"allow", "disable", "mute", "noqa", "silence", "skip", "suppress"})
"""What other tools call it."""

CLOSE = 0.75
"""How much a word is like the right one at least, as :mod:`difflib` counts."""


class Misspelt(NamedTuple):
    """A part of a comment, and the comment that it is meant to be."""

    span: Span
    meant: str


def misspelt(text: str, start: int) -> Iterator[Misspelt]:
    """The parts of a comment that are meant to silence rules. ``start`` is where the comment stands in its file; the
    parts that do silence some are blanks in ``text``.
    """
    for found in _NNX.finditer(text):
        word = _meant(found["word"])
        names, end = _rules(found["rules"], found.start("rules"))
        if word is not None and names:
            closed = end if text[end : found.end()].strip(" \t])") else found.end()
            yield Misspelt(Span(start + found.start(), start + closed), f"# nnx: {word}[{', '.join(names)}]")
    for found in _NOQA.finditer(text):
        names, end = _rules(found["rules"], found.start("rules"))
        if names and "-" in names[0]:  # another tool may have a code that is as ours, but no such name
            codes = [next(rule.code for rule in REGISTRY if matches(name, rule)) for name in names]
            closed = end if text[end : found.end()].strip(" \t]") else found.end()
            yield Misspelt(Span(start + found.start(), start + closed), f"# noqa: {', '.join(codes)}")


def _meant(word: str) -> str | None:
    """The word that another one is meant to be."""
    folded = word.lower().replace("_", "-")
    if folded in OTHERS or folded in WORDS:
        return "ignore" if folded in OTHERS else folded
    return next(iter(difflib.get_close_matches(folded, WORDS, n=1, cutoff=CLOSE)), None)


def _rules(text: str, start: int) -> tuple[list[str], int]:
    """The rules that a text begins with, and where the last one ends."""
    names: list[str] = []
    end = start
    position = 0
    while (word := _RULE.match(text, position)) is not None:
        name = word[0].upper() if OURS.match(word[0]) else word[0]
        if name in (PREFIX, EVERYTHING) or not any(matches(name, rule) for rule in REGISTRY):
            break
        names.append(name)
        end = start + word.end()
        position = word.end()
        while position < len(text) and text[position] in ", \t":
            position += 1
    return names, end
