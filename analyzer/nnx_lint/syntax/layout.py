"""How a text that may be broken falls into statements, told from its layout alone.

Python's own tokenizer gives up at the first bracket that is never closed. This one goes on: it reads strings, brackets,
backslashes and indentation line by line, and finds where the next statement begins although the one before has no end.
How far brackets and quotes are believed is the caller's choice, because both readings of an open bracket are right
sometimes: *trusting* it, a line within it begins a statement only with a keyword that no expression may contain;
*distrusting* it, any line does that is indented no deeper than the statement before, as people write statements.

Invariants: nothing is raised and every line is looked at once; the statements of a range cover all its lines that are
neither blank nor comments, in order; decorators and clauses (``else``, ``except``, ...) belong to the statement that
they complete, and a block to its header, even if a line in the middle of it is indented too little.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def split_lines(text: str) -> list[str]:
    """The lines as Python's tokenizer sees them, with their newlines; at least one."""
    if "\r" not in text:
        lines = text.split("\n")
        return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] or len(lines) == 1 else [])
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text) or [""]


TAB = 8

MAX_INDENT = 2_000
"""Characters of an indentation with tabs that are looked at."""

CLAUSES = {
    "elif": ("if", "elif"),
    "else": ("if", "elif", "for", "while", "try", "except"),
    "except": ("try", "except"),
    "finally": ("try", "except", "else"),
}
"""The statements and clauses that each clause may follow."""

OPENERS = frozenset({"if", "for", "while", "with", "try", "def", "class", "async", "match", "case", *CLAUSES})
"""The words that a statement with a block begins with."""

_TOKEN = re.compile(r"""#|\"\"\"|'''|["'()\[\]{}]""")
_REST_OF_STRING = {
    '"""': re.compile(r'[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""', re.DOTALL),
    "'''": re.compile(r"[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''", re.DOTALL),
    '"': re.compile(r'[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"'),
    "'": re.compile(r"[^'\\\r\n]*(?:\\.[^'\\\r\n]*)*'"),
}
_INTERPOLATING = tuple("fFtT")
_WORD = re.compile(r"@|\w+")

_NEVER_IN_BRACKETS = re.compile(
    r"[ \t\f]*(?:(?:async[ \t]+)?def|class|import|from[ \t]+[\w.]+[ \t]+import|return|(?:async[ \t]+)?with|try|raise"
    r"|assert|del|pass|break|continue|while|global|nonlocal|except|finally|elif)\b"
)
_HARDLY_IN_STRINGS = re.compile(
    r"[ \t\f]*(?:(?:async[ \t]+)?def[ \t]+\w+[ \t]*[(\[]|class[ \t]+\w+[ \t]*[(:\[]|@\w|import[ \t]+\w"
    r"|from[ \t]+[\w.]+[ \t]+import[ \t])"
)


class Indent(NamedTuple):
    """The depth of an indentation, with tabs of eight columns and of one: Python accepts what both agree on."""

    wide: int
    narrow: int

    def deeper(self, other: Indent) -> bool:
        """Whether this is certainly deeper: where the two readings disagree it counts as such, and is an error."""
        return self != other and (self.wide > other.wide or self.narrow > other.narrow)


class Line(NamedTuple):
    """A logical line: physical lines ``first`` to ``last`` of the text, counted from zero.

    ``word`` is what it begins with, ``end`` the column in ``last`` where its code ends, and ``closed`` says that no
    bracket, string or backslash was open there.
    """

    first: int
    last: int
    indent: Indent
    word: str
    end: int
    closed: bool


class Statement(NamedTuple):
    """A statement with its decorators, clauses and blocks: its logical lines, and which of them are headers."""

    lines: list[Line]
    heads: list[int]

    @property
    def first(self) -> int:
        return self.lines[0].first

    @property
    def last(self) -> int:
        return self.lines[-1].last

    @property
    def closed(self) -> bool:
        return self.lines[-1].closed


def indent_of(line: str) -> Indent:
    """The indentation of a physical line."""
    space = indent_text(line)
    if space.strip(" ") == "":
        return Indent(len(space), len(space))
    wide = narrow = 0
    for character in space[:MAX_INDENT]:
        if character == "\f":
            wide = narrow = 0
        else:
            wide += TAB - wide % TAB if character == "\t" else 1
            narrow += 1
    return Indent(wide, narrow)


