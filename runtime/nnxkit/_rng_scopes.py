"""Random streams of a whole graph: split, forked or broadcast for a while, or in a copy.

``split_rngs`` and ``fork_rngs`` change the streams below a node in place and give them back at the end of a
``with`` block or of a decorated function; ``with_rngs`` leaves the node alone and returns a copy that shares all
other Variables, and so do the first two where transforms do without graph updates. Either way the new keys come from
one draw of each stream that is affected, and the parent's count keeps that draw.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

import jax
import jax.numpy as jnp

from nnx_rules.filters import Filter, to_predicate
from nnx_rules.records import Record
from nnx_rules.rules import rngs as rng_rules
from nnxkit._graph import clone, iter_graph, set_graph_updates
from nnxkit._graph._modes import is_graph_mode
from nnxkit._rngs import Counts, RngCount, RngKey, RngStream, SplitPattern

F = TypeVar("F", bound=Callable[..., Any])
Node = TypeVar("Node")
_MISSING: Any = dataclasses.MISSING

MakeKeys = Callable[[jax.Array], jax.Array]
"""From the key that a stream drew to the key or keys of the new stream."""


class StreamBackup(Record):
    """A stream with the key and count that it had."""

    stream: RngStream
    key: jax.Array
    count: jax.Array


class SplitBackups(Iterable[StreamBackup]):
    """What ``restore_rngs`` needs; as a context manager it restores at the end of the block."""

    def __init__(self, backups: Iterable[StreamBackup]) -> None:
        self.backups: list[StreamBackup] = list(backups)

    def __iter__(self) -> Iterator[StreamBackup]:
        return iter(self.backups)

    def __enter__(self) -> SplitBackups:
        return self

    def __exit__(self, *exc_info: object) -> None:
        restore_rngs(self)


def restore_rngs(backups: Iterable[StreamBackup], /) -> None:
    """Give streams back the keys and counts that they had before ``split_rngs`` or ``fork_rngs``."""
    for backup in backups:
        backup.stream.key.set_value(backup.key)
        backup.stream.count.set_value(backup.count)


def _splitter(counts: Counts) -> MakeKeys:
    return lambda key: jax.random.split(key, counts)


def _broadcaster(counts: Counts) -> MakeKeys:
    shape = (counts,) if isinstance(counts, int) else tuple(counts)
    return lambda key: jnp.broadcast_to(key, shape)


def _same(key: jax.Array) -> jax.Array:
    return key


def _by_filter(pattern: SplitPattern | None) -> Mapping[Any, Counts]:
    if pattern is None:
        return {}
    return pattern if isinstance(pattern, Mapping) else {...: pattern}


def _streams(node: Any, graph: bool | None) -> list[tuple[tuple[Any, ...], RngStream]]:
    return [(path, value) for path, value in iter_graph(node, graph=graph) if isinstance(value, RngStream)]


def _rekey(node: Any, rules: Mapping[Any, MakeKeys], graph: bool | None) -> SplitBackups:
    """Give every stream below ``node`` that a filter takes new keys; the first filter counts."""
    predicates = [(to_predicate(literal), make) for literal, make in rules.items()]
    chosen = [
        (stream, make)
        for path, stream in _streams(node, graph)
        if (make := next((make for predicate, make in predicates if predicate(path, stream)), None)) is not None
    ]
    drawn = [make(stream()) for stream, make in chosen]
    backups = [StreamBackup(stream, stream.key.get_value(), stream.count.get_value()) for stream, _ in chosen]
    for (stream, _), key in zip(chosen, drawn, strict=True):
        stream.key.set_value(key)
        stream.count.set_value(jnp.zeros(key.shape, dtype=jnp.uint32))
    return SplitBackups(backups)


def _scoped(rekey: Callable[[Any], SplitBackups]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the streams in the arguments are changed for the time of the call."""

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with rekey((args, kwargs)):
                return f(*args, **kwargs)

        return wrapper

    return decorate


