"""Classes, of the library and of the project, with one interface.

Invariants: a class is *open* when one of its bases is not resolved; nothing negative may be concluded from an open
class ("is no Pytree"). Library classes are interned by canonical name, so identity is equality.
"""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from nnx_lint.model import heap
from nnx_rules import api
from nnx_rules.attributes import Declaration, Status, is_checked

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from nnx_lint.model.callables import FuncVal
    from nnx_lint.model.fields import Field
    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.model.modules import Env, Module
    from nnx_lint.model.sized import Sized
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
        """The class and all its bases in the order in which Python looks through them."""
        lines = [list(base.ancestors) for base in self.bases]
        return (self, *_linearized([*lines, list(self.bases)]))

    def parts_of(self, args: Mapping[str, Value]) -> list[Value] | None:
        """What JAX takes an instance apart into that was made with these arguments, if the class tells."""
        return list(args.values()) if self.named_tuple else None

    @functools.cached_property
    def lineage(self) -> tuple[UserClass, ...]:
        """The class and its bases as far as the project defines them, in the order of the ancestors."""
        return tuple(item for item in self.ancestors if isinstance(item, UserClass))

    @property
    def remade(self) -> bool:
        """Whether something that is not known had its hands on the class: what an instance is to JAX is not known."""
        return False

    @property
    def may_be_extended(self) -> bool:
        """Whether what an annotation calls an instance may be one of a class that has other bases too."""
        return False

    def all_fields(self) -> list[Field]:
        """The fields of a dataclass or a named tuple, bases first."""
        return []

    def derives_from(self, name: str) -> bool:
        """Whether a library class of this canonical name is among the ancestors."""
        return name in self._library_names

    @functools.cached_property
    def _library_names(self) -> frozenset[str]:
        return frozenset(item.canonical for item in self.ancestors if isinstance(item, LibClass))

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

    @property
    def made_as(self) -> LibClass | None:
        """The library class whose constructor gets what a call of this class is given, unchanged."""
        return None

    @property
    def called_as(self) -> LibClass | None:
        """The library class whose ``__call__`` runs when an instance is called."""
        return None

    @property
    def works_as(self) -> LibClass | None:
        """The library class that instances are made and called as: they are its layers, by another name."""
        library = self.called_as
        return library if library is not None and library is self.made_as else None

    @functools.cached_property
    def tracked(self) -> bool:
        """Whether instances refuse to be changed from another trace level."""
        return self.is_variable or self.is_pytree


def _linearized(lines: list[list[ClassBase]]) -> list[ClassBase]:
    """Merge the orders of the bases so that each is kept (C3); where Python finds none, the first line goes first."""
    order: list[ClassBase] = []
    while lines := [line for line in lines if line]:
        heads = (line[0] for line in lines)
        head = next((item for item in heads if not any(item in line[1:] for line in lines)), lines[0][0])
        order.append(head)
        lines = [[item for item in line if item is not head] for line in lines]
    return order


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

    @property
    def made_as(self) -> LibClass | None:
        return self

    @property
    def called_as(self) -> LibClass | None:
        return self


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


