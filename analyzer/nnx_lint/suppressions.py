"""Comments that silence findings: ``# nnx: ignore[...]``, ``# nnx: ignore-file[...]`` and ``# noqa: NNX101``.

Where a comment reaches:

* at the end of a line: the findings whose span touches that line. A line that cannot carry a comment, inside of a
  triple-quoted string or before a continuation backslash, is covered by the next line that can;
* on a line of its own (``nnx: ignore`` only): the statement below it; of a compound statement its header, of a
  decorated one the decorators as well; within brackets, the line below it;
* ``ignore-file``: the whole file, wherever the comment stands.

What stands in the brackets are the selectors of the command line. Without brackets every rule is meant, but an opened
bracket that is never closed means nothing: a typing mistake must not silence a whole file.

The rules about comments themselves (:mod:`nnx_lint.rules.comments`) are silenced by name only, so that a comment does
not hide that it is useless.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nnx_lint.comments import Layout
from nnx_lint.diagnostics import Span
from nnx_lint.selection import EVERYTHING, matches
from nnx_rules.registry import Family

if TYPE_CHECKING:
    from nnx_lint.comments import Comment
    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.source import SourceFile
    from nnx_rules.registry import Rule

_NNX = re.compile(r"#\s*nnx:\s*(?P<word>ignore-file|ignore)(?![\w-])(?:\s*\[(?P<selectors>[^\[\]]*)\]|(?!\s*\[))")
_NOQA = re.compile(
    r"#\s*noqa(?![\w-])(?:(?P<colon>\s*:)\s*(?P<selectors>[a-z]+[0-9]+(?:[,\s]+[a-z]+[0-9]+\b)*)?)?", re.IGNORECASE
)
_WORD = re.compile(r"[^\s,]+")
OURS = re.compile(r"NNX\d", re.IGNORECASE)
"""How the codes of our rules begin, and those of no other tool."""


class Selector:
    """One word of a suppression comment; ``used`` once a finding was silenced by it."""

    __slots__ = ("span", "used", "word")

    def __init__(self, word: str, span: Span) -> None:
        self.word = word.upper() if OURS.match(word) else word
        self.span = span
        self.used = False

    def covers(self, rule: Rule) -> bool:
        """Whether it silences a rule; the rules about comments are not meant by everything."""
        return matches(self.word, rule) and not (self.word == EVERYTHING and rule.family is Family.COMMENTS)


class Suppression:
    """A comment, or the part of one, that silences rules.

    Attributes:
        comment: the whole comment.
        span: the part that is meant here, ``# nnx: ignore[NNX101]``.
        selectors: what it silences.
        bare: whether it names nothing, and so means everything.
        noqa: whether it is flake8's kind, which other tools read too.
        lines: the lines that it reaches; ``None`` is the whole file.
    """

    __slots__ = ("bare", "comment", "lines", "noqa", "selectors", "span")

    def __init__(self, comment: Comment, match: re.Match[str], lines: range | None) -> None:
        start = comment.span.start
        self.comment = comment
        self.span = Span(start + match.start(), start + match.end())
        self.noqa = match.re is _NOQA
        self.lines = lines
        words = match["selectors"]
        self.bare = words is None
        if words is None:
            self.selectors = [Selector(EVERYTHING, self.span)]
        else:
            start += match.start("selectors")
            self.selectors = [
                Selector(word.group(), Span(start + word.start(), start + word.end())) for word in _WORD.finditer(words)
            ]


class Suppressions:
    """The suppression comments of one file; ``others`` are all comments, with blanks in the place of what silences."""

    def __init__(self, source: SourceFile) -> None:
        self.all: list[Suppression] = []
        self._file: list[Suppression] = []
        self._lines: dict[int, list[Suppression]] = {}
        self.others: list[tuple[Comment, str]] = []
        text = source.text
        if "# nnx" in text or "#nnx" in text or "nnx:" in text or "noqa" in text.casefold():
            self._read(source)

    def _read(self, source: SourceFile) -> None:
        layout = Layout.read(source)
        for comment in layout.comments:
            text = left = source.segment(comment.span)
            noqa = _NOQA.search(text)
            if noqa and not comment.alone and (noqa["selectors"] or not noqa["colon"]):
                self._add(Suppression(comment, noqa, layout.beside(comment.line)))
                left = _without(left, noqa)
            for match in _NNX.finditer(text):
                if match["word"] == "ignore-file":
                    lines = None
                else:
                    lines = _below(source, layout, comment) if comment.alone else layout.beside(comment.line)
                self._add(Suppression(comment, match, lines))
                left = _without(left, match)
            self.others.append((comment, left))

    def _add(self, suppression: Suppression) -> None:
        self.all.append(suppression)
        if suppression.lines is None:
            self._file.append(suppression)
        else:
            for line in suppression.lines:
                self._lines.setdefault(line, []).append(suppression)

    def cover(self, diagnostic: Diagnostic, source: SourceFile) -> bool:
        """Whether a finding in ``source``, the file these comments are from, is silenced."""
        if not self.all:
            return False
        span = diagnostic.span
        first, _ = source.location(span.start)
        last, _ = source.location(max(span.start, span.end - 1))
        covered = False
        for suppression in (
            *self._file,
            *(each for line in range(first, last + 1) for each in self._lines.get(line, ())),
        ):
            for selector in suppression.selectors:
                if selector.covers(diagnostic.rule):
                    covered = selector.used = True  # every comment that would do is needed, as far as we can tell
        return covered


def _without(text: str, match: re.Match[str]) -> str:
    return text[: match.start()] + " " * (match.end() - match.start()) + text[match.end() :]


def _below(source: SourceFile, layout: Layout, comment: Comment) -> range:
    """The lines below that a comment speaks of; in a notebook those of its cell."""
    lines = layout.below(comment.line)
    cell = source.position(comment.span.start).cell
    return lines if lines and source.position(source.line_start(lines.start)).cell == cell else range(0)
