r"""One Python file: its text, its syntax tree, and the way from one kind of position to another.

``SourceFile.text`` is the decoded file with its newlines as they are, and every position in the analyzer is a character
offset into it. Python's own positions differ: ``ast`` gives a row and a column in *UTF-8 bytes*, people and editors
count rows and columns from one, in characters. The conversions live here and nowhere else, and an ASCII file pays
nothing for them.

Invariants: lines end where Python's tokenizer ends them (``\n``, ``\r\n``, ``\r``, and not at the form feeds and
Unicode separators that ``str.splitlines`` also splits at); a file that is a text at all gives a ``SourceFile`` with a
syntax tree, and what is wrong with it is in ``errors``, never raised; encoding the unchanged text gives back the bytes
that were read.
"""

from __future__ import annotations

import ast
from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Span
from nnx_lint.syntax.parsing import parse
from nnx_lint.syntax.trees import MAX_SIZE, Parsed, problem_of
from nnx_lint.syntax.trees import SyntaxProblem as SyntaxProblem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from tokenize import TokenInfo

    from nnx_lint.syntax.edits import Change

NOTEBOOK = ".ipynb"

BOM = "\ufeff"
BOM_BYTES = b"\xef\xbb\xbf"


class SourceError(Exception):
    """A file has no usable text: it cannot be opened, decoded, or it is not text at all."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Position(NamedTuple):
    """Where people find a place: the number of the notebook's cell, if it is in one, and row and column in it."""

    cell: int | None
    row: int
    column: int

    def __str__(self) -> str:
        return f"{'' if self.cell is None else f'cell {self.cell}:'}{self.row}:{self.column}"


