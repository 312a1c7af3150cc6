"""SARIF 2.1.0, the standard form of static analysis results, which GitHub's code scanning reads.

Files are named from the folder of the run, as ``%SRCROOT%``, so that the log means the same on another machine. The run
knows the rules that found something, with their pages. Fingerprints stay the same while lines move. A place in a
notebook is its cell, as a logical location: its rows are not those of the file, and a fix there cannot be said.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from nnx_lint.anchors import fingerprints
from nnx_lint.diagnostics import Applicability
from nnx_lint.output.places import absolute, place, relative
from nnx_rules import __version__
from nnx_rules.registry import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.diagnostics import Diagnostic, Fix, Span
    from nnx_lint.output import Report
    from nnx_lint.source import SourceFile
    from nnx_rules.registry import Rule

Object = dict[str, object]

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_ROOT = "%SRCROOT%"


def render(report: Report) -> Iterator[str]:
    """Yield the whole log."""
    rules = list({diagnostic.rule.code: diagnostic.rule for diagnostic in report.diagnostics}.values())
    run: Object = {
        "tool": {
            "driver": {
                "name": "nnx-lint",
                "version": __version__,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "invocations": [_invocation(report.problems)],
        "originalUriBaseIds": {_ROOT: {"uri": _uri(os.getcwd()) + "/"}},
        "columnKind": "unicodeCodePoints",
        "results": list(_results(report, rules)),
    }
    log: Object = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    yield json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: Rule) -> Object:
    from nnx_lint.pages import page

    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": rule.summary, "markdown": page(rule)},
        "defaultConfiguration": {"enabled": rule.default, "level": _LEVELS[rule.severity]},
        "properties": {"problem.severity": rule.severity.value.replace("info", "recommendation")},
    }


def _invocation(problems: Sequence[str]) -> Object:
    notes = [{"level": "error", "message": {"text": problem}} for problem in problems]
    return {"executionSuccessful": not problems, "toolExecutionNotifications": notes}


def _results(report: Report, rules: Sequence[Rule]) -> Iterator[Object]:
    names = {path: relative(path, os.curdir) for path in report.by_file()}
    prints = fingerprints(report.diagnostics, report.sources, names)
    index = {rule.code: number for number, rule in enumerate(rules)}
    for diagnostic, fingerprint in zip(report.diagnostics, prints, strict=True):
        source = report.sources[diagnostic.path]
        result: Object = {
            "ruleId": diagnostic.rule.code,
            "ruleIndex": index[diagnostic.rule.code],
            "level": _LEVELS[diagnostic.severity],
            "message": {"text": diagnostic.message + (f"\n{diagnostic.help}" if diagnostic.help else "")},
            "locations": [_location(diagnostic.path, source, diagnostic.span)],
            "partialFingerprints": {"nnxLint/v1": fingerprint},
        }
        if diagnostic.related:
            result["relatedLocations"] = [
                _location(related.path, report.source(related.path), related.span)
                | {"id": number, "message": {"text": related.message}}
                for number, related in enumerate(diagnostic.related)
            ]
        fix = diagnostic.fix
        if fix is not None and fix.applicability is not Applicability.DISPLAY and not _in_notebook(source, fix):
            result["fixes"] = [_fix(diagnostic, source, fix)]
        yield result


def _location(path: str, source: SourceFile | None, span: Span) -> Object:
    physical: Object = {"artifactLocation": _artifact(path)}
    location: Object = {"physicalLocation": physical}
    if source is None:
        return location
    position = source.position(span.start)
    if position.cell is None:
        physical["region"] = _region(source, span)
    else:
        name = place(source, span.start)
        location["logicalLocations"] = [{"name": f"cell {position.cell}", "fullyQualifiedName": name, "kind": "cell"}]
    return location


def _artifact(path: str) -> Object:
    name = relative(path, os.curdir)
    if path.startswith("<"):
        return {"uri": _quoted(path)}
    if os.path.isabs(name) or name.startswith("/"):
        return {"uri": _uri(absolute(path))}
    return {"uri": _quoted(name), "uriBaseId": _ROOT}


def _uri(path: str) -> str:
    path = path.replace(os.sep, "/")
    return "file://" + ("" if path.startswith("/") else "/") + _quoted(path)


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path.encode("utf-8", "surrogateescape"), safe="/:")


def _region(source: SourceFile, span: Span) -> Object:
    start, end = source.position(span.start), source.position(span.end)
    return {"startLine": start.row, "startColumn": start.column, "endLine": end.row, "endColumn": end.column}


def _in_notebook(source: SourceFile, fix: Fix) -> bool:
    return any(source.position(edit.span.start).cell is not None for edit in fix.edits)


def _fix(diagnostic: Diagnostic, source: SourceFile, fix: Fix) -> Object:
    replacements: list[Object] = []
    for edit in fix.edits:
        replacement: Object = {"deletedRegion": _region(source, edit.span)}
        if edit.text:
            replacement["insertedContent"] = {"text": edit.text}
        replacements.append(replacement)
    return {
        "description": {"text": fix.title},
        "artifactChanges": [{"artifactLocation": _artifact(diagnostic.path), "replacements": replacements}],
    }
