"""Joint graphs: the objects of one call as one graph.

The root of a joint graph is the tuple of all Pytrees, followed by a list of all Variables that stand for themselves, if
there are any. An object that is reached twice is one object, wherever the two are. The joint graph is made of the plans
that the Pytrees keep, by putting one after the other; only where they share objects it is walked.

Invariants

- Leaves, objects and records are in the depth-first order of the root. Both ways of making a joint graph give the same.
- What a compiled function needs at each call, a key and the values, costs no walk and no look at the structure.
- What is kept between calls refers to objects weakly.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from nnxkit._graph._graphdef import NODE, GraphDef, NodeRecord, Record, RefRecord
from nnxkit._graph._plan import Plan, Slot, Walk, make_plan, plan_of
from nnxkit._pytree import Pytree
from nnxkit._state._order import Path
from nnxkit._trace import current_trace
from nnxkit._variable import Variable

_raw_value: Callable[[Any], Any] = attrgetter("_raw_value")
_sources: Callable[[Plan], list[Any]] = attrgetter("sources")


class Root(NamedTuple):
    """The objects that a joint graph begins with, by kind."""

    pytrees: tuple[Pytree, ...]
    variables: tuple[Variable[Any], ...]

    @property
    def node(self) -> tuple[Any, ...]:
        """The root as a graph."""
        return (*self.pytrees, list(self.variables)) if self.variables else self.pytrees

    @classmethod
    def from_node(cls, node: tuple[Any, ...], count: int) -> Root:
        """The inverse of `node`, where ``count`` is the number of Pytrees."""
        return cls(node[:count], tuple(node[count]) if len(node) > count else ())


class Joint:
    """The joint graph of some objects.

    Args:
        find_root: returns the objects; asked only where they matter.
        plans: the plan of each Pytree, and of the list of Variables if there is one.
        sharing: what the plans have in common, if that is known.

    Attributes:
        plans: the plans.
    """

    __slots__ = ("_find_root", "_graphdef", "_paths", "_root", "_sharing", "_sources", "_walk", "plans")

    def __init__(self, find_root: Callable[[], Root], plans: list[Plan], sharing: Sharing | None = None) -> None:
        self.plans = plans
        self._find_root = find_root
        self._root: Root | None = None
        self._sharing = sharing
        self._sources: Sequence[Any] | None = None
        self._walk: Walk | None = None
        self._graphdef: GraphDef[Any] | None = None
        self._paths: tuple[Path, ...] | None = None

    @classmethod
    def of(cls, root: Root) -> Joint:
        """The joint graph of some objects."""
        plans = [plan_of(node) for node in root.pytrees]
        if root.variables:
            plans.append(make_plan(list(root.variables)))
        return cls(lambda: root, plans)

    @property
    def root(self) -> Root:
        """The objects."""
        if self._root is None:
            self._root = self._find_root()
        return self._root

    def graphdefs(self) -> tuple[GraphDef[Any], ...]:
        """The structures of the plans."""
        return tuple([plan.graphdef for plan in self.plans])

    @property
    def sharing(self) -> Sharing:
        """What the plans have in common."""
        if self._sharing is None:
            self._sharing = _sharing_of(self.root, self.plans) if len(self.plans) > 1 else NOTHING_SHARED
        return self._sharing

    @property
    def walk(self) -> Walk | None:
        """The walk over the graph, if there is something to be found that the plans do not know."""
        if self._walk is None and self.sharing.pairs:
            self._walk = Walk({}, self.root.node)
        return self._walk

    @property
    def graphdef(self) -> GraphDef[Any]:
        """The structure."""
        if self._graphdef is None:
            walk = self.walk
            self._graphdef = self._composed() if walk is None else walk.plan.graphdef
        return self._graphdef

    def _composed(self) -> GraphDef[Any]:
        records: list[Record] = [_root_record(len(self.plans))]
        count = 0
        for plan in self.plans:
            own = plan.graphdef.records
            if count and any(type(record) is RefRecord for record in own):
                own = tuple(RefRecord(record.index + count) if type(record) is RefRecord else record for record in own)
            records += own
            count += sum(record.indexed for record in own)
        return GraphDef.from_records(tuple(records))

    @property
    def paths(self) -> tuple[Path, ...]:
        """Paths of the leaves; the first key is the number of the Pytree, or of the list of Variables."""
        if self._paths is None:
            if self.walk is not None:
                self._paths = self.walk.plan.paths
            else:
                self._paths = tuple([(number, *path) for number, plan in enumerate(self.plans) for path in plan.paths])
        return self._paths

    @property
    def slots(self) -> list[Slot]:
        """The bare leaves."""
        if self.walk is not None:
            return list(self.walk.plan.slots)
        slots = []
        count = 0
        for plan in self.plans:
            slots += [slot._replace(position=slot.position + count) for slot in plan.slots]
            count += len(plan.paths)
        return slots

    @property
    def objects(self) -> list[Any]:
        """The objects with identity, by their indices."""
        if self.walk is not None:
            return self.walk.met
        nodes = [*self.root.pytrees, None]
        return [item for plan, node in zip(self.plans, nodes, strict=False) for item in _objects(plan, node)]

    def sources(self) -> Sequence[Any]:
        """The Variable or array reference behind each leaf; ``None`` for bare leaves."""
        if self._sources is None:
            self._sources = self._joined(list(map(_sources, self.plans)))
        return self._sources

    def leaf_keys(self) -> list[Hashable]:
        """What identifies each leaf, as for plans."""
        return self._joined([plan.leaf_keys() for plan in self.plans])

    def values(self) -> list[Any]:
        """The values of the leaves (a new list)."""
        try:
            return list(map(_raw_value, self.sources()))
        except AttributeError:  # not all leaves are Variables
            leaves = self._joined([plan.leaves() for plan in self.plans])
            return [leaf._raw_value if isinstance(leaf, Variable) else leaf for leaf in leaves]

    def is_of_current_trace(self) -> bool:
        """Whether all Variables belong to the current trace."""
        current = current_trace().jax_trace
        for plan in self.plans:
            for trace in plan.traces():
                if trace.jax_trace != current:
                    return False
        return True

    def _joined(self, parts: list[list[Any]]) -> list[Any]:
        if len(parts) == 1:
            return parts[0]
        if self.sharing.kept:
            parts = [part if keep is None else keep(part) for part, keep in zip(parts, self.sharing.kept, strict=True)]
        return list(chain.from_iterable(parts))


def _objects(plan: Plan, root: Pytree | None) -> Iterator[Any]:
    nodes = iter(plan.nodes if root is None else (root, *plan.nodes))
    leaves = (source for source in plan.sources if source is not None)
    for record in plan.graphdef.records:
        if record.indexed:
            yield next(nodes) if isinstance(record, NodeRecord) else next(leaves)


@functools.cache
def _root_record(count: int) -> NodeRecord:
    return NodeRecord(tuple, None, tuple(range(count)), (NODE,) * count, indexed=False)


# Sharing between plans


class Sharing:
    """Which leaves and nodes several plans have in common.

    Attributes:
        pairs: for each repetition, where it is and where it was first: number of the plan, place in the plan.
        kept: for each plan, what selects the leaves that were not in an earlier one; ``None`` for all. Empty if nothing
            is shared.
    """

    __slots__ = ("_hash", "kept", "pairs")

    def __init__(
        self, pairs: tuple[tuple[int, int, int, int], ...], kept: tuple[Callable[[list[Any]], list[Any]] | None, ...]
    ) -> None:
        self.pairs = pairs
        self.kept = kept
        self._hash = hash(pairs)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Sharing) and self.pairs == other.pairs)

    def __hash__(self) -> int:
        return self._hash


NOTHING_SHARED = Sharing((), ())

_sharings: dict[tuple[int, ...], tuple[tuple[weakref.ref[Any], ...], Sharing]] = {}
"""Found before, by the identities of the plans' members; with weak references to them, as identities are reused."""

