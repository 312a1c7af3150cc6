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
POOLING: Final = "flax.linen.pooling"
"""Where flax defines functions that it gives out as those of ``flax.nnx``, too."""
_INSIDE: Final = {**{f"{package}.": package for package in PACKAGES}, f"{POOLING}.": PACKAGES[0]}
_PREFIXES: Final = tuple(_INSIDE)

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
    if not fullname.startswith(_PREFIXES):  # most names that mypy asks about
        return None
    return next(package for prefix, package in _INSIDE.items() if fullname.startswith(prefix))


def is_a(type: Type, names: Collection[str]) -> bool:
    """Whether a type is an instance of one of these classes of a library, or of an heir."""
    proper = get_proper_type(type)
    return isinstance(proper, Instance) and has_base(proper.type, names)


def has_base(info: TypeInfo, names: Collection[str]) -> bool:
    """Whether a class is one of these classes of a library, or an heir."""
    return any(base.name in names and base.fullname.startswith(_PREFIXES) for base in info.mro)


def anything() -> Type:
    """``Any``."""
    return AnyType(TypeOfAny.special_form)
