"""A JSON array in the shape of ruff's, so that tools which read that one can read this one.

Every object has ruff's keys (``code, name, message, filename, location, end_location, fix, url``) and three of ours:
``severity``, ``help`` and ``related``. Rows and columns count from one, columns in characters; file names are absolute.
``url`` is null: the page of a rule is what ``nnx-lint rule CODE`` prints.
"""

from __future__ import annotations

import json
import os.path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Diagnostic, Fix, Span
    from nnx_lint.output import Report
    from nnx_lint.source import SourceFile


def render(report: Report) -> Iterator[str]:
    """Yield the array, one finding after the other."""
    separator = "[\n"
    for diagnostic in report.diagnostics:
        text = json.dumps(_finding(diagnostic, report), indent=2, ensure_ascii=False)
        yield separator + "  " + text.replace("\n", "\n  ")
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _finding(diagnostic: Diagnostic, report: Report) -> dict[str, object]:
    source = report.sources[diagnostic.path]
    return {
        "code": diagnostic.rule.code,
        "name": diagnostic.rule.name,
        "severity": diagnostic.rule.severity.value,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "filename": _filename(diagnostic.path),
        **_range(source, diagnostic.span),
        "fix": _fix(source, diagnostic.fix) if diagnostic.fix else None,
        "related": [
            {
                "filename": _filename(related.path),
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
        return {"location": None, "end_location": None}
    return {"location": _location(source, span.start), "end_location": _location(source, span.end)}


def _location(source: SourceFile, offset: int) -> dict[str, int]:
    row, column = source.location(offset)
    return {"row": row, "column": column}


def _filename(path: str) -> str:
    return path if path.startswith("<") else os.path.abspath(path)
