"""``Module``: a Pytree with methods for what models do beside computing: record intermediate values and switch
between modes.

Invariants: ``sow`` and ``perturb`` write one Variable attribute of the module, which ``nnx.pop`` takes out again;
inside ``nnx.capture`` they write only what that call asks for, and nothing of it stays behind (``_capture``).
``train``, ``eval`` and ``set_attributes`` set attributes that exist; a name that no module has is an error.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp

from nnx_rules.filters import to_predicate
from nnx_rules.rules import modules as rules
from nnxkit._capture import is_capturing, record_of
from nnxkit._deprecation import deprecated
from nnxkit._facts import describe
from nnxkit._graph import iter_children, iter_graph
from nnxkit._pytree import Pytree
from nnxkit._variable import Variable
from nnxkit._variable_names import variable_type_from_name
from nnxkit._variable_types import Perturbation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nnx_rules.errors import NNXError

A = TypeVar("A")
_Path = tuple[Any, ...]


def _append(values: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    return (*values, value)


def _empty() -> tuple[Any, ...]:
    return ()


def _type_of(variable_type: type[Variable[Any]] | str) -> type[Variable[Any]]:
    if isinstance(variable_type, str):
        return variable_type_from_name(variable_type, allow_register=True)
    return variable_type


class Module(Pytree):
    """Base class of models and layers.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> class Scale(nnx.Module):
    ...     def __init__(self):
    ...         self.factor = nnx.Param(jnp.array(2.0))
    ...     def __call__(self, x):
    ...         return self.factor * x
    >>> Scale()(3.0)
    Array(6., dtype=float32, weak_type=True)
    """

    def sow(
        self,
        variable_type: type[Variable[Any]] | str,
        name: str,
        value: Any,
        reduce_fn: Callable[[Any, Any], Any] = _append,
        init_fn: Callable[[], Any] = _empty,
        *,
        capture_noop: bool | None = None,
    ) -> bool:
        """Record ``value`` in the Variable ``name``: reduce it into the value that is there, or into ``init_fn()``.

        Inside ``nnx.capture`` only the types that it asks for are recorded; with ``capture_noop=True`` nothing is
        recorded outside of it. The type may be given by the name that it is registered under, such as
        ``"intermediates"``. Returns whether the value was recorded.

        Raises:
            SowError: the attribute exists and is no Variable of exactly this type.
            TraceContextError: the module belongs to another trace level.
        """
        cls = _type_of(variable_type)
        if is_capturing():
            record = record_of(self, cls)
            if record is None:
                return False
            values = record.get_value()
            values[name] = reduce_fn(values[name] if name in values else init_fn(), value)
            record.set_value(values)
            return True
        if capture_noop:
            return False
        variable = self._recorded(name, cls)
        if variable is None:
            setattr(self, name, cls(reduce_fn(init_fn(), value)))
        else:
            variable.set_value(reduce_fn(variable.get_value(), value))
        return True

    def perturb(
        self,
        name: str,
        value: Any,
        variable_type: type[Variable[Any]] | str = Perturbation,
        *,
        capture_noop: bool | None = None,
    ) -> Any:
        """Add the perturbation ``name`` to ``value``: zeros of its shape, made at the first call. Its gradient is
        that of ``value``.

        With ``capture_noop=True`` it is only added inside ``nnx.capture``. The type may be given by its name, as for
        ``sow``.

        Raises:
            SowError: the attribute exists and is no Variable of exactly this type.
            TraceContextError: the module belongs to another trace level.
        """
        cls = _type_of(variable_type)
        if is_capturing():
            record = record_of(self, cls)
            if record is None:
                return value
            values = record.get_value()
            if name not in values:
                values[name] = jax.tree.map(jnp.zeros_like, value)
                record.set_value(values)
            return jax.tree.map(jnp.add, value, values[name])
        if capture_noop:
            return value
        variable = self._recorded(name, cls)
        if variable is None:
            variable = cls(jax.tree.map(jnp.zeros_like, value))
            setattr(self, name, variable)
        return jax.tree.map(jnp.add, value, variable.get_value())

    def _recorded(self, name: str, variable_type: type[Variable[Any]]) -> Variable[Any] | None:
        present = vars(self).get(name)
        if present is None and not hasattr(self, name):
            return None
        if type(present) is not variable_type:
            raise rules.SOW_ON_ATTRIBUTE.error(
                cls=type(self).__name__, path=(name,), value=describe(present), variable=variable_type.__name__
            )
        return present

    def set_attributes(
        self, *filters: Any, raise_if_not_found: bool = True, graph: bool | None = None, **attributes: Any
    ) -> None:
        """Set attributes on this module and all below it that have them; with filters only on modules that one of
        them takes.

        Raises:
            UnknownAttributeError: no module has one of the attributes, and ``raise_if_not_found``.
        """
        selected = _selected(self, filters or (...,), graph)
        missing = set(attributes)
        for module in selected:
            for name, value in attributes.items():
                if _has_attribute(module, name):
                    setattr(module, name, value)
                    missing.discard(name)
        if missing and raise_if_not_found:
            raise unknown_attributes(self, [name for name in attributes if name in missing], map(vars, selected))

    def train(self, **attributes: Any) -> None:
        """Training mode: ``deterministic=False`` and ``use_running_average=False`` wherever they exist, and further
        attributes.

        Raises:
            UnknownAttributeError: no module has one of the further attributes.
        """
        self._set_mode(attributes, deterministic=False, use_running_average=False)

    def eval(self, **attributes: Any) -> None:
        """Evaluation mode: ``deterministic=True`` and ``use_running_average=True`` wherever they exist, and further
        attributes.

        Raises:
            UnknownAttributeError: no module has one of the further attributes.
        """
        self._set_mode(attributes, deterministic=True, use_running_average=True)

    def _set_mode(self, attributes: dict[str, Any], **mode: Any) -> None:
        for name in attributes.keys() & mode.keys():
            raise TypeError(f"{name!r} is set by the mode itself; use set_attributes({name}=...)")
        if attributes:
            self.set_attributes(**attributes)
        self.set_attributes(raise_if_not_found=False, **mode)

    @deprecated("'m.iter_modules()' is deprecated, use 'nnx.iter_modules(m)'")
    def iter_modules(self) -> Iterator[tuple[_Path, Module]]:
        """Deprecated: use ``nnx.iter_modules(module)``."""
        return iter_modules(self)

    @deprecated("'m.iter_children()' is deprecated, use 'nnx.iter_children(m)'")
    def iter_children(self) -> Iterator[tuple[Any, Any]]:
        """Deprecated: use ``nnx.iter_children(module)``."""
        return iter_children(self)


def _has_attribute(module: Pytree, name: str) -> bool:
    """Whether the object has the attribute, or its class has one by that name that is no method."""
    return name in vars(module) or not callable(getattr(type(module), name, len))


def unknown_attributes(node: Any, names: list[str], known: Any) -> NNXError:
    """The error for attributes that no module below ``node`` has, with the nearest name that one has."""
    present = sorted(set().union(*known))
    close = [near for name in names for near in difflib.get_close_matches(name, present, n=1)]
    mend = f"did you mean `{close[0]}`?" if close else "set an attribute that a module has"
    return rules.UNKNOWN_MODE_ATTRIBUTE.error(
        cls=type(node).__name__, names=", ".join(f"`{name}`" for name in names), quoted=names, mend=mend
    )


def first_from(*args: A | None, error_msg: str) -> A:
    """The first argument that is not ``None``: what a call says, else what the constructor said.

    Raises:
        ValueError: all are ``None``.
    """
    for arg in args:
        if arg is not None:
            return arg
    raise ValueError(error_msg)


def iter_modules(module: Any, /, *, graph: bool | None = None) -> Iterator[tuple[_Path, Module]]:
    """Path and module for every Module below and including ``module``, children before parents, each once.

    >>> import nnxkit as nnx
    >>> [path for path, _ in nnx.iter_modules(nnx.Dict(a=nnx.Module(), b=nnx.List([nnx.Module()])))]
    [('a',), ('b', 0), ('b',), ()]
    """
    for path, value in iter_graph(module, graph=graph):
        if isinstance(value, Module):
            yield path, value


def iter_module_children(node: Pytree, /, *, graph: bool | None = None) -> Iterator[tuple[Any, Module]]:
    """Key and module of every direct child that is a Module."""
    for key, value in iter_children(node, graph=graph):
        if isinstance(value, Module):
            yield key, value


def _selected(node: Any, filters: tuple[Any, ...], graph: bool | None) -> list[Module]:
    predicates = [to_predicate(literal) for literal in filters]
    modules = list(iter_modules(node, graph=graph))
    return [module for path, module in modules if any(predicate(path, module) for predicate in predicates)]
