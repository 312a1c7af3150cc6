"""One of several values: what branches leave, what annotations allow, and what containers hold.

Invariants: an option that is not known makes the whole unknown, and so do more options than anybody can look at; two
values of which no rule needs to know which one it is are one option, with the facts that hold for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.symbols import GIVEN, or_else
from nnx_lint.model.values import (
    MAX_NESTING,
    SOME_VARIABLE,
    UNKNOWN,
    Array,
    ClassVal,
    Computed,
    Const,
    Ext,
    Obj,
    Other,
    ParameterNumber,
    TakenArray,
    Unknown,
    Value,
    VariableVal,
)
from nnx_rules import shape_algebra
from nnx_rules.attributes import DATA_KINDS, Kind, ValueFacts
from nnx_rules.shapes import Form

if TYPE_CHECKING:
    from collections.abc import Iterable


class UnionVal(Value):
    """One of several values, depending on a branch or an annotation."""

    __slots__ = ("options",)

    def __init__(self, options: tuple[Value, ...]) -> None:
        self.options = options

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        kinds = {option.kind for option in self.options}
        return kinds.pop() if len(kinds) == 1 else Kind.UNKNOWN

    def facts(self, depth: int = MAX_NESTING) -> ValueFacts:
        first, *others = {option.facts(depth) for option in self.options}
        if not others:
            return first
        data = all(item.kind in DATA_KINDS and item.tag is None for item in (first, *others))
        return first if data else ValueFacts(Kind.UNKNOWN)

    def element_facts(self, depth: int = MAX_NESTING) -> ValueFacts:
        """What is an object on one branch and ``None`` on the other is data in a container: nothing that it may hold
        makes up for that. Arrays are the alternative to numbers, too, in annotations that promise more than anybody
        gives.
        """
        facts = self.facts(depth)
        held = present(self).facts(depth) if facts.kind is Kind.UNKNOWN else facts
        return held if held.kind in DATA_KINDS and held.kind is not Kind.ARRAY else facts

    def describe(self) -> str:
        return " or ".join(dict.fromkeys(option.describe() for option in self.options))


MAX_UNION = 8

ARRAYS = frozenset({Array, TakenArray})
"""Arrays of which one is as good as another, but for what is known of them."""


def join(*values: Value) -> Value:
    """The value that is one of these; unknown if one of them is, or if there are too many."""
    if len(values) == 2 and (type(values[0]) in GIVEN or type(values[1]) in GIVEN):
        number = or_else(*values)
        if number is not None:
            return number
    options: list[Value] = []
    for value in values:
        for option in value.options if isinstance(value, UnionVal) else (value,):
            if isinstance(option, Unknown):
                return UNKNOWN if option is UNKNOWN else _any_of(values)
            for place, known in enumerate(options):
                if same(option, known):
                    options[place] = _either(known, option)
                    break
            else:
                options.append(option)
            if len(options) > MAX_UNION:
                return UNKNOWN
    if len(options) == 1:
        return options[0]
    if any(isinstance(option, Computed) for option in options):
        return join(*(Other("a plain value") if isinstance(option, Computed) else option for option in options))
    return UnionVal(tuple(options)) if options else UNKNOWN


def _either(known: Value, option: Value) -> Value:
    """What is one of two values that need not be told apart."""
    if isinstance(known, Array) and isinstance(option, Array):
        alike = known.form == option.form
        if not alike or known.bound != option.bound:  # neither is sure
            taken = known if isinstance(known, TakenArray) else option
            either = type(taken)(known.level, known.form if alike else _common(known.form, option.form))
            either.maker, either.squashed = (known.maker, known.squashed) if alike else (None, None)
            return either
    if isinstance(known, ParameterNumber) and not (isinstance(option, ParameterNumber) and option.name == known.name):
        return Other("a plain value")
    if isinstance(known, Other) and known.symbol is not None and known.symbol != option.symbol:
        return Other(known.what)
    return known


def _common(one: Form | None, other: Form | None) -> Form | None:
    """What is true of both forms: the sizes that they share, where they have as many axes."""
    if one is None or other is None:
        return None
    return Form(shape_algebra.either(one.shape, other.shape), one.dtype if one.dtype == other.dtype else None)


def _any_of(values: Iterable[Value]) -> Value:
    """The value that is one of these, some of which are not known."""
    found = [option for value in values for option in options(value)]
    variables = all(
        isinstance(option, VariableVal) or (isinstance(option, Obj) and option.cls.is_variable) for option in found
    )
    return SOME_VARIABLE if variables else UNKNOWN


def same(left: Value, right: Value) -> bool:
    """Whether two values need not be told apart."""
    if left is right:
        return True
    if isinstance(left, Const) and isinstance(right, Const):
        return type(left.value) is type(right.value) and left.value == right.value
    if type(left) is not type(right) and not {type(left), type(right)} <= ARRAYS:
        plain = isinstance(left, Other) and isinstance(right, Other)
        return plain and (isinstance(left, ParameterNumber) or isinstance(right, ParameterNumber))
    if isinstance(left, Ext) and isinstance(right, Ext):
        return left.name == right.name
    if isinstance(left, Array) and isinstance(right, Array):
        return left.level == right.level
    if isinstance(left, ClassVal) and isinstance(right, ClassVal):
        return left.cls is right.cls
    return isinstance(left, Other)


def options(value: Value) -> tuple[Value, ...]:
    """The values that this may be."""
    return value.options if isinstance(value, UnionVal) else (value,)


def present(value: Value) -> Value:
    """The value without the option ``None``: what it is wherever it is used as an object."""
    if isinstance(value, UnionVal):
        rest = tuple(option for option in value.options if not (isinstance(option, Const) and option.value is None))
        return rest[0] if len(rest) == 1 else UnionVal(rest) if rest else value
    return value
