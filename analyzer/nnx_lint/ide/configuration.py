"""Help while a configuration file is written: options, rules, and what they mean.

A configuration file is TOML that is being typed, so it is read by lines: what stands before the cursor on its line, and
the nearest header of a table above it.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from nnx_lint.config.reading import OWN, SHARED, TABLE
from nnx_lint.config.registry import BY_NAME, FILE, LEVELS
from nnx_lint.diagnostics import Span
from nnx_lint.ide.completion import Item, Kind
from nnx_lint.selection import EVERYTHING
from nnx_rules.rules import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = re.compile(r"^\s*\[\s*(?P<name>[^\]\[]+?)\s*\]\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*[\"']?(?P<key>[\w*./-]+)[\"']?\s*=")
_QUOTED = re.compile(r"[\"'](?P<word>[\w-]*)$")
_BARE = re.compile(r"^\s*(?P<word>[\w-]*)$")

SELECTING = frozenset({"select", "extend-select", "ignore"})
PER_FILE = frozenset({"per-file-ignores", "extend-per-file-ignores"})


def is_configuration(path: str) -> bool:
    """Whether a file can hold the configuration."""
    return os.path.basename(path) in (OWN, SHARED)


def complete(path: str, text: str, offset: int) -> list[Item]:
    """What can be written at an offset of a configuration file."""
    before = text[:offset].split("\n")
    line = before[-1]
    table = _table(path, before[:-1])
    if table is None:
        return []
    bare = _BARE.match(line)
    if bare is not None and not table and not _in_list(before):
        return list(_options(Span(offset - len(bare["word"]), offset)))
    if bare is not None and table == "rules":
        return list(_selectors(Span(offset - len(bare["word"]), offset)))
    quoted = _QUOTED.search(line)
    if quoted is None:
        return []
    span = Span(offset - len(quoted["word"]), offset)
    key = table or _key(before)
    if key in SELECTING or key in PER_FILE:
        return list(_selectors(span))
    if key == "rules":
        return [Item(level, Kind.VALUE, span) for level in LEVELS]
    option = BY_NAME.get(key)
    return [Item(choice, Kind.VALUE, span) for choice in option.kind.choices] if option is not None else []


def _table(path: str, lines: list[str]) -> str | None:
    """The table below ours that the next line is in, empty for ours itself; ``None`` if it is not about us."""
    prefix = "" if os.path.basename(path) == OWN else ".".join(TABLE)
    name = next((found["name"] for line in reversed(lines) if (found := _HEADER.match(line))), "")
    name = name.replace('"', "").replace("'", "").replace(" ", "")
    if not prefix:
        return name
    if name == prefix:
        return ""
    return name.removeprefix(f"{prefix}.") if name.startswith(f"{prefix}.") else None


def _key(lines: list[str]) -> str:
    """The key whose value is being written, which may have begun some lines above."""
    return next((found["key"] for line in reversed(lines) if (found := _KEY.match(line))), "")


def _in_list(lines: list[str]) -> bool:
    """Whether a list that has begun is still open."""
    text = "\n".join(lines)
    return text.rfind("[") > text.rfind("]") and "=" in text[: text.rfind("[")].rsplit("\n", 1)[-1]


def _options(span: Span) -> Iterator[Item]:
    for option in BY_NAME.values():
        if FILE in option.places:
            yield Item(option.name, Kind.OPTION, span, option.kind.name, False, option.doc)


def _selectors(span: Span) -> Iterator[Item]:
    yield Item(EVERYTHING, Kind.RULE, span, "all rules")
    for family in sorted({rule.code[:4] for rule in REGISTRY}):
        yield Item(family, Kind.RULE, span, "a family of rules")
    for rule in REGISTRY:
        yield Item(rule.code, Kind.RULE, span, rule.name, False, rule.summary)
        yield Item(rule.name, Kind.RULE, span, rule.code, False, rule.summary)
