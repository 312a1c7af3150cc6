"""`RefMap`: a mapping whose keys are objects by identity; `IndexMap`: its inverse, objects by their number.

Modules and Variables compare by content or not at all, so they are no dictionary keys. A RefMap keeps its keys alive,
so that no ``id`` is reused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

V = TypeVar("V")


class RefMap(MutableMapping[Any, V]):
    """A mutable mapping from objects, by identity, to values.

    >>> a, b = [], []
    >>> refs = RefMap([(a, 1)])
    >>> a in refs, b in refs
    (True, False)
    """

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[tuple[Any, V]] = ()) -> None:
        self._items: dict[int, tuple[Any, V]] = {id(key): (key, value) for key, value in items}

    def __getitem__(self, key: Any) -> V:
        return self._items[id(key)][1]

    def __setitem__(self, key: Any, value: V) -> None:
        self._items[id(key)] = (key, value)

    def __delitem__(self, key: Any) -> None:
        del self._items[id(key)]

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return id(key) in self._items

    @classmethod
    def from_indexmap(cls, indexmap: Mapping[int, Any]) -> RefMap[int]:
        """The numbers of objects that are given by number."""
        return RefMap((value, index) for index, value in indexmap.items())

    def by_id(self) -> dict[int, V]:
        """The values by the ``id`` of their keys."""
        return {identity: value for identity, (_, value) in self._items.items()}


class IndexMap(dict[int, Any]):
    """Objects by their number.

    >>> node = []
    >>> IndexMap.from_refmap(RefMap([(node, 0)]))[0] is node
    True
    """

    @classmethod
    def from_refmap(cls, refmap: Mapping[Any, int]) -> IndexMap:
        """The objects of a `RefMap` by their numbers."""
        return cls((index, value) for value, index in refmap.items())
