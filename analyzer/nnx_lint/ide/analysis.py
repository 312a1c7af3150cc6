"""The engine of one workspace folder, kept up to date with what is being typed.

An edit is only noted. When somebody asks, what it makes void is forgotten, that is the module of the file and all
modules that looked at it, and only what the question needs is executed anew. Files that nobody edits are read when a
module imports them; all files of the folder are known once a walk has told which there are (:meth:`Analysis.found`),
and until then only the edited ones are. Files that come or go make everything void only if some import means another
file then.

Invariants: what :meth:`Analysis.findings` says of a file is what a run over the same texts says, whatever was edited in
between; an analysis that was given up (:class:`Cancelled`) leaves nothing behind; a configuration that cannot be used
is a problem to show, and the defaults hold in its place.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.config.reading import ConfigError
from nnx_lint.config.settings import Configuration
from nnx_lint.engine import Engine
from nnx_lint.files import import_roots
from nnx_lint.fixes import SAFE, SAFE_AND_UNSAFE
from nnx_lint.ide.actions import fixing
from nnx_lint.ide.completion import Runs
from nnx_lint.ide.garbage import COLLECTOR
from nnx_lint.ide.notes import Notes, Noting
from nnx_lint.ide.revisions import Revisions
from nnx_lint.ide.structure import Structures
from nnx_lint.ide.texts import Texts
from nnx_lint.ide.tour import tour
from nnx_lint.ide.views import Views
from nnx_lint.selection import Options, SelectionError
from nnx_lint.silencing import silence
from nnx_lint.source import SourceError
from nnx_lint.units import Unit, crashed, parse_report, together

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set

    from nnx_lint.baseline import Baseline
    from nnx_lint.diagnostics import Applicability, Diagnostic, Edit
    from nnx_lint.ide.settings import Settings
    from nnx_lint.ide.structure import Lens
    from nnx_lint.relevance import Facts
    from nnx_lint.selection import FileOptions
    from nnx_lint.source import SourceFile


class Cancelled(BaseException):  # the interpreter takes every Exception for a bug of its own
    """Somebody does not want the answer any more; raise it in ``Analysis.pause``."""


class Checked(NamedTuple):
    """A file that was checked, with the text that it had."""

    source: SourceFile
    unit: Unit
    notes: Notes


class Closed(NamedTuple):
    """A file that is not being edited, as a scan saw it.

    ``findings`` are what is to be shown of it, ``elsewhere`` its findings in other files; the rest is as in
    :class:`~nnx_lint.units.Unit`.
    """

    findings: tuple[Diagnostic, ...]
    used: tuple[str, ...]
    heirs: tuple[str, ...]
    elsewhere: tuple[Diagnostic, ...]


class Analysis:
    """What is known of the files of one folder (an absolute path); ``None`` is for files that lie in none.

    ``noting`` says whether the questions that an editor asks will be asked at all.

    Attributes:
        problems: what is wrong with settings and configuration, one line each.
        outdated: the files that are not being edited, and which a scan has to look at again.
        pause: is called now and then during long work, which it ends by raising :class:`Cancelled`.
    """

    def __init__(self, folder: str | None, settings: Settings, *, noting: bool = True) -> None:
        self.folder = folder
        self._noting = noting
        self.problems: list[str] = []
        self.pause: Callable[[], None] = _go_on
        self._texts = Texts()
        self._engine: Engine | None = None
        self._revisions: Revisions | None = None
        self._checked: dict[str, Checked] = {}
        self._edited: dict[str, None] = {}
        self._relisted = False
        self._options: dict[str, FileOptions] = {}
        self._views: dict[str, tuple[Checked, Views]] = {}
        self._variables: dict[str, tuple[str, ...]] = {}
        self._runs: dict[str, Runs] = {}
        self._facts: dict[str, Facts] = {}
        self._closed: dict[str, Closed] = {}
        self.outdated: set[str] = set()
        self.structures = Structures(self._texts, lambda: self.pause())
        self.configure(settings)

    # -- what holds

    def configure(self, settings: Settings) -> None:
        """Read the configuration, anew if it was read before."""
        self.settings = settings
        self.problems = []
        here = self.folder or os.getcwd()
        try:
            self._configuration = Configuration(settings.flags(here))
            self._configuration.at(here)
        except (ConfigError, SelectionError) as error:
            self._misconfigured(error)
        self._baselines: dict[str, Baseline | None] = {}
        self.reset()

    def _misconfigured(self, error: Exception) -> None:
        if str(error) not in self.problems:
            self.problems.append(str(error))
        self._configuration = Configuration.isolated()

    def reset(self) -> None:
        """Forget everything that follows from the texts: the configuration changed, or what imports mean."""
        self._outdate(set(self._edited), None)
        self._views.clear()
        self._checked.clear()
        self._edited.clear()
        if self._engine is not None:
            self._engine = self._revisions = None
            COLLECTOR.forget()  # before another engine takes as much room as this one did

    def options_for(self, path: str) -> FileOptions:
        """What is asked for in a file."""
        try:
            return self._configuration.options_for(path)
        except ConfigError as error:
            self._misconfigured(error)
            return self._configuration.options_for(path)

    def applicable(self, path: str) -> Container[Applicability]:
        """The fixes that all of a file may get at once."""
        self.options_for(path)
        return SAFE_AND_UNSAFE if self._configuration.at(os.path.dirname(path)).switch("unsafe-fixes") else SAFE

    def excluded(self, path: str) -> bool:
        """Whether the configuration leaves a file out."""
        try:
            settings = self._configuration.at(os.path.dirname(path))
            is_folder = False
            while path != self.folder and path != os.path.dirname(path):
                if settings.excludes(path, is_folder):
                    return True
                path, is_folder = os.path.dirname(path), True
            return False
        except ConfigError as error:
            self._misconfigured(error)
            return False

    @property
    def configuration(self) -> Configuration:
        """The configuration that holds here."""
        return self._configuration

    @property
    def configuration_files(self) -> list[str]:
        """The configuration files that hold here."""
        return self._configuration.files()

    # -- what is there

    @property
    def edited(self) -> Mapping[str, SourceFile]:
        """The files that are being edited."""
        return self._texts.edited

    def edit(self, source: SourceFile) -> None:
        """Take a new text of a file, which may not have been known before."""
        known = source.path in self._texts
        self._texts.edit(source)
        self._changed(source.path, known)

    def close(self, path: str) -> None:
        """See a file as it is on disk from now on."""
        self._texts.close(path)
        self._checked.pop(path, None)
        self._views.pop(path, None)
        self._variables.pop(path, None)
        self._runs.pop(path, None)
        self.structures.close(path)
        if self._closed:
            self.outdated.add(path)
        self._facts.pop(path, None)
        self._changed(path, known=True)

    def touched(self, path: str, *, came_or_went: bool = False) -> None:
        """A file was written by somebody else, made or removed; what is being edited is not concerned."""
        self._facts.pop(path, None)
        known = path in self._texts
        if came_or_went:
            self._texts.settle(path)
        if path not in self._texts.edited:
            self._changed(path, known)
            self._relisted |= came_or_went

    def found(self, paths: Iterable[str], facts: Mapping[str, Facts] | None = None) -> bool:
        """Say which files the folder has, and what is known of them; whether that was news."""
        facts = dict(facts or {})
        news = self._texts.found(paths) or facts != self._facts
        self._closed = {path: closed for path, closed in self._closed.items() if path in self._texts}
        if news:
            self._facts = facts
            self._relisted = True
            self.structures.forget()
        return news

    def _changed(self, path: str, known: bool) -> None:
        self.structures.forget()
        self._edited[path] = None
        self._relisted |= known != (path in self._texts)

    # -- what follows

    @property
    def engine(self) -> Engine:
        """The engine, after what was edited."""
        if self._engine is not None and (self._edited or self._relisted):
            try:
                self._update(self._engine)
            except BaseException:  # half of it may know of the edit
                self.reset()
                raise
        if self._engine is None:
            self._outdate(set(self._edited), None)
            self._engine = self._new_engine()
        self._edited.clear()
        self._relisted = False
        self._engine.project.pause = self.pause
        return self._engine

    def _new_engine(self) -> Engine:
        self._options = {path: self.options_for(path) for path in self._texts}
        options = Options(self.options_for(self._outside), self._options)
        engine = Engine(self._texts, self._roots(), options, self._other_facts())
        engine.project.read = self._texts.read
        if self._noting:
            engine.project.listen = lambda: Noting(engine.judging, self._texts.edited)
        self._revisions = Revisions(engine.project, self._texts.edited)
        return engine

    @property
    def _outside(self) -> str:
        return os.path.join(self.folder or os.getcwd(), "_.py")

    def _roots(self) -> tuple[str, ...]:
        named = [self.folder] if self.folder is not None else []
        return import_roots(self._texts, [*named, *self._configuration.sources()])

    def _other_facts(self) -> dict[str, Facts]:
        """What is known of the files that are not being edited."""
        return {path: known for path, known in self._facts.items() if path not in self._texts.edited}

    def _update(self, engine: Engine) -> None:
        """Forget what edits, and files that came or went, make void."""
        concerned = engine.concerned
        void, bases = engine.change(self._edited, self._revise)
        void = void.union(self._edited)
        if self._relisted:
            more = engine.relist(self._roots(), self._other_facts())
            if more is None:
                self.reset()
                return
            void, bases = void | more[0], bases | more[1]
            options = {path: self.options_for(path) for path in self._texts if path not in self._options}
            if not all(map(engine.judging.covers, options.values())):
                self.reset()
                return
            self._options.update(options)
        for path, checked in list(self._checked.items()):
            unit = checked.unit
            if (
                path in void
                or not void.isdisjoint(unit.used)
                or not bases.isdisjoint(unit.heirs)
                or (path in concerned) != (path in engine.concerned)
            ):
                del self._checked[path]
        self._outdate(void, bases)

    def _revise(self, path: str) -> bool:
        if self._revisions is None or path not in self._texts.edited:
            return False
        return self._revisions.revise(path, self._texts[path])

    def _outdate(self, void: Set[str], bases: Set[str] | None) -> None:
        """Note what scans have to look at again after some files changed, and classes of some ``bases``, or of any."""
        if not void:
            return
        for path, closed in self._closed.items():
            heirs = bool(closed.heirs) if bases is None else not bases.isdisjoint(closed.heirs)
            if path in void or not void.isdisjoint(closed.used) or heirs:
                self.outdated.add(path)

    def settle(self) -> None:
        """See what the edits since the last question make void."""
        if self._edited or self._relisted:
            self.engine  # noqa: B018

    def check(self, path: str) -> Checked:
        """Check a file that is being edited, unless what is known of it stands.

        Raises:
            Cancelled: ``pause`` said so.
        """
        engine = self.engine
        if path not in self._checked:
            try:
                self._checked[path] = self._check(engine, path)
                classes = self._checked[path].notes.classes.values()
                self._variables[path] = tuple(cls.name for cls in classes if cls.is_variable)
                self._runs[path] = self._runs_of(engine, path)
            except Cancelled:
                engine.give_up()
                raise
            except Exception as error:
                self._checked[path] = Checked(self._texts[path], crashed(path, error), Notes())
        return self._checked[path]

    def _check(self, engine: Engine, path: str) -> Checked:
        source = self._texts[path]
        module = engine.project.module(path) if path in engine.concerned else None
        if module is None:
            return Checked(source, parse_report(source), Notes())
        evaluation = engine.evaluate(module)
        notes = Notes([*evaluation.adopted, evaluation], path)
        return Checked(source, engine.report(evaluation), notes)

    def views(self, path: str) -> Views | None:
        """What is known of the objects in a file that is being edited; ``None`` if it does not concern NNX.

        Raises:
            Cancelled: ``pause`` said so.
        """
        checked = self.check(path)
        if path not in self._views or self._views[path][0] is not checked:
            project = self.engine.project
            module = project.module(path) if path in self.engine.concerned else None
            self._views.pop(path, None)
            if module is None:
                return None
            self._views[path] = checked, Views(project, module, checked.notes)
        return self._views[path][1]

    def lenses(self, path: str) -> list[Lens]:
        """The numbers of parameters of the classes in a file that is being edited, where they are known.

        Raises:
            Cancelled: ``pause`` said so.
        """
        source, _, notes = self.check(path)
        return self.structures.lenses(source, notes.classes)

    def variables(self, path: str) -> Sequence[str]:
        """The Variable types that a file defined when it was checked last: good enough while it is being typed."""
        return self._variables.get(path, ())

    def runs(self, path: str) -> Runs:
        """What the code of a file ran on when it was checked last."""
        return self._runs.get(path, Runs())

    @staticmethod
    def _runs_of(engine: Engine, path: str) -> Runs:
        module = engine.project.module(path) if path in engine.concerned else None
        return Runs(*engine.judging.runs_on(module)) if module is not None else Runs()

    def crash(self, path: str) -> str | None:
        """One line on the bug that kept a file from being checked, if one did."""
        checked = self._checked.get(path)
        return checked.unit.problems[-1] if checked is not None and checked.unit.crashed else None

    def findings(self, path: str) -> list[Diagnostic]:
        """The findings in a file that is being edited which neither a comment nor the baseline knows of.

        Raises:
            Cancelled: ``pause`` said so.
        """
        if self._is_silent(path):
            return []
        source, unit, _ = self.check(path)
        units = [each.unit for each in self._checked.values()]
        scanned = {path: closed for path, closed in self._closed.items() if path not in self._texts.edited}
        units += [Unit(path, closed.elsewhere) for path, closed in scanned.items() if closed.elsewhere]
        return self._left(source, unit, together(units, sorted({path, *self._checked, *scanned}))[path])

    def _is_silent(self, path: str) -> bool:
        return not self.settings.switch("enable") or self.excluded(path)

    def _left(self, source: SourceFile, unit: Unit, found: Iterable[Diagnostic]) -> list[Diagnostic]:
        """What neither a comment nor the baseline knows of, of what was found in a file."""
        path = source.path
        left = silence(source, found, self.options_for(path), complete=unit.complete)
        baseline = self._baseline(path)
        if baseline is not None and left:
            left = baseline.compare(left, {path: source}).new
        return sorted(left, key=lambda finding: (finding.span, finding.rule.code))

    # -- files that are not being edited

    def scanned(self, path: str, closed: Closed) -> None:
        """Take what a scan found out about a file."""
        self._closed[path] = closed

    def forget_closed(self) -> None:
        """Forget what scans have found."""
        self._closed.clear()
        self.outdated.clear()

    def closed(self) -> Mapping[str, Sequence[Diagnostic]]:
        """The findings in the files that are not being edited, as far as a scan has seen them."""
        return {path: each.findings for path, each in self._closed.items() if path not in self._texts.edited}

    def look_through(self, paths: Sequence[str]) -> Iterator[Unit]:
        """Check files that are not being edited, each once; what can be read of them."""
        return tour(self.engine, self._texts, paths)

    def closing(self, units: Sequence[Unit]) -> Iterator[tuple[str, Closed]]:
        """What there is to say of files that were looked through."""
        found = together(units, sorted(unit.path for unit in units))
        for unit in units:
            path = unit.path
            with suppress(SourceError, KeyError):  # it has gone meanwhile
                left = () if self._is_silent(path) else tuple(self._left(self._texts[path], unit, found[path]))
                elsewhere = tuple(each for each in unit.findings if each.path != path)
                self._texts.let_go([path])
                yield path, Closed(left, unit.used, unit.heirs, elsewhere)

    def fixes(self, path: str, allowed: Container[Applicability], code: str | None = None) -> list[Edit]:
        """The edits that fix a file that is being edited, all of it or one rule.

        Raises:
            Cancelled: ``pause`` said so.
        """
        before = self._texts[path]

        def check(source: SourceFile) -> list[Diagnostic]:
            self.edit(source)
            return self.findings(path)

        try:
            return fixing(before, check, allowed, code)
        finally:
            self.edit(before)

    def _baseline(self, path: str) -> Baseline | None:
        location = self._configuration.at(os.path.dirname(path)).location("baseline")
        if location is None:
            return None
        from nnx_lint.baseline import Baseline, BaselineError

        if location not in self._baselines:
            try:
                self._baselines[location] = Baseline.read(location)
            except BaselineError as error:
                self.problems.append(str(error))
                self._baselines[location] = None
        return self._baselines[location]


def _go_on() -> None:
    """Never give up."""
