"""Names of Variable types: ``"params"`` for ``Param``, ``"batch_stats"`` for ``BatchStat``, ... as collections of
other libraries call them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, overload

from nnx_rules.rules import modules as rules
from nnxkit._variable import Variable
from nnxkit._variable_types import BatchStat, Cache, Intermediate, Param, Perturbation

VariableType = TypeVar("VariableType", bound=type[Variable[Any]])
_MISSING: Any = dataclasses.MISSING

VariableTypeCache: dict[str, type[Variable[Any]]] = {}
"""The registered names."""


@overload
def register_variable_name(name: str, typ: VariableType, *, overwrite: bool = False) -> VariableType: ...
@overload
def register_variable_name(name: str, *, overwrite: bool = False) -> Callable[[VariableType], VariableType]: ...
def register_variable_name(name: str, typ: Any = _MISSING, *, overwrite: bool = False) -> Any:
    """Register a Variable type under a name; without ``typ`` a class decorator.

    Raises:
        VariableError: the name is taken and ``overwrite`` is false.
    """
    if typ is _MISSING:
        return lambda cls: register_variable_name(name, cls, overwrite=overwrite)
    taken = VariableTypeCache.get(name)
    if taken is not None and not overwrite:
        problem = f"the name {name!r} is registered for `{taken.__name__}`"
        raise rules.VARIABLE_NAME_TAKEN.error(problem=problem, mend="pass `overwrite=True`")
    VariableTypeCache[name] = typ
    return typ


def variable_type_from_name(
    name: str, /, *, base: type[Variable[Any]] = Variable, allow_register: bool = False
) -> type[Variable[Any]]:
    """The type that is registered under ``name``; with ``allow_register`` a new subclass of ``base`` where there is
    none.

    Raises:
        VariableError: nothing is registered under ``name``.
    """
    if name not in VariableTypeCache:
        if not allow_register:
            problem = f"no Variable type is registered as {name!r}"
            raise rules.VARIABLE_NAME_TAKEN.error(
                problem=problem, mend="call `nnx.register_variable_name`, or pass `allow_register=True`"
            )
        register_variable_name(name, type(name, (base,), {"__slots__": ()}))
    return VariableTypeCache[name]


def variable_name_from_type(typ: type[Variable[Any]], /, *, allow_register: bool = False) -> str:
    """The name of a Variable type; with ``allow_register`` a new one, that of the class, where there is none.

    A subclass has a name of its own: to be told apart is what it is for.

    Raises:
        VariableError: the type is not registered.
    """
    for name, registered in VariableTypeCache.items():
        if registered is typ:
            return name
    if not allow_register:
        problem = f"the Variable type `{typ.__name__}` is not registered"
        raise rules.VARIABLE_NAME_TAKEN.error(
            problem=problem, mend="call `nnx.register_variable_name`, or pass `allow_register=True`"
        )
    register_variable_name(typ.__name__, typ)
    return typ.__name__


for _name, _type in {
    "params": Param,
    "batch_stats": BatchStat,
    "cache": Cache,
    "intermediates": Intermediate,
    "perturbations": Perturbation,
}.items():
    register_variable_name(_name, _type)
