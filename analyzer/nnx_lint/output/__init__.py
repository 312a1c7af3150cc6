"""Output formats: each turns findings into text, and knows nothing of how they were found.

A format is one module with one function ``render(report) -> Iterator[str]``; this table names them. Those that ruff has
too have its names and its shapes, since what reads them exists: editors, GitHub, GitLab, Jenkins, reviewdog. Where a
standard says more than ruff does, the standard wins.

Rows and columns count from one, columns in characters unless a standard wants another unit. In a notebook they count
within the cell, and formats that know nothing of cells name the file only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from nnx_rules.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.source import SourceFile

FORMATS = {
    "full": "nnx_lint.output.full",
    "concise": "nnx_lint.output.concise",
    "grouped": "nnx_lint.output.grouped",
    "json": "nnx_lint.output.json",
    "json-lines": "nnx_lint.output.json_lines",
    "github": "nnx_lint.output.github",
    "gitlab": "nnx_lint.output.gitlab",
    "junit": "nnx_lint.output.junit",
    "rdjson": "nnx_lint.output.rdjson",
    "sarif": "nnx_lint.output.sarif",
}
"""The module of each format; only the one that is asked for is loaded."""

FOR_PEOPLE = frozenset({"full", "concise", "grouped"})
"""The formats that a summary may follow; the others are read by programs."""

STYLES = {
    "error": "1;31",
    "warning": "1;33",
    "info": "1;36",
    "strong": "1",
    "dim": "1;34",
    "removed": "31",
    "added": "32",
    "note": "1;36",
}


class Report(Record):
    """What a format prints.

    Attributes:
        diagnostics: the findings, in the order in which they are printed.
        sources: the checked files, by path; a place in any other file is read from disk.
        colour: whether the text is for a terminal that shows colours.
        problems: what kept files from being checked, one line each, for formats that have a place for it.
    """

    diagnostics: Sequence[Diagnostic]
    sources: Mapping[str, SourceFile]
    colour: bool
    problems: Sequence[str] = ()

    def paint(self, style: str, text: str) -> str:
        """Put text into one of ``STYLES``."""
        return f"\033[{STYLES[style]}m{text}\033[0m" if self.colour and text else text

    def source(self, path: str) -> SourceFile | None:
        """The file that a place is in, or ``None`` if it cannot be read."""
        from nnx_lint.source import SourceError, SourceFile

        known = self.sources.get(path)
        if known is not None:
            return known
        try:
            return SourceFile.read(path)
        except SourceError:
            return None

    def by_file(self) -> dict[str, list[Diagnostic]]:
        """The findings of each file."""
        files: dict[str, list[Diagnostic]] = {}
        for diagnostic in self.diagnostics:
            files.setdefault(diagnostic.path, []).append(diagnostic)
        return files


def render(report: Report, format: str) -> Iterator[str]:
    """Print a report in one of ``FORMATS``, piece by piece."""
    pieces: Iterator[str] = importlib.import_module(FORMATS[format]).render(report)
    return pieces
