"""The byte code of what libraries write while they are imported, kept from one start to the next.

The types of the protocol are about 550 classes, and attrs writes the methods of each as a text that it compiles: a
fifth of what the server does until it answers. Python keeps the byte code of files; this does the same for such texts,
in the same folder and under the same conditions.

Invariants: code is kept by all that it follows from, which is the text, the name that it goes by, how it is compiled,
and the version of Python, so that it is never wrong; what cannot be read or written is compiled as ever.
"""

# No `from __future__ import annotations` here: what is handed on to `compile` would take it over.
import __future__

import builtins
import contextlib
import importlib.util
import marshal
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from types import CodeType
from typing import Any

from nnx_lint.files import rewrite

PLACE = Path(importlib.util.cache_from_source(__file__, optimization="texts"))
"""Beside the byte code of this module, wherever that is."""

TAKEN_OVER = __future__.annotations.compiler_flag
"""The flag of what a text takes over from the code that compiles it; no other future is left to choose."""

Text = tuple[str, str, str, int]
"""A text, the name that it goes by, the mode, and the flags."""


@contextlib.contextmanager
def kept(place: Path = PLACE) -> Generator[None]:
    """Take the code of texts that are compiled meanwhile from a file, and keep what is new there."""
    ordinary: Callable[..., Any] = builtins.compile
    known, used = _read(place), dict[Text, CodeType]()

    def from_text(source: Any, filename: Any, mode: str, *more: Any, **named: Any) -> Any:
        if more or named or not (type(source) is type(filename) is str):
            return ordinary(source, filename, mode, *more, **named)
        flags = sys._getframe(1).f_code.co_flags  # pyright: ignore[reportPrivateUsage]
        text: Text = source, filename, mode, flags & TAKEN_OVER
        if text not in used:
            used[text] = known.get(text) or ordinary(source, filename, mode, text[3], dont_inherit=True)
        return used[text]

    builtins.compile = from_text
    try:
        yield
    finally:
        builtins.compile = ordinary
    if used.keys() != known.keys() and not sys.dont_write_bytecode:
        _write(place, used)


def _read(place: Path) -> dict[Text, CodeType]:
    try:
        head, found = marshal.loads(place.read_bytes())
    except (OSError, EOFError, TypeError, ValueError):
        return {}
    return found if head == importlib.util.MAGIC_NUMBER else {}


def _write(place: Path, found: dict[Text, CodeType]) -> None:
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        rewrite(str(place), marshal.dumps((importlib.util.MAGIC_NUMBER, found)))
