"""The thread of the analysis: in which order work is done, and what gives way to what."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest

from nnx_lsp import worker as module
from nnx_lsp.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.asyncio

LONG = 20
"""Seconds after which a test gives up."""


@pytest.fixture
def worker() -> Iterator[Worker]:
    def failed(error: BaseException) -> None:
        raise error

    made = Worker(lambda: False, failed)
    yield made
    made.stop()


async def test_a_quick_job_is_done_in_a_pause_of_a_long_one(worker: Worker) -> None:
    done: list[str] = []

    def long() -> str:
        while "quick" not in done:
            worker.pause()
        done.append("long")
        return "answer"

    asked = asyncio.ensure_future(worker.ask(long))
    worker.start()
    await asyncio.wait_for(worker.ask(lambda: done.append("quick"), quick=True), LONG)
    assert await asyncio.wait_for(asked, LONG) == "answer"
    assert done == ["quick", "long"]


async def test_an_edit_comes_before_a_quick_job_and_starts_a_long_one_again(worker: Worker) -> None:
    done: list[str] = []
    loop = asyncio.get_running_loop()
    begun = asyncio.Event()

    def long() -> None:
        done.append("begun")
        loop.call_soon_threadsafe(begun.set)
        while "quick" not in done:
            worker.pause()
        done.append("ended")

    asked = asyncio.ensure_future(worker.ask(long))
    worker.start()
    await asyncio.wait_for(begun.wait(), LONG)
    worker.edit(lambda: done.append("edit"))
    quick = asyncio.ensure_future(worker.ask(lambda: done.append("quick"), quick=True))
    await asyncio.wait_for(asyncio.gather(asked, quick), LONG)
    assert done.index("edit") < done.index("quick")
    assert done[-1] == "ended"


async def test_a_job_that_nobody_waits_for_is_given_up_although_a_quick_one_came_between(worker: Worker) -> None:
    done: list[str] = []
    loop = asyncio.get_running_loop()
    begun = asyncio.Event()

    def long() -> None:
        loop.call_soon_threadsafe(begun.set)
        try:
            while True:
                worker.pause()
        finally:
            done.append("given up")

    asked = asyncio.ensure_future(worker.ask(long))
    worker.start()
    await asyncio.wait_for(begun.wait(), LONG)
    await asyncio.wait_for(worker.ask(lambda: done.append("quick"), quick=True), LONG)
    asked.cancel()
    await asyncio.wait_for(worker.ask(lambda: done.append("next")), LONG)
    assert done == ["quick", "given up", "next"]


async def test_garbage_is_collected_at_rest(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    rested = asyncio.Event()
    seen: list[bool] = []

    class Collector:
        def tidy(self, *, waiting: bool) -> None:
            seen.append(waiting)
            if not waiting:
                loop.call_soon_threadsafe(rested.set)

    monkeypatch.setattr(module, "COLLECTOR", Collector())
    monkeypatch.setattr(module, "REST", 0.0)
    worker.start()
    await asyncio.wait_for(rested.wait(), LONG)
    for _ in range(20):
        rested.clear()
        await asyncio.wait_for(worker.ask(lambda: None), LONG)
        await asyncio.wait_for(rested.wait(), LONG)
    assert seen[0], "work comes first"
    assert all(before or after for before, after in itertools.pairwise(seen)), "what was collected is not so again"
