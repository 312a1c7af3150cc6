"""Findings and reports that tests of the output formats print."""

import io
from collections.abc import Iterable, Mapping

from nnx_lint.diagnostics import Diagnostic, Fix, Related, Span
from nnx_lint.output import Report, render
from nnx_lint.source import Position, SourceFile
from nnx_rules.registry import Severity
from nnx_rules.rules import REGISTRY

RULE = REGISTRY.get("NNX101")


class Cells(SourceFile):
    """A notebook as the formats see it: every three lines of the text are a cell."""

    __slots__ = ()

    def position(self, offset: int) -> Position:
        row, column = self.location(offset)
        return Position((row - 1) // 3 + 1, (row - 1) % 3 + 1, column)


class Stream(io.StringIO):
    """A stream that is a terminal, or says so."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def finding(
    source: SourceFile,
    part: str,
    *,
    fix: Fix | None = None,
    related: tuple[Related, ...] = (),
    help: str = "",
    message: str = "it is wrong",
    level: Severity | None = None,
) -> Diagnostic:
    """A finding at the first place of some text in a file."""
    assert RULE is not None
    start = source.text.index(part)
    return Diagnostic(RULE, source.path, Span(start, start + len(part)), message, help, fix, related, level)


def printed(
    format: str,
    diagnostics: Iterable[Diagnostic],
    *sources: SourceFile,
    colour: bool = False,
    problems: Iterable[str] = (),
) -> str:
    """These findings in a format."""
    files: Mapping[str, SourceFile] = {source.path: source for source in sources}
    return "".join(render(Report(list(diagnostics), files, colour, tuple(problems)), format))
