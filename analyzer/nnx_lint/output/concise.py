"""One line for each finding, in the form that editors and terminals turn into links."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.output import Report


def render(report: Report) -> Iterator[str]:
    """Yield ``path:row:column: CODE [name] message`` lines."""
    for diagnostic in report.diagnostics:
        row, column = report.sources[diagnostic.path].location(diagnostic.span.start)
        place = f"{report.paint('strong', diagnostic.path)}:{row}:{column}:"
        code = report.paint(diagnostic.rule.severity.value, diagnostic.rule.code)
        yield f"{place} {code} [{diagnostic.rule.name}] {diagnostic.message}\n"
