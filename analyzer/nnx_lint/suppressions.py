"""Comments that silence findings: ``# nnx: ignore[...]``, ``# nnx: ignore-file[...]`` and ``# noqa: NNX101``.

Where a comment reaches:

* at the end of a line: the findings whose span touches that line. A line that cannot carry a comment, inside of a
  triple-quoted string or before a continuation backslash, is covered by the next line that can;
* on a line of its own (``nnx: ignore`` only): the statement below it; of a compound statement its header, of a
  decorated one the decorators as well; within brackets, the line below it;
* ``ignore-file``: the whole file, wherever the comment stands.

What stands in the brackets are the selectors of the command line. Without brackets every rule is meant, but an opened
bracket that is never closed means nothing: a typing mistake must not silence a whole file.

Only real comments count, never text in a string that looks like one, so the comments come from ``tokenize``. Where that
gives up, the rest of the file is read line by line.
"""

from __future__ import annotations

import re
import tokenize
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nnx_lint.selection import EVERYTHING, matches

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.source import SourceFile

_NNX = re.compile(r"#\s*nnx:\s*(?P<word>ignore-file|ignore)(?![\w-])(?:\s*\[(?P<selectors>[^\[\]]*)\]|(?!\s*\[))")
_NOQA = re.compile(
    r"#\s*noqa(?![\w-])(?:(?P<colon>\s*:)\s*(?P<selectors>[a-z]+[0-9]+(?:[,\s]+[a-z]+[0-9]+\b)*)?)?", re.IGNORECASE
)
_NOT_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)

Selectors = tuple[str, ...]


@dataclass(slots=True)
class Suppressions:
    """What the comments of one file silence: selectors for each line, and for the whole file."""

    file: list[str] = field(default_factory=list[str])
    lines: dict[int, list[str]] = field(default_factory=dict[int, list[str]])

    def add(self, lines: range, selectors: Selectors) -> None:
        """Silence ``selectors`` on these lines."""
        for line in lines:
            self.lines.setdefault(line, []).extend(selectors)

    def cover(self, diagnostic: Diagnostic, source: SourceFile) -> bool:
        """Whether a finding in ``source``, the file these comments are from, is silenced."""
        if not (self.file or self.lines):
            return False
        span = diagnostic.span
        first, _ = source.location(span.start)
        last, _ = source.location(max(span.start, span.end - 1))
        selectors = [*self.file]
        for line in range(first, last + 1):
            selectors += self.lines.get(line, ())
        return any(matches(selector, diagnostic.rule) for selector in selectors)


def read_suppressions(source: SourceFile) -> Suppressions:
    """Collect the suppression comments of a file."""
    found = Suppressions()
    if "nnx:" not in source.text and "noqa" not in source.text.casefold():
        return found
    layout = _Layout.read(source)
    for line, text, own_line in layout.comments:
        noqa = _NOQA.search(text)
        if noqa and not own_line and (noqa["selectors"] or not noqa["colon"]):
            found.add(layout.beside(line), _split(noqa["selectors"]))
        for match in _NNX.finditer(text):
            selectors = _split(match["selectors"])
            if match["word"] == "ignore-file":
                found.file += selectors
            else:
                found.add(layout.below(line) if own_line else layout.beside(line), selectors)
    return found


def _split(selectors: str | None) -> Selectors:
    if selectors is None:
        return (EVERYTHING,)
    words = selectors.replace(",", " ").split()
    return tuple(word.upper() if word.upper().startswith("NNX") else word for word in words)


@dataclass(slots=True)
class _Layout:
    """Where the comments of a file stand in its statements; lines count from one.

    Attributes:
        comments: line, text, and whether there is nothing else on the line.
        statements: first line, last line, and whether it is a decorator, of every logical line; of a compound statement
            only the header is one.
        code_lines: the lines on which a token of code starts.
        joined: the lines that the line before cannot be told apart from, since no comment fits at its end.
    """

    comments: list[tuple[int, str, bool]] = field(default_factory=list[tuple[int, str, bool]])
    statements: list[tuple[int, int, bool]] = field(default_factory=list[tuple[int, int, bool]])
    code_lines: list[int] = field(default_factory=list[int])
    joined: set[int] = field(default_factory=set[int])

    @classmethod
    def read(cls, source: SourceFile) -> _Layout:
        layout = cls()
        # One kind of newline: the tokenizer of some Python versions does not know a lone `\r`.
        lines = [source.line_text(line) + "\n" for line in range(1, source.line_count + 1)]
        reached = 0
        first: tokenize.TokenInfo | None = None
        try:
            for token in tokenize.generate_tokens(iter(lines).__next__):
                line, reached = token.start[0], token.end[0]
                if token.type == tokenize.COMMENT:
                    layout.comments.append((line, token.string, not lines[line - 1][: token.start[1]].strip()))
                elif token.type == tokenize.NEWLINE and first is not None:
                    layout.statements.append((first.start[0], line, first.string == "@"))
                    first = None
                if token.type not in _NOT_CODE:
                    first = first or token
                    layout.code_lines.append(line)
                    layout.joined.update(range(line + 1, reached + 1))
        except (tokenize.TokenError, SyntaxError):
            rest = range(reached + 1, len(lines) + 1)
            layout.comments += ((line, lines[line - 1], False) for line in rest)
        commented = {line for line, _, _ in layout.comments}
        layout.joined.update(
            line + 1 for line, text in enumerate(lines, 1) if text.endswith("\\\n") and line not in commented
        )
        return layout

    def beside(self, line: int) -> range:
        """The lines that a comment at the end of this line covers."""
        start = line
        while start in self.joined:
            start -= 1
        return range(start, line + 1)

    def below(self, line: int) -> range:
        """The lines that a comment on a line of its own covers."""
        index = bisect_right(self.code_lines, line)
        if index == len(self.code_lines):
            return range(0)
        target = self.code_lines[index]
        index = bisect_right(self.statements, (target, len(self.code_lines) + target, True)) - 1
        for start, end, decorator in self.statements[max(index, 0) :]:
            if start < line:  # the comment stands between the brackets of this statement
                break
            if not decorator:
                return range(target, end + 1)
        return range(target, target + 1)
