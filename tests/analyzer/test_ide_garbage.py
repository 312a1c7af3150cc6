"""The collector walks over what may have died, and not over what has settled."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from nnx_lint.ide import garbage
from nnx_lint.ide.garbage import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator


class Knot:
    """Something that only the collector can find to be dead; it holds many blocks of memory."""

    def __init__(self, blocks: int) -> None:
        self.own = self
        self.blocks = [object() for _ in range(blocks)]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setattr(garbage, "LITTER", 1_000)
    gc.disable()
    yield Collector()
    gc.unfreeze()
    gc.enable()


def tied(blocks: int) -> weakref.ref[Knot]:
    return weakref.ref(Knot(blocks))


def test_what_died_is_collected_when_there_is_enough_of_it(collector: Collector) -> None:
    collector.tidy(waiting=False)
    little = tied(10)
    collector.tidy(waiting=False)
    assert little() is not None
    much = tied(3_000)
    collector.tidy(waiting=True)
    assert much() is not None
    collector.tidy(waiting=False)
    assert (little(), much()) == (None, None)


def test_what_has_settled_is_not_walked_over_until_it_was_given_up(collector: Collector) -> None:
    dead = tied(10)
    collector.tidy(waiting=False)  # everything there is settles
    tied(3_000)
    collector.tidy(waiting=False)
    assert dead() is not None
    collector.forget()
    assert dead() is None


def test_what_has_settled_is_looked_through_when_half_as_much_has_come(collector: Collector) -> None:
    collector.tidy(waiting=False)
    dead = tied(10)
    collector._settle()
    collector._settled = collector._kept = 20_000
    alive = Knot(1)
    collector.tidy(waiting=False)  # far more than twice as much is there: it settles
    assert dead() is not None
    collector._kept = collector._settled = int(collector._settled / 1.6)  # more than a half as much
    collector.tidy(waiting=False)
    assert dead() is None
    assert alive.own is alive
