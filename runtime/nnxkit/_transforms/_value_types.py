"""The types of values as branches and loops compare them: shapes and dtypes.

Invariants

- A value is an array, anything that JAX takes for one, or a pytree of these: what a Variable holds.
- Weak types are the same as others. JAX promotes them, and a step that does so is traced again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax


class ValueType(NamedTuple):
    """The type of a value: its structure as a pytree, shapes and dtypes."""

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]

    def __str__(self) -> str:
        texts = [f"{dtype}[{','.join(map(str, shape))}]" for dtype, shape in zip(self.dtypes, self.shapes, strict=True)]
        return str(self.treedef.unflatten(texts))


def type_of(value: Any) -> ValueType:
    """The type of a value."""
    leaves, treedef = jax.tree.flatten(value)
    types = list(map(_typeof, leaves))
    return ValueType(treedef, tuple(aval.shape for aval in types), tuple(aval.dtype for aval in types))


def can_become(value: Any, new: Any) -> bool:
    """Whether a step of a loop may turn a value into a new one: the types are the same, or JAX can promote the old."""
    before, after = type_of(value), type_of(new)
    if before == after:
        return True
    weak = all(_typeof(leaf).weak_type for leaf in jax.tree.leaves(value))
    return weak and (before.treedef, before.shapes) == (after.treedef, after.shapes)


def _typeof(leaf: Any) -> Any:
    return jax.typeof(leaf)
