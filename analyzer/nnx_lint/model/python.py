"""What the built-in functions of Python do to abstract values. Dispatch is by canonical name."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import arithmetic, attributes, configs, imports, records, rounds, sequences, surgery
from nnx_lint.model.annotations import value_of
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass, method_of
from nnx_lint.model.construct import instance_of, instantiate
from nnx_lint.model.containers import DictVal, FlatSeq, PathDict, Seq
from nnx_lint.model.definitions import named_tuple
from nnx_lint.model.elements import element_of
from nnx_lint.model.expressions import text_of
from nnx_lint.model.shims import provided
from nnx_lint.model.strings import HOLE, combined, text_in
from nnx_lint.model.unions import options, present
from nnx_lint.model.values import (
    NONE,
    NUMBER,
    SOME_VARIABLE,
    UNKNOWN,
    Array,
    ClassVal,
    Const,
    Obj,
    Other,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

    Handler = Callable[[Interpreter, Frame, Arguments, ast.AST, str], Value]


def _sequence(type_name: str) -> Handler:
    def handler(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
        given = args.get(0)
        if given is None:
            return Seq(type_name, [], frame.level, exact=not args.starred, node=node)
        if isinstance(given, Seq):
            return Seq(type_name, given.items, frame.level, exact=given.exact and given.type != "set", node=node)
        return Seq(type_name, [element_of(given, frame.level)], frame.level, exact=False, node=node)

    return handler


def _dict(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    given = args.get(0)
    given = configs.as_dict(given) if given is not None else None
    items: list[tuple[Value, Value]] = []
    exact = not args.starred
    if isinstance(given, FlatSeq) and not args.keywords:
        return PathDict(given.of, SOME_VARIABLE, frame.level)
    if isinstance(given, DictVal):
        items.extend(given.items)
        exact = exact and given.exact
    elif given is not None:
        known = rounds.elements(given)
        pairs = [pair.items for pair in known or () if isinstance(pair, Seq) and pair.exact and len(pair.items) == 2]
        if known is not None and len(pairs) == len(known):
            return DictVal([(key, value) for key, value in pairs], frame.level, exact=exact, node=node)
        pair = element_of(given, frame.level)
        held = pair.items[1] if isinstance(pair, Seq) and pair.exact and len(pair.items) == 2 else UNKNOWN
        items.append((UNKNOWN, held))
        exact = False
    items.extend((Const(key), value) for key, value in args.keywords.items() if key != "**")
    return DictVal(items, frame.level, exact=exact, node=node)


def _enumerate(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    given, start = args.get(0) or UNKNOWN, args.get(1, "start") or Const(0)
    known = rounds.elements(given)
    if known is not None and isinstance(start, Const) and type(start.value) is int:
        pairs = [
            Seq("tuple", [arithmetic.RoundNumber(place), item], frame.level)
            for place, item in enumerate(known, start.value)
        ]
        return Seq("generator", pairs, frame.level)
    pair = Seq("tuple", [NUMBER, element_of(given, frame.level)], frame.level)
    return Seq("generator", [pair], frame.level, exact=False)


def _range(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    bounds = [value.value for value in args.positional if isinstance(value, Const) and type(value.value) is int]
    if 1 <= len(bounds) <= 3 and len(bounds) == len(args.positional) and (len(bounds) < 3 or bounds[2]):
        numbers = range(*bounds)
        if len(numbers) <= interp.most_rounds:
            return Seq("range", [arithmetic.RoundNumber(number) for number in numbers], frame.level)
    return Seq("range", [NUMBER], frame.level, exact=False)


def _reversed(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    known = rounds.elements(args.get(0) or UNKNOWN)
    if known is None:
        return _elements_as("generator")(interp, frame, args, node, name)
    return Seq("generator", known[::-1], frame.level)


def _len(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    held = present(args.get(0) or UNKNOWN)
    if isinstance(held, Obj) and (found := method_of(held.cls, "__len__")) is not None:
        interp.call_function(frame, found[1], [], {}, node, receiver=held)
        return Other("an int")
    known = rounds.elements(held)
    return interp.number(len(known)) if known is not None else Other("an int")


def _elements_as(type_name: str) -> Handler:
    def handler(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
        return Seq(type_name, [element_of(args.get(0) or UNKNOWN, frame.level)], frame.level, exact=False)

    return handler


def _plain(what: str) -> Handler:
    def handler(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
        return Other(what)

    return handler


def _hasattr(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    target, wanted = args.get(0) or UNKNOWN, args.get(1)
    if isinstance(target, Array) and isinstance(wanted, Const) and wanted.value in ARRAY_ATTRIBUTES:
        return Const(True)
    return Const(True) if provided(target, wanted) is not None else Other("a bool")


ARRAY_ATTRIBUTES = frozenset({"T", "__array__", "astype", "dtype", "mean", "ndim", "reshape", "shape", "size", "sum"})
"""What a program asks for to tell arrays from numbers and tuples."""


def _getattr(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    target, key = args.get(0), args.get(1)
    wanted = text_in(key) if key is not None else None
    if target is None or wanted is None:
        surgery.walked(interp, frame, target or UNKNOWN, node)
        return UNKNOWN
    if len(args.positional) > 2 and not isinstance(present(target), Obj):
        return provided(target, key) or UNKNOWN
    found = attributes.get_attribute(interp, frame, target, wanted, node, sure=len(args.positional) < 3)
    return configs.started_with(args.get(2)) if found is UNKNOWN and configs.lacks(target, wanted) else found


def _import_module(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    target, package = args.get(0, "name"), args.get(1, "package")
    if not isinstance(target, Const) or not isinstance(target.value, str):
        return UNKNOWN
    relative = target.value.lstrip(".")
    level = len(target.value) - len(relative)
    if not level:
        return imports.module_value(interp, frame.module, relative)
    if isinstance(package, Const) and isinstance(package.value, str):
        return imports.below_package(interp, frame.module, package.value, level, relative)
    where = args.node_of(1, "package")
    own = isinstance(where, ast.Name) and (
        where.id == "__package__" or (where.id == "__name__" and frame.module.package)
    )
    return imports.relative_value(interp, frame.module, level, relative) if own else UNKNOWN


def _setattr(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    target, where = args.get(0), args.node_of(0)
    if target is None or where is None or args.get(2) is None:
        return UNKNOWN
    return set_by_name(interp, frame, target, text_of(where), args, node, first=1)


def set_by_name(
    interp: Interpreter, frame: Frame, target: Value, text: str, args: Arguments, node: ast.AST, *, first: int = 0
) -> Value:
    """Set an attribute whose name is an argument, at the position ``first``, to the value of the next argument."""
    key, value = args.get(first), args.get(first + 1) or UNKNOWN
    names = [text_in(option) for option in options(key)] if key is not None else [None]
    branches = frame.branches
    for position, wanted in enumerate(names):
        if len(names) > 1:
            frame.branches = (*branches, (id(node), position))  # each of them in some round of a loop
        if wanted is not None:
            attributes.set_attribute(interp, frame, target, text, wanted, value, args.node_of(first + 1), node)
        elif isinstance(target, Obj):
            attributes.forget_names(target)
            if target is not frame.initializing:
                attributes.mutate(interp, frame, target, text, "`setattr(...)`", "write", node)
    frame.branches = branches
    return NONE


def _type(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    value = present(args.get(0) or UNKNOWN)
    return ClassVal(value.cls) if isinstance(value, Obj) and len(args.positional) == 1 else UNKNOWN


def _property(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    getter, setter = args.get(0, "fget"), args.get(1, "fset")
    if not isinstance(getter, FuncVal) or not (setter is None or isinstance(setter, FuncVal)):
        return UNKNOWN
    return getter.as_property(setter)


def _named_tuple(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    title, fields = args.get(0, "typename"), args.get(1, "field_names") or args.get(1, "fields")
    if not isinstance(node, ast.Call) or not isinstance(title, Const) or fields is None:
        return UNKNOWN
    names: list[str] = []
    if isinstance(fields, Const) and isinstance(fields.value, str):
        names = fields.value.replace(",", " ").split()
    elif isinstance(fields, Seq) and fields.exact:
        pairs = [item.items[0] if isinstance(item, Seq) and item.items else item for item in fields.items]
        names = [item.value for item in pairs if isinstance(item, Const) and isinstance(item.value, str)]
        names = names if len(names) == len(pairs) else []
    given = args.keywords.get("defaults")
    count = len(given.items) if isinstance(given, Seq) and given.exact else len(names) if given is not None else 0
    return named_tuple(frame, str(title.value), names, node, count) if names else UNKNOWN


def _cast(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """A value that a type is asserted of: the value, or where it is not known what the type says."""
    value, where = args.get(1, "val"), args.node_of(0, "typ")
    if value is None or where is None or not isinstance(value, Unknown):
        return value or UNKNOWN
    return value_of(interp, frame, where)


def _vars(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    target = present(args.get(0) or UNKNOWN)
    surgery.walked(interp, frame, target, node)
    return attributes.namespace(target) if isinstance(target, Obj) else UNKNOWN


def _object_setattr(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    target, key, value = present(args.get(0) or UNKNOWN), args.get(1), args.get(2)
    if isinstance(target, Obj) and key is not None and value is not None:
        attributes.bypass(interp, frame, target, key, value, node)
    return UNKNOWN


def _object_new(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    given = args.get(0)
    return bare(interp, frame, given.cls) if isinstance(given, ClassVal) else UNKNOWN


def bare(interp: Interpreter, frame: Frame, cls: ClassBase) -> Obj:
    """An instance that ``__new__`` has made and nobody has initialized."""
    obj = instance_of(interp, cls, frame.level)
    obj.bare = obj.assumed = True  # what its attributes will be is known from the class alone
    return obj


def _joined_path(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """``os.path.join``: a part that is absolute takes the place of those before it."""
    parts = [text_in(value) if value is not None else None for value in args.positional]
    rest = [part for part in parts[1:] if part and not part.startswith((HOLE, "/"))]
    known = bool(parts) and len(rest) == len(parts) - 1
    return combined(["/".join([parts[0], *rest])]) if known and parts[0] else UNKNOWN


def _replaced(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """A configuration that is made anew, with other values for some of its fields."""
    return _with_fields(interp, frame, args.get(0), args, node)


def replaced_by_method(interp: Interpreter, frame: Frame, held: Obj, name: str, args: Arguments) -> Value:
    """What a method of a record gives that makes it anew; UNKNOWN of any other method."""
    record = held.cls.record if isinstance(held.cls, UserClass) else ""
    if record and name in records.DUMPING and not args.positional and not args.keywords:
        return _dumped(frame, held, args.node)
    if record and name in records.COPYING and not args.positional and args.keywords.keys() <= {"deep", "update"}:
        told = args.keywords.get("update")
        return _with_entries(interp, frame, held, told if told is not None else DictVal([]), args)
    named = isinstance(held.cls, UserClass) and name == held.cls.renewed_by
    return _with_fields(interp, frame, held, args, args.node) if named and not args.positional else UNKNOWN


def _asdict(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """The numbers in a dataclass, by field; others that it holds are made into dicts as well."""
    return _dumped(frame, present(args.get(0) or UNKNOWN), node)


def _dumped(frame: Frame, held: Value, node: ast.AST) -> Value:
    fields = fields_of(held)
    if fields is None:
        return UNKNOWN
    known = [(Const(name), configs.started_with(value)) for name, value in fields.items()]
    return DictVal(known, frame.level, node=node)


def fields_of(held: Value | None) -> dict[str, Value] | None:
    """What a dataclass or a named tuple holds that the program was seen to make."""
    if not isinstance(held, Obj) or held.assumed or held.cls.is_pytree:
        return None
    if not isinstance(held.cls, UserClass) or not held.cls.generated_init:
        return None
    fields = [field.name for field in held.cls.all_fields() if field.init is not False and not field.init_only]
    return {name: attr.value for name in fields if (attr := attributes.attribute_of(held, name)) is not None}


def _with_fields(interp: Interpreter, frame: Frame, held: Value | None, args: Arguments, node: ast.AST) -> Value:
    from nnx_lint.model.calls import Arguments

    kept = fields_of(held)
    if kept is None or args.starred or not isinstance(held, Obj):
        return UNKNOWN
    return instantiate(interp, frame, held.cls, Arguments(node, [], kept | args.keywords, []), node)


def _with_entries(interp: Interpreter, frame: Frame, held: Obj, told: Value, args: Arguments) -> Value:
    """A record that is made anew, with what a dict has in it."""
    from nnx_lint.model.calls import Arguments

    pairs = told.items if isinstance(told, DictVal) and told.exact else [(UNKNOWN, UNKNOWN)]
    given = {str(key.value): value for key, value in pairs if isinstance(key, Const)}
    whole = len(given) == len(pairs)
    return _with_fields(interp, frame, held, Arguments(args.node, [], given, []), args.node) if whole else UNKNOWN


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("attr.evolve", "attrs.evolve", "copy.replace", "dataclasses.replace"), _replaced),
    **dict.fromkeys(("attr.asdict", "attrs.asdict", "dataclasses.asdict"), _asdict),
    "os.path.join": _joined_path,
    "builtins.list": _sequence("list"),
    "builtins.tuple": _sequence("tuple"),
    "builtins.set": _sequence("set"),
    "builtins.frozenset": _sequence("frozenset"),
    "collections.deque": _sequence("deque"),
    "builtins.sorted": _sequence("list"),
    "builtins.reversed": _reversed,
    "builtins.filter": _elements_as("generator"),
    "builtins.dict": _dict,
    "collections.OrderedDict": _dict,
    "builtins.enumerate": _enumerate,
    "builtins.range": _range,
    **sequences.HANDLERS,
    "numpy.prod": sequences.numeric(arithmetic.FUNCTIONS["math.prod"], UNKNOWN),
    "builtins.int": sequences.numeric(int, Other("an int"), named=True),
    "builtins.float": sequences.numeric(float, Other("a float")),
    **dict.fromkeys(("time.time", "time.monotonic", "time.perf_counter", "random.random"), _plain("a float")),
    "builtins.bool": _plain("a bool"),
    "builtins.str": _plain("a string"),
    "builtins.len": _len,
    "builtins.isinstance": _plain("a bool"),
    "builtins.hasattr": _hasattr,
    "builtins.callable": _plain("a bool"),
    "builtins.repr": _plain("a string"),
    "builtins.id": _plain("an int"),
    "builtins.hash": _plain("an int"),
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.type": _type,
    "builtins.property": _property,
    "builtins.vars": _vars,
    "typing.cast": _cast,
    "collections.namedtuple": _named_tuple,
    "typing.NamedTuple": _named_tuple,
    "importlib.import_module": _import_module,
    "builtins.object.__setattr__": _object_setattr,
    "builtins.object.__new__": _object_new,
}
