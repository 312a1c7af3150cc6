"""Sharding: from the axis names in the metadata of Variables to specs, shardings, and models without arrays.

Source of the programming model: GSPMD, Xu et al., 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax

from nnxkit._deprecation import deprecated
from nnxkit._graph import GraphDef, merge, split
from nnxkit._pytree import Pytree
from nnxkit._sharding import context_mesh, named_sharding, partition_spec, spec_of
from nnxkit._sharding import logical_axis_rules as logical_axis_rules
from nnxkit._state import State
from nnxkit._transforms import PARTITION_NAME as PARTITION_NAME
from nnxkit._transforms import eval_shape
from nnxkit._variable import Variable, with_metadata

A = TypeVar("A")
F = TypeVar("F", bound=Callable[..., Any])


def with_partitioning(
    initializer: F, sharding: tuple[str | tuple[str, ...] | None, ...], mesh: Any = None, **metadata: Any
) -> F:
    """An initializer whose values know how they are sharded; ``Param`` takes it over as metadata.

    Args:
        initializer: the initializer.
        sharding: for each axis the name of a mesh axis, or of a logical one, or ``None``.
        mesh: the mesh, if it is not that of the context.
        **metadata: further metadata, such as ``sharding_rules``.

    >>> import nnxkit as nnx
    >>> init = nnx.with_partitioning(nnx.initializers.ones, (None, "model"), eager_sharding=False)
    >>> nnx.Linear(2, 4, kernel_init=init, rngs=nnx.Rngs(0)).kernel.out_sharding
    (None, 'model')
    """
    wrapped: Any = with_metadata(initializer, out_sharding=sharding, mesh=mesh, **metadata)
    return wrapped  # type: ignore[no-any-return]


def get_partition_spec(tree: A) -> A:
    """The tree with a ``PartitionSpec`` in the place of each array; an empty one where nothing is said, and ``None``
    for what is no array.

    Args:
        tree: a State, a module, or any pytree of these.
    """
    return _map_leaves(_spec, tree)


def get_named_sharding(tree: A, mesh: jax.sharding.Mesh) -> A:
    """The tree with a ``NamedSharding`` on a mesh in the place of each array; ``None`` for what is no array.

    Args:
        tree: a State, a module, or any pytree of these.
        mesh: the mesh.

    Raises:
        ValueError: a name is no axis of the mesh.
    """

    def named(metadata: Mapping[str, Any], value: Any) -> jax.sharding.NamedSharding | None:
        spec = _spec(metadata, value)
        return None if spec is None else jax.sharding.NamedSharding(mesh, spec)

    return _map_leaves(named, tree)


def _spec(metadata: Mapping[str, Any], value: Any) -> jax.sharding.PartitionSpec | None:
    """What metadata says of an array."""
    return spec_of(metadata) or partition_spec() if hasattr(value, "shape") else None


def as_abstract(tree: A, graph: bool | None = None) -> A:
    """The tree with a ``jax.ShapeDtypeStruct`` in the place of each array, which has the sharding that the array has.

    Where that has none, as after ``nnx.eval_shape``, it is the one that the metadata says, on the mesh of the metadata
    or of the context.

    Args:
        tree: a State, a module, or any pytree of these.
        graph: graph or tree mode for looking at it; ``None`` for the configured one.
    """
    mesh = context_mesh()
    return _map_leaves(
        lambda metadata, value: _struct(value, getattr(value, "sharding", None) or named_sharding(metadata, mesh)),
        tree,
        graph,
    )


@deprecated("`nnx.abstract_with_sharding` is deprecated: use `nnx.as_abstract`")
def abstract_with_sharding(tree: A, graph: bool | None = None) -> A:
    """Deprecated: use `as_abstract`. The tree with a ``jax.ShapeDtypeStruct`` in the place of each array, sharded as
    its metadata says.

    A value without metadata keeps the sharding that it has. The mesh is that of the metadata, or of the context.

    Args:
        tree: a State, a module, or any pytree of these.
        graph: graph or tree mode for looking at it; ``None`` for the configured one.
    """
    mesh = context_mesh()
    return _map_leaves(
        lambda metadata, value: _struct(value, named_sharding(metadata, mesh) or getattr(value, "sharding", None)),
        tree,
        graph,
    )


def get_abstract_model(
    init_fn: Callable[[], Any], mesh: jax.sharding.Mesh, *, graph: bool | None = None
) -> tuple[GraphDef[Any], State]:
    """The structure of a model, and its state as shapes with shardings; no array is made.

    Args:
        init_fn: makes the model.
        mesh: the mesh.
        graph: graph or tree mode for looking at the model; ``None`` for the configured one.

    Returns:
        the GraphDef, and a State with a ``jax.ShapeDtypeStruct`` in the place of each array. To restore a checkpoint
        into, or to give to ``jax.jit`` as ``out_shardings`` of an initialisation.
    """
    with jax.set_mesh(mesh):
        graphdef, state = split(eval_shape(init_fn, graph=graph), graph=graph)
    shardings = get_named_sharding(state, mesh)
    return graphdef, jax.tree.map(_struct, state, shardings)


def _struct(value: Any, sharding: Any) -> Any:
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return value
    return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=sharding)  # type: ignore[no-untyped-call]


def _map_leaves(f: Callable[[Any, Any], Any], tree: A, graph: bool | None = None) -> A:
    """The tree with ``f(metadata, value)`` in the place of each value. Graphs keep their shared references."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, Pytree):
            graphdef, state = split(leaf, graph=graph)
            return merge(graphdef, _map_leaves(f, state))
        if isinstance(leaf, Variable):
            return leaf.from_metadata(f(leaf.get_metadata(), leaf.get_raw_value()), leaf._var_metadata)
        return f({}, leaf)

    mapped: A = jax.tree.map(change, tree, is_leaf=lambda leaf: isinstance(leaf, Pytree | Variable))
    return mapped
