"""What is done with findings: print them, fix what can be fixed, print a diff, write comments or the baseline.

Each is an *action* that one run takes; they share the steps before: read, check, leave out what the baseline knows.
What came from standard input goes back to standard output, and what is said about it to standard error.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO, cast

from nnx_lint.checking import Checker
from nnx_lint.cli import CLEAN, FAILURE, FINDINGS, UsageError, complain
from nnx_lint.config.reading import shown
from nnx_lint.fixes import SAFE, SAFE_AND_UNSAFE
from nnx_lint.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nnx_lint.baseline import Baseline, Entry
    from nnx_lint.cli.run import Run
    from nnx_lint.diagnostics import Applicability, Diagnostic
    from nnx_lint.fixes import Outcome
    from nnx_lint.source import SourceFile
    from nnx_lint.sources import Sources


class Actions:
    """The second half of a run.

    Raises:
        UsageError: what is asked for needs something that is missing.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.settings = run.settings
        self.progress = Progress(sys.stderr)
        self.checker = Checker(
            run.options,
            run.roots,
            cache=self.settings.location("cache-dir") if self._on("cache") else None,
            jobs=cast("int | None", self.settings.get("jobs")) or _processors(),
            progress=None if self._on("quiet") else self.progress,
        )
        self.sources: Sources = self._read()
        self.parts = run.parts()
        self.baseline = self._known()
        self._agree_on_statistics()
        self.stale: dict[Entry, None] = {}
        self.applicable: frozenset[Applicability] = SAFE_AND_UNSAFE if self._on("unsafe-fixes") else SAFE

    def _on(self, option: str) -> bool:
        return self.settings.switch(option)

    def _read(self) -> Sources:
        data = self.run.data
        if data is None:
            return self.checker.read(self.run.files)
        from nnx_lint.source import SourceFile

        return self.checker.read(self.run.files, lambda path: SourceFile.from_bytes(data, path))

    def _known(self) -> Baseline | None:
        """The baseline, if there is one; the one to write may not exist yet."""
        path = self.settings.location("baseline")
        updating = self._on("update-baseline")
        if path is None:
            if updating:
                raise UsageError("--update-baseline needs a file to write: --baseline FILE, or the option `baseline`")
            return None
        from nnx_lint.baseline import Baseline, BaselineError

        if updating and not os.path.exists(path):
            return Baseline(shown(path))
        try:
            return Baseline.read(shown(path))
        except BaselineError as error:
            raise UsageError(str(error)) from None

    def _agree_on_statistics(self) -> None:
        if self._on("statistics"):
            from nnx_lint.output import statistics

            if self._format not in statistics.FORMATS:
                formats = ", ".join(sorted(statistics.FORMATS))
                raise UsageError(f"there are no statistics in the format {self._format}; these have them: {formats}")

    def act(self) -> int:
        """Do what is asked for."""
        actions: dict[str, Callable[[], int]] = {
            "update-baseline": self._update_baseline,
            "add-ignore": self._add_ignores,
            "diff": self._diff,
            "fix": self._fix,
        }
        code = next((action for name, action in actions.items() if self._on(name)), self._report)()
        if self.run.problems or self.checker.problems:
            return code  # what could not be checked looks as if it were mended
        for entry in self.stale:
            self.run.remark(f"warning: the baseline names a finding that is not there any more: {entry}")
        if self.stale:
            self.run.remark("hint: --update-baseline removes what is stale")
        return code

    def _check(self, sources: Mapping[str, SourceFile]) -> list[Diagnostic]:
        with self.progress:
            findings = self.checker.check(sources)
        if not self.parts:
            return findings
        from nnx_rules.rules.comments import UNUSED_SUPPRESSION

        # What a comment silences in a part of a program may be found from the rest of it.
        code = UNUSED_SUPPRESSION.code
        return [each for each in findings if each.rule.code != code or each.path not in self.parts]

    def _find(self, sources: Mapping[str, SourceFile]) -> list[Diagnostic]:
        """The findings that the baseline does not know."""
        findings = self._check(sources)
        if self.baseline is None:
            return findings
        compared = self.baseline.compare(findings, sources, self._selected)
        self.stale = dict.fromkeys(compared.stale)
        return compared.new

    def _selected(self, code: str, path: str) -> bool:
        return code in self.run.options.for_path(path).severities

    def _report(self) -> int:
        diagnostics = self._find(self.sources)
        self._print(diagnostics, self.sources, sys.stdout)
        self._summarise(self._found(diagnostics), sys.stdout)
        return FINDINGS if diagnostics else CLEAN

    def _fix(self) -> int:
        outcome = self._fixed()
        to = sys.stdout
        if self.run.data is None:
            self._write_fixed(outcome)
        else:
            # The text is the result, so the findings make way. An editor takes what comes back for its buffer: what
            # could not be parsed comes back as it was.
            to = sys.stderr
            texts = [source.to_bytes() for source in outcome.sources.values()] or [self.run.data]
            sys.stdout.buffer.write(texts[0])
        self._print(outcome.remaining, outcome.sources, to)
        fixed, left = sum(map(len, outcome.fixed.values())), len(outcome.remaining)
        if fixed:
            self._summarise(f"Found {_count(fixed + left)} ({fixed} fixed, {left} remaining).", to)
        else:
            self._summarise(self._found(outcome.remaining), to)
        return FINDINGS if left or (fixed and self._on("exit-non-zero-on-fix")) else CLEAN

    def _diff(self) -> int:
        from nnx_lint.fixes import unified_diff

        outcome = self._fixed()
        for path in filter(outcome.fixed.__contains__, self.sources):
            sys.stdout.write(unified_diff(self.sources[path], outcome.sources[path]))
        fixed = sum(map(len, outcome.fixed.values()))
        self._summarise(f"Would fix {_count(fixed)}." if fixed else "Nothing to fix.", sys.stderr)
        return FINDINGS if fixed else CLEAN

    def _fixed(self) -> Outcome:
        from nnx_lint.fixes import fix_all

        outcome = fix_all(self.sources, self._find, self.applicable)
        self.checker.problems += outcome.problems
        return outcome

    def _write_fixed(self, outcome: Outcome) -> None:
        """Write the files that were fixed; one that cannot be written is as it was, and so are its findings."""
        as_before = [path for path in outcome.fixed if not self._write(path, outcome.sources[path].to_bytes())]
        for path in as_before:
            del outcome.fixed[path]
            outcome.sources[path] = self.sources[path]
        if as_before:
            outcome.remaining = self._find(outcome.sources)

    def _add_ignores(self) -> int:
        from nnx_lint.ignores import add_ignores
        from nnx_lint.suppressions import Suppressions

        by_path: dict[str, list[Diagnostic]] = {}
        for finding in self._find(self.sources):
            by_path.setdefault(finding.path, []).append(finding)
        added = 0
        for path, findings in by_path.items():
            before = self.sources[path]
            after = add_ignores(before, findings)
            if after.text == before.text:
                continue
            if self.run.data is not None:
                sys.stdout.buffer.write(after.to_bytes())
            elif not self._write(path, after.to_bytes()):
                continue
            silenced = Suppressions(after)
            added += sum(silenced.cover(finding, before) for finding in findings)
        if self.run.data is not None and not added:
            sys.stdout.buffer.write(self.run.data)
        to = sys.stdout if self.run.data is None else sys.stderr
        nothing = "" if self.checker.problems else "Nothing to silence."
        self._summarise(f"Silenced {_count(added)}." if added else nothing, to)
        return CLEAN

    def _update_baseline(self) -> int:
        assert self.baseline is not None, "_known sees to it"
        findings = self._check(self.sources)
        if self.run.problems or self.checker.problems:
            complain("error: the baseline is not written, since not everything could be checked:")
            return FAILURE
        updated = self.baseline.updated(findings, self.sources, self._selected)
        if self._save(updated.path, updated.write):
            self._summarise(f"Wrote {_count(sum(updated.counts.values()))} to {updated.path}.", sys.stdout)
        return CLEAN

    def _write(self, path: str, data: bytes) -> bool:
        from nnx_lint.files import rewrite

        return self._save(path, lambda: rewrite(path, data))

    def _save(self, path: str, save: Callable[[], None]) -> bool:
        """Write a file; where that is impossible, it is a problem of the run."""
        from nnx_lint.source import SourceError

        try:
            save()
        except SourceError as error:
            self.checker.problems.append(str(error))
        except OSError as error:
            self.checker.problems.append(f"{path}: cannot be written: {error.strerror or error}")
        else:
            return True
        return False

    def _print(self, diagnostics: Sequence[Diagnostic], sources: Mapping[str, SourceFile], to: TextIO) -> None:
        from nnx_lint.output import Report, render
        from nnx_lint.output.terminal import wants_colour

        problems = (*self.run.problems, *self.checker.problems)
        report = Report(diagnostics, sources, wants_colour(to), problems)
        if self._on("statistics"):
            from nnx_lint.output import statistics

            pieces = statistics.render(report, self._format)
        else:
            pieces = render(report, self._format)
        for piece in pieces:
            to.write(piece)

    @property
    def _format(self) -> str:
        return str(self.settings.get("output-format"))

    def _summarise(self, summary: str, to: TextIO) -> None:
        from nnx_lint.output import FOR_PEOPLE

        for_a_program = self._format not in FOR_PEOPLE and to is sys.stdout
        if summary and not self._on("quiet") and not for_a_program:
            to.write(summary + "\n")

    def _found(self, diagnostics: Sequence[Diagnostic]) -> str:
        from nnx_lint.fixes import is_fixable

        if not diagnostics:
            return "" if self.run.problems or self.checker.problems or not self.sources else "All checks passed!"
        now = sum(is_fixable(diagnostic, self.applicable) for diagnostic in diagnostics)
        more = sum(is_fixable(diagnostic, SAFE_AND_UNSAFE) for diagnostic in diagnostics) - now
        facts: list[str] = []
        if now:
            facts.append(f"{now} fixable with --fix")
        if more:
            facts.append(f"{more} more with --unsafe-fixes" if now else f"{more} fixable with --fix --unsafe-fixes")
        return f"Found {_count(len(diagnostics))}" + (f" ({', '.join(facts)})." if facts else ".")


def _processors() -> int:
    """How many processes can run at once: in a container fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _count(errors: int) -> str:
    return "1 error" if errors == 1 else f"{errors} errors"
