"""Progress: nothing in the first second, nothing but on a terminal, nothing left behind."""

import pytest

from nnx_lint.progress import Progress
from reports import Stream


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def capable(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


def drawn(times, *, terminal=True):
    """What is drawn by a run of files that are done at these times."""
    stream, clock = Stream(terminal), Clock()
    with Progress(stream, clock) as progress:
        for done, time in enumerate(times, 1):
            clock.now = 100.0 + time
            progress(done, len(times))
        inside = stream.getvalue()
    return inside, stream.getvalue()


def test_a_short_run_shows_nothing():
    assert drawn([0.1, 0.5, 0.99]) == ("", "")


def test_a_long_run_shows_how_far_it_is_and_wipes_it():
    inside, after = drawn([0.5, 2.0])
    assert inside == f"\r\033[Kchecking [{'=' * 24}] 2/2 files"
    assert after == inside + "\r\033[K"
    inside, _ = drawn([1.5, 1.52, 1.59, 3])
    assert [line.rstrip() for line in inside.split("\r\033[K")[1:]] == [
        f"checking [{'=' * 6}{' ' * 18}] 1/4 files",
        f"checking [{'=' * 24}] 4/4 files",
    ]


def test_nothing_is_drawn_into_a_pipe(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert drawn([5, 10], terminal=False) == ("", "")


def test_nothing_is_drawn_on_a_dumb_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert drawn([5, 10]) == ("", "")


def test_an_error_leaves_a_clean_line_too():
    stream, clock = Stream(terminal=True), Clock()

    def run():
        with Progress(stream, clock) as progress:
            clock.now += 5
            progress(1, 2)
            raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        run()
    assert stream.getvalue().endswith("\r\033[K")


def test_no_files_are_no_progress():
    stream, clock = Stream(terminal=True), Clock()
    progress = Progress(stream, clock)
    clock.now += 5
    progress(0, 0)
    assert stream.getvalue() == ""
