"""Random streams: named, stateful sources of keys.

A stream is a key and a counter, both Variables. Its n-th key is ``fold_in(key, n)``, so that the sequence depends
on the key alone, and the counter is the only state that a draw changes (after a trace check, like every Variable).

``fork``, ``split`` and ``broadcast`` draw one key from each stream they affect and make new streams of it; the
parent stays usable.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, overload

import jax
import jax.numpy as jnp

from nnx_rules.errors import format_path
from nnx_rules.filters import to_predicate
from nnx_rules.rules import rngs as rules
from nnxkit._deprecation import deprecated
from nnxkit._graph import iter_graph
from nnxkit._pytree import Pytree
from nnxkit._repr import count_as
from nnxkit._samplers import Samplers
from nnxkit._typevars import TypeVar
from nnxkit._variable import Variable

A = TypeVar("A", default=Any)

Counts = int | tuple[int, ...]
"""How many keys a split makes, as a shape."""

SplitPattern = Counts | Mapping[Any, Counts]
"""Counts for all streams, or by filter; the first filter that takes a stream counts."""


class RngState(Variable[A]):
    """State of a random stream."""

    __slots__ = ()


class RngKey(RngState[A]):
    """The key of a random stream; ``tag`` is the name of the stream."""

    __slots__ = ()


class RngCount(RngState[A]):
    """The number of keys drawn from a random stream; ``tag`` is the name of the stream."""

    __slots__ = ()


count_as(RngKey, RngState)
count_as(RngCount, RngState)


_seeded: Callable[[Any], jax.Array] = jax.random.key


@functools.partial(jax.jit, inline=True)
def _draw(key: jax.Array, count: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The key with that number, and the number of the next one. Compiled, since most of making a model is drawing."""
    return jax.random.fold_in(key, count), count + 1


def _as_key(value: Any) -> jax.Array:
    """A typed key from a seed, a key (old-style arrays too), a Variable that holds one, or a stream."""
    if isinstance(value, RngStream):
        return _as_key(value.key)
    if isinstance(value, Variable):
        return _as_key(value.get_value())
    if isinstance(value, int) and not isinstance(value, bool):
        return _seeded(value)
    dtype = None if isinstance(value, Pytree) else getattr(value, "dtype", None)
    if dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return jnp.asarray(value)
    if dtype is not None and jnp.issubdtype(dtype, jnp.integer):
        array = jnp.asarray(value)
        if array.ndim == 0:
            return _seeded(array)
        if array.dtype == jnp.uint32 and array.shape[-1] == 2:
            wrapped: jax.Array = jax.random.wrap_key_data(array)
            return wrapped
    raise rules.RNG_ARGUMENT.error(given=f"{value!r} of type {type(value).__name__}")


class RngStream(Samplers, Pytree):
    """A named stream of keys.

    Args:
        key: a seed, a key, or another stream, whose key is taken.
        tag: the name, by which filters select it.

    >>> import nnxkit as nnx
    >>> stream = nnx.RngStream(0, tag="noise")
    >>> key = stream()
    >>> int(stream.count)
    1
    """

    def __init__(self, key: Any, *, tag: str) -> None:
        key = _as_key(key)
        self.tag = tag
        self.key: RngKey[jax.Array] = RngKey(key, tag=tag)
        self.count: RngCount[jax.Array] = RngCount(jnp.zeros(key.shape, dtype=jnp.uint32), tag=tag)

    def __call__(self) -> jax.Array:
        """The next key, of shape ``()``.

        Raises:
            TraceContextError: the stream belongs to another trace level.
            RngArgumentError: the keys of the stream are split.
        """
        self.count._check_mutation()
        key, count = self.key.get_value(), self.count.get_value()
        if key.ndim:
            raise rules.KEYS_ALREADY_SPLIT.error(name=self.tag, shape=key.shape)
        result: jax.Array
        result, count = _draw(key, count)
        self.count.set_value(count)
        return result

    def _next_key(self) -> jax.Array:
        return self()

    @overload
    def fork(self, *, split: None = None) -> RngStream: ...
    @overload
    @deprecated("the argument 'split' of 'fork' is deprecated, use the method 'split'")
    def fork(self, *, split: Counts) -> RngStream: ...
    def fork(self, *, split: Counts | None = None) -> RngStream:
        """A new, independent stream. ``split`` is deprecated: use :meth:`split`."""
        if split is not None:
            _warn_split()
            return self.split(split)
        return RngStream(self(), tag=self.tag)

    def split(self, k: Counts) -> RngStream:
        """A new stream with ``k`` keys: a batch of independent streams."""
        return RngStream(jax.random.split(self(), k), tag=self.tag)

    def broadcast(self, k: Counts) -> RngStream:
        """A new stream with one key, repeated ``k`` times."""
        shape = (k,) if isinstance(k, int) else tuple(k)
        return RngStream(jnp.broadcast_to(self(), shape), tag=self.tag)


