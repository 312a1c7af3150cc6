"""Values by their identity, as parts of keys."""

from __future__ import annotations

import weakref
from typing import Any


class Same:
    """Stands for one object: equal to what stands for the same one, as long as that lives. Refers to it weakly.

    >>> def f(): ...
    >>> Same(f) == Same(f), Same(f) == Same(print)
    (True, False)
    """

    __slots__ = ("_hash", "_reference")

    def __init__(self, value: Any) -> None:
        self._reference = weakref.ref(value)
        self._hash = id(value)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        value = self._reference()
        return isinstance(other, Same) and value is not None and value is other._reference()

    def __hash__(self) -> int:
        return self._hash
