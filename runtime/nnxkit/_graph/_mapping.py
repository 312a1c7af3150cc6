"""New graphs from old ones: map over leaves, map over nodes, change how Variables hold their values, call methods
without side effects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import jax

from nnx_rules.errors import format_path
from nnx_rules.filters import parse
from nnx_rules.rules import graphs as rules
from nnxkit._deprecation import deprecated
from nnxkit._graph._functional import merge, plan_for, split
from nnxkit._graph._graphdef import GraphDef
from nnxkit._graph._layouts import layout_of
from nnxkit._graph._modes import is_graph_mode
from nnxkit._graph._program import make_container, program_of
from nnxkit._graph._traverse import children_of, find_duplicates, is_node, is_open
from nnxkit._pytree import Pytree, blank
from nnxkit._state._order import Path
from nnxkit._variable import Variable, to_array, to_ref

Node = TypeVar("Node")
Pair = TypeVar("Pair", bound=tuple[GraphDef[Any], Any])
Pair_co = TypeVar("Pair_co", bound=tuple[GraphDef[Any], Any], covariant=True)


def map(
    f: Callable[[Path, Any], Any], node: Node, /, *, graph: bool | None = None, recreate_variables: bool = True
) -> Node:
    """A graph of the same structure with ``f(path, leaf)`` for every Variable and bare leaf.

    Args:
        f: takes a path and a Variable, array reference or array. A Variable that it returns is used as it is; so the
            identity function gives a graph that shares its Variables with ``node``.
        node: any graph.
        graph: whether shared references and cycles are allowed.
        recreate_variables: whether another value is wrapped in a Variable of the original type.
    """
    plan = plan_for(node, "map", graph)
    leaves = [f(path, leaf) for path, leaf in zip(plan.paths, plan.leaves(), strict=True)]
    program = program_of(plan.graphdef)
    result: Node = program.build(leaves, recreate_variables=recreate_variables, exact=False)[program.root]
    return result


def recursive_map(f: Callable[[Path, Any], Any], node: Any, /, *, graph: bool | None = None) -> Any:
    """Rebuild a graph from its leaves up: ``f(path, value)`` takes every leaf, Variable, static value and rebuilt node
    to its replacement.

    A shared object is mapped once. In a cycle, the reference back leads to the rebuilt node, not to its replacement.

    Raises:
        AttributeStatusError: a replacement does not fit the status of its attribute.
    """
    done: dict[int, Any] = {}

    def visit(value: Any, path: Path, opened: bool) -> Any:
        shared = opened or isinstance(value, Variable)
        if shared and id(value) in done:
            return done[id(value)]
        rebuilt = value
        if opened:
            rebuilt = (
                _rebuild_pytree(value, path, done, visit)
                if isinstance(value, Pytree)
                else _rebuild_container(value, path, visit)
            )
        result = f(path, rebuilt)
        if shared:
            done[id(value)] = result
        return result

    if not is_graph_mode(graph):
        plan_for(node, "recursive_map", graph)
    return visit(node, (), is_node(node))


_Visit = Callable[[Any, Path, bool], Any]


def _rebuild_pytree(node: Pytree, path: Path, done: dict[int, Any], visit: _Visit) -> Pytree:
    new = done[id(node)] = blank(type(node))
    new._pytree__nodes.update(node._pytree__nodes)
    mapped = [
        (str(key), child, visit(child, (*path, key), is_open(node, key, child))) for key, child in children_of(node)
    ]
    vars(new).update((name, child) for name, child, _ in mapped)
    for name, old, replacement in mapped:
        if replacement is not old:
            setattr(new, name, replacement)
    return new


def _rebuild_container(node: Any, path: Path, visit: _Visit) -> Any:
    children = [visit(child, (*path, key), is_node(child)) for key, child in children_of(node)]
    return make_container(layout_of(node).record, children)


# How Variables and arrays hold their values


def with_vars(
    node: Node,
    /,
    *,
    hijax: bool | None = None,
    ref: bool | None = None,
    mutable: bool | None = None,
    only: Any = ...,
    allow_duplicates: bool = False,
) -> Node:
    """A copy of a graph whose Variables have other flags.

    Args:
        node: any graph.
        hijax: the flag of that name; ``None`` keeps it.
        ref: whether values live in JAX array references; ``None`` keeps it.
        mutable: the older name of ``ref``.
        only: a filter for the Variables to change; the others are shared.
        allow_duplicates: whether a Variable may be referenced more than once.

    Raises:
        GraphError: a Variable to change is referenced twice.
    """
    wanted = parse(only)
    ref = mutable if ref is None else ref
    flags = {name: flag for name, flag in (("hijax", hijax), ("ref", ref)) if flag is not None}

    def convert(path: Path, leaf: Any) -> Any:
        if not isinstance(leaf, Variable) or not wanted(path, leaf):
            return leaf
        return leaf.copy(leaf.get_raw_value(), **flags)

    if not allow_duplicates:
        _refuse_duplicates(node, lambda path, leaf: isinstance(leaf, Variable) and wanted(path, leaf))
    return map(convert, node, graph=True)


@deprecated("`nnx.vars_as` is deprecated: use `nnx.with_vars`")
def vars_as(node: Node, /, **options: Any) -> Node:
    """Deprecated: use `nnx.with_vars`."""
    return with_vars(node, **options)


def to_refs(node: Node, /, only: Any = ...) -> Node:
    """A copy of a graph whose arrays, bare and in Variables, are array references.

    Args:
        node: any graph.
        only: a filter for what to convert.

    Raises:
        GraphError: an array to convert is there twice, and would become two references.
    """
    return _convert(node, only, (jax.Array,), to_ref, allow_duplicates=False)


def to_arrays(node: Node, /, *, only: Any = ..., allow_duplicates: bool = False) -> Node:
    """A copy of a graph whose array references, bare and in Variables, are arrays.

    Args:
        node: any graph.
        only: a filter for what to convert.
        allow_duplicates: whether a reference may be there twice; sharing is lost then.

    Raises:
        GraphError: a reference to convert is there twice.
    """
    return _convert(node, only, (jax.Ref,), to_array, allow_duplicates=allow_duplicates)


def _convert(
    node: Node, only: Any, types: tuple[type, ...], convert: Callable[[Any], Any], *, allow_duplicates: bool
) -> Node:
    given = parse(only)

    def wanted(path: Path, leaf: Any) -> bool:
        value = leaf.get_raw_value() if isinstance(leaf, Variable) else leaf
        return isinstance(value, types) and given(path, leaf)

    def converted(path: Path, leaf: Any) -> Any:
        if not wanted(path, leaf):
            return leaf
        if isinstance(leaf, Variable):
            return leaf.copy(leaf.get_raw_value(), ref=convert is to_ref)
        return convert(leaf)

    if not allow_duplicates:
        _refuse_duplicates(node, wanted)
    return map(converted, node, graph=True)


def _refuse_duplicates(node: Any, only: Callable[[Path, Any], bool]) -> None:
    for group in find_duplicates(node, only=only):
        shown = " and ".join(f"`{format_path(path)}`" for path in group)
        raise rules.DUPLICATE_REFERENCE.error(path=group[0], other_path=group[1], paths=shown)


# Calls


class _Call:
    """What `nnx.call` returns: remembers how a method is reached, and calls it on a merged copy."""

    __slots__ = ("_graph", "_graphdef_state", "_reach")

    def __init__(self, graphdef_state: tuple[Any, ...], graph: bool | None, reach: Callable[[Any], Any]) -> None:
        self._graphdef_state = graphdef_state
        self._graph = graph
        self._reach = reach

    def __getattr__(self, name: str) -> _Call:
        reach = self._reach
        return _Call(self._graphdef_state, self._graph, lambda node: getattr(reach(node), name))

    def __getitem__(self, key: Any) -> _Call:
        reach = self._reach
        return _Call(self._graphdef_state, self._graph, lambda node: reach(node)[key])

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, tuple[GraphDef[Any], Any]]:
        graphdef, state = self._graphdef_state
        node = merge(graphdef, state, copy=True)
        result = self._reach(node)(*args, **kwargs)
        return result, split(node, graph=self._graph)


class ApplyCaller(Protocol[Pair_co]):
    """What type checkers see of `nnx.call`: a way to a method, or a method that also returns the new pair."""

    def __getattr__(self, name: str, /) -> ApplyCaller[Pair_co]: ...

    def __getitem__(self, key: Any, /) -> ApplyCaller[Pair_co]: ...

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Pair_co]: ...


def call(graphdef_state: Pair, /, *, graph: bool | None = None) -> ApplyCaller[Pair]:
    """Call a method of a graph that is given as ``(graphdef, state)``, out of place.

    The result is a proxy: attributes and items of it lead to a method, and calling that returns ``(result, (graphdef,
    state))`` with the state after the call.

    Args:
        graphdef_state: a GraphDef and a State.
        graph: graph or tree mode for what the call leaves; ``None`` for the configured one.

    Raises:
        StateArgumentError: anything but a pair.

    >>> import nnxkit as nnx
    >>> class Counter(nnx.Module):
    ...     def __init__(self):
    ...         self.count = nnx.Variable(0)
    ...     def up(self):
    ...         self.count.set_value(self.count.get_value() + 1)
    >>> _, (graphdef, state) = nnx.call(nnx.split(Counter())).up()
    >>> state.count.get_value()
    1
    """
    if type(graphdef_state) is not tuple or len(graphdef_state) != 2:
        raise rules.MERGE_ARGUMENTS.error(given="something else than a pair (graphdef, state) through `nnx.call`")
    caller: Any = _Call(graphdef_state, graph, lambda node: node)
    result: ApplyCaller[Pair] = caller
    return result