def _warn_split() -> None:
    warnings.warn(
        "the argument 'split' of 'fork' is deprecated, use the method 'split'", DeprecationWarning, stacklevel=3
    )


class Rngs(Samplers, Pytree):
    """Named random streams. A name that has no stream falls back on the stream ``default``.

    Args:
        default: seed, key or stream of the default stream; or a mapping of names to these.
        **rngs: the other streams.

    Raises:
        RngArgumentError: a value is no seed, key or stream.
        RngStreamError: an attribute names no stream, and there is no default stream.
        RngStreamKeyError: an item names no stream.

    >>> import nnxkit as nnx
    >>> rngs = nnx.Rngs(0, params=1)
    >>> rngs.params().shape, rngs.dropout().shape
    ((), ())
    >>> rngs.normal((2, 3)).shape
    (2, 3)
    """

    def __init__(self, default: Any = None, /, **rngs: Any) -> None:
        streams = dict(rngs)
        if isinstance(default, Mapping) and not isinstance(default, Pytree):
            streams = {**default, **streams}
        elif default is not None:
            if "default" in streams:
                raise TypeError("Rngs got two values for the stream 'default'")
            streams["default"] = default
        for name, value in streams.items():
            setattr(self, name, RngStream(value, tag=name))

    def _stream(self, name: str) -> RngStream | None:
        stream = vars(self).get(name)
        if stream is None:
            stream = vars(self).get("default")
        return stream if isinstance(stream, RngStream) else None

    def __getattr__(self, name: str) -> RngStream:
        if name.startswith("_"):  # protocols ask for such names (copy, pickle, IPython), and must not draw
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        stream = self._stream(name)
        if stream is None:
            raise rules.MISSING_STREAM.error(cls="Rngs", name=name, streams=self._names())
        return stream

    def __getitem__(self, name: str) -> RngStream:
        stream = self._stream(name)
        if stream is None:
            raise rules.MISSING_STREAM_ITEM.error(cls="Rngs", name=name, streams=self._names())
        return stream

    def _names(self) -> str:
        return ", ".join(f"`{name}`" for name in self) or "none"

    def __call__(self) -> jax.Array:
        """The next key of the default stream."""
        return self._next_key()

    def _next_key(self) -> jax.Array:
        return self.__getattr__("default")()

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items())

    def __len__(self) -> int:
        return sum(1 for _ in self.items())

    def __contains__(self, name: object) -> bool:
        return isinstance(vars(self).get(name), RngStream) if isinstance(name, str) else False

    def items(self) -> Iterator[tuple[str, RngStream]]:
        """Names and streams."""
        return iter([(name, value) for name, value in vars(self).items() if isinstance(value, RngStream)])

    @overload
    def fork(self, *, split: None = None) -> Rngs: ...
    @overload
    @deprecated("the argument 'split' of 'fork' is deprecated, use the method 'split'")
    def fork(self, *, split: SplitPattern) -> Rngs: ...
    def fork(self, *, split: SplitPattern | None = None) -> Rngs:
        """New, independent streams, one for each. ``split`` is deprecated: use :meth:`split`."""
        if split is not None:
            _warn_split()
            return self._derive(split, RngStream.split, RngStream.fork)
        return Rngs(**{name: stream.fork() for name, stream in self.items()})

    def split(self, k: SplitPattern) -> Rngs:
        """New streams with ``k`` keys each; with a mapping only the streams that a filter takes are split, the
        others are shared.
        """
        return self._derive(k, RngStream.split, lambda stream: stream)

    def broadcast(self, k: SplitPattern) -> Rngs:
        """New streams with one key each, repeated ``k`` times; with a mapping as in :meth:`split`."""
        return self._derive(k, RngStream.broadcast, lambda stream: stream)

    def _derive(
        self,
        pattern: SplitPattern,
        batch: Callable[[RngStream, Counts], RngStream],
        otherwise: Callable[[RngStream], RngStream],
    ) -> Rngs:
        by_filter: Mapping[Any, Counts] = pattern if isinstance(pattern, Mapping) else {...: pattern}
        predicates = [(to_predicate(key), count) for key, count in by_filter.items()]
        derived = Rngs()
        for name, stream in self.items():
            counts = (count for predicate, count in predicates if predicate((name,), stream))
            count = next(counts, None)
            setattr(derived, name, otherwise(stream) if count is None else batch(stream, count))
        return derived


