"""Filter arguments as expressions: from abstract values to the tree that ``nnx_rules`` reasons about.

Invariants: two values become equal expressions only if they take the same leaves; what cannot be read becomes an
``Opaque`` of its own, about which nothing is ever concluded. Types are class descriptions (:class:`ClassBase`), or an
:class:`External` for the few types of Python, numpy and JAX that can meet a leaf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import ClassBase, UserClass
from nnx_lint.model.classes import is_subtype as is_subclass
from nnx_lint.model.containers import Seq
from nnx_lint.model.leaves import AtLeast
from nnx_lint.model.library import FilterVal
from nnx_lint.model.values import (
    ClassVal,
    Const,
    Ext,
    Value,
)
from nnx_rules import _filter_logic as logic
from nnx_rules import api
from nnx_rules import filters as nnx_filters
from nnx_rules.filters import Expr, OfType, Opaque, PathContains, PathIn, WithTag
from nnx_rules.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.modules import Module


class External(Record):
    """A type outside NNX, by canonical name."""

    name: str

    @property
    def __name__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  # instances have one, too
        return self.name.rpartition(".")[2]


ARRAY = External("jax.Array")

EXTERNAL_TYPES: dict[str, Any] = {
    "jax.Array": ARRAY,
    "jax.numpy.ndarray": ARRAY,
    "numpy.ndarray": External("numpy.ndarray"),
    "builtins.object": object,
    **{
        f"builtins.{name}": External(f"builtins.{name}")
        for name in ("int", "float", "bool", "complex", "str", "bytes", "list", "dict", "tuple", "set")
    },
    **{name: External(name) for name in (*api.FILTER_CLASSES, *api.FILTER_MAPPINGS)},
}
"""Library names that are types, and no classes of NNX objects."""


class _Unread:
    """Something that cannot be read; equal to itself only."""

    __name__ = "it"


class _Function(Record):
    """A function of the project: one definition is one filter, however often it is named.

    A function that another one makes is a filter for each call of that: what it closes over may differ. So may the
    defaults of its parameters, each time that it is made.
    """

    name: str
    node: int
    made: int

    @property
    def __name__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  # instances have one, too
        return self.name


def is_subtype(left: Any, right: Any) -> bool | None:
    """Whether every instance of ``left`` is one of ``right``; ``None`` where a base class is not known."""
    if left == right or right is object:
        return True
    if isinstance(left, AtLeast):
        above = isinstance(right, ClassBase) and is_subclass(right, left.cls) and right is not left.cls
        return None if above else is_subtype(left.cls, right)
    if not isinstance(left, ClassBase):
        return False
    if isinstance(right, ClassBase) and is_subclass(left, right):
        return True
    return None if left.is_open else False


def type_name(obj: Any) -> str:
    """A type as messages name it."""
    cls = obj.cls if isinstance(obj, AtLeast) else obj
    return cls.name if isinstance(cls, ClassBase) else cls.__name__


def describe(expr: Expr) -> str:
    """What an expression takes, in words."""
    return logic.describe(expr, type_name)


def unreadable() -> Expr:
    """An expression about which nothing is known."""
    return Opaque(_Unread())


MAX_DEPTH = 5
"""How deep filters are nested at most; a list can hold itself, and several times over."""


def expression(value: Value | None, depth: int = 0) -> Expr:
    """The filter that a value is."""
    if depth > MAX_DEPTH:
        return unreadable()
    if isinstance(value, Const):
        return nnx_filters.parse(value.value) if is_literal(value.value) else unreadable()
    if isinstance(value, ClassVal):
        return OfType(value.cls)
    if isinstance(value, Ext):
        known = EXTERNAL_TYPES.get(value.name)
        return OfType(known) if known is not None else Opaque(value.name)
    if isinstance(value, Seq) and value.type in {"tuple", "list"} and value.exact:
        return nnx_filters.Any(*(expression(item, depth + 1) for item in value.items))
    if isinstance(value, FilterVal):
        return _COMBINED.get(value.name, _unknown_filter)(value.args)
    if isinstance(value, FuncVal):
        return Opaque(_Function(value.name, id(value.node), id(value if value.defaults else value.env)))
    return unreadable()


def is_literal(value: object) -> bool:
    """Whether a constant is a filter."""
    return value is None or value is ... or isinstance(value, (bool, str))


def _unknown_filter(args: Arguments) -> Expr:
    return unreadable()


def _constant(expr: Expr) -> Callable[[Arguments], Expr]:
    return lambda args: expr


def _several(kind: type[nnx_filters.Any | nnx_filters.All]) -> Callable[[Arguments], Expr]:
    def build(args: Arguments) -> Expr:
        return unreadable() if args.starred else kind(*map(expression, args.positional))

    return build


def _not(args: Arguments) -> Expr:
    return nnx_filters.Not(expression(args.positional[0])) if len(args.positional) == 1 else unreadable()


def _of_type(args: Arguments) -> Expr:
    given = expression(args.get(0, "type"))
    return given if isinstance(given, OfType) else unreadable()


def _with_tag(args: Arguments) -> Expr:
    given = args.get(0, "tag")
    return WithTag(given.value) if isinstance(given, Const) and isinstance(given.value, str) else unreadable()


def _path_contains(args: Arguments) -> Expr:
    key, exact = args.get(0, "key"), args.get(1, "exact") or Const(True)
    if isinstance(key, Const) and isinstance(exact, Const) and not args.starred:
        return PathContains(key.value, exact=bool(exact.value))
    return unreadable()


def _path_in(args: Arguments) -> Expr:
    paths: list[tuple[object, ...]] = []
    for value in args.positional:
        if not (isinstance(value, Seq) and value.exact and all(isinstance(item, Const) for item in value.items)):
            return unreadable()
        paths.append(tuple(item.value for item in value.items if isinstance(item, Const)))
    return PathIn(*paths)


_COMBINED: dict[str, Callable[[Arguments], Expr]] = {
    "nnx.Everything": _constant(nnx_filters.Everything()),
    "nnx.Nothing": _constant(nnx_filters.Nothing()),
    "nnx.Any": _several(nnx_filters.Any),
    "nnx.All": _several(nnx_filters.All),
    "nnx.Not": _not,
    "nnx.OfType": _of_type,
    "nnx.WithTag": _with_tag,
    "nnx.PathContains": _path_contains,
    "nnx.PathIn": _path_in,
}


def known_types(module: Module, exprs: Iterable[Expr]) -> tuple[Any, ...]:
    """A closed world of leaf types: arrays, the library's Variable types, those of a module, and what is mentioned."""
    from nnx_lint.model.classes import library_class

    types: dict[Any, None] = {ARRAY: None}
    types.update(dict.fromkeys(cls for name in api.VARIABLES if (cls := library_class(name)) is not None))
    for value in module.env.values():
        if (
            isinstance(value, ClassVal)
            and isinstance(value.cls, UserClass)
            and (value.cls.is_variable or value.cls.is_open)
        ):
            types[value.cls] = None
    for expr in exprs:
        types.update(dict.fromkeys(mentioned_types(expr)))
    return tuple(types)


def mentioned_types(expr: Expr) -> list[Any]:
    """The types that an expression asks for."""
    if isinstance(expr, OfType):
        return [expr.type]
    if isinstance(expr, (nnx_filters.Any, nnx_filters.All)):
        return [found for part in expr.predicates for found in mentioned_types(part)]
    return mentioned_types(expr.predicate) if isinstance(expr, nnx_filters.Not) else []
