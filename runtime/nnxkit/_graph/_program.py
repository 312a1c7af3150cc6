"""Programs: building a graph from its GraphDef and leaves.

A *program* is a GraphDef compiled for building, and kept on it. All objects that will exist have a place in one list of
values: first the leaves, then a place for each node. Building allocates every Pytree empty, then makes containers and
fills Pytrees from the last to the first: containers, which need their children when they are made, find them ready, and
cycles through Pytrees close by themselves.

Invariants

- Nothing is looked up by name while building: what goes where was decided when the program was compiled.
- The attributes of a built Pytree are in sorted order. It belongs to the trace that is current when it is built.
- A leaf is used as it is if it is a Variable of the recorded type; a bare value is wrapped in a new Variable of that
  type.
- Refilling existing objects happens after everything that can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from types import NoneType
from typing import Any, NamedTuple

import jax

from nnx_rules.rules import graphs as rules
from nnxkit._epoch import touch
from nnxkit._graph._graphdef import (
    GraphDef,
    NodeRecord,
    RefRecord,
    Static,
    VariableRecord,
)
from nnxkit._graph._layouts import Kind, kind_of
from nnxkit._pytree import HashableMapping, Pytree
from nnxkit._state import State
from nnxkit._state._order import Key, Path
from nnxkit._trace import PytreeState, TraceState, mutation_error
from nnxkit._variable import Metadata, Variable

_set = object.__setattr__
OUTSIDE = "the graphdef refers to objects of an earlier split, and their indices are not given"


class PytreeStep(NamedTuple):
    """How to build one Pytree.

    Attributes:
        place: where it goes in the list of values.
        cls: its class.
        template: its attributes in order; those that are not static are filled in.
        statuses: which of its attributes are data.
        fills: attribute names, and the places of their values.
    """

    place: int
    cls: type[Pytree]
    template: dict[str, Any]
    statuses: HashableMapping
    fills: tuple[tuple[str, int], ...]


class ContainerStep(NamedTuple):
    """How to build one container.

    Attributes:
        place: where it goes in the list of values.
        make: makes it from the values of its children, in the order of its keys.
        children: these values; those that are not static are filled in.
        fills: positions in ``children``, and the places of their values.
    """

    place: int
    make: Callable[[list[Any]], Any]
    children: tuple[Any, ...]
    fills: tuple[tuple[int, int], ...]


class LeafType(NamedTuple):
    """The Variable that a leaf is, or is wrapped in."""

    cls: type[Variable[Any]]
    metadata: Metadata


class Program:
    """A GraphDef compiled for building.

    Attributes:
        paths: paths of the leaves, sorted.
        leaf_types: for each leaf its Variable type; ``None`` for bare leaves and array references.
        places: the place of every object with identity, by index; objects that lie outside of the graph have the last
            places.
        root: the place of the root.
        rigid: whether all leaves are Variables, and all containers immutable or States, the root and its children
            excepted: every structural edit is one of a Pytree, a Variable or a State then.
        states: the places of States.
    """

    paths: tuple[Path, ...]
    leaf_types: tuple[LeafType | None, ...]
    places: dict[int, int]
    root: int
    rigid: bool
    states: tuple[int, ...]

    @property
    def refers_outside(self) -> bool:
        """Whether the graph refers to objects that are not part of it."""
        return bool(self._outside)

    def __init__(self, graphdef: GraphDef[Any]) -> None:
        num_leaves = graphdef.num_leaves
        paths: list[Path] = []
        leaf_types: list[LeafType | None] = []
        pytrees: list[PytreeStep] = []
        containers: list[ContainerStep] = []
        outside: list[tuple[int, int]] = []
        self.places = places = {}
        size = num_leaves
        self.rigid = True
        states: list[int] = []
        pending = iter(zip(graphdef.records, graphdef.indices(), strict=True))

        def leaf(path: Path, leaf_type: LeafType | None) -> int:
            paths.append(path)
            leaf_types.append(leaf_type)
            return len(paths) - 1

        def visit(path: Path, in_state: bool = False) -> int:
            nonlocal size
            record, index = next(pending)
            if type(record) is NodeRecord:
                place = size
                size += 1
                if index is not None:
                    places[index] = place
                private = record.type is State or (in_state and record.type is dict)
                fills = []
                for position, key, is_leaf in record.moving:
                    here = (*path, key)
                    fills.append((position, leaf(here, None) if is_leaf else visit(here, private)))
                if record.indexed:
                    pytrees.append(_pytree_step(place, record, fills))
                else:
                    containers.append(_container_step(place, record, tuple(fills)))
                    if record.type is State:
                        states.append(place)
                    elif len(path) > 1 and not private and not issubclass(record.type, tuple | NoneType):
                        self.rigid = False
            elif type(record) is RefRecord:
                known = places.get(record.index)
                if known is not None:
                    return known
                place = places[record.index] = size
                outside.append((record.index, place))
                size += 1
            else:
                leaf_type = LeafType(record.type, record.metadata) if isinstance(record, VariableRecord) else None
                place = leaf(path, leaf_type)
                if index is not None:
                    places[index] = place
            return place

        self.root = visit(()) if graphdef.records else leaf((), None)
        self.paths = tuple(paths)
        self.leaf_types = tuple(leaf_types)
        self.rigid = self.rigid and None not in leaf_types
        self.states = tuple(states)
        self._classes = [None if leaf_type is None else leaf_type.cls for leaf_type in leaf_types]
        self._size = size
        self._outside = outside
        self._pytrees = pytrees
        # A container is compiled after its children, so this order has them ready.
        self._containers = containers

    def build(
        self,
        leaves: Sequence[Any],
        *,
        recreate_variables: bool = True,
        copy: bool = False,
        exact: bool = True,
        known: Mapping[int, Any] | None = None,
        reused: Mapping[int, Any] | None = None,
        version: int = 0,
    ) -> list[Any]:
        """Build the graph.

        Args:
            leaves: the leaves, in the order of `paths`.
            recreate_variables: whether bare values are wrapped where the structure has a Variable.
            copy: whether Variables are copied.
            exact: whether Variables must have the recorded types.
            known: objects outside of the graph that it refers to, by index.
            reused: objects that are refilled instead of made anew, by index.
            version: version of the new objects; 1 if edits of them are to be noticed (see ``_epoch``).

        Returns:
            The list of values: the graph is at `root`, object number ``i`` at ``places[i]``.

        Raises:
            StateMismatchError: a Variable has another type than the structure says.
            TraceContextError: an object to be refilled belongs to another trace.
            ContextError: the graph refers to an object that is not in ``known``.
        """
        values = self._take_leaves(leaves, recreate_variables, exact, version)
        if copy:
            values = copy_variables(values)
        values += [None] * (self._size - len(values))
        state = PytreeState()
        for place, cls, _, statuses, _ in self._pytrees:
            node = object.__new__(cls)
            _set(node, "_nnx_plan", None)
            _set(node, "_nnx_version", version)
            _set(node, "_pytree__nodes", HashableMapping(statuses))
            _set(node, "_pytree__state", state)
            values[place] = node
        for index, place in self._outside:
            if known is None or index not in known:
                raise rules.CONTEXT_MISSING.error(problem=OUTSIDE)
            values[place] = known[index]
        fresh = dict(self._reuse(values, reused)) if reused else {}
        for place, make, children, fills in self._containers:
            filled = list(children)
            for position, source in fills:
                filled[position] = values[source]
            values[place] = make(filled)
        for place, _, template, statuses, named in self._pytrees:
            attributes = template.copy()
            for name, source in named:
                attributes[name] = values[source]
            if place in fresh:
                _refill(values[place], attributes, statuses)
            else:
                _set(values[place], "__dict__", attributes)
        for place, leaf in fresh.items():
            if isinstance(leaf, Variable):
                values[place].update_from_state(leaf)
        return values

    def _take_leaves(self, leaves: Sequence[Any], recreate_variables: bool, exact: bool, version: int) -> list[Any]:
        """The leaves with bare values wrapped, after a check of the types."""
        values = list(leaves)
        if all(map(is_, map(type, values), self._classes)):
            return values
        trace = TraceState()
        for position, (leaf, leaf_type) in enumerate(zip(values, self.leaf_types, strict=True)):
            if isinstance(leaf, Variable):
                expected = "bare leaf" if leaf_type is None else leaf_type.cls.__name__
                if exact and (leaf_type is None or type(leaf) is not leaf_type.cls):
                    raise rules.MERGE_WRONG_TYPE.error(
                        path=self.paths[position], given=type(leaf).__name__, expected=expected
                    )
            elif leaf_type is not None and recreate_variables:
                values[position] = _variable(leaf_type.cls, leaf, leaf_type.metadata, trace, version)
        return values

    def _reuse(self, values: list[Any], reused: Mapping[int, Any]) -> list[tuple[int, Any]]:
        """Put existing objects in their places; returns the new ones that they displace."""
        displaced = []
        for index, place in self.places.items():
            if index in reused and reused[index] is not values[place]:
                _check_trace(reused[index])
                displaced.append((place, values[place]))
                values[place] = reused[index]
        return displaced


def program_of(graphdef: GraphDef[Any]) -> Program:
    """The program of a GraphDef, compiled once."""
    program: Program | None = graphdef._program
    if program is None:
        program = graphdef._program = Program(graphdef)
    return program


def copy_variables(leaves: Sequence[Any]) -> list[Any]:
    """The leaves with every Variable copied. Arrays are shared; containers and references in Variables are not."""
    trace = TraceState()
    return [_copied(leaf, trace) if isinstance(leaf, Variable) else leaf for leaf in leaves]


def _copied(variable: Variable[Any], trace: TraceState) -> Variable[Any]:
    value = variable._raw_value
    kind = kind_of(value)
    if kind is Kind.REF:
        value = jax.new_ref(value[...])
    elif kind is Kind.CONTAINER:
        value = jax.tree.map(lambda leaf: leaf, value)
    return _variable(type(variable), value, variable._var_metadata, trace, 0)


def _variable(
    cls: type[Variable[Any]], value: Any, metadata: Metadata, trace: TraceState, version: int
) -> Variable[Any]:
    """A Variable with this raw value; Variables that are made together share their trace state."""
    new = object.__new__(cls)
    _set(new, "_raw_value", value)
    _set(new, "_trace_state", trace)
    _set(new, "_var_metadata", metadata)
    _set(new, "_nnx_version", version)
    return new


def _check_trace(obj: Any) -> None:
    trace = obj._pytree__state if isinstance(obj, Pytree) else obj._trace_state if isinstance(obj, Variable) else None
    if trace is not None and not trace.is_valid():
        raise mutation_error(type(obj).__name__)


def _refill(node: Pytree, attributes: dict[str, Any], statuses: HashableMapping) -> None:
    """Give an existing Pytree the attributes of the structure; a bare leaf for a bare leaf is no structural edit."""
    old = vars(node)
    structural = node._pytree__nodes != statuses or old.keys() != attributes.keys()
    if not structural:
        for name, value in attributes.items():
            if old[name] is not value and not _is_same_attribute(old[name], value, is_data=statuses[name]):
                structural = True
    if structural:
        old.clear()
        node._pytree__nodes.clear()
        node._pytree__nodes.update(statuses)
    old.update(attributes)
    if structural:
        touch(node)


def _is_same_attribute(old: Any, new: Any, *, is_data: bool) -> bool:
    if kind_of(old) is kind_of(new) is Kind.LEAF:
        return True
    return not is_data and Static(old) == Static(new)


def _pytree_step(place: int, record: NodeRecord, fills: list[tuple[int, int]]) -> PytreeStep:
    template, statuses = _template(record)
    names = list(template)
    return PytreeStep(
        place, record.type, template, statuses, tuple((names[position], source) for position, source in fills)
    )


def _template(record: NodeRecord) -> tuple[dict[str, Any], HashableMapping]:
    template = {
        str(key): entry.value if type(entry) is Static else None
        for key, entry in zip(record.keys, record.entries, strict=True)
    }
    statuses: HashableMapping = record.metadata
    return template, statuses


def _container_step(place: int, record: NodeRecord, fills: tuple[tuple[int, int], ...]) -> ContainerStep:
    children = tuple(entry.value if isinstance(entry, Static) else None for entry in record.entries)
    return ContainerStep(place, _maker(record), children, fills)


def make_container(record: NodeRecord, children: list[Any]) -> Any:
    """A container from its record and the values of all its children."""
    return _maker(record)(children)


def _maker(record: NodeRecord) -> Callable[[list[Any]], Any]:
    return _MAKERS.get(record.type, _registered_maker)(record)


def _dict_maker(record: NodeRecord) -> Callable[[list[Any]], Any]:
    keys: tuple[Key, ...] = record.keys
    return lambda children: dict(zip(keys, children, strict=True))


def _registered_maker(record: NodeRecord) -> Callable[[list[Any]], Any]:
    treedef, order = record.metadata
    back = sorted(range(len(order)), key=order.__getitem__)
    return lambda children: treedef.unflatten([children[place] for place in back])


def _state_maker(record: NodeRecord) -> Callable[[list[Any]], Any]:
    # Copies the levels, and so has them for itself.
    return lambda children: State(zip(record.keys, children, strict=True))


_MAKERS: dict[type, Callable[[NodeRecord], Callable[[list[Any]], Any]]] = {
    State: _state_maker,
    list: lambda record: list,
    tuple: lambda record: tuple,
    type(None): lambda record: lambda children: None,
    dict: _dict_maker,
}
