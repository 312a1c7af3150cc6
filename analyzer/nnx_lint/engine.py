"""The engine: from files to findings.

The unit of work is one file: its body, the models of its classes and all its functions are executed abstractly, and
every event goes to the rules. What a unit finds, in its own file or in another one whose code it calls, follows from
the text of the files that it looked at and from nothing else: not from the other units of the run, their order, or the
process that they run in (:mod:`~nnx_lint.model.heap` says how). So units can be checked in any number of processes, and
what they found can be kept.

Files that cannot concern NNX, by their text and by what they import, are only parsed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nnx_lint import relevance, rules
from nnx_lint.model.interpreter import Interpreter
from nnx_lint.model.layout import Layout
from nnx_lint.model.modules import Project
from nnx_lint.reporting import Findings, Judging
from nnx_lint.source import SourceError, SourceFile
from nnx_lint.units import Unit, crash_report, parse_report, together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.model.modules import Module
    from nnx_lint.relevance import Facts
    from nnx_lint.reporting import Key
    from nnx_lint.selection import Options

STACK = 12_000
"""How deep Python calls may nest. Evaluations start inner ones: the default of 1,000 would end many early."""


ENDED_EARLY = (
    "analysis ended early: the file takes more steps than any file should, and the rest of it was not looked at"
)


class Engine:
    """Checks the files of a project, one by one.

    ``facts`` are those of files that are known from an earlier run; those of others are read off their text.
    """

    def __init__(
        self,
        sources: Mapping[str, SourceFile],
        roots: Iterable[str],
        options: Options,
        facts: Mapping[str, Facts] | None = None,
    ) -> None:
        rules.load()
        self.project = Project(sources, roots, options.declared)
        self.judging = Judging(options)
        self.project.listen = self._listener
        self.facts: dict[str, Facts] = dict(facts or {})
        self._sources = sources
        self._listed: set[str] = set()
        self._listeners: list[Findings] = []
        self.concerned: set[str] = set()
        self._relate()
        sys.setrecursionlimit(max(sys.getrecursionlimit(), STACK))

    def _relate(self) -> None:
        """See which files concern NNX, and which have heirs of which classes."""
        self.concerned = relevance.concerned(self._sources, self._facts, self.project.layout, self.project.shown)
        self.project.heirs.bases = _files_by_base(self._sources, self.facts)

    def _listener(self) -> Findings:
        made = Findings(self.judging)
        self._listeners.append(made)
        return made

    def _facts(self, path: str) -> Facts | None:
        if path not in self.facts:
            try:
                source = self._sources[path] if path in self._sources else SourceFile.read(path)
            except SourceError:
                return None
            self.facts[path] = relevance.facts_of(source.text)
        return self.facts[path]

    def change(
        self, paths: Iterable[str], revise: Callable[[str], bool] = lambda path: False
    ) -> tuple[set[str], set[str]]:
        """Say that some files have other texts now; ``revise`` is asked to keep what is known of one, if it can.

        Returns the (absolute) paths of all modules that are void, and the names of bases whose heirs may be others now:
        units that used one of those modules, or asked for one of these heirs, are to be made again.
        """
        paths = list(paths)
        before = [self.facts.pop(path, None) for path in paths]
        after = [self._facts(path) for path in paths]
        bases: set[str] = set()
        if before != after:
            for facts in (*before, *after):
                bases.update(facts.bases if facts is not None else ())
            self._relate()
            return self.project.forget(paths, bases), bases
        unrevised = [path for path in paths if not revise(path)]
        for path in unrevised:  # what is asked of heirs is what their text says, too
            known = self.facts.get(path)
            bases.update(known.bases if known is not None else ())
        return self.project.forget(unrevised, bases), bases

    def relist(self, roots: Iterable[str], facts: Mapping[str, Facts]) -> tuple[set[str], set[str]] | None:
        """Say that files came or went, with the roots and the facts of those that are there now.

        Returns what :meth:`change` does, or ``None`` if some import means another file now: that takes a new engine.
        """
        layout = Layout(self._sources, roots)
        if not self.project.layout.agrees(layout):
            return None
        self.project.layout = layout
        self.facts |= facts
        before = self.project.heirs.bases
        self._relate()
        after = self.project.heirs.bases
        bases = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        return self.project.forget((), bases), bases

    def give_up(self) -> None:
        """Forget what was being evaluated when an analysis was given up; what had come to its end stands.

        A body that was executed in part is forgotten with its module, and so is whatever looked at it.
        """
        running = list(self.project.running)
        self.project.running.clear()
        modules = [each.module for each in running if each.module is not None]
        self.project.forget([module.source.path for module in modules if not module.complete])
        self.project.forget_evaluations({part for each in running for part in (each, *each.provisional)})

    def preload(self) -> None:
        """Execute the bodies of all modules, in the order of their paths.

        Where modules import each other, what one sees of another depends on which came first.
        """
        silent = Interpreter(self.project, self._listener())
        for path in sorted(self.concerned.intersection(self._sources)):
            module = self.project.module(path)
            if module is not None:
                silent.load(module)

    def check(self, path: str) -> Unit:
        """Check one file."""
        if path not in self.concerned:
            source = self._sources[path]
            unread = self.project.loaded(path) is None  # nobody imports it either
            if unread and source.is_sound():
                return Unit(path)
            report = parse_report(source)
            if unread:
                source.let_go()
            return report
        module = self.project.module(path)
        assert module is not None
        report = self.report(self.evaluate(module))
        for each in self._listeners:
            each.memory = None  # what judges note is for one evaluation, and all have ended
        self._listeners.clear()
        return report

    def evaluate(self, module: Module) -> Interpreter:
        """Execute all of a module, and publish what there is to say of it."""
        unit = Interpreter(self.project, self.project.listen(), module)
        unit.check(module)
        return unit

    def report(self, unit: Interpreter) -> Unit:
        """What the evaluation of a module gave."""
        module = unit.module
        assert module is not None
        path = module.source.path
        own = [*unit.adopted, unit]
        found: dict[Key, Diagnostic] = {}
        for evaluation in own:
            assert isinstance(evaluation.listener, Findings)
            for key, finding in evaluation.listener.found.items():
                found.setdefault(key, finding)
        everything = _closure(own)
        failures = [each.failure for each in everything if each.failure is not None]
        report = parse_report(module.source)
        if module.source.error:  # what was found before the file was broken has fixes still
            for key, finding in found.items():
                found[key] = finding.replaced(fix=None) if finding.path == path else finding
        early = any(evaluation.ended_early for evaluation in own)
        return report._replace(
            findings=tuple(found.values()),
            problems=(*report.problems, *(crash_report(path, failure) for failure in failures[:1])),
            notes=(*report.notes, *([f"{path}: {ENDED_EARLY}"] if early else ())),
            complete=report.complete and not early and not failures,
            crashed=bool(failures),
            used=tuple(
                sorted(
                    {each.module.source.path for each in everything if each.module is not None and each.module.has_file}
                )
            ),
            folders=self._new_folders(),
            heirs=tuple(sorted({name for each in everything for name in each.heirs})),
            knotted=self.project.knotted,
        )

    def _new_folders(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        listed = self.project.layout.listed
        new = [(folder, tuple(listed[folder])) for folder in listed.keys() - self._listed]
        self._listed.update(listed)
        return tuple(new)


def _closure(evaluations: list[Interpreter]) -> list[Interpreter]:
    """Some evaluations, and all that these looked at, directly or not."""
    seen = dict.fromkeys(evaluations)
    for each in (todo := [*evaluations]):
        for used in each.used:
            if used not in seen:
                seen[used] = None
                todo.append(used)
    return todo


def _files_by_base(paths: Iterable[str], facts: Mapping[str, Facts]) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for path in paths:
        for name in facts[path].bases if path in facts else ():
            files.setdefault(name, []).append(path)
    return files


def check(files: Sequence[SourceFile], *, roots: Iterable[str], options: Options) -> list[Diagnostic]:
    """Check files as one project, in this process; findings in order of file and place."""
    sources = {source.path: source for source in files}
    engine = Engine(sources, roots, options)
    engine.preload()
    by_file = together([engine.check(path) for path in sources], list(sources))
    return [finding for findings in by_file.values() for finding in findings]
