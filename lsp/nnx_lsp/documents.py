"""Open documents: a text file, or a notebook whose cells are one program.

A document has the path by which the analysis knows it. One that was never saved has that where its URI says it will
lie, so that others can import it. Other documents that are no files (one without a place yet, a version in a
repository) have a path that nobody else has; what a URI of a cell looks like means nothing.

Invariants: ``source`` is the text of the client, as one program; a position is in it where the client says that it is.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from lsprotocol import types
from pygls import uris

from nnx_lint.notebooks import Notebook
from nnx_lint.source import SourceFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.diagnostics import Span

UNSAVED = "untitled"
"""The scheme of documents that were never saved."""


def path_of(uri: str) -> str:
    """The absolute path by which the analysis knows a document."""
    scheme, _, rest = uri.partition(":")
    if scheme == UNSAVED and rest.startswith("/"):
        uri = f"file://{rest.removeprefix('//')}"
    path = uris.to_fs_path(uri)
    if path is not None:
        return os.path.normpath(path)
    return str(Path(Path.cwd().anchor, f"{scheme}:", quote(rest, safe="")))


def uri_of(path: str) -> str:
    """The URI of a file."""
    return uris.from_fs_path(path) or path


class Cell(NamedTuple):
    """A document of the client: a file, or a cell of a notebook, with the line and the offset that it begins at."""

    uri: str
    version: int | None
    line: int
    start: int


class Document:
    """An open file or notebook.

    ``uri`` is that of the file or the notebook, ``cells`` are the documents of the client that it is made of, in order.
    """

    def __init__(self, uri: str, source: SourceFile, cells: Sequence[tuple[str, int | None]], encoding: str) -> None:
        self.uri = uri
        self.path = source.path
        self.source = source
        self._encoding = encoding
        starts = source.starts if isinstance(source, Notebook) else (0,)
        lines = [source.location(start)[0] - 1 for start in starts]
        self.cells = [Cell(*cell, *place) for cell, *place in zip(cells, lines, starts, strict=True)]
        self._shift = 1 if source.encoding == "utf-8-sig" else 0  # the client sees a byte order mark, we do not

    @classmethod
    def of_text(cls, uri: str, text: str, version: int | None, encoding: str) -> Document:
        """A text file."""
        return cls(uri, SourceFile.from_text(text, path_of(uri)), [(uri, version)], encoding)

    @classmethod
    def of_cells(cls, uri: str, cells: Sequence[tuple[str, int | None, str]], encoding: str) -> Document:
        """A notebook, from the URIs, versions and texts of its code cells."""
        source = Notebook.from_cells([text for _, _, text in cells], path_of(uri))
        return cls(uri, source, [cell[:2] for cell in cells], encoding)

    def offset(self, uri: str, position: types.Position) -> int:
        """The offset of a position, or of the nearest one that exists."""
        cell = self.cell(uri)
        line = cell.line + position.line + 1
        if line > self.source.line_count:
            return len(self.source.text)
        text = self.source.line_text(line)
        units = position.character - (self._shift if line == 1 else 0)
        return self.source.line_start(line) + _characters(text, max(units, 0), self._encoding)

    def cell(self, uri: str) -> Cell:
        """The cell of this URI."""
        return next(cell for cell in self.cells if cell.uri == uri)

    def cell_at(self, offset: int) -> Cell:
        """The cell that an offset lies in."""
        return self.cells[max(bisect_right([cell.start for cell in self.cells], offset) - 1, 0)]

    def position(self, offset: int) -> types.Position:
        """The position of an offset, in its cell."""
        row, column = self.source.location(offset)
        start = self.source.line_start(row)
        units = _units(self.source.text[start : start + column - 1], self._encoding)
        first = self.cell_at(offset).line if len(self.cells) > 1 else 0
        return types.Position(row - 1 - first, units + (self._shift if row == 1 else 0))

    def range(self, span: Span) -> types.Range:
        """The range of a span, which lies in one cell."""
        return types.Range(self.position(span.start), self.position(span.end))


def _units(text: str, encoding: str) -> int:
    """How long a text is for the client."""
    if text.isascii() or encoding == types.PositionEncodingKind.Utf32:
        return len(text)
    if encoding == types.PositionEncodingKind.Utf8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(character > "\uffff" for character in text)


def _characters(text: str, units: int, encoding: str) -> int:
    """How many characters of a line the client means; the end of the line is the most."""
    if text.isascii() or encoding == types.PositionEncodingKind.Utf32:
        return min(units, len(text))
    length = 0
    for index, character in enumerate(text):
        if length >= units:
            return index
        length += _units(character, encoding)
    return len(text)
