"""Several processes for one run: each checks some of the files, and sends what it found.

A worker is a fork: it has all that was read so far and shares the memory. Files that stand beside each other look at
the same others, so each worker has a share of neighbours, which it takes one by one; one that is done helps another
from the far end of its share. A worker that dies takes one file with it, which is reported, and is replaced.

Invariants: each file is answered for exactly once, by its unit or by a crash; no worker outlives the run, whatever
ends it. Where a process cannot be forked, or has threads (a fork may then wait for ever), nothing here is used.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from nnx_lint.units import crashed, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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


class _Shares:
    """What there is to do, by worker: neighbouring files of about the same cost together."""

    def __init__(self, costs: Mapping[str, float], count: int) -> None:
        self._costs = costs
        self._shares: list[deque[str]] = [deque() for _ in range(count)]
        total, before = sum(costs.values()), 0.0
        for path, cost in costs.items():
            middle = (before + cost / 2) / total if total else 0.0
            self._shares[min(int(middle * count), count - 1)].append(path)
            before += cost

    def next(self, number: int) -> str | None:
        """What the worker of that number should do next: its own, or the last of whoever has most left."""
        if own := self._shares[number]:
            return own.popleft()
        most = max(self._shares, key=lambda share: sum(self._costs[path] for path in share))
        return most.pop() if most else None


def spread(check: Check, costs: Mapping[str, float], jobs: int) -> Iterator[Unit]:
    """The units of some files, in the order in which they are done; ``costs`` has neighbours beside each other."""
    import select

    shares = _Shares(costs, count := min(jobs, len(costs)))
    workers: dict[int, _Worker] = {}
    try:
        for number in range(count):
            workers[number] = _Worker(check, list(workers.values()))
        for number, worker in workers.items():
            if (path := shares.next(number)) is not None:
                worker.ask(path)
        while busy := {worker.answers: number for number, worker in workers.items() if worker.path is not None}:
            for ready in select.select(list(busy), [], [])[0]:
                number = busy[ready]
                worker = workers[number]
                asked = worker.path
                assert asked is not None
                try:
                    unit = worker.answer()
                except EOFError:
                    del workers[number]
                    yield crashed(asked, ChildProcessError(_death(worker.end())))
                else:
                    if unit is None:
                        continue
                    yield unit
                if (path := shares.next(number)) is None:
                    continue
                if number not in workers:
                    workers[number] = _Worker(check, list(workers.values()))
                workers[number].ask(path)
    finally:
        for worker in workers.values():
            worker.end()


def _death(code: int) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return f"the process that checked it {how}"
