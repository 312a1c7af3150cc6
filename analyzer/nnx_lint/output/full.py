"""The format for people: every finding with its source, the places that explain it, the mend, and the fix as a diff."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Span
from nnx_lint.fixes import edited
from nnx_lint.output.frames import Frame, cells, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Diagnostic, Fix
    from nnx_lint.output import Report
    from nnx_lint.source import SourceFile

_HOW_TO_APPLY = {
    Applicability.SAFE: "apply with --fix",
    Applicability.UNSAFE: "apply with --fix --unsafe-fixes",
    Applicability.DISPLAY: "to be completed by hand",
}


def render(report: Report) -> Iterator[str]:
    """Yield the findings, each followed by an empty line."""
    for diagnostic in report.diagnostics:
        yield "".join(_finding(diagnostic, report)) + "\n"


def _finding(diagnostic: Diagnostic, report: Report) -> Iterator[str]:
    rule, source = diagnostic.rule, report.sources[diagnostic.path]
    style = rule.severity.value
    code = report.paint(style, f"{rule.code} [{rule.name}]")
    yield f"{code} {report.paint('strong', diagnostic.message)}\n"

    related = [(place, report.source(place.path)) for place in diagnostic.related]
    places = [(source, diagnostic.span), *((file, place.span) for place, file in related if file is not None)]
    gutter = len(str(max(file.location(span.end)[0] for file, span in places) + 2))
    yield _arrow(report, gutter, diagnostic.path, source, diagnostic.span)
    yield from Frame(report, source, diagnostic.span, "^", style, gutter)
    for place, file in related:
        yield f"{report.paint('note', 'note:')} {place.message}\n"
        yield _arrow(report, gutter, place.path, file, place.span)
        if file is not None:
            yield from Frame(report, file, place.span, "-", "note", gutter, context=0)
    for line in diagnostic.help.splitlines():
        yield f"{report.paint('note', 'help:')} {line}\n"
    if diagnostic.fix is not None:
        yield from _fix(report, gutter, source, diagnostic.fix)


def _arrow(report: Report, gutter: int, path: str, source: SourceFile | None, span: Span) -> str:
    arrow = report.paint("dim", " " * gutter + "-->")
    if source is None:
        return f"{arrow} {path}\n"
    line, column = source.location(span.start)
    return f"{arrow} {path}:{line}:{column}\n"


def _fix(report: Report, gutter: int, source: SourceFile, fix: Fix) -> Iterator[str]:
    yield f"{report.paint('note', 'fix:')} {fix.title} ({_HOW_TO_APPLY[fix.applicability]})\n"
    yield row(report, gutter, "", "|", "")
    shift = 0  # how many lines the changes so far have added
    for first, old, new in _changes(source, fix):
        for number, line in enumerate(old, first):
            yield row(report, gutter, number, "|", report.paint("removed", f"- {cells(line)[0]}"))
        for number, line in enumerate(new, first + shift):
            yield row(report, gutter, number, "|", report.paint("added", f"+ {cells(line)[0]}"))
        shift += len(new) - len(old)
    yield row(report, gutter, "", "|", "")


def _changes(source: SourceFile, fix: Fix) -> Iterator[tuple[int, list[str], list[str]]]:
    """The line number, the old lines and the new lines of every place that a fix changes."""
    for edits in _by_lines(source, fix):
        first, last = source.location(edits[0].span.start)[0], source.location(edits[-1].span.end)[0]
        start = source.line_start(first)
        before = source.with_text("".join(source.lines()[first - 1 : last]))
        moved = [Edit(Span(edit.span.start - start, edit.span.end - start), edit.text) for edit in edits]
        old, new = before.lines(), before.with_text(edited(before, moved)).lines()
        while old and new and old[0] == new[0]:
            first += 1
            del old[0], new[0]
        while old and new and old[-1] == new[-1]:
            del old[-1], new[-1]
        yield first, [line.rstrip("\r\n") for line in old], [line.rstrip("\r\n") for line in new]


def _by_lines(source: SourceFile, fix: Fix) -> list[list[Edit]]:
    """The edits in groups that share no line."""
    groups: list[list[Edit]] = []
    reached = 0
    for edit in sorted(fix.edits, key=lambda edit: edit.span):
        line = source.location(edit.span.start)[0]
        if line > reached:
            groups.append([])
        groups[-1].append(edit)
        reached = source.location(edit.span.end)[0]
    return groups
