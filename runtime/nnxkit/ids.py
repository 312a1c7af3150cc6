"""Identities: values that equal nothing but themselves."""

from __future__ import annotations

import itertools

_numbers = itertools.count()


class UUID:
    """An identity; a copy of it is another one."""

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = next(_numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UUID) and self._number == other._number

    def __hash__(self) -> int:
        return hash((UUID, self._number))

    def __copy__(self) -> UUID:
        return UUID()

    def __deepcopy__(self, memo: object) -> UUID:
        return UUID()

    def __repr__(self) -> str:
        return f"UUID({self._number})"


def uuid() -> UUID:
    """A new identity."""
    return UUID()
