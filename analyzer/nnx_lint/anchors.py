"""Where a finding is, said so that it stays true while the file changes around it.

An anchor is the enclosing class or function and the code of the line, without white space, comments and line numbers.
A formatter may also break a line or join several, so there is a second text: the whole logical line, brackets and all.
Two anchors name the same place if either text agrees: adding an item to a list of many lines keeps the first one, and
breaking a long line keeps the second.
"""

from __future__ import annotations

import ast
import hashlib
import tokenize
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.source import SourceFile

_LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER)
_STRING_STARTS, _STRING_ENDS = (
    frozenset(getattr(tokenize, f"{kind}STRING_{end}") for kind in "FT" if hasattr(tokenize, f"{kind}STRING_{end}"))
    for end in ("START", "END")
)
_CLOSERS = frozenset(")]}")


class Anchor(NamedTuple):
    """The enclosing ``symbol`` (empty at module level), the code of the ``line``, a digest of the logical line."""

    symbol: str
    line: str
    statement: str


class _Word(NamedTuple):
    """A token of code, and the lines that it begins and ends on."""

    first: int
    last: int
    text: str


class Anchors:
    """The anchors of one file."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._symbols = list(_symbols(source.tree))
        self._lines: dict[int, str] = {}
        self._statements: dict[int, str] = {}
        self._read_tokens()

    def _read_tokens(self) -> None:
        statement: list[_Word] = []
        strings: list[tokenize.TokenInfo] = []  # the formatted strings that are open, as newer Pythons take them apart
        for token in self._source.tokens():
            if token.type in _STRING_STARTS:
                strings.append(token)
            elif strings:
                if token.type in _STRING_ENDS:
                    first = strings.pop()
                    if not strings:
                        statement.append(self._word(first, token))
            elif token.type == tokenize.NEWLINE:
                self._add(statement)
                statement = []
            elif token.type not in _LAYOUT:
                statement.append(_Word(token.start[0], token.end[0], token.string))
        self._add(statement)

    def _word(self, first: tokenize.TokenInfo, last: tokenize.TokenInfo) -> _Word:
        start, end = (self._source.line_start(row) + column for row, column in (first.start, last.end))
        return _Word(first.start[0], last.end[0], self._source.text[start:end])

    def _add(self, statement: Sequence[_Word]) -> None:
        if not statement:
            return
        rows: dict[int, list[str]] = {}
        for word in statement:
            rows.setdefault(word.first, []).append(word.text)
        for row, words in rows.items():
            self._lines[row] = _joined(words)
        whole = digest(_joined(_without_last_commas([word.text for word in statement])))
        for row in range(statement[0].first, statement[-1].last + 1):
            self._statements[row] = whole

    def at(self, offset: int) -> Anchor:
        """The anchor of a place."""
        row, _ = self._source.location(offset)
        line = self._lines.get(row)
        if line is None:
            line = "".join(self._source.line_text(row).split())
        inside = [(end - start, name) for start, end, name in self._symbols if start <= row <= end]
        return Anchor(min(inside)[1] if inside else "", line, self._statements.get(row, digest(line)))


def _symbols(tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    """First line, last line and dotted name of every class and function."""
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, prefix = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                name = f"{prefix}{child.name}"
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                yield first, child.end_lineno or child.lineno, name
                stack.append((child, f"{name}."))
            elif isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
                stack.append((child, prefix))


def _joined(words: Sequence[str]) -> str:
    """Tokens as code without white space, but where two words would become one."""
    text = ""
    for word in words:
        shown = " ".join(word.split())  # a string of several lines
        apart = text and (text[-1].isalnum() or text[-1] == "_") and (shown[:1].isalnum() or shown[:1] in "_'\"")
        text += f" {shown}" if apart else shown
    return text


def _without_last_commas(words: Sequence[str]) -> list[str]:
    """Formatters put a comma before a bracket that closes on a line of its own."""
    following = (*words[1:], "")
    return [word for word, after in zip(words, following, strict=True) if not (word == "," and after in _CLOSERS)]


def digest(*texts: str) -> str:
    """A short text that differs where the given ones differ."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def fingerprints(
    diagnostics: Sequence[Diagnostic], sources: Mapping[str, SourceFile], names: Mapping[str, str]
) -> Iterator[str]:
    """A text for each finding that stays while lines move; ``names`` are the paths as the reader of it knows them."""
    anchors: dict[str, Anchors] = {}
    seen: dict[str, int] = {}
    for diagnostic in diagnostics:
        path = diagnostic.path
        if path not in anchors:
            anchors[path] = Anchors(sources[path])
        anchor = anchors[path].at(diagnostic.span.start)
        key = digest(diagnostic.rule.code, names[path], anchor.symbol, anchor.statement, diagnostic.message)
        seen[key] = seen.get(key, 0) + 1
        yield digest(key, str(seen[key]))
