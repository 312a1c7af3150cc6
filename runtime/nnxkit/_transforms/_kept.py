"""What a transformed function keeps between calls: one function for JAX for each structure of its inputs.

JAX knows a function that it has traced by its identity. So a transform that is called again and again keeps what it
gave to JAX, and takes it out again by the key of the inputs (``_inputs``).

Invariants

- What is kept refers to no object of a call. It is only ever traced while a call of the same structure runs, and asks
  `Running` which that is.
- Keys whose static values have no hash are compared instead, with snapshots, because such values may be edited in
  place.
- The number of functions is bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from nnxkit._transforms._inputs import Key, snapshot

F = TypeVar("F")

MAX_STRUCTURES = 1024
"""Functions that a transformed function keeps, of those with a hash and of those without."""


class Structures(Generic[F]):
    """Functions by the structure of inputs, and by further hashable values.

    Args:
        most: how many of them are kept.
    """

    __slots__ = ("_compared", "_hashed", "_most")

    def __init__(self, most: int | None = None) -> None:
        self._most = MAX_STRUCTURES if most is None else most
        self._hashed: dict[Any, F] = {}
        self._compared: list[tuple[Key, F]] = []

    def find(self, key: Key, make: Callable[[], F], further: Any = ()) -> F:
        """The function for a key, and further values; made if there is none yet, or if these have no hash."""
        whole = (key, further) if further else key
        try:
            found = self._hashed.get(whole)
        except TypeError:
            return make() if further else self._find_equal(key, make)
        if found is None:
            if len(self._hashed) >= self._most:
                self._hashed.pop(next(iter(self._hashed)), None)
            found = self._hashed.setdefault(whole, make())
        return found

    def _find_equal(self, key: Key, make: Callable[[], F]) -> F:
        for known, found in self._compared:
            if known == key:
                return found
        found = make()
        self._compared.append((snapshot(key), found))
        del self._compared[: -self._most]
        return found

    def __iter__(self) -> Iterator[F]:
        yield from self._hashed.values()
        yield from (found for _, found in self._compared)

    def __len__(self) -> int:
        return len(self._hashed) + len(self._compared)

    def clear(self) -> None:
        """Forget them all."""
        self._hashed.clear()
        self._compared.clear()


class Running(threading.local):
    """The calls that run in this thread, innermost last."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
