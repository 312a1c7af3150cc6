"""Changing a graph in place: write a State into it, take Variables out of it, set metadata.

Each of these functions finds out first what it would write, checks all of it, and only then writes. So a call that
fails changes nothing.

Invariants

- ``update`` writes only to places that exist, and never changes the shape of an array; dtypes may change (casting a
  model is common).
- ``pop`` removes every reference to what it takes, not only the first.
- Everything is checked against the current trace level before the first write.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import jax

from nnx_rules.filters import Filter, parse
from nnx_rules.rules import filters as filter_rules
from nnx_rules.rules import graphs as rules
from nnxkit._facts import describe
from nnxkit._filters import compile_filters
from nnxkit._graph._functional import LEAF_PATHS, flat_items
from nnxkit._graph._graph_state import GraphState
from nnxkit._graph._layouts import Kind, kind_of
from nnxkit._graph._plan import Plan, Slot, plan_of
from nnxkit._graph._traverse import children_of, is_node, is_open
from nnxkit._pytree import Pytree
from nnxkit._state import FlatState, State
from nnxkit._state._order import Key, Path
from nnxkit._trace import TraceState, mutation_error
from nnxkit._variable import Variable

_set = object.__setattr__
_NO_FILTER = object()


def update(node: Any, state: Any, /, *states: Any) -> None:
    """Write the values of States into a graph, in place.

    Args:
        node: a module, Pytree, Variable, or container.
        state: a State, FlatState, GraphState or nested dictionary; paths that it lacks keep their values. Its leaves
            are Variables, whose metadata is taken over too, or bare values.
        *states: further States; where a path repeats, the last one wins.

    Raises:
        StateMismatchError: a State has a path that the node has not, a leaf where the node has a submodule, or an array
            of another shape.
        GraphError: a leaf lies in a tuple or another container that cannot be written to.
        TraceContextError: something to be written belongs to another trace level.
        StateArgumentError: ``node`` is a leaf, or something else is no State.

    Nothing is written if anything fails.
    """
    plan = plan_of(node)
    if plan.paths == LEAF_PATHS and plan.slots:
        raise rules.UPDATE_ARGUMENTS.error(function="nnx.update", given=f"{describe(node)} as its node")
    if isinstance(node, State | GraphState | FlatState) and isinstance(state, Pytree):
        raise rules.UPDATE_ARGUMENTS.error(function="nnx.update", given="a State as its node, and a node as its State")
    writes = _Writes()
    for part in (state, *states):
        if isinstance(node, Variable) and not (isinstance(part, State) and not part):
            # A lone Variable is its own state; filters that did not take it gave empty States.
            items: tuple[Sequence[Path], Sequence[Any]] = LEAF_PATHS, (part,)
        else:
            items = _state_items(part)
        paths, leaves = items
        for path, leaf, target in zip(paths, leaves, plan.targets_at(paths), strict=True):
            if target is None:
                target = _resolve(node, plan, path)
            if type(target) is Slot:
                writes.add_slot(path, target, leaf)
            elif target is not leaf:
                writes.add_object(path, target, leaf)
    writes.check()
    writes.write()


class _Writes:
    """Everything that an update will write."""

    def __init__(self) -> None:
        self.variables: list[tuple[Path, Variable[Any], Any, Any]] = []  # with the old and the new raw value
        self.metadata: list[tuple[Variable[Any], Mapping[str, Any]]] = []
        self.refs: list[tuple[Path, jax.Ref, Any]] = []
        self.slots: list[tuple[Path, Slot, Any]] = []

    def add_object(self, path: Path, target: Any, leaf: Any) -> None:
        if not isinstance(target, Variable):
            self.refs.append((path, target, leaf))
            return
        new, old = leaf, target._raw_value
        if isinstance(leaf, Variable):
            new, metadata = leaf._raw_value, leaf._var_metadata
            if metadata is not target._var_metadata and metadata != target._var_metadata:
                self.metadata.append((target, metadata))
        if kind_of(old) is Kind.REF:
            self.refs.append((path, old, new))
        else:
            self.variables.append((path, target, old, new))

    def add_slot(self, path: Path, slot: Slot, leaf: Any) -> None:
        if leaf is not slot.owner[slot.key]:
            self.slots.append((path, slot, leaf))

    def check(self) -> None:
        """Raise for the first write that must not happen."""
        traces: dict[int, tuple[TraceState, str]] = {}
        for path, variable, old, new in self.variables:
            _check_shape(path, old, new)
            trace = variable._trace_state
            if id(trace) not in traces:
                traces[id(trace)] = (trace, type(variable).__name__)
        for variable, _ in self.metadata:
            trace = variable._trace_state
            traces[id(trace)] = (trace, type(variable).__name__)
        for path, ref, leaf in self.refs:
            _check_shape(path, ref, leaf)
        for path, slot, leaf in self.slots:
            if not isinstance(slot.owner, dict | list):
                raise rules.UPDATE_IMMUTABLE.error(path=path, value=describe(slot.owner))
            if kind_of(leaf) > Kind.LEAF:
                raise rules.UPDATE_KIND.error(path=path, expected="a bare leaf", given=describe(leaf))
            _check_shape(path, slot.owner[slot.key], leaf)
            if slot.trace is not None:
                traces[id(slot.trace)] = (slot.trace, "Pytree")
        now = TraceState()
        for trace, name in traces.values():
            if trace.jax_trace != now.jax_trace:
                raise mutation_error(name)

    def write(self) -> None:
        """Write it all; nothing here fails."""
        for _, variable, _, new in self.variables:
            _set(variable, "_raw_value", new)
        for variable, metadata in self.metadata:
            variable._replace_metadata(metadata)
        for _, ref, leaf in self.refs:
            ref[...] = _read(leaf)
        for _, slot, leaf in self.slots:
            slot.owner[slot.key] = leaf


def _check_shape(path: Path, old: Any, new: Any) -> None:
    try:
        if old.shape == new.shape:
            return
    except AttributeError:
        return  # one of them is no array: any value may replace any other
    raise rules.UPDATE_SHAPE.error(path=path, expected=old.shape, given=new.shape)


def _read(value: Any) -> Any:
    return value[...] if isinstance(value, jax.Ref) else value


def _state_items(part: Any) -> tuple[Sequence[Path], Sequence[Any]]:
    if not isinstance(part, Mapping | FlatState):
        raise rules.UPDATE_ARGUMENTS.error(function="nnx.update", given=f"{describe(part)} where a State is expected")
    return flat_items(part)


def _resolve(node: Any, plan: Plan, path: Path) -> Any:
    """What lies at a path that is not the first one to its object: the target, found by walking.

    Raises:
        StateMismatchError: nothing lies there, or a node does.
    """
    value, reached, trace = node, node, None
    for depth, key in enumerate(path):
        if isinstance(value, Pytree):
            trace = value._pytree__state
        if not is_node(value):
            raise rules.UPDATE_KIND.error(path=path[:depth], expected="a leaf", given="a deeper State")
        children = dict(children_of(value))
        if key not in children:
            raise rules.UPDATE_UNKNOWN_PATH.error(cls=type(node).__name__, path=path)
        reached, value = value, children[key]
    if isinstance(value, Variable | jax.Ref):
        return value
    if is_node(value):
        raise rules.UPDATE_KIND.error(path=path, expected=describe(value), given="a leaf")
    if isinstance(reached, dict | list):
        return Slot(-1, reached, path[-1], trace)  # a static value, which is no leaf
    if isinstance(reached, Pytree):
        target = plan_of(reached).targets().get((path[-1],))
        if target is not None:
            return target
    raise rules.UPDATE_UNKNOWN_PATH.error(cls=type(node).__name__, path=path)


# Pop


class _Removal(NamedTuple):
    """One reference to what is popped."""

    owner: Any
    key: Key


@overload
def pop(node: Any, a: Filter, /) -> State: ...
@overload
def pop(node: Any, a: Filter, b: Filter, /) -> tuple[State, State]: ...
@overload
def pop(node: Any, a: Filter, b: Filter, c: Filter, /) -> tuple[State, State, State]: ...
@overload
def pop(node: Any, a: Filter, b: Filter, c: Filter, d: Filter, /) -> tuple[State, State, State, State]: ...
@overload
def pop(
    node: Any, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, /
) -> tuple[State, State, State, State, State]: ...
@overload
def pop(
    node: Any, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, f: Filter, /
) -> tuple[State, State, State, State, State, State]: ...
@overload
def pop(node: Any, first: Filter, /, *filters: Any) -> Any: ...
def pop(node: Any, first: Any = _NO_FILTER, /, *filters: Any) -> Any:
    """Take the Variables (and bare arrays) that filters select out of a graph, with all references to them.

    Returns:
        Their State; with several filters a tuple, one State a filter.

    Raises:
        FilterError: no filter is given, or a filter can never match.
        GraphError: something that is selected lies in a list or tuple, from which nothing can be removed by name.
        TraceContextError: an object that would lose an attribute belongs to another trace level.

    Nothing is removed if anything fails.
    """
    if first is _NO_FILTER:
        raise filter_rules.POP_WITHOUT_FILTER.error()
    plan = plan_of(node)
    leaves = plan.leaves()
    partition = plan.partition(compile_filters((first, *filters)), leaves)
    states = tuple(State.from_sorted(group.paths, group.take(leaves)) for group in partition.groups)
    taken = {
        id(leaf) for group in partition.groups for leaf in group.take(leaves) if isinstance(leaf, Variable | jax.Ref)
    }
    slots = {path for group in partition.groups for path in group.paths}
    removals = list(_removals(node, taken, slots))
    for removal in removals:
        owner = removal.owner
        if isinstance(owner, Pytree) and not owner._pytree__state.is_valid():
            raise mutation_error(type(owner).__name__)
    for owner, key in reversed(removals):
        if isinstance(owner, dict) or (type(owner)._pytree__has_int_keys and isinstance(key, int)):
            del owner[key]
        else:
            delattr(owner, str(key))
    return states[0] if len(states) == 1 else states


def _removals(node: Any, taken: set[int], slots: Container[Path]) -> Iterator[_Removal]:
    """Every reference in a graph to one of the objects in ``taken``, and the bare leaves at the paths in ``slots``."""
    seen: set[int] = set()

    def visit(value: Any, path: Path) -> Iterator[_Removal]:
        if id(value) in seen:
            return
        seen.add(id(value))
        for key, child in children_of(value):
            here = (*path, key)
            if id(child) in taken or (here in slots and kind_of(child) <= Kind.LEAF):
                if not isinstance(value, Pytree | dict):
                    raise filter_rules.POP_FROM_IMMUTABLE.error(path=here, value=describe(value))
                yield _Removal(value, key)
            elif is_open(value, key, child):
                yield from visit(child, here)

    if is_node(node):
        yield from visit(node, ())


def set_metadata(node: Any, /, *, only: Any = Variable, **metadata: Any) -> None:
    """Set metadata on all Variables of a graph that a filter selects.

    Raises:
        TraceContextError: one of them belongs to another trace level; nothing is set then.
    """
    wanted = parse(only)
    plan = plan_of(node)
    selected = [
        leaf
        for path, leaf in zip(plan.paths, plan.leaves(), strict=True)
        if isinstance(leaf, Variable) and wanted(path, leaf)
    ]
    for variable in selected:
        if not variable._trace_state.is_valid():
            raise mutation_error(type(variable).__name__)
    for variable in selected:
        variable.set_metadata(**metadata)
