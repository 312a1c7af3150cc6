"""Waiting for what is being written before the program ends.

Orbax writes with thread pools, which Python shuts down when the main thread ends, before it joins other threads and
calls ``atexit`` functions; from then on nothing new can be written, and a checkpoint that is half written is lost. Only
functions registered as those of ``concurrent.futures`` itself are called earlier.
"""

from __future__ import annotations

import functools
import threading
from typing import Protocol


class _Waits(Protocol):
    def wait(self) -> None: ...


_unfinished: set[_Waits] = set()


def wait_at_exit(writing: _Waits) -> None:
    """Call ``writing.wait()`` before the program ends, unless it is `finished` until then."""
    _register()
    _unfinished.add(writing)


def finished(writing: _Waits) -> None:
    """Do not wait for this one any more."""
    _unfinished.discard(writing)


@functools.cache
def _register() -> None:
    register = getattr(threading, "_register_atexit", None)  # elsewhere than in CPython the caller has to wait
    if register is not None:
        register(_wait)


def _wait() -> None:
    for writing in list(_unfinished):
        writing.wait()
