"""One line for each finding, in the form that editors and terminals turn into links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.output.places import link, shown
from nnx_rules.registry import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.output import Report


def render(report: Report) -> Iterator[str]:
    """Yield ``path:row:column: CODE [name] message`` lines."""
    for diagnostic in report.diagnostics:
        place = link(report, diagnostic.path, report.sources[diagnostic.path], diagnostic.span.start)
        yield f"{place}: {report.paint(diagnostic.severity.value, diagnostic.rule.code)} {text(diagnostic)}\n"


def text(diagnostic: Diagnostic) -> str:
    """What a finding says after its code; what is not an error says so."""
    level = "" if diagnostic.severity is Severity.ERROR else f"{diagnostic.severity.value}: "
    return f"[{diagnostic.rule.name}] {level}{shown(diagnostic.message)}"
