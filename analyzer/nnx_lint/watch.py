"""``--watch``: check again whenever a file changes.

The watched files are looked at by name, time and size, without any service of the operating system. Finding them anew
shows files that came and went. Looking costs something in a large tree, so the pause between two looks is a multiple of
what the last one took. A file that is still being written changes again, and is then checked again.

The loop ends with Ctrl-C, which is how it is meant to end.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from nnx_lint.output.terminal import is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TextIO

PAUSE = 0.25
"""Seconds between two looks at a small tree."""

SHARE = 10
"""A look takes at most one part in this many of the time."""

_CLEAR = "\033[2J\033[3J\033[H"

Stamps = dict[str, tuple[int, int, int]]
"""Time, size and number of every file that exists, by path."""


def watch(
    look: Callable[[], Iterable[str]],
    check: Callable[[frozenset[str] | None], None],
    stream: TextIO,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Check, and check again after every change, until Ctrl-C.

    Args:
        look: the files that matter, configuration included; asked before every look, since files come and go.
        check: checks and reports. It gets the paths that were changed, made or removed, and ``None`` the first time.
        stream: what the results go to; a terminal is cleared before each check.
        wait: sleeps for some seconds.
    """
    try:
        stamps = _stamps(look())
        changed: frozenset[str] | None = None
        while True:
            if is_terminal(stream):
                stream.write(_CLEAR)
            check(changed)
            files = "1 file" if len(stamps) == 1 else f"{len(stamps)} files"
            stream.write(f"\nWatching {files} for changes; Ctrl-C ends this.\n")
            stream.flush()
            stamps, changed = _change(look, stamps, wait)
    except KeyboardInterrupt:
        stream.write("\n")


def _change(
    look: Callable[[], Iterable[str]], before: Stamps, wait: Callable[[float], None]
) -> tuple[Stamps, frozenset[str]]:
    """Waits for a change; returns what the files are like after it, and which ones it is."""
    pause = PAUSE
    while True:
        wait(pause)
        start = time.monotonic()
        after = _stamps(look())
        pause = max(PAUSE, SHARE * (time.monotonic() - start))
        changed = _differences(before, after)
        if changed:
            return after, changed


def _stamps(paths: Iterable[str]) -> Stamps:
    stamps: Stamps = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        stamps[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return stamps


def _differences(before: Mapping[str, object], after: Mapping[str, object]) -> frozenset[str]:
    return frozenset(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
