"""Classes, of the library and of the project, with one interface.

Invariants: a class is *open* when one of its bases is not resolved; nothing negative may be concluded from an open
class ("is no Pytree"). Library classes are interned by canonical name, so identity is equality.
"""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from nnx_rules import api
from nnx_rules.attributes import Declaration, Status, is_checked

if TYPE_CHECKING:
    from nnx_lint.model.callables import FuncVal
    from nnx_lint.model.modules import Env, Module
    from nnx_lint.model.values import (
        Obj,
        Value,
    )


class ClassBase:
    """What library and project classes have in common."""

    name: str
    bases: tuple[ClassBase, ...]
    unresolved_base: bool = False
    registered_data: bool = False
    registered_container: bool = False
    named_tuple: bool = False

    @functools.cached_property
    def ancestors(self) -> tuple[ClassBase, ...]:
        """The class and all its bases, nearest first (depth first, duplicates at their last place, as in the MRO of
        simple hierarchies).
        """
        order: list[ClassBase] = [self]
        for base in self.bases:
            for item in base.ancestors:
                if item in order:
                    order.remove(item)
                order.append(item)
        return tuple(order)

    def derives_from(self, name: str) -> bool:
        """Whether a library class of this canonical name is among the ancestors."""
        return any(isinstance(item, LibClass) and item.canonical == name for item in self.ancestors)

    @functools.cached_property
    def is_variable(self) -> bool:
        return self.derives_from("nnx.Variable")

    @functools.cached_property
    def is_pytree(self) -> bool:
        """Whether instances are NNX objects (``nnx.Pytree``, ``Object``, ``Module`` and below)."""
        return self.derives_from("nnx.Pytree")

    @functools.cached_property
    def is_open(self) -> bool:
        return any(item.unresolved_base for item in self.ancestors)

    @functools.cached_property
    def library(self) -> LibClass | None:
        """The nearest library class among the ancestors."""
        return next((item for item in self.ancestors if isinstance(item, LibClass)), None)

    @functools.cached_property
    def tracked(self) -> bool:
        """Whether instances refuse to be changed from another trace level."""
        return self.is_variable or self.is_pytree


def is_subtype(left: ClassBase, right: ClassBase) -> bool:
    """Whether every instance of ``left`` is one of ``right``."""
    return right in left.ancestors


class LibClass(ClassBase):
    """A class of the library, by canonical name."""

    def __init__(self, canonical: str, bases: tuple[ClassBase, ...], spec: api.LibraryClass | None) -> None:
        self.canonical = canonical
        self.name = canonical.rpartition(".")[2]
        self.bases = bases
        self.spec = spec

    def __repr__(self) -> str:
        return self.canonical


@functools.cache
def library_class(canonical: str) -> LibClass | None:
    """The library class with this canonical name, or ``None`` if the name is no class that we know."""
    canonical = api.TOP_LEVEL_ALIASES.get(canonical, canonical)
    if canonical in api.VARIABLES:
        base = api.VARIABLES[canonical]
        parents = (library_class(base),) if base else ()
        return LibClass(canonical, tuple(item for item in parents if item), None)
    spec = api.CLASSES.get(canonical)
    if spec is None:
        return None
    parent = library_class(spec.base) if spec.base else None
    return LibClass(canonical, (parent,) if parent else (), spec)


class Field:
    """A dataclass field, or an annotation in a class body."""

    __slots__ = ("annotation", "has_default", "keyword_only", "name", "node", "value")

    def __init__(self, name: str, annotation: ast.expr, node: ast.AnnAssign, value: Value | None) -> None:
        self.name = name
        self.annotation = annotation
        self.node = node
        self.value = value
        self.has_default = value is not None
        self.keyword_only = False


class UserClass(ClassBase):
    """A class that the project defines.

    ``methods`` are the functions of its body, ``attributes`` its other class-level values, ``fields`` its annotated
    names, ``declared`` the statuses that the body and the bases give to attributes, ``decorators`` the canonical
    names of its decorators where they resolve.
    """

    def __init__(
        self, node: ast.ClassDef, module: Module, bases: tuple[ClassBase, ...], unresolved: bool, env: Env
    ) -> None:
        self.name = node.name
        self.node = node
        self.module = module
        self.bases = bases
        self.unresolved_base = unresolved
        self.env = env
        for ancestor in self.ancestors[1:]:
            if isinstance(ancestor, UserClass):
                ancestor.subclasses.append(self)
        self.methods: dict[str, Value] = {}
        self.attributes: dict[str, tuple[Value, ast.AST]] = {}
        self.fields: dict[str, Field] = {}
        self.declared: dict[str, Status] = {}
        self.conflicts: tuple[tuple[str, Status, Declaration], ...] = ()
        self.decorators: dict[str, ast.expr] = {}
        self.unknown_decorators = False
        self.pytree_keyword: bool | None = None
        self.dynamic = False
        self.subclasses: list[UserClass] = []
        self.model: Obj | None = None
        self.modelling = False

    def __repr__(self) -> str:
        return f"{self.module.name}.{self.name}"

    @functools.cached_property
    def checked(self) -> bool:
        """Whether the attributes of instances are checked for data/static."""
        if not self.is_pytree or self.opaque:
            return False
        return is_checked(self.pytree_keyword, default=not self.derives_from("nnx.Object"))

    @functools.cached_property
    def opaque(self) -> bool:
        """Whether attributes do not work as usual: ``__setattr__`` overridden, a metaclass, class built dynamically."""
        return any(
            isinstance(item, UserClass) and (item.dynamic or "__setattr__" in item.methods) for item in self.ancestors
        )

    def find(self, name: str) -> tuple[ClassBase, Value] | None:
        """The method ``name`` with the class that defines it, looked up over the ancestors of the project."""
        for item in self.ancestors:
            if isinstance(item, UserClass) and name in item.methods:
                return item, item.methods[name]
        return None

    def class_attribute(self, name: str) -> Value | None:
        """The class-level value ``name``, looked up over the ancestors of the project."""
        for item in self.ancestors:
            if isinstance(item, UserClass) and name in item.attributes:
                return item.attributes[name][0]
        return None

    def declared_status(self, name: str) -> Status | None:
        """The status that a class body gives to the attribute."""
        for item in self.ancestors:
            if isinstance(item, UserClass) and name in item.declared:
                return item.declared[name]
        return None

    @functools.cached_property
    def is_dataclass(self) -> bool:
        """Whether a dataclass decorator makes its ``__init__``."""
        return any(
            isinstance(item, UserClass) and not item.decorators.keys().isdisjoint(DATACLASS_DECORATORS)
            for item in self.ancestors
        )

    @property
    def own_dataclass(self) -> bool:
        return not self.decorators.keys().isdisjoint(DATACLASS_DECORATORS)

    def all_fields(self) -> list[Field]:
        """The dataclass fields, bases first."""
        fields: dict[str, Field] = {}
        for item in reversed(self.ancestors):
            if isinstance(item, UserClass) and (item.own_dataclass or item.named_tuple):
                fields.update(item.fields)
        return list(fields.values())


DATACLASS_DECORATORS = frozenset({"nnx.dataclass", "dataclasses.dataclass"})


def method_of(cls: ClassBase, name: str) -> tuple[ClassBase, FuncVal] | None:
    """A plain method of a project class, found over its ancestors."""
    from nnx_lint.model.callables import FuncVal

    found = cls.find(name) if isinstance(cls, UserClass) else None
    if found is not None and isinstance(found[1], FuncVal):
        return found[0], found[1]
    return None
