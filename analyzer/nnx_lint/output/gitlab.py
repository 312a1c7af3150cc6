"""GitLab's code quality report: a JSON array in the manner of Code Climate.

A file is named as seen from the root of the project. The fingerprint stays the same while lines move, so that a merge
request shows what it brings and not what it pushes around.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from nnx_lint.anchors import fingerprints
from nnx_lint.output.places import place, relative
from nnx_rules.registry import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.output import Report
    from nnx_lint.source import SourceFile

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(report: Report) -> Iterator[str]:
    """Yield the whole report."""
    root = os.environ.get("CI_PROJECT_DIR") or os.curdir
    names = {path: relative(path, root) for path in report.by_file()}
    prints = fingerprints(report.diagnostics, report.sources, names)
    issues = [
        _issue(diagnostic, report.sources[diagnostic.path], names[diagnostic.path], fingerprint)
        for diagnostic, fingerprint in zip(report.diagnostics, prints, strict=True)
    ]
    yield json.dumps(issues, indent=2, ensure_ascii=False) + "\n"


def _issue(diagnostic: Diagnostic, source: SourceFile, file: str, fingerprint: str) -> dict[str, object]:
    start, end = source.position(diagnostic.span.start), source.position(diagnostic.span.end)
    rule = diagnostic.rule
    description = f"{rule.code} [{rule.name}] {diagnostic.message}"
    if start.cell is None:
        begin = {"line": start.row, "column": start.column}
        positions = {"begin": begin, "end": {"line": end.row, "column": end.column}}
    else:
        positions = {"begin": {"line": 1, "column": 1}, "end": {"line": 1, "column": 1}}
        description = f"{place(source, diagnostic.span.start)}: {description}"
    return {
        "description": description,
        "check_name": rule.name,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[diagnostic.severity],
        "location": {"path": file, "positions": positions},
    }
