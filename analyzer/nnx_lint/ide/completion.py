"""Completion: names of NNX, filters and Variable types where a filter belongs, rules where rules are named.

What is being typed seldom parses, and who types does not wait for a parser: the text before the cursor says where it
is, and the lines that look like imports say what names mean.

Invariants: nothing is offered where the text before the cursor does not certainly ask for it; a name that the version
in use does not have is not offered.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Span
from nnx_rules import api
from nnx_rules.catalogue import CLASS, TRANSFORM, VARIABLE, names
from nnx_rules.rules import REGISTRY
from nnx_rules.versions import spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnx_lint.source import SourceFile
    from nnx_rules.registry import Version


class Kind(enum.Enum):
    """What is offered."""

    CLASS = "class"
    FUNCTION = "function"
    MODULE = "module"
    RULE = "rule"
    OPTION = "option"
    VALUE = "value"


class Item(NamedTuple):
    """Something that can stand in the place of ``span``; ``detail`` says what it is in a few words."""

    text: str
    kind: Kind
    span: Span
    detail: str = ""
    deprecated: bool = False
    documentation: str = ""


class Runs(NamedTuple):
    """What the code runs on."""

    library: str = "flax"
    version: Version | None = None


_COMMENT = re.compile(r"#\s*nnx:\s*ignore(?:-file)?\s*\[[^\]#]*?(?P<word>[\w-]*)$")
_DIRECTIVE = re.compile(r"#\s*nnx:\s*(?P<word>[\w-]*)$")
_NOQA = re.compile(r"#\s*noqa\s*:\s*(?:[\w-]+[,\s]+)*(?P<word>[\w-]*)$", re.IGNORECASE)
_MEMBER = re.compile(r"(?<![\w.\])])(?P<owner>[^\W\d][\w.]*)\.(?P<word>\w*)$")
_IMPORT = re.compile(r"^\s*from\s+(?P<package>[\w.]+)\s+import\s+\(?[\w\s,]*?(?P<word>\w*)$")
_IMPORTING = re.compile(r"^\s*(?:import|from)\s")
_WORD = re.compile(r"[^\W\d]?\w*$")


def complete(source: SourceFile, variables: Iterable[str], offset: int, runs: Runs) -> list[Item]:
    """What can be written at an offset; ``variables`` are the Variable types of the file itself."""
    start = source.line_start(source.location(offset)[0])
    line = source.text[start:offset]
    for pattern, offer in _IN_COMMENTS.items():
        match = pattern.search(line)
        if match is not None:
            return list(offer(Span(start + match.start("word"), offset)))
    owners = set(_owners(source.text))
    match = _IMPORT.match(line)
    if match is not None and match["package"] in api.PROVIDERS:
        return list(_names(Span(start + match.start("word"), offset), runs))
    match = _MEMBER.search(line)
    if match is not None and not _IMPORTING.match(line):
        if match["owner"] not in owners:
            return []
        span = Span(start + match.start("word"), offset)
        wanted = FILTERS if _in_filter(source, offset, owners) else None
        return sorted(
            _names(span, runs), key=lambda item: wanted is not None and item.detail.split(",")[0] not in wanted
        )
    match = _WORD.search(line)
    if match is None or not _in_filter(source, offset, owners):
        return []
    return list(_filters(variables, Span(start + match.start(), offset), owners, runs))


FILTERS = frozenset({VARIABLE})


def _names(span: Span, runs: Runs) -> Iterator[Item]:
    """The names of the top level that the version in use has."""
    for each in names().values():
        if each.there(*runs):
            detail = each.kind + (f", since flax {spelled(each.since)}" if each.since is not None else "")
            replaced = each.deprecated
            deprecated = replaced is not None and (runs.version is None or replaced.since <= runs.version)
            more = f"`nnx.{replaced.successor}` takes its place" if deprecated and replaced is not None else ""
            kind = (
                Kind.CLASS
                if each.kind in (CLASS, VARIABLE)
                else Kind(each.kind if each.kind != TRANSFORM else "function")
            )
            yield Item(each.name, kind, span, detail, deprecated, more)


def _filters(variables: Iterable[str], span: Span, owners: Iterable[str], runs: Runs) -> Iterator[Item]:
    """What can be a filter: Variable types of the library and of the file, combinations of filters, `...`."""
    owner = min(owners, key=len)
    known = [each.name for each in names().values() if each.kind == VARIABLE and each.there(*runs)]
    known.sort(key=lambda name: name != "Param")  # what is most often meant
    for name in (*variables, *(f"{owner}.{name}" for name in known)):
        yield Item(name, Kind.CLASS, span, "leaves of this Variable type")
    for name, meaning in COMBINATIONS.items():
        yield Item(f"{owner}.{name}", Kind.CLASS, span, meaning)
    yield Item("...", Kind.VALUE, span, "everything, or the rest")


COMBINATIONS = {
    "Not": "leaves that a filter does not take",
    "All": "leaves that all of some filters take",
    "PathContains": "leaves with a name in their path",
    "WithTag": "leaves with a tag",
}


def _rules(span: Span) -> Iterator[Item]:
    """The rules, by name and by code."""
    for rule in REGISTRY:
        yield Item(rule.name, Kind.RULE, span, rule.code, False, rule.summary)
        yield Item(rule.code, Kind.RULE, span, rule.name, False, rule.summary)


def _codes(span: Span) -> Iterator[Item]:
    """The rules by code: comments that other tools read as well know no names."""
    for rule in REGISTRY:
        yield Item(rule.code, Kind.RULE, span, rule.name, False, rule.summary)


def _directives(span: Span) -> Iterator[Item]:
    """What a comment can ask for."""
    yield Item("ignore[", Kind.VALUE, span, "silence rules on this line")
    yield Item("ignore-file[", Kind.VALUE, span, "silence rules in this file")


_IN_COMMENTS = {_COMMENT: _rules, _NOQA: _codes, _DIRECTIVE: _directives}

# -- where a place is


_FROM = re.compile(
    r"(?:^|;)[ \t]*from[ \t]+(?P<package>[\w.]+)[ \t]+import[ \t]*(?P<names>\([^)]*|[^\n;]*)", re.MULTILINE
)
_PLAIN = re.compile(r"(?:^|;)[ \t]*import[ \t]+(?P<names>[^\n;]*)", re.MULTILINE)
_IMPORTED = re.compile(r"(?P<name>[\w.]+)(?:[ \t]+as[ \t]+(?P<alias>\w+))?")
_REMARK = re.compile(r"#.*")


def _owners(text: str) -> Iterator[str]:
    """What the file calls the top level of NNX, by what looks like its imports."""
    for match in _PLAIN.finditer(text):
        for name, alias in _imported(match["names"]):
            for provider in api.PROVIDERS:
                if f"{provider}.".startswith(f"{name}."):
                    yield (alias or name) + provider.removeprefix(name)
    for match in _FROM.finditer(text):
        for name, alias in _imported(match["names"]):
            if f"{match['package']}.{name}" in api.PROVIDERS:
                yield alias or name


def _imported(names: str) -> Iterator[tuple[str, str | None]]:
    """Names that are imported, and what they are called."""
    for match in _IMPORTED.finditer(_REMARK.sub("", names)):
        yield match["name"], match["alias"]


MAX_BACK = 2_000
"""How far back the call is looked for that an argument belongs to."""

_OPENING = {")": "(", "]": "[", "}": "{"}
_CALLEE = re.compile(r"(?P<callee>[^\W\d][\w.]*)\s*$")
_KEYWORD = re.compile(r"(?P<keyword>\w+)\s*=\s*[\w.]*$")


class _Bracket(NamedTuple):
    """The bracket around a place: where it is, how many commas came since, and where the item after the last begins."""

    start: int
    commas: int
    item: int


def _bracket(text: str, offset: int) -> _Bracket | None:
    """The innermost bracket around an offset; ``None`` in or after a string, which is not worth the tokens."""
    depth, commas, item = 0, 0, None
    for index in range(offset - 1, max(offset - MAX_BACK, 0) - 1, -1):
        character = text[index]
        if character in _OPENING:
            depth += 1
        elif character in "([{":
            if depth == 0:
                return _Bracket(index, commas, item if item is not None else index + 1)
            depth -= 1
        elif character == "," and depth == 0:
            commas += 1
            item = item if item is not None else index + 1
        elif character in "\"'#":
            return None
    return None


def _in_filter(source: SourceFile, offset: int, owners: Iterable[str]) -> bool:
    """Whether an offset is where a call takes a filter."""
    text = source.text
    around = _bracket(text, offset)
    if around is None or text[around.start] == "[":
        return False
    start, is_table = around.start, text[around.start] == "{"
    if is_table:  # its keys may be filters
        start = len(text[:start].rstrip()) - 1
        if ":" in text[around.item : offset] or text[start : start + 1] != "(":
            return False
    match = _CALLEE.search(text, max(start - MAX_BACK, 0), start)
    if match is None:
        return False
    owner, _, name = match["callee"].rpartition(".")
    if owner not in owners:
        return False
    if is_table:
        return name in TABLES
    keyword = _KEYWORD.search(text, around.start, offset)
    if keyword is not None:
        return keyword["keyword"] in KEYWORDS
    place = POSITIONS.get(name)
    return place is not None and around.commas >= place[0] and (place[1] is None or around.commas <= place[1])


TABLES = frozenset({"StateAxes", "StateSharding"})
"""Classes of NNX whose first argument is a table with filters as keys."""

KEYWORDS = frozenset({"wrt", "only", "filter"})
"""Keywords of NNX whose values are filters."""

POSITIONS: dict[str, tuple[int, int | None]] = {
    **{name.removeprefix("nnx."): (spec.first, None) for name, spec in api.FILTER_FUNCTIONS.items()},
    **dict.fromkeys(("Not",), (0, 0)),
    **dict.fromkeys(("All", "Any"), (0, None)),
    "DiffState": (1, 1),
}
"""The first and the last position of arguments that are filters, by name of the function."""
