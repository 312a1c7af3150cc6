"""`GraphDef`: what a graph is without its values.

A GraphDef is a tuple of *records* in depth-first order, one a node, Variable, array reference or repeated reference.
Records hold everything that must agree for two graphs to have the same structure: types, attribute names, static
values, statuses, metadata. They do not hold positions: the index of an object is its place in the order of indexed
records, counted from ``base``. So a record can be reused when another part of the graph changes.

Invariants

- Objects with identity (Pytrees, Variables, array references) have an index; plain containers (lists, dictionaries,
  registered classes) do not, and are repeated where they are referenced twice.
- Equality and hash are by content; records cache their hash, so rebuilding a GraphDef rehashes only what is new. Static
  values compare by type and value: ``1`` and ``True`` are different structures.
- Unhashable static values are allowed; only hashing such a GraphDef is an error.
- ``nodes`` and ``attributes`` are a view for people and for code written for flax; the records are what the engine
  uses.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias

import jax

from nnx_rules.records import Record as Value
from nnxkit._state._functions import merge_state
from nnxkit._state._order import Key
from nnxkit._typevars import TypeVar
from nnxkit._variable import Metadata, Variable

Node = TypeVar("Node", default=Any)


class Static(Value):
    """An attribute that is part of the structure; equal to one with a value of the same type that compares equal."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static):
            return NotImplemented
        a, b = self.value, other.value
        return a is b or (type(a) is type(b) and bool(a == b))

    def __hash__(self) -> int:
        return hash(self.value)


class NodeAttr(Value):
    """An attribute whose value is the next record: a node, Variable, array reference, or a repeated reference."""


class LeafAttr(Value):
    """An attribute whose value is a bare leaf, an array as a rule."""


Entry: TypeAlias = Static | NodeAttr | LeafAttr
NODE = NodeAttr()
LEAF = LeafAttr()


class _Record:
    """Base of records: content equality, cached hash."""

    __slots__ = ("_hash",)
    indexed = True

    _hash: int | None

    @property
    def num_leaves(self) -> int:
        """How many leaves the record itself stands for."""
        return 1

    def content(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, _Record) and type(self) is type(other) and self.content() == other.content()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.content())
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.content()


class Moving(NamedTuple):
    """An attribute that is not static: its position and key, and whether it is a bare leaf."""

    position: int
    key: Key
    is_leaf: bool


class NodeRecord(_Record):
    """A node: its class, what its children are called, and what they are.

    Attributes:
        type: the class of the node.
        metadata: what else the class needs to be rebuilt: the statuses of a Pytree's attributes, the JAX treedef of a
            registered class.
        keys: names of the attributes (indices, dictionary keys), in order.
        entries: for each key a static value, `NODE`, or `LEAF`.
        indexed: whether the node has identity.
    """

    __slots__ = ("_moving", "entries", "indexed", "keys", "metadata", "type")

    def __init__(
        self, type: type, metadata: Any, keys: tuple[Key, ...], entries: tuple[Entry, ...], indexed: bool
    ) -> None:
        self._hash = None
        self.type = type
        self.metadata = metadata
        self.keys = keys
        self.entries = entries
        self.indexed = indexed
        self._moving: tuple[Moving, ...] | None = None

    @property
    def moving(self) -> tuple[Moving, ...]:
        """The attributes that are not static."""
        if self._moving is None:
            self._moving = tuple(
                Moving(position, key, type(entry) is LeafAttr)
                for position, (key, entry) in enumerate(zip(self.keys, self.entries, strict=True))
                if type(entry) is not Static
            )
        return self._moving

    @property
    def num_leaves(self) -> int:
        return sum(item.is_leaf for item in self.moving)

    def content(self) -> tuple[Any, ...]:
        return self.type, self.metadata, self.keys, self.entries, self.indexed


class VariableRecord(_Record):
    """A Variable: its class and its metadata. Its value is a leaf."""

    __slots__ = ("metadata", "type")

    def __init__(self, type: type[Variable[Any]], metadata: Metadata) -> None:
        self._hash = None
        self.type = type
        self.metadata = metadata

    def content(self) -> tuple[Any, ...]:
        return self.type, self.metadata


