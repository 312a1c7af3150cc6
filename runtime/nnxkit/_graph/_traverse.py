"""Walks over live objects: iterate, map, find what is shared.

These functions look at the objects themselves, static values included, and keep no plan. A node is visited once,
however often it is referenced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import jax
import numpy as np

from nnx_rules.filters import parse
from nnx_rules.rules import graphs as rules
from nnx_rules.rules.construction import NOT_A_NODE
from nnxkit._deprecation import deprecated
from nnxkit._facts import describe
from nnxkit._graph._graphdef import Static
from nnxkit._graph._layouts import Kind, kind_of, layout_of
from nnxkit._graph._modes import is_graph_mode
from nnxkit._pytree import Pytree, sorted_attributes
from nnxkit._state._order import Key, Path
from nnxkit._variable import Variable, pure_value

T = TypeVar("T")


def children_of(node: Any) -> list[tuple[Key, Any]]:
    """Key and value of everything directly inside a node, static values included, in order."""
    if isinstance(node, Pytree):
        return [(key, node.__dict__[name]) for key, name, _ in sorted_attributes(node)]
    layout = layout_of(node)
    children = iter(layout.children)
    items: list[tuple[Key, Any]] = []
    for key, entry in zip(layout.record.keys, layout.record.entries, strict=True):
        if isinstance(entry, Static):
            items.append((key, entry.value))
        else:
            child = next(children)
            items.append((key, child.owner[child.slot] if child.kind is Kind.LEAF else child.value))
    return items


def is_node(value: Any) -> bool:
    """Whether a value has children in a graph."""
    return kind_of(value).is_node


def is_open(parent: Any, key: Key, value: Any) -> bool:
    """Whether a child is looked into: static attributes of checked classes are not, whatever they hold."""
    if not is_node(value):
        return False
    return not (isinstance(parent, Pytree) and type(parent)._pytree__checked and not parent._pytree__nodes[str(key)])


def iter_graph(node: Any, /, *, graph: bool | None = None) -> Iterator[tuple[Path, Any]]:
    """Every node, Variable, leaf and static value of a graph with its path; children before their parent, each node
    once.

    The bookkeeping of a Pytree (``_pytree__nodes``, ``_pytree__state``) comes before its attributes.

    >>> import nnxkit as nnx
    >>> [path for path, value in nnx.iter_graph([1, [2]])]
    [(0,), (1, 0), (1,), ()]
    """
    if not is_graph_mode(graph):
        require_tree(node, "iter_graph")
    return _iter_graph(node, (), set(), opened=is_node(node))


def _iter_graph(value: Any, path: Path, seen: set[int], *, opened: bool) -> Iterator[tuple[Path, Any]]:
    children = children_of(value) if opened else []
    # Empty containers and None have no identity worth the name: Python shares them as it likes.
    if children or isinstance(value, Pytree | Variable):
        if id(value) in seen:
            return
        seen.add(id(value))
    if opened:
        if isinstance(value, Pytree):
            yield (*path, "_pytree__nodes"), value._pytree__nodes
            yield (*path, "_pytree__state"), value._pytree__state
        for key, child in children:
            yield from _iter_graph(child, (*path, key), seen, opened=is_node(child))
    yield path, value


def iter_children(node: Any, /, *, graph: bool | None = None) -> Iterator[tuple[Key, Any]]:
    """The graph objects (modules, Variables, ...) directly inside a node, with their keys; not plain containers.

    Raises:
        StateArgumentError: it is no node, but a Variable, an array or another value.
    """
    if not is_node(node):
        raise NOT_A_NODE.error(function="nnx.iter_children", value=describe(node))
    if not is_graph_mode(graph):
        require_tree(node, "iter_children")
    for key, child in children_of(node):
        if isinstance(child, Variable) or (isinstance(child, Pytree) and is_open(node, key, child)):
            yield key, child


def find_duplicates(node: Any, /, *, only: Any = ...) -> list[list[Path]]:
    """Groups of paths that lead to the same object: node, Variable, array or array reference.

    Args:
        node: any graph; cycles are duplicates, too.
        only: a filter for the objects to consider.

    >>> import nnxkit as nnx
    >>> v = nnx.Param(1)
    >>> nnx.find_duplicates({"a": v, "b": [v]})
    [[('a',), ('b', 0)]]
    """
    wanted = parse(only)
    paths: dict[int, list[Path]] = {}
    keep: list[Any] = []

    def visit(value: Any, path: Path, opened: bool) -> None:
        if isinstance(value, Pytree | Variable | jax.Ref | jax.Array | np.ndarray):
            known = paths.get(id(value))
            if known is not None:
                known.append(path)
                return
            paths[id(value)] = [path]
            keep.append(value)
        if opened:
            for key, child in children_of(value):
                visit(child, (*path, key), is_open(value, key, child))

    visit(node, (), is_node(node))
    return [
        group for value, group in zip(keep, paths.values(), strict=True) if len(group) > 1 and wanted(group[0], value)
    ]


def has_identity(path: Path, value: Any) -> bool:
    """Whether a value of a graph is an object that two references may share."""
    return isinstance(value, Pytree | Variable | jax.Ref)


def require_tree(node: Any, function: str) -> None:
    """Raise unless a graph, which ``nnx.<function>`` got, is a tree of JAX pytrees.

    Raises:
        GraphError: an object is referenced twice, or its class is not registered with JAX.
    """
    repeated = find_duplicates(node, only=has_identity)
    if repeated:
        first, second, *_ = repeated[0]
        cls = type(dict(iter_graph(node, graph=True))[first]).__name__
        raise rules.DUPLICATE_NODE.error(path=first, other_path=second, value="object", type=cls)
    for path, value in iter_graph(node, graph=True):
        if isinstance(value, Pytree) and not type(value)._pytree__checked:
            raise rules.TREE_MODE_OBJECT.error(cls=type(value).__name__, path=path, function=f"nnx.{function}")


def as_pure(tree: T) -> T:
    """The same tree with the values of Variables and array references in their place; no hooks run.

    >>> import nnxkit as nnx
    >>> nnx.as_pure([nnx.Param(1), 2])
    [1, 2]
    """
    pure: T = jax.tree.map(pure_value, tree, is_leaf=lambda leaf: isinstance(leaf, Variable))
    return pure


@deprecated("`nnx.pure` is deprecated: use `nnx.as_pure`")
def pure(tree: T) -> T:
    """Deprecated: use `nnx.as_pure`."""
    return as_pure(tree)
