"""Plans: the structure of one object graph, found once and used until it changes.

A *plan* is made by walking a graph depth first: its GraphDef, its leaves in order (Variables and references as objects,
bare arrays as places to read), their paths, and its nodes. A Pytree keeps the plan of the graph that it is the root of.
`split`, `state`, `merge`, `update`, `clone`, `pop` and the transforms all start from it.

Invariants

- A plan is valid while no object in it is edited structurally. If the epoch has not moved since the plan was last found
  valid, nothing was edited anywhere; otherwise the versions of its objects decide. Containers that can change unseen
  are compared each time.
- A plan does not refer to its root, which refers to the plan: a model that goes out of scope frees its arrays at once,
  without a garbage collection.
- Leaves, paths and records are in the same depth-first order, which is the sorted order of the paths.
- Values are never stored, only places: a plan does not keep a replaced array alive.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import attrgetter, eq, is_
from typing import Any, NamedTuple

from nnx_rules.rules import graphs as rules
from nnxkit._epoch import EPOCH
from nnxkit._filters import Filters, Partition
from nnxkit._graph._graphdef import ARRAY_REF, GraphDef, Record, RefRecord, VariableRecord
from nnxkit._graph._layouts import Child, Kind, Layout, kind_of, layout_of
from nnxkit._pytree import Pytree
from nnxkit._state._order import Path
from nnxkit._trace import TraceState
from nnxkit._variable import Variable

_version = attrgetter("_nnx_version")
_metadata = attrgetter("_var_metadata")
_trace_state = attrgetter("_trace_state")

KEPT_PARTITIONS = 32
"""Partitions by different filters that a plan remembers."""


class Slot(NamedTuple):
    """A bare leaf: its position among the leaves, where it lies, and the trace of the nearest Pytree around it."""

    position: int
    owner: Any
    key: Any
    trace: TraceState | None


class Members:
    """The identity of the objects that a plan is about: plans with the same one are about the same objects.

    Attributes:
        traces: the traces that their Variables belong to, once they were asked for.
    """

    __slots__ = ("__weakref__", "traces")

    traces: tuple[TraceState, ...] | None

    def __init__(self) -> None:
        self.traces = None


class Plan:
    """The structure of the graph below one root.

    Attributes:
        graphdef: the GraphDef, with a cached hash once it was hashed.
        paths: paths of the leaves.
        sources: for each leaf its Variable or array reference; ``None`` for bare leaves.
        slots: the bare leaves.
        variables: the Variables, in order.
        nodes: the Pytrees below the root, in order.
        members: stands for the objects that the leaves and nodes are.
    """

    __slots__ = (
        "__weakref__", "_containers", "_epoch", "_layouts", "_metadata", "_partitions", "_places", "_targets",
        "_variable_records", "_versions", "graphdef", "members", "nodes", "paths", "slots", "sources", "variables",
    )  # fmt: skip

    graphdef: GraphDef[Any]
    paths: tuple[Path, ...]
    sources: list[Any]
    slots: tuple[Slot, ...]
    variables: list[Variable[Any]]
    nodes: list[Pytree]
    members: Members
    _epoch: int
    _versions: list[int]
    _layouts: list[Layout]
    _places: list[int]
    _metadata: list[dict[str, Any]]
    _variable_records: list[VariableRecord]
    _containers: list[Layout]
    _partitions: dict[Filters, Partition]
    _targets: dict[Path, Any] | None

    def is_current(self, root: Any) -> bool:
        """Whether ``root``, whose plan this is, still has this structure."""
        epoch = EPOCH.value
        if self._epoch != epoch:
            if isinstance(root, Pytree) and root._nnx_version != self._layouts[0].version:
                return False
            if list(map(_version, self.nodes)) != self._versions:
                return False
            if not all(map(is_, map(_metadata, self.variables), self._metadata)):
                return False
            self._epoch = epoch
        return not self._containers or all(
            layout.is_current is None or layout.is_current() for layout in self._containers
        )

    def with_edits(self, root: Pytree) -> Plan | None:
        """The plan of a graph in which only static values and statuses were edited: this one, with other records.

        Switching a model between training and evaluation is such an edit. ``None`` if anything else has changed.
        """
        epoch = EPOCH.value
        if not all(map(is_, map(_metadata, self.variables), self._metadata)):
            return None
        if not all(layout.is_current is None or layout.is_current() for layout in self._containers):
            return None
        versions = list(map(_version, self.nodes))
        records, layouts = list(self.graphdef.records), self._layouts.copy()
        for position, (node, version) in enumerate(
            zip((root, *self.nodes), (root._nnx_version, *versions), strict=True)
        ):
            old = layouts[position]
            if version != old.version:
                new = layouts[position] = layout_of(node)
                if not new.has_children_of(old):
                    return None
                records[self._places[position]] = new.record
        plan = Plan()
        plan.paths, plan.sources, plan.slots = self.paths, self.sources, self.slots
        plan.variables, plan.nodes, plan._places, plan._targets = (
            self.variables,
            self.nodes,
            self._places,
            self._targets,
        )
        plan.members, plan._metadata, plan._variable_records = self.members, self._metadata, self._variable_records
        plan._containers, plan._partitions = self._containers, self._partitions
        plan._epoch, plan._versions, plan._layouts = epoch, versions, layouts
        plan.graphdef = GraphDef.from_records(tuple(records), self.graphdef.base)
        return plan

    def leaves(self) -> list[Any]:
        """The leaves as they are now: Variables, references and bare values, in the order of the paths (a new list)."""
        leaves = self.sources.copy()
        for position, owner, key, _ in self.slots:
            leaves[position] = owner[key]
        return leaves

    def leaf_keys(self) -> list[Hashable]:
        """What identifies each leaf: its object, or for a bare leaf where it lies (by the identities of these)."""
        keys: list[Hashable] = list(map(id, self.sources))
        for slot in self.slots:
            keys[slot.position] = id(slot.owner), slot.key
        return keys

    def traces(self) -> tuple[TraceState, ...]:
        """The traces that the Variables belong to."""
        members = self.members
        if members.traces is None:
            # Variables that were built together share one trace state; those of one level have equal ones.
            distinct: list[TraceState] = []
            for trace in {id(trace): trace for trace in map(_trace_state, self.variables)}.values():
                if trace not in distinct:
                    distinct.append(trace)
            members.traces = tuple(distinct)
        return members.traces

    def targets_at(self, paths: Sequence[Path]) -> Iterable[Any]:
        """The targets at these paths; ``None`` where no leaf lies. Quick for a State of the whole graph."""
        if not self.slots and len(paths) == len(self.paths) and all(map(eq, paths, self.paths)):
            return self.sources
        return map(self.targets().get, paths)

    def targets(self) -> dict[Path, Any]:
        """What can be written to, by path: a Variable, an array reference, or the `Slot` of a bare leaf."""
        if self._targets is None:
            self._targets = dict(zip(self.paths, self.sources, strict=True))
            self._targets.update((self.paths[slot.position], slot) for slot in self.slots)
        return self._targets

    def partition(self, filters: Filters, leaves: Sequence[Any]) -> Partition:
        """Share ``leaves`` out among filters; remembered while the answer can only change with the structure."""
        if not filters.stable or self.slots:
            return filters.partition(self.paths, leaves)
        found = self._partitions.get(filters)
        if found is None:
            if len(self._partitions) >= KEPT_PARTITIONS:
                self._partitions.clear()
            found = self._partitions[filters] = filters.partition(self.paths, leaves)
        return found


def plan_of(root: Any) -> Plan:
    """The plan of the graph below ``root``: the one that it keeps, if that is still valid, or a new one.

    Raises:
        GraphError: a plain container contains itself.
    """
    if not isinstance(root, Pytree):
        return make_plan(root)
    plan: Plan | None = root._nnx_plan
    if plan is not None and plan.is_current(root):
        return plan
    plan = (plan and plan.with_edits(root)) or make_plan(root, plan)
    object.__setattr__(root, "_nnx_plan", plan)
    return plan


def make_plan(root: Any, old: Plan | None = None) -> Plan:
    """Walk the graph below ``root``.

    Args:
        root: any object: a Pytree, a container, a Variable, an array.
        old: an outdated plan of the same root, whose layouts are used where they still hold.

    Raises:
        GraphError: a plain container contains itself.
    """
    return Walk({}, root, old).plan


class Walk:
    """One walk over a graph, which makes a plan.

    Args:
        index: indices of objects by their ``id``. Objects that have one are repeated references; the others get one.
        root: where the graph begins.
        old: an outdated plan of the same root.

    Attributes:
        plan: the plan.
        met: the objects with identity that were added to the index, in the order of their indices.
    """

    def __init__(self, index: dict[int, int], root: Any, old: Plan | None = None) -> None:
        self.index = index
        self.base = len(index)
        self.met: list[Any] = []
        self.plan = plan = Plan()
        # Read before anything is looked at: what is edited meanwhile counts as edited later.
        plan._epoch = EPOCH.value
        plan.sources, plan.variables, plan.nodes, plan._targets, plan._partitions = [], [], [], None, {}
        plan.members = Members()
        plan._versions, plan._layouts, plan._places, plan._containers = [], [], [], []
        plan._metadata, plan._variable_records = [], []
        self.records: list[Record] = []
        self.paths: list[Path] = []
        self.slots: list[Slot] = []
        self.layouts: dict[int, Layout] = {}
        self.variable_records: dict[int, VariableRecord] = {}
        if old is not None:
            self.layouts.update(zip(map(id, (root, *old.nodes)), old._layouts, strict=True))
            self.variable_records.update(zip(map(id, old._metadata), old._variable_records, strict=True))
        # Containers have no identity in a graph, so one that is met again below itself would never end.
        self.open_containers: dict[int, Path] = {}
        self.trace: TraceState | None = None
        self.is_private = False
        self.run(root)
        plan.graphdef = GraphDef.from_records(tuple(self.records), self.base)
        plan.paths = tuple(self.paths)
        plan.slots = tuple(self.slots)

    def run(self, root: Any) -> None:
        """Visit everything, depth first. Graphs may be deeper than Python's stack.

        Each kind of child has a visitor, which returns a layout if its children are to be visited now.
        """
        kind = kind_of(root)
        top = Child(None, kind, root) if kind > Kind.LEAF else Child(None, Kind.LEAF, None, [root], 0)
        visit: dict[Kind, Callable[[Child, Path], Layout | None]] = {
            Kind.LEAF: self.leaf,
            Kind.VARIABLE: self.variable,
            Kind.REF: self.reference,
            Kind.CONTAINER: self.container,
            Kind.PYTREE: self.pytree,
        }
        children: Iterator[Child] = iter((top,))
        node, path = None, None
        stack: list[tuple[Iterator[Child], Any, Path | None, TraceState | None, bool]] = []
        while True:
            for child in children:
                here: Path = () if path is None else (*path, child.key)
                layout = visit[child.kind](child, here)
                if layout is not None:
                    stack.append((children, node, path, self.trace, self.is_private))
                    children, node, path = iter(layout.children), child.value, here
                    self.is_private = layout.is_private or (self.is_private and type(child.value) is dict)
                    if child.kind is Kind.PYTREE:
                        self.trace = node._pytree__state
                    break
            else:
                if not stack:
                    return
                self.open_containers.pop(id(node), None)
                children, node, path, self.trace, self.is_private = stack.pop()

    def is_known(self, value: Any) -> bool:
        """Whether an object with identity was met before; it is a reference then, and has an index otherwise."""
        identity = id(value)
        known = self.index.get(identity)
        if known is not None:
            self.records.append(RefRecord(known))
            return True
        self.index[identity] = self.base + len(self.met)
        self.met.append(value)
        return False

    def leaf(self, child: Child, path: Path) -> None:
        self.slots.append(Slot(len(self.paths), child.owner, child.slot, self.trace))
        self.paths.append(path)
        self.plan.sources.append(None)

    def reference(self, child: Child, path: Path) -> None:
        if not self.is_known(child.value):
            self.records.append(ARRAY_REF)
            self.paths.append(path)
            self.plan.sources.append(child.value)

    def variable(self, child: Child, path: Path) -> None:
        value: Variable[Any] = child.value
        identity = id(value)
        known = self.index.get(identity)
        if known is not None:
            self.records.append(RefRecord(known))
            return
        self.index[identity] = self.base + len(self.met)
        self.met.append(value)
        metadata = value._var_metadata
        record = self.variable_records.get(id(metadata))
        if record is None or record.type is not type(value):
            record = self.variable_records[id(metadata)] = VariableRecord(type(value), metadata)
        # Versions start to count when somebody depends on them.
        if not value._nnx_version:
            object.__setattr__(value, "_nnx_version", 1)
        plan = self.plan
        self.records.append(record)
        self.paths.append(path)
        plan.sources.append(value)
        plan.variables.append(value)
        plan._metadata.append(metadata)
        plan._variable_records.append(record)

    def pytree(self, child: Child, path: Path) -> Layout | None:
        node: Pytree = child.value
        if self.is_known(node):
            return None
        layout = self.layouts.get(id(node))
        if layout is None or layout.version != node._nnx_version:
            layout = layout_of(node)
        plan = self.plan
        plan._layouts.append(layout)
        plan._places.append(len(self.records))
        if path:
            plan.nodes.append(node)
            plan._versions.append(layout.version)
        self.records.append(layout.record)
        return layout

    def container(self, child: Child, path: Path) -> Layout:
        identity = id(child.value)
        layout = layout_of(child.value)
        if identity in self.open_containers and layout.children:
            other = self.open_containers[identity]
            raise rules.RECURSIVE_CONTAINER.error(path=path, other_path=other, value=type(child.value).__name__)
        self.open_containers[identity] = path
        if layout.is_current is not None and not (self.is_private and type(child.value) is dict):
            self.plan._containers.append(layout)
        self.records.append(layout.record)
        return layout
