"""A JSON array in the shape of ruff's, so that tools which read that one can read this one.

Every object has ruff's keys and two of ours, ``help`` and ``related``; every place says its ``cell``, the number of a
notebook's cell within which rows count. File names are absolute. ``noqa_row`` is the row at whose end a comment would
silence the finding. ``url`` is null: the page of a rule is what ``nnx-lint rule CODE`` prints.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nnx_lint.comments import Layout
from nnx_lint.output.places import absolute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Diagnostic, Fix, Span
    from nnx_lint.output import Report
    from nnx_lint.source import SourceFile


def render(report: Report) -> Iterator[str]:
    """Yield the array, one finding after the other."""
    separator = "[\n"
    for finding in objects(report):
        text = json.dumps(finding, indent=2, ensure_ascii=False)
        yield separator + "  " + text.replace("\n", "\n  ")
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def objects(report: Report) -> Iterator[dict[str, object]]:
    """Yield every finding as the object that stands for it."""
    for path, diagnostics in report.by_file().items():
        source = report.sources[path]
        layout = Layout.read(source)
        for diagnostic in diagnostics:
            yield _finding(diagnostic, source, layout, report)


def _finding(diagnostic: Diagnostic, source: SourceFile, layout: Layout, report: Report) -> dict[str, object]:
    row, _ = source.location(diagnostic.span.start)
    return {
        "code": diagnostic.rule.code,
        "name": diagnostic.rule.name,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "filename": absolute(diagnostic.path),
        **_range(source, diagnostic.span),
        "noqa_row": source.position(source.line_start(layout.room(row))).row,
        "fix": _fix(source, diagnostic.fix) if diagnostic.fix else None,
        "related": [
            {
                "filename": absolute(related.path),
                **_range(report.source(related.path), related.span),
                "message": related.message,
            }
            for related in diagnostic.related
        ],
        "url": None,
    }


def _fix(source: SourceFile, fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.title,
        "edits": [{"content": edit.text, **_range(source, edit.span)} for edit in fix.edits],
    }


def _range(source: SourceFile | None, span: Span) -> dict[str, object]:
    if source is None:
        return {"cell": None, "location": None, "end_location": None}
    return {
        "cell": source.position(span.start).cell,
        "location": _location(source, span.start),
        "end_location": _location(source, span.end),
    }


def _location(source: SourceFile, offset: int) -> dict[str, int]:
    position = source.position(offset)
    return {"row": position.row, "column": position.column}
