"""Scans of the workspace folders, each in a process of its own, with progress that the client shows and may cancel.

A folder is scanned when the settings are known, and again when they change, when files come or go, and, as far as that
is asked for, when an edit concerns files that are not open. A new scan of a folder ends the one that is running.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from nnx_lint.ide import scan
from nnx_lint.source import NOTEBOOK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.ide.analysis import Analysis
    from nnx_lsp.server import Server

log = logging.getLogger(__name__)

MODE, WORKSPACE = "diagnostic-mode", "workspace"

PAUSE = 1.0
"""Seconds without edits before files that are not open are looked at again."""


def register(server: Server) -> None:
    """Register the handlers."""
    scans = Scans(server)
    server.when_idle.append(scans.slice)
    server.when_configured.append(scans.start)

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancel(params: types.WorkDoneProgressCancelParams) -> None:
        scans.cancel(params.token)


class Scans:
    """The scans that are going on; used in the loop's thread, but for :meth:`slice`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tokens: dict[types.ProgressToken, str] = {}

    def start(self) -> None:
        """Scan all folders."""
        folders = self._server.folders().values()
        for folder in [each for each in self._tasks if each not in folders]:
            self._drop(folder)
        for folder in folders:
            self._begin(folder, None)

    def slice(self) -> bool:
        """Have files looked at again that an edit concerns. Runs in the worker's thread."""
        for analysis in self._server.session.analyses:
            if analysis.folder is None or not _is_full(analysis):
                continue
            analysis.settle()
            if analysis.outdated:
                self._server.in_loop(self._soon, analysis.folder)
        return False

    def cancel(self, token: types.ProgressToken) -> None:
        """End the scan whose progress somebody has cancelled."""
        folder = self._tokens.get(token)
        if folder is not None:
            self._drop(folder)

    def _soon(self, folder: str) -> None:
        """Scan again once nobody types any more."""
        if folder not in self._timers and folder not in self._tasks:
            self._timers[folder] = asyncio.get_running_loop().call_later(PAUSE, self._again, folder)

    def _again(self, folder: str) -> None:
        del self._timers[folder]
        if time.monotonic() - self._server.edited_at < PAUSE:
            self._soon(folder)
        elif folder not in self._tasks:
            self._begin(folder, ())

    def _begin(self, folder: str, only: Sequence[str] | None) -> None:
        self._drop(folder)
        task = asyncio.get_running_loop().create_task(self._scan(folder, only))
        self._tasks[folder] = task
        task.add_done_callback(lambda done: self._ended(folder, done))

    def _drop(self, folder: str) -> None:
        """End the scan of a folder, if there is one."""
        task = self._tasks.pop(folder, None)
        if task is not None:
            task.cancel()
            self._hide(folder)

    def _ended(self, folder: str, task: asyncio.Task[None]) -> None:
        if task.cancelled():  # by who has seen to the rest, or because the server ends
            return
        del self._tasks[folder]
        self._hide(folder)
        if task.exception() is not None:
            log.error("a scan of %s failed", folder, exc_info=task.exception())
        self._server.tell(_nothing)  # there may be more by now

    async def _scan(self, folder: str, only: Sequence[str] | None) -> None:
        request = await self._server.ask(lambda: self._request(folder, only is None))
        if request is None:
            return
        token = await self._show(folder) if request.full and request.only is None else None
        process = _Process(request)
        try:
            while (line := await process.lines.get()) is not None:
                self._take(folder, scan.read(line), token)
        finally:
            process.end()
        self._server.refresh()

    def _request(self, folder: str, everything: bool) -> scan.Request | None:
        """What to scan in a folder; runs in the worker's thread."""
        analysis = self._server.session.of_folder(folder)
        full = _is_full(analysis)
        only = None if everything else sorted(analysis.outdated)
        self._server.session.rescanned.update(dict.fromkeys((*analysis.closed(), *analysis.outdated)))
        analysis.outdated.clear()
        if everything:
            analysis.forget_closed()
        elif not only:
            return None
        texts = {path: source.text for path, source in analysis.edited.items() if not path.endswith(NOTEBOOK)}
        return scan.Request(folder, analysis.settings.raw, texts, full, only)

    def _take(self, folder: str, message: scan.Message, token: types.ProgressToken | None) -> None:
        server, session = self._server, self._server.session

        def found() -> None:
            assert isinstance(message, scan.Found)
            analysis = session.of_folder(folder)
            if analysis.found(
                message.facts, {path: facts for path, facts in message.facts.items() if facts is not None}
            ):
                session.stale.update(dict.fromkeys(session.documents))

        def result() -> None:
            assert isinstance(message, scan.Result)
            session.of_folder(folder).scanned(message.path, message.closed)
            session.rescanned[message.path] = None

        if isinstance(message, scan.Progress):
            if token is not None:
                text = f"{message.done} of {message.total} files"
                report = types.WorkDoneProgressReport(message=text, percentage=message.done * 100 // message.total)
                server.work_done_progress.report(token, report)
        else:
            server.tell(found if isinstance(message, scan.Found) else result)

    async def _show(self, folder: str) -> types.ProgressToken | None:
        """Begin to show progress, if the client can."""
        if not self._server.client.progress:
            return None
        token = str(uuid.uuid4())
        # The answer comes even if the scan has been ended by then.
        progress: Any = self._server.work_done_progress
        await asyncio.shield(progress.create_async(token))
        self._tokens[token] = folder
        begin = types.WorkDoneProgressBegin(title="nnx-lint", message="checking the workspace", cancellable=True)
        self._server.work_done_progress.begin(token, begin)
        return token

    def _hide(self, folder: str) -> None:
        """End to show the progress of a folder."""
        for token in [token for token, shown in self._tokens.items() if shown == folder]:
            del self._tokens[token]
            self._server.work_done_progress.end(token, types.WorkDoneProgressEnd())


class _Process:
    """The process of one scan; ``lines`` are what it says, and ``None`` in the end."""

    def __init__(self, request: scan.Request) -> None:
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._process = subprocess.Popen(
            scan.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=scan.environment()
        )
        threading.Thread(target=self._talk, args=(scan.ask(request),), name="scan", daemon=True).start()

    def _talk(self, request: bytes) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, RuntimeError):  # it was ended, or the loop was
            with self._process.stdin as stream:
                stream.write(request)
            for line in self._process.stdout:
                self._loop.call_soon_threadsafe(self.lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self.lines.put_nowait, None)

    def end(self) -> None:
        """End the process, if it has not ended by itself."""
        self._process.kill()
        self._process.wait()


def _is_full(analysis: Analysis) -> bool:
    """Whether files that are not open are to be checked."""
    return analysis.settings.get(MODE) == WORKSPACE


def _nothing() -> None:
    """Wakes the worker."""
