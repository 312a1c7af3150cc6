"""Packing: a pytree with graph objects as a list of values and a static description, and back.

Derivatives leave JAX as lists of values. What a function returned, what it kept for its backward pass, and the tangents
of both are packed for the way through JAX, and unpacked for the user.

Invariants

- A packing refers to no object and no array.
- Values are those of the joint graph of the pytree's objects, then its bare leaves, as for inputs (``_inputs``).
- What was one object before is one object after unpacking.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from nnx_rules.records import Record
from nnxkit._graph._graphdef import GraphDef
from nnxkit._graph._program import program_of
from nnxkit._state._order import Path
from nnxkit._transforms._inputs import BARE, PYTREE, VARIABLE, Inputs, argument_names, split_path, unflatten
from nnxkit._transforms._joint import Root


@jax.tree_util.register_static
class Packing(Record):
    """The structure of a pytree with graph objects.

    Attributes:
        treedef: the pytree with graph objects as leaves, as a call's only argument.
        marks: what each leaf is.
        graphdef: the joint graph of the objects.
        paths: the paths of its leaves.
        pytrees: how many of the objects are Pytrees.
    """

    treedef: Any
    marks: tuple[int, ...]
    graphdef: GraphDef[Any]
    paths: tuple[Path, ...]
    pytrees: int

    def unpack(self, values: Sequence[Any]) -> Any:
        """The pytree over these values."""
        program = program_of(self.graphdef)
        built = program.build(values[: len(self.paths)])
        root = Root.from_node(built[program.root], self.pytrees)
        bare = values[len(self.paths) :]
        tree, _ = unflatten(self.treedef, self.marks, root.pytrees, root.variables, bare)
        return tree

    def is_like(self, other: Packing) -> bool:
        """Whether the other has values at the same places; metadata and static values may differ."""
        return (self.treedef, self.marks, self.paths) == (other.treedef, other.marks, other.paths)

    def names(self, root: str) -> list[Path]:
        """What the values are called, where the pytree is called ``root``."""
        leaves = [(root, *name[1:]) for name in argument_names(self.treedef.unflatten(range(len(self.marks))))]
        pytrees, variables, bare = (
            [number for number, own in enumerate(self.marks) if own == mark] for mark in (PYTREE, VARIABLE, BARE)
        )
        split = [split_path(path, pytrees, variables) for path in self.paths]
        return [*((*leaves[number], *below) for number, below in split), *(leaves[number] for number in bare)]


def pack(tree: Any) -> tuple[Packing, list[Any]]:
    """A pytree as a packing and values."""
    inputs = Inputs((tree, {}))
    structure = inputs.structure
    packing = Packing(inputs.treedef, inputs.marks, structure.graphdef, structure.paths, structure.pytrees)
    return packing, inputs.values()


def tangent_type(value: Any) -> Any:
    """The type of the tangents of a value, as ``jax.ShapeDtypeStruct``. Those of integers and keys have no content."""

    def of_leaf(leaf: Any) -> jax.ShapeDtypeStruct:
        aval = jax.typeof(leaf)
        inexact = jnp.issubdtype(aval.dtype, jnp.inexact)
        dtype = aval.dtype if inexact else jax.dtypes.float0
        return jax.ShapeDtypeStruct(aval.shape, dtype)  # type: ignore[no-untyped-call]

    return jax.tree.map(of_leaf, value)


def is_of_type(given: Any, expected: Any) -> bool:
    """Whether a tangent has a type that `tangent_type` returned."""
    structure: Any = jax.tree.structure(expected)
    leaves, types = jax.tree.leaves(given), jax.tree.leaves(expected)
    return bool(jax.tree.structure(given) == structure) and all(
        (jax.typeof(leaf).shape, jax.typeof(leaf).dtype) == (type_.shape, type_.dtype)
        for leaf, type_ in zip(leaves, types, strict=True)
    )
