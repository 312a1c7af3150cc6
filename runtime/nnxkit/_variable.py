"""``Variable``: a mutable box for one value, with metadata.

Invariants:

* the type of a Variable says what the value is for (``Param``, ``BatchStat``, ...), and filters select by it;
* values change only through ``set_value`` and what is built on it, after a trace check; the shape of a whole value
  is free to change;
* ``_var_metadata`` is replaced, never edited: the identity of the mapping says whether metadata changed, and
  mappings are shared. A change of metadata is a structural edit (``_epoch``), a change of the value is not;
* to JAX a Variable is a pytree with the one child ``value`` and its metadata as structure; unflattening runs no hooks.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import EllipsisType
from typing import Any, ClassVar, Generic, ParamSpec, Self, overload

import jax
import numpy as np
from jax.tree_util import GetAttrKey

from nnx_rules.attributes import DATA_KINDS, Kind
from nnx_rules.rules import modules as rules
from nnxkit._deprecation import deprecated
from nnxkit._epoch import touch
from nnxkit._facts import facts_of, register_kind
from nnxkit._repr import represent_variable
from nnxkit._sharding import axis_names, partition_spec, place
from nnxkit._trace import TraceState, mutation_error
from nnxkit._typevars import TypeVar
from nnxkit._variable_defaults import Defaults, current_defaults
from nnxkit._variable_ops import VariableOperators

A = TypeVar("A", default=Any)
P = ParamSpec("P")

Hook = Callable[["Variable[Any]", Any], Any]
"""``hook(variable, value) -> value``: ``on_get_value``, ``on_set_value``, ``on_create_value``."""

AxisHook = Callable[["Variable[Any]", int, "str | None"], None]
"""``hook(variable, axis_index, axis_name)``: ``on_add_axis``, ``on_remove_axis``."""

_MISSING: Any = dataclasses.MISSING
_ARRAY_LIKE = (jax.Array, np.ndarray, np.generic, bool, int, float, complex)
_HOOKS = ("on_set_value", "on_get_value", "on_create_value", "on_add_axis", "on_remove_axis")
_DEFAULTS: Mapping[str, bool] = Defaults()._asdict()
_RENAMED = {"sharding": "out_sharding", "sharding_names": "out_sharding"}


class Metadata(dict[str, Any]):
    """The metadata of a Variable: never edited once it is made, hence shared, and hashable by content if its values
    are.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other or dict.__eq__(self, other)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


@functools.cache
def _required_metadata(defaults: Defaults) -> Metadata:
    return Metadata(defaults._asdict())


@dataclasses.dataclass(frozen=True)
class VariableMetadata(Generic[A]):
    """A value on its way into a Variable, with hooks and metadata: what an initializer from ``with_metadata``
    returns.
    """

    raw_value: A
    on_set_value: tuple[Hook, ...] = ()
    on_get_value: tuple[Hook, ...] = ()
    on_create_value: tuple[Hook, ...] = ()
    on_add_axis: tuple[AxisHook, ...] = ()
    on_remove_axis: tuple[AxisHook, ...] = ()
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def as_metadata(self) -> dict[str, Any]:
        """Hooks that are there, and metadata, as one mapping."""
        return {**{name: hooks for name in _HOOKS if (hooks := getattr(self, name))}, **self.metadata}


