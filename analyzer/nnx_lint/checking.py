"""One run over some files: read them, ask the engine, drop what comments silence, order the rest.

The engine answers for all files at once, since a class in one explains a finding in another. A crash in it is a bug of
ours and must not hide what is known about the other files: the files it crashes on are found, named, and left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.source import SourceError, SourceFile
from nnx_lint.suppressions import read_suppressions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.selection import Options

Sources = dict[str, SourceFile]
"""Files by their path, in the order in which they are reported."""


class Checker:
    """Checks files with one set of options.

    Attributes:
        problems: what kept files from being checked, one line each; any of them makes the run fail.
    """

    def __init__(self, options: Options, roots: Sequence[str]) -> None:
        self.options = options
        self.roots = roots
        self.problems: list[str] = []

    def read(self, paths: Iterable[str], read: Callable[[str], SourceFile] = SourceFile.read) -> Sources:
        """Read files; one that cannot be read, or has no syntax tree, is a problem and left out."""
        sources: Sources = {}
        for path in paths:
            try:
                source = read(path)
            except SourceError as error:
                self.problems.append(str(error))
                continue
            problem = source.error
            if problem is None:
                sources[path] = source
            else:
                self.problems.append(f"{path}:{problem.line}:{problem.column}: syntax error: {problem.message}")
        return sources

    def check(self, sources: Sources) -> list[Diagnostic]:
        """The findings in these files that no comment silences, by file, place and code."""
        order = {path: index for index, path in enumerate(sources)}
        found = {diagnostic: None for diagnostic in self._ask(list(sources.values())) if diagnostic.path in order}
        suppressions = {path: read_suppressions(sources[path]) for path in {finding.path for finding in found}}
        kept = [finding for finding in found if not suppressions[finding.path].cover(finding, sources[finding.path])]
        return sorted(kept, key=lambda finding: (order[finding.path], finding.span, finding.rule.code))

    def _ask(self, files: list[SourceFile]) -> list[Diagnostic]:
        try:
            return _engine_check(files, self.roots, self.options)
        except Exception as error:
            together = error
        alone: list[Diagnostic] = []
        sound: list[SourceFile] = []
        for file in files:
            try:
                alone += _engine_check([file], self.roots, self.options)
                sound.append(file)
            except Exception as error:
                self._report(f"{file.path}: internal error", error)
        if len(sound) == len(files):
            self._report("internal error, files are checked one by one", together)
            return alone
        try:
            return _engine_check(sound, self.roots, self.options)
        except Exception as error:
            self._report("internal error, files are checked one by one", error)
            return alone

    def _report(self, what: str, error: Exception) -> None:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f" ({place.tb_frame.f_code.co_filename}:{place.tb_lineno})" if place is not None else ""
        line = f"{what}: {type(error).__name__}: {error}{where}; this is a bug in nnx-lint, please report it"
        if line not in self.problems:  # a crash repeats with every pass of fixing
            self.problems.append(line)


def _engine_check(files: Sequence[SourceFile], roots: Sequence[str], options: Options) -> list[Diagnostic]:
    from nnx_lint.engine import check

    return check(files, roots=roots, options=options)
