"""Records: classes that are declared by their fields, as data classes of the standard library are.

>>> class Point(Record):
...     x: int
...     y: int = 0
>>> Point(1)
Point(x=1, y=0)

A data class compiles its methods when it is declared, which takes half a millisecond; with the seventy classes here and
in the analyzer, that was a fifth of the time in which the linter starts. A record compiles its constructor when the
first of its instances is made, and the rest is the same code for all.

A :class:`Record` is a value: it does not change, is equal to what has its class and its fields, and can be hashed if
they can. An :class:`Entity` is itself: it may change, and is equal to nothing else.

Invariants: the module of a record has ``from __future__ import annotations``; every annotation of its body is a field,
and every field is a slot; fields of its bases come first.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NoReturn, Self, TypeVar, cast, dataclass_transform

T = TypeVar("T")


class _Made:
    """The default of a field that each instance gets one of its own for."""

    def __init__(self, factory: Callable[[], object]) -> None:
        self.factory = factory


def made(*, factory: Callable[[], T]) -> T:
    """The default of a field: what ``factory`` returns, anew for each instance."""
    return cast("T", _Made(factory))


class _Declared(type):
    """Makes classes of what their bodies declare."""

    __fields__: dict[str, object]
    """The fields by name, each with its default."""
    __content__: attrgetter[object]
    """What the fields of an instance hold."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _Declared:
        own = {field: body.pop(field, _NONE) for field in body.get("__annotations__", ())}
        body["__slots__"] = (*body.get("__slots__", ()), *own)
        cls = super().__new__(mcs, name, bases, body)
        cls.__fields__ = {}
        for base in bases:
            cls.__fields__ |= getattr(base, "__fields__", {})
        cls.__fields__ |= own
        cls.__content__ = attrgetter(*cls.__fields__) if cls.__fields__ else cast("attrgetter[object]", _nothing)
        if cls.__fields__:
            type.__setattr__(cls, "__match_args__", tuple(cls.__fields__))
            type.__setattr__(cls, "__init__", _compiling(cls))
        return cls


_NONE = object()
"""The default of a field that has none."""


def _nothing(_: object) -> tuple[()]:
    """What a record without fields holds."""
    return ()


def _compiling(cls: _Declared) -> Callable[..., None]:
    """A constructor that puts the right one in its place."""

    def construct(self: object, *values: object, **named: object) -> None:
        compiled = _constructor(cls)
        type.__setattr__(cls, "__init__", compiled)
        compiled(self, *values, **named)

    return construct


def _constructor(cls: _Declared) -> Callable[..., None]:
    parameters = ["self"]
    statements: list[str] = []
    names: dict[str, object] = {}
    can_change = not issubclass(cls, Record)
    for name, default in cls.__fields__.items():
        value = name
        if isinstance(default, _Made):
            names[f"make_{name}"], names[f"no_{name}"] = default.factory, default
            value = f"make_{name}() if {name} is no_{name} else {name}"
            parameters.append(f"{name}=no_{name}")
        elif default is not _NONE:
            names[f"no_{name}"] = default
            parameters.append(f"{name}=no_{name}")
        else:
            parameters.append(name)
        if can_change:
            statements.append(f"self.{name} = {value}")
        else:
            names[f"set_{name}"] = getattr(cls, name).__set__
            statements.append(f"set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        statements.append("self.__post_init__()")
    body = "\n ".join(statements or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n {body}", names)
    compiled = cast("Callable[..., None]", names["__init__"])
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    return compiled


class _Fields(metaclass=_Declared):
    """What records and entities share."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__fields__)
        return f"{type(self).__qualname__}({shown})"


@dataclass_transform(frozen_default=True, field_specifiers=(made,))
class Record(_Fields):
    """A value."""

    def __eq__(self, other: object) -> bool:
        cls = type(self)
        if type(other) is not cls:
            return NotImplemented
        return cls.__content__(self) == cls.__content__(other)

    def __hash__(self) -> int:
        return hash(type(self).__content__(self))

    def replaced(self, **fields: object) -> Self:
        """The same record with other values of some fields."""
        cls = type(self)
        return cls(**{name: getattr(self, name) for name in cls.__fields__} | fields)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete field {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in type(self).__fields__)


@dataclass_transform(eq_default=False, field_specifiers=(made,))
class Entity(_Fields):
    """What is itself; others may refer to it weakly."""

    __slots__ = ("__weakref__",)
