"""JUnit's XML, as Jenkins' schema has it: a suite for each file, a failed test for each finding.

A clean run is one test that passes, since a report without any test counts as broken. What kept files from being
checked are tests that could not be run.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from nnx_lint.output.places import place, relative, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.output import Report

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\t": "&#9;"}


def render(report: Report) -> Iterator[str]:
    """Yield the document, one file after the other."""
    count, errors = len(report.diagnostics), len(report.problems)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="nnx-lint" tests="{max(count + errors, 1)}" failures="{count}" errors="{errors}">\n'
    if errors or not count:
        yield f'  <testsuite name="nnx-lint" tests="{max(errors, 1)}" failures="0" errors="{errors}" skipped="0"'
        yield ' package="nnx_lint">\n'
        for problem in report.problems:
            yield f'    <testcase name="complete run"><error message="{_escaped(problem)}"/></testcase>\n'
        if not errors:
            yield '    <testcase name="No errors found"/>\n'
        yield "  </testsuite>\n"
    for path, diagnostics in report.by_file().items():
        yield from _suite(path, diagnostics, report)
    yield "</testsuites>\n"


def _suite(path: str, diagnostics: Sequence[Diagnostic], report: Report) -> Iterator[str]:
    name, count = relative(path, os.curdir), len(diagnostics)
    yield f'  <testsuite name="{_escaped(name)}" tests="{count}" failures="{count}" errors="0" skipped="0"'
    yield ' package="nnx_lint">\n'
    for diagnostic in diagnostics:
        where = place(report.sources[path], diagnostic.span.start)
        rule, message = diagnostic.rule, _escaped(diagnostic.message)
        title = f"nnx_lint.{rule.code}.{rule.name}"
        yield f'    <testcase name="{title}" classname="{_escaped(os.path.splitext(name)[0])}">\n'
        yield f'      <failure type="{diagnostic.severity.value}" message="{message}">'
        yield f"{_escaped(name)}:{where}: {rule.code} [{rule.name}] {message}"
        if diagnostic.help:
            yield f"\nhelp: {_escaped(diagnostic.help)}"
        yield "</failure>\n    </testcase>\n"
    yield "  </testsuite>\n"


def _escaped(text: str) -> str:
    """Text for XML 1.0, which has no way to write most control characters."""
    return "".join(_ENTITIES.get(each) or shown(each) for each in text)
