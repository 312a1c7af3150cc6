"""The files of a run, each read when somebody first looks at it.

A run that finds everything in its cache reads no file but those that it shows, so reading waits for the first look.
Invariants: a file is read once, and stays as it was read; the order is that of the paths that were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from nnx_lint.source import SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable


class Sources(Mapping[str, SourceFile]):
    """Files by path."""

    def __init__(self, paths: Iterable[str], read: Callable[[str], SourceFile] = SourceFile.read) -> None:
        self._held: dict[str, SourceFile | None] = dict.fromkeys(paths)
        self._read = read
        self.on_disk = read == SourceFile.read

    def __getitem__(self, path: str) -> SourceFile:
        """The file of this path.

        Raises:
            KeyError: it is not one of these files.
            SourceError: it cannot be read.
        """
        source = self._held[path]
        if source is None:
            source = self._held[path] = self._read(path)
        return source

    def __contains__(self, path: object) -> bool:
        return path in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def drop(self, path: str) -> None:
        """Leave out a file, since it cannot be read."""
        del self._held[path]
