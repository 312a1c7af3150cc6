"""The files that an editor's analysis sees: what is being edited wins over what is on disk.

Invariants: a file that is not being edited is read each time that somebody looks at it, and not kept here; the engine
keeps what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nnx_lint.source import SourceFile


class Texts(Mapping[str, SourceFile]):
    """Files by absolute path; those on disk have been found by a walk."""

    def __init__(self) -> None:
        self._buffers: dict[str, SourceFile] = {}
        self._on_disk: dict[str, None] = {}

    def edit(self, source: SourceFile) -> None:
        """Take the text of a file that is being edited."""
        self._buffers[source.path] = source

    def close(self, path: str) -> None:
        """See a file as it is on disk again."""
        self._buffers.pop(path, None)

    def found(self, paths: Iterable[str]) -> bool:
        """Say which files are on disk; whether that was news."""
        before, self._on_disk = self._on_disk, dict.fromkeys(paths)
        return before != self._on_disk

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
        return SourceFile.read(path)

    def __contains__(self, path: object) -> bool:
        return path in self._buffers or path in self._on_disk

    def __iter__(self) -> Iterator[str]:
        yield from self._on_disk
        yield from (path for path in self._buffers if path not in self._on_disk)

    def __len__(self) -> int:
        return len(self._on_disk | self._buffers)
