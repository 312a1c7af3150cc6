"""How code says data or static: tags, class annotations, field specifiers, registered types.

* a tag, ``self.x = nnx.data(v)``, is a :class:`~nnxkit._facts.StatusTag` that the assignment unwraps;
* an annotation in a class body, ``x: nnx.Data[T]``, declares the status before any instance exists;
* a field specifier, ``x: T = nnx.data(default=...)``, is a ``dataclasses.Field`` whose metadata has the entry
  ``"static"``.

What a class body declares is read once, when the class is created, with what it inherits;
``nnx_rules.attributes.declare`` combines them.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, dataclass_transform, overload

from nnx_rules.attributes import Declaration, Kind, Status, Tag, declare
from nnx_rules.rules import attributes as rules
from nnx_rules.rules import dataclasses as field_rules
from nnxkit._facts import StatusTag, describe, register_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

T = TypeVar("T")
C = TypeVar("C", bound=type)


class StatusMarker:
    """The metadata of ``nnx.Data[...]`` and ``nnx.Static[...]`` annotations."""

    __slots__ = ("status",)

    def __init__(self, status: Status) -> None:
        self.status = status

    def __repr__(self) -> str:
        return f"StatusMarker({self.status.value})"


Data = Annotated[T, StatusMarker(Status.DATA)]
"""``x: nnx.Data[T]`` in a class body declares the attribute ``x`` as data."""

Static = Annotated[T, StatusMarker(Status.STATIC)]
"""``x: nnx.Static[T]`` in a class body declares the attribute ``x`` as static."""

_FIELD_KEYWORDS = frozenset(inspect.signature(dataclasses.field).parameters)
_MISSING: Any = dataclasses.MISSING


def _tag(tag: Tag, value: Any, field: dict[str, Any]) -> Any:
    if value is not _MISSING:
        if field:
            raise rules.STATUS_ANNOTATION_ARGUMENTS.error(tag=tag.value, given="both")
        return StatusTag(tag, value)
    if unknown := field.keys() - _FIELD_KEYWORDS:
        given = ", ".join(f"`{name}`" for name in sorted(unknown))
        raise rules.STATUS_ANNOTATION_ARGUMENTS.error(tag=tag.value, given=given)
    metadata = {**(field.pop("metadata", None) or {}), "static": tag is Tag.STATIC}
    return dataclasses.field(metadata=metadata, **field)


@overload
def data(value: T, /) -> T: ...
@overload
def data(**field: Any) -> Any: ...
def data(value: Any = _MISSING, /, **field: Any) -> Any:
    """Mark a value, or a dataclass field, as data.

    ``self.x = nnx.data(value)`` stores ``value`` and makes the attribute part of the JAX tree, whatever the value
    is. Without a value it is a field specifier and takes the keywords of ``dataclasses.field``.

    Raises:
        StatusTagArgumentError: both a value and keywords, or a keyword that no field has.

    >>> import jax, nnxkit as nnx
    >>> class Counter(nnx.Pytree):
    ...     def __init__(self):
    ...         self.steps = nnx.data(0)
    >>> jax.tree.leaves(Counter())
    [0]
    """
    return _tag(Tag.DATA, value, field)


@overload
def static(value: T, /) -> T: ...
@overload
def static(**field: Any) -> Any: ...
def static(value: Any = _MISSING, /, **field: Any) -> Any:
    """Mark a value, or a dataclass field, as static: part of the structure, not of the JAX tree.

    The assignment raises ``AttributeStatusError`` when the value is data or holds data.

    Raises:
        StatusTagArgumentError: both a value and keywords, or a keyword that no field has.
    """
    return _tag(Tag.STATIC, value, field)


def register_data_type(type_: C, /) -> C:
    """Make the instances of exactly this type data; also a class decorator.

    Subclasses are not included, and JAX does not learn about the type: register it with ``jax.tree_util`` too if
    transforms shall take it.
    """
    register_kind(type_, Kind.REGISTERED)
    return type_


_DATACLASS_OPTIONS = frozenset(inspect.signature(dataclasses.dataclass).parameters) - {"cls", "repr", "frozen"}


@overload
def dataclass(cls: type[T], /) -> type[T]: ...
@overload
def dataclass(**options: Any) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(field_specifiers=(dataclasses.field, data, static))
def dataclass(cls: Any = None, /, **options: Any) -> Any:
    """``dataclasses.dataclass`` for a Pytree: keeps the repr of Pytrees, and takes ``nnx.data`` and ``nnx.static``
    as field specifiers.

    Raises:
        ClassLayoutError: an option that it does not take (``frozen``, ``repr``).

    >>> import jax, nnxkit as nnx
    >>> @nnx.dataclass
    ... class Point(nnx.Pytree):
    ...     x: int = nnx.data()
    ...     name: str = nnx.static(default="p", kw_only=True)
    >>> jax.tree.leaves(Point(3))
    [3]
    """
    for option in options:
        if option not in _DATACLASS_OPTIONS:
            raise field_rules.UNSUPPORTED_OPTION.error(option=option)
    decorate = dataclasses.dataclass(repr=False, **options)
    return decorate if cls is None else decorate(cls)


def _annotations(cls: type) -> Mapping[str, Any]:
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    annotations: Mapping[str, Any] = inspect.get_annotations(cls)
    return annotations


def _resolve(dotted: str, namespace: Mapping[str, Any]) -> Any:
    head, *rest = dotted.split(".")
    value = namespace.get(head)
    for name in rest:
        value = getattr(value, name, None)
    return value


def _status_of(annotation: Any, namespace: Mapping[str, Any]) -> Status | None:
    """The status that one annotation declares.

    Of a string only the part before the bracket is looked up, so that names which exist for type checkers alone do
    no harm inside it.
    """
    if isinstance(annotation, str):
        dotted = (
            annotation.strip("'\" ").partition("[")[0].strip()
        )  # quotes: a quoted annotation, quoted again by the compiler
        resolved = _resolve(dotted, namespace)
        annotation = resolved if resolved is not None else {"nnx.Data": Data, "nnx.Static": Static}.get(dotted)
    for marker in getattr(annotation, "__metadata__", ()):
        if isinstance(marker, StatusMarker):
            return marker.status
    return None


def _declarations(cls: type) -> Iterator[Declaration]:
    module = sys.modules.get(cls.__module__)
    namespace = {**vars(sys.modules["builtins"]), **(vars(module) if module else {}), **cls.__dict__}
    for name, annotation in _annotations(cls).items():
        status = _status_of(annotation, namespace)
        if status is not None:
            yield Declaration(name, status, "annotation")
    for name, value in cls.__dict__.items():
        if not isinstance(value, dataclasses.Field) or "static" not in value.metadata:
            continue
        is_static = value.metadata["static"]
        if not isinstance(is_static, bool):
            raise field_rules.STATIC_METADATA_TYPE.error(cls=cls.__name__, path=(name,), value=describe(is_static))
        yield Declaration(name, Status.STATIC if is_static else Status.DATA, "field")


def declared_statuses(cls: type, inherited: list[Mapping[str, Status]]) -> Mapping[str, Status]:
    """The statuses that the body of ``cls`` and its bases (nearest first) declare.

    Raises:
        ClassDefinitionError: two of them contradict each other.
    """
    declared = declare(inherited, _declarations(cls))
    for name, known, declaration in declared.conflicts:
        raise rules.STATUS_CONFLICT.error(
            cls=cls.__name__, path=(name,), declared=declaration.status.value, inherited=known.value
        )
    return declared.statuses
