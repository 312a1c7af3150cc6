"""``nnx.prefix``: prefixes by filter as an object, for transforms that take no filters.

A transform without graph updates sees objects as JAX does, as pytrees, so its prefixes are pytrees too: an object of
the same structure, with an axis or a sharding where that has a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from nnxkit._graph._layouts import key_name
from nnxkit._graph._modes import is_graph_mode
from nnxkit._graph._plan import plan_of
from nnxkit._graph._program import program_of
from nnxkit._graph._traverse import require_tree
from nnxkit._state._order import Path
from nnxkit._transforms._inputs import BARE, VARIABLE, is_object, mark_of
from nnxkit._transforms._prefixes import FilterPrefix

Choose = Callable[[Path, Any], Any]


def prefix(node: Any, filter_map: Mapping[Any, Any] | FilterPrefix | Choose, /, *, graph: bool | None = None) -> Any:
    """A prefix for ``node``: the same structure with what filters assign in the place of values.

    It serves as ``in_axes``, ``in_shardings`` and the like of a transform without graph updates, and of ``jax.vmap``.

    Args:
        node: a graph object, or a container of such.
        filter_map: what is assigned to a leaf, by filter, the first one counting; or a function of its path and
            itself.
        graph: graph or tree mode; ``None`` for the one in force.

    Returns:
        copies of the objects, whose Variables hold what was assigned. A Variable that is in no object, and an array,
        become what was assigned to them.

    Raises:
        FilterError: no filter takes a leaf, or one can never match.
        GraphError: in tree mode, an object is reached twice.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> norm = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
    >>> axes = nnx.prefix(norm, {nnx.Param: 0, ...: None})
    >>> axes.scale.get_value(), axes.mean.get_value()
    (0, None)
    """
    if not is_graph_mode(graph):
        require_tree(node, "prefix")
    choose: Choose
    if isinstance(filter_map, FilterPrefix):
        choose = filter_map.map_prefix
    else:
        choose = FilterPrefix(filter_map).map_prefix if isinstance(filter_map, Mapping) else filter_map

    def assign(keys: tuple[Any, ...], leaf: Any) -> Any:
        path = tuple(key_name(key) for key in keys)
        if mark_of(leaf) in (BARE, VARIABLE):
            return choose(path, leaf)
        plan = plan_of(leaf)
        program = program_of(plan.graphdef)
        assigned = [choose((*path, *below), item) for below, item in zip(plan.paths, plan.leaves(), strict=True)]
        return program.build(assigned)[program.root]

    return jax.tree_util.tree_map_with_path(assign, node, is_leaf=is_object)