Policy = str | Callable[[tuple[Any, ...], jax.Array, tuple[int, ...]], jax.Array]
"""What ``reseed`` does with a stream of several keys: ``policy(path, key, shape)`` gives keys of that shape."""


def _scalars_only(path: tuple[Any, ...], key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    if shape:
        raise rules.KEYS_ALREADY_SPLIT.error(path=path, name=format_path(path), shape=shape)
    return key


def _match_shape(path: tuple[Any, ...], key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return jax.random.split(key, shape) if shape else key


_POLICIES = {"scalars_only": _scalars_only, "match_shape": _match_shape}


def reseed(node: Any, /, *, graph: bool | None = None, policy: Policy = "scalars_only", **stream_keys: Any) -> None:
    """Give the named streams below ``node`` new keys, and start their counts at 0, in place.

    Args:
        node: a module, ``Rngs`` or container.
        graph: graph or tree mode; ``None`` for the configured one.
        policy: what to do with streams of several keys: ``"scalars_only"`` refuses them, ``"match_shape"`` splits
            the new key into that many, a callable is given path, key and shape.
        **stream_keys: a seed, key or stream by tag of the streams. Streams of one tag get one key after the other from
            it, in the order of the graph.

    Raises:
        RngArgumentError: a stream of several keys under ``"scalars_only"``, or another policy.

    >>> import nnxkit as nnx
    >>> dropout = nnx.Dropout(0.5, rngs=nnx.Rngs(dropout=0))
    >>> before = dropout(jax.numpy.ones(9))
    >>> nnx.reseed(dropout, dropout=0)
    >>> bool((dropout(jax.numpy.ones(9)) == before).all())
    True
    """
    choose = _POLICIES.get(policy) if isinstance(policy, str) else policy
    if choose is None:
        raise rules.RESEED_POLICY.error(policy=policy)
    keys = {tag: RngStream(value, tag=tag) for tag, value in stream_keys.items()}
    streams = [
        (path, value)
        for path, value in iter_graph(node, graph=graph)
        if isinstance(value, RngStream) and value.tag in keys
    ]
    new_keys = [choose(path, keys[stream.tag](), stream.key.get_value().shape) for path, stream in streams]
    for (_, stream), key in zip(streams, new_keys, strict=True):
        stream.key.set_value(key)
        stream.count.set_value(jnp.zeros(key.shape, dtype=jnp.uint32))
