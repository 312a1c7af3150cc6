"""Applying fixes: many small edits become one new text.

In one pass the fixes that do not disturb each other are applied together; what is left over waits for the next pass,
which sees the new text and its new findings. So no edit is ever moved or guessed, and the passes end when nothing is
left to fix.

Invariants: a fix is applied whole or not at all; the result does not depend on the order in which the fixes are given;
text that no edit touches is unchanged, newlines included; the new text parses, or the file stays as it was.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix
from nnx_rules.records import Entity, made

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.source import SourceFile

MAX_PASSES = 30
"""More than any honest chain of fixes needs: two rules that undo each other must not run forever."""

SAFE = frozenset({Applicability.SAFE})
SAFE_AND_UNSAFE = frozenset({Applicability.SAFE, Applicability.UNSAFE})


def edited(source: SourceFile, edits: Iterable[Edit]) -> str:
    """The text after edits that do not overlap; two insertions at one place keep their order.

    Raises:
        ValueError: edits overlap or lie outside of the text.
    """
    text = source.text
    parts: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: edit.span):
        if not position <= edit.span.start <= edit.span.end <= len(text):
            raise ValueError(f"edits overlap or lie outside of the text at offset {edit.span.start}")
        parts += (text[position : edit.span.start], _with_newlines_of(source, edit.text))
        position = edit.span.end
    return "".join((*parts, text[position:]))


def _with_newlines_of(source: SourceFile, text: str) -> str:
    if "\n" not in text:
        return text
    return text.replace("\r\n", "\n").replace("\n", source.newline)


def compatible(source: SourceFile, fixes: Iterable[Fix]) -> list[Fix]:
    """The fixes that one pass can apply: from the front of the file, each that disturbs none of those before it.

    Two fixes may share an edit that inserts whole lines, such as the import that both need: it is made once. All other
    edits at the same or at touching places disturb each other if one of them inserts, since their order would matter.
    """
    chosen: list[Fix] = []
    taken: list[Edit] = []  # sorted by span, free of overlaps
    for fix in sorted(set(fixes), key=lambda fix: (fix.edits, fix.title, fix.applicability.value)):
        new = [edit for edit in fix.edits if not (edit in taken and _inserts_lines(source, edit))]
        if not any(_disturbs(edit, taken) for edit in new):
            chosen.append(fix)
            taken = sorted((*taken, *new), key=lambda edit: edit.span)
    return chosen


def _inserts_lines(source: SourceFile, edit: Edit) -> bool:
    at_line_start = source.location(edit.span.start)[1] == 1
    return at_line_start and edit.span.start == edit.span.end and edit.text.endswith("\n")


def _disturbs(edit: Edit, taken: Sequence[Edit]) -> bool:
    index = bisect_left(taken, edit.span, key=lambda other: other.span)
    return any(_touch(edit, other) for other in taken[max(index - 1, 0) : index + 2])


def _touch(one: Edit, other: Edit) -> bool:
    first, second = sorted((one.span, other.span))
    if first.start == first.end or second.start == second.end:
        return second.start <= first.end
    return second.start < first.end


def apply(source: SourceFile, fixes: Iterable[Fix]) -> tuple[str, list[Fix]]:
    """Apply as many fixes as fit into one pass; returns the new text and those fixes.

    Raises:
        ValueError: the edits of one fix overlap or lie outside of the text.
    """
    chosen = compatible(source, fixes)
    edits = {edit: None for fix in chosen for edit in fix.edits}  # a shared edit once, others in the order of the fix
    return edited(source, edits), chosen


class Outcome(Entity):
    """What fixing did.

    Attributes:
        sources: every file, fixed or not, by path.
        remaining: the findings in the fixed files.
        fixed: the codes of the findings that were fixed, by path.
        problems: files that were left alone, and why; each is a bug.
    """

    sources: dict[str, SourceFile]
    remaining: list[Diagnostic]
    fixed: dict[str, list[str]] = made(factory=dict[str, list[str]])
    problems: list[str] = made(factory=list[str])


def fix_all(
    sources: Mapping[str, SourceFile],
    check: Callable[[Mapping[str, SourceFile]], list[Diagnostic]],
    allowed: Container[Applicability] = SAFE,
) -> Outcome:
    """Check and fix until there is nothing left to fix; nothing is written to disk."""
    found = check(sources)
    outcome = Outcome(dict(sources), found)  # checking leaves out what cannot be read
    given_up: set[str] = set()
    for _ in range(MAX_PASSES):
        by_path: dict[str, list[Diagnostic]] = {}
        for diagnostic in outcome.remaining:
            if is_fixable(diagnostic, allowed) and diagnostic.path not in given_up:
                by_path.setdefault(diagnostic.path, []).append(diagnostic)
        if not by_path:
            return outcome
        for path, diagnostics in by_path.items():
            problem = _fix_once(outcome, path, diagnostics)
            if problem:
                given_up.add(path)
                outcome.sources[path] = sources[path]
                outcome.fixed.pop(path, None)
                outcome.problems.append(f"{path}: internal error: {problem}; the file was left as it was")
        outcome.remaining = check(outcome.sources)
    if any(is_fixable(diagnostic, allowed) and diagnostic.path not in given_up for diagnostic in outcome.remaining):
        outcome.problems.append(f"internal error: fixes did not settle after {MAX_PASSES} passes")
    return outcome


def _fix_once(outcome: Outcome, path: str, diagnostics: Sequence[Diagnostic]) -> str | None:
    source = outcome.sources[path]
    try:
        text, applied = apply(source, (diagnostic.fix for diagnostic in diagnostics if diagnostic.fix))
        after = source.with_text(text)
    except ValueError as error:
        return str(error)
    if text == source.text:
        return "a fix changes nothing"
    if after.error is not None:
        codes = ", ".join(sorted({diagnostic.rule.code for diagnostic in diagnostics if diagnostic.fix in applied}))
        return f"the fixes for {codes} do not parse ({after.error.message})"
    outcome.sources[path] = after
    fixed_here = outcome.fixed.setdefault(path, [])
    fixed_here += (diagnostic.rule.code for diagnostic in diagnostics if diagnostic.fix in applied)
    return None


def is_fixable(diagnostic: Diagnostic, allowed: Container[Applicability]) -> bool:
    """Whether a finding has a fix that may be applied."""
    return diagnostic.fix is not None and diagnostic.fix.applicability in allowed


def unified_diff(before: SourceFile, after: SourceFile) -> str:
    """The change of one file in the form that ``patch`` and ``git apply -p0`` read, that of a notebook by its cells;
    empty if there is none.
    """
    import difflib

    if before.text == after.text:
        return ""
    now = after.parts()
    lines = (line for name, was in before.parts().items() for line in difflib.unified_diff(was, now[name], name, name))
    return "".join(line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n" for line in lines)
