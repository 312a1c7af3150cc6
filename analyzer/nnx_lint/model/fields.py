"""Fields: the annotated names of a class body, and what a dataclass makes of them.

Invariants: whether a field is in the generated ``__init__``, and how, follows from its own specifier first, then from a
``KW_ONLY`` above it, then from the decorator; what is not written out as a literal is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.containers import DictVal
from nnx_lint.model.values import (
    UNKNOWN,
    Const,
    FieldVal,
    TagVal,
    Value,
)
from nnx_rules.attributes import Status

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping


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


def literal(value: Value) -> bool | None:
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


def metadata_entry(field: FieldVal, name: str) -> Value | None:
    """An entry of the metadata of a field; unknown if the metadata is not written out."""
    metadata = field.keywords.get("metadata")
    if not isinstance(metadata, DictVal) or not metadata.exact:
        return None if metadata is None else UNKNOWN
    return next((held for key, held in metadata.items if isinstance(key, Const) and key.value == name), None)
