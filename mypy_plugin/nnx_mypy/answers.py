"""What the analyzer says at present: from what the last run left, and from the analyzer where that is not enough.

The analyzer begins as soon as mypy does, in a process of its own, and is waited for as late as possible: when somebody
wants the findings in a file for which those of the last run may not hold any more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

from mypy.errors import CompileError
from mypy.nodes import MypyFile

from nnx_lint.config.reading import ConfigError
from nnx_mypy.declared import Declared
from nnx_mypy.findings import Finding, FindingsError, Found, Recalled, find, recall
from nnx_mypy.settings import Settings
from nnx_mypy.worker import Worker

SMALL = 50_000
"""Bytes of files up to which the analyzer takes less time than a process of its own, where it is loaded already."""
NOTHING = Recalled(frozenset(), {}, frozenset())


class Answers:
    """The findings. All methods raise ``CompileError``, with which mypy ends, where a configuration is wrong.

    Args:
        cache: the folder of mypy's cache.
        project: the folder of the project.
    """

    def __init__(self, cache: str, project: str) -> None:
        self._project = project
        self._declared = Declared(cache)
        self._worker = Worker()
        self._is_asked = False
        self._options: Mapping[str, object] = {}
        self._recalled: Recalled | None = None
        self._found: Found | None = None

    def begin(self) -> Recalled:
        """Look at what is known, and let the analyzer begin with the rest, unless that is done already."""
        if self._recalled is None:
            with _told():
                settings = Settings.of(self._project)
                self._recalled = NOTHING
                if settings.findings:
                    self._recalled = recall(self._project, settings.options, self._declared.stubs)
            self._options = settings.options
            if self._recalled.open is not None and not self._recalled.open:
                self._found = self._recalled.found
            is_near = "nnx_lint.engine" in sys.modules and _size(self._recalled) <= SMALL
            self._is_asked = self._found is None and not is_near
            if self._is_asked:
                self._worker.ask(self._project, settings.options, self._declared.stubs)
        return self._recalled

    def are_about(self, path: str) -> bool:
        """Whether a file, by its absolute path, is one of those that the analyzer looks at."""
        return path in self.begin().files

    def are_known(self, path: str) -> bool:
        """Whether the findings in a file are known without waiting."""
        recalled = self.begin()
        return self._found is not None or (recalled.open is not None and path not in recalled.open)

    def at(self, path: str) -> tuple[Finding, ...]:
        """The findings in a file."""
        found = self.begin().found if self._found is None and self.are_known(path) else self.everywhere()
        return found.get(path, ())

    def everywhere(self) -> Found:
        """The findings in all files; none where looking for them has failed, which is told once."""
        self.begin()
        if self._found is None:
            is_asked, self._is_asked, self._found = self._is_asked, False, {}
            with _told():
                if is_asked:
                    self._found = self._worker.answer()
                else:
                    self._found = find(self._project, self._options, self._declared.stubs)
        return self._found

    def learn(self, tree: MypyFile, modules: Mapping[str, MypyFile]) -> None:
        """Hand over what mypy knows of what a module imports."""
        if self._declared.learn(tree, modules, self.begin().files):
            self.forget()

    def forget(self) -> None:
        """Files may have changed: look again."""
        if self._is_asked:
            with _told():
                self._worker.answer()
            self._is_asked = False
        self._recalled = self._found = None


def _size(recalled: Recalled) -> int:
    """How many bytes the files have whose findings are open."""
    size = 0
    for path in recalled.files if recalled.open is None else recalled.open:
        with suppress(OSError):
            size += os.path.getsize(path)
    return size


@contextmanager
def _told() -> Generator[None, None, None]:
    """Let mypy end with the message where a configuration is wrong."""
    try:
        yield
    except (ConfigError, FindingsError) as error:
        raise CompileError([f"error: {error}"]) from None
