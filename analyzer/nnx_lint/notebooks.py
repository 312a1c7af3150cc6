"""Jupyter notebooks: the code cells as one program, and the way back into the file.

The text of a :class:`Notebook` is its code cells, one after the other, with a line between two of them that nobody
writes (:data:`SEPARATOR`). So all positions, edits and comments work as in any file, and a changed text falls into
cells again by itself. What IPython understands and Python does not (``%magic``, ``!command``, ``name?``) is no part of
the program, but it is part of the text.

In the file a cell is a JSON string, or a list of them. A changed cell is written in the style of the old one, and
spliced into the file where the old one was: the rest of the file is never decoded and encoded again.

Invariants: ``to_bytes()`` of an unchanged notebook is the file, byte for byte; what is no notebook is a
``SourceError``, never another exception, whatever the file holds; cells are counted from one, the ones of text too, as
they stand in the file.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nnx_lint.source import BOM_BYTES, Position, SourceError, SourceFile
from nnx_lint.syntax.trees import Parsed, SyntaxProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PYTHON = "python"

SEPARATOR = "#\f\f\n"
"""The line between two cells of the text."""

CODE_MAGICS = frozenset(
    {"capture", "debug", "ipytest", "lprun", "memit", "mprun", "prun", "pyinstrument", "scalene", "snakeviz", "time"}
    | {"timeit", "wandb"}
)
"""Cell magics whose cell is Python; the cells of all others are in some other language."""

_JSON_TOKEN = re.compile(r'[ \t\r\n]*(?:("[^"\\]*(?:\\.[^"\\]*)*")|([{}\[\],:])|[^\s{}\[\],:"]+)', re.DOTALL)
_MAGIC = re.compile(r"[ \t]*(?:[%!?,;/]|[\w.%*\[\]-]+\?\??[ \t\r]*(?:#.*)?$)")
_ESCAPE = re.compile(r"[%!?]|^[ \t]*[,;/]", re.MULTILINE)
_ASSIGNED_MAGIC = re.compile(r"([^=!%\n\"'#(]*[^=!%\n\"'#(<>]=[ \t]*)(?:!|%[A-Za-z])")
_ESCAPED = re.compile(r"\\u(?!00[01])")
_CELL_MAGIC = re.compile(r"(?:[ \t\r]*(?:#.*)?\n)*%%(\w+)")


class Cell(NamedTuple):
    """A code cell: its number, the keys and indices that lead to its source in the JSON document, and the source."""

    number: int
    keys: tuple[str | int, ...]
    text: str


class Notebook(SourceFile):
    """A notebook; ``text`` is its program."""

    __slots__ = ("_cells", "_raw", "_starts_of_cells", "language")

    def __init__(self, path: str, raw: str, encoding: str, cells: Sequence[Cell], language: str) -> None:
        texts = [cell.text if cell.text.endswith("\n") else cell.text + "\n" for cell in cells]
        super().__init__(path, SEPARATOR.join(texts), encoding)
        self.language = language
        self._raw = raw
        self._cells = tuple(cells)
        self._starts_of_cells = tuple(accumulate((len(text) + len(SEPARATOR) for text in texts[:-1]), initial=0))

    @classmethod
    def from_cells(cls, texts: Sequence[str], path: str) -> Notebook:
        """The program of code cells that somebody has in hand, such as an editor; it has no bytes."""
        cells = [Cell(number, (), text) for number, text in enumerate(texts, 1)]
        return cls(path, "", "utf-8", cells, PYTHON)

    @property
    def starts(self) -> Sequence[int]:
        """Where in the text the code cells begin."""
        return self._starts_of_cells

    @classmethod
    def from_json(cls, data: bytes, path: str) -> Notebook:
        """Read the bytes of a notebook.

        Raises:
            SourceError: they are no notebook.
        """
        encoding = "utf-8-sig" if data.startswith(BOM_BYTES) else "utf-8"
        try:
            raw = data.decode(encoding)
            document = json.loads(raw)
        except UnicodeDecodeError as error:
            raise SourceError(path, f"is not a notebook: byte 0x{data[error.start]:02x} is not UTF-8") from None
        except json.JSONDecodeError as error:
            reason = f"is not a notebook: not valid JSON, {error.msg} on line {error.lineno}"
            raise SourceError(path, reason) from None
        except RecursionError:
            raise SourceError(path, "is not a notebook: its JSON is too deeply nested") from None
        except ValueError as error:
            raise SourceError(path, f"is not a notebook: {error}") from None
        language = _language(document)
        cells = tuple(_code_cells(document, path))
        return cls(path, raw, encoding, cells if language == PYTHON else (), language)

    def with_text(self, text: str) -> Notebook:
        """The same notebook with another program.

        Raises:
            ValueError: it has another number of cells.
        """
        texts = text.split(SEPARATOR) if self._cells else []
        if len(texts) != len(self._cells):
            raise ValueError("the number of cells changed")
        if not self._raw:
            return self.from_cells(texts, self.path)
        places = _places(self._raw)
        raw = self._raw
        cells = list(self._cells)
        changed: list[tuple[int, int, str]] = []
        for index, (cell, new) in enumerate(zip(self._cells, texts, strict=True)):
            # The last newline is only shown, unless the cell has one; or has one now, before it.
            shown = new.removesuffix("\n")
            keeps = cell.text.endswith("\n") or shown.endswith("\n")
            cells[index] = cell._replace(text=new if keeps else shown)
            if cells[index] != cell:
                changed.append((*places[cell.keys], cells[index].text))
        for start, end, source in sorted(changed, reverse=True):
            raw = raw[:start] + _encoded(source, raw[start:end], self._raw) + raw[end:]
        return Notebook(self.path, raw, self.encoding, cells, self.language)

    def to_bytes(self) -> bytes:
        """The bytes of the whole notebook."""
        return self._raw.encode(self.encoding)

    def position(self, offset: int) -> Position:
        """The place of an offset: the number of the cell, and row and column in it."""
        row, column = self.location(offset)
        if not self._cells:
            return Position(None, row, column)
        index = bisect_right(self._starts_of_cells, offset) - 1
        first, _ = self.location(self._starts_of_cells[index])
        return Position(self._cells[index].number, row - first + 1, column)

    def parts(self) -> Mapping[str, list[str]]:
        """The lines of each code cell."""
        lines = self.lines()
        starts = sorted(self._barriers())
        return {
            f"{self.path}:cell {cell.number}": lines[start : stop - 1]
            for cell, start, stop in zip(self._cells, starts, [*starts[1:], len(lines) + 1], strict=True)
        }

    def program_lines(self) -> list[str]:
        """The lines without magics."""
        lines = super().program_lines()
        list(_without_magics(lines, sorted(self._barriers())))
        return lines

    def _barriers(self) -> frozenset[int]:
        """The numbers of the lines, from zero, on which cells begin."""
        return frozenset(self.location(start)[0] - 1 for start in self._starts_of_cells)

    def _parse(self) -> Parsed:
        from nnx_lint.syntax.parsing import parse
        from nnx_lint.syntax.trees import MAX_SIZE, attempt

        if self.language != PYTHON:
            return Parsed(
                parse("").tree, notes=(SyntaxProblem(1, 1, f"is not checked: a notebook in {self.language}"),)
            )
        if len(self.text) > MAX_SIZE:
            return parse(self.text)
        from nnx_lint.syntax.layout import split_lines
        from nnx_lint.syntax.recovery import recover

        lines = split_lines(self.text)
        barriers = self._barriers()
        blanks = list(_without_magics(lines, sorted(barriers)))
        tree = attempt("".join(lines)) if not blanks else None
        if tree is not None and not isinstance(tree, SyntaxProblem):
            return Parsed(tree)
        return recover(lines, self.text, blanks=blanks, barriers=barriers)


# -- magics


def _without_magics(lines: list[str], starts: list[int]) -> Iterator[range]:
    """Take what only IPython understands out of the lines; yields the lines that become blanks."""
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        cell = "".join(lines[start:stop])
        magic = _CELL_MAGIC.match(cell)
        if magic is not None:
            first = start + cell.count("\n", 0, magic.start(1))
            if magic[1] in CODE_MAGICS:
                lines[first] = "\n"
            else:
                lines[start:stop] = ["\n"] * (stop - start)
                continue
        if _ESCAPE.search(cell) is not None:
            yield from _without_line_magics(lines, start, stop)


def _without_line_magics(lines: list[str], start: int, stop: int) -> Iterator[range]:
    from nnx_lint.syntax import layout

    number = start
    while number < stop:
        logical = layout.logical_lines(lines, number, stop - 1, trusting=True)
        line = next((line for line in logical if _is_magic(lines[line.first])), None)
        if line is None:
            return
        first = number = line.first
        while number + 1 < stop and lines[number].rstrip("\r\n").endswith("\\"):
            number += 1
        number += 1
        assigned = _ASSIGNED_MAGIC.match(lines[first])
        is_blank = assigned is None and lines[first].lstrip().startswith("%")
        margin = layout.indent_text(lines[first])
        lines[first] = f"{assigned[1]}_ipython_\n" if assigned else f"{margin}pass\n"
        lines[first + 1 : number] = ["\n"] * (number - first - 1)
        if is_blank:
            yield range(first, number)


def _is_magic(line: str) -> bool:
    return _MAGIC.match(line) is not None or _ASSIGNED_MAGIC.match(line) is not None


# -- the document


def _language(document: Any) -> str:
    """The language of a notebook, in lower case; Python where it does not say."""
    candidates = (
        _member(document, "metadata", *keys) for keys in (("language_info", "name"), ("kernelspec", "language"))
    )
    language = next((item.lower() for item in candidates if isinstance(item, str) and item), PYTHON)
    return PYTHON if language in {"ipython", "python3"} else language


def _member(value: Any, *keys: str) -> Any:
    for key in keys:
        table = _table(value)
        value = table.get(key) if table is not None else None
    return value


def _code_cells(document: Any, path: str) -> Iterator[Cell]:
    """The code cells of a document of format 3 or 4."""
    table = _table(document)
    if table is None:
        raise SourceError(path, "is not a notebook: its JSON is no object")
    form = table.get("nbformat", 4)
    if not isinstance(form, int) or form not in (3, 4):
        raise SourceError(path, f"is not a notebook of format 3 or 4: `nbformat` is {_short(form)}")
    key = "source" if form == 4 else "input"
    number = 0
    for keys, cells in _cell_lists(table, form, path):
        for index, item in enumerate(cells):
            number += 1
            cell = _table(item)
            if cell is None:
                raise SourceError(path, f"is not a notebook: cell {number} is no object")
            if cell.get("cell_type") != "code" or cell.get("language", PYTHON) != PYTHON or cell.get(key) is None:
                continue
            text = _joined(cell[key])
            if text is None:
                raise SourceError(path, f"is not a notebook: the source of cell {number} is no text")
            if SEPARATOR in text:
                raise SourceError(path, f"has a line of form feeds in cell {number}, which nnx-lint keeps for itself")
            yield Cell(number, (*keys, index, key), text)


def _cell_lists(table: dict[str, Any], form: int, path: str) -> Iterator[tuple[tuple[str | int, ...], list[Any]]]:
    sheets = _list([table] if form == 4 else table.get("worksheets", []))
    if sheets is None:
        raise SourceError(path, "is not a notebook: `worksheets` is no list")
    for index, sheet in enumerate(sheets):
        cells = _list(_member(sheet, "cells"))
        if cells is None:
            raise SourceError(path, "is not a notebook: it has no list of `cells`")
        yield (("cells",) if form == 4 else ("worksheets", index, "cells")), cells


def _table(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any] | None:
    return value if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]


def _joined(source: Any) -> str | None:
    """The text of a source, which is a string or a list of them."""
    lines = _list(source)
    if lines is None:
        lines = [source]
    return "".join(lines) if all(isinstance(line, str) for line in lines) else None


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 20 else text[:20] + "..."


# -- the JSON text


def _places(raw: str) -> dict[tuple[str | int, ...], tuple[int, int]]:
    """The spans of the sources of cells in a JSON text that is known to be sound; of equal keys the last counts."""
    found: dict[tuple[str | int, ...], tuple[int, int]] = {}
    path: list[str | int] = []
    starts: list[int] = []
    is_key = False
    for token in _JSON_TOKEN.finditer(raw):
        string, sign = token.group(1, 2)
        begin = token.start(1 if string is not None else 2)
        if string is not None and is_key:
            path[-1] = json.loads(string)
            is_key = False
        elif string is not None:
            _note(found, path, begin, token.end())
        elif sign == "{" or sign == "[":
            starts.append(begin)
            path.append("" if sign == "{" else 0)
            is_key = sign == "{"
        elif sign == "}" or sign == "]":
            path.pop()
            _note(found, path, starts.pop(), token.end())
        elif sign == ",":
            last = path[-1]
            if isinstance(last, int):
                path[-1] = last + 1
            else:
                is_key = True
    return found


def _note(found: dict[tuple[str | int, ...], tuple[int, int]], path: list[str | int], start: int, end: int) -> None:
    if 3 <= len(path) <= 5 and path[-1] in ("source", "input") and path[-3] == "cells":
        found[tuple(path)] = (start, end)


def _encoded(text: str, old: str, raw: str) -> str:
    """The JSON of a source, in the style of the old one."""
    ascii_only = raw.isascii() and _ESCAPED.search(raw) is not None
    if not old.startswith("["):
        return json.dumps(text, ensure_ascii=ascii_only)
    literals = {json.loads(token[1]): token[1] for token in _JSON_TOKEN.finditer(old) if token[1] is not None}
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    items = [literals.get(line) or json.dumps(line, ensure_ascii=ascii_only) for line in lines if line]
    if not items:
        return "[]"
    opening = re.match(r"\[\s*", old)
    closing = re.search(r"\s*\]$", old)
    before = opening[0][1:] if opening is not None else ""
    after = closing[0][:-1] if closing is not None else ""
    between = re.search(r'"(\s*,\s*)"', re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*"', '""', old))
    separator = between[1] if between is not None else "," + (before or " ")
    return "[" + before + separator.join(items) + after + "]"