class ArrayRefRecord(_Record):
    """A JAX array reference, which is its own leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        self._hash = None

    def content(self) -> tuple[Any, ...]:
        return ()


class RefRecord(_Record):
    """Another reference to the object with this index."""

    __slots__ = ("index",)
    indexed = False

    @property
    def num_leaves(self) -> int:
        return 0

    def __init__(self, index: int) -> None:
        self._hash = None
        self.index = index

    def content(self) -> tuple[Any, ...]:
        return (self.index,)


Record: TypeAlias = NodeRecord | VariableRecord | ArrayRefRecord | RefRecord
ARRAY_REF = ArrayRefRecord()

# The view for people


class _Def(Value):
    def __repr__(self) -> str:
        lines = ",\n".join(f"  {name}={self._show(name)}" for name in type(self).__fields__)
        return f"{type(self).__name__}(\n{lines}\n)"

    def _show(self, name: str) -> str:
        value = getattr(self, name)
        if isinstance(value, type):
            return repr(value.__name__) if name == "type" else value.__name__
        return repr(value).replace("\n", "\n  ")


class NodeDef(_Def):
    """A node in `GraphDef.nodes`."""

    type: type
    index: int | None
    outer_index: int | None
    num_attributes: int
    metadata: Any


class VariableDef(_Def):
    """A Variable in `GraphDef.nodes`."""

    type: type[Variable[Any]]
    index: int
    outer_index: int | None
    metadata: Metadata


class ArrayRefDef(_Def):
    """An array reference in `GraphDef.nodes`."""

    index: int
    outer_index: int | None


class NodeRef(_Def):
    """A repeated reference in `GraphDef.nodes`: the object with this index, again."""

    index: int


NodeDefType: TypeAlias = NodeDef | VariableDef | ArrayRefDef | NodeRef
NODES_ATTRIBUTE = "_pytree__nodes"


@jax.tree_util.register_static
class GraphDef(Generic[Node]):
    """The structure of a graph, without its values: what `nnx.split` returns first.

    A GraphDef is immutable, hashable if its static values are, and a JAX pytree without leaves, so it may be passed to
    and returned from every JAX transform. Two graphs have equal GraphDefs when they have the same classes, attribute
    names, static values, metadata and sharing.

    Args:
        nodes: definitions of the nodes in depth-first order.
        attributes: all attributes of these nodes in order, each a name and `NodeAttr()`, `LeafAttr()` or
            `Static(value)`.
        num_leaves: how many leaves a State of the graph has.

    Raises:
        TypeError: on ``hash``, if a static value has none.
    """

    __slots__ = ("__weakref__", "_base", "_hash", "_outer", "_program", "_records", "_unhashable")
    __module__ = "nnxkit"

    _records: tuple[Record, ...]
    _base: int
    _outer: tuple[int | None, ...] | None
    _hash: int | None
    _program: Any
    _unhashable: str | None

    def __init__(self, nodes: Sequence[NodeDefType], attributes: Sequence[tuple[Key, Entry]], num_leaves: int) -> None:
        records, base, outer = _parse(nodes, attributes)
        self._set(records, base, outer)
        if self.num_leaves != num_leaves:
            raise ValueError(f"these nodes have {self.num_leaves} leaves, not {num_leaves}")

    @classmethod
    def from_records(
        cls, records: tuple[Record, ...], base: int = 0, outer: tuple[int | None, ...] | None = None
    ) -> GraphDef[Any]:
        """A GraphDef over records.

        Args:
            records: the records; none for a graph that is one bare leaf.
            base: index of the first indexed record.
            outer: for each indexed record, the index that its object has in the enclosing `UpdateContext`.
        """
        self = cls.__new__(cls)
        self._set(records, base, outer)
        return self

    def _set(self, records: tuple[Record, ...], base: int, outer: tuple[int | None, ...] | None) -> None:
        self._records = records
        self._base = base
        self._outer = outer
        self._hash = None
        self._program = None
        self._unhashable = None

    @property
    def records(self) -> tuple[Record, ...]:
        """The records, in depth-first order."""
        return self._records

    @property
    def base(self) -> int:
        """Index of the first indexed record."""
        return self._base

    @property
    def outer(self) -> tuple[int | None, ...] | None:
        """Indices in the enclosing update context, one for each indexed record; ``None`` outside of contexts."""
        return self._outer

    def with_outer(self, outer: tuple[int | None, ...] | None) -> GraphDef[Node]:
        """The same structure with other outer indices."""
        return GraphDef.from_records(self._records, self._base, outer)

    def apply(self, state: Any, *states: Any, graph: bool | None = None) -> Any:
        """Call a method of the graph with these values, out of place: ``graphdef.apply(state)(x)``; see `nnx.call`."""
        from nnxkit._graph._mapping import call  # building a graph is a layer above its description

        return call((self, merge_state(state, *states)), graph=graph)

    def with_no_outer_index(self) -> GraphDef[Node]:
        """The same structure without outer indices."""
        return self.with_outer(None)

    def with_same_outer_index(self) -> GraphDef[Node]:
        """The same structure where the outer index of each object is its index."""
        count = sum(record.indexed for record in self._records)
        return self.with_outer(tuple(range(self._base, self._base + count)))

    def indices(self) -> Iterator[int | None]:
        """For each record the index of its object, ``None`` for those without."""
        index = self._base
        for record in self._records:
            if record.indexed:
                yield index
                index += 1
            else:
                yield None

    @property
    def nodes(self) -> list[NodeDefType]:
        """The nodes as definitions, in depth-first order."""
        return [
            _DEFINE[type(record)](
                record, index, None if self._outer is None or index is None else self._outer[index - self._base]
            )
            for record, index in zip(self._records, self.indices(), strict=True)
        ]

    @property
    def attributes(self) -> list[tuple[Key, Entry]]:
        """The attributes of all nodes, in depth-first order."""
        found: list[tuple[Key, Entry]] = []
        records = iter(self._records)

        def visit() -> None:
            record = next(records)
            if isinstance(record, NodeRecord):
                for key, entry in _attributes_of(record):
                    found.append((key, entry))
                    if type(entry) is NodeAttr:
                        visit()

        if self._records:
            visit()
        return found

    @property
    def num_leaves(self) -> int:
        """How many leaves a State of this graph has."""
        if not self._records:
            return 1
        return sum(record.num_leaves for record in self._records)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, GraphDef):
            return NotImplemented
        if self._hash is not None and other._hash is not None and self._hash != other._hash:
            return False
        return self._records == other._records and self._base == other._base and self._outer == other._outer

    def __hash__(self) -> int:
        if self._hash is None:
            if self._unhashable is not None:
                raise TypeError(self._unhashable)
            try:
                self._hash = hash((self._records, self._base, self._outer))
            except TypeError as error:
                self._unhashable = str(error)
                raise
        return self._hash

    def snapshot(self) -> GraphDef[Node]:
        """The same structure with copies of the static values that have no hash: these may be edited in place."""
        return GraphDef.from_records(tuple(map(_with_copies, self._records)), self._base, self._outer)

    def __repr__(self) -> str:
        nodes = ", ".join(map(repr, self.nodes))
        attributes = ", ".join(map(repr, self.attributes))
        return f"GraphDef(nodes=[{nodes}], attributes=[{attributes}], num_leaves={self.num_leaves})"

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphDef[Node]:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The program is rebuilt, and hashes of strings differ between processes.
        return GraphDef.from_records, (self._records, self._base, self._outer)


def _with_copies(record: Record) -> Record:
    try:
        hash(record)
    except TypeError:
        if isinstance(record, VariableRecord):
            return VariableRecord(record.type, copy.deepcopy(record.metadata))
        if isinstance(record, NodeRecord):
            entries = tuple(Static(copy.deepcopy(e.value)) if isinstance(e, Static) else e for e in record.entries)
            return NodeRecord(record.type, record.metadata, record.keys, entries, record.indexed)
    return record


def _attributes_of(record: NodeRecord) -> Iterable[tuple[Key, Entry]]:
    """The attributes as people see them: the statuses of a Pytree are its first attribute."""
    if record.indexed:
        yield NODES_ATTRIBUTE, Static(record.metadata)
    yield from zip(record.keys, record.entries, strict=True)


def _define_node(record: NodeRecord, index: int | None, outer: int | None) -> NodeDef:
    count = len(record.keys) + record.indexed
    return NodeDef(record.type, index, outer, count, record.type if record.indexed else record.metadata)


_DEFINE: dict[type, Any] = {
    NodeRecord: _define_node,
    VariableRecord: lambda record, index, outer: VariableDef(record.type, index, outer, record.metadata),
    ArrayRefRecord: lambda record, index, outer: ArrayRefDef(index, outer),
    RefRecord: lambda record, index, outer: NodeRef(record.index),
}


def _parse(
    nodes: Sequence[NodeDefType], attributes: Sequence[tuple[Key, Entry]]
) -> tuple[tuple[Record, ...], int, tuple[int | None, ...] | None]:
    """Records from the view for people; the inverse of `GraphDef.nodes` and `GraphDef.attributes`."""
    records: list[Record] = []
    pending = iter(nodes)
    items = iter(attributes)

    def visit() -> None:
        node = next(pending)
        if not isinstance(node, NodeDef):
            records.append(_record_of(node))
            return
        place = len(records)
        records.append(ARRAY_REF)  # holds the place until the attributes are known
        own: list[tuple[Key, Entry]] = []
        for _ in range(node.num_attributes):
            key, entry = next(items)
            own.append((key, entry))
            if type(entry) is NodeAttr:
                visit()
        metadata = node.metadata
        if node.index is not None:
            (_, statuses), *own = own
            metadata = statuses.value if isinstance(statuses, Static) else None
        keys, entries = zip(*own, strict=True) if own else ((), ())
        records[place] = NodeRecord(node.type, metadata, keys, entries, node.index is not None)

    if nodes:
        visit()
    indexed = [node for node in nodes if not isinstance(node, NodeRef) and node.index is not None]
    base = indexed[0].index if indexed else 0
    outer = tuple(node.outer_index for node in indexed)
    return tuple(records), base or 0, None if all(index is None for index in outer) else outer


def _record_of(node: VariableDef | ArrayRefDef | NodeRef) -> Record:
    match node:
        case VariableDef():
            return VariableRecord(node.type, node.metadata)
        case NodeRef():
            return RefRecord(node.index)
        case _:
            return ARRAY_REF
