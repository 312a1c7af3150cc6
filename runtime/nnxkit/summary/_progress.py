"""``nnx.progress``: what a long initialisation has made so far.

Invariants

- Nothing is counted, and nothing costs time, outside of the block. Inside, other threads are not counted.
- A terminal gets one line that changes, at most ten times a second; anything else a line every ten seconds and one
  at the end. Nothing is written for a block that is over in less than a second.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, TextIO

from nnxkit._repr import amount, held_by, measure, sum_of
from nnxkit._variable import Variable

_FIRST = 1.0
_TERMINAL = 0.1
_FILE = 10.0


@contextlib.contextmanager
def progress(total: Any = None, *, label: str = "Variables", file: TextIO | None = None) -> Iterator[None]:
    """Show how far the initialisation of a model is, while the block runs in this thread.

    Args:
        total: the model as it will be, abstract: ``nnx.eval_shape(make)``. With it, the line says how much is left.
        label: what the line begins with.
        file: where it goes; to the standard error if ``None``.

    Example::

        with nnx.progress(nnx.eval_shape(lambda: Model(nnx.Rngs(0)))):
            model = Model(nnx.Rngs(0))
    """
    expected = None if total is None else sum_of(held_by(total))
    counter = _Counter(label, expected, sys.stderr if file is None else file)
    with _counting():
        before = _current.set(counter)
        try:
            yield
        finally:
            _current.reset(before)
            counter.finish()


class _Counter:
    """What was made since the block began."""

    def __init__(self, label: str, expected: tuple[int, int] | None, file: TextIO) -> None:
        self._label = label
        self._expected = expected
        self._file = file
        self._is_terminal = file.isatty()
        self._start = time.monotonic()
        self._next = self._start + _FIRST
        self._written = 0
        self._variables = self._elements = self._bytes = 0

    def add(self, variable: Variable[Any]) -> None:
        """Count a new Variable."""
        size, elements = measure(variable.get_raw_value())
        self._variables += 1
        self._elements += elements
        self._bytes += size
        now = time.monotonic()
        if now >= self._next:
            self._next = now + (_TERMINAL if self._is_terminal else _FILE)
            self._write(now)

    def finish(self) -> None:
        """Write the last line, if there was one before."""
        now = time.monotonic()
        if self._written or now >= self._start + _FIRST:
            self._write(now)
            if self._is_terminal:
                self._file.write("\n")

    def _write(self, now: float) -> None:
        line = f"{self._label}: {self._variables:,} made, {amount(self._elements, self._bytes)}"
        if self._expected is not None:
            share = self._elements / max(1, self._expected[0])
            line += f" of {amount(*self._expected)}, {share:.0%}"
        line += f", {now - self._start:.0f} s"
        self._file.write(f"\r{line:<{self._written}}" if self._is_terminal else f"{line}\n")
        self._file.flush()
        self._written = len(line)


# Variables tell when they are made, as long as somebody counts.

_current: contextvars.ContextVar[_Counter | None] = contextvars.ContextVar("nnx_progress", default=None)
_lock = threading.Lock()
_counters = 0
_plain_init = Variable.__init__


def _counted_init(self: Any, *args: Any, **kwargs: Any) -> None:
    _plain_init(self, *args, **kwargs)
    counter = _current.get()
    if counter is not None:
        counter.add(self)


@contextlib.contextmanager
def _counting() -> Iterator[None]:
    _count(+1)
    try:
        yield
    finally:
        _count(-1)


def _count(change: int) -> None:
    global _counters
    with _lock:
        _counters += change
        init: Any = _counted_init if _counters else _plain_init
        Variable.__init__ = init  # type: ignore[method-assign]
