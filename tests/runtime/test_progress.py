"""``nnx.progress``: what it writes, and that nothing stays."""

from __future__ import annotations

import io
import threading
import types
from collections.abc import Iterator

import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nnxkit.summary import _progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock takes 0.4 seconds."""
    times: Iterator[float] = (0.4 * tick for tick in range(10_000))
    monkeypatch.setattr(_progress, "time", types.SimpleNamespace(monotonic=lambda: next(times)))


def make(number: int) -> nnx.List:
    return nnx.List([nnx.Param(jnp.zeros(100)) for _ in range(number)])


def test_a_terminal_gets_one_line() -> None:
    file = Terminal()
    with nnx.progress(nnx.eval_shape(lambda: make(8)), label="Net", file=file):
        make(8)
    first, *_, last = file.getvalue().removeprefix("\r").rstrip("\n").split("\r")
    assert first == "Net: 3 made, 300 (1.2 KB) of 800 (3.2 KB), 38%, 1 s"
    assert last == "Net: 8 made, 800 (3.2 KB) of 800 (3.2 KB), 100%, 4 s"
    assert file.getvalue().count("\n") == 1


def test_a_file_gets_a_line_now_and_then() -> None:
    file = io.StringIO()
    with nnx.progress(file=file):
        make(30)
    assert file.getvalue().splitlines() == [
        "Variables: 3 made, 300 (1.2 KB), 1 s",
        "Variables: 28 made, 2,800 (11.2 KB), 11 s",
        "Variables: 30 made, 3,000 (12.0 KB), 12 s",
    ]


def test_what_is_over_soon_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with nnx.progress():
        make(1)
    assert capsys.readouterr() == ("", "")


def test_only_the_block_and_its_thread_are_counted() -> None:
    before = nnx.Variable.__init__
    file = io.StringIO()

    def fail() -> None:
        make(3)
        thread = threading.Thread(target=make, args=(5,))
        thread.start()
        thread.join()
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"), nnx.progress(file=file):
        fail()
    assert nnx.Variable.__init__ is before
    assert file.getvalue().splitlines()[-1] == "Variables: 3 made, 300 (1.2 KB), 2 s"
