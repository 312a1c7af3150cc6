"""The findings under the name of their file, places in one column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.output.concise import text
from nnx_lint.output.places import place, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.output import Report


def render(report: Report) -> Iterator[str]:
    """Yield each file, followed by an empty line."""
    for path, diagnostics in report.by_file().items():
        source = report.sources[path]
        rows = [place(source, diagnostic.span.start).rpartition(":") for diagnostic in diagnostics]
        before, after = (max(len(row[part]) for row in rows) for part in (0, 2))
        yield f"{report.paint('strong', shown(path))}:\n"
        for diagnostic, (row, _, column) in zip(diagnostics, rows, strict=True):
            code = report.paint(diagnostic.severity.value, diagnostic.rule.code)
            yield f"  {row:>{before}}:{column:<{after}} {code} {text(diagnostic)}\n"
        yield "\n"
