"""Patterns of paths, in the dialect of .gitignore: for ``exclude``, for ``per-file-ignores``, and for .gitignore
itself.

A pattern without a slash means a name at any depth; with one, other than at its end, it is anchored at the folder that
the patterns belong to. ``*`` and ``?`` stay within one name, ``**`` spans folders, a slash at the end means folders
only, ``!`` takes an earlier verdict back. The last pattern that matches decides. A pattern that cannot be read matches
nothing.

Whether something *below* a matching folder is meant is for the caller: a walk never gets there, and for a single path
:meth:`Patterns.covers` asks for every folder on the way.

Most patterns are plain names or ``*.ext``. Those are looked up in tables: a tree has thousands of paths, a .gitignore
often a hundred lines, and a regular expression costs more to compile than a file to lint.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPECIAL = frozenset("*?[\\")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class _Verdict(NamedTuple):
    """What a pattern says: whether what matches is excluded, and whether only folders match."""

    excludes: bool
    folders: bool


class Patterns:
    """Some patterns of one folder, in the order of their lines."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._verdicts: list[_Verdict] = []
        self._names: dict[str, list[int]] = {}
        self._paths: dict[str, list[int]] = {}
        self._endings: list[tuple[str, int]] = []
        self._others: list[tuple[str, bool, int]] = []  # pattern, whether it is anchored, index
        self._compiled: list[tuple[re.Pattern[str], bool, int]] | None = None
        for line in lines:
            self._add(line)

    def _add(self, line: str) -> None:
        pattern = _without_trailing_spaces(line)
        if not pattern or pattern.startswith("#"):
            return
        excludes = not pattern.startswith("!")
        pattern = pattern if excludes else pattern[1:]
        folders = pattern.endswith("/")
        pattern = pattern[:-1] if folders else pattern
        anchored = "/" in pattern
        pattern = pattern.removeprefix("/")
        if not pattern:
            return
        index = len(self._verdicts)
        self._verdicts.append(_Verdict(excludes, folders))
        if _SPECIAL.isdisjoint(pattern):
            (self._paths if anchored else self._names).setdefault(pattern, []).append(index)
        elif not anchored and pattern[0] == "*" and _SPECIAL.isdisjoint(pattern[1:]):
            self._endings.append((pattern[1:], index))
        else:
            self._others.append((pattern, anchored, index))

    def decide(self, path: str, is_folder: bool) -> bool | None:
        """Whether the patterns exclude a path; ``None`` if none of them speaks of it.

        ``path`` is relative to the folder of the patterns, with slashes.
        """
        name = path.rpartition("/")[2]
        hits: list[int] = [*self._names.get(name, ()), *self._paths.get(path, ())]
        hits += [index for ending, index in self._endings if name.endswith(ending)]
        if self._others:
            if self._compiled is None:
                self._compiled = [(_compiled(pattern), anchored, index) for pattern, anchored, index in self._others]
            hits += [index for regex, anchored, index in self._compiled if regex.fullmatch(path if anchored else name)]
        for index in sorted(hits, reverse=True):
            verdict = self._verdicts[index]
            if is_folder or not verdict.folders:
                return verdict.excludes
        return None

    def covers(self, path: str) -> bool:
        """Whether the patterns exclude a file, or a folder that it lies in."""
        parts = path.split("/")
        return any(self.decide("/".join(parts[:count]), True) for count in range(1, len(parts))) or bool(
            self.decide(path, False)
        )


def _without_trailing_spaces(line: str) -> str:
    line = line.rstrip("\r\n")
    stripped = line.rstrip(" ")
    escapes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if escapes % 2 and len(stripped) < len(line) else stripped


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_regex(pattern), re.DOTALL)
    except (re.error, _Unreadable):
        return re.compile(r"(?!)")


class _Unreadable(Exception):
    """A pattern that is no pattern: a bracket that is never closed, a backslash at the end."""


def _regex(pattern: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "*":
            end = at
            while end < len(pattern) and pattern[end] == "*":
                end += 1
            starts = at == 0 or pattern[at - 1] == "/"
            whole = end - at >= 2 and starts
            if whole and end == len(pattern):
                parts.append(".+")
            elif whole and pattern[end] == "/":
                parts.append("(?:.+/)?")
                end += 1
            else:
                parts.append("[^/]*")
            at = end
            continue
        if character == "[":
            text, at = _bracket(pattern, at + 1)
            parts.append(text)
            continue
        if character == "\\":
            at += 1
            if at == len(pattern):
                raise _Unreadable
            character = pattern[at]
            parts.append(re.escape(character))
        else:
            parts.append("[^/]" if character == "?" else re.escape(character))
        at += 1
    return "".join(parts)


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """The regular expression of the set whose bracket has been opened, and where it ends."""
    negated = pattern.startswith(("!", "^"), at)
    at += negated
    items: list[str] = []
    first = True
    while True:
        if at >= len(pattern):
            raise _Unreadable
        character = pattern[at]
        if character == "]" and not first:
            break
        first = False
        if pattern.startswith("[:", at) and (end := pattern.find(":]", at)) > 0:
            name = pattern[at + 2 : end]
            if name not in _CLASSES:
                raise _Unreadable
            items.append(_CLASSES[name])
            at = end + 2
            continue
        low, at = _member(pattern, at)
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("]", ""):
            high, at = _member(pattern, at + 1)
            if low <= high:  # a range that runs backwards is empty
                items.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            items.append(re.escape(low))
    if not items:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{''.join(items)}]", at + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "\\":
        at += 1
        if at >= len(pattern):
            raise _Unreadable
    return pattern[at], at + 1
