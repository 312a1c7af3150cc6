"""Where the comments of a file stand in its statements: which lines belong together, and which can carry a comment.

Only real comments count, never text in a string that looks like one, so they come from the tokens of the file; of a
broken file, from those of its sound part.
"""

from __future__ import annotations

import tokenize
from bisect import bisect_right
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Span
from nnx_rules.records import Entity, Record, made

if TYPE_CHECKING:
    from nnx_lint.source import SourceFile

_NOT_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


class Comment(Record):
    """A comment, from its ``#`` to the end of its line; ``alone`` if there is nothing else on the line."""

    line: int
    span: Span
    alone: bool


class Layout(Entity):
    """The comments and the logical lines of a file; lines count from one.

    Attributes:
        comments: in the order of the text.
        statements: first line, last line, and whether it is a decorator, of every logical line; of a compound statement
            only the header is one.
        code_lines: the lines on which a token of code starts.
        joined: the lines that the line before cannot be told apart from, since no comment fits at its end.
    """

    comments: list[Comment] = made(factory=list[Comment])
    statements: list[tuple[int, int, bool]] = made(factory=list[tuple[int, int, bool]])
    code_lines: list[int] = made(factory=list[int])
    joined: set[int] = made(factory=set[int])

    @classmethod
    def read(cls, source: SourceFile) -> Layout:
        """Read the layout of a file."""
        layout = cls()
        lines = source.program_lines()
        first: tokenize.TokenInfo | None = None
        for token in source.tokens():
            line, reached = token.start[0], token.end[0]
            if token.type == tokenize.COMMENT:
                layout._add(source, line, token.start[1], lines[line - 1])
            elif token.type == tokenize.NEWLINE and first is not None:
                layout.statements.append((first.start[0], line, first.string == "@"))
                first = None
            if token.type not in _NOT_CODE:
                first = first or token
                layout.code_lines.append(line)
                layout.joined.update(range(line + 1, reached + 1))
        commented = {comment.line for comment in layout.comments}
        layout.joined.update(
            line + 1 for line, text in enumerate(lines[:-1], 1) if text.endswith("\\\n") and line not in commented
        )
        return layout

    def _add(self, source: SourceFile, line: int, column: int, text: str) -> None:
        start = source.line_start(line)
        span = Span(start + column, start + len(text) - 1)
        self.comments.append(Comment(line, span, alone=not text[:column].strip()))

    def beside(self, line: int) -> range:
        """The lines that a comment at the end of this line stands beside."""
        start = line
        while start in self.joined:
            start -= 1
        return range(start, line + 1)

    def room(self, line: int) -> int:
        """The first line, from this one on, that can carry a comment at its end."""
        while line + 1 in self.joined:
            line += 1
        return line

    def below(self, line: int) -> range:
        """The lines of the statement below a comment on a line of its own; within brackets, the line below it."""
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
