"""Pytrees of objects as pytrees of structure and values: ``to_tree``, ``from_tree``.

``to_tree`` puts a `NodeStates` in the place of every graph object of a pytree, so that any function of JAX takes it,
and ``from_tree`` puts the objects back. Within one call the objects share one numbering: one that is met again is a
reference to the first. Between the two, an update context (``ctxtag``) keeps the identity of the caller's objects.

Invariant: an object that is met twice gets the same prefix at both places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import jax

from nnx_rules.rules import transforms as rules
from nnxkit._graph._context import MergeContext, SplitContext, merge_context, split_context
from nnxkit._graph._graphdef import GraphDef
from nnxkit._graph._layouts import key_name
from nnxkit._graph._refmap import RefMap
from nnxkit._graph._traverse import iter_graph
from nnxkit._pytree import Pytree
from nnxkit._state._order import Path
from nnxkit._variable import Variable

Splits = Callable[[SplitContext, Path, Any, Any], Any]
Merges = Callable[[MergeContext, Path, Any, Any], Any]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NodeStates:
    """Structure and States of one object, as a pytree.

    The structure is part of the pytree without leaves, so that prefixes (``in_axes``), which have none, fit as well.

    Attributes:
        states: the States, one for each filter of the split, or what a prefix says of them.
        metadata: anything hashable.
    """

    __module__ = "nnxkit"

    _graphdef: GraphDef[Any] | None
    states: tuple[Any, ...]
    metadata: Any = field(default=None, metadata={"static": True})

    @property
    def graphdef(self) -> GraphDef[Any]:
        """The structure.

        Raises:
            ValueError: this is a prefix, which has none.
        """
        if self._graphdef is None:
            raise ValueError("these NodeStates are a prefix, and have no graphdef")
        return self._graphdef

    @property
    def state(self) -> Any:
        """The State, where there is one only.

        Raises:
            ValueError: there are several, or none.
        """
        if len(self.states) != 1:
            raise ValueError(f"expected exactly one State, got {len(self.states)}")
        return self.states[0]

    @classmethod
    def from_split(
        cls, graphdef: GraphDef[Any] | None, state: Any, /, *states: Any, metadata: Any = None
    ) -> NodeStates:
        """Bundle what ``split`` returns."""
        return cls(graphdef, (state, *states), metadata)

    @classmethod
    def from_states(cls, state: Any, *states: Any) -> NodeStates:
        """Bundle States without their structure."""
        return cls(None, (state, *states))

    @classmethod
    def from_prefixes(cls, prefixes: Any, /, *, metadata: Any = None) -> NodeStates:
        """A prefix for NodeStates, with one entry for each State."""
        return cls(None, tuple(prefixes), metadata)


_SAME: Final = object()
"""No prefix is given."""


def is_object(value: Any) -> bool:
    """Whether a value is a graph object."""
    return isinstance(value, Pytree | Variable)


def is_node_states(value: Any) -> bool:
    """Whether a value is what `to_tree` makes of a graph object."""
    return isinstance(value, NodeStates)


def split_node(ctx: SplitContext, path: Path, prefix: Any, node: Any) -> NodeStates:
    """How `to_tree` splits an object unless it is told otherwise: into one State."""
    return NodeStates.from_split(*ctx.split(node))


def merge_node(ctx: MergeContext, path: Path, prefix: Any, node: NodeStates) -> Any:
    """How `from_tree` merges an object unless it is told otherwise."""
    return ctx.merge(node.graphdef, *node.states)


def to_tree(
    tree: Any,
    /,
    *,
    prefix: Any = _SAME,
    split_fn: Splits = split_node,
    map_non_graph_nodes: bool = False,
    ctxtag: str | None = None,
    check_aliasing: bool = True,
) -> Any:
    """A pytree with `NodeStates` in the place of its graph objects.

    Args:
        tree: a pytree of graph objects, arrays and other values.
        prefix: a pytree prefix of ``tree``, whose leaves are handed to ``split_fn``.
        split_fn: splits one object: of the context, its path, its prefix and itself.
        map_non_graph_nodes: whether ``split_fn`` gets all other leaves, too.
        ctxtag: tag of the update context to take part in.
        check_aliasing: whether objects that are met twice must have the same prefix.

    Raises:
        GraphError: an object is met twice, with different prefixes.
        ContextError: no context is open under the tag.

    >>> import jax, nnxkit as nnx
    >>> node = nnx.Dict(w=nnx.Param(1.0))
    >>> pure = nnx.to_tree([node, 2.0])
    >>> jax.tree.leaves(pure)
    [1.0, 2.0]
    >>> nnx.from_tree(pure)[0].w.get_value()
    1.0
    """
    given = _broadcast(prefix, tree, is_object)
    seen: RefMap[tuple[Path, Any]] = RefMap()

    def split(path: Path, own: Any, leaf: Any) -> Any:
        if not is_object(leaf):
            return split_fn(ctx, path, own, leaf) if map_non_graph_nodes else leaf
        if check_aliasing:
            _check_aliasing(path, own, leaf, seen)
        return split_fn(ctx, path, own, leaf)

    with split_context(ctxtag) as ctx:
        return _map(split, given, tree, is_object)


def from_tree(
    tree: Any,
    /,
    *,
    prefix: Any = _SAME,
    merge_fn: Merges = merge_node,
    is_node_leaf: Callable[[Any], bool] = is_node_states,
    is_leaf: Callable[[Any], bool] = is_node_states,
    map_non_graph_nodes: bool = False,
    is_inner: bool | None = None,
    ctxtag: str | None = None,
) -> Any:
    """A pytree with graph objects in the place of its `NodeStates`: the inverse of `to_tree`.

    Args:
        tree: what `to_tree` returned.
        prefix: a pytree prefix of ``tree``, whose leaves are handed to ``merge_fn``.
        merge_fn: merges one object: of the context, its path, its prefix and what it was split into.
        is_node_leaf: tells what is to be merged.
        is_leaf: tells what is not looked into.
        map_non_graph_nodes: whether ``merge_fn`` gets all other leaves, too.
        is_inner: which merge of the update context this is.
        ctxtag: tag of the update context to take part in.

    Raises:
        ContextError: no context is open under the tag, or ``is_inner`` is missing.
    """
    given = _broadcast(prefix, tree, is_leaf)

    def merge(path: Path, own: Any, leaf: Any) -> Any:
        return merge_fn(ctx, path, own, leaf) if map_non_graph_nodes or is_node_leaf(leaf) else leaf

    with merge_context(ctxtag, is_inner) as ctx:
        return _map(merge, given, tree, is_leaf)


def clear_non_graph_nodes(tree: Any) -> Any:
    """A pytree with ``None`` in the place of everything but its graph objects."""
    return jax.tree.map(lambda leaf: leaf if is_object(leaf) else None, tree, is_leaf=is_object)


def _broadcast(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """The prefix of each leaf of ``tree``, in order."""
    if prefix is _SAME:
        return [None] * len(jax.tree.leaves(tree, is_leaf=is_leaf))
    own: list[Any] = []
    jax.tree.map(
        lambda given, part: own.extend([given] * len(jax.tree.leaves(part, is_leaf=is_leaf))),
        prefix,
        tree,
        is_leaf=lambda given: given is None,
    )
    return own


def _map(f: Callable[[Path, Any, Any], Any], given: list[Any], tree: Any, is_leaf: Callable[[Any], bool]) -> Any:
    treedef: Any
    leaves, treedef = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_leaf)
    return treedef.unflatten(
        f(tuple(map(key_name, path)), own, leaf) for (path, leaf), own in zip(leaves, given, strict=True)
    )


def _check_aliasing(path: Path, prefix: Any, node: Any, seen: RefMap[tuple[Path, Any]]) -> None:
    for below, value in iter_graph(node, graph=True):
        if not is_object(value):
            continue
        here = (*path, *below)
        first, before = seen.setdefault(value, (here, prefix))
        if before != prefix:
            raise rules.INCONSISTENT_ALIASING.error(
                path=first,
                other_path=here,
                transform="nnx.to_tree",
                value=type(value).__name__,
                prefixes=f"{before!r} and {prefix!r}",
                prefix=repr(before),
                other_prefix=repr(prefix),
            )