class SourceFile:
    """A decoded Python file.

    Attributes:
        path: the name that is shown to people, as it was given.
        text: the whole text, without a byte order mark, newlines as they are in the file.
        encoding: the codec that gives back the file's bytes (``utf-8-sig`` where it began with a byte order mark).
        followed: how the text came from the one whose nodes are in the tree (:meth:`follow`), once it is parsed.
    """

    __slots__ = ("_ascii", "_before", "_line_starts", "_misnamed", "_parsed", "encoding", "followed", "path", "text")

    def __init__(self, path: str, text: str, encoding: str) -> None:
        self.path = path
        self.text = text
        self.encoding = encoding
        self._ascii = text.isascii()
        self._line_starts: array[int] | None = None
        self._parsed: Parsed | None = None
        self._before: SourceFile | None = None
        self.followed: Change | None = None
        self._misnamed = ""  # what is wrong with the encoding that the file names

    def __repr__(self) -> str:
        return f"SourceFile({self.path!r}, {len(self.text)} characters)"

    @classmethod
    def read(cls, path: str) -> SourceFile:
        """Read a file from disk.

        Raises:
            SourceError: it cannot be opened, or is no text.
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

        Bytes that do not decode become lone surrogates, which are syntax errors wherever they stand.

        Raises:
            SourceError: it is no text.
        """
        if path.endswith(NOTEBOOK):
            from nnx_lint.notebooks import Notebook

            return Notebook.from_json(data, path)
        encoding, misnamed = _detect_encoding(data)
        try:
            text = data.decode(encoding, "surrogateescape")
        except (UnicodeError, LookupError) as error:  # `hex`, or one that cannot leave bytes as they are
            encoding, misnamed = "utf-8", str(error)
            text = data.decode(encoding, "surrogateescape")
        if "\0" in text or not (text.isascii() or _encodes(text)):
            _require_text(text, path)
        source = cls(path, text, encoding)
        source._misnamed = misnamed
        return source

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
            return self.text.encode(self.encoding, "surrogateescape")
        except UnicodeError as error:
            raise SourceError(self.path, f"cannot be encoded as {self.encoding}: {error}") from None

    def follow(self, before: SourceFile) -> None:
        """Take the place of a text that this one was made of, and of its nodes where these are the same; that one is
        parsed anew if anybody still wants its tree.
        """
        while before._parsed is None and before._before is not None:
            before = before._before
        if before is not self and before._parsed is not None and type(before) is type(self) is SourceFile:
            self._before = before

    # The syntax tree, parsed when it is first asked for.

    def let_go(self) -> None:
        """Do not keep the tree: most likely nobody asks for it again."""
        self._parsed = None

    @property
    def tree(self) -> ast.Module:
        """The syntax tree; what does not parse is a :class:`~nnx_lint.syntax.trees.Blank` in it."""
        return self.parsed.tree

    @property
    def errors(self) -> tuple[SyntaxProblem, ...]:
        """What does not parse, in order."""
        return self.parsed.errors

    @property
    def error(self) -> SyntaxProblem | None:
        """The first of the errors, or ``None``."""
        return self.errors[0] if self.errors else None

    @property
    def notes(self) -> tuple[SyntaxProblem, ...]:
        """What is not seen in full although nothing is wrong with it, such as the syntax of a newer Python."""
        return self.parsed.notes

    @property
    def parsed(self) -> Parsed:
        """The tree with errors and notes."""
        if self._parsed is None:
            self._parsed = self._parse()
            if self._misnamed:
                error = SyntaxProblem(1, 1, f"the encoding that is named is of no use: {self._misnamed}")
                self._parsed = self._parsed._replace(errors=(error, *self._parsed.errors))
        return self._parsed

    def is_sound(self) -> bool:
        """Whether the text parses, without keeping a tree of it; no, if more is to be done to find out."""
        fresh = type(self) is SourceFile and self._parsed is None and self._before is None
        return fresh and not self._misnamed and len(self.text) <= MAX_SIZE and problem_of(self.text) is None

    def _parse(self) -> Parsed:
        before, self._before = self._before, None
        if before is None or before._parsed is None:
            return parse(self.text)
        from nnx_lint.syntax.edits import follow

        parsed, self.followed = follow(before, self)
        before._parsed = None
        return parsed

    # Positions.

    @property
    def _starts(self) -> array[int]:
        if self._line_starts is None:
            self._line_starts = array("L", _find_line_starts(self.text))  # a list of numbers takes five times as much
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

    def position(self, offset: int) -> Position:
        """The place of an offset as people are told it."""
        return Position(None, *self.location(offset))

    def shown(self, problem: SyntaxProblem) -> str:
        """The place of a problem as people are told it: ``3:14``, in a notebook ``cell 2:3:14``."""
        return str(self.position(self.line_start(problem.line) + problem.column - 1))

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

    def parts(self) -> Mapping[str, list[str]]:
        """The lines by what they belong to, under the name that people know it by: the file."""
        return {self.path: self.lines()}

    def program_lines(self) -> list[str]:
        r"""The lines as a tokenizer may read them: each ends in ``\n``, and what is no Python is replaced."""
        return [self.line_text(line) + "\n" for line in range(1, self.line_count + 1)]

    def tokens(self) -> list[TokenInfo]:
        """The tokens, with positions in characters; of a broken file those of the part that is sound."""
        import tokenize

        try:
            return list(tokenize.generate_tokens(iter(self.program_lines()).__next__))
        except (tokenize.TokenError, SyntaxError, ValueError, SystemError):  # the last two for what is no character
            lines = iter([line.rstrip("\r\n") + "\n" for line in self.parsed.lines])
        try:
            return list(tokenize.generate_tokens(lines.__next__))
        except (tokenize.TokenError, SyntaxError):
            return []

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


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _require_text(text: str, path: str) -> None:
    """Some characters that no text has are errors in a text; many of them are no text."""
    bad = sum(character == "\0" or "\ud800" <= character <= "\udfff" for character in text)
    if bad * 10 > len(text):
        raise SourceError(path, "is not a text file")


def _detect_encoding(data: bytes) -> tuple[str, str]:
    """The encoding to read a file in, and what is wrong with the one that it names."""
    default = "utf-8-sig" if data.startswith(BOM_BYTES) else "utf-8"
    head = b"\n".join(data.split(b"\n", 2)[:2]).splitlines()[:2]
    if not any(b"coding" in line for line in head):
        return default, ""
    import tokenize

    try:
        return tokenize.detect_encoding(iter([line + b"\n" for line in head]).__next__)[0], ""
    except SyntaxError as error:
        return default, error.msg
