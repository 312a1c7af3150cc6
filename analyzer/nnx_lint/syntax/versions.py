"""Syntax that is newer than the running Python, written so that this one reads it.

The analyzer reads source for all Pythons with the parser of the one that runs. What that one does not know is replaced
by something of the same meaning, or of none, that takes the same place: type parameters by white space, what a string
interpolates by a name, the comma between two caught exceptions by a bar; a ``type`` statement becomes an assignment.

Invariants: lines keep their number, and all other text its line and column; nothing is replaced that the running Python
knows by itself.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from nnx_lint.syntax.layout import split_lines

if TYPE_CHECKING:
    from collections.abc import Callable

_GENERIC = re.compile(r"(?:^|\n)[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+\w+[ \t]*(?=\[)")
_TYPE = re.compile(
    r"(?P<margin>(?:^|(?<=\n))[ \t]*)(?P<word>type[ \t]+)(?P<name>[^\W\d]\w*)"
    r"(?P<rest>[ \t]*(?:\[[^\n]*?\][ \t]*)?=(?!=))"
)
_EXCEPT = re.compile(r"(?:^|\n)[ \t]*except\b[^()\n:#]*:")
_STRING = re.compile(r"#[^\n]*|(?<![\w])(?P<prefix>[a-zA-Z]{0,3})(?P<quotes>\"\"\"|'''|\"|')")
_OPENING, _CLOSING = "([{", ")]}"

MAX_NESTING = 20
"""How deep strings within strings are followed."""


def rewritten(lines: list[str]) -> tuple[str, list[str]] | None:
    """The lines without newer syntax, and the version that has it; ``None`` if there is none."""
    text = "".join(lines)
    version = (0, 0)
    for rewrite in (_without_type_parameters, _without_type_statements, _with_barred_exceptions, _without_strings):
        needed, text = rewrite(text)
        version = max(version, needed)
    if version == (0, 0):
        return None
    return ".".join(map(str, version)), text.splitlines(keepends=True) if "\r" not in text else split_lines(text)


def _replace(
    text: str, pattern: re.Pattern[str], version: tuple[int, int], by: Callable[[re.Match[str]], str]
) -> tuple[tuple[int, int], str]:
    if sys.version_info >= version:
        return (0, 0), text
    result = pattern.sub(by, text)
    return (version if result != text else (0, 0)), result


def _without_type_parameters(text: str) -> tuple[tuple[int, int], str]:
    version = (0, 0)
    position = 0
    while (header := _GENERIC.search(text, position)) is not None:
        end = _matching(text, header.end())
        if end is None:
            break
        parameters = text[header.end() : end]
        needed = (3, 13) if _has_default(parameters) else (3, 12)
        if sys.version_info < needed:
            version = max(version, needed)
            text = text[: header.end()] + _spaces(parameters) + text[end:]
        position = end
    return version, text


def _without_type_statements(text: str) -> tuple[tuple[int, int], str]:
    def assignment(found: re.Match[str]) -> str:
        return found["margin"] + found["name"] + _spaces(found["word"] + found["rest"][:-1]) + "="

    return _replace(text, _TYPE, (3, 12), assignment)


def _with_barred_exceptions(text: str) -> tuple[tuple[int, int], str]:
    return _replace(text, _EXCEPT, (3, 14), lambda found: found[0].replace(",", "|"))


def _without_strings(text: str) -> tuple[tuple[int, int], str]:
    version = (0, 0)
    parts: list[str] = []
    done = position = 0
    while (string := _STRING.search(text, position)) is not None:
        position = string.end()
        if string["quotes"] is None:
            continue
        prefix = string["prefix"].lower()
        end, newer, closed = _end_of_string(text, position, string["quotes"], "f" in prefix or "t" in prefix)
        needed = (3, 14) if "t" in prefix else (3, 12) if "f" in prefix and newer else (0, 0)
        if closed and needed > sys.version_info[:2]:
            version = max(version, needed)
            parts += (text[done : string.start()], _opaque(text[string.start() : end], prefix, string["quotes"]))
            done = end
        position = max(end, position)
    return version, "".join((*parts, text[done:]))


def _opaque(string: str, prefix: str, quotes: str) -> str:
    """A string of the same extent that interpolates something unknown, where there is room for that."""
    opening = prefix.replace("t", "f") + quotes
    inside = string[len(opening) : -len(quotes)]
    unknown = "{_}"
    if len(quotes) == 3 or "\n" not in inside:
        fits = len(inside.partition("\n")[0]) >= len(unknown)
        return opening + (unknown + _blanks(inside[len(unknown) :]) if fits else _blanks(inside)) + quotes
    _, *middle, _ = lines = inside.split("\n")
    between = "".join(_blanks(line) + "\\\n" for line in middle)
    return f"{opening}{unknown}{quotes} \\\n{between}{_blanks(lines[-1])[1:]}{quotes}{quotes}"


def _end_of_string(text: str, position: int, quotes: str, formatted: bool, nesting: int = 0) -> tuple[int, bool, bool]:
    """Where a string ends that begins before ``position``, whether what it interpolates needs Python 3.12, and whether
    it is closed there.
    """
    depth = 0
    newer = False
    while position < len(text):
        character = text[position]
        if depth == 0:
            if character == "\\":
                newer = newer or nesting > 0
                position += 2
                continue
            if text.startswith(quotes, position):
                return position + len(quotes), newer, True
            if character == "\n" and len(quotes) == 1:
                return position, newer, False
            if formatted and character == "{":
                if text.startswith("{{", position):
                    position += 1
                else:
                    depth = 1
        elif character in "\"'" and nesting < MAX_NESTING:
            inner = text[position : position + 3] if text.startswith(character * 3, position) else character
            again = text[position - 1] in "fFrRtT"
            newer = newer or inner[0] == quotes[0]
            position, deeper, _ = _end_of_string(text, position + len(inner), inner, again, nesting + 1)
            newer = newer or deeper
            continue
        else:
            newer = newer or character in "\\#" or (character == "\n" and len(quotes) == 1)
            if character == "#":
                position = _end_of_line(text, position)
                continue
            depth += (character in _OPENING) - (character in _CLOSING)
        position += 1
    return len(text), newer, False


def _end_of_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return end if end != -1 else len(text)


def _matching(text: str, position: int) -> int | None:
    """Where the bracket at ``position`` is closed."""
    depth = 0
    for index in range(position, len(text)):
        depth += (text[index] in _OPENING) - (text[index] in _CLOSING)
        if depth == 0:
            return index + 1
    return None


def _has_default(parameters: str) -> bool:
    depth = 0
    for index, character in enumerate(parameters):
        depth += (character in _OPENING) - (character in _CLOSING)
        if depth == 1 and character == "=" and "=" not in (parameters[index - 1], parameters[index + 1]):
            return True
    return False


def _blanks(text: str) -> str:
    """As much white space as there is text, in as many bytes of UTF-8, lines kept."""
    return "".join(
        character if character in "\r\n" else " " * len(character.encode("utf-8", "replace")) for character in text
    )


def _spaces(text: str) -> str:
    """The same outside of brackets, where a line goes on only behind a backslash."""
    return _blanks(text).replace("\r\n", "\\\r\n").replace("\n", "\\\n").replace("\\\r\\\n", "\\\r\n")
