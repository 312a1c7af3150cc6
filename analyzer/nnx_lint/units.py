"""What the check of one file gives, and how the units of a run are put together.

A unit is plain data, so that a process can send it and the cache can keep it. Invariants: the order in which units
arrive does not matter for what :func:`together` makes of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nnx_lint.diagnostics import Applicability, Diagnostic, Edit, Fix, Related, Span
from nnx_lint.subsumed import without_subsumed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nnx_lint.source import SourceFile

MAX_PROBLEMS = 5
"""How many syntax errors of one file are named."""


class Unit(NamedTuple):
    """What the check of one file gave.

    ``findings`` lie in any file; ``problems`` make the run fail, ``notes`` do not. ``used`` are the files that the
    findings follow from, and ``heirs`` the class names whose heirs, in whatever file, they depend on. A unit is not
    ``complete`` where something has not been looked at, and ``crashed`` where a bug is the reason. ``folders`` are
    those that were listed for the first time in the process, with what was in them. ``knotted`` says that modules were
    seen that import each other, so that it matters which of them is executed first.
    """

    path: str
    findings: tuple[Diagnostic, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    complete: bool = True
    crashed: bool = False
    used: tuple[str, ...] = ()
    heirs: tuple[str, ...] = ()
    folders: tuple[tuple[str, tuple[str, ...]], ...] = ()
    knotted: bool = False


def parse_report(source: SourceFile) -> Unit:
    """A unit without findings: what is wrong with the text of a file."""
    path, errors = source.path, source.errors
    problems = [f"{path}:{source.shown(each)}: syntax error: {each.message}" for each in errors[:MAX_PROBLEMS]]
    if len(errors) > MAX_PROBLEMS:
        problems.append(f"{path}: {len(errors) - MAX_PROBLEMS} more syntax errors")
    notes = [f"{path}:{source.shown(each)}: {each.message}" for each in source.notes]
    return Unit(path, problems=tuple(problems), notes=tuple(notes), complete=not problems)


def crashed(path: str, error: BaseException) -> Unit:
    """The unit of a file whose check did not come to an end."""
    return Unit(path, problems=(crash_report(path, error),), complete=False, crashed=True)


def crash_report(path: str, error: BaseException) -> str:
    """One line on a bug of ours."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" ({place.tb_frame.f_code.co_filename}:{place.tb_lineno})" if place is not None else ""
    what = f"{path}: internal error: {type(error).__name__}: {error}"
    return f"{what}{where}; this is a bug in nnx-lint, please report it"


def together(units: Iterable[Unit], paths: Sequence[str]) -> dict[str, list[Diagnostic]]:
    """The findings of some units by file, each once, in the order of their places, and one for each mistake.

    Where several units report the same, what the file's own unit says of it counts, or else the first one's.
    """
    order = {path: index for index, path in enumerate(paths)}
    found: dict[tuple[str, str, int, int], tuple[bool, int, Diagnostic]] = {}
    for unit in units:
        for finding in unit.findings:
            if finding.path in order:
                key = (finding.path, finding.rule.code, finding.span.start, finding.span.end)
                claim = (unit.path != finding.path, order.get(unit.path, 0))
                if key not in found or claim < found[key][:2]:
                    found[key] = (*claim, finding)
    by_file: dict[str, list[Diagnostic]] = {path: [] for path in paths}
    for _, _, finding in found.values():
        by_file[finding.path].append(finding)
    for findings in by_file.values():
        findings.sort(key=lambda finding: (finding.span, finding.rule.code))
    return {path: without_subsumed(findings) for path, findings in by_file.items()}


# -- as plain data -----------------------------------------------------------------------------------------------------

Packed = list[Any]
"""Lists, strings, numbers and None only: what JSON can hold."""


def pack(unit: Unit) -> Packed:
    """A unit as plain data."""
    return [unit.path, [pack_finding(finding) for finding in unit.findings], *unit[2:]]


def unpack(packed: Packed) -> Unit:
    """The unit that was packed."""
    path, findings, problems, notes, complete, crashed, used, heirs, folders, knotted = packed
    return Unit(
        path,
        tuple(map(unpack_finding, findings)),
        tuple(problems),
        tuple(notes),
        complete,
        crashed,
        tuple(used),
        tuple(heirs),
        tuple((folder, tuple(entries)) for folder, entries in folders),
        knotted,
    )


def pack_finding(finding: Diagnostic) -> Packed:
    """A finding as plain data."""
    fix = finding.fix
    return [
        finding.rule.code,
        finding.path,
        finding.span.start,
        finding.span.end,
        finding.message,
        finding.help,
        fix and [fix.title, [[*_ends(edit.span), edit.text] for edit in fix.edits], fix.applicability.value],
        [[each.path, *_ends(each.span), each.message] for each in finding.related],
        finding.level and finding.level.value,
    ]


def unpack_finding(packed: Packed) -> Diagnostic:
    """The finding that was packed."""
    from nnx_rules.registry import Severity
    from nnx_rules.rules import REGISTRY

    code, path, start, end, message, help, fix, related, level = packed
    rule = REGISTRY.get(code)
    if rule is None:
        raise ValueError(f"there is no rule {code}")
    return Diagnostic(
        rule,
        path,
        Span(start, end),
        message,
        help,
        fix and Fix(fix[0], tuple(Edit(Span(a, b), text) for a, b, text in fix[1]), Applicability(fix[2])),
        tuple(Related(where, Span(a, b), what) for where, a, b, what in related),
        level and Severity(level),
    )


def _ends(span: Span) -> tuple[int, int]:
    return span.start, span.end
