"""Elements: what is in a container, a State or an object that is indexed.

Invariants: nothing is executed here; of a container that is not known whole, every element that it may hold is
possible.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import attributes, configs, entries
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, PureDict, Seq
from nnx_lint.model.forms import is_number
from nnx_lint.model.heap import touch
from nnx_lint.model.states import ForeignVal, PartVal, SownVal, StateVal
from nnx_lint.model.unions import UnionVal, join, options, present
from nnx_lint.model.values import (
    NUMBER,
    SHAPE,
    SOME_VARIABLE,
    STRING,
    UNKNOWN,
    Array,
    ArrayAttr,
    Attr,
    Const,
    Cut,
    HostArray,
    NamespaceVal,
    NumpyInteger,
    NumpyNumber,
    Obj,
    Other,
    Value,
    VersionVal,
)
from nnx_lint.syntax.dotted import called_by
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules import versions
from nnx_rules.layers import INTEGERS
from nnx_rules.shape_algebra import is_whole
from nnx_rules.shapes import Form

if TYPE_CHECKING:
    from nnx_lint.model.classes import ClassBase


def item(value: Value, key: Value | None, level: int) -> Value:
    """The value of ``value[key]``; ``None`` as key is a slice."""
    if isinstance(value, UnionVal):
        return join(*(item(option, key, level) for option in value.options))
    value = as_tuple(value) if isinstance(value, Obj) else value
    if isinstance(value, HostArray):
        if key is None or _cuts(key) or _leaves_axes(value, key):
            return HostArray(level)
        return _part_of(value, one=_is_one_place(key))
    if isinstance(value, Array):
        taken = Array(level)
        taken.squashed = value.squashed
        return taken
    if value is SHAPE:
        return SHAPE if key is None else NUMBER
    if isinstance(value, (ArrayAttr, VersionVal)):
        return value
    if isinstance(value, Seq):
        if key is None:
            return Seq(value.type, value.items, level, exact=False)
        index = key.value if isinstance(key, Const) else None
        if isinstance(index, int) and value.exact and -len(value.items) <= index < len(value.items):
            return value.items[index]
        element = element_of(value, level)
        return _picked(value, index, element) if isinstance(element, Obj) and isinstance(index, int) else element
    if isinstance(value, PureDict) and isinstance(key, Const):
        held = part(value.of, key.value) if isinstance(value.of, (StateVal, PartVal)) else UNKNOWN
        return PureDict(held, level) if isinstance(held, (StateVal, PartVal)) else UNKNOWN
    if isinstance(value, DictVal):
        found = value.entry(key)
        if found is not None:
            return found
        return join(*(held for _, held in value.items)) if value.items else UNKNOWN
    owner = value.of if isinstance(value, NamespaceVal) else value
    if isinstance(owner, Obj) and (owner is not value or configs.is_config(owner)):
        return configs.entries(owner).entry(key) or UNKNOWN
    if isinstance(value, Obj):
        return object_item(value, key, level)
    if isinstance(value, (StateVal, PartVal)) and isinstance(key, Const):
        return part(value, key.value)
    if isinstance(value, ForeignVal) and isinstance(key, Const) and isinstance(key.value, str):
        return value.held.get(key.value, UNKNOWN)
    return UNKNOWN


def sliced(value: Value, cut: Cut, level: int) -> Value | None:
    """A slice of a list or tuple; ``None`` where it is not known which elements that are."""
    held = library_elements(value) if isinstance(value, Obj) and value.cls.derives_from("nnx.List") else value
    bounds = [bound for bound in cut.bounds if bound is None or isinstance(bound, int)]
    if not isinstance(held, Seq) or not held.exact or held.shrunk or len(bounds) < 3 or bounds[2] == 0:
        return None
    return Seq(held.type, held.items[slice(*bounds)], level)


def _leaves_axes(array: HostArray, key: Value) -> bool:
    """Whether an index certainly gives an array with axes: it has axes itself, or is a number for one of several."""
    if isinstance(key, Array):
        picked = key.form.shape if key.form is not None else None
        return bool(picked) and is_whole(picked)
    known = array.form.shape if array.form is not None else None
    return _is_one_place(key) and known is not None and is_whole(known) and len(known) > 1


def _is_one_place(key: Value) -> bool:
    """Whether an index is one number."""
    return isinstance(key, NumpyNumber) or (isinstance(key, (Const, Other)) and is_number(key))


def _picked(held: Seq, index: int, element: Obj) -> Obj:
    """The element at a place, where one stands for all: those of two places are two objects."""
    if index not in held.picked:
        touch(held)
        held.picked[index] = _another(element, {}) if element in held.picked.values() else element
    return held.picked[index]


def _another(like: Obj, made: dict[int, Obj]) -> Obj:
    """An object that is made as another one was, with parts of its own."""
    if id(like) in made:
        return made[id(like)]
    copy = made[id(like)] = like.another(like.level, like.template)
    for name, attr in like.attrs.items():
        own = isinstance(attr.value, Obj) and attr.value.level == like.level
        held = copy.attrs[name] = Attr(_another(attr.value, made) if own else attr.value, attr.declared)  # type: ignore[arg-type]
        held.assignments = attr.assignments
    return copy


def _cuts(key: Value) -> bool:
    """Whether an index leaves an axis or makes one: it is or has a slice or a new axis."""
    given = key.items if isinstance(key, Seq) and key.type == "tuple" else [key]
    return any(isinstance(item, Cut) or (isinstance(item, Const) and item.value in {None, ...}) for item in given)


def part(state: StateVal | PartVal, key: object) -> Value:
    """What a State, or a part of one, holds under a key: a Variable, or what belongs to an object with Variables."""
    of = present(state.of)
    held: Value = UNKNOWN
    if isinstance(of, Obj) and isinstance(key, str):
        attr = attributes.attribute_of(of, key)
        held = present(attr.value) if attr is not None else UNKNOWN
    elif isinstance(of, Obj) and of.cls.derives_from("nnx.List") and key is not None:
        held = item(of, Const(key), of.level)
    if all(isinstance(option, Obj) and option.cls.is_variable for option in options(held)):
        return SOME_VARIABLE
    if held is UNKNOWN and isinstance(of, Obj) and isinstance(key, str) and key in sown_by(of.cls):
        return SownVal(key)
    return PartVal(held) if isinstance(held, Obj) and held.cls.is_pytree else UNKNOWN


def sown_by(cls: ClassBase) -> frozenset[str]:
    """The names under which the methods of a class sow values, each into a tuple with those before."""
    bodies = [_sown_in(item.node) for item in cls.lineage]
    return frozenset(name for body in bodies for name in body)


@remembered
def _sown_in(body: ast.ClassDef) -> frozenset[str]:
    calls = (node for node in walk(body) if isinstance(node, ast.Call) and len(node.args) == 3 and not node.keywords)
    plain = [call for call in calls if _called_method(call) == "sow"]
    names = (call.args[1].value for call in plain if isinstance(call.args[1], ast.Constant))
    return frozenset(name for name in names if isinstance(name, str))


def sows_anything(cls: UserClass) -> bool:
    """Whether methods of a class sow values under names that its text does not say."""
    return any(_sows_anything(item.node) for item in cls.lineage)


@remembered
def _sows_anything(body: ast.ClassDef) -> bool:
    calls = (node for node in walk(body) if isinstance(node, ast.Call) and _called_method(node) == "sow")
    named = ([*call.args[1:2], *(item.value for item in call.keywords if item.arg == "name")] for call in calls)
    return any(not isinstance(name, ast.Constant) for names in named for name in names)


def _called_method(call: ast.Call) -> str:
    """The name of the method that a call calls: ``sow``, of ``self.sow(...)`` and of ``self.sow.__call__(...)``."""
    func = called_by(call)
    return func.attr if isinstance(func, ast.Attribute) else ""


STATE_METHODS = frozenset(
    {"clear", "copy", "get", "items", "keys", "pop", "popitem", "raw_mapping", "setdefault", "update", "values"}
    | versions.STATE_METHODS.keys()
)
"""Methods of a State: what it holds under such a key is not to be had as an attribute."""


def at_each_place(value: Value, count: int) -> list[Value] | None:
    """What stands at each place of a value that is one of several sequences: ``(f, g) if fast else (f2, g2)``."""
    sequences = [option for option in options(value) if isinstance(option, Seq) and option.exact]
    if len(sequences) != len(options(value)) or any(len(each.items) != count for each in sequences):
        return None
    return [join(*parts) for parts in zip(*(each.items for each in sequences), strict=True)]


def as_tuple(obj: Obj) -> Value:
    """The elements of a named tuple, where all of them are known; other objects are no tuples."""
    names = [field.name for field in obj.cls.all_fields()] if obj.cls.named_tuple else []
    if not names or obj.args is None or not all(name in obj.args for name in names):
        return obj
    return Seq("tuple", [obj.args[name] for name in names], obj.level)


def object_item(obj: Obj, key: Value | None, level: int) -> Value:
    """``obj[key]`` for Variables and the containers of the library."""
    if obj.cls.is_variable:
        held = attributes.variable_value(obj)
        whole = isinstance(key, Const) and key.value is ...
        return held if whole else Array(level) if isinstance(held, Array) else UNKNOWN
    if obj.cls.derives_from("nnx.List"):
        elements = library_elements(obj)
        if elements is None:
            return UNKNOWN
        return Seq("list", elements.items, level, exact=False) if key is None else item(elements, key, level)
    if obj.cls.derives_from("nnx.Rngs") and isinstance(key, Const) and isinstance(key.value, str):
        return BoundMethod(obj, key.value)
    return entries.at(obj, key) if obj.cls.derives_from("nnx.Dict") and key is not None else UNKNOWN


def library_elements(obj: Obj) -> Seq | None:
    """The elements of an ``nnx.List``, where they are known."""
    attr = attributes.attribute_of(obj, "[]")
    return attr.value if attr is not None and isinstance(attr.value, Seq) else None


def element_of(value: Value, level: int) -> Value:
    """What iterating over a value gives."""
    value = present(value)
    if isinstance(value, VersionVal):
        return value
    if isinstance(value, UnionVal):
        sequences = [option for option in value.options if not _is_no_sequence(option)]
        return join(*(element_of(option, level) for option in sequences)) if sequences else UNKNOWN
    if isinstance(value, Seq):
        return _any_of(value, level)
    if isinstance(value, DictVal):
        return join(*(key for key, _ in value.items)) if value.items else UNKNOWN
    if isinstance(value, Array):
        row = _without_first(value.form)
        if not isinstance(value, HostArray):
            return Array(level, row)
        return (
            HostArray(level, row)
            if row is not None and row.shape and is_whole(row.shape)
            else _part_of(value, one=True)
        )
    if isinstance(value, StateVal):
        return STRING
    if isinstance(value, Obj):
        if value.cls.derives_from("nnx.List"):
            held = library_elements(value)
            return element_of(held, level) if held is not None else UNKNOWN
        if value.cls.derives_from("nnx.Dict"):
            return element_of(entries.known(value), level)
        if value.cls.is_variable:
            return Array(level)
    if value is NUMBER or value is SHAPE:
        return NUMBER
    return UNKNOWN


def _part_of(array: HostArray, *, one: bool) -> Value:
    """What an index takes of an array of numpy: what stands at ``one`` place of the first axis, or at several."""
    shape, dtype = (array.form.shape, array.form.dtype) if array.form is not None else (None, None)
    if dtype not in INTEGERS or dtype == "bool":
        return UNKNOWN
    return NumpyNumber() if one and is_whole(shape) and shape is not None and len(shape) == 1 else NumpyInteger()


def _without_first(form: Form | None) -> Form | None:
    """The form of what stands at one place of the first axis of an array."""
    if form is None or not form.shape or not is_whole(form.shape[:1]):
        return None
    return Form(form.shape[1:], form.dtype)


def _is_no_sequence(value: Value) -> bool:
    """Whether a value certainly cannot be iterated over: of several that may be, it is none that gets so far."""
    cls = value.cls if isinstance(value, Obj) else None
    if not isinstance(cls, UserClass) or not cls.is_pytree or cls.is_open or cls.opaque or cls.remade:
        return False
    plain = cls.library is not None and cls.library.canonical in {"nnx.Module", "nnx.Pytree"}
    return plain and all(cls.find(name) is None for name in ("__iter__", "__getitem__", "__getattr__"))


def slice_of(value: Value, level: int) -> Value:
    """What a scan gives to one step of what it runs over: an element of each array in it."""
    value = present(value)
    if isinstance(value, Seq) and value.exact and value.type in {"tuple", "list"}:
        return Seq(value.type, [slice_of(item, level) for item in value.items], level)
    if isinstance(value, DictVal) and value.exact:
        return DictVal([(key, slice_of(held, level)) for key, held in value.items], level)
    if isinstance(value, StateVal) or (isinstance(value, Const) and value.value is None):
        return value
    if isinstance(value, (Seq, DictVal, Const, HostArray)):
        return UNKNOWN
    if not isinstance(value, Array):
        return element_of(value, level)
    return Array(level, _without_first(value.form))


def _any_of(held: Seq, level: int) -> Value:
    """Any element of a sequence; of tuples of one length one that has any of theirs at each place."""
    rows = [row.items for row in held.items if isinstance(row, Seq) and row.exact and row.type == "tuple"]
    if held.type == "range":
        return NUMBER
    if len(rows) > 1 and len(rows) == len(held.items) and len({len(row) for row in rows}) == 1:
        return Seq("tuple", [join(*column) for column in zip(*rows, strict=True)], level)
    return join(*held.items) if held.items else UNKNOWN
