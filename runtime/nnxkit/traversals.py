"""Nested mappings as flat ones, with the path as the key, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

IsLeaf = Callable[[tuple[Any, ...], Any], bool]


class _EmptyNode:
    """Stands in a flat mapping for a mapping that was empty."""

    def __repr__(self) -> str:
        return "empty_node"

    def __reduce__(self) -> str:
        return "empty_node"


empty_node: Final = _EmptyNode()


def flatten_mapping(
    xs: Mapping[Any, Any], /, *, keep_empty_nodes: bool = False, is_leaf: IsLeaf | None = None, sep: str | None = None
) -> dict[Any, Any]:
    """A nested mapping as a flat one.

    Args:
        xs: mappings in mappings.
        keep_empty_nodes: whether an empty mapping below is kept, as `empty_node`; else nothing is left of it.
        is_leaf: takes a path and a mapping, and tells whether that is a leaf.
        sep: joins the keys of a path to one string; without, paths are tuples.

    Raises:
        TypeError: ``xs`` is no mapping.

    >>> flatten_mapping({"a": {"b": 1}, "c": 2})
    {('a', 'b'): 1, ('c',): 2}
    >>> flatten_mapping({"a": {"b": 1}}, sep="/")
    {'a/b': 1}
    """
    _require_mapping(xs)
    leaves = _leaves((), xs, is_leaf, keep_empty_nodes)
    return dict(leaves) if sep is None else {sep.join(path): leaf for path, leaf in leaves}


def flatten_to_sequence(xs: Mapping[Any, Any], /, *, is_leaf: IsLeaf | None = None) -> list[tuple[Any, Any]]:
    """A nested mapping as a list of paths and leaves, in order.

    Raises:
        TypeError: ``xs`` is no mapping.
    """
    _require_mapping(xs)
    return list(_leaves((), xs, is_leaf, keep_empty_nodes=False))


def unflatten_mapping(xs: Any, /, *, sep: str | None = None) -> dict[Any, Any]:
    """A flat mapping, or pairs of paths and leaves, as nested dictionaries: the inverse of `flatten_mapping`.

    Raises:
        ValueError: a path leads through a leaf.

    >>> unflatten_mapping({"a/b": 1, "c": 2}, sep="/")
    {'a': {'b': 1}, 'c': 2}
    """
    nested: dict[Any, Any] = {}
    for path, leaf in xs.items() if isinstance(xs, Mapping) else xs:
        *above, last = path if sep is None else path.split(sep)
        node = nested
        for key in above:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                raise ValueError(f"the path {path!r} leads through a leaf, at {key!r}")
        node[last] = {} if leaf is empty_node else leaf
    return nested


def _leaves(
    path: tuple[Any, ...], value: Any, is_leaf: IsLeaf | None, keep_empty_nodes: bool
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not isinstance(value, Mapping) or (is_leaf is not None and is_leaf(path, value)):
        yield path, value
    elif value:
        for key in value:
            yield from _leaves((*path, key), value[key], is_leaf, keep_empty_nodes)
    elif keep_empty_nodes and path:
        yield path, empty_node


def _require_mapping(xs: object) -> None:
    if not isinstance(xs, Mapping):
        raise TypeError(f"expected a mapping, got a {type(xs).__name__}")
