"""How a Variable's ``out_sharding`` becomes a placement on a mesh: names of axes, rules that translate them, the mesh.

Invariants

- A name without a rule is the name of a mesh axis.
- Rules are those of the Variable (metadata ``sharding_rules``), and after them those of the innermost
  `logical_axis_rules` of this thread.
- A sharding or a layout in the place of names says everything itself.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
from jax.experimental.layout import Format

from nnx_rules.rules import modules as rules

AxisRules = Sequence[tuple[str, str | tuple[str, ...] | None]]
"""Names of logical axes, and the mesh axes that they stand for; ``None`` for an axis that is not sharded."""

partition_spec: Callable[..., jax.sharding.PartitionSpec] = jax.sharding.PartitionSpec
_with_sharding_constraint: Callable[..., Any] = jax.lax.with_sharding_constraint
_reshard: Callable[..., Any] = jax.sharding.reshard


class _Current(threading.local):
    def __init__(self) -> None:
        self.rules: AxisRules = ()


_current = _Current()


@contextlib.contextmanager
def logical_axis_rules(rules: AxisRules | None) -> Iterator[None]:
    """Translate names of axes while the block runs, in this thread.

    Args:
        rules: pairs of a name in ``out_sharding`` and the mesh axis or axes that it stands for; ``None`` for no rules.

    >>> import nnxkit as nnx
    >>> weight = nnx.Param(0.0, out_sharding=("embed", "mlp"), eager_sharding=False)
    >>> with nnx.logical_axis_rules([("embed", None), ("mlp", "model")]):
    ...     nnx.get_partition_spec(weight).get_raw_value()
    PartitionSpec(None, 'model')
    """
    before = _current.rules
    _current.rules = tuple(rules or ())
    try:
        yield
    finally:
        _current.rules = before


def axis_names(metadata: Mapping[str, Any]) -> Any:
    """What the metadata of a Variable say of its axes. A name alone is that of the first one, as for a PartitionSpec.

    >>> axis_names({"out_sharding": "data"})
    ('data',)
    """
    names = metadata.get("out_sharding")
    return (names,) if isinstance(names, str) else names


def spec_of(metadata: Mapping[str, Any]) -> jax.sharding.PartitionSpec | None:
    """The mesh axes that the metadata of a Variable names; ``None`` if it says nothing about sharding."""
    names = axis_names(metadata)
    if isinstance(names, Format):
        names = names.sharding
    if names is None:
        return None
    if isinstance(names, jax.sharding.Sharding):
        return names.spec if isinstance(names, jax.sharding.NamedSharding) else None
    axis_rules = (*(metadata.get("sharding_rules") or ()), *_current.rules)
    translated = dict(reversed(axis_rules))  # the first rule of a name counts
    return partition_spec(*[_translate(name, translated) for name in names])


def _translate(name: Any, translated: Mapping[str, Any]) -> Any:
    if isinstance(name, tuple):  # one axis of the array over several of the mesh
        parts: list[Any] = []
        for part in name:
            found = _translate(part, translated)
            parts += found if isinstance(found, tuple) else [] if found is None else [found]
        return tuple(parts) or None
    return translated.get(name, name)


def mesh_of(metadata: Mapping[str, Any]) -> Any:
    """The mesh of the metadata, else that of the context; ``None`` if there is none."""
    mesh = metadata.get("mesh")
    if mesh is None:
        mesh = jax.sharding.get_abstract_mesh()
        return None if mesh.empty else mesh
    return mesh


def context_mesh() -> Any:
    """The mesh of the context, which may be empty."""
    try:
        return jax.sharding.get_mesh()  # has devices, so that arrays can be placed by it
    except ValueError:  # in a trace, where there is only the shape of the mesh
        return jax.sharding.get_abstract_mesh()


def named_sharding(metadata: Mapping[str, Any], context: Any) -> jax.sharding.NamedSharding | None:
    """The sharding that metadata says; ``None`` if it says nothing, or there is no mesh.

    Args:
        metadata: that of a Variable.
        context: the mesh where the metadata names none.
    """
    spec, mesh = spec_of(metadata), metadata.get("mesh") or context
    return None if spec is None or mesh.empty else jax.sharding.NamedSharding(mesh, spec)


def place(cls: type, value: Any, metadata: Mapping[str, Any]) -> Any:
    """Place a new value of a Variable as its ``out_sharding`` says.

    Raises:
        VariableError: there is no mesh.
    """
    given = metadata.get("out_sharding")
    if isinstance(given, Format | jax.sharding.Sharding):
        return jax.device_put(value, given)
    spec, mesh = spec_of(metadata), mesh_of(metadata)
    if mesh is None:
        if not spec:  # names no axis, so there is nothing to look up
            return value
        raise rules.SHARDING_WITHOUT_MESH.error(cls=cls.__name__, sharding=spec)
    sharding = jax.sharding.NamedSharding(mesh, spec or partition_spec())
    # On explicit axes a sharding is part of the type: a constraint would only assert it there.
    explicit = jax.sharding.AxisType.Explicit in mesh.axis_types
    return _reshard(value, sharding) if explicit else _with_sharding_constraint(value, sharding)
