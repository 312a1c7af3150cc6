"""Several processes: every file is answered for once, whatever becomes of the workers."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from nnx_lint import workers
from nnx_lint.units import Unit

PATHS = [f"file {number}.py" for number in range(20)] + ["with\nnewline", "surrogate \udcff"]


COSTS = dict.fromkeys(PATHS, 1.0)


def plain(path):
    return Unit(path, problems=(path * 3,))


# pytest-xdist has threads, which only makes a fork unsafe where the child goes on to use what they held.
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
    # jax, which another test of this process may have loaded, warns of it, too.
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
]


@pytest.mark.parametrize("jobs", [1, 2, 5, 50])
def test_every_file_is_answered_for_once(jobs):
    units = list(workers.spread(plain, COSTS, jobs))
    assert sorted(unit.path for unit in units) == sorted(PATHS)
    assert all(unit == plain(unit.path) for unit in units)


def test_each_worker_has_neighbours_and_helps_from_the_far_end():
    costs = {"a": 3.0, "b": 1.0, "c": 1.0, "d": 1.0}
    shares = workers._Shares(costs, 2)
    assert [shares.next(1), shares.next(1), shares.next(0)] == ["b", "c", "a"]
    assert [shares.next(0), shares.next(1)] == ["d", None]


def test_files_are_handed_out_in_their_order():
    assert [unit.path for unit in workers.spread(plain, COSTS, 1)] == PATHS


def test_an_answer_longer_than_a_pipe_holds():
    def long(path):
        return Unit(path, problems=("x" * 3_000_000,))

    assert [len(unit.problems[0]) for unit in workers.spread(long, dict.fromkeys(PATHS[:4], 0.0), 2)] == [3_000_000] * 4


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("die", "how"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "was killed by signal 9"),
        (lambda: os._exit(7), "ended with code 7"),
    ],
)
def test_a_worker_that_dies_is_reported_and_replaced(die, how, jobs):
    def check(path):
        if path in {PATHS[0], PATHS[7], PATHS[8]}:
            die()
        return plain(path)

    units = {unit.path: unit for unit in workers.spread(check, COSTS, jobs)}
    assert sorted(units) == sorted(PATHS)
    for path in (PATHS[0], PATHS[7], PATHS[8]):
        (problem,) = units.pop(path).problems
        assert problem.startswith(f"{path}: internal error: ChildProcessError: the process that checked it {how};")
    assert all(unit == plain(unit.path) for unit in units.values())


def test_all_workers_dying_at_once():
    units = list(workers.spread(lambda path: os._exit(1), COSTS, 3))
    assert sorted(unit.path for unit in units) == sorted(PATHS)
    assert all(unit.crashed for unit in units)


def test_no_worker_outlives_the_run():
    pids = []
    real = os.fork

    def check(path):
        if path != PATHS[0]:
            signal.pause()
        return plain(path)

    def fork():
        pids.append(real())
        return pids[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fork", fork)
        run = workers.spread(check, COSTS, 3)
        assert next(run).path == PATHS[0]
        run.close()  # what an exception, KeyboardInterrupt too, does to it
    assert len(pids) == 3
    for pid in pids:
        with pytest.raises(ChildProcessError, match="No child"):
            os.waitpid(pid, os.WNOHANG)


def test_a_process_with_threads_does_not_fork():
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not workers.possible()
    finally:
        done.set()
        thread.join()
