r"""One Python file: its text, its syntax tree, and the way from one kind of position to another.

``SourceFile.text`` is the decoded file with its newlines as they are, and every position in the analyzer is a character
offset into it. Python's own positions differ: ``ast`` gives a row and a column in *UTF-8 bytes*, people and editors
count rows and columns from one, in characters. The conversions live here and nowhere else, and an ASCII file pays
nothing for them.

Invariants: lines end where Python's tokenizer ends them (``\n``, ``\r\n``, ``\r``, and not at the form feeds and
Unicode separators that ``str.splitlines`` also splits at); a file that can be decoded always gives a ``SourceFile``,
and what stops it from being parsed is in ``error``, never raised; encoding the unchanged text gives back the bytes
that were read.
"""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from nnx_lint.diagnostics import Span

BOM = "\ufeff"
BOM_BYTES = b"\xef\xbb\xbf"


class SourceError(Exception):
    """A file has no usable text: it cannot be opened, decoded, or it is not text at all."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """Why a file has no syntax tree; line and column count from one, the column in characters."""

    line: int
    column: int
    message: str


class SourceFile:
    """A decoded Python file.

    Attributes:
        path: the name that is shown to people, as it was given.
        text: the whole text, without a byte order mark, newlines as they are in the file.
        encoding: the codec that gives back the file's bytes (``utf-8-sig`` where it began with a byte order mark).
    """

    __slots__ = ("_ascii", "_error", "_line_starts", "_parsed", "_tree", "encoding", "path", "text")

    def __init__(self, path: str, text: str, encoding: str) -> None:
        self.path = path
        self.text = text
        self.encoding = encoding
        self._ascii = text.isascii()
        self._line_starts: list[int] | None = None
        self._parsed = False
        self._tree: ast.Module | None = None
        self._error: SyntaxProblem | None = None

    def __repr__(self) -> str:
        return f"SourceFile({self.path!r}, {len(self.text)} characters)"

    @classmethod
    def read(cls, path: str) -> SourceFile:
        """Read a file from disk.

        Raises:
            SourceError: it cannot be opened or decoded, or holds null bytes.
        """
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise SourceError(path, f"cannot be read: {error.strerror or error}") from None
        return cls.from_bytes(data, path)

    @classmethod
    def from_bytes(cls, data: bytes, path: str = "<stdin>") -> SourceFile:
        """Decode as Python does: a byte order mark or a PEP 263 comment names the encoding, else UTF-8.

        Raises:
            SourceError: the encoding is unknown, the bytes do not decode, or there is a null byte.
        """
        encoding = _detect_encoding(data, path)
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            reason = f"is not valid {encoding}: byte 0x{data[error.start]:02x} on line {line}"
            raise SourceError(path, reason) from None
        except (UnicodeError, LookupError) as error:
            raise SourceError(path, f"cannot be decoded as {encoding}: {error}") from None
        if "\0" in text:
            line = text.count("\n", 0, text.index("\0")) + 1
            raise SourceError(path, f"is not a text file: null byte on line {line}")
        return cls(path, text, encoding)

    @classmethod
    def from_text(cls, text: str, path: str = "<stdin>") -> SourceFile:
        """Wrap text that is decoded already, such as an editor's buffer."""
        if text.startswith(BOM):
            return cls(path, text[1:], "utf-8-sig")
        return cls(path, text, "utf-8")

    def with_text(self, text: str) -> SourceFile:
        """The same file with another text: what a fix makes of it."""
        return SourceFile(self.path, text, self.encoding)

    def to_bytes(self) -> bytes:
        """The file's bytes, in the encoding that it was read in.

        Raises:
            SourceError: the text has a character that the encoding lacks.
        """
        try:
            return self.text.encode(self.encoding)
        except UnicodeError as error:
            raise SourceError(self.path, f"cannot be encoded as {self.encoding}: {error}") from None

    # The syntax tree, parsed when it is first asked for.

    @property
    def tree(self) -> ast.Module | None:
        """The syntax tree, or ``None`` where the text does not parse."""
        if not self._parsed:
            self._parse()
        return self._tree

    @property
    def error(self) -> SyntaxProblem | None:
        """Why there is no syntax tree, or ``None``."""
        if not self._parsed:
            self._parse()
        return self._error

    def _parse(self) -> None:
        self._parsed = True
        try:
            with warnings.catch_warnings():
                # The checked code's own `\d` in a plain string, or `x is 1`, is not ours to print.
                warnings.simplefilter("ignore")
                self._tree = ast.parse(self.text)
        except SyntaxError as error:
            self._error = self._problem(error)
        except (RecursionError, MemoryError):
            self._error = SyntaxProblem(1, 1, "too deeply nested to be parsed")
        except ValueError as error:  # null bytes and lone surrogates
            self._error = SyntaxProblem(1, 1, str(error))

    def _problem(self, error: SyntaxError) -> SyntaxProblem:
        # CPython places some errors on line 0 or after the end of the file.
        line = min(max(error.lineno or 1, 1), self.line_count)
        column = max(error.offset or 1, 1) if error.lineno == line else 1
        return SyntaxProblem(line, column, error.msg)

    # Positions.

    @property
    def _starts(self) -> list[int]:
        if self._line_starts is None:
            self._line_starts = _find_line_starts(self.text)
        return self._line_starts

    @property
    def line_count(self) -> int:
        """Number of lines; text that ends in a newline has an empty last one."""
        return len(self._starts)

    def offset(self, line: int, utf8_column: int) -> int:
        """The offset of a position as ``ast`` gives it: a line from one, a column from zero in UTF-8 bytes.

        Positions outside of the text (older interpreters give some inside of f-strings) are moved to its nearest edge.
        """
        starts = self._starts
        if line > len(starts):
            return len(self.text)
        start = starts[line - 1]
        end = starts[line] if line < len(starts) else len(self.text)
        if not self._ascii:
            content = self.text[start:end]
            if not content.isascii():
                utf8 = content.encode("utf-8", "surrogatepass")[:utf8_column]
                return start + len(utf8.decode("utf-8", "ignore"))
        return min(start + utf8_column, end)

    def span(self, node: ast.AST) -> Span:
        """The text of a node.

        A node without a position of its own (``arguments``, ``withitem``, ...) reaches from its first to its last part.

        Raises:
            ValueError: the node has neither a position nor parts that have one.
        """
        if isinstance(node, ast.Module):
            return Span(0, len(self.text))
        end_line: int | None = getattr(node, "end_lineno", None)
        end_column: int | None = getattr(node, "end_col_offset", None)
        if end_line is not None and end_column is not None:
            start = self.offset(getattr(node, "lineno"), getattr(node, "col_offset"))  # noqa: B009
            return Span(start, self.offset(end_line, end_column))
        parts = [self.span(part) for part in ast.walk(node) if hasattr(part, "end_lineno")]
        if not parts:
            raise ValueError(f"a bare {type(node).__name__} has no position")
        return Span(min(part.start for part in parts), max(part.end for part in parts))

    def location(self, offset: int) -> tuple[int, int]:
        """The row and column of an offset, both from one, the column in characters."""
        starts = self._starts
        row = bisect_right(starts, offset)
        return row, offset - starts[row - 1] + 1

    # Text.

    def segment(self, place: Span | ast.AST) -> str:
        """The text of a span or node."""
        span = place if isinstance(place, Span) else self.span(place)
        return self.text[span.start : span.end]

    def line_start(self, line: int) -> int:
        """The offset of the first character of a line (from one)."""
        return self._starts[line - 1]

    def lines(self) -> list[str]:
        """The lines with their newlines; joined they are the text."""
        starts = self._starts
        lines = [self.text[start:end] for start, end in zip(starts, (*starts[1:], len(self.text)), strict=True)]
        return lines if lines[-1] else lines[:-1]

    def line_text(self, line: int) -> str:
        """A line (from one) without its newline."""
        starts = self._starts
        end = starts[line] if line < len(starts) else len(self.text)
        return self.text[starts[line - 1] : end].rstrip("\r\n")

    def line_indent(self, line: int) -> str:
        """The white space that a line (from one) begins with."""
        text = self.line_text(line)
        return text[: len(text) - len(text.lstrip(" \t\f"))]

    @property
    def newline(self) -> str:
        """The newline that the file uses (its first one), for fixes that add lines."""
        starts = self._starts
        if len(starts) == 1:
            return "\n"
        before = self.text[: starts[1]]
        return before[len(before.rstrip("\r\n")) :]


def _find_line_starts(text: str) -> list[int]:
    if "\r" not in text:
        starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
        starts.pop()  # the end of the last line, plus a newline that it does not have
        return starts
    starts = [0]
    position = 0
    for line in text.split("\n"):
        # A `\r` right before this `\n` belongs to it; any other one ends a line by itself.
        alone = line.find("\r")
        while alone != -1:
            if alone < len(line) - 1 or position + len(line) == len(text):
                starts.append(position + alone + 1)
            alone = line.find("\r", alone + 1)
        position += len(line) + 1
        starts.append(position)
    starts.pop()
    return starts


def _detect_encoding(data: bytes, path: str) -> str:
    head = b"\n".join(data.split(b"\n", 2)[:2]).splitlines()[:2]
    if not any(b"coding" in line for line in head):
        return "utf-8-sig" if data.startswith(BOM_BYTES) else "utf-8"
    import tokenize

    try:
        encoding, _ = tokenize.detect_encoding(iter([line + b"\n" for line in head]).__next__)
    except SyntaxError as error:
        raise SourceError(path, f"cannot be decoded: {error.msg}") from None
    return encoding
