"""The Reviewdog Diagnostic Format, as one JSON object.

Its columns count the bytes of UTF-8, from one. A suggestion replaces one range; a fix of several edits is several of
them. A fix with a hole to fill by hand is none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability
from nnx_lint.output.places import absolute, place
from nnx_rules.registry import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Diagnostic, Span
    from nnx_lint.output import Report
    from nnx_lint.source import SourceFile

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def render(report: Report) -> Iterator[str]:
    """Yield the whole object."""
    diagnostics = [_diagnostic(diagnostic, report) for diagnostic in report.diagnostics]
    content = {"source": {"name": "nnx-lint"}, "diagnostics": diagnostics}
    yield json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _diagnostic(diagnostic: Diagnostic, report: Report) -> dict[str, object]:
    source, rule = report.sources[diagnostic.path], diagnostic.rule
    message = f"[{rule.name}] {diagnostic.message}"
    notebook = source.position(diagnostic.span.start).cell is not None
    if notebook:
        message = f"{place(source, diagnostic.span.start)}: {message}"
    found: dict[str, object] = {
        "message": message + (f"\n{diagnostic.help}" if diagnostic.help else ""),
        "location": _location(diagnostic.path, source, diagnostic.span),
        "severity": _SEVERITIES[diagnostic.severity],
        "code": {"value": rule.code},
    }
    fix = diagnostic.fix
    if fix is not None and fix.applicability is not Applicability.DISPLAY and not notebook:
        found["suggestions"] = [{"range": _range(source, edit.span), "text": edit.text} for edit in fix.edits]
    if diagnostic.related:
        found["related_locations"] = [
            {
                "message": related.message,
                "location": _location(related.path, report.source(related.path), related.span),
            }
            for related in diagnostic.related
        ]
    return found


def _location(path: str, source: SourceFile | None, span: Span) -> dict[str, object]:
    location: dict[str, object] = {"path": absolute(path)}
    if source is not None and source.position(span.start).cell is None:
        location["range"] = _range(source, span)
    return location


def _range(source: SourceFile, span: Span) -> dict[str, object]:
    return {"start": _position(source, span.start), "end": _position(source, span.end)}


def _position(source: SourceFile, offset: int) -> dict[str, int]:
    row, _ = source.location(offset)
    before = source.text[source.line_start(row) : offset]
    return {"line": row, "column": len(before.encode("utf-8", "surrogatepass")) + 1}
