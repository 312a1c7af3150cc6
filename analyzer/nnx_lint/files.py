"""Files on disk: which ones a run reads, where their imports start, and how one is rewritten.

A named file is always read, unless exclusion is forced; a named folder is walked, and what ``exclude`` and .gitignore
name is left out, each judged by the configuration of the folder that it lies in. Symbolic links to folders are not
followed, so a walk ends. Paths are shown as they were given.

A rewrite is atomic: the new bytes go to a temporary file in the same folder, which then takes the place of the old one,
so that no reader and no failure ever sees half a file.
"""

# Paths stay the strings that they were given as.

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from nnx_lint.config.gitignore import Ignores, is_ignored
from nnx_rules.records import Entity, made

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nnx_lint.config.settings import Configuration

ENDINGS = (".py", ".ipynb")
"""What a walk takes; a file that is named may be called anything."""

TOPS = frozenset({"pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg"})
"""What lies in the top folder of a repository or a distribution."""


class Discovery(Entity):
    """The files that some paths stand for, each once, and what is wrong with the other paths."""

    files: list[str] = made(factory=list[str])
    problems: list[str] = made(factory=list[str])


def discover(paths: Sequence[str], configuration: Configuration | None = None) -> Discovery:
    """Find the files to check; folders are walked in the order of their names.

    Raises:
        ConfigError: the configuration of a folder is wrong.
    """
    if configuration is None:
        from nnx_lint.config.settings import Configuration

        configuration = Configuration.isolated()
    found = Discovery()
    seen: set[str] = set()
    walk = _Walk(configuration, found.problems)
    for path in paths:
        try:
            os.lstat(path)
        except FileNotFoundError:
            found.problems.append(f"{path or repr(path)}: no such file or directory")
            continue
        except (OSError, ValueError) as error:
            found.problems.append(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}")
            continue
        files = walk.folder(path) if os.path.isdir(path) else walk.file(path)
        for file, absolute in files:
            if absolute not in seen:
                seen.add(absolute)
                found.files.append(file)
    return found


class _Walk:
    """Finds files, as pairs of the path that is shown and the absolute one."""

    def __init__(self, configuration: Configuration, problems: list[str]) -> None:
        self.configuration = configuration
        self.problems = problems
        self._ignores: dict[str, Ignores] = {}

    def file(self, path: str) -> Iterator[tuple[str, str]]:
        """A file that is named: always, unless what is excluded is left out by force."""
        if not is_excluded(path, self.configuration, self._ignores):
            yield path, os.path.abspath(path)

    def folder(self, path: str) -> Iterator[tuple[str, str]]:
        """The files of a folder that is named: always, unless what is excluded is left out by force."""
        if is_excluded(path, self.configuration, self._ignores):
            return
        try:
            ignores = Ignores.at(os.path.abspath(path))
        except OSError as error:
            self.problems.append(f"{path}: cannot be read: {error.strerror}")
            return
        yield from self._entries("" if path == os.curdir else os.path.join(path, ""), os.path.abspath(path), ignores)

    def _entries(self, prefix: str, folder: str, ignores: Ignores) -> Iterator[tuple[str, str]]:
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            self.problems.append(f"{prefix.rstrip(os.sep) or folder}: cannot be read: {error.strerror}")
            return
        settings = self.configuration.at(folder)
        ignored = settings.switch("respect-gitignore")
        for entry in entries:
            name = entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not name.endswith(ENDINGS):
                continue
            path = os.path.join(folder, name)
            if settings.excludes(path, is_folder) or (ignored and ignores.excludes(path, is_folder)):
                continue
            if is_folder:
                yield from self._entries(f"{prefix}{name}{os.sep}", path, ignores.inside(path))
            elif entry.is_file(follow_symlinks=False) or os.path.isfile(path):  # a link may lead to itself
                yield prefix + name, path


def is_excluded(path: str, configuration: Configuration, known: dict[str, Ignores] | None = None) -> bool:
    """Whether a path is left out although it is named; ``known`` keeps what git ignores for the next question."""
    absolute = os.path.abspath(path)
    is_folder = os.path.isdir(absolute)
    settings = configuration.at(absolute if is_folder else os.path.dirname(absolute))
    if not settings.switch("force-exclude"):
        return False
    ignored = settings.switch("respect-gitignore")
    return settings.excludes_named(absolute, is_folder) or (
        ignored and is_ignored(absolute, is_folder, {} if known is None else known)
    )


def is_top(folder: str) -> bool:
    """Whether a folder is the top of a repository or a distribution."""
    return any(os.path.lexists(os.path.join(folder, name)) for name in TOPS)


def import_roots(files: Iterable[str], paths: Iterable[str]) -> tuple[str, ...]:
    """The folders that no absolute import of these files looks above.

    These are the folders that were named, and of a file that lies in none of them the nearest one that is no regular
    package itself.
    """
    folders = {os.path.abspath(path) for path in paths if os.path.isdir(path)}
    within = tuple(os.path.join(folder, "") for folder in folders)
    for folder in map(os.path.abspath, set(map(os.path.dirname, files))):
        if os.path.join(folder, "").startswith(within):
            continue
        while os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        folders.add(folder)
    return tuple(sorted(folders))


def rewrite(path: str, data: bytes) -> None:
    """Replace the content of a file, keeping its permissions, or make it; a symbolic link stays one.

    Raises:
        OSError: the file or its folder cannot be written; the file is as it was.
    """
    import tempfile

    target = os.path.realpath(path)
    if not os.path.exists(target):
        os.umask(umask := os.umask(0))
        mode = 0o666 & ~umask
    elif os.access(target, os.W_OK):
        mode = stat.S_IMODE(os.stat(target).st_mode)
    else:
        raise PermissionError(13, "the file is read-only")
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".nnx-lint-")
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
