"""Layouts: how one node looks from inside.

A *layout* is what a plan needs to know of one node: its record, and its children in order. Looking at the attributes of
a node is the slow part of planning, and the layout of a Pytree stays valid while the version of the Pytree does, so
replanning an edited graph only looks again at the nodes that were edited.

Which values are nodes is decided by one table from exact type to `Kind`; the kinds that are nodes have an opener, which
makes the layout.

Invariants

- A Pytree's static attributes are static whatever they hold; its data attributes are nodes, Variables, references, or
  leaves of any type.
- In a plain container, and in a Pytree class without status checks (``nnx.Object``), arrays are leaves, containers are
  nodes, and every other value is static.
- Layouts of containers that can change unseen (lists, dictionaries, registered classes) are compared with the container
  before each use.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import Tracer

from nnxkit._graph._graphdef import LEAF, NODE, Entry, NodeRecord, Static
from nnxkit._pytree import HashableMapping, Pytree, sorted_attributes
from nnxkit._state import State
from nnxkit._state._order import Key, key_rank, sorted_keys
from nnxkit._variable import Variable


class Kind(enum.IntEnum):
    """What a value is to a graph."""

    STATIC = 0
    LEAF = 1
    VARIABLE = 2
    REF = 3
    CONTAINER = 4
    PYTREE = 5

    @property
    def is_node(self) -> bool:
        """Whether it has children."""
        return self >= Kind.CONTAINER


class Child(NamedTuple):
    """A child of a node that is not static.

    Attributes:
        key: its key in paths.
        kind: what it is.
        value: the object; ``None`` for leaves, which are read where they lie.
        owner: for leaves, the mapping or sequence that holds it.
        slot: for leaves, its place in ``owner``.
    """

    key: Key
    kind: Kind
    value: Any
    owner: Any = None
    slot: Any = None


class Layout:
    """One node from inside.

    Attributes:
        record: the node's part of the GraphDef.
        children: the children that are not static, in order.
        version: version of the Pytree that was looked at; 0 for containers.
        is_current: whether a container still looks like this; ``None`` if it cannot change (or is a Pytree, which has
            versions).
        is_private: whether the dictionaries right below can be reached through this one only, so that they cannot
            change while it is current.
    """

    __slots__ = ("children", "is_current", "is_private", "record", "version")

    def __init__(
        self,
        record: NodeRecord,
        children: tuple[Child, ...],
        version: int = 0,
        is_current: Callable[[], bool] | None = None,
    ) -> None:
        self.record = record
        self.children = children
        self.version = version
        self.is_current = is_current
        self.is_private = False

    def has_children_of(self, other: Layout) -> bool:
        """Whether the children are the same objects, at the same places."""
        return len(self.children) == len(other.children) and all(
            a.key == b.key and a.kind is b.kind and a.value is b.value and a.owner is b.owner
            for a, b in zip(self.children, other.children, strict=True)
        )


_kinds: dict[type, Kind] = {
    list: Kind.CONTAINER,
    tuple: Kind.CONTAINER,
    dict: Kind.CONTAINER,
    type(None): Kind.CONTAINER,
    **dict.fromkeys((int, float, complex, bool, str, bytes), Kind.STATIC),
}
_KIND_OF_BASES: tuple[tuple[tuple[type, ...], Kind], ...] = (
    ((Pytree,), Kind.PYTREE),
    ((Variable,), Kind.VARIABLE),
    ((jax.Ref,), Kind.REF),
    ((jax.Array, np.ndarray), Kind.LEAF),
)
_flatten_one_level = jax.tree_util.default_registry.flatten_one_level


def kind_of(value: Any) -> Kind:
    """What a value is by itself, outside of a data attribute."""
    kind = _kinds.get(type(value))
    return _look(value) if kind is None else kind


def _look(value: Any) -> Kind:
    for bases, kind in _KIND_OF_BASES:
        if isinstance(value, bases):
            # Tracers of arrays and of references are of one type.
            if not isinstance(value, Tracer):
                _kinds[type(value)] = kind
            return kind
    if _flatten_one_level(value) is not None:
        _kinds[type(value)] = Kind.CONTAINER
        return Kind.CONTAINER
    return Kind.STATIC  # not remembered: its class may be registered with JAX later


def layout_of(node: Any) -> Layout:
    """Look at a node."""
    if isinstance(node, Pytree):
        return _open_pytree(node)
    opener = _OPENERS.get(type(node), _open_registered)
    return opener(node)


def _open_pytree(node: Pytree) -> Layout:
    # Versions start to count when somebody depends on them.
    version = node._nnx_version
    if not version:
        version = 1
        object.__setattr__(node, "_nnx_version", 1)
    attributes = node.__dict__
    checked = type(node)._pytree__checked
    keys: list[Key] = []
    entries: list[Entry] = []
    children: list[Child] = []
    for key, name, is_data in sorted_attributes(node):
        value = attributes[name]
        keys.append(key)
        kind = kind_of(value) if is_data or not checked else Kind.STATIC
        if kind is Kind.STATIC and not (is_data and checked):
            entries.append(Static(value))
        elif kind <= Kind.LEAF:
            entries.append(LEAF)
            children.append(Child(key, Kind.LEAF, None, attributes, name))
        else:
            entries.append(NODE)
            children.append(Child(key, kind, value))
    statuses = HashableMapping(node._pytree__nodes)
    record = NodeRecord(type(node), statuses, tuple(keys), tuple(entries), indexed=True)
    return Layout(record, tuple(children), version)


def _open_container(
    node: Any,
    metadata: Any,
    items: Iterable[tuple[Key, Any, Any]],
    owner: Any,
    is_current: Callable[[], bool] | None = None,
) -> Layout:
    """The layout of a container from its items: key, place in ``owner``, value."""
    keys: list[Key] = []
    entries: list[Entry] = []
    children: list[Child] = []
    for key, slot, value in items:
        keys.append(key)
        kind = kind_of(value)
        if kind is Kind.STATIC:
            entries.append(Static(value))
        elif kind is Kind.LEAF:
            entries.append(LEAF)
            children.append(Child(key, kind, None, owner, slot))
        else:
            entries.append(NODE)
            children.append(Child(key, kind, value))
    record = NodeRecord(type(node), metadata, tuple(keys), tuple(entries), indexed=False)
    return Layout(record, tuple(children), is_current=is_current)


def _open_none(node: None) -> Layout:
    return _open_container(node, None, (), None)


def _open_sequence(node: Sequence[Any]) -> Layout:
    items = ((i, i, value) for i, value in enumerate(node))
    return _open_container(node, None, items, node, _watch(node) if isinstance(node, list) else None)


def _open_dict(node: dict[Key, Any]) -> Layout:
    items = ((key, key, node[key]) for key in sorted_keys(node))
    return _open_container(node, None, items, node, _watch(node))


def _open_registered(node: Any) -> Layout:
    children, treedef = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda value: value is not node)
    values = tuple(value for _, value in children)
    names = [key_name(path[0]) for path, _ in children]
    items = sorted(zip(names, range(len(names)), values, strict=True), key=lambda item: key_rank(item[0]))
    metadata = (treedef, tuple(place for _, place, _ in items))
    # How a registered class keeps its children is its own business, so it is opened again at each use; tuples cannot
    # change.
    return _open_container(node, metadata, items, values, None if isinstance(node, tuple) else _never)


def _open_state(node: State) -> Layout:
    is_private = node.is_private()
    tree = node._nested() if is_private else node.raw_mapping
    items = ((key, key, tree[key]) for key in sorted_keys(tree))
    layout = _open_container(node, None, items, tree, node.is_private if is_private else _watch(tree))
    layout.is_private = is_private
    return layout


_OPENERS: dict[type, Callable[[Any], Layout]] = {
    type(None): _open_none,
    list: _open_sequence,
    tuple: _open_sequence,
    dict: _open_dict,
    State: _open_state,
}


def _watch(container: list[Any] | dict[Key, Any]) -> Callable[[], bool]:
    """A check that a list or dictionary has the items that it has now; an array may have been replaced by an array."""
    before = _items(container)

    def is_current() -> bool:
        now = _items(container)
        if len(now) != len(before):
            return False
        if all(map(operator.is_, now, before)):
            return True
        same = all(a is b or kind_of(a) is kind_of(b) is Kind.LEAF for a, b in zip(now, before, strict=True))
        if same:
            before[:] = now
        return same

    return is_current


def _items(container: list[Any] | dict[Key, Any]) -> list[Any]:
    return [*container.keys(), *container.values()] if isinstance(container, dict) else list(container)


def _never() -> bool:
    return False


def key_name(entry: Any) -> Key:
    """The key of a JAX key path entry."""
    for field in ("key", "idx", "name"):
        if hasattr(entry, field):
            name: Key = getattr(entry, field)
            return name
    return str(entry)