@overload
def split_rngs(
    node: Any,
    /,
    *,
    splits: Counts,
    only: Filter = ...,
    squeeze: bool = False,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> SplitBackups: ...
@overload
def split_rngs(
    *,
    splits: Counts,
    only: Filter = ...,
    squeeze: bool = False,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[[F], F]: ...
def split_rngs(
    node: Any = _MISSING,
    /,
    *,
    splits: Counts,
    only: Any = ...,
    squeeze: bool = False,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """Split the keys of the streams below ``node``, in place; without ``node`` a decorator.

    Args:
        node: a module, ``Rngs`` or container.
        splits: number or shape of the keys of each stream.
        only: filter for the streams.
        squeeze: with ``splits=1``, leave a single key instead of an array of one.
        graph: graph or tree mode; ``None`` for the configured one.
        graph_updates: whether the streams change in place, as they do with graph updates in graph mode, or a copy
            of the node is returned; ``None`` for the configured one.

    Returns:
        Backups for ``restore_rngs``, which are also a context manager; or the copy.

    Raises:
        ValueError: ``squeeze`` with another number of splits.
        RngArgumentError: a stream is split already.
        TraceContextError: a stream belongs to another trace level.

    >>> import nnxkit as nnx
    >>> rngs = nnx.Rngs(0)
    >>> with nnx.split_rngs(rngs, splits=3):
    ...     rngs.default.key.shape
    (3,)
    >>> rngs.default.key.shape
    ()
    """
    if squeeze and splits != 1:
        raise ValueError("squeeze=True needs splits=1")
    split = _splitter(splits)
    rules: dict[Any, MakeKeys] = {only: (lambda key: split(key)[0]) if squeeze else split}
    return _in_place_or_copy(node, rules, graph, graph_updates)


@overload
def fork_rngs(
    node: Any,
    /,
    *,
    split: SplitPattern | None = None,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> SplitBackups: ...
@overload
def fork_rngs(
    *, split: SplitPattern | None = None, graph: bool | None = None, graph_updates: bool | None = None
) -> Callable[[F], F]: ...
def fork_rngs(
    node: Any = _MISSING,
    /,
    *,
    split: SplitPattern | None = None,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """Fork the streams below ``node``, in place; without ``node`` a decorator.

    With ``split`` they are split instead: all of them, or those that a filter of the mapping takes.

    Returns:
        Backups for ``restore_rngs``, which are also a context manager; or the copy.

    Raises:
        RngArgumentError: a stream is split already.
        TraceContextError: a stream belongs to another trace level.
    """
    rules = {literal: _splitter(counts) for literal, counts in _by_filter(split).items()} if split else {...: _same}
    return _in_place_or_copy(node, rules, graph, graph_updates)


@overload
def with_rngs(
    node: Node,
    /,
    *,
    split: SplitPattern | None = None,
    fork: Filter | None = None,
    broadcast: SplitPattern | None = None,
    only: Filter = True,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Node: ...
@overload
def with_rngs(
    *,
    split: SplitPattern | None = None,
    fork: Filter | None = None,
    broadcast: SplitPattern | None = None,
    only: Filter = True,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[[F], F]: ...
def with_rngs(
    node: Any = _MISSING,
    /,
    *,
    split: SplitPattern | None = None,
    fork: Any = None,
    broadcast: SplitPattern | None = None,
    only: Any = True,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """A copy of ``node`` with other streams that shares all other Variables; without ``node`` a decorator.

    Args:
        node: a module, ``Rngs`` or container.
        split: number or shape of keys for all streams, or by filter: independent keys.
        fork: filter for the streams that get one new key.
        broadcast: as ``split``, with the same key repeated.
        only: filter for the streams that may change at all.
        graph: graph or tree mode; ``None`` for the configured one.
        graph_updates: accepted for code that sets the mode of transforms here.

    Raises:
        RngArgumentError: filters of two different arguments, none of them ``...``, take the same stream.

    >>> import nnxkit as nnx
    >>> rngs = nnx.Rngs(0, params=1)
    >>> batched = nnx.with_rngs(rngs, split={"params": 2}, fork=...)
    >>> batched.params.key.shape, batched.default.key.shape, rngs.params.key.shape
    ((2,), (), ())
    """
    arguments: list[tuple[str, Mapping[Any, MakeKeys]]] = [
        ("split", {literal: _splitter(counts) for literal, counts in _by_filter(split).items()}),
        ("broadcast", {literal: _broadcaster(counts) for literal, counts in _by_filter(broadcast).items()}),
        ("fork", {} if fork is None else {fork: _same}),
    ]
    return _copy(node, arguments, only, graph)


def _copy(node: Any, arguments: list[tuple[str, Mapping[Any, MakeKeys]]], only: Any, graph: bool | None) -> Any:
    """A copy of ``node`` with other streams; without ``node`` a decorator."""
    if node is not _MISSING:
        return _replaced(node, arguments, only, graph)

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = _replaced((args, kwargs), arguments, only, graph)
            return f(*args, **kwargs)

        return wrapper

    return decorate


def _in_place_or_copy(node: Any, rules: Mapping[Any, MakeKeys], graph: bool | None, graph_updates: bool | None) -> Any:
    """New keys in place, or in a copy where transforms do not propagate changes of structure."""
    updates = set_graph_updates.current_value() if graph_updates is None else graph_updates
    if not (is_graph_mode(graph) and updates):
        return _copy(node, [("split", rules)], True, graph)
    if node is _MISSING:
        return _scoped(lambda arguments: _rekey(arguments, rules, graph))
    return _rekey(node, rules, graph)


def _replaced(node: Any, arguments: list[tuple[str, Mapping[Any, MakeKeys]]], only: Any, graph: bool | None) -> Any:
    result = clone(node, variables=False, graph=graph)
    may_change = to_predicate(only)
    for path, stream in _streams(result, graph):
        make = _choose(path, stream, arguments) if may_change(path, stream) else None
        if make is not None:
            key = make(stream())
            stream.key = RngKey(key, tag=stream.tag)
            stream.count = RngCount(jnp.zeros(key.shape, dtype=jnp.uint32), tag=stream.tag)
    return result


def _choose(
    path: tuple[Any, ...], stream: RngStream, arguments: list[tuple[str, Mapping[Any, MakeKeys]]]
) -> MakeKeys | None:
    """The rule for a stream: the first one of each argument counts, and a specific one goes before ``...``."""
    specific: dict[str, MakeKeys] = {}
    general: dict[str, MakeKeys] = {}
    for argument, rules in arguments:
        for literal, make in rules.items():
            if to_predicate(literal)(path, stream):
                (general if literal in (..., True) else specific)[argument] = make
                break
    if len(specific) > 1:
        named = " and ".join(f"`{argument}`" for argument in specific)
        raise rng_rules.WITH_RNGS_CONFLICT.error(path=path, arguments=named)
    return next(iter((specific or general).values()), None)
