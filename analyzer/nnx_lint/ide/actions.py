"""What can be done about findings: apply a fix, fix all of a rule, fix the file, ignore one, explain its rule.

An action is found cheaply, for menus that open at every move of the cursor, and its edits are made when somebody
chooses it.

Invariants: the edits of an action belong to the text that it was found for; fixing all means what ``nnx-lint --fix``
does, passes included, and leads to a text that parses.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Applicability, Edit, Span
from nnx_lint.fixes import fix_all
from nnx_lint.fixes import is_fixable as is_fixable
from nnx_lint.ignores import add_ignores
from nnx_rules.registry import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.source import SourceFile


class Kind(enum.Enum):
    """What an action does."""

    FIX = "fix"
    FIX_RULE = "fix-rule"
    IGNORE = "ignore"
    EXPLAIN = "explain"


class Action(NamedTuple):
    """Something that can be done about a finding."""

    kind: Kind
    title: str
    finding: Diagnostic
    preferred: bool = False


def about(findings: Sequence[Diagnostic], span: Span, allowed: Container[Applicability]) -> Iterator[Action]:
    """The actions about findings that touch a span; ``allowed`` are the fixes that a whole file may get."""
    touched = [each for each in findings if each.span.start <= span.end and span.start <= each.span.end]
    for finding in touched:
        if finding.fix is not None and finding.fix.applicability is not Applicability.DISPLAY:
            yield Action(Kind.FIX, finding.fix.title, finding, finding.fix.applicability is Applicability.SAFE)
    rules = {finding.rule.code: finding for finding in touched}
    for code, finding in rules.items():
        if sum(each.rule.code == code and is_fixable(each, allowed) for each in findings) > 1:
            yield Action(Kind.FIX_RULE, f"Fix all {finding.rule.name} in this file", finding)
    for finding in rules.values():
        if finding.rule.family is not Family.COMMENTS:
            yield Action(Kind.IGNORE, f"Ignore {finding.rule.name} on this line", finding)
    for finding in rules.values():
        yield Action(Kind.EXPLAIN, f"Explain {finding.rule.name} ({finding.rule.code})", finding)


def ignoring(source: SourceFile, finding: Diagnostic) -> list[Edit]:
    """The edits that silence a finding where it begins; none where no comment can stand."""
    return difference(source.text, add_ignores(source, [finding]).text)


def fixing(
    source: SourceFile,
    check: Callable[[SourceFile], list[Diagnostic]],
    allowed: Container[Applicability],
    code: str | None = None,
) -> list[Edit]:
    """The edits that fix a file, all of it or one rule; ``check`` finds what is in a text of it."""

    def find(sources: Mapping[str, SourceFile]) -> list[Diagnostic]:
        return [each for each in check(sources[source.path]) if code in (None, each.rule.code)]

    return difference(source.text, fix_all({source.path: source}, find, allowed).sources[source.path].text)


def difference(before: str, after: str) -> list[Edit]:
    """The edits that make one text of another, by lines: what is alike stays, and with it cursors and folds."""
    import difflib

    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        Edit(Span(starts[first], starts[last]), "".join(new[start:stop]))
        for tag, first, last, start, stop in changes
        if tag != "equal"
    ]
