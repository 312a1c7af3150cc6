"""`FlatState`: the values of a graph as a sorted sequence of paths and leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, overload

import jax

from nnxkit._deprecation import deprecated
from nnxkit._filters import compile_filters
from nnxkit._state._order import Path, path_rank
from nnxkit._state._tree import State

Item = tuple[Path, Any]


class FlatState(Sequence[Item]):
    """An immutable sequence of ``(path, leaf)`` pairs; a JAX pytree whose children are the leaves.

    Args:
        items: pairs of path and leaf.
        sort: whether to sort them by path; without it they are kept in the given order.

    >>> import nnxkit as nnx
    >>> nnx.FlatState([(("b",), 1), (("a", 0), 2)], sort=True).paths
    (('a', 0), ('b',))
    """

    __slots__ = ("__weakref__", "_leaves", "_paths")
    __module__ = "nnxkit"

    _paths: tuple[Path, ...]
    _leaves: list[Any]

    def __init__(self, items: Iterable[Item], /, *, sort: bool) -> None:
        items = list(items)
        if sort:
            items.sort(key=lambda item: path_rank(item[0]))
        self._paths = tuple(tuple(path) for path, _ in items)
        self._leaves = [leaf for _, leaf in items]

    @classmethod
    def from_sorted(cls, paths: Sequence[Path], leaves: Iterable[Any]) -> FlatState:
        """A FlatState over paths that are sorted already."""
        self = cls.__new__(cls)
        self._paths = tuple(paths)
        self._leaves = list(leaves)
        return self

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths, in order."""
        return self._paths

    @property
    def leaves(self) -> list[Any]:
        """The leaves, in the order of the paths (a new list)."""
        return list(self._leaves)

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[Item]:
        return zip(self._paths, self._leaves, strict=True)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> FlatState: ...
    def __getitem__(self, index: int | slice) -> Item | FlatState:
        if isinstance(index, slice):
            return FlatState.from_sorted(self._paths[index], self._leaves[index])
        return self._paths[index], self._leaves[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FlatState):
            return NotImplemented
        return self._paths == other._paths and self._leaves == other._leaves

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        from nnxkit._state._show import show_flat_state

        return show_flat_state(self)

    def __treescope_repr__(self, path: Any, subtree_renderer: Any) -> Any:
        from nnxkit._treescope import render_sequence

        return render_sequence(self, path, subtree_renderer)

    def split(self, first: Any, /, *filters: Any) -> FlatState | tuple[FlatState, ...]:
        """Share the leaves out among filters, all of them: one FlatState a filter (one filter: not in a tuple).

        Raises:
            FilterError: a leaf is taken by no filter, or a filter can never match.
        """
        return self._partition((first, *filters), exhaustive=True)

    def filter(self, first: Any, /, *filters: Any) -> FlatState | tuple[FlatState, ...]:
        """As `split`, but leaves that no filter takes are left out."""
        return self._partition((first, *filters), exhaustive=False)

    def _partition(self, filters: tuple[Any, ...], *, exhaustive: bool) -> FlatState | tuple[FlatState, ...]:
        parts = compile_filters(filters).partition(self._paths, self._leaves)
        if exhaustive:
            parts.require_exhaustive()
        states = tuple(FlatState.from_sorted(group.paths, group.take(self._leaves)) for group in parts.groups)
        return states[0] if len(states) == 1 else states

    @deprecated("`flat_state` is deprecated: this is a FlatState already")
    def flat_state(self) -> FlatState:
        """Deprecated: the FlatState itself, for code written when `nnx.flatten` returned a nested State."""
        return self

    @staticmethod
    def merge(flat_state: Iterable[Item], /, *flat_states: Iterable[Item]) -> FlatState:
        """One FlatState with the leaves of all; where a path repeats, the last one wins."""
        merged = dict(flat_state)
        for other in flat_states:
            merged.update(other)
        return FlatState(merged.items(), sort=True)

    def to_nested_state(self) -> State:
        """The same leaves as a `State`.

        Raises:
            StateMismatchError: a path continues another one.
        """
        ordered = FlatState(self, sort=True)
        state = State.from_sorted(ordered._paths, ordered._leaves)
        state._nested()  # finds conflicting paths here rather than at the first access
        return state


def _flatten_with_keys(state: FlatState) -> tuple[list[tuple[Any, Any]], tuple[Path, ...]]:
    keys = map(jax.tree_util.FlattenedIndexKey, range(len(state._leaves)))
    return list(zip(keys, state._leaves, strict=True)), state._paths


def _flatten(state: FlatState) -> tuple[list[Any], tuple[Path, ...]]:
    return state._leaves, state._paths


jax.tree_util.register_pytree_with_keys(FlatState, _flatten_with_keys, FlatState.from_sorted, _flatten)
