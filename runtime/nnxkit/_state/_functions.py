"""Functions over States: conversion, partition, merging, and the way to and from plain dictionaries for checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

from nnx_rules.filters import Filter
from nnx_rules.rules import graphs as rules
from nnxkit._filters import compile_filters
from nnxkit._state import _nested
from nnxkit._state._flat import FlatState
from nnxkit._state._order import Key, Path
from nnxkit._state._tree import State
from nnxkit._variable import Variable, pure_value

C = TypeVar("C")
M = TypeVar("M", bound=Mapping[Any, Any])


def as_state(state: Mapping[Key, Any]) -> State:
    """The mapping itself if it is a State, else a State of its leaves."""
    return state if isinstance(state, State) else State(state)


def to_flat_state(state: Mapping[Key, Any]) -> FlatState:
    """The leaves of a State as sorted pairs of path and leaf."""
    return FlatState.from_sorted(*as_state(state).flat_items())


@overload
def from_flat_state(flat_state: Mapping[Path, Any] | Iterable[tuple[Path, Any]]) -> State: ...
@overload
def from_flat_state(flat_state: Mapping[Path, Any] | Iterable[tuple[Path, Any]], *, cls: type[C]) -> C: ...
def from_flat_state(flat_state: Mapping[Path, Any] | Iterable[tuple[Path, Any]], *, cls: type[Any] = State) -> Any:
    """A State (or another mapping class, ``dict`` for instance) from paths and leaves.

    Raises:
        StateMismatchError: a path continues another one.
    """
    items = flat_state.items() if isinstance(flat_state, Mapping) else flat_state
    state = FlatState(items, sort=True).to_nested_state()
    return _convert(state, cls)


def diff(state: State, other: State) -> State:
    """The leaves of a State at paths that another one does not have.

    >>> import nnxkit as nnx
    >>> list(nnx.statelib.diff(nnx.State({"a": 1, "b": 2}), nnx.State({"a": 3})))
    ['b']
    """
    known = set(other.flat_items()[0])
    return from_flat_state((path, leaf) for path, leaf in zip(*state.flat_items(), strict=True) if path not in known)


def map_state(f: Callable[[Path, Any], Any], state: M) -> M:
    """A State of the same structure, with ``f(path, leaf)`` for every leaf."""
    paths, leaves = as_state(state).flat_items()
    mapped = State.from_sorted(paths, [f(path, leaf) for path, leaf in zip(paths, leaves, strict=True)])
    result: M = _convert(mapped, type(state))
    return result


@overload
def split_state(state: M, a: Filter, /) -> M: ...
@overload
def split_state(state: M, a: Filter, b: Filter, /) -> tuple[M, M]: ...
@overload
def split_state(state: M, a: Filter, b: Filter, c: Filter, /) -> tuple[M, M, M]: ...
@overload
def split_state(state: M, a: Filter, b: Filter, c: Filter, d: Filter, /) -> tuple[M, M, M, M]: ...
@overload
def split_state(state: M, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, /) -> tuple[M, M, M, M, M]: ...
@overload
def split_state(
    state: M, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, f: Filter, /
) -> tuple[M, M, M, M, M, M]: ...
@overload
def split_state(state: Mapping[Any, Any], first: Filter, /, *filters: Any) -> Any: ...
def split_state(state: Mapping[Key, Any], first: Any, /, *filters: Any) -> Any:
    """Share the leaves of a State out among filters: one State for one filter, else a tuple.

    Raises:
        FilterError: a leaf is taken by no filter, or a filter can never match.
    """
    return _partition(state, (first, *filters), exhaustive=True)


@overload
def filter_state(state: M, a: Filter, /) -> M: ...
@overload
def filter_state(state: M, a: Filter, b: Filter, /) -> tuple[M, M]: ...
@overload
def filter_state(state: M, a: Filter, b: Filter, c: Filter, /) -> tuple[M, M, M]: ...
@overload
def filter_state(state: M, a: Filter, b: Filter, c: Filter, d: Filter, /) -> tuple[M, M, M, M]: ...
@overload
def filter_state(state: M, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, /) -> tuple[M, M, M, M, M]: ...
@overload
def filter_state(
    state: M, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, f: Filter, /
) -> tuple[M, M, M, M, M, M]: ...
@overload
def filter_state(state: Mapping[Any, Any], first: Filter, /, *filters: Any) -> Any: ...
def filter_state(state: Mapping[Key, Any], first: Any, /, *filters: Any) -> Any:
    """As `split_state`, but leaves that no filter takes are left out."""
    return _partition(state, (first, *filters), exhaustive=False)


@overload
def merge_state(state: Mapping[Any, Any], /, *states: Mapping[Any, Any]) -> State: ...
@overload
def merge_state(state: Mapping[Any, Any], /, *states: Mapping[Any, Any], cls: type[C]) -> C: ...
def merge_state(state: Mapping[Key, Any], /, *states: Mapping[Key, Any], cls: type[Any] = State) -> Any:
    """One State with the leaves of all; where a path repeats, the last one wins.

    Raises:
        StateMismatchError: one State has a subtree where an earlier one has a leaf.
    """
    if not states and isinstance(state, State):
        return _convert(state, cls)
    merged = State(state)
    tree = merged._expose()
    for other in states:
        _nested.merge_nested(tree, as_state(other)._nested())
    return _convert(merged, cls)


def to_pure_dict(state: Mapping[Key, Any], extract_fn: Callable[[Any], Any] | None = None) -> dict[Key, Any]:
    """Nested dictionaries of plain values: what checkpoints hold.

    Args:
        state: the State.
        extract_fn: takes a leaf to its plain value; by default, Variables and array references to what they hold,
            anything else to itself.
    """
    extract = extract_fn or pure_value
    paths, leaves = as_state(state).flat_items()
    return _nested.nest(paths, map(extract, leaves))


def replace_by_pure_dict(
    state: State, pure_dict: Mapping[Key, Any], replace_fn: Callable[[Any, Any], Any] | None = None
) -> None:
    """Write the values of a plain dictionary into a State, in place; paths that it lacks keep their leaves.

    Args:
        state: the State to write to.
        pure_dict: nested dictionaries of values, such as `to_pure_dict` makes.
        replace_fn: takes a leaf and the new value to the new leaf; by default, a Variable is copied with the new value.

    Raises:
        StateMismatchError: the dictionary has a path that the State does not have; nothing is written.
    """
    replace = replace_fn or _replaced
    current = dict(zip(*state.flat_items(), strict=True))
    new: dict[Path, Any] = {}
    for path, value in zip(*State(pure_dict).flat_items(), strict=True):
        if path not in current:
            raise rules.UPDATE_UNKNOWN_PATH.error(cls=type(state).__name__, path=path)
        new[path] = replace(current[path], value)
    _nested.merge_nested(state._expose(), _nested.nest(new.keys(), new.values()))


def restore_int_paths(pure_dict: Mapping[Key, Any]) -> dict[Key, Any]:
    """Turn keys that are digit strings back into integers, as after a round trip through JSON.

    >>> restore_int_paths({"layers": {"0": 1.0}})
    {'layers': {0: 1.0}}
    """
    return {
        int(key) if isinstance(key, str) and key.isdecimal() else key: (
            restore_int_paths(value) if isinstance(value, Mapping) else value
        )
        for key, value in pure_dict.items()
    }


def _partition(state: Mapping[Key, Any], filters: tuple[Any, ...], *, exhaustive: bool) -> Any:
    paths, leaves = as_state(state).flat_items()
    parts = compile_filters(filters).partition(paths, leaves)
    if exhaustive:
        parts.require_exhaustive()
    states = tuple(_convert(State.from_sorted(group.paths, group.take(leaves)), type(state)) for group in parts.groups)
    return states[0] if len(states) == 1 else states


def _convert(state: State, cls: type[Any]) -> Any:
    if isinstance(state, cls):
        return state
    return cls(_nested.nest(*state.flat_items()))


def _replaced(leaf: Any, value: Any) -> Any:
    return leaf.copy(value) if isinstance(leaf, Variable) else value
