"""Source frames: a few lines of a file with the text of a span marked, as compilers draw them.

Rows and columns here are those of a terminal: a tab is drawn as four spaces, an East Asian wide character takes two
cells, a combining one none. A frame in a notebook stays within its cell, and counts rows there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.output.places import glyph
from nnx_rules.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Span
    from nnx_lint.output import Report
    from nnx_lint.source import SourceFile

CONTEXT = 2
"""Lines shown before and after the marked ones."""

LONGEST = 7
"""A span of more lines than this is shortened to its beginning and its end."""

BLANK = frozenset({"", "#"})
"""Lines that are not worth showing at the outer end; the line between two cells of a notebook is of the second kind."""

_TAB = "    "


def cells(text: str) -> tuple[str, list[int]]:
    r"""How a line is shown, and the cell that each of its characters, and its end, starts at.

    >>> cells("a\tb")
    ('a    b', [0, 1, 5, 6])
    """
    if text.isascii() and text.isprintable():
        return text, list(range(len(text) + 1))
    shown: list[str] = []
    starts = [0]
    for character in text:
        drawn, width = (_TAB, len(_TAB)) if character == "\t" else glyph(character)
        shown.append(drawn)
        starts.append(starts[-1] + width)
    return "".join(shown), starts


class Frame(Record):
    """Draws one span of a file: ``mark`` underlines it, in ``style``; ``gutter`` is the width of the line numbers."""

    report: Report
    source: SourceFile
    span: Span
    mark: str
    style: str
    gutter: int
    context: int = CONTEXT

    def __iter__(self) -> Iterator[str]:
        source, last_offset = self.source, max(self.span.start, self.span.end - 1)
        (first, _), (last, _) = source.location(self.span.start), source.location(last_offset)
        yield self._row("", "")
        for line in self._context(range(max(first - self.context, 1), first)):
            yield self._numbered(line, ("  " if last > first else "") + cells(source.line_text(line))[0])
        yield from self._single(first) if first == last else self._several(first, last)
        after = self._context(range(min(last + self.context, source.line_count), last, -1))
        for line in reversed(after):
            yield self._numbered(line, ("  " if last > first else "") + cells(source.line_text(line))[0])
        yield self._row("", "")

    def _context(self, lines: range) -> list[int]:
        """Those of these lines in the same cell, without the blank ones at the outer end, which comes first."""
        cell = self.source.position(self.span.start).cell
        numbers = [line for line in lines if self.source.position(self.source.line_start(line)).cell == cell]
        while numbers and self.source.line_text(numbers[0]).strip() in BLANK:
            numbers.pop(0)
        return numbers

    def _single(self, line: int) -> Iterator[str]:
        text, starts = cells(self.source.line_text(line))
        begin, end = self._columns(line, starts)
        yield self._numbered(line, text)
        yield self._row("", " " * begin + self._paint(self.mark * max(end - begin, 1)))

    def _several(self, first: int, last: int) -> Iterator[str]:
        head, starts = cells(self.source.line_text(first))
        begin, _ = self._columns(first, starts)
        if head[:begin].strip():
            yield self._numbered(first, f"  {head}")
            yield self._row("", " " + self._paint("_" * (begin + 1) + self.mark))
        else:
            yield self._numbered(first, f"{self._paint('/')} {head}")
        bar = self._paint("|")
        shortened = last - first + 1 > LONGEST
        for line in range(first + 1, last + 1):
            if shortened and first + 2 < line < last - 1:
                if line == first + 3:
                    yield self._row("...", bar)
                continue
            yield self._numbered(line, f"{bar} {cells(self.source.line_text(line))[0]}".rstrip())
        _, starts = cells(self.source.line_text(last))
        _, end = self._columns(last, starts)
        yield self._row("", self._paint("|" + "_" * max(end, 1) + self.mark))

    def _columns(self, line: int, starts: list[int]) -> tuple[int, int]:
        """The cells where the span begins and ends on a line."""
        offset, length = self.source.line_start(line), len(starts) - 1
        begin, end = self.span.start - offset, self.span.end - offset
        return starts[min(max(begin, 0), length)], starts[min(max(end, 0), length)]

    def _paint(self, text: str) -> str:
        return self.report.paint(self.style, text)

    def _numbered(self, line: int, text: str) -> str:
        return self._row(self.source.position(self.source.line_start(line)).row, text)

    def _row(self, number: int | str, text: str) -> str:
        return row(self.report, self.gutter, number, "|", text)


def row(report: Report, gutter: int, number: int | str, sign: str, text: str) -> str:
    """One row of a frame or diff: line number, sign, text."""
    margin = "...".ljust(gutter + 2) if number == "..." else f"{number:>{gutter}} {sign}"
    return f"{report.paint('dim', margin)} {text}".rstrip() + "\n"
