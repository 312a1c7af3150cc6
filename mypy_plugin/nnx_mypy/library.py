"""The two libraries that the plugin knows: ``flax.nnx`` and ``nnxkit``.

They define the same names, each in modules of its own that move between versions. So a definition is known by its own
name and by lying in one of the packages, and a class is looked up where users import it from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from mypy.nodes import SymbolTableNode, TypeInfo
from mypy.types import AnyType, Instance, Type, TypeOfAny, get_proper_type

PACKAGES: Final = ("flax.nnx", "nnxkit")
_INSIDE: Final = tuple(f"{package}." for package in PACKAGES)

NODES: Final = frozenset({"Pytree", "Object"})
"""The bases of everything that has Variables as attributes."""
ARRAY: Final = "jax._src.basearray.Array"


class Library(NamedTuple):
    """One of the libraries, as the program that is checked sees it."""

    package: str
    lookup: Callable[[str], SymbolTableNode | None]

    def instance(self, name: str, arguments: Sequence[Type] = ()) -> Type:
        """An instance of a class, with ``Any`` for parameters that are not given; ``Any`` where there is no such
        class.
        """
        found = self.lookup(f"{self.package}.{name}")
        if found is None or not isinstance(found.node, TypeInfo):
            return anything()
        count = len(found.node.defn.type_vars)
        return Instance(found.node, [*arguments[:count], *[anything()] * (count - len(arguments))])


def package_of(fullname: str) -> str | None:
    """The library that something is defined in."""
    if not fullname.startswith(_INSIDE):  # most names that mypy asks about
        return None
    return next(each for each in PACKAGES if fullname.startswith(f"{each}."))


def is_a(type: Type, names: Collection[str]) -> bool:
    """Whether a type is an instance of one of these classes of a library, or of an heir."""
    proper = get_proper_type(type)
    return isinstance(proper, Instance) and has_base(proper.type, names)


def has_base(info: TypeInfo, names: Collection[str]) -> bool:
    """Whether a class is one of these classes of a library, or an heir."""
    return any(base.name in names and base.fullname.startswith(_INSIDE) for base in info.mro)


def anything() -> Type:
    """``Any``."""
    return AnyType(TypeOfAny.special_form)
