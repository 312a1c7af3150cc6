"""Who may change what: abstract objects belong to the evaluation that made them.

The body of a module, the model of a class and the functions of a module are *evaluated* one by one, and the first two
are used by many others. What an evaluation changes on objects that were there before it, a list of another module for
instance, is seen until it ends and undone then. So the result of an evaluation follows from the text of the modules
alone, whatever was evaluated before it, in whatever order, and in which process.

Invariants: an object that can change notes its evaluation when it is made (``born``); :func:`touch` is called before
one is changed in place; evaluations nest, and end in reverse order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Changeable(Protocol):
    """An object that can change in place."""

    @property
    def born(self) -> object:
        """The evaluation that made it."""
        ...

    def saved(self) -> Callable[[], None]:
        """What puts the object back into its present state."""
        ...


_NOTHING: dict[int, Callable[[], None]] = {}
"""What has been changed by all that have ended."""


class Evaluation:
    """The objects from before it that an evaluation has changed, and how each is put back.

    ``part`` is what it is at, if somebody keeps its parts apart.
    """

    __slots__ = ("_outer", "_undo", "part")

    def __init__(self) -> None:
        self.part: object = None
        self._undo: dict[int, Callable[[], None]] = {}
        self._outer: Evaluation | None = None

    def __enter__(self) -> None:
        global current
        self._outer, current, self._undo = current, self, {}

    def __exit__(self, *_: object) -> None:
        global current
        assert self._outer is not None
        for undo in self._undo.values():
            undo()
        self._undo = _NOTHING
        self._outer, current = None, self._outer

    def keep(self, changed: Changeable) -> None:
        """Remember the state of an object, the first time that it is about to change."""
        if id(changed) not in self._undo:
            self._undo[id(changed)] = changed.saved()


current = Evaluation()
"""The evaluation that is going on; at first one that lasts as long as the process."""


def touch(changed: Changeable) -> None:
    """Say that an object is about to be changed in place."""
    if changed.born is not current:
        current.keep(changed)


def restorer(changed: object, **state: object) -> Callable[[], None]:
    """What sets attributes of an object to these values again."""

    def restore() -> None:
        for name, value in state.items():
            setattr(changed, name, value)

    return restore