class UserClass(ClassBase):
    """A class that the project defines.

    ``methods`` are the functions of its body, ``attributes`` its other class-level values, ``fields`` its annotated
    names, ``declared`` the statuses that the body and the bases give to attributes, ``decorators`` the canonical
    names of its decorators where they resolve, ``preset`` the options of those that got them elsewhere, as a partial
    that has a name. ``made_dataclass`` says that a call has made it a dataclass, or a base
    that does so with all classes below it (``made_by_base``); ``replaced_init`` that something unknown was put in the
    place of its constructor; ``structural`` that it is a protocol, which others satisfy without being below it;
    ``foreign`` is the class of another library that it is below, if that is one of which methods are known, ``record``
    what of another library makes a record of it.
    """

    def __init__(
        self, node: ast.ClassDef, module: Module, bases: tuple[ClassBase, ...], unresolved: bool, env: Env
    ) -> None:
        self.born = heap.current
        self.name = node.name
        self.node = node
        self.module = module
        self.bases = bases
        self.unresolved_base = unresolved
        self.env = env
        self.methods: dict[str, Value] = {}
        self.attributes: dict[str, tuple[Value, ast.AST]] = {}
        self.fields: dict[str, Field] = {}
        self.declared: dict[str, Status] = {}
        self.conflicts: tuple[tuple[str, Status, Declaration], ...] = ()
        self.decorators: dict[str, ast.expr] = {}
        self.preset: dict[str, Value] = {}
        self.unknown_decorators = False
        self.made_dataclass = False
        self.made_by_base = False
        self.replaced_init = False
        self.structural = False
        self.foreign = ""
        self.record = ""
        self.pytree_keyword: bool | None = None
        self.dynamic = False
        self.model: Obj | None = None
        self.modelled: Interpreter | None = None
        self.sized: dict[Hashable, Sized] = {}

    def __repr__(self) -> str:
        return f"{self.module.name}.{self.name}"

    def forget_model(self) -> None:
        """Let the model be made anew when somebody asks for it."""
        self.model = self.modelled = None

    @property
    def may_be_extended(self) -> bool:
        return self.structural or self.module.project.heirs.mix(self.name)

    def saved(self) -> Callable[[], None]:
        return heap.restorer(
            self,
            methods=dict(self.methods),
            attributes=dict(self.attributes),
            registered_container=self.registered_container,
            registered_data=self.registered_data,
            dynamic=self.dynamic,
            made_dataclass=self.made_dataclass,
            replaced_init=self.replaced_init,
        )

    @property
    def checked(self) -> bool:
        """Whether the attributes of instances are checked for data/static."""
        if not self.is_pytree or self.opaque:
            return False
        return is_checked(self.pytree_keyword, default=not self.derives_from("nnx.Object"))

    @property
    def opaque(self) -> bool:
        """Whether attributes do not work as usual: access overridden, a metaclass, a class built dynamically."""
        for item in self.lineage:  # noqa: SIM110 - asked for each attribute: `any` takes twice as long
            if item.dynamic or not ACCESS.isdisjoint(item.methods):
                return True
        return False

    @property
    def remade(self) -> bool:
        return any(item.dynamic or item.unknown_decorators for item in self.lineage)

    @property
    def made_as(self) -> LibClass | None:
        return None if self.replaced_init or self.generated_init else self._inherits_all("__init__", "__new__")

    @property
    def called_as(self) -> LibClass | None:
        return self._inherits_all("__call__", "__getattr__")

    def _inherits_all(self, *names: str) -> LibClass | None:
        """The nearest library class, if no class of the project before it has methods of these names."""
        if self.is_open or self.opaque or self.remade:
            return None
        for item in self.ancestors:
            if isinstance(item, LibClass):
                return item
            if isinstance(item, UserClass) and any(name in item.methods or name in item.attributes for name in names):
                return None
        return None

    def change(self, name: str, value: Value, node: ast.AST) -> None:
        """Set an attribute of the class from outside of its body."""
        from nnx_lint.model.callables import FuncVal, Transformed
        from nnx_lint.model.values import Unknown

        heap.touch(self)
        self.replaced_init = self.replaced_init or name == "__init__"
        self.methods.pop(name, None)
        self.attributes.pop(name, None)
        if isinstance(value, (FuncVal, Transformed, Unknown)) or name in SPECIAL:
            self.methods[name] = value
        else:
            self.attributes[name] = (value, node)

    def find(self, name: str) -> tuple[ClassBase, Value] | None:
        """The method ``name`` with the class that defines it, looked up over the ancestors of the project."""
        for item in self.lineage:
            if name in item.methods:
                return item, item.methods[name]
            if name in item.attributes:
                return None
        return None

    def own_method(self, name: str) -> Value | None:
        """A method that the class has for itself: its own one, or that of a mixin, which is no object of NNX alone."""
        found = self.find(name)
        own = found is not None and (found[0] is self or not (found[0].is_pytree or found[0].is_open))
        return found[1] if found is not None and own else None

    def class_attribute(self, name: str) -> Value | None:
        """The class-level value ``name``, looked up over the ancestors of the project."""
        for item in self.lineage:
            if name in item.attributes:
                return item.attributes[name][0]
            if name in item.methods:
                return None
        return None

    def declared_status(self, name: str) -> Status | None:
        """The status that a class body gives to the attribute."""
        return next((item.declared[name] for item in self.lineage if name in item.declared), None)

    @functools.cached_property
    def is_dataclass(self) -> bool:
        """Whether a dataclass decorator makes its ``__init__``."""
        return any(item.own_dataclass for item in self.lineage)

    @property
    def own_dataclass(self) -> bool:
        return self.made_dataclass or not self.decorators.keys().isdisjoint(DATACLASS_DECORATORS)

    def option(self, name: str) -> bool | None:
        """A literal option of the dataclass decorator of this very class; ``None`` where there is none."""
        for decorator in self.decorators.values():
            for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
                if keyword.arg == name and isinstance(keyword.value, ast.Constant):
                    return bool(keyword.value.value)
        given = getattr(self.preset.get(name), "value", None)
        return given if isinstance(given, bool) else None

    @property
    def has_fields(self) -> bool:
        """Whether annotated names of this very class are parameters of a constructor that nobody wrote."""
        plain = self.named_tuple or self.own_dataclass or bool(self.record)
        return plain or not self.decorators.keys().isdisjoint(FIELD_DECORATORS)

    @functools.cached_property
    def generated_init(self) -> bool:
        """Whether the constructor is one that a dataclass or a named tuple generates."""
        for item in self.ancestors:
            if isinstance(item, UserClass) and "__init__" in item.methods:
                return False
            if isinstance(item, UserClass) and item.has_fields and item.option("init") is not False:
                return True
        return False

    @functools.cached_property
    def is_frozen(self) -> bool:
        """Whether instances stay as the constructor left them that a frozen dataclass or a named tuple generates."""
        if not self.generated_init or self.remade or self.find("__post_init__") is not None:
            return False
        return self.named_tuple or all(item.own_frozen for item in self.lineage)

    @property
    def own_frozen(self) -> bool:
        """Whether the decorator of this very class freezes its instances; that of flax does unless it is told not."""
        if self.made_dataclass or "flax.struct.dataclass" in self.decorators:
            return self.option("frozen") is not False
        return self.own_dataclass and self.option("frozen") is True

    @functools.cached_property
    def renewed_by(self) -> str | None:
        """The method, which the class does not write itself, that makes a record anew with other values in it."""
        if self.named_tuple:
            return "_replace"
        made = any(not item.decorators.keys().isdisjoint(FIELD_DECORATORS) for item in self.lineage)
        return "replace" if (made or self.made_by_base) and self.find("replace") is None else None

    @functools.cached_property
    def leaf_names(self) -> frozenset[str]:
        """The fields of a dataclass that JAX certainly takes for its parts."""
        by_itself = ["jax.tree_util.register_dataclass"] if not self.preset else []
        makers = [self.decorators.get(name) for name in ("flax.struct.dataclass", "chex.dataclass", *by_itself)]
        plain = self.made_by_base or any(maker is not None and not isinstance(maker, ast.Call) for maker in makers)
        if not plain or not self.generated_init or self.remade or self.find("__post_init__") is not None:
            return frozenset()
        return frozenset(field.name for field in self.all_fields() if field.is_bare)

    def parts_of(self, args: Mapping[str, Value]) -> list[Value] | None:
        from nnx_lint.model.values import UNKNOWN

        if self.registered_data:
            return None  # data by its type, whatever it holds
        if not self.leaf_names:
            return super().parts_of(args)
        return [UNKNOWN, *(value for name, value in args.items() if name in self.leaf_names)]

    def all_fields(self) -> list[Field]:
        """The fields of a dataclass or a named tuple, bases first."""
        fields: dict[str, Field] = {}
        for item in reversed(self.ancestors):
            if isinstance(item, UserClass) and item.has_fields:
                fields.update(item.fields)
        return list(fields.values())


SPECIAL = frozenset({"__init__", "__setattr__", "__getattribute__", "__new__", "__call__"})
"""Methods that Python looks up in the class, whatever they are."""

ACCESS = frozenset({"__setattr__", "__getattribute__"})
"""Methods that stand between an attribute and the instance."""

DATACLASS_DECORATORS = frozenset({"nnx.dataclass", "dataclasses.dataclass"})


FIELD_DECORATORS = frozenset({"flax.struct.dataclass", "chex.dataclass"})
"""Other decorators that turn annotated names into parameters of the constructor."""


def method_of(cls: ClassBase, name: str) -> tuple[ClassBase, FuncVal] | None:
    """A plain method of a project class, found over its ancestors."""
    from nnx_lint.model.callables import FuncVal

    found = cls.find(name) if isinstance(cls, UserClass) else None
    if found is not None and isinstance(found[1], FuncVal):
        return found[0], found[1]
    return None
