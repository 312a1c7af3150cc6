"""Writing suppression comments: ``--add-ignore`` silences what is found today, so that only new mistakes are reported.

A finding is silenced at the end of the line that it begins on, by name: ``# nnx: ignore[data-in-static-attribute]``. A
line that cannot carry a comment, inside of a string or before a continuation backslash, is silenced on the next line
that can. A comment of ours that is there already gets the new name; any other one stays in front, since tools such as
type checkers want theirs first.

Invariants: the result parses to the same tree; no text is changed but comments; after it every given finding is silent;
doing it again changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.comments import Layout
from nnx_lint.diagnostics import Edit, Span
from nnx_lint.fixes import edited
from nnx_lint.suppressions import Suppressions
from nnx_rules.registry import Family

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.source import SourceFile
    from nnx_lint.suppressions import Suppression


def add_ignores(source: SourceFile, findings: Iterable[Diagnostic]) -> SourceFile:
    """The file with comments that silence these findings in it.

    A file with a syntax error comes back as it is: nobody knows where its strings end. Findings about comments are left
    out, since they are mended and not silenced, and so is what stands beside no code.
    """
    suppressions = Suppressions(source)
    names: dict[int, list[str]] = {}
    layout = Layout.read(source)
    if source.error is not None:
        return source
    for finding in findings:
        if finding.rule.family is Family.COMMENTS or suppressions.cover(finding, source):
            continue
        row = _row(source, layout, finding.span)
        if row is not None:
            wanted = names.setdefault(row, [])
            if finding.rule.name not in wanted:
                wanted.append(finding.rule.name)
    if not names:
        return source
    ours = {suppression.comment.line: suppression for suppression in suppressions.all if _takes_names(suppression)}
    return source.with_text(edited(source, [_edit(source, row, ours.get(row), words) for row, words in names.items()]))


def _row(source: SourceFile, layout: Layout, span: Span) -> int | None:
    """The first line of a place at whose end a comment stands beside code."""
    alone = {comment.line for comment in layout.comments if comment.alone}
    first, last = source.location(span.start)[0], source.location(max(span.start, span.end - 1))[0]
    rows = (layout.room(row) for row in range(first, last + 1))
    return next((row for row in rows if row not in alone and source.line_text(row).strip()), None)


def _takes_names(suppression: Suppression) -> bool:
    """Whether a comment is the kind that is written here, at the end of a line, with names."""
    beside = suppression.lines is not None and not suppression.comment.alone
    return beside and not suppression.noqa and bool(suppression.selectors) and not suppression.bare


def _edit(source: SourceFile, row: int, ours: Suppression | None, names: list[str]) -> Edit:
    if ours is not None:
        end = ours.selectors[-1].span.end
        return Edit(Span(end, end), "".join(f", {name}" for name in names))
    line = source.line_text(row)
    start = source.line_start(row)
    return Edit(Span(start + len(line.rstrip()), start + len(line)), f"  # nnx: ignore[{', '.join(names)}]")
