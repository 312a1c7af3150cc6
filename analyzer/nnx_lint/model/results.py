"""What a function returns, as its summary keeps it, and what a call of it gets.

A function that runs on its own returns parts of its arguments and objects that it made. Who calls it gets those parts
of what it hands over, and for all else something new of the same kind, so that two calls of a factory give two models,
and an optimizer that was made with a model in it belongs to the model that is returned beside it.

Invariants: what a call gets shares no object with what the function made; what was not certain for all arguments is
unknown. An object that the function changed deep inside, or that came to it through a transform, is given as any
instance of its class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model import symbols
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.handed import is_model
from nnx_lint.model.states import GradientVal, GraphDefVal, OptStateVal, StateVal
from nnx_lint.model.unions import UnionVal, join, options
from nnx_lint.model.values import (
    UNKNOWN,
    Array,
    Attr,
    ClassVal,
    Const,
    Ext,
    Obj,
    Other,
    ParameterNumber,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nnx_lint.model.interpreter import Interpreter

MAX_OBJECTS = 40
"""How many objects one call may get; of more it is not known what they hold."""

MAX_RETURNED = 3
"""How many different results a summary tells apart."""


class Place(NamedTuple):
    """An object as a function reaches it: from a parameter, through attributes and elements."""

    parameter: str
    path: tuple[str, ...] = ()


_NOTHING: dict[int, Place] = {}


class Results:
    """What a function returns: one of some values, in which there may be parts of its arguments."""

    __slots__ = ("parts", "values")

    def __init__(self, value: Value = UNKNOWN, place_of: Callable[[Value], Place | None] | None = None) -> None:
        found = options(value)
        self.values: tuple[Value, ...] = found if len(found) <= MAX_RETURNED else (UNKNOWN,)
        self.parts: dict[int, Place] = _NOTHING
        if place_of is not None:
            self._find_parts(place_of)

    def _find_parts(self, place_of: Callable[[Value], Place | None]) -> None:
        todo = list(self.values)
        seen = set[int]()
        for value in todo:
            if id(value) in seen or len(seen) > MAX_OBJECTS:
                continue
            seen.add(id(value))
            if isinstance(value, (Const, Array, ClassVal, Ext)):
                continue
            place = place_of(value) if value is not UNKNOWN else None
            if place is not None:
                self.parts = {**self.parts, id(value): place}
            else:
                todo += _held(value)


def _held(value: Value) -> Iterable[Value]:
    """What a new value was made with."""
    if isinstance(value, Seq):
        return value.items
    if isinstance(value, DictVal):
        return [item for _, item in value.items]
    if isinstance(value, (StateVal, GraphDefVal, OptStateVal, GradientVal)):
        return [value.of]
    return (value.args or {}).values() if isinstance(value, Obj) else ()


class Renewal:
    """The values that one call gets, at its level: ``at`` gives the parts of what it hands over, ``made_with`` what the
    names of sizes stand for in the object that is called, if the sizes are those of all such objects.
    """

    def __init__(
        self,
        interp: Interpreter,
        level: int,
        results: Results,
        at: Callable[[Place], Value],
        made_with: Mapping[str, Value] | None = None,
    ) -> None:
        self._interp = interp
        self._level = level
        self._results = results
        self._at = at
        self._made_with = made_with
        self._made: dict[int, Value] = {}

    def result(self) -> Value:
        """What the call returns."""
        return join(*map(self.of, self._results.values))

    def of(self, value: Value) -> Value:
        """What the call gets for something that the function has."""
        key = id(value)
        if key in self._results.parts:
            return self._at(self._results.parts[key])
        if key not in self._made:
            self._made[key] = UNKNOWN  # of what holds itself
            self._made[key] = self._new(value)
        return self._made[key]

    def _new(self, value: Value) -> Value:
        if isinstance(value, Array):
            known = value.form if self._made_with is not None else None
            return type(value)(self._level, symbols.form_seen_from(known, self._made_with or {}))
        if isinstance(value, ParameterNumber):
            return Other("a plain value")
        if value.symbol is not None:
            return symbols.seen_from(value, self._made_with)
        if isinstance(value, (Const, Other, ClassVal, Ext)):
            return value
        if isinstance(value, Obj):
            return self._instance(value)
        if isinstance(value, Seq):
            fresh = Seq(value.type, map(self.of, value.items), self._level, exact=value.exact, node=value.node)
            fresh.shrunk = value.shrunk
            return fresh
        if isinstance(value, DictVal):
            entries = [(self.of(key), self.of(item)) for key, item in value.items]
            table = DictVal(entries, self._level, exact=value.exact, node=value.node)
            table.shared = value.shared
            return table
        if isinstance(value, StateVal):
            return value.again(self._level, self.of(value.of))
        if isinstance(value, OptStateVal):
            return OptStateVal(self.of(value.of), keeps=value.keeps)
        if isinstance(value, GradientVal):
            return GradientVal(self.of(value.of), made=value.made)
        if isinstance(value, GraphDefVal):
            return GraphDefVal(self.of(value.of))
        return join(*map(self.of, value.options)) if isinstance(value, UnionVal) else UNKNOWN

    def _instance(self, like: Obj) -> Value:
        if len(self._made) > MAX_OBJECTS or not _is_as_made(like):
            return self._interp.instance(like.cls, self._level)
        self._made[id(like)] = copy = like.another(self._level, like.template)
        copy.args, copy.binds = self._arguments(like.args), self._arguments(like.binds)
        for name, attr in like.attrs.items():
            if not _comes_with_class(like, name, attr):
                fresh = copy.attrs[name] = Attr(self.of(attr.value), attr.declared)
                fresh.assignments = attr.assignments
        return copy

    def _arguments(self, given: Mapping[str, Value] | None) -> dict[str, Value] | None:
        return None if given is None else {name: self.of(value) for name, value in given.items()}


def _is_as_made(obj: Obj) -> bool:
    """Whether an object is what a call of its class made, outside of transforms."""
    known = obj.template is None or is_model(obj.template)
    return known and not obj.bare and not obj.constructing and obj.leaf_level is None


def comes_with_class(obj: Obj) -> bool:
    """Whether an object has what every instance has that is made as it was."""
    return all(_comes_with_class(obj, name, attr) for name, attr in obj.attrs.items())


def _comes_with_class(obj: Obj, name: str, attr: Attr) -> bool:
    """Whether an attribute is as every instance has it, and so is what it holds."""
    before = attribute_of(obj.template, name) if obj.template is not None else None
    if before is None or len(before.assignments) != len(attr.assignments):
        return False
    same = all(one.node is other.node for one, other in zip(before.assignments, attr.assignments, strict=True))
    value = attr.value
    if not same or not isinstance(value, Obj) or value.template is None:
        return same
    return all(_comes_with_class(value, inner, held) for inner, held in value.attrs.items())
