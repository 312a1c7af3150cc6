"""One run of ``nnx-lint check``: what holds for it, which files it is about, and how it ends."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from nnx_lint.cli import CLEAN, FAILURE, UsageError, complain
from nnx_lint.config.reading import ConfigError, Document, shown
from nnx_lint.config.settings import Configuration
from nnx_lint.selection import SelectionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.config.settings import Settings


def configured(flags: dict[str, object]) -> Configuration:
    """The configuration of a run with these flags.

    Raises:
        UsageError: it is wrong.
    """
    try:
        return Configuration(Document(None, os.getcwd(), flags))
    except (ConfigError, SelectionError) as error:
        raise UsageError(str(error)) from None
    except FileNotFoundError:
        raise UsageError("the current folder does not exist any more") from None


class Run:
    """One run over some paths. ``data`` is what was read from standard input, if it was; the path is its name then.

    Raises:
        UsageError: the configuration is wrong.
    """

    def __init__(self, flags: dict[str, object], paths: list[str], data: bytes | None = None) -> None:
        self.paths = paths
        self.data = data
        self.configuration = configured(flags)
        try:
            self.settings = self._settings()
            self._discover()
        except ConfigError as error:
            raise UsageError(str(error)) from None

    def _settings(self) -> Settings:
        """What holds for the run as a whole: the settings of the current folder, or of a path that lies elsewhere."""
        here = os.getcwd()
        for path in map(os.path.abspath, self.paths):
            folder = path if os.path.isdir(path) else os.path.dirname(path)
            if folder != here and not folder.startswith(os.path.join(here, "")):
                return self.configuration.at(folder)
        return self.configuration.at(here)

    def _discover(self) -> None:
        from nnx_lint.files import discover, import_roots, is_excluded, is_top

        self.problems: list[str] = []
        if self.data is None:
            found = discover(self.paths, self.configuration)
            self.files, self.problems = found.files, found.problems
        else:
            self.files = [] if is_excluded(self.paths[0], self.configuration) else self.paths
        self.options = self.configuration.options(self.files)
        here = [os.getcwd()] if is_top(os.getcwd()) else []
        self.roots = import_roots(self.files, [*here, *self.paths, *self.configuration.sources()])

    def parts(self) -> frozenset[str]:
        """The files that were named one by one, without others that lie next to them or in the package around them.

        What such a file does may show only where one of these others uses it.
        """
        named = [path for path in self.paths if path in self.files and not os.path.isdir(path)]
        taken = frozenset(map(os.path.abspath, self.files)) if named else frozenset[str]()
        return frozenset(path for path in named if not taken.issuperset(_neighbours(os.path.abspath(path))))

    def finish(self, hint: Sequence[str] = ()) -> int:
        """Do what is asked for, and return the exit code."""
        if self.settings.switch("show-files"):
            sys.stdout.writelines(f"{path}\n" for path in self.files)
            return self._end([], CLEAN)
        if self.settings.switch("show-settings"):
            return self._show_settings()
        self.problems = [_with_command_hint(problem, hint) for problem in self.problems]
        if not self.files and not self.problems and self.data is None:
            self.remark("warning: no Python files found under the given paths")
        from nnx_lint.cli.actions import Actions

        actions = Actions(self)
        code = actions.act()
        for note in actions.checker.notes:
            self.remark(f"note: {note}")
        if self.settings.switch("verbose"):
            self._say_more(actions.checker.cache_problem)
        return self._end(actions.checker.problems, code)

    def _say_more(self, cache_problem: str | None) -> None:
        for path in self.configuration.files():
            complain(f"verbose: read the configuration {shown(path)}")
        complain(f"verbose: checked {len(self.files)} file{'' if len(self.files) == 1 else 's'}")
        if cache_problem is not None:
            complain(f"verbose: {cache_problem}")

    def remark(self, text: str) -> None:
        """Say something that does not make the run fail."""
        if not self.settings.switch("quiet"):
            complain(text)

    def _end(self, problems: Sequence[str], code: int) -> int:
        for problem in (*self.problems, *problems):
            complain(problem)
        if self.problems or problems:
            return FAILURE
        return CLEAN if self.settings.switch("exit-zero") else code

    def _show_settings(self) -> int:
        from nnx_lint.cli.settings import described

        if not self.files:
            return self._end(["no file to show the settings of"] if not self.problems else [], CLEAN)
        sys.stdout.writelines(described(self.configuration, self.files[0]))
        return self._end([], CLEAN)


def _neighbours(path: str) -> Iterator[str]:
    """The Python files around one: in its folder, and in the folders around the packages that it lies in."""
    folder = os.path.dirname(path)
    while True:
        try:
            names = os.listdir(folder)
        except OSError:
            return
        yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))
        above = os.path.dirname(folder)
        if "__init__.py" not in names or above == folder:
            return
        folder = above


def _with_command_hint(problem: str, words: Sequence[str]) -> str:
    """Someone who meant a command gets told so: ``nnx-lint rulse`` names no file."""
    from nnx_lint.cli import COMMANDS
    from nnx_lint.selection import nearest

    path, _, reason = problem.partition(": ")
    hint = nearest(path, COMMANDS) if path in words and "no such file" in reason else None
    return problem + (f"; did you mean `nnx-lint {hint}`?" if hint else "")
