"""Room for calls that go deep, made at once.

CPython keeps the frames of Python functions in pieces of 16 KB. A call that does not fit into the last piece maps
memory for another one, and its return unmaps it. Whoever goes over a program goes down and up all the time, often over
the end of a piece, and then every few calls wait for the operating system. A function that claims to put many values on
its stack gets a piece that has room for all of them, and what it calls has the room that is left.

Invariant: the memory is not touched before frames are really there, so the claim costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

VALUES = 140_000
"""How many values the function claims: a piece is a power of two, so that nearly as much is left for what it calls."""


def with_room(run: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
    """Call a function that calls others deeply."""
    return run(*args, **keywords)


with_room.__code__ = with_room.__code__.replace(co_stacksize=VALUES)