KEPT_SHARINGS = 256


def _sharing_of(root: Root, plans: Sequence[Plan]) -> Sharing:
    key = tuple([id(plan.members) for plan in plans])
    known = _sharings.get(key)
    if known is not None:
        references, sharing = known
        if all(reference() is plan.members for reference, plan in zip(references, plans, strict=True)):
            return sharing
    sharing = _find_sharing(root, plans)
    if len(_sharings) >= KEPT_SHARINGS:
        _sharings.clear()
    _sharings[key] = tuple(weakref.ref(plan.members) for plan in plans), sharing
    return sharing


def _find_sharing(root: Root, plans: Sequence[Plan]) -> Sharing:
    first: dict[Any, tuple[int, int]] = {}
    pairs: list[tuple[int, int, int, int]] = []
    kept: list[Callable[[list[Any]], list[Any]] | None] = []
    for number, plan in enumerate(plans):
        keys = plan.leaf_keys()
        nodes = map(id, (*root.pytrees[number : number + 1], *plan.nodes))
        repeated = set()
        for place, identity in enumerate((*keys, *nodes)):
            other = first.setdefault(identity, (number, place))
            if other[0] != number:
                pairs.append((number, place, *other))
                repeated.add(place)
        kept.append(_keep([place for place in range(len(keys)) if place not in repeated], len(keys)))
    return Sharing(tuple(pairs), tuple(kept)) if pairs else NOTHING_SHARED


def _keep(places: list[int], count: int) -> Callable[[list[Any]], list[Any]] | None:
    if len(places) == count:
        return None
    if len(places) < 2:  # itemgetter gives tuples only for two and more
        return lambda items: [items[place] for place in places]
    get = itemgetter(*places)
    return lambda items: list(get(items))
