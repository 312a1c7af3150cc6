"""Fields: the annotated names of a class body, and what a dataclass makes of them.

Invariants: whether a field is in the generated ``__init__``, and how, follows from its own specifier first, then from a
``KW_ONLY`` above it, then from the decorator; what is not written out as a literal is unknown.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal
from nnx_lint.model.values import (
    UNKNOWN,
    Array,
    Const,
    FieldVal,
    TagVal,
    Value,
)
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.attributes import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nnx_lint.model.classes import ClassBase


class Field:
    """A dataclass field, or an annotation in a class body.

    ``init`` says whether the generated ``__init__`` takes it, ``keyword_only`` whether only by keyword, ``init_only``
    that it hands it to ``__post_init__`` and keeps nothing (``InitVar``).
    """

    __slots__ = ("annotation", "has_default", "init", "init_only", "keyword_only", "name", "node", "value")

    def __init__(self, name: str, annotation: ast.expr, node: ast.AnnAssign, value: Value | None) -> None:
        self.name = name
        self.annotation = annotation
        self.node = node
        self.value = value
        self.has_default = value is not None
        self.init: bool | None = True
        self.init_only = False
        self.keyword_only = False

    def specify(self, keywords: Mapping[str, Value]) -> None:
        """Take what a field specifier says: ``field(...)``, ``nnx.data(...)``, ``nnx.static(...)``."""
        self.has_default = not {"default", "default_factory"}.isdisjoint(keywords)
        if "kw_only" in keywords:
            self.keyword_only = literal(keywords["kw_only"]) is True
        if "init" in keywords:
            self.init = literal(keywords["init"])

    def specify_as_written(self, call: ast.Call) -> None:
        """Take what the specifier of another library says by its text: ``flax.struct.field(kw_only=True)``."""
        said = {item.arg: item.value for item in call.keywords} if last_name(call.func) == "field" else {}
        if "kw_only" in said:
            self.keyword_only = _written(said["kw_only"]) is True
        if "init" in said:
            self.init = _written(said["init"])

    @property
    def is_bare(self) -> bool:
        """Whether nothing but its annotation, and perhaps a default, tells what the field is."""
        return self.value is None or isinstance(self.value, (Const, Array))

    @property
    def stays_in_class(self) -> bool:
        """Whether no instance gets the default from ``__init__``, as it is read from the class (``init=False``)."""
        if self.init is not False or not isinstance(self.value, (FieldVal, TagVal)):
            return False
        return "default" in self.value.keywords


def _written(node: ast.expr) -> bool | None:
    """The bool that an expression is, if it is written out."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None


def literal(value: Value | None) -> bool | None:
    """The bool that a value is; ``None`` if it is not known to be one."""
    return value.value if isinstance(value, Const) and isinstance(value.value, bool) else None


def specified_status(value: Value) -> Status | None:
    """The status that a field specifier gives: ``nnx.data()``, ``nnx.static()``, metadata of ``dataclasses.field``."""
    if isinstance(value, TagVal):
        return value.tag.status
    if not isinstance(value, FieldVal) or "metadata" not in value.keywords:
        return None
    static = metadata_entry(value, "static")
    known = literal(static) if static is not None else None
    if known is not None:
        return Status.STATIC if known else Status.DATA
    return None if static is None else Status.UNKNOWN


SPECIFIERS = {"pytree_node": False, "static": True}
"""What specifiers of fields say of one that is no part of the tree, ``flax.struct.field(pytree_node=False)``."""


def is_metadata(cls: ClassBase, name: str) -> bool:
    """Whether an attribute of a JAX container is no leaf of it: what it holds, often a number that is called an array,
    is known while JAX traces.
    """
    owners = (item for item in cls.ancestors if isinstance(item, UserClass) and name in item.fields)
    owner = None if cls.is_pytree else next(owners, None)
    if owner is None:
        return False
    field = owner.fields[name]
    call = field.node.value
    named = call.keywords if isinstance(call, ast.Call) else []
    said = ((item.arg, item.value) for item in named if item.arg in SPECIFIERS)
    if any(isinstance(value, ast.Constant) and value.value is SPECIFIERS[arg or ""] for arg, value in said):
        return True
    specified = specified_status(field.value) if field.value is not None else None
    return specified is Status.STATIC or owner.module.has(name, _meta_fields)


@remembered
def _meta_fields(statement: ast.AST) -> frozenset[str]:
    """The fields that are registered as metadata of containers, ``register_dataclass(T, meta_fields=["n"])``."""
    named = (node.value for node in walk(statement) if isinstance(node, ast.keyword) and node.arg == "meta_fields")
    found = (part.value for value in named for part in walk(value) if isinstance(part, ast.Constant))
    return frozenset(value for value in found if isinstance(value, str))


def metadata_entry(field: FieldVal, name: str) -> Value | None:
    """An entry of the metadata of a field; unknown if the metadata is not written out."""
    metadata = field.keywords.get("metadata")
    if not isinstance(metadata, DictVal) or not metadata.exact:
        return None if metadata is None else UNKNOWN
    return next((held for key, held in metadata.items if isinstance(key, Const) and key.value == name), None)
