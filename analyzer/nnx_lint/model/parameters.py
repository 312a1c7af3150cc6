"""Parameters: what they are bound to when a function is called, and when it runs on its own.

Of a parameter that nobody gives, known is what its annotation says, else a default that is an NNX object, else what the
function uses it as (:mod:`~nnx_lint.model.uses`). Of a receiver it is what the constructor leaves; a flag that is set
elsewhere as well, such as a cache that is ``None`` at first, may be anything by the time when a method runs.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import uses
from nnx_lint.model.annotations import NUMBERS, parse_string, resolve, value_of
from nnx_lint.model.attributes import attribute_names, original_of
from nnx_lint.model.callables import LibraryFunction
from nnx_lint.model.classes import UserClass, method_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.crossing import kept_keywords, statics_known
from nnx_lint.model.frames import Frame
from nnx_lint.model.later import CONSTRUCTORS, is_set_later, made_later, set_later
from nnx_lint.model.states import OptStateVal, StateVal
from nnx_lint.model.symbols import OWN, NamedNumber, NamedOther, NamedParameter, NamedRecord, NamedVal, OptionalNumber
from nnx_lint.model.unions import join, options
from nnx_lint.model.values import (
    NONE,
    NUMBER,
    UNKNOWN,
    Array,
    Attr,
    ClassVal,
    Computed,
    Const,
    Ext,
    Obj,
    Other,
    ParameterFlag,
    ParameterNumber,
    ParameterVal,
    Unknown,
    Value,
)
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.sizes import named
from nnx_rules.transforms import COMPILING_ONLY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.callables import FuncVal, TransformVal
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.interpreter import Interpreter


def receiver_of(interp: Interpreter, func: FuncVal) -> Value | None:
    """What ``self`` (or ``cls``) is in a method run on its own."""
    func = func.wrapped
    if func.cls is None or isinstance(func.node, ast.Lambda):
        return None
    if "staticmethod" in func.decorators:
        return None
    if "classmethod" in func.decorators:
        # It is for the classes below as well, which may be made in another way.
        lowest = isinstance(func.cls, UserClass) and not interp.project.heirs.exist(func.cls.name)
        return ClassVal(func.cls) if lowest else UNKNOWN
    if func.name == "__new__":
        return ClassVal(func.cls)
    if _takes_no_object(interp, func):
        return None
    from nnx_lint.model.construct import model_of

    obj = model_of(interp, func.cls, fresh=True)
    obj.given = obj.args, obj.binds, _usual(interp, func.cls) or OWN
    # The forward pass must work in training; of other methods it is not known in which mode they are called.
    obj.training = True if func.name == "__call__" else None
    if obj.template is not None and func.name not in CONSTRUCTORS:
        for name, attr in obj.template.attrs.items():
            if isinstance(attr.value, Const) and _is_flag(attr.value) and is_set_later(func.cls, name):
                obj.attrs[name] = later = Attr(_declared_as(interp, func.cls, attr), attr.declared)
                later.assignments = attr.assignments
        if isinstance(func.cls, UserClass) and not func.cls.tracked:
            _add_made_later(interp, func.cls, obj)
    return obj


def _add_made_later(interp: Interpreter, cls: UserClass, obj: Obj) -> None:
    """Give a plain object the objects of NNX that methods of its class make besides the constructor, such as the
    optimizer of a trainer, and that nothing else sets.
    """
    for item in cls.lineage:
        for name, text in made_later(item.node):
            known = obj.template.attrs.get(name) if obj.template is not None else None
            absent = known is None or (isinstance(known.value, Const) and known.value.value is None)
            if not text or not absent or _is_set_elsewhere(interp, cls, item, name):
                continue
            made = value_of(interp, Frame(item.module, item.module.env), ast.Constant(text))
            if isinstance(made, Obj) and made.cls.tracked:
                obj.attrs[name] = Attr(made if known is None else join(made, NONE))


def _is_set_elsewhere(interp: Interpreter, cls: UserClass, made_in: UserClass, name: str) -> bool:
    """Whether something else than the methods of a class sets an attribute: another class of the line, or above or
    below, or what has the object in hand.
    """
    line = cls.lineage
    if any(item is not made_in and name in dict(made_later(item.node)) for item in line):
        return True
    if any(item.module.has(f".{name}", set_later) for item in line):
        return True
    heirs = interp.project.heirs.mentioning(cls.name, f".{name}")
    return any(name in dict(made_later(heir)) for heir in heirs)


def _usual(interp: Interpreter, cls: ClassBase) -> dict[str, Value] | None:
    """The numbers that the constructor of a class has as defaults, if nobody needs to give it any."""
    found = method_of(cls, "__init__") if isinstance(cls, UserClass) else None
    if found is None:
        return None
    func = found[1].wrapped
    arguments = func.node.args
    needed = [
        parameter
        for parameter in (*syntax_parameters.positional(arguments)[1:], *arguments.kwonlyargs)
        if parameter.arg not in func.defaults and not _is_streams(interp, func, parameter)
    ]
    numbers = {name: value.value for name, value in func.defaults.items() if isinstance(value, Const)}
    known: dict[str, Value] = {name: Computed(value) for name, value in numbers.items() if type(value) is int}
    return known if not needed and known else None


def _is_streams(interp: Interpreter, func: FuncVal, parameter: ast.arg) -> bool:
    annotation = syntax_parameters.said_of(parameter)
    if annotation is None:
        return parameter.arg == "rngs"
    said = value_of(interp, Frame(func.module, func.module.env), annotation)
    return isinstance(said, Obj) and said.cls.derives_from("nnx.Rngs")


def _takes_no_object(interp: Interpreter, func: FuncVal) -> bool:
    """Whether the first parameter says that it is no instance: a helper that is only called through the class,
    `Net.load(state, path)`, and is no static method by name.
    """
    first = syntax_parameters.positional(func.node.args)[:1]
    node = first[0].annotation if first else None
    if node is None or not isinstance(func.cls, UserClass):
        return False
    said = options(value_of(interp, Frame(func.module, func.module.env), node))
    return not any(isinstance(item, (Unknown, Obj)) for item in said)


def _is_flag(value: Const) -> bool:
    return value.value is None or isinstance(value.value, (bool, str))


def _declared_as(interp: Interpreter, cls: ClassBase, attr: Attr) -> Value:
    """What the annotation of an attribute says where the constructor assigns it."""
    node = attr.first.node if attr.first is not None else None
    if not isinstance(node, ast.AnnAssign) or not isinstance(cls, UserClass):
        return UNKNOWN
    return value_of(interp, Frame(cls.module, cls.module.env), node.annotation)


def bind_entry(interp: Interpreter, frame: Frame, func: FuncVal, receiver: Value | None) -> None:
    """Bind the parameters of an entry."""
    arguments = func.node.args
    parameters = syntax_parameters.positional(arguments)
    names = frame.env.names
    for position, parameter in enumerate(parameters):
        if position == 0 and receiver is not None:
            names[parameter.arg] = receiver
            frame.receiver = receiver
        else:
            names[parameter.arg] = _at_entry(interp, frame, func, parameter)
    for parameter in arguments.kwonlyargs:
        names[parameter.arg] = _at_entry(interp, frame, func, parameter)
    _bind_variadic(interp, frame, func)


def _at_entry(interp: Interpreter, frame: Frame, func: FuncVal, parameter: ast.arg) -> Value:
    value = _parameter(interp, frame, func, parameter)
    if frame.initializing is None:
        return value
    if value is UNKNOWN and parameter.annotation is not None:
        return NamedRecord(parameter.arg)
    return _by_name(value, parameter.arg)


def _by_name(value: Value, name: str) -> Value:
    """A parameter of a constructor that runs on its own, with names for the numbers that it may be or hold."""
    if type(value) is ParameterVal:
        return NamedParameter(value.name, value.required)
    if isinstance(value, Obj) and isinstance(value.node, ast.arg) and not value.cls.tracked:
        _name_fields(value, value.node.arg)
    numbers = [item for item in options(value) if type(item) is ParameterNumber]
    rest = [item for item in options(value) if item not in numbers]
    known = [item for item in options(value) if not (isinstance(item, Const) and item.value is None)]
    if len(known) == 1 < len(options(value)) and type(known[0]) in {Other, ParameterNumber}:
        return join(OptionalNumber(name), NONE)
    counted = all(map(_is_count, rest))  # the default of it
    return NamedNumber(numbers[0].name) if len(numbers) == 1 and counted else value


def _name_fields(record: Obj, parameter: str) -> None:
    for name in attribute_names(record):
        known = original_of(record, name)
        made = _named_as(known.value, f"{parameter}.{name}") if known is not None else None
        if known is not None and made is not None:
            attr = record.attrs[name] = Attr(made, known.declared)
            attr.assignments = known.assignments


def _named_as(value: Value, name: str) -> Value | None:
    """A number by its name, where a field may be one: by its annotation, or since the constructor is given it."""
    found = options(value)
    if all(isinstance(each, Other) or _is_count(each) for each in found) and not all(map(_is_count, found)):
        return NamedOther(named(name))
    return NamedVal(named(name)) if isinstance(value, ParameterVal) else None


def _is_count(value: Value) -> bool:
    return isinstance(value, Const) and type(value.value) is int


def wanted(interp: Interpreter, frame: Frame, func: FuncVal, applied: TransformVal) -> dict[str, Value]:
    """The parameters that every caller of a compiled function must give, and that are numbers by their annotations, or
    as what ends a loop; and the static ones that are annotated as arrays, which are none of the trace.
    """
    arguments = func.node.args
    found: dict[str, Value] = {}
    static = kept_keywords(applied, func, syntax_parameters.names(arguments))
    for parameter in (*syntax_parameters.positional(arguments), *arguments.kwonlyargs):
        if parameter.arg in static and isinstance(_each(interp, frame, parameter), Array):
            found[parameter.arg] = Array(frame.level)
            continue
        if parameter.arg in func.defaults:
            continue
        if parameter.annotation is None:
            number = parameter.arg in _counted(func.node)
        else:
            head = resolve(interp, frame, parse_string(parameter.annotation))
            number = isinstance(head, Ext) and head.name in NUMBERS
        if number:
            found[parameter.arg] = NUMBER
    return found


@remembered
def _counted(func: ast.AST) -> frozenset[str]:
    """The names that loops count to: ``for i in range(n)``."""
    ranges = (item.iter for item in walk(func) if isinstance(item, (ast.For, ast.comprehension)))
    return frozenset(
        name.id
        for each in ranges
        if isinstance(each, ast.Call) and is_name(each.func, "range")
        for name in each.args
        if isinstance(name, ast.Name)
    )


def _bind_variadic(interp: Interpreter, frame: Frame, func: FuncVal) -> None:
    """Bind ``*args`` and ``**kwargs`` that nobody gave to containers of any number of what their annotations say."""
    arguments, names = func.node.args, frame.env.names
    if arguments.vararg is not None and arguments.vararg.arg not in names:
        names[arguments.vararg.arg] = Seq("tuple", [_each(interp, frame, arguments.vararg)], frame.level, exact=False)
    if arguments.kwarg is not None and arguments.kwarg.arg not in names:
        items: list[tuple[Value, Value]] = [(UNKNOWN, _each(interp, frame, arguments.kwarg))]
        names[arguments.kwarg.arg] = DictVal(items, frame.level, exact=False)


def _each(interp: Interpreter, frame: Frame, parameter: ast.arg) -> Value:
    return UNKNOWN if parameter.annotation is None else value_of(interp, frame, parameter.annotation)


def _parameter(interp: Interpreter, frame: Frame, func: FuncVal, parameter: ast.arg) -> Value:
    """The value of a parameter that nobody gave: by its annotation, which a default may widen (`x: Param = None`),
    else by a default that is an NNX object or an initializer, else unknown.
    """
    default = func.defaults.get(parameter.arg)
    if default is not None and any(isinstance(item, Obj) and item.cls.tracked for item in options(default)):
        return default
    if isinstance(default, LibraryFunction):
        return LibraryFunction(default.result, default.maker)  # what is given instead is called in the same way
    said = syntax_parameters.said_of(parameter)
    if said is not None:
        annotated = value_of(interp, frame, said)
        if type(annotated) is Other:
            annotated = ParameterNumber(parameter.arg)
        elif isinstance(annotated, Obj) and annotated.node is None:
            annotated.node = parameter
        return annotated if default is None else join(annotated, default)
    optional = isinstance(default, Const) and default.value is None
    counted = default is not None and _is_count(default)
    used_as = uses.uses_of(interp, frame, func).get(parameter.arg) if default is None or optional or counted else None
    if used_as is uses.COUNT:
        number = ParameterNumber(parameter.arg)
        return number if default is None else join(number, default)
    if used_as is not None and not counted:
        is_state = used_as is uses.STATE
        used = StateVal(UNKNOWN, frame.level, UNKNOWN) if is_state else interp.instance(used_as, frame.level)
        if isinstance(used, Obj):
            used.node = parameter  # which parameter it is: what is made with it may keep it
        return join(used, NONE) if optional else used
    flag = isinstance(default, Const) and isinstance(default.value, bool)
    return ParameterFlag(parameter.arg, required=False) if flag else ParameterVal(parameter.arg, default is None)


def bind(
    interp: Interpreter, frame: Frame, func: FuncVal, args: list[Value | None], keywords: dict[str, Value]
) -> None:
    """Bind arguments to parameters; what is not given is a default or unknown."""
    arguments = func.node.args
    names = frame.env.names
    parameters = syntax_parameters.positional(arguments)
    starred = None in args
    certain = args[: args.index(None)] if starred else args
    for position, parameter in enumerate(parameters):
        given = certain[position] if position < len(certain) else keywords.get(parameter.arg)
        if given is None:
            given = _missing(interp, frame, func, parameter, starred or "**" in keywords)
        elif isinstance(given, Unknown) and (said := syntax_parameters.said_of(parameter)) is not None:
            annotated = value_of(interp, frame, said)
            if type(annotated) is Other and given.symbol is not None:
                annotated = NamedOther(given.symbol)
            given = given if annotated is UNKNOWN and isinstance(given, OptStateVal) else annotated
            if type(given) is Other and _is_traced_number(interp, frame, func, parameter):
                given = Array(frame.level)
        names[parameter.arg] = given
    for parameter in arguments.kwonlyargs:
        given = keywords.get(parameter.arg)
        names[parameter.arg] = _missing(interp, frame, func, parameter, "**" in keywords) if given is None else given
    if arguments.vararg is not None and not starred and len(certain) >= len(parameters):
        rest = [value if value is not None else UNKNOWN for value in certain[len(parameters) :]]
        names[arguments.vararg.arg] = Seq("tuple", rest, frame.level)
    if arguments.kwarg is not None and "**" not in keywords:
        named = {item.arg for item in (*arguments.args, *arguments.kwonlyargs)}
        items: list[tuple[Value, Value]] = [(Const(key), value) for key, value in keywords.items() if key not in named]
        names[arguments.kwarg.arg] = DictVal(items, frame.level)
    _bind_variadic(interp, frame, func)


def _is_traced_number(interp: Interpreter, frame: Frame, func: FuncVal, parameter: ast.arg) -> bool:
    """Whether a parameter of a compiled function is a number by its annotation, and no static argument."""
    scope = frame.scope[-1] if frame.scope else None
    if scope is None or scope.frame is not frame or scope.row.name not in COMPILING_ONLY or scope.held:
        return False  # of one that holds arguments, such as a partial, these are no arguments of the transform
    if not statics_known(scope.applied) or kept_keywords(scope.applied, func, (parameter.arg,)):
        return False
    return parameter.arg in wanted(interp, frame, func, scope.applied)


def _missing(interp: Interpreter, frame: Frame, func: FuncVal, parameter: ast.arg, maybe_given: bool) -> Value:
    default = func.defaults.get(parameter.arg)
    if default is not None and not maybe_given:
        return default
    return _parameter(interp, frame, func, parameter)


def exchanged(func: FuncVal, args: Arguments, *, bound: bool = False) -> tuple[str, str] | None:
    """Two parameters of a function of which each gets what the call names like the other one, an object of NNX and
    something that certainly is of another kind: ``evaluate(batch, model)``.
    """
    names = syntax_parameters.positional_names(func.node.args)[bound:]
    if args.starred or len(args.nodes) != len(args.positional):
        return None
    given = {node.id: place for place, node in enumerate(args.nodes) if isinstance(node, ast.Name)}
    for place, name in enumerate(names[: len(args.positional)]):
        other = given.get(name, place)
        if other == place or other >= len(names):
            continue
        if given.get(names[other]) != place:
            moved = _is_moved(args, (place, other), names)
            if moved or (_is_number(args.positional[place]) and _is_tracked(args.positional[other])):
                return (name, names[other]) if place < other else (names[other], name)
        elif place < other and _are_of_two_kinds(args.positional[place], args.positional[other], (name, names[other])):
            return name, names[other]
    return None


def _is_moved(args: Arguments, places: tuple[int, int], names: Sequence[str]) -> bool:
    """Whether an optimizer, under the name of one parameter, is given for another one, and the first gets what the call
    names like a third one: ``step(model, x, y, optimizer)`` of a step that takes it second.
    """
    place, other = places
    node, named = args.nodes[place], "opt" in names[place] and "opt" not in names[other]
    return (
        named
        and _is_optimizer(args.positional[other])
        and isinstance(node, ast.Name)
        and node.id in names
        and node.id != names[place]
    )


def _is_number(value: Value | None) -> bool:
    """Whether a value is a number of Python, one of some that are known."""
    known = options(value) if value is not None else ()
    return bool(known) and all(isinstance(each, Const) and type(each.value) in {int, float} for each in known)


def _is_tracked(value: Value | None) -> bool:
    return isinstance(value, Obj) and value.cls.tracked


def _are_of_two_kinds(one: Value | None, other: Value | None, names: tuple[str, str]) -> bool:
    """Whether one value is an object of NNX, and the other one an object of another kind, or none."""
    objects = [value for value in (one, other) if isinstance(value, Obj) and value.cls.tracked]
    if len(objects) == len((one, other)):
        return sum(map(_is_optimizer, objects)) == 1
    plain = isinstance(one, (Array, DictVal, Seq)) or isinstance(other, (Array, DictVal, Seq))
    stepped = sum("opt" in name for name in names) == 1 == sum(map(_is_optimizer, (one, other)))
    return stepped or (bool(objects) and (plain or not DATA.isdisjoint(names)))


def _is_optimizer(value: Value | None) -> bool:
    """Whether a value certainly is an optimizer, or one of several."""
    known = options(value) if value is not None else ()
    return bool(known) and all(isinstance(each, Obj) and each.cls.derives_from("nnx.Optimizer") for each in known)


DATA = frozenset({"batch", "data", "images", "inputs", "key", "labels", "rng", "targets", "x", "y"})
"""Names of parameters for what is no object of NNX."""
