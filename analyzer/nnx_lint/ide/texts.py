"""The files that an editor's analysis sees: what is being edited wins over what is on disk.

A text that is edited takes the syntax of the one before with it (:mod:`~nnx_lint.syntax.edits`).

Invariants: a file that is not being edited is as it is on disk whenever somebody looks at it; it is read, and with that
parsed, again only if it was written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from nnx_lint.source import SourceFile


class Texts(Mapping[str, SourceFile]):
    """Files by absolute path; those on disk have been found by a walk."""

    def __init__(self) -> None:
        self._buffers: dict[str, SourceFile] = {}
        self._on_disk: dict[str, None] = {}
        self._read: dict[str, tuple[tuple[int, int], SourceFile]] = {}

    def edit(self, source: SourceFile) -> None:
        """Take the text of a file that is being edited."""
        known = self._buffers.get(source.path)
        if known is not None and known is not source:
            source.follow(known)
        self._buffers[source.path] = source

    def close(self, path: str) -> None:
        """See a file as it is on disk again."""
        self._buffers.pop(path, None)

    def found(self, paths: Iterable[str]) -> bool:
        """Say which files are on disk; whether that was news."""
        before, self._on_disk = self._on_disk, dict.fromkeys(paths)
        return before != self._on_disk

    def settle(self, path: str) -> None:
        """See whether a file on disk that was found is still there."""
        if not os.path.exists(path):
            self._on_disk.pop(path, None)

    @property
    def edited(self) -> Mapping[str, SourceFile]:
        """The files that are being edited."""
        return self._buffers

    def __getitem__(self, path: str) -> SourceFile:
        """The file of this path.

        Raises:
            KeyError: it is not one of these files.
            SourceError: it cannot be read.
        """
        if path in self._buffers:
            return self._buffers[path]
        if path not in self._on_disk:
            raise KeyError(path)
        return self.read(path)

    def read(self, path: str) -> SourceFile:
        """A file as it is on disk, whether it is one of these or not.

        Raises:
            SourceError: it cannot be read.
        """
        try:
            status = os.stat(path)
        except OSError:
            self._read.pop(path, None)
            return SourceFile.read(path)  # it says what is wrong
        stamp = status.st_mtime_ns, status.st_size
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            known = self._read[path] = stamp, SourceFile.read(path)
        return known[1]

    def let_go(self, paths: Iterable[str]) -> None:
        """Do not hold some files that are not being edited: they are read again if anybody looks at them."""
        for path in paths:
            self._read.pop(path, None)

    def __contains__(self, path: object) -> bool:
        return path in self._buffers or path in self._on_disk

    def __iter__(self) -> Iterator[str]:
        yield from self._on_disk
        yield from (path for path in self._buffers if path not in self._on_disk)

    def __len__(self) -> int:
        return len(self._on_disk | self._buffers)
