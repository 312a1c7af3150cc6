"""``ToLinen``: an NNX module as a Linen module.

The NNX module is made anew for each call: when Linen initializes it really, else abstractly, and then it gets its
values from the collections. After the call, what it changed goes back into the collections that may be written.

Invariant: random streams are no variables in Linen. Each call seeds them with the keys that Linen has for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen  # noqa: TID253 - see the package
from flax.core import FrozenDict, meta  # noqa: TID253

from nnx_rules.rules import construction as rules
from nnxkit._filters import name_leaves
from nnxkit._graph import GraphDef, merge, split
from nnxkit._rngs import RngKey, Rngs, RngState
from nnxkit._state import State, to_flat_state
from nnxkit._state._order import Path
from nnxkit._transforms import eval_shape
from nnxkit._variable import Variable
from nnxkit.bridge._variables import MISSING, collection_of, find, to_collections, to_linen_var

_frozen: Callable[[Mapping[str, Any]], Mapping[str, Any]] = FrozenDict
MetadataFn = Callable[[Variable[Any]], Any]


class ToLinen(linen.Module):
    """An NNX module as a Linen module.

    Its variables are those of the NNX module, in the collections that go with their types, without random streams.

    Attributes:
        nnx_class: makes the NNX module.
        args: arguments for that.
        kwargs: arguments for that.
        skip_rng: whether it takes no ``rngs``.
        metadata_fn: what a Variable is in a collection; ``None`` for its bare value.
    """

    nnx_class: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = _frozen({})
    skip_rng: bool = False
    metadata_fn: MetadataFn | None = to_linen_var

    @linen.compact
    def __call__(self, *args: Any, nnx_method: str | None = None, **kwargs: Any) -> Any:
        """Call the NNX module.

        Args:
            args: its arguments.
            nnx_method: a method of it other than ``__call__``.
            kwargs: its arguments.
        """
        keys = {name: self.make_rng(name) for name in self.scope.rngs}  # type: ignore[union-attr]
        make = functools.partial(self._make, keys)
        if self.is_initializing():
            module = make()
            self._store(module)  # Linen's variables are those before the first call
            return getattr(module, nnx_method or "__call__")(*args, **kwargs)
        module = self._filled(eval_shape(make), keys)
        out = getattr(module, nnx_method or "__call__")(*args, **kwargs)
        self._store(module)
        return out

    def __getattr__(self, name: str) -> Any:
        # Methods of the NNX module are methods of this one.
        if not name.startswith("_") and callable(getattr(vars(self).get("nnx_class"), name, None)):
            return functools.partial(self.__call__, nnx_method=name)
        return super().__getattr__(name)

    def _make(self, keys: Mapping[str, Any]) -> Any:
        rngs = {} if self.skip_rng else {"rngs": _streams(keys)}
        return self.nnx_class(*self.args, **self.kwargs, **rngs)

    def _filled(self, abstract: Any, keys: Mapping[str, Any]) -> Any:
        """The module with the values of the collections, and seeded streams."""
        graphdef: GraphDef[Any]
        graphdef, state = split(abstract)
        streams = _streams(keys)
        leaves = to_flat_state(state)
        wanted = [(collection_of(leaf), *path) for path, leaf in leaves if _is_kept(leaf)]
        if missing := [path for path in wanted if find(self.variables, path)[1] is MISSING]:
            raise rules.LINEN_VARIABLES.error(cls=type(abstract).__name__, path=missing[0], leaves=name_leaves(missing))
        values = [self._value(path, leaf, streams) for path, leaf in leaves]
        return merge(graphdef, State.from_sorted([path for path, _ in leaves], values))

    def _value(self, path: Path, leaf: Any, streams: Rngs) -> Any:
        if isinstance(leaf, RngState):
            shape, tag = leaf.get_raw_value().shape, leaf.get_metadata("tag")
            if not isinstance(leaf, RngKey):
                return leaf.copy(jnp.zeros(shape, jnp.uint32))
            key = streams[tag]() if tag in streams else streams()
            return leaf.copy(jax.random.split(key, shape) if shape else key)
        if not isinstance(leaf, Variable):
            return leaf
        _, value = find(self.variables, (collection_of(leaf), *path))
        return leaf.copy(meta.unbox(value))

    def _store(self, module: Any) -> None:
        leaves = [(path, collection_of(leaf), leaf) for path, leaf in to_flat_state(split(module)[1]) if _is_kept(leaf)]
        convert = self.metadata_fn or Variable.get_raw_value
        boxed = [
            (find(self.variables, (name, *path))[0][1:], name, convert(leaf))
            for path, name, leaf in leaves
            if self.is_mutable_collection(name)
        ]
        for collection, tree in to_collections(boxed).items():
            for name, value in tree.items():
                self.put_variable(collection, name, value)


def _is_kept(leaf: Any) -> bool:
    """Whether a leaf has a place in the collections."""
    return isinstance(leaf, Variable) and not isinstance(leaf, RngState)


def _streams(keys: Mapping[str, Any]) -> Rngs:
    """Streams by the names of Linen's keys, and a default one: that of ``params``, or any."""
    default = keys.get("params", next(iter(keys.values()), 0))
    return Rngs(**{"default": default, **keys})


def to_linen(
    nnx_class: Callable[..., Any],
    *args: Any,
    metadata_fn: MetadataFn | None = to_linen_var,
    name: str | None = None,
    skip_rng: bool = False,
    abstract_init: bool = True,
    **kwargs: Any,
) -> ToLinen:
    """An NNX module as a Linen module, from its class and its arguments.

    Args:
        nnx_class: makes the NNX module.
        args: arguments for that.
        metadata_fn: what a Variable is in a collection.
        name: name of the Linen module.
        skip_rng: whether ``nnx_class`` takes no ``rngs``.
        abstract_init: accepted for code that has it; only ``init`` makes values.
        kwargs: arguments of ``nnx_class``.

    >>> import jax, jax.numpy as jnp, nnxkit as nnx
    >>> model = nnx.bridge.to_linen(nnx.Linear, 2, out_features=3)
    >>> variables = model.init(jax.random.key(0), jnp.ones((1, 2)))
    >>> variables["params"]["kernel"].shape
    (2, 3)
    """
    return ToLinen(nnx_class, args, _frozen(kwargs), skip_rng=skip_rng, metadata_fn=metadata_fn, name=name)


def to_linen_class(
    base_nnx_class: Callable[..., Any],
    base_metadata_fn: MetadataFn | None = to_linen_var,
    base_skip_rng: bool = False,
    **partial_kwargs: Any,
) -> Callable[..., ToLinen]:
    """What makes Linen modules of an NNX class, from the arguments of that class."""

    def make(*args: Any, name: str | None = None, **kwargs: Any) -> ToLinen:
        return to_linen(
            base_nnx_class,
            *args,
            metadata_fn=base_metadata_fn,
            skip_rng=base_skip_rng,
            name=name,
            **{**partial_kwargs, **kwargs},
        )

    return make
