"""Several processes for one run: each checks some of the files, and sends what it found.

A worker is a fork: it has all that was read so far and shares the memory. Files are handed out one by one, big ones
first, so that no worker waits long for another at the end. A worker that dies takes one file with it, which is
reported, and is replaced.

Invariants: each file is answered for exactly once, by its unit or by a crash; no worker outlives the run, whatever
ends it. Where a process cannot be forked, or has threads (a fork may then wait for ever), nothing here is used.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from nnx_lint.units import crashed, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nnx_lint.units import Unit

    Check = Callable[[str], Unit]


def possible() -> bool:
    """Whether this process can have workers."""
    threading = sys.modules.get("threading")
    return hasattr(os, "fork") and (threading is None or threading.active_count() == 1)


class _Worker:
    """A forked process that checks one file at a time; ``path`` is the one that it is at."""

    def __init__(self, check: Check, others: Sequence[_Worker]) -> None:
        self.path: str | None = None
        asked, self._ask = os.pipe()
        self.answers, answer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            # Nothing of the parent runs in here: no handlers, no flushing at the end.
            code = 1
            try:
                for other in others:
                    other.close()
                os.close(self._ask)
                os.close(self.answers)
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                _serve(check, asked, answer)
                code = 0
            finally:
                os._exit(code)
        os.close(asked)
        os.close(answer)
        self._received = b""

    def ask(self, path: str) -> None:
        """Hand out a file."""
        self.path = path
        with suppress(BrokenPipeError):  # it died meanwhile, which reading its answer tells
            os.write(self._ask, json.dumps(path).encode() + b"\n")

    def answer(self) -> Unit | None:
        """The unit of the file that was handed out, once it has come entirely.

        Raises:
            EOFError: the worker died.
        """
        received = os.read(self.answers, 1 << 20)
        if not received:
            raise EOFError
        self._received += received
        if not self._received.endswith(b"\n"):
            return None
        line, self._received = self._received, b""
        self.path = None
        return unpack(json.loads(line))

    def close(self) -> None:
        """Close the pipes: a worker that waits for a file ends then."""
        os.close(self._ask)
        os.close(self.answers)

    def end(self) -> int:
        """End the process, and say how it ended."""
        self.close()
        if self.path is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _serve(check: Check, asked: int, answer: int) -> None:
    with os.fdopen(asked, "rb") as lines, os.fdopen(answer, "wb") as out:
        for line in lines:
            out.write(json.dumps(pack(check(json.loads(line)))).encode() + b"\n")
            out.flush()


def spread(check: Check, paths: Sequence[str], jobs: int) -> Iterator[Unit]:
    """The units of some files, in the order in which they are done; ``paths`` begins with the files that cost most."""
    import select

    todo = list(reversed(paths))
    workers: list[_Worker] = []
    try:
        while len(workers) < min(jobs, len(paths)):
            workers.append(_Worker(check, workers))
        for worker in workers:
            worker.ask(todo.pop())
        while busy := {worker.answers: worker for worker in workers if worker.path is not None}:
            for ready in select.select(list(busy), [], [])[0]:
                worker = busy[ready]
                path = worker.path
                assert path is not None
                try:
                    unit = worker.answer()
                except EOFError:
                    workers.remove(worker)
                    yield crashed(path, ChildProcessError(_death(worker.end())))
                    if not todo:
                        continue
                    worker = _Worker(check, workers)
                    workers.append(worker)
                    unit = None
                else:
                    if unit is None:
                        continue
                    yield unit
                if todo:
                    worker.ask(todo.pop())
    finally:
        for worker in workers:
            worker.end()


def _death(code: int) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return f"the process that checked it {how}"
