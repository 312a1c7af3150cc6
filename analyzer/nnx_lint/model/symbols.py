"""Numbers that are known by their names: what a constructor computes from parameters of which nobody says how large.

The constructor of a class runs on the model of the class with such numbers (:mod:`nnx_rules.sizes`). A method that runs
on its own has them of its own object; another instance has what it was made with in their place, or nothing.

Invariants: whatever else is known of a parameter, it is that, too: each value here is of the class that it would be of
without its name. The names are those of one constructor, so no value may get to another instance as it is:
:func:`seen_from` says what becomes of it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.model.values import (
    UNKNOWN,
    Array,
    Computed,
    Const,
    Obj,
    Other,
    ParameterNumber,
    ParameterVal,
    Unknown,
    Value,
)
from nnx_rules.shapes import UNKNOWN as UNKNOWN_SIZE
from nnx_rules.shapes import Form
from nnx_rules.sizes import OPERATIONS, Size, named, where

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping

    from nnx_rules.shapes import Dimension


class NamedParameter(ParameterVal):
    """A parameter of which nothing is known, and the attributes of it that were asked for."""

    __slots__ = ("parts", "symbol")

    def __init__(self, name: str, required: bool) -> None:
        super().__init__(name, required)
        self.symbol = named(name)
        self.parts: dict[str, NamedVal] = {}


class NamedNumber(ParameterNumber):
    """A parameter that is annotated as a number."""

    __slots__ = ("symbol",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.symbol = named(name)


class OptionalNumber(ParameterNumber):
    """A parameter of a constructor that is a number where it is given, and ``None`` otherwise."""

    __slots__ = ()


class GivenParameter(NamedParameter):
    """An optional parameter where it is known to be given."""

    __slots__ = ()


class GivenNumber(NamedNumber):
    """The same, of one that is annotated as a number."""

    __slots__ = ()


class NamedVal(Unknown):
    """What is computed from such values; if it is a number, then this one."""

    __slots__ = ("symbol",)

    def __init__(self, symbol: Size) -> None:
        self.symbol = symbol


class NamedRecord(NamedVal):
    """A parameter whose annotation is not understood, such as the configuration of another library, and the attributes
    of it that were asked for.
    """

    __slots__ = ("name", "parts")

    def __init__(self, name: str) -> None:
        super().__init__(named(name))
        self.name = name
        self.parts: dict[str, NamedVal] = {}


class NamedOther(Other):
    """A number that is computed from such numbers."""

    __slots__ = ("symbol",)

    def __init__(self, symbol: Size) -> None:
        super().__init__("a number")
        self.symbol = symbol


def part_of(value: NamedParameter | NamedRecord, name: str) -> NamedVal:
    """An attribute of a parameter, the same one each time: ``config.hidden_size``."""
    return value.parts.setdefault(name, NamedVal(named(f"{value.name}.{name}")))


def given(value: Value) -> Value:
    """An optional parameter of a constructor, where a condition says that it is given."""
    if type(value) is NamedParameter and not value.required:
        return GivenParameter(value.name, required=False)
    return GivenNumber(value.name) if type(value) is OptionalNumber else value


GIVEN = frozenset({GivenNumber, GivenParameter})


def or_else(one: Value, other: Value) -> Value | None:
    """A parameter where it is given, and the number in its place where it is not, ``hidden or 4 * dim``: it goes by the
    name of the parameter, which is there because the two may differ.
    """
    parameter, usual = (one, other) if type(one) in GIVEN else (other, one)
    symbol = parameter.symbol if type(parameter) in GIVEN else None
    if symbol is None or (size_of(usual) is None and not isinstance(usual, Other)):
        return None
    counted = isinstance(parameter, GivenNumber) and isinstance(usual, (Const, Other))
    return NamedOther(symbol) if counted else NamedVal(symbol)


OWN: Mapping[str, Value] = {}
"""Stands for the arguments of a constructor in the object of a method that runs on its own: each is its own name."""


def computed(op: ast.operator, left: Value, right: Value) -> Value | None:
    """What an operator makes of two numbers of which one is known by its name."""
    operation = OPERATIONS.get(type(op).__name__) if left.symbol is not None or right.symbol is not None else None
    sides = (size_of(left), size_of(right))
    if operation is None or None in sides:
        return None
    result = operation(*(side for side in sides if side is not None))
    if not isinstance(result, Size):
        return None
    plain = isinstance(left, (Const, Other)) and isinstance(right, (Const, Other))
    return NamedOther(result) if plain else NamedVal(result)


def size_of(value: Value) -> Dimension | None:
    """The number that a value is, or what it is by name."""
    if value.symbol is not None:
        return value.symbol
    return value.value if isinstance(value, Const) and type(value.value) is int else None


def bound_of(value: Value) -> object:
    """A bound of a slice: a number, ``None``, or ``...`` if unknown."""
    if isinstance(value, Const) and value.value is None:
        return None
    known = size_of(value)
    return ... if known is None else known


def nameless(value: Value) -> Value:
    """What is known of a value but for its name."""
    if isinstance(value, NamedParameter):
        return ParameterVal(value.name, value.required)
    if isinstance(value, NamedNumber):
        return ParameterNumber(value.name)
    if isinstance(value, NamedOther):
        return Other(value.what)
    return UNKNOWN if isinstance(value, NamedVal) else value


def form_seen_from(form: Form | None, made_with: Mapping[str, Value] | None) -> Form | None:
    """The form of an array, as such an instance has it."""
    shape = form.shape if form is not None else None
    if form is None or shape is None or made_with is OWN or not any(isinstance(item, Size) for item in shape):
        return form
    of = partial(_stands_for, made_with or {})
    return Form(tuple(where(item, of) if isinstance(item, Size) else item for item in shape), form.dtype)


def _stands_for(made_with: Mapping[str, Value], name: str) -> Dimension:
    """The size that a parameter is, or an attribute of one, for these arguments."""
    parameter, _, field = name.partition(".")
    value = made_with.get(parameter)
    if isinstance(value, (NamedParameter, NamedRecord)) and field:
        return part_of(value, field).symbol or UNKNOWN_SIZE
    of = value if isinstance(value, Obj) and field else None
    while of is not None and field not in of.attrs:
        of = of.template
    value = of.attrs[field].value if of is not None else value if not field else None
    known = size_of(value) if value is not None else None
    other = of is not None and of is getattr(of.cls, "model", None)  # what has a name there has it from its own class
    return UNKNOWN_SIZE if known is None or (other and isinstance(known, Size)) else known


def seen_from(value: Value, made_with: Mapping[str, Value] | None) -> Value:
    """What stands for a value in an instance whose constructor got these arguments; ``None`` if nobody knows which."""
    if isinstance(value, Array):
        form = form_seen_from(value.form, made_with)
        return value if form is value.form else type(value)(value.level, form)
    if value.symbol is None or made_with is OWN:
        return value
    if made_with is None:
        return nameless(value)
    if isinstance(value, (NamedParameter, NamedNumber, NamedRecord)):
        return made_with.get(value.name, nameless(value))
    return numbered(where(value.symbol, partial(_stands_for, made_with)), like=value)


def numbered(size: Dimension, like: Value) -> Value:
    """A number of which that is known, in place of another one."""
    if isinstance(size, int):
        return Computed(size)
    if not isinstance(size, Size):
        return nameless(like)
    return NamedOther(size) if isinstance(like, NamedOther) else NamedVal(size)
