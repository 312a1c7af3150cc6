"""Completion: names of NNX, filters and Variable types where a filter belongs, rules where rules are named.

What is being typed seldom parses, so the text before the cursor says where it is; the imports of the file say what its
names mean.

Invariants: nothing is offered where the text before the cursor does not certainly ask for it; a name that the version
in use does not have is not offered.
"""

from __future__ import annotations

import ast
import enum
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Span
from nnx_lint.ide import trees
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
_NOQA = re.compile(r"#\s*noqa\s*:\s*(?:[\w-]+[,\s]+)*(?P<word>[\w-]*)$", re.IGNORECASE)
_MEMBER = re.compile(r"(?<![\w.\])])(?P<owner>[^\W\d][\w.]*)\.(?P<word>\w*)$")
_IMPORT = re.compile(r"^\s*from\s+(?P<package>[\w.]+)\s+import\s+\(?[\w\s,]*?(?P<word>\w*)$")
_WORD = re.compile(r"[^\W\d]?\w*$")


def complete(source: SourceFile, variables: Iterable[str], offset: int, runs: Runs) -> list[Item]:
    """What can be written at an offset; ``variables`` are the Variable types of the file itself."""
    start = source.line_start(source.location(offset)[0])
    line = source.text[start:offset]
    for pattern in (_COMMENT, _NOQA):
        match = pattern.search(line)
        if match is not None:
            return list(_rules(Span(start + match.start("word"), offset)))
    owners = set(_owners(source))
    match = _IMPORT.match(line)
    if match is not None and match["package"] in api.PROVIDERS:
        return list(_names(Span(start + match.start("word"), offset), runs))
    match = _MEMBER.search(line)
    if match is not None:
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
    for each in names().values():
        if each.kind == VARIABLE and each.there(*runs):
            yield Item(f"{owner}.{each.name}", Kind.CLASS, span, "leaves of this Variable type")
    for name in variables:
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


# -- where a place is


def _owners(source: SourceFile) -> Iterator[str]:
    """What the file calls the top level of NNX, by its imports."""
    for node in trees.statements(source.tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name in api.PROVIDERS:
                    yield each.asname or each.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for each in node.names:
                if f"{node.module}.{each.name}" in api.PROVIDERS:
                    yield each.asname or each.name


MAX_BACK = 2_000
"""How far back the call is looked for that an argument belongs to."""

_OPENING = {")": "(", "]": "[", "}": "{"}
_CALLEE = re.compile(r"(?P<callee>[^\W\d][\w.]*)\s*$")
_KEYWORD = re.compile(r"(?P<keyword>\w+)\s*=\s*[\w.]*$")


def _in_filter(source: SourceFile, offset: int, owners: Iterable[str]) -> bool:
    """Whether an offset is where a call takes a filter."""
    text = source.text
    depth, commas, first = 0, 0, max(offset - MAX_BACK, 0)
    index = offset - 1
    while index >= first:
        character = text[index]
        if character in _OPENING:
            depth += 1
        elif character in "([{":
            if depth == 0:
                break
            depth -= 1
        elif character == "," and depth == 0:
            commas += 1
        elif character in "\"'#":
            return False  # inside of a string or after one: not worth the tokens
        index -= 1
    else:
        return False
    match = _CALLEE.search(text, max(index - MAX_BACK, 0), index)
    if text[index] != "(" or match is None:
        return False
    owner, _, name = match["callee"].rpartition(".")
    if owner not in owners:
        return False
    keyword = _KEYWORD.search(text, index, offset)
    if keyword is not None:
        return keyword["keyword"] in KEYWORDS
    place = POSITIONS.get(name)
    return place is not None and commas >= place[0] and (place[1] is None or commas <= place[1])


KEYWORDS = frozenset({"wrt", "only", "filter"})
"""Keywords of NNX whose values are filters."""

POSITIONS: dict[str, tuple[int, int | None]] = {
    **{name.removeprefix("nnx."): (spec.first, None) for name, spec in api.FILTER_FUNCTIONS.items()},
    **dict.fromkeys(("Not",), (0, 0)),
    **dict.fromkeys(("All", "Any"), (0, None)),
    "DiffState": (1, 1),
}
"""The first and the last position of arguments that are filters, by name of the function."""
