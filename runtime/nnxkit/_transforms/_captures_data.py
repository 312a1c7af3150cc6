"""Plain data: lists and dictionaries, however big, of nothing but opaque values, and of tuples, lists and dictionaries
of such.

A trainer keeps its losses in a list beside the model, and appends to it in every step. Plain data are looked through
once, and afterwards only what was added.

Invariants

- Plain data stay plain while their length stays. A longer list with the same first and last of the old elements in
  their places has been appended to.
- Nothing of the user's runs: no ``__eq__``, no ``__len__`` of a subclass.
"""

from __future__ import annotations

from operator import is_
from typing import Any

from nnxkit._transforms._captures_shapes import is_object, shape_of

_DEPTH = 8
_OBJECT = "object"


class Kinds(dict[type, Any]):
    """What values of a type are to captures, asked once for each type; ``None`` if they are opaque.

    Kept for one look only: a class may be registered with JAX later.
    """

    def is_plain(self, value: Any, depth: int = _DEPTH) -> bool:
        """Whether a value is opaque or made of opaque values; what is nested deeply, or in itself, is not plain."""
        cls = type(value)
        if cls is not list and cls is not tuple and cls is not dict:
            return self.of(value) is None
        items = list(value.values()) if cls is dict else value
        for kind in set(map(type, items)) - self.keys():
            self.of(next(item for item in items if type(item) is kind))
        if all(self[kind] is None for kind in set(map(type, items))):
            return True
        return depth > 0 and all(self.is_plain(item, depth - 1) for item in items)

    def of(self, value: Any) -> Any:
        """What a value is."""
        cls = type(value)
        if cls not in self:
            self[cls] = _OBJECT if is_object(value) else shape_of(value)
        return self[cls]


class PlainData:
    """A list or dictionary that is plain, as of the last look."""

    __slots__ = ("container", "ends", "length")

    def __init__(self, container: list[Any] | dict[Any, Any]) -> None:
        self.container = container
        self._note()

    def _note(self) -> None:
        self.length = len(self.container)
        self.ends = self._ends()

    def _ends(self) -> tuple[Any, ...]:
        """The first and the last of the elements that were looked at."""
        if isinstance(self.container, dict) or self.length == 0:
            return ()
        return self.container[0], self.container[self.length - 1]

    def is_still_plain(self) -> bool:
        """Whether it is. Elements are looked at if there is another number of them."""
        if len(self.container) == self.length:
            return True
        if Kinds().is_plain(self._fresh()):
            self._note()
            return True
        return False

    def _fresh(self) -> list[Any]:
        """What may have been added."""
        if isinstance(self.container, dict):
            return list(self.container.values())
        is_longer = len(self.container) > self.length and all(map(is_, self._ends(), self.ends))
        return self.container[self.length if is_longer else 0 :]
