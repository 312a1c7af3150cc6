"""The functional face of graphs: from objects to structure and values, and back.

``split`` takes an object graph apart, ``merge`` puts it together; the rest are variations. All of them work on any JAX
pytree of modules, Variables and arrays. A State shares the Variables of the graph that it was taken from: it is a view,
not a snapshot.

Invariants

- ``merge`` goes by path: the States together must hold exactly the leaves that the GraphDef names, each of the recorded
  type, in any order of States.
- Filters are an ordered, checked partition (``_filters``).
- A graph that is a single Variable or array has itself as its state.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, overload

import jax

from nnx_rules.filters import Filter
from nnx_rules.rules import graphs as rules
from nnxkit._facts import describe
from nnxkit._filters import Group, compile_filters, name_leaves
from nnxkit._graph._graph_state import GraphState
from nnxkit._graph._graphdef import GraphDef
from nnxkit._graph._modes import is_graph_mode
from nnxkit._graph._plan import Plan, Walk, plan_of
from nnxkit._graph._program import Program, copy_variables, program_of
from nnxkit._graph._traverse import require_tree
from nnxkit._state import FlatState, State
from nnxkit._state._functions import as_state
from nnxkit._state._order import Path
from nnxkit._variable import Variable

Node = TypeVar("Node")
PureState: TypeAlias = tuple[GraphDef[Node], State]
"""A graph taken apart: what `split` returns without filters."""
LEAF_PATHS: tuple[Path, ...] = ((),)
"""Paths of a graph that is a single leaf."""


@overload
def split(node: Node, /, *, graph: bool | None = None) -> tuple[GraphDef[Node], State]: ...
@overload
def split(node: Node, a: Filter, /, *, graph: bool | None = None) -> tuple[GraphDef[Node], State]: ...
@overload
def split(node: Node, a: Filter, b: Filter, /, *, graph: bool | None = None) -> tuple[GraphDef[Node], State, State]: ...
@overload
def split(
    node: Node, a: Filter, b: Filter, c: Filter, /, *, graph: bool | None = None
) -> tuple[GraphDef[Node], State, State, State]: ...
@overload
def split(
    node: Node, a: Filter, b: Filter, c: Filter, d: Filter, /, *, graph: bool | None = None
) -> tuple[GraphDef[Node], State, State, State, State]: ...
@overload
def split(
    node: Node, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, /, *, graph: bool | None = None
) -> tuple[GraphDef[Node], State, State, State, State, State]: ...
@overload
def split(
    node: Node, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, f: Filter, /, *, graph: bool | None = None
) -> tuple[GraphDef[Node], State, State, State, State, State, State]: ...
@overload
def split(node: Any, /, *filters: Any, graph: bool | None = None) -> tuple[Any, ...]: ...
def split(node: Any, *filters: Any, graph: bool | None = None) -> Any:
    """Take a graph apart into its structure and its values.

    Args:
        node: a module, Pytree, Variable, array, or container of these.
        *filters: filters that share the leaves out; together they must take every leaf.
        graph: whether shared references and cycles are allowed; ``None`` for the current `set_graph_mode`.

    Returns:
        ``(graphdef, state)``, or with filters ``(graphdef, *states)``, one for each.

    Raises:
        FilterError: a leaf is taken by no filter, or a filter can never match.
        GraphError: in tree mode, an object is referenced twice.

    >>> import nnxkit as nnx, jax.numpy as jnp
    >>> node = nnx.Dict(w=nnx.Param(jnp.zeros(2)), mean=nnx.BatchStat(jnp.zeros(2)))
    >>> graphdef, params, rest = nnx.split(node, nnx.Param, ...)
    >>> list(params), list(rest)
    (['w'], ['mean'])
    """
    plan = plan_for(node, "split", graph)
    return (plan.graphdef, *_states(plan, filters, exhaustive=True))


@overload
def state(node: Any, /, *, graph: bool | None = None) -> State: ...
@overload
def state(node: Any, a: Filter, /, *, graph: bool | None = None) -> State: ...
@overload
def state(node: Any, a: Filter, b: Filter, /, *, graph: bool | None = None) -> tuple[State, State]: ...
@overload
def state(
    node: Any, a: Filter, b: Filter, c: Filter, /, *, graph: bool | None = None
) -> tuple[State, State, State]: ...
@overload
def state(
    node: Any, a: Filter, b: Filter, c: Filter, d: Filter, /, *, graph: bool | None = None
) -> tuple[State, State, State, State]: ...
@overload
def state(
    node: Any, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, /, *, graph: bool | None = None
) -> tuple[State, State, State, State, State]: ...
@overload
def state(
    node: Any, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, f: Filter, /, *, graph: bool | None = None
) -> tuple[State, State, State, State, State, State]: ...
@overload
def state(node: Any, /, *filters: Any, graph: bool | None = None) -> Any: ...
def state(node: Any, *filters: Any, graph: bool | None = None) -> Any:
    """The values of a graph: its State, or one State for each of several filters; leaves that no filter takes are left
    out.

    The State shares the Variables of the node.

    Raises:
        StateArgumentError: ``node`` is neither a node nor a Variable.
        FilterError: a filter can never match.
    """
    plan = plan_for(node, "state", graph)
    if plan.paths == LEAF_PATHS and not plan.variables and plan.slots:
        raise rules.NOT_A_NODE.error(function="nnx.state", given=describe(node))
    states = _states(plan, filters, exhaustive=False)
    return states[0] if len(states) == 1 else states


@overload
def variables(node: Any, /, *, graph: bool | None = None) -> State: ...
@overload
def variables(node: Any, a: Filter, /, *, graph: bool | None = None) -> State: ...
@overload
def variables(node: Any, a: Filter, b: Filter, /, *, graph: bool | None = None) -> tuple[State, State]: ...
@overload
def variables(
    node: Any, a: Filter, b: Filter, c: Filter, /, *, graph: bool | None = None
) -> tuple[State, State, State]: ...
@overload
def variables(
    node: Any, a: Filter, b: Filter, c: Filter, d: Filter, /, *, graph: bool | None = None
) -> tuple[State, State, State, State]: ...
@overload
def variables(
    node: Any, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, /, *, graph: bool | None = None
) -> tuple[State, State, State, State, State]: ...
@overload
def variables(
    node: Any, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, f: Filter, /, *, graph: bool | None = None
) -> tuple[State, State, State, State, State, State]: ...
@overload
def variables(node: Any, /, *filters: Any, graph: bool | None = None) -> Any: ...
def variables(node: Any, *filters: Any, graph: bool | None = None) -> Any:
    """The same as `nnx.state`."""
    return state(node, *filters, graph=graph)


def graphdef(node: Node, /, *, graph: bool | None = None) -> GraphDef[Node]:
    """The structure of a graph: what `nnx.split` returns first."""
    return plan_for(node, "graphdef", graph).graphdef


@overload
def unpack(node: Node, /, *, graph: bool | None = None) -> GraphState[Node]: ...
@overload
def unpack(node: Node, a: Filter, /, *, graph: bool | None = None) -> GraphState[Node]: ...
@overload
def unpack(
    node: Node, a: Filter, b: Filter, /, *, graph: bool | None = None
) -> tuple[GraphState[Node], GraphState[Node]]: ...
@overload
def unpack(
    node: Node, a: Filter, b: Filter, c: Filter, /, *, graph: bool | None = None
) -> tuple[GraphState[Node], GraphState[Node], GraphState[Node]]: ...
@overload
def unpack(
    node: Node, a: Filter, b: Filter, c: Filter, d: Filter, /, *, graph: bool | None = None
) -> tuple[GraphState[Node], GraphState[Node], GraphState[Node], GraphState[Node]]: ...
@overload
def unpack(
    node: Node, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, /, *, graph: bool | None = None
) -> tuple[GraphState[Node], GraphState[Node], GraphState[Node], GraphState[Node], GraphState[Node]]: ...
@overload
def unpack(
    node: Node, a: Filter, b: Filter, c: Filter, d: Filter, e: Filter, f: Filter, /, *, graph: bool | None = None
) -> tuple[
    GraphState[Node], GraphState[Node], GraphState[Node], GraphState[Node], GraphState[Node], GraphState[Node]
]: ...
@overload
def unpack(node: Any, /, *filters: Any, graph: bool | None = None) -> Any: ...
def unpack(node: Any, *filters: Any, graph: bool | None = None) -> Any:
    """As `nnx.split`, but each State comes with the GraphDef, as a `GraphState`; with several filters a tuple."""
    structure, *states = split(node, *filters, graph=graph)
    bundles = tuple(GraphState(structure, part) for part in states)
    return bundles[0] if len(bundles) == 1 else bundles


@overload
def merge(
    graphstate: GraphState[Node], /, *states: GraphState[Any], copy: bool = False, recreate_variables: bool = True
) -> Node: ...
@overload
def merge(
    graphdef: GraphDef[Node], state: Any, /, *states: Any, copy: bool = False, recreate_variables: bool = True
) -> Node: ...
def merge(
    graphdef_or_graphstate: GraphDef[Node] | GraphState[Node],
    /,
    *states: Any,
    copy: bool = False,
    recreate_variables: bool = True,
) -> Node:
    """Build a graph from its structure and its values: the inverse of `nnx.split`.

    Args:
        graphdef_or_graphstate: the structure, or a `GraphState` that carries it.
        *states: the values: States, FlatStates, nested dictionaries, `GraphState`, or one list of leaves in order.
        copy: whether Variables are copied; by default the new graph shares those of the States.
        recreate_variables: whether bare values are wrapped in Variables where the structure has one.

    Raises:
        StateMismatchError: the States do not hold exactly the leaves that the structure has, or a Variable has another
            type.
        StateArgumentError: no State, or something else in the place of the GraphDef.
    """
    structure, given = _merge_arguments(graphdef_or_graphstate, states)
    program = program_of(structure)
    values = program.build(gather(program, given), copy=copy, recreate_variables=recreate_variables)
    merged: Node = values[program.root]
    return merged


def clone(node: Node, variables: bool = True, *, arrays: bool = False, graph: bool | None = None) -> Node:
    """A copy of a graph: new nodes and new Variables.

    Args:
        node: any graph.
        variables: whether Variables are copied, or shared with the original.
        arrays: whether array buffers are copied, too (a buffer that is shared must not be donated).
        graph: whether shared references and cycles are allowed.
    """
    plan = plan_for(node, "clone", graph)
    leaves = plan.leaves()
    if variables:
        leaves = copy_variables(leaves)
    if arrays:
        shared = [isinstance(leaf, Variable) and not variables for leaf in leaves]
        leaves = [leaf if keep else jax.tree.map(_copy_array, leaf) for leaf, keep in zip(leaves, shared, strict=True)]
    program = program_of(plan.graphdef)
    result: Node = program.build(leaves)[program.root]
    return result


@overload
def flatten(
    node: Node,
    /,
    *,
    with_paths: Literal[True] = True,
    ref_index: MutableMapping[Any, int] | None = None,
    ref_outer_index: Mapping[Any, int] | None = None,
    graph: bool | None = None,
) -> tuple[GraphDef[Node], FlatState]: ...
@overload
def flatten(
    node: Node,
    /,
    *,
    with_paths: Literal[False],
    ref_index: MutableMapping[Any, int] | None = None,
    ref_outer_index: Mapping[Any, int] | None = None,
    graph: bool | None = None,
) -> tuple[GraphDef[Node], list[Any]]: ...
@overload
def flatten(
    node: Node,
    /,
    *,
    with_paths: bool,
    ref_index: MutableMapping[Any, int] | None = None,
    ref_outer_index: Mapping[Any, int] | None = None,
    graph: bool | None = None,
) -> tuple[GraphDef[Node], Any]: ...
def flatten(
    node: Any,
    /,
    *,
    with_paths: bool = True,
    ref_index: MutableMapping[Any, int] | None = None,
    ref_outer_index: Mapping[Any, int] | None = None,
    graph: bool | None = None,
) -> tuple[GraphDef[Any], Any]:
    """The lower level of `nnx.split`.

    Args:
        node: any graph.
        with_paths: whether the leaves come as a `FlatState`, or as a plain list.
        ref_index: indices of objects seen before, a `RefMap`; they become references, and new objects are added.
        ref_outer_index: indices of objects in an enclosing update context, noted in the GraphDef.
        graph: whether shared references and cycles are allowed.
    """
    if ref_index is None and ref_outer_index is None:
        plan = plan_for(node, "flatten", graph)
        structure = plan.graphdef
    else:
        known = {} if ref_index is None else {id(obj): index for obj, index in ref_index.items()}
        walk = Walk(known, node)
        plan = walk.plan
        if not is_graph_mode(graph):
            require_tree(node, "flatten")
        structure = plan.graphdef
        if ref_index is not None:
            for obj in walk.met:
                ref_index[obj] = len(ref_index)
        if ref_outer_index is not None:
            structure = structure.with_outer(tuple(ref_outer_index.get(obj) for obj in walk.met))
    leaves = plan.leaves()
    return structure, FlatState.from_sorted(plan.paths, leaves) if with_paths else leaves


def unflatten(
    graphdef: GraphDef[Node],
    state: Any,
    /,
    *,
    index_ref: MutableMapping[int, Any] | None = None,
    outer_index_outer_ref: Mapping[int, Any] | None = None,
    copy_variables: bool = False,
    recreate_variables: bool = True,
) -> Node:
    """The lower level of `nnx.merge`.

    Args:
        graphdef: the structure.
        state: the leaves: a State, FlatState, nested dictionary, or list in order.
        index_ref: objects by index that the graph may refer to; the objects built are added.
        outer_index_outer_ref: existing objects by their outer index; they are refilled instead of made anew.
        copy_variables: whether Variables are copied.
        recreate_variables: whether bare values are wrapped in Variables.
    """
    node: Node = build(
        graphdef,
        (state,),
        index_ref=index_ref,
        outer_index_outer_ref=outer_index_outer_ref,
        copy=copy_variables,
        recreate_variables=recreate_variables,
    )
    return node


def build(
    graphdef: GraphDef[Any],
    states: Sequence[Any],
    *,
    index_ref: MutableMapping[int, Any] | None,
    outer_index_outer_ref: Mapping[int, Any] | None,
    copy: bool = False,
    recreate_variables: bool = True,
) -> Any:
    """`unflatten` from several States."""
    program = program_of(graphdef)
    reused = None
    if outer_index_outer_ref is not None and graphdef.outer is not None:
        reused = {
            graphdef.base + place: outer_index_outer_ref[outer]
            for place, outer in enumerate(graphdef.outer)
            if outer is not None and outer in outer_index_outer_ref
        }
    values = program.build(
        gather(program, states), copy=copy, recreate_variables=recreate_variables, known=index_ref, reused=reused
    )
    if index_ref is not None:
        index_ref.update((index, values[place]) for index, place in program.places.items())
    return values[program.root]


# Arguments and results


def plan_for(node: Any, function: str, graph: bool | None) -> Plan:
    """The plan of a node, checked in tree mode."""
    plan = plan_of(node)
    if not is_graph_mode(graph):
        require_tree(node, function)
    return plan


def split_flat(flat: FlatState, filters: Sequence[Any]) -> tuple[Any, ...]:
    """Nested States from a flat one: one State, or one for each filter."""
    if not filters:
        return (flat.leaves[0],) if flat.paths == LEAF_PATHS else (flat.to_nested_state(),)
    partition = compile_filters(filters).partition(flat.paths, flat.leaves)
    partition.require_exhaustive()
    return tuple(_state_of(group, flat.leaves) for group in partition.groups)


def _states(plan: Plan, filters: Sequence[Any], *, exhaustive: bool) -> tuple[Any, ...]:
    leaves = plan.leaves()
    if not filters:
        return (leaves[0],) if plan.paths == LEAF_PATHS else (State.from_sorted(plan.paths, leaves),)
    partition = plan.partition(compile_filters(filters), leaves)
    if exhaustive:
        partition.require_exhaustive()
    return tuple(_state_of(group, leaves) for group in partition.groups)


def _state_of(group: Group, leaves: Sequence[Any]) -> Any:
    if group.paths == LEAF_PATHS:
        return leaves[0]
    return State.from_sorted(group.paths, group.take(leaves))


def _merge_arguments(first: Any, states: tuple[Any, ...]) -> tuple[GraphDef[Any], tuple[Any, ...]]:
    if isinstance(first, GraphState):
        for other in states:
            if not isinstance(other, GraphState):
                raise rules.MERGE_GRAPHDEFS.error(given=f"{describe(other)}, which has no graphdef")
            if other._graphdef != first._graphdef:
                raise rules.MERGE_GRAPHDEFS.error(given="one of another graph")
        return first._graphdef, (first, *states)
    if not isinstance(first, GraphDef):
        raise rules.MERGE_ARGUMENTS.error(given=f"{describe(first)} as its first argument")
    if not states:
        raise rules.MERGE_ARGUMENTS.error(given="a graphdef and no State")
    return first, states


def gather(program: Program, states: Sequence[Any]) -> Sequence[Any]:
    """The leaves of several States, in the order of a program.

    Raises:
        StateMismatchError: leaves are missing, unknown, or there twice.
    """
    paths = program.paths
    if paths == LEAF_PATHS:
        # A lone leaf is its own state; filters that did not take it gave empty States.
        states = [part for part in states if not (isinstance(part, State) and not part)]
        if len(states) == 1:
            found = states[0]
            return found.leaves if isinstance(found, FlatState) else [found]
    if len(states) == 1 and isinstance(states[0], list | tuple):
        leaves = states[0]
        if len(leaves) != len(paths):
            raise rules.MERGE_LEAF_COUNT.error(expected=len(paths), given=len(leaves))
        return list(leaves)
    flats = [flat_items(part) for part in states]
    if len(flats) == 1 and flats[0][0] == paths:
        return flats[0][1]
    found_leaves: dict[Path, Any] = {}
    for given_paths, given_leaves in flats:
        repeated = [path for path in given_paths if path in found_leaves]
        if repeated:
            raise rules.MERGE_DUPLICATE_LEAF.error(path=repeated[0], leaves=name_leaves(repeated))
        found_leaves.update(zip(given_paths, given_leaves, strict=True))
    try:
        leaves = [found_leaves[path] for path in paths]
    except KeyError:
        missing = [path for path in paths if path not in found_leaves]
        raise rules.MERGE_MISSING_STATE.error(path=missing[0], leaves=name_leaves(missing)) from None
    if len(found_leaves) > len(leaves):
        known = set(paths)
        unknown = [path for path in found_leaves if path not in known]
        raise rules.MERGE_UNKNOWN_PATH.error(path=unknown[0], leaves=name_leaves(unknown))
    return leaves


def flat_items(part: Any) -> tuple[Sequence[Path], Sequence[Any]]:
    """Paths and leaves of anything that a State may be given as.

    Raises:
        StateArgumentError: it is no State.
    """
    if isinstance(part, FlatState):
        return part.paths, part.leaves
    if isinstance(part, GraphState):
        part = part._state
    if not isinstance(part, Mapping):
        raise rules.MERGE_ARGUMENTS.error(given=f"{describe(part)} where a State is expected")
    return as_state(part).flat_items()


def _copy_array(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, jax.Array) else leaf
