"""Room for deep calls: what goes up and down in it asks the operating system for nothing."""

import resource

import pytest

from nnx_lint.stack import with_room

ROUNDS = 200


def leaf() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def faults(depth: int) -> int:
    """How often memory is touched for the first time, in calls one by one from each depth of a recursion."""
    before = leaf()
    for _ in range(ROUNDS):
        leaf()
    return leaf() - before + (faults(depth - 1) if depth else 0)


def test_calls_in_it_map_no_memory() -> None:
    with_room(faults, 300)  # what the frames touch first

    assert with_room(faults, 300) < ROUNDS, "a call over the end of a piece touches a new one each time"


def test_arguments_results_and_errors_go_through() -> None:
    assert with_room(int, "ff", base=16) == 255
    with pytest.raises(ZeroDivisionError, match="division"):
        with_room(divmod, 1, 0)
