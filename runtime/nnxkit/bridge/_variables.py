"""Variables of NNX as variables of Linen, and back.

Linen sorts variables by collection (``params``, ``batch_stats``), NNX by type; the names of the types connect them.
Metadata are in a box around the value in Linen.

Invariants

- A Variable without metadata is a bare value in Linen; one with metadata is an `NNXMeta` there, or the box that it came
  from: the metadata ``linen_meta_type`` keep its class, and its fields are metadata, too.
- Keys in Linen are those of NNX: numbers where it has the index of a list. They are strings where Linen wrote a file
  and read it again, and then they stay so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from flax import struct  # noqa: TID253 - see the package
from flax.core import meta  # noqa: TID253

from nnxkit._sharding import partition_spec, spec_of
from nnxkit._state._order import Path
from nnxkit._variable import Variable
from nnxkit._variable_names import variable_name_from_type, variable_type_from_name

_BOX = "linen_meta_type"
_OF_FIELDS = {"names": "out_sharding", "rules": "sharding_rules"}
"""Fields of Linen's boxes that have another name in NNX."""

Collections = dict[str, dict[Any, Any]]
"""Collections of Linen: nested dictionaries."""

MISSING: Any = object()


class NNXMeta(struct.PyTreeNode, meta.AxisMetadata[Any]):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """A value with the type and the metadata of the Variable that it was, in a collection of Linen."""

    var_type: type[Variable[Any]] = struct.field(pytree_node=False)  # type: ignore[no-untyped-call]
    value: Any
    metadata: dict[str, Any] = struct.field(pytree_node=False)  # type: ignore[no-untyped-call]

    def unbox(self) -> Any:
        """The value."""
        return self.value

    def replace_boxed(self, val: Any) -> NNXMeta:
        """The same with another value."""
        changed: NNXMeta = self.replace(value=val)
        return changed

    def add_axis(self, index: int, params: Mapping[Any, Any]) -> NNXMeta:
        """The same for a value with one axis more."""
        return self._with_axes(index, params, "add_axis")

    def remove_axis(self, index: int, params: Mapping[Any, Any]) -> NNXMeta:
        """The same for a value with one axis less."""
        return self._with_axes(index, params, "remove_axis")

    def _with_axes(self, index: int, params: Mapping[Any, Any], change: str) -> NNXMeta:
        variable = self.to_nnx_variable()
        getattr(variable, change)(index, params.get(meta.PARTITION_NAME))
        changed: NNXMeta = self.replace(metadata=variable.get_metadata())
        return changed

    def get_partition_spec(self) -> Any:
        """The axes of the mesh that the metadata name."""
        return spec_of(self.metadata) or partition_spec()

    def to_nnx_variable(self) -> Variable[Any]:
        """The Variable."""
        return self.var_type.from_metadata(self.value, self.metadata)


def _fields(box: type) -> list[str]:
    """The fields of a box beside the value."""
    return [field.name for field in dataclasses.fields(box) if field.name != "value"]


def to_linen_var(variable: Variable[Any]) -> Any:
    """What a Variable is in a collection of Linen."""
    value, metadata = variable.get_raw_value(), variable.get_metadata(exclude_required=True)
    if not metadata:
        return value
    box = metadata.get(_BOX)
    if box is None:
        return NNXMeta(type(variable), value, variable.get_metadata())
    given = {_OF_FIELDS.get(name, name): name for name in _fields(box)}
    return box(value=value, **{name: metadata[key] for key, name in given.items() if key in metadata})


def to_nnx_var(collection: str, value: Any) -> Variable[Any]:
    """The Variable for a value, bare or boxed, of a collection of Linen."""
    if isinstance(value, NNXMeta):
        return value.to_nnx_variable()
    cls: Any = variable_type_from_name(collection, allow_register=True)
    metadata: dict[str, Any] = {}
    if isinstance(value, meta.AxisMetadata):
        metadata = {_OF_FIELDS.get(name, name): getattr(value, name) for name in _fields(type(value))}
        metadata[_BOX] = type(value)
    variable: Variable[Any] = cls.from_metadata(meta.unbox(value), {**metadata, **cls(0).get_metadata()})
    return variable


def collection_of(variable: Variable[Any]) -> str:
    """The collection of Linen that a Variable belongs to."""
    return variable_name_from_type(type(variable), allow_register=True)


def to_collections(leaves: Iterable[tuple[Path, str, Any]]) -> Collections:
    """Nested dictionaries by collection, from paths, collections and values."""
    collections: Collections = {}
    for path, collection, value in leaves:
        node = collections.setdefault(collection, {})
        for key in path[:-1]:
            node = node.setdefault(key, {})
        node[path[-1]] = value
    return collections


def find(collections: Mapping[Any, Any], path: Path) -> tuple[Path, Any]:
    """The keys that collections have for a path, the name of the collection first, and what lies there: `MISSING` if
    nothing does.
    """
    node: Any = collections
    keys: list[Any] = []
    for key in path:
        inside = node if isinstance(node, Mapping) else {}
        keys.append(str(key) if key not in inside and str(key) in inside else key)
        node = inside.get(keys[-1], MISSING)
    return tuple(keys), node


def leaves_of(collections: Mapping[str, Any]) -> Iterable[tuple[tuple[str, ...], str, Any]]:
    """Paths, collections and values, boxed or bare, of nested mappings by collection."""

    def walk(path: tuple[str, ...], collection: str, node: Any) -> Iterable[tuple[tuple[str, ...], str, Any]]:
        if not isinstance(node, Mapping):
            yield path, collection, node
            return
        for key, value in node.items():
            yield from walk((*path, key), collection, value)

    for collection, tree in collections.items():
        yield from walk((), collection, tree)
