"""How the places of findings are written down: for people, as paths, and as addresses.

What comes from a checked file or a file system may hold anything. Characters that would act on a terminal instead of
being shown are replaced, so that checking a file from a stranger cannot move the cursor or reverse the text.
"""

from __future__ import annotations

import os.path
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nnx_lint.output import Report
    from nnx_lint.source import SourceFile

_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def glyph(character: str) -> tuple[str, int]:
    """How a character is shown in a terminal, and how many cells that takes; a tab is no character here."""
    if character < " ":
        return chr(0x2400 + ord(character)), 1  # the control pictures, such as ␛
    if "\x7f" <= character <= "\x9f" or character in _BIDIRECTIONAL or character in "\u2028\u2029":
        return "\ufffd", 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shown(text: str) -> str:
    """Text of one line as it may be printed."""
    return text if text.isprintable() else "".join(glyph(character)[0] for character in text)


def place(source: SourceFile, offset: int) -> str:
    """The position of an offset, ``3:14``, in a notebook ``cell 2:3:14``."""
    return str(source.position(offset))


def link(report: Report, path: str, source: SourceFile | None, offset: int) -> str:
    """The place of an offset in the form that editors and terminals turn into links."""
    name = report.paint("strong", shown(path))
    return name if source is None else f"{name}:{place(source, offset)}"


def absolute(path: str) -> str:
    """A path that means the same everywhere on this machine; names of what is no file, ``<stdin>``, stay."""
    return path if path.startswith("<") else os.path.abspath(path)


def relative(path: str, root: str) -> str:
    """A path as seen from a folder, with ``/``; one that is not below the folder becomes absolute."""
    full = absolute(path)
    below = os.path.join(os.path.abspath(root), "")
    if full.startswith(below):
        full = full[len(below) :]
    return full.replace(os.sep, "/")
