"""Files on disk: which ones a run reads, where their imports start, and how one is rewritten.

A named file is always read; a named folder is walked, and what nobody writes by hand is left out: hidden folders,
environments, builds and caches, unless they are named themselves. Symbolic links to folders are not followed, so a walk
ends. Paths are shown as they were given.

A rewrite is atomic: the new bytes go to a temporary file in the same folder, which then takes the place of the old one,
so that no reader and no failure ever sees half a file.
"""

# Paths stay the strings that they were given as.

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SKIPPED_FOLDERS = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"})
"""Folders that a walk leaves out, besides all whose name starts with a dot."""


@dataclass(slots=True)
class Discovery:
    """The files that some paths stand for, each once, and what is wrong with the other paths."""

    files: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])


def discover(paths: Sequence[str]) -> Discovery:
    """Find the Python files to check; folders are walked in the order of their names."""
    found = Discovery()
    seen: set[str] = set()
    for path in paths:
        if os.path.isdir(path):
            files: Iterable[str] = _walk(path, found.problems)
        elif not os.path.lexists(path):
            found.problems.append(f"{path}: no such file or directory")
            continue
        elif path.endswith(".ipynb"):
            found.problems.append(f"{path}: notebooks are not supported yet")
            continue
        else:
            files = (path,)
        for file in files:
            key = os.path.abspath(file)
            if key not in seen:
                seen.add(key)
                found.files.append(file)
    return found


def _walk(folder: str, problems: list[str]) -> Iterator[str]:
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError as error:
        problems.append(f"{folder}: cannot be read: {error.strerror}")
        return
    prefix = "" if folder == os.curdir else os.path.join(folder, "")
    for entry in entries:
        name = entry.name
        if name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if name not in SKIPPED_FOLDERS:
                yield from _walk(prefix + name, problems)
        elif name.endswith(".py") and entry.is_file():
            yield prefix + name


def import_roots(files: Iterable[str], paths: Iterable[str]) -> tuple[str, ...]:
    """The folders that absolute imports of these files start from.

    These are the nearest folder above each file that is not a regular package itself, and every folder that was named.
    """
    folders = {os.path.abspath(path) for path in paths if os.path.isdir(path)}
    for folder in {os.path.dirname(os.path.abspath(file)) for file in files}:
        while os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        folders.add(folder)
    return tuple(sorted(folders))


def rewrite(path: str, data: bytes) -> None:
    """Replace the content of a file, keeping its permissions; a symbolic link stays one.

    Raises:
        OSError: the file or its folder cannot be written; the file is as it was.
    """
    import tempfile

    target = os.path.realpath(path)
    if not os.access(target, os.W_OK):
        raise PermissionError(13, "the file is read-only")
    before = os.stat(target)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".nnx-lint-")
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, stat.S_IMODE(before.st_mode))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
