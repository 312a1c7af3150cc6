"""Plans: the structure of one object graph, found once and used until it changes.

A *plan* is made by walking a graph depth first: its GraphDef, its leaves in order (Variables and references as objects, bare arrays as places
to read), their paths, and its nodes. A Pytree keeps the plan of the graph that it is the root of. `split`, `state`, `merge`, `update`,
`clone`, `pop` and the transforms all start from it.

Invariants

- A plan is valid while no object in it is edited structurally. If the epoch has not moved since the plan was last found valid, nothing was edited
  anywhere; otherwise the versions of its objects decide. Containers that can change unseen are compared each time.
- A plan does not refer to its root, which refers to the plan: a model that goes out of scope frees its arrays at once, without a garbage collection.
- Leaves, paths and records are in the same depth-first order, which is the sorted order of the paths.
- Values are never stored, only places: a plan does not keep a replaced array alive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter, is_
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

KEPT_PARTITIONS = 32
"""Partitions by different filters that a plan remembers."""


class Slot(NamedTuple):
    """A bare leaf: its position among the leaves, where it lies, and the trace of the nearest Pytree around it."""

    position: int
    owner: Any
    key: Any
    trace: TraceState | None


class Plan:
    """The structure of the graph below one root.

    Attributes:
        graphdef: the GraphDef, with a cached hash once it was hashed.
        paths: paths of the leaves.
        sources: for each leaf its Variable or array reference; ``None`` for bare leaves.
        slots: the bare leaves.
        variables: the Variables, in order.
        nodes: the Pytrees below the root, in order.
    """

    __slots__ = (
        "__weakref__", "_containers", "_epoch", "_layouts", "_metadata", "_partitions", "_targets", "_variable_records", "_versions",
        "graphdef", "nodes", "paths", "slots", "sources", "variables",
    )  # fmt: skip

    graphdef: GraphDef[Any]
    paths: tuple[Path, ...]
    sources: list[Any]
    slots: tuple[Slot, ...]
    variables: list[Variable[Any]]
    nodes: list[Pytree]
    _epoch: int
    _versions: list[int]
    _layouts: list[Layout]
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
        return all(layout.is_current is None or layout.is_current() for layout in self._containers)

    def leaves(self) -> list[Any]:
        """The leaves as they are now: Variables, references and bare values, in the order of the paths (a new list)."""
        leaves = self.sources.copy()
        for position, owner, key, _ in self.slots:
            leaves[position] = owner[key]
        return leaves

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
    plan = make_plan(root, plan)
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
    return walk(root, {}, old)[0]


def walk(root: Any, index: dict[int, int], old: Plan | None = None) -> tuple[Plan, list[Any]]:
    """Walk a graph; objects that ``index`` has by their ``id`` are repeated references, the others are added to it.

    Returns:
        The plan, and the objects with identity that were added to the index, in the order of their indices.
    """
    layouts = {} if old is None else dict(zip(map(id, old.nodes), old._layouts[1:], strict=True))
    if old is not None:
        layouts[id(root)] = old._layouts[0]
    variable_records = {} if old is None else dict(zip(map(id, old._metadata), old._variable_records, strict=True))
    plan = Plan()
    plan._epoch = EPOCH.value  # before anything is looked at: what is edited meanwhile counts as edited later
    records: list[Record] = []
    paths: list[Path] = []
    plan.sources, plan.variables, plan.nodes = [], [], []
    plan._versions, plan._layouts, plan._metadata, plan._variable_records, plan._containers = [], [], [], [], []
    slots: list[Slot] = []
    met: list[Any] = []
    base = len(index)
    # Containers have no identity in a graph, so one that is met again below itself would never end.
    open_containers: dict[int, Path] = {}
    trace: TraceState | None = None
    stack: list[tuple[Iterator[Child], Path | None, int, TraceState | None]] = []
    kind = kind_of(root)
    top = Child(None, Kind.LEAF, None, [root], 0) if kind is Kind.STATIC or kind is Kind.LEAF else Child(None, kind, root)
    children, path, container = iter((top,)), None, 0

    while True:
        for key, kind, value, owner, slot in children:
            here: Path = () if path is None else (*path, key)
            if kind is Kind.LEAF:
                slots.append(Slot(len(paths), owner, slot, trace))
                paths.append(here)
                plan.sources.append(None)
                continue
            identity = id(value)
            is_indexed = kind is not Kind.NODE or isinstance(value, Pytree)
            if is_indexed:
                known = index.get(identity)
                if known is not None:
                    records.append(RefRecord(known))
                    continue
                index[identity] = base + len(met)
                met.append(value)
            if kind is Kind.VARIABLE:
                metadata = value._var_metadata
                record = variable_records.get(id(metadata))
                if record is None or record.type is not type(value):
                    record = VariableRecord(type(value), metadata)
                if not value._nnx_version:
                    object.__setattr__(value, "_nnx_version", 1)
                records.append(record)
                paths.append(here)
                plan.sources.append(value)
                plan.variables.append(value)
                plan._metadata.append(metadata)
                plan._variable_records.append(record)
                continue
            if kind is Kind.REF:
                records.append(ARRAY_REF)
                paths.append(here)
                plan.sources.append(value)
                continue
            stack.append((children, path, container, trace))
            layout = layouts.get(identity) if is_indexed else None
            if layout is None or layout.version != value._nnx_version:
                layout = layout_of(value)
            container = 0
            if not is_indexed:
                if identity in open_containers and layout.children:
                    raise rules.DUPLICATE_NODE.error(
                        path=here, other_path=open_containers[identity], value=type(value).__name__
                    )
                open_containers[identity] = here
                container = identity
                if layout.is_current is not None:
                    plan._containers.append(layout)
            elif path is not None:
                plan.nodes.append(value)
                plan._versions.append(layout.version)
            if is_indexed:
                plan._layouts.append(layout)
                trace = value._pytree__state
            records.append(layout.record)
            children, path = iter(layout.children), here
            break
        else:
            open_containers.pop(container, None)
            if not stack:
                break
            children, path, container, trace = stack.pop()

    plan.graphdef = GraphDef.from_records(tuple(records), base)
    plan.paths = tuple(paths)
    plan.slots = tuple(slots)
    plan._partitions = {}
    plan._targets = None
    return plan, met
