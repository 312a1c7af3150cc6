"""Conversions between the two forms of a state: nested dictionaries, and sorted paths beside leaves.

Nested dictionaries here are exact ``dict`` objects; every other value, a mapping type of the user's included, is a leaf
by the time it gets here. Empty levels have no leaf, so the flat form forgets them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nnx_rules.rules import graphs as rules
from nnxkit._state._order import Key, Path, is_uniform, sorted_keys

Nested = dict[Key, Any]


def nest(paths: Iterable[Path], leaves: Iterable[Any]) -> Nested:
    """Build nested dictionaries from paths and leaves.

    Raises:
        StateMismatchError: one path continues another, so that a place would be leaf and subtree at once.
    """
    root: Nested = {}
    # Sorted paths keep the same parent for several leaves in a row, so most leaves cost one dictionary write.
    parent_path: Path | None = None
    parent = root
    for path, leaf in zip(paths, leaves, strict=True):
        if path[:-1] != parent_path:
            parent_path = path[:-1]
            parent = root
            for depth, key in enumerate(parent_path):
                child = parent.setdefault(key, {})
                if type(child) is not dict:
                    raise rules.STATE_CONFLICT.error(path=path[: depth + 1])
                parent = child
        if type(parent.get(path[-1])) is dict:
            raise rules.STATE_CONFLICT.error(path=path)
        parent[path[-1]] = leaf
    return root


def flatten_nested(tree: Mapping[Key, Any]) -> tuple[list[Path], list[Any]]:
    """Paths and leaves of nested dictionaries, sorted. A cycle is the caller's error (``RecursionError``)."""
    paths: list[Path] = []
    leaves: list[Any] = []

    def visit(level: Mapping[Key, Any], prefix: Path) -> None:
        for key in level if len(level) < 2 else sorted_keys(level):
            value = level[key]
            if isinstance(value, dict):
                visit(value, (*prefix, key))
            else:
                paths.append((*prefix, key))
                leaves.append(value)

    visit(tree, ())
    return paths, leaves


def merge_nested(target: Nested, source: Nested) -> None:
    """Write every leaf of ``source`` into ``target``; a leaf replaces a leaf or a whole subtree.

    Raises:
        StateMismatchError: ``source`` has a subtree where ``target`` has a leaf.
    """

    def visit(into: Nested, level: Nested, prefix: Path) -> None:
        for key, value in level.items():
            if not isinstance(value, dict):
                into[key] = value
                continue
            child = into.setdefault(key, {})
            if not isinstance(child, dict):
                raise rules.STATE_CONFLICT.error(path=(*prefix, key))
            visit(child, value, (*prefix, key))

    visit(target, source, ())


def is_uniform_tree(tree: Nested) -> bool:
    """Whether every level below has keys that ``jax.tree`` can order by itself."""
    return is_uniform(tree) and all(is_uniform_tree(value) for value in tree.values() if isinstance(value, dict))
