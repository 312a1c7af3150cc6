"""One run over some files: read them, ask the engine, drop what comments silence, order the rest.

What the cache knows is not asked again: a unit is checked anew if its file changed, or one that it used, or if another
one may have got heirs of a class that it asked for. A crash of the engine is a bug of ours and must not hide what is
known about other files: it is reported, with the file that it happened on.

Nothing of the engine is imported, and no file read, where the cache knows everything.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nnx_lint import litter
from nnx_lint.silencing import silence
from nnx_lint.source import SourceError, SourceFile
from nnx_lint.sources import Sources
from nnx_lint.units import Unit, crashed, together

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from nnx_lint.cache import Cache, Memory
    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.engine import Engine
    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.model.modules import Module
    from nnx_lint.relevance import Facts
    from nnx_lint.selection import Options

BIG = 400_000
"""Characters of text from which on more than one process is worth its start."""


class Checker:
    """Checks files with one set of options.

    Attributes:
        problems: what kept files from being checked, one line each; any of them makes the run fail.
        notes: what else is worth saying of the run, one line each.
        cache_problem: why the cache could not be written. The answer is the same, so few people want to know.
    """

    def __init__(
        self,
        options: Options,
        roots: Sequence[str],
        *,
        cache: str | None = None,
        jobs: int = 1,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.options = options
        self.roots = roots
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.cache_problem: str | None = None
        self._folder = cache
        self._jobs = jobs
        self._progress = progress

    def read(self, paths: Iterable[str], read: Callable[[str], SourceFile] = SourceFile.read) -> Sources:
        """The files of these paths; they are read when somebody looks at them."""
        return Sources(paths, read)

    def check(self, sources: Mapping[str, SourceFile]) -> list[Diagnostic]:
        """The findings in these files that no comment silences, by file, place and code.

        Files that cannot be read are left out of ``sources``.
        """
        # The cache is about files as they are on disk, not about texts that somebody has in hand.
        if self._folder is not None and isinstance(sources, Sources) and sources.on_disk:
            by_file = self._remembered(sources, self._folder)
        else:
            units = self._run(sources, sources, self._engine(sources))
            if any(unit.knotted for unit in units):
                engine = self._engine(sources)
                engine.preload()
                units = self._run(sources, sources, engine)
            by_file, _ = self._silenced(sources, units)
        return [finding for findings in by_file.values() for finding in findings]

    def _remembered(self, sources: Sources, folder: str) -> dict[str, list[Diagnostic]]:
        """Check what the cache does not know."""
        from nnx_lint import cache

        store = cache.Cache(folder, sources, self.roots, self.options)
        memory = store.read()
        difference = cache.changes(memory) if memory is not None else None
        if memory is None or difference is None:
            return self._remembering(sources, store, None, set())
        changed, fresh = difference
        if changed or sources.keys() != memory.units.keys():
            return self._remembering(sources, store, memory, changed)
        if fresh:
            files = {path: record._replace(stat=fresh.get(path, record.stat)) for path, record in memory.files.items()}
            self.cache_problem = store.write(memory._replace(files=files))
        return self._silenced(sources, list(memory.units.values()), memory)[0]

    def _remembering(
        self, sources: Sources, store: Cache, memory: Memory | None, changed: set[str], *, ordered: bool = False
    ) -> dict[str, list[Diagnostic]]:
        """Check what has changed, or everything, and write the cache.

        Modules are executed when they are asked for, unless that has to be ``ordered`` for modules that import each
        other.
        """
        from nnx_lint.incremental import Watch, outdated, remember, still_known

        watch = Watch(changed if memory is not None else sources)
        engine = self._engine(sources, still_known(memory, changed) if memory is not None else {})
        stale = outdated(memory, changed, engine, sources) if memory is not None else set(sources)
        standing = [memory.units[path] for path in sources if path not in stale] if memory is not None else []
        ordered = ordered or (memory is not None and memory.knotted)
        if ordered:
            self._readable(sources, list(sources))
            engine.preload()
        made = self._run(sources, [path for path in sources if path in stale], engine)
        if not ordered and any(unit.knotted for unit in made):
            return self._remembering(sources, store, None, set(), ordered=True)
        units = [*standing, *made]
        by_file, kept = self._silenced(sources, units, memory, changed)
        self.cache_problem = store.write(remember(engine, watch, units, memory, changed, kept))
        return by_file

    def _engine(self, sources: Mapping[str, SourceFile], facts: Mapping[str, Facts] | None = None) -> Engine:
        from nnx_lint.engine import Engine

        engine = Engine(sources, self.roots, self.options, facts)
        engine.project.run_body = partial(_run_body, engine.project.run_body)
        return engine

    def _run(self, sources: Mapping[str, SourceFile], paths: Iterable[str], engine: Engine) -> list[Unit]:
        """The units of some files."""
        paths = self._readable(sources, paths)
        cost = {path: len(sources[path].text) * (1 if path in engine.concerned else 0.1) for path in paths}
        units: list[Unit] = []
        total = len(paths)
        for unit in self._units(engine, {path: cost[path] for path in sorted(paths)}):
            units.append(unit)
            if self._progress is not None:
                self._progress(len(units), total)
        return units

    def _units(self, engine: Engine, costs: Mapping[str, float]) -> Iterator[Unit]:
        def check(path: str) -> Unit:
            try:
                return engine.check(path)
            except Exception as error:
                return crashed(path, error)
            finally:
                litter.sweep()

        litter.keep()

        if self._jobs > 1 and sum(costs.values()) >= BIG:
            from nnx_lint import workers

            if workers.possible():
                yield from workers.spread(check, costs, self._jobs)
                return
        yield from map(check, costs)

    def _readable(self, sources: Mapping[str, SourceFile], paths: Iterable[str]) -> list[str]:
        """Those of the files that can be read; the others are a problem, and left out from here on."""
        readable: list[str] = []
        for path in list(paths):
            try:
                sources[path]
            except SourceError as error:
                self._complain(str(error))
                if isinstance(sources, Sources):
                    sources.drop(path)
            else:
                readable.append(path)
        return readable

    def _silenced(
        self,
        sources: Mapping[str, SourceFile],
        units: Sequence[Unit],
        memory: Memory | None = None,
        changed: Container[str] = (),
    ) -> tuple[dict[str, list[Diagnostic]], dict[str, list[Diagnostic]]]:
        """The findings by file that no comment silences, and again those of files where that makes a difference."""
        by_file = together(units, list(sources))
        complete = all(unit.complete for unit in units)
        known: dict[str, list[Diagnostic]] = {}
        if memory is not None and complete == all(unit.complete for unit in memory.units.values()):
            known = together(memory.units.values(), list(sources))
        kept: dict[str, list[Diagnostic]] = {}
        for path, findings in by_file.items():
            if memory is not None and path not in changed and path in memory.files and known.get(path) == findings:
                left = memory.kept.get(path, findings)
            else:
                left = silence(sources[path], findings, self.options.for_path(path), complete=complete)
                left = sorted(left, key=lambda finding: (finding.span, finding.rule.code))
            if left != findings:
                kept[path] = left
        of_path = {unit.path: unit for unit in units}
        for path in sources:
            for problem in of_path[path].problems:
                self._complain(problem)
            for note in of_path[path].notes:
                self._note(note)
        return {**by_file, **kept}, kept

    def _complain(self, problem: str) -> None:
        if problem not in self.problems:  # every pass of fixing finds it again
            self.problems.append(problem)

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def _run_body(run: Callable[[Interpreter, Module], None], interp: Interpreter, module: Module) -> None:
    """Execute the statements of a module, whose tree is no litter."""
    _ = module.source.tree
    litter.keep()
    run(interp, module)
