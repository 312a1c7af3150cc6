"""Which axes a scan can have: the verdict of the rule ``scan-axes``.

The axes of an option are a list of :class:`Leaf`, one for each entry inside of all containers, in order. The runtime
makes them of objects, the analyzer of what a program says; both ask :func:`problem`, and each shows the option itself.

Invariants: a carry has the place of a whole argument or result, there is one at the most, and it is on both sides; each
step has a result of its own. The first thing that is wrong is the problem, of ``in_axes`` before ``out_axes``.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Label(Enum):
    """What an entry says of values."""

    AXIS = auto()
    """They are scanned over."""
    BROADCAST = auto()
    """Each step gets them as they are: ``None``."""
    CARRY = auto()
    """They go from step to step."""
    CALLED = auto()
    """An instance of ``Carry`` in place of ``Carry``."""
    OTHER = auto()
    """Something that is no axis."""


class Leaf(NamedTuple):
    """An entry of an option.

    Attributes:
        labels: what it says: one label, or one for each filter.
        whole: whether it is for a whole argument, not for a part of one.
        by_filter: whether it has filters.
        entry: the entry itself, to be shown.
    """

    labels: tuple[Label, ...]
    whole: bool
    by_filter: bool = False
    entry: object = None


class Problem(NamedTuple):
    """What is wrong with an option, the mend, and the key words of flax: the slots of ``scan-axes``."""

    option: str
    problem: str
    mend: str
    flax: str = ""


def problem(in_axes: Sequence[Leaf], out_axes: Sequence[Leaf]) -> Problem | None:
    """What is wrong with the axes of a scan; ``None`` if nothing is.

    >>> carry, rows = Leaf((Label.CARRY,), True), Leaf((Label.AXIS,), True)
    >>> problem([carry, carry], [carry, rows]).problem
    'only one value can be carried'
    """
    options = {"in_axes": in_axes, "out_axes": out_axes}
    for option, leaves in options.items():
        found = _of_one(leaves) or (_of_results(leaves) if option == "out_axes" else None)
        if found is not None:
            return Problem(option, *found)
    into, out = (any(_carries_whole(leaf) for leaf in leaves) for leaves in options.values())
    if into == out:
        return None
    return Problem(
        "out_axes" if into else "in_axes",
        "it has no `Carry`, and the other one has",
        "a carry goes in and comes out: put it in both `in_axes` and `out_axes`",
        "If one of in_axes or out_axes has Carry, the other must also have Carry",
    )


def _carries_whole(leaf: Leaf) -> bool:
    return leaf.whole and not leaf.by_filter and Label.CARRY in leaf.labels


def _of_one(leaves: Sequence[Leaf]) -> tuple[str, ...] | None:
    """What is wrong with either option."""
    plain = [leaf for leaf in leaves if not leaf.by_filter]
    if sum(map(_carries_whole, plain)) > 1:
        return "only one value can be carried", "carry a tuple", "Found multiple Carry definitions"
    if any(Label.CALLED in leaf.labels for leaf in plain):
        return "`Carry` is used as it is, without a call", "write `nnx.Carry`"
    if any(Label.CARRY in leaf.labels and not leaf.whole for leaf in plain):
        return "`Carry` is inside of a container", "give it the place of a whole argument"
    wrong = next((leaf for leaf in plain if Label.OTHER in leaf.labels), None)
    if wrong is not None:
        return f"`{wrong.entry!r}` is no axis", "write an int, `None`, `nnx.Carry` or `nnx.StateAxes`"
    return None


def _of_results(leaves: Sequence[Leaf]) -> tuple[str, ...] | None:
    """What is wrong with ``out_axes``."""
    broadcast = next((leaf for leaf in leaves if Label.BROADCAST in leaf.labels), None)
    if broadcast is not None:
        return (
            "each step has its own result, which cannot be broadcast",
            "give it an axis: 0; also to the result `None`",
            f"Cannot broadcast output state. Got {broadcast.entry}",
        )
    if any(leaf.by_filter and Label.CARRY in leaf.labels for leaf in leaves):
        return "a part of a result cannot be carried", "carry the whole module"
    return None
