"""Paths and their order.

A *path* is a tuple of keys. Keys are attribute names, list indices, or whatever hashable key a dictionary in the graph
uses, so one level may mix types that Python refuses to compare. Every function that orders keys or paths uses the order
defined here: integers, then strings, then the rest by type. It is total, and it makes the order of a flat state equal
to the depth-first order of the nested one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeAlias

Key: TypeAlias = Hashable
Path: TypeAlias = tuple[Key, ...]

_UNIFORM = ({str}, {int}, set[type]())


def key_rank(key: Key) -> tuple[object, ...]:
    """A value that orders keys of any type: integers, strings, tuples by their items, the rest by type and repr."""
    if isinstance(key, int):
        return (0, key)
    if isinstance(key, str):
        return (1, key)
    if isinstance(key, tuple):
        return (2, path_rank(key))
    return (3, type(key).__qualname__, repr(key))


def path_rank(path: Path) -> tuple[object, ...]:
    """A value that orders paths: key by key, a prefix before what continues it."""
    return tuple(map(key_rank, path))


def sorted_keys(keys: Iterable[Key]) -> list[Key]:
    """The keys in the order of `key_rank`.

    >>> sorted_keys(["b", 10, "a", 9])
    [9, 10, 'a', 'b']
    """
    keys = list(keys)
    return sorted(keys, key=None if is_uniform(keys) else key_rank)  # type: ignore[type-var, arg-type]


def is_uniform(keys: Iterable[Key]) -> bool:
    """Whether all keys are strings, or all are integers: what ``jax.tree`` can order by itself."""
    return set(map(type, keys)) in _UNIFORM