def _renamed(metadata: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in metadata.items():
        new_name = _RENAMED.get(name, name)
        if new_name != name:
            warnings.warn(f"{name!r} is deprecated, use {new_name!r}", DeprecationWarning, stacklevel=4)
        result[new_name] = value
    return result


def _hooks(metadata: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    hooks = metadata.get(name, ())
    return hooks if isinstance(hooks, tuple) else (hooks,) if callable(hooks) else tuple(hooks)


def _names_like(names: Any, changed: Iterable[Any]) -> Any:
    """Changed names of axes, as the container that they were in."""
    return partition_spec(*changed) if isinstance(names, jax.sharding.PartitionSpec) else tuple(changed)


def _is_node(value: Any) -> bool:
    return facts_of(value).kind in DATA_KINDS


class Variable(VariableOperators[A], Generic[A]):
    """A mutable box for one value (an array, or any Python value) with metadata; the base class of ``Param`` and
    all other kinds.

    Metadata keywords become readable attributes. Hooks (``on_get_value`` and so on) are metadata, too. In
    expressions a Variable stands for its value.

    Args:
        value: the value, or the result of an initializer made by ``with_metadata``.
        hijax: accepted as metadata.
        ref: keep the value in a JAX array reference.
        eager_sharding: apply ``out_sharding`` when the Variable is created.
        **metadata: anything hashable.

    Raises:
        TraceContextError: the Variable is changed from another trace level than its own.
        VariableAttributeError: metadata is set or deleted like an attribute.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> w = nnx.Param(jnp.zeros(2), unit="m")
    >>> w[...] = jnp.ones(2)
    >>> w += 1
    >>> w
    Param( # 2 (8 B)
      value=Array([2., 2.], dtype=float32),
      unit='m'
    )
    """

    __slots__ = ("__weakref__", "_nnx_version", "_raw_value", "_trace_state", "_var_metadata")

    required_metadata: ClassVar[frozenset[str]] = frozenset(_DEFAULTS)

    _nnx_version: int
    _raw_value: Any
    _trace_state: TraceState
    _var_metadata: Metadata

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _register(cls)

    def __init__(
        self,
        value: A | VariableMetadata[A],
        *,
        hijax: bool | None = None,
        ref: bool | None = None,
        eager_sharding: bool | None = None,
        **metadata: Any,
    ) -> None:
        raw_value: Any = value
        if isinstance(value, VariableMetadata):
            raw_value = value.raw_value
            metadata = {**value.as_metadata(), **metadata}
        defaults = current_defaults()
        given = {"hijax": hijax, "ref": ref, "eager_sharding": eager_sharding}
        if metadata:  # of an initializer with metadata
            given = {name: metadata.get(name) if flag is None else flag for name, flag in given.items()}
        if changes := {name: bool(flag) for name, flag in given.items() if flag is not None}:
            defaults = defaults._replace(**changes)
        full = _required_metadata(defaults)
        if metadata:
            full = Metadata({**_renamed(metadata), **full})
        set_slot = object.__setattr__
        set_slot(self, "_nnx_version", 0)
        set_slot(self, "_trace_state", TraceState())
        set_slot(self, "_var_metadata", full)
        set_slot(self, "_raw_value", raw_value)
        if metadata:
            raw_value = self.create_value(raw_value)
            if full["eager_sharding"] and full.get("out_sharding") is not None:
                raw_value = place(type(self), raw_value, full)
        if full["ref"]:
            raw_value = to_ref(raw_value)
        set_slot(self, "_raw_value", raw_value)

    # Values

    def get_raw_value(self) -> Any:
        """The value as it is stored: no hooks, and the reference itself where the value lives in one."""
        return self._raw_value

    def set_raw_value(self, value: Any) -> None:
        """Store a value: no hooks. Raises ``TraceContextError``."""
        self._check_mutation()
        object.__setattr__(self, "_raw_value", value)

    def create_value(self, value: A) -> A:
        """What the ``on_create_value`` hooks make of ``value``."""
        for hook in _hooks(self._var_metadata, "on_create_value"):
            value = hook(self, value)
        return value

    @overload
    def get_value(self) -> A: ...
    @overload
    def get_value(self, *, index: Any) -> Any: ...
    def get_value(self, *, index: Any = _MISSING) -> Any:
        """The value after the ``on_get_value`` hooks, or the part of it at ``index``.

        A container comes as a structural copy: editing that does not write through.
        """
        value: Any = self._raw_value
        if not isinstance(value, jax.Array):
            value = value[...] if isinstance(value, jax.Ref) else _structural_copy(value)
        if "on_get_value" in self._var_metadata:
            for hook in _hooks(self._var_metadata, "on_get_value"):
                value = hook(self, value)
        return value if index is _MISSING else value[index]

    def set_value(self, value: Any, *, index: Any = _MISSING) -> None:
        """Replace the value after the ``on_set_value`` hooks, or the part of it at ``index``.

        Raises:
            TraceContextError: the Variable belongs to another trace level.
        """
        self._check_mutation()
        if index is not _MISSING:
            value = _with_item(self._raw_value, index, value)
        if "on_set_value" in self._var_metadata:
            for hook in _hooks(self._var_metadata, "on_set_value"):
                value = hook(self, value)
        if isinstance(self._raw_value, jax.Ref) and not isinstance(value, jax.Ref):
            self._raw_value[...] = value
        else:
            object.__setattr__(self, "_raw_value", value)

    @overload
    def __getitem__(self, key: EllipsisType) -> A: ...
    @overload
    def __getitem__(self: Variable[jax.Array], key: Any) -> jax.Array: ...
    @overload
    def __getitem__(self, key: Any) -> Any: ...
    def __getitem__(self, key: Any) -> Any:
        value: Any = self.get_value()
        return value if key is Ellipsis and isinstance(value, jax.Array) else value[key]

    def __setitem__(self, key: Any, item: Any) -> None:
        value = item.get_value() if isinstance(item, Variable) else item
        if key is Ellipsis and _same_aval(self._raw_value, value):
            self.set_value(value)
        else:
            self.set_value(value, index=key)

    def __delitem__(self, key: Any) -> None:
        value: Any = self.get_value()
        del value[key]
        self.set_value(value)

    @property
    @deprecated("'.value' is deprecated, use variable[...] or variable.get_value()")
    def value(self) -> Any:
        """Deprecated: use ``variable[...]`` for arrays, ``get_value()`` and ``set_value()`` for other values."""
        return self.get_value()

    @value.setter
    @deprecated("'.value' is deprecated, use variable[...] = x or variable.set_value(x)")
    def value(self, value: Any) -> None:
        self.set_value(value)

    @property
    @deprecated("'.raw_value' is deprecated, use variable.get_raw_value()")
    def raw_value(self) -> Any:
        """Deprecated: use ``get_raw_value()`` and ``set_raw_value()``."""
        return self._raw_value

    @raw_value.setter
    @deprecated("'.raw_value' is deprecated, use variable.set_raw_value(x)")
    def raw_value(self, value: Any) -> None:
        self.set_raw_value(value)

    def _check_mutation(self) -> None:
        # A reference is changed in place by JAX, which tracks that across traces.
        if not self._trace_state.is_valid() and not isinstance(self._raw_value, jax.Ref):
            raise mutation_error(type(self).__name__)

    # Metadata

    def get_metadata(
        self, name: str | None = None, default: Any = _MISSING, *, exclude_required: bool | None = None
    ) -> Any:
        """All metadata as a new dict, or the entry ``name``.

        Raises:
            KeyError: there is no such entry and no default.
        """
        if name is not None:
            return self._var_metadata[name] if default is _MISSING else self._var_metadata.get(name, default)
        if exclude_required:
            return {key: item for key, item in self._var_metadata.items() if key not in self.required_metadata}
        return dict(self._var_metadata)

    def set_metadata(self, *args: Any, **kwargs: Any) -> None:
        """Replace all metadata by a mapping, or set single entries: ``(name, value)`` or keywords.

        Raises:
            TraceContextError: the Variable belongs to another trace level.
            TypeError: other arguments.
        """
        if len(args) == 1 and not kwargs:
            metadata = {**_required_metadata(Defaults()), **dict(args[0])}
        elif len(args) == 2 and not kwargs:
            metadata = {**self._var_metadata, args[0]: args[1]}
        elif kwargs and not args:
            metadata = {**self._var_metadata, **kwargs}
        else:
            raise TypeError(f"set_metadata takes a mapping, a name and a value, or keywords, not {args} and {kwargs}")
        self._replace_metadata(metadata)

    def has_metadata(self, name: str) -> bool:
        """Whether there is an entry ``name``."""
        return name in self._var_metadata

    def del_metadata(self, name: str) -> None:
        """Remove the entry ``name``.

        Raises:
            VariableError: every Variable has this entry.
            KeyError: there is no such entry.
        """
        if name in self.required_metadata:
            raise rules.VARIABLE_REQUIRED_METADATA.error(cls=type(self).__name__, name=name)
        metadata = dict(self._var_metadata)
        del metadata[name]
        self._replace_metadata(metadata)

    def is_default(self, name: str, value: Any) -> bool:
        """Whether a metadata entry says only what holds for every Variable anyway."""
        return name in _DEFAULTS and value == _DEFAULTS[name]

    def _replace_metadata(self, metadata: Mapping[str, Any]) -> None:
        self._check_mutation()
        object.__setattr__(self, "_var_metadata", metadata if isinstance(metadata, Metadata) else Metadata(metadata))
        touch(self)

    def add_axis(self, axis_index: int, axis_name: str | None) -> None:
        """Note that a transform added an axis: insert its name into ``out_sharding`` and run the ``on_add_axis``
        hooks.
        """
        names = axis_names(self._var_metadata)
        if names is not None:
            padded = list(names) + [None] * max(0, axis_index - len(names))
            padded.insert(axis_index, axis_name)
            self.set_metadata(out_sharding=_names_like(names, padded))
        for hook in _hooks(self._var_metadata, "on_add_axis"):
            hook(self, axis_index, axis_name)

    def remove_axis(self, axis_index: int, axis_name: str | None) -> None:
        """Note that a transform removed an axis: the opposite of :meth:`add_axis`."""
        names = axis_names(self._var_metadata)
        if names is not None:
            kept = [name for place, name in enumerate(names) if place != axis_index]
            self.set_metadata(out_sharding=_names_like(names, kept))
        for hook in _hooks(self._var_metadata, "on_remove_axis"):
            hook(self, axis_index, axis_name)

    # Copies

    @classmethod
    def from_metadata(cls, value: Any, attributes: Mapping[str, Any]) -> Self:
        """A Variable with this raw value and metadata; no hooks run."""
        self = object.__new__(cls)
        metadata = attributes
        if not isinstance(metadata, Metadata):
            metadata = (
                Metadata({**_required_metadata(Defaults()), **attributes})
                if attributes
                else _required_metadata(Defaults())
            )
        set_slot = object.__setattr__
        set_slot(self, "_nnx_version", 0)
        set_slot(self, "_trace_state", TraceState())
        set_slot(self, "_var_metadata", metadata)
        set_slot(self, "_raw_value", value)
        return self

    def copy(self, value: Any = _MISSING, **updates: Any) -> Self:
        """A new Variable with the same value and metadata, except for what is given; no hooks run.

        The metadata ``ref``, where it is given, says whether the value is kept in an array reference from now on.
        """
        metadata: Mapping[str, Any] = self._var_metadata
        if value is _MISSING:
            value = self._raw_value
            if isinstance(value, jax.Ref):
                value = jax.new_ref(value[...])
        if updates:
            metadata = Metadata({**metadata, **_renamed(updates)})
            if "ref" in updates:
                value = to_ref(value) if updates["ref"] else to_array(value)
        return type(self).from_metadata(value, metadata)

    replace = copy
    to_state = copy
    """Kept for code written when States held another type."""

    def copy_from(self, other: Variable[Any]) -> None:
        """Take over value and metadata of another Variable of the same type.

        Raises:
            VariableError: ``other`` is of another type.
        """
        if type(other) is not type(self):
            raise rules.VARIABLE_TYPE_MISMATCH.error(
                cls=type(self).__name__, expected=type(self).__name__, given=type(other).__name__
            )
        if other is not self:
            self.update_from_state(other)

    def update_from_state(self, variable_state: Variable[Any]) -> None:
        """Take over raw value and metadata of a leaf of a State; metadata that the leaf lacks is removed."""
        self._check_mutation()
        object.__setattr__(self, "_raw_value", variable_state._raw_value)
        if (
            variable_state._var_metadata is not self._var_metadata
            and variable_state._var_metadata != self._var_metadata
        ):
            self._replace_metadata(variable_state._var_metadata)

    @property
    def type(self) -> type[Self]:
        """The class of the Variable."""
        return type(self)

    var_type = type

    # Attributes

    def __getattr__(self, name: str) -> Any:
        if (
            name.startswith("__") or name in Variable.__slots__
        ):  # asked by protocols, or before construction (copy, pickle)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        metadata = self._var_metadata
        if name in metadata:
            return metadata[name]
        if name == "sharding_names":
            message = "'.sharding_names' is deprecated, use variable.out_sharding"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return metadata.get("out_sharding")
        return getattr(self.get_value(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(getattr(type(self), name, None), "__set__"):
            raise rules.VARIABLE_METADATA_ATTRIBUTE.error(cls=type(self).__name__, name=name, action="set")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise rules.VARIABLE_METADATA_ATTRIBUTE.error(cls=type(self).__name__, name=name, action="deleted")

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._var_metadata, *dir(self.get_value())})

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # The empty copy is known before the value, which may lead back here.
        result = type(self).from_metadata(None, self._var_metadata)
        memo[id(self)] = result
        value = self._raw_value
        value = jax.new_ref(value[...]) if isinstance(value, jax.Ref) else copy.deepcopy(value, memo)
        object.__setattr__(result, "_raw_value", value)
        return result

    def __getstate__(self) -> Any:
        return self._raw_value, dict(self._var_metadata)

    def __setstate__(self, state: tuple[Any, dict[str, Any]]) -> None:
        set_slot = object.__setattr__
        set_slot(self, "_nnx_version", 0)
        set_slot(self, "_trace_state", TraceState())
        set_slot(self, "_var_metadata", Metadata(state[1]))
        set_slot(self, "_raw_value", state[0])

    def __repr__(self) -> str:
        return represent_variable(self)

    def __str__(self) -> str:
        return represent_variable(self)

    def __treescope_repr__(self, path: Any, subtree_renderer: Any) -> Any:
        from nnxkit._treescope import render_variable

        return render_variable(self, path, subtree_renderer)


def to_ref(value: Any) -> Any:
    """An array or a number in a new array reference; anything else as it is."""
    return jax.new_ref(value) if isinstance(value, _ARRAY_LIKE) else value


def to_array(value: Any) -> Any:
    """What an array reference holds; anything else as it is."""
    return value[...] if isinstance(value, jax.Ref) else value


def pure_value(leaf: Any) -> Any:
    """A leaf without boxes: what a Variable or an array reference holds; no hooks run."""
    return to_array(leaf._raw_value if isinstance(leaf, Variable) else leaf)


def _structural_copy(value: Any) -> Any:
    if facts_of(value).kind is not Kind.CONTAINER:
        return value
    return jax.tree.map(lambda leaf: leaf, value, is_leaf=lambda leaf: leaf is not value and _is_node(leaf))


def _same_aval(old: Any, new: Any) -> bool:
    """Whether ``new`` can take the place of ``old`` as it is: an array of the same shape, dtype and sharding."""
    if not (isinstance(old, jax.Array) and isinstance(new, jax.Array)):
        return False
    old_type, new_type = jax.typeof(old), jax.typeof(new)
    return bool(old_type.update(weak_type=False) == new_type.update(weak_type=False)) if old_type != new_type else True


def _with_item(value: Any, index: Any, item: Any) -> Any:
    """A copy of ``value`` with ``item`` at ``index``."""
    if isinstance(value, jax.Array):
        return value.at[index].set(item)
    if isinstance(value, jax.Ref):
        return value[...].at[index].set(item)
    value = value.copy() if isinstance(value, np.ndarray) else _structural_copy(value)
    value[index] = item
    return value


def _flatten(variable: Variable[Any]) -> tuple[tuple[Any], Metadata]:
    return (variable._raw_value,), variable._var_metadata


def _flatten_with_keys(variable: Variable[Any]) -> tuple[tuple[tuple[Any, Any]], Metadata]:
    return ((GetAttrKey("value"), variable._raw_value),), variable._var_metadata


def _unflatten(cls: type[Variable[Any]], metadata: Metadata, children: Any) -> Variable[Any]:
    (value,) = children
    return cls.from_metadata(value, metadata)


def _register(cls: type[Variable[Any]]) -> None:
    register_kind(cls, Kind.VARIABLE)
    jax.tree_util.register_pytree_with_keys(cls, _flatten_with_keys, functools.partial(_unflatten, cls), _flatten)


_register(Variable)


def with_metadata(
    initializer: Callable[P, A],
    on_set_value: Hook | tuple[Hook, ...] = (),
    on_get_value: Hook | tuple[Hook, ...] = (),
    on_create_value: Hook | tuple[Hook, ...] = (),
    on_add_axis: AxisHook | tuple[AxisHook, ...] = (),
    on_remove_axis: AxisHook | tuple[AxisHook, ...] = (),
    **metadata: Any,
) -> Callable[P, VariableMetadata[A]]:
    """An initializer whose result carries metadata and hooks into the Variable that is made of it.

    >>> import jax, nnxkit as nnx
    >>> init = nnx.with_metadata(nnx.initializers.zeros, unit="m")
    >>> nnx.Param(init(jax.random.key(0), (2,))).unit
    'm'
    """
    given = (on_set_value, on_get_value, on_create_value, on_add_axis, on_remove_axis)
    hooks: dict[str, Any] = {
        name: (hook,) if callable(hook) else tuple(hook) for name, hook in zip(_HOOKS, given, strict=True)
    }

    @functools.wraps(initializer)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> VariableMetadata[A]:
        return VariableMetadata(initializer(*args, **kwargs), **hooks, metadata=_renamed(metadata))

    return wrapper
