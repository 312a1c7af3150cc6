"""The leaves of a model as a checkpoint sees them: each one array, with a name, a shape, a dtype and a place.

Everything that reads or writes files works on these leaves and knows nothing of graphs. A leaf in a file is *physical*:
a random key is the integers that make it up, an array reference the array that it refers to, a Python number an
array without axes.

Invariants

- A model is written to once, after all values are there (`write`); so a checkpoint that cannot be read leaves it as
  it was.
- A value that arrives has the type, the dtype and the sharding that the leaf had. An array that was on no device in
  particular is not committed to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from nnx_rules.errors import format_path
from nnx_rules.filters import Any as AnyOf
from nnx_rules.records import Record
from nnx_rules.rules import checkpoints as rules
from nnxkit._graph import state as state_of
from nnxkit._graph import update
from nnxkit._sharding import spec_of
from nnxkit._state import map_state, to_flat_state
from nnxkit._state._order import Path
from nnxkit._variable import Variable
from nnxkit.checkpoints._names import Layout, Rename, entry_for

_NUMBERS = (bool, int, float, complex)


class Leaf(Record):
    """One leaf of a model, and where a checkpoint has it.

    Attributes:
        path: the path in the model.
        name: the name in the checkpoint, parts joined by dots.
        inner: what follows the name for the array inside of a Variable: ``"value"``, and more if it holds a tree.
        value: an array, a ``jax.ShapeDtypeStruct``, a Python number or a string.
        sharding: where an array is to be placed; ``None`` for nowhere in particular.
        layout: how the axes lie in the checkpoint, if they lie differently there.
    """

    path: Path
    name: str
    inner: str
    value: Any
    sharding: Any
    layout: Layout | None

    @property
    def is_key(self) -> bool:
        """Whether it is a random key with a type of its own."""
        return hasattr(self.value, "dtype") and bool(jnp.issubdtype(self.value.dtype, jax.dtypes.prng_key))

    @property
    def is_number(self) -> bool:
        """Whether it is a Python number, which has no dtype of its own."""
        return isinstance(self.value, _NUMBERS)

    @property
    def is_empty(self) -> bool:
        """Whether it is an array without elements, which no checkpoint has to hold."""
        return 0 in getattr(self.value, "shape", ())

    @property
    def is_placed(self) -> bool:
        """Whether the array of a checkpoint is that of the model, and only has to be placed on devices."""
        return self.sharding is not None and self.layout is None and not self.is_key

    @property
    def physical(self) -> tuple[tuple[int, ...] | None, Any]:
        """Shape and dtype in a checkpoint; ``None`` for what is neither array nor number."""
        if self.is_number:
            return (), np.dtype(type(self.value))
        if not hasattr(self.value, "shape"):
            return None, None
        value = jax.eval_shape(jax.random.key_data, self.value) if self.is_key else self.value
        shape = tuple(value.shape)
        return shape if self.layout is None else self.layout.file_shape(shape), np.dtype(value.dtype)

    def to_file(self) -> np.ndarray[Any, Any]:
        """The value as a file holds it."""
        value = jax.random.key_data(self.value) if self.is_key else self.value
        array = np.asarray(value)
        return array if self.layout is None else self.layout.to_file(array)

    def from_file(self, value: Any) -> Any:
        """A value that a checkpoint held, as the model has it: type, dtype, axes and place.

        Args:
            value: an array of the physical shape, or one that is placed already.
        """
        if self.is_number:
            return type(self.value)(value)
        if not hasattr(self.value, "dtype"):
            return value
        if isinstance(value, jax.Array):
            return value
        if self.is_key:
            keys = jax.random.wrap_key_data(jnp.asarray(value), impl=_key_type(self.value))
            return keys if self.sharding is None else jax.device_put(keys, self.sharding)
        array = np.asarray(value)
        if self.layout is not None:
            array = self.layout.to_model(array, self.value.shape)
        if isinstance(self.value, np.generic):
            return self.value.dtype.type(array)
        array = array.astype(self.value.dtype, copy=False)
        if isinstance(self.value, np.ndarray):
            return np.array(array)
        if self.sharding is None:
            return jnp.array(array)
        return jax.make_array_from_callback(array.shape, self.sharding, lambda index: np.array(array[index]))


def _key_type(keys: Any) -> Any:
    """The kind of random generator that keys, which may be abstract, are for."""
    found: list[Any] = []
    jax.eval_shape(lambda keys: found.append(jax.random.key_impl(keys)), keys)
    return found[0]


def saved_state(target: Any, filters: Sequence[Any]) -> Any:
    """The state of a model as it is saved: references are read, NumPy arrays copied, and what is empty left out.

    Raises:
        CheckpointArgumentError: a leaf has no value, or something that would not be saved looks as if it were.
    """
    state = selected_state(target, filters)
    for leaf in leaves_of(state):
        if isinstance(leaf.value, jax.core.Tracer | jax.ShapeDtypeStruct):
            raise rules.CHECKPOINT_ARGUMENT.error(
                problem=f"`{format_path(leaf.path)}` is abstract: it has a shape and no values",
                mend="save a model that is made, not one of `nnx.eval_shape`, and outside of transforms",
            )
    if isinstance(state, Variable):
        return _detach(state)
    return map_state(lambda _, leaf: _detach(leaf), state)


def selected_state(target: Any, filters: Sequence[Any]) -> Any:
    """The leaves of a model that one of the filters takes; all without filters.

    Raises:
        CheckpointArgumentError: without filters, a container holds something that is not state.
    """
    if filters:
        return state_of(target, AnyOf(*filters))
    _require_state(target, ())
    return state_of(target)


def _require_state(container: Any, path: Path) -> None:
    """Raise if a plain container has a number or a text: that is structure, and would be passed over in silence."""
    if type(container) not in (dict, list, tuple):
        return
    for key, item in container.items() if type(container) is dict else enumerate(container):
        if isinstance(item, (*_NUMBERS, str, np.generic)):
            raise rules.CHECKPOINT_ARGUMENT.error(
                problem=f"`{format_path((*path, key))}` is of type {type(item).__name__}, which is no state",
                mend="make it an array, `jnp.array(...)`, or leave it out; a `Manager` keeps the number of the step",
            )
        _require_state(item, (*path, key))


def leaves_of(state: Any, names: Sequence[Rename] = ()) -> list[Leaf]:
    """The leaves of a state, in its order."""
    leaves: list[Leaf] = []
    for path, leaf in _items(state):
        value, inner, metadata = leaf, "", {}
        if isinstance(leaf, Variable):
            value, inner, metadata = leaf.get_raw_value(), "value", leaf.get_metadata()
        name, layout = entry_for(".".join(map(str, path)), names)
        for keys, item in jax.tree_util.tree_flatten_with_path(value)[0]:
            below = [_key(key) for key in keys]
            item = item[...] if isinstance(item, jax.Ref) else item
            leaves.append(
                Leaf(
                    (*path, *below),
                    name,
                    ".".join(map(str, [*([inner] if inner else []), *below])),
                    item,
                    _sharding(item, metadata),
                    layout,
                )
            )
    return leaves


def write(target: Any, state: Any, values: Sequence[Any]) -> None:
    """Write values into a model, in the order of `leaves_of`; all or nothing."""
    rest = iter(values)

    def fill(_: Path, leaf: Any) -> Any:
        value = leaf.get_raw_value() if isinstance(leaf, Variable) else leaf
        return jax.tree.map(lambda _: next(rest), value)

    if isinstance(state, Variable):
        update(target, fill((), state))
    else:
        update(target, map_state(fill, state))


def _items(state: Any) -> Sequence[tuple[Path, Any]]:
    return [((), state)] if isinstance(state, Variable) else list(to_flat_state(state))


def _detach(leaf: Any) -> Any:
    """A leaf of a state that the program cannot change any more. Orbax refuses arrays without elements."""
    if isinstance(leaf, Variable):
        return leaf.from_metadata(_detach(leaf.get_raw_value()), leaf._var_metadata)
    if 0 in getattr(leaf, "shape", ()):
        return None
    if isinstance(leaf, np.ndarray | jax.Ref):
        return leaf[...].copy()
    return leaf if jax.tree_util.all_leaves([leaf]) else jax.tree.map(_detach, leaf)


def _key(key: Any) -> Any:
    """The plain key of an entry in a key path of JAX."""
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            return getattr(key, name)
    return str(key)


def _sharding(value: Any, metadata: Any) -> Any:
    """Where an array is placed. An abstract one that does not know it goes where the metadata says."""
    if isinstance(value, jax.core.Tracer):
        return None
    if isinstance(value, jax.Array):
        return value.sharding if value.committed else None
    if not isinstance(value, jax.ShapeDtypeStruct):
        return None
    if value.sharding is not None:
        return value.sharding
    spec, mesh = spec_of(metadata), metadata.get("mesh") or _context_mesh()
    return None if spec is None or mesh is None else jax.sharding.NamedSharding(mesh, spec)


def _context_mesh() -> Any:
    try:
        mesh = jax.sharding.get_mesh()
    except ValueError:
        return None
    return None if mesh.empty else mesh
