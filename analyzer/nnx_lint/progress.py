"""A line on the terminal that says how far a long run is.

Nothing is drawn in the first second, so that a short run shows nothing at all; nothing is ever drawn where the other
end is no terminal. The line is drawn over itself, at most ten times a second, and wiped when the run ends, however it
ends: what is printed afterwards starts on a clean line.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nnx_lint.output.terminal import is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self, TextIO

PATIENCE = 1.0
"""Seconds before anything is drawn."""

INTERVAL = 0.1
"""Seconds between two drawings."""

BAR = 24

_WIPE = "\r\033[K"


class Progress:
    """Draws how many files are done; call it with that number and the number of all files."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._next = clock() + PATIENCE if is_terminal(stream) else float("inf")
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            self._stream.write(_WIPE)
            self._stream.flush()
            self._drawn = False

    def __call__(self, done: int, total: int) -> None:
        """Say how far the run is."""
        now = self._clock()
        if now < self._next or not total:
            return
        self._next = now + INTERVAL
        filled = BAR * done // total
        self._stream.write(f"{_WIPE}checking [{'=' * filled}{' ' * (BAR - filled)}] {done}/{total} files")
        self._stream.flush()
        self._drawn = True
