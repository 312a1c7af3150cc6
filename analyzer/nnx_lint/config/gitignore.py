"""What git ignores: the .gitignore files from the root of a repository down to a folder, and .git/info/exclude.

A file nearer to a path wins over one further up; within a file the last pattern that matches. Outside of a repository
only the .gitignore files at and below the folder where a walk starts count: those of a home directory concern nobody.
What is ignored on one machine only (``core.excludesFile``) is left aside, so that every machine finds the same files.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from nnx_lint.config.patterns import Patterns

NAME = ".gitignore"


class Ignores(NamedTuple):
    """The patterns that govern the entries of a folder: pairs of a folder and its patterns, the outermost first."""

    sources: tuple[tuple[str, Patterns], ...] = ()

    @classmethod
    def at(cls, folder: str) -> Ignores:
        """Those of a folder (an absolute path) in which a walk starts."""
        root = _repository(folder)
        if root is None:
            return cls()._with(folder)
        found = cls()._with(root, os.path.join(".git", "info", "exclude"))
        steps = os.path.relpath(folder, root)
        for depth, _ in enumerate(parts := [] if steps == os.curdir else steps.split(os.sep)):
            found = found._with(os.path.join(root, *parts[:depth]))
        return found._with(folder)

    def inside(self, folder: str) -> Ignores:
        """Those of a folder in that one; a repository in a repository starts afresh."""
        return Ignores.at(folder) if os.path.exists(os.path.join(folder, ".git")) else self._with(folder)

    def excludes(self, path: str, is_folder: bool) -> bool:
        """Whether an entry (an absolute path) of the folder is ignored."""
        for folder, patterns in reversed(self.sources):
            verdict = patterns.decide(_relative(path, folder), is_folder)
            if verdict is not None:
                return verdict
        return False

    def _with(self, folder: str, name: str = NAME) -> Ignores:
        patterns = _read(os.path.join(folder, name))
        return self if patterns is None else Ignores((*self.sources, (folder, patterns)))


def is_ignored(path: str, is_folder: bool, known: dict[str, Ignores]) -> bool:
    """Whether git ignores a path (an absolute one), or a folder of the repository that it lies in.

    ``known`` keeps what was read for the next question.
    """
    folder = os.path.dirname(path)
    root = _repository(folder) or folder
    entries = [path]
    while entries[-1] != root and os.path.dirname(entries[-1]) != root:
        entries.append(os.path.dirname(entries[-1]))
    for entry in entries:
        above = os.path.dirname(entry)
        if above not in known:
            known[above] = Ignores.at(above)
        if known[above].excludes(entry, is_folder or entry != path):
            return True
    return False


def _repository(folder: str) -> str | None:
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _read(path: str) -> Patterns | None:
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            return Patterns(file)
    except OSError:
        return None


def _relative(path: str, folder: str) -> str:
    start = len(folder) if folder.endswith(os.sep) else len(folder) + 1
    return path[start:] if os.sep == "/" else path[start:].replace(os.sep, "/")
