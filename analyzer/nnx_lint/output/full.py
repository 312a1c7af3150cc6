"""The format for people: every finding with its source, the places that explain it, the mend, and the fix as a diff."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Applicability, Edit, Span
from nnx_lint.fixes import edited
from nnx_lint.output.frames import Frame, cells, row
from nnx_lint.output.places import place, shown
from nnx_lint.source import SourceFile
from nnx_rules.registry import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.diagnostics import Diagnostic, Fix
    from nnx_lint.output import Report
    from nnx_lint.source import Position

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
    style = diagnostic.severity.value
    code = report.paint(style, f"{rule.code} [{rule.name}]")
    level = "" if diagnostic.severity is Severity.ERROR else report.paint(style, f"{style}: ")
    yield f"{code} {level}{report.paint('strong', shown(diagnostic.message))}\n"

    related = [(other, report.source(other.path)) for other in diagnostic.related]
    places = [(source, diagnostic.span), *((file, other.span) for other, file in related if file is not None)]
    gutter = len(str(max(file.position(span.end).row for file, span in places) + 2))
    yield _arrow(report, gutter, diagnostic.path, source, diagnostic.span)
    yield from Frame(report, source, diagnostic.span, "^", style, gutter)
    for other, file in related:
        yield f"{report.paint('note', 'note:')} {shown(other.message)}\n"
        yield _arrow(report, gutter, other.path, file, other.span)
        if file is not None:
            yield from Frame(report, file, other.span, "-", "note", gutter, context=0)
    for line in diagnostic.help.splitlines():
        yield f"{report.paint('note', 'help:')} {shown(line)}\n"
    if diagnostic.fix is not None:
        yield from _fix(report, gutter, source, diagnostic.fix)


def _arrow(report: Report, gutter: int, path: str, source: SourceFile | None, span: Span) -> str:
    arrow = report.paint("dim", " " * gutter + "-->")
    return f"{arrow} {shown(path) if source is None else f'{shown(path)}:{place(source, span.start)}'}\n"


def _fix(report: Report, gutter: int, source: SourceFile, fix: Fix) -> Iterator[str]:
    yield f"{report.paint('note', 'fix:')} {fix.title} ({_HOW_TO_APPLY[fix.applicability]})\n"
    yield row(report, gutter, "", "|", "")
    cell, shift = source.position(0).cell, 0  # how many lines the changes so far have added to the cell
    for change in _changes(source, fix):
        if change.start.cell != cell:
            cell, shift = change.start.cell, 0
            yield row(report, gutter, "", "|", report.paint("dim", f"cell {cell}"))
        for number, line in enumerate(change.old, change.start.row):
            yield row(report, gutter, number, "|", report.paint("removed", f"- {cells(line)[0]}"))
        for number, line in enumerate(change.new, change.start.row + shift):
            yield row(report, gutter, number, "|", report.paint("added", f"+ {cells(line)[0]}"))
        shift += len(change.new) - len(change.old)
    yield row(report, gutter, "", "|", "")


class _Change(NamedTuple):
    """Lines that a fix puts in the place of others, which began at ``start``."""

    start: Position
    old: list[str]
    new: list[str]


def _changes(source: SourceFile, fix: Fix) -> Iterator[_Change]:
    """Every place that a fix changes."""
    for edits in _by_lines(source, fix):
        first, last = source.location(edits[0].span.start)[0], source.location(edits[-1].span.end)[0]
        start = source.line_start(first)
        end = source.line_start(last + 1) if last < source.line_count else len(source.text)
        before = SourceFile(source.path, source.text[start:end], source.encoding)
        moved = [Edit(Span(edit.span.start - start, edit.span.end - start), edit.text) for edit in edits]
        old, new = before.lines(), before.with_text(edited(before, moved)).lines()
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        del old[:same], new[:same]
        while old and new and old[-1] == new[-1]:
            del old[-1], new[-1]
        position = source.position(start)
        yield _Change(
            position._replace(row=position.row + same),
            [line.rstrip("\r\n") for line in old],
            [line.rstrip("\r\n") for line in new],
        )


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