def indent_text(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def logical_lines(
    text: list[str], first: int, last: int, *, trusting: bool, barriers: frozenset[int] = frozenset()
) -> Iterator[Line]:
    """The logical lines from line ``first`` to ``last``; none crosses the beginning of a line in ``barriers``."""
    scan = _Scan()
    for number in range(first, last + 1):
        line = text[number]
        if line == "\n" and scan.start is None:
            continue
        if scan.start is not None and (number in barriers or _begins(line, scan, trusting)):
            yield scan.close(number - 1, closed=False)
        scan.read(number, line)
        if scan.start is not None and not scan.open:
            yield scan.close(number, closed=True)
    if scan.start is not None:
        yield scan.close(last, closed=False)


def _begins(line: str, scan: _Scan, trusting: bool) -> bool:
    """Whether a line begins a statement although the one before is still open."""
    if scan.quotes:
        return not trusting and _HARDLY_IN_STRINGS.match(line) is not None and not indent_of(line).deeper(scan.indent)
    if not scan.depth:
        return False  # only a backslash keeps it open
    if _NEVER_IN_BRACKETS.match(line):
        return True
    code = line.strip()
    return not trusting and code != "" and code[0] not in ")]}#" and not indent_of(line).deeper(scan.indent)


class _Scan:
    """The state of reading between two physical lines."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Be between two logical lines."""
        self.start: int | None = None
        self.indent = Indent(0, 0)
        self.word = ""
        self.end = 0
        self.depth = 0
        self.quotes = ""
        self.continued = False

    @property
    def open(self) -> bool:
        return bool(self.depth or self.quotes or self.continued)

    def close(self, last: int, *, closed: bool) -> Line:
        assert self.start is not None
        line = Line(self.start, last, self.indent, self.word, self.end, closed)
        self.reset()
        return line

    def read(self, number: int, line: str) -> None:
        position = 0
        if self.quotes:
            position = self.string(line, 0, self.quotes)
        elif self.start is None:
            position = len(indent_text(line))
            if line[position : position + 1] in ("", "#", "\n", "\r"):
                return
            self.start, self.indent = number, indent_of(line)
            word = _WORD.match(line, position)
            self.word = word[0] if word is not None else ""
        self.continued = False
        code_end = len(line)
        while position < len(line) and not self.quotes:
            token = _TOKEN.search(line, position)
            if token is None:
                break
            position = token.end()
            match token[0]:
                case "#":
                    code_end = token.start()
                    break
                case "(" | "[" | "{":
                    self.depth += 1
                case ")" | "]" | "}":
                    self.depth = max(self.depth - 1, 0)
                case quotes:
                    position = self.string(line, position, quotes)
        code = line[:code_end].rstrip()
        if not self.quotes and code_end == len(line) and code.endswith("\\") and line[len(code) :].strip(" \t") != "":
            self.continued = True
        if code:
            self.end = len(code)

    def string(self, line: str, position: int, quotes: str) -> int:
        """Read a string from behind its opening quotes, and return where it ends."""
        rest = _REST_OF_STRING[quotes].match(line, position)
        self.quotes = ""
        if rest is not None:
            return rest.end()
        if len(quotes) == 3 or line.rstrip("\r\n").endswith("\\"):
            self.quotes = quotes
        elif line[: position - 1][-1:] in _INTERPOLATING:  # Python 3.12 has lines within the braces of `f"{...}"`
            self.depth += max(line.count("{", position) - line.count("}", position), 0)
        return len(line)


def statements(lines: Iterable[Line], indent: Indent) -> list[Statement]:
    """Group logical lines into the statements of a block whose statements are indented by ``indent``.

    A line that is indented too little, with the block going on below it, stays in the statement that the block is of.
    """
    found: list[Statement] = []
    seen: set[Indent] = set()  # the indentations in the statement that is being put together
    for line, following in pairwise((*lines, None)):
        assert line is not None
        current = found[-1] if found else None
        if current is not None:
            head = current.lines[current.heads[-1]]
            level = line.indent == head.indent
            if level and (head.word == "@" or head.word in CLAUSES.get(line.word, ())):
                current.heads.append(len(current.lines))
            elif (line.indent == indent or not line.indent.deeper(head.indent)) and not _interrupts(
                line, following, seen
            ):
                current = None
        if current is None:
            found.append(Statement([line], [0]))
            seen.clear()
        else:
            current.lines.append(line)
        seen.add(line.indent)
    return found


def _interrupts(line: Line, following: Line | None, seen: set[Indent]) -> bool:
    """Whether a line stands in the middle of a deeper block, and cannot have one of its own."""
    if following is None or line.word in OPENERS or line.word == "@":
        return False
    return following.indent.deeper(line.indent) and following.indent in seen
