"""The thread in which all analysis happens, and what waits for it.

Four kinds of work, in the order in which they are taken: *edits*, which are cheap and change what is known; *quick*
jobs, which need nothing but texts and what was known before; *jobs*, the answers to other requests, first come first
served; and what can be done in idle time, in slices.

An edit or the end of a request's life gives up what is running, at the next point where that is safe
(:meth:`Worker.pause`). A job that was given up for an edit starts again after it, so that its answer is about the
newest text; but somebody who types without end gets answers too: a job is not given up any more when it is
``PATIENCE`` seconds old. A quick job gives up nothing: it is done in a pause of what is running.

Garbage is collected when nothing was asked for ``REST`` seconds, since nothing else runs meanwhile; somebody who types
pays for it only when it has become much.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any, TypeVar

from nnx_lint.ide.analysis import Cancelled
from nnx_lint.ide.garbage import COLLECTOR
from nnx_lint.stack import with_room

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

PATIENCE = 0.5

REST = 0.3

STACK = 64 * 2**20
"""Bytes of stack: programs are trees, and are walked by recursion."""

log = logging.getLogger(__name__)


class _Job:
    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.result: Future[Any] = Future()
        self.began: float | None = None


class Worker:
    """Runs work in a thread of its own. ``idle`` does a slice of what can wait, and says whether there is more."""

    def __init__(self, idle: Callable[[], bool], failed: Callable[[BaseException], None]) -> None:
        self._idle = idle
        self._failed = failed
        self._wake = threading.Condition()
        self._edits: deque[Callable[[], None]] = deque()
        self._quick: deque[_Job] = deque()
        self._jobs: deque[_Job] = deque()
        self._running: _Job | None = None
        self._since = 0.0
        self._more = True
        self._littered = False
        self._ended = False

    def start(self) -> None:
        """Start the thread; what was handed over before waits for it."""
        size = threading.stack_size(STACK)
        threading.Thread(target=with_room, args=(self._run,), name="analysis", daemon=True).start()
        threading.stack_size(size)

    def edit(self, work: Callable[[], None]) -> None:
        """Change what is known, before anything else is done."""
        with self._wake:
            self._edits.append(work)
            self._wake.notify()

    async def ask(self, work: Callable[[], T], *, quick: bool = False) -> T:
        """The result of a job; whoever does not wait for it any more cancels it. A ``quick`` one asks no engine."""
        job = _Job(work)
        with self._wake:
            (self._quick if quick else self._jobs).append(job)
            self._wake.notify()
        return await asyncio.wrap_future(job.result)

    def stop(self) -> None:
        """End the thread as soon as possible."""
        with self._wake:
            self._ended = True
            self._wake.notify()

    def pause(self) -> None:
        """Do what is quick, and give up what is running if somebody else needs the thread more.

        Raises:
            Cancelled: that is so.
        """
        job = self._running
        if self._ended or (job is not None and job.result.cancelled()):
            raise Cancelled
        if (self._edits or (self._jobs and job is None)) and time.monotonic() - self._since < PATIENCE:
            raise Cancelled
        while self._quick and not self._edits:  # it is about the newest text, too
            self._answer(self._quick.popleft())

    def _run(self) -> None:
        while not self._ended:
            with self._wake:
                awake = self._wake.wait_for(self._asked, REST if self._littered else None)
                edit = self._edits.popleft() if self._edits else None
                jobs = self._quick or self._jobs
                job = jobs.popleft() if edit is None and jobs else None
            if not awake:
                COLLECTOR.tidy(waiting=False)
                self._littered = False
            elif edit is not None:
                self._more = True
                self._guarded(edit)
            elif job is not None:
                self._more = True
                self._answer(job)
                self._tidy()
            elif not self._ended:
                self._guarded(self._slice)

    def _asked(self) -> bool:
        """Whether there is something to do."""
        return bool(self._edits or self._quick or self._jobs or self._more or self._ended)

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            log.exception("a change could not be taken in")
            self._failed(error)

    def _slice(self) -> None:
        self._since = time.monotonic()
        self._more = False  # if it fails, it is not tried again before something else happens
        with contextlib.suppress(Cancelled):
            self._more = self._idle()
            if not self._more:
                self._tidy()
            return
        self._more = True

    def _tidy(self) -> None:
        self._littered = True
        COLLECTOR.tidy(waiting=True)

    def _answer(self, job: _Job) -> None:
        if job.result.cancelled():
            return
        before = self._running, self._since
        job.began = job.began or time.monotonic()
        self._running, self._since = job, job.began
        try:
            self._settle(job.result, job.work())
        except Cancelled:
            if not job.result.cancelled():
                self._jobs.appendleft(job)
        except Exception as error:
            with contextlib.suppress(InvalidStateError):
                job.result.set_exception(error)
        finally:
            self._running, self._since = before

    @staticmethod
    def _settle(future: Future[Any], result: object) -> None:
        with contextlib.suppress(InvalidStateError):  # it was cancelled at the last moment
            future.set_result(result)
