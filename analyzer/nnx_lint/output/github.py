"""Workflow commands that GitHub Actions turns into annotations of a pull request.

A file is named as seen from the root of the checkout. GitHub marks columns within one line only. What kept files from
being checked is an annotation without a place.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nnx_lint.output.places import place, relative
from nnx_rules.registry import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.output import Report

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report) -> Iterator[str]:
    """Yield one command a line."""
    root = os.environ.get("GITHUB_WORKSPACE") or os.curdir
    for diagnostic in report.diagnostics:
        yield _command(diagnostic, report, relative(diagnostic.path, root))
    for problem in report.problems:
        yield f"::error title=nnx-lint::{_escaped(problem)}\n"


def _command(diagnostic: Diagnostic, report: Report, file: str) -> str:
    source, rule = report.sources[diagnostic.path], diagnostic.rule
    start, end = source.position(diagnostic.span.start), source.position(diagnostic.span.end)
    properties: dict[str, object] = {"title": f"nnx-lint ({rule.code})", "file": file}
    if start.cell is None:
        properties |= {"line": start.row, "endLine": end.row}
        if start.row == end.row:
            properties |= {"col": start.column, "endColumn": end.column}
    message = f"{file}:{place(source, diagnostic.span.start)}: {rule.code} [{rule.name}] {diagnostic.message}"
    for line in diagnostic.help.splitlines():
        message += f"\n  help: {line}"
    listed = ",".join(f"{key}={_escaped(str(value), ':,')}" for key, value in properties.items())
    return f"::{_COMMANDS[diagnostic.severity]} {listed}::{_escaped(message)}\n"


def _escaped(text: str, more: str = "") -> str:
    """Percent signs for the characters that end a command, and ``more`` that end a property."""
    return "".join(f"%{ord(each):02X}" if each in "%\r\n" + more else each for each in text)
