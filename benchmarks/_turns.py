"""Measurements that take turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping


def in_turns(measures: Mapping[str, Callable[[], float]], rounds: int, *, unmeasured: int = 0) -> dict[str, float]:
    """The median of what each measurement returns, in rotating order.

    ``unmeasured`` rounds come before: they compile, write byte code and warm the disk cache.
    """
    taken: dict[str, list[float]] = {name: [] for name in measures}
    names = list(measures)
    for number in range(-unmeasured, rounds):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            value = measures[name]()
            if number >= 0:
                taken[name].append(value)
    return {name: statistics.median(values) for name, values in taken.items()}
