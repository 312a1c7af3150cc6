"""The structure epoch: a process-wide count of structural edits.

A *plan* (see ``_graph``) describes the structure of an object graph. It stays valid as long as no object of the
graph is edited structurally: an attribute appears or goes, a Variable or node is replaced by another one, a static
value or a status changes, the metadata of a Variable is replaced. Replacing one array by another is a change of
*value* and leaves every plan valid.

Invariants:

* an object whose ``_nnx_version`` is 0 was never part of a plan; editing it costs nothing and does not move the
  epoch, so construction never does;
* a structural edit of a planned object first happens, then bumps the version of the object, then the epoch. A
  reader that sees an unchanged epoch has therefore seen all edits; one that sees a new epoch compares the versions.
"""

from __future__ import annotations

from typing import Protocol


class Planned(Protocol):
    """An object that can be part of a plan."""

    _nnx_version: int


class Epoch:
    """The count; ``EPOCH`` is the only instance."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


EPOCH = Epoch()


def touch(obj: Planned) -> None:
    """Record a structural edit of ``obj``, after the edit."""
    if obj._nnx_version:
        object.__setattr__(obj, "_nnx_version", obj._nnx_version + 1)
        EPOCH.value += 1
