"""What a fix owes to the code that it mends, checked on any code.

:func:`violations` applies fixes to files as one project, and says where they break their word: the result does not
parse, a comment is lost, a finding is still there after its fix, or fixing a second time changes something.
`python tests/support/fix_safety.py FOLDER ...` does that for the code in folders.
"""

import sys
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from nnx_lint.checking import Checker
from nnx_lint.diagnostics import Applicability, Diagnostic
from nnx_lint.files import discover, import_roots
from nnx_lint.fixes import SAFE, SAFE_AND_UNSAFE, apply, fix_all, is_fixable
from nnx_lint.selection import Options
from nnx_lint.source import SourceError, SourceFile

EVERY_RULE = Options.everywhere(selected=lambda rule: True)

Sources = Mapping[str, SourceFile]


def violations(
    sources: Sources, allowed: Container[Applicability], roots: tuple[str, ...] = ()
) -> tuple[int, list[str]]:
    """How many fixes were applied, and what is wrong with them."""

    def check(files: Sources) -> list[Diagnostic]:
        return Checker(EVERY_RULE, roots).check(files)

    findings = check(sources)
    applied, found = _first_pass(sources, findings, allowed)
    fixed = {path: sources[path].with_text(text) for path, (text, _) in applied.items()}
    broken = {path: after.error for path, after in fixed.items() if after.error is not None}
    found += [f"{path}: does not parse after its fixes: {error}" for path, error in broken.items()]
    for path, after in fixed.items():
        if Applicability.UNSAFE not in allowed:
            found += [f"{path}: lost {text}" for text in (_comments(sources[path]) - _comments(after))]
    if broken:
        return 0, found
    left = check({**sources, **fixed})
    mended = [finding for _, chosen in applied.values() for finding in chosen]
    found += [
        f"{finding.path}: {finding.rule.code} is still there after its fix: {finding.message}"
        for finding in mended
        if _times(finding, left, sources, fixed) >= _times(finding, findings, sources, sources)
    ]
    once = fix_all(sources, check, allowed)
    twice = fix_all(once.sources, check, allowed)
    found += [*once.problems, *twice.problems]
    found += [f"{path}: fixing again changes it" for path in twice.fixed]
    return len(mended), found


def _first_pass(
    sources: Sources, findings: list[Diagnostic], allowed: Container[Applicability]
) -> tuple[dict[str, tuple[str, list[Diagnostic]]], list[str]]:
    """The text of each file after the fixes that go together, and the findings that they are for."""
    by_path: dict[str, list[Diagnostic]] = {}
    for finding in findings:
        if is_fixable(finding, allowed):
            by_path.setdefault(finding.path, []).append(finding)
    applied: dict[str, tuple[str, list[Diagnostic]]] = {}
    found: list[str] = []
    for path, fixable in by_path.items():
        text, chosen = apply(sources[path], (finding.fix for finding in fixable if finding.fix is not None))
        applied[path] = text, [finding for finding in fixable if finding.fix in chosen]
        if text == sources[path].text:
            found.append(f"{path}: a fix changes nothing")
    return applied, found


def _times(finding: Diagnostic, findings: list[Diagnostic], sources: Sources, now: Sources) -> int:
    """How often a finding is among others: with the same words, at text that has that of the finding in it.

    The fix of one finding may bring another one to light, with the same words at another place.
    """
    text = sources[finding.path].segment(finding.span)
    return sum(
        (other.path, other.rule, other.message) == (finding.path, finding.rule, finding.message)
        and text in now[other.path].segment(other.span)
        for other in findings
    )


def _comments(source: SourceFile) -> Counter[str]:
    """The comments, without those that are for linters: there are rules about these."""
    comments = (token.string for token in source.tokens() if token.string.startswith("#"))
    return Counter(comment for comment in comments if "nnx:" not in comment and "noqa" not in comment.casefold())


def _read(files: list[str]) -> Iterator[SourceFile]:
    for file in files:
        try:
            yield SourceFile.read(file)
        except SourceError as error:
            print(error)


def main() -> int:
    """Check the fixes of the code in folders, one project each."""
    failed = False
    for folder in sys.argv[1:]:
        files = discover([folder]).files
        sources = {source.path: source for source in _read(files)}
        for name, allowed in (("safe", SAFE), ("all", SAFE_AND_UNSAFE)):
            count, found = violations(sources, allowed, import_roots(files, [folder]))
            print(f"{Path(folder).name}: {count} {name} fixes, {len(found)} violations", *found, sep="\n  ", flush=True)
            failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
