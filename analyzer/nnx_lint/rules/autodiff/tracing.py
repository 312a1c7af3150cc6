"""Arguments of traced functions: conditions on them (NNX465), sizes from them (NNX469), static ones (NNX414, NNX407).

An argument is traced if the call gives it and no option makes it static. What a call leaves to a default stays a
Python value.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Edit, Fix
from nnx_lint.model.annotations import declared_name, parse_string
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, FrozenDictVal, Seq
from nnx_lint.model.crossing import kept_keywords, kept_positions, literal_positions, statics_known
from nnx_lint.model.events import Called, TransformApplied
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import is_number
from nnx_lint.model.frames import Frame
from nnx_lint.model.modules import Env
from nnx_lint.model.naming import value_at
from nnx_lint.model.python import fields_of
from nnx_lint.model.states import TransformationVal
from nnx_lint.model.unions import options
from nnx_lint.model.values import (
    STRING,
    Array,
    ClassVal,
    Const,
    FieldVal,
    Obj,
    Other,
    ParameterNumber,
    ParameterVal,
    Value,
)
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.autodiff.standins import standing_in
from nnx_lint.rules.callees import TRANSFORMED
from nnx_lint.rules.edits import remove_argument, replace, unsafe
from nnx_lint.rules.program import (
    assigned_in,
    calls_in,
    canonical_of,
    keyword_node,
    own_nodes,
    resolved,
)
from nnx_lint.rules.traces.mends import COMPILING
from nnx_lint.rules.variables.promoting import assigned_value
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.attributes import Kind
from nnx_rules.rules import autodiff as rules
from nnx_rules.rules.transforms import MISSING_PARAMETER, NOT_AN_ARRAY, UNHASHABLE_STATIC_ARGUMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.fields import Field

TRACING = frozenset({"jax.jit", "nnx.jit", "jax.checkpoint", "nnx.remat"})


def transformed_of(callee: Value) -> tuple[Transformed | None, bool]:
    """The function under a transform that a call runs, and whether it is a method of an object."""
    if isinstance(callee, Obj):
        found = callee.cls.find("__call__") if isinstance(callee.cls, UserClass) else None
        return (found[1], True) if found is not None and isinstance(found[1], Transformed) else (None, False)
    if isinstance(callee, BoundMethod):
        return (callee.func, True) if isinstance(callee.func, Transformed) else (None, False)
    return (callee, False) if isinstance(callee, Transformed) else (None, False)


def calls_traced(event: Called) -> bool:
    """Whether a function is called all of whose arguments are traced, but for static ones."""
    transformed, _ = transformed_of(event.callee)
    return transformed is not None and transformed.applied.row.name in TRACING


class Traced(NamedTuple):
    """The transform and the function of a call.

    ``shift`` says which parameter the first argument is for: the receiver of a method comes before, and what a partial
    holds. ``filled`` of these were there before the transform, as in ``jax.jit(self.step)``: its options do not count
    them.
    """

    applied: TransformVal
    func: FuncVal
    shift: int
    filled: int

    def kept(self, count: int) -> set[int]:
        """Which of so many parameters the transform hands over as they are."""
        places = kept_positions(self.applied, self.func, count - self.filled, self.filled)
        return {place + self.filled for place in places}

    def kept_by_name(self, given: Iterable[str]) -> set[str]:
        """Which keyword arguments the transform hands over as they are."""
        return kept_keywords(self.applied, self.func, given, self.filled)


def called(event: Called) -> Traced | None:
    """What a call of a transformed function calls."""
    transformed, bound = transformed_of(event.callee)
    func = transformed.func if transformed is not None else None
    if isinstance(func, Transformed):
        func = func.func
    filled = int(isinstance(func, BoundMethod) and not bound)
    if isinstance(func, BoundMethod) and filled:
        func = func.func
    elif isinstance(func, PartialVal) and not bound and not func.keywords:
        filled = len(func.args)
        func = func.func
    if transformed is None or not isinstance(func, FuncVal) or func.wraps is not None:
        return None
    if "**" in transformed.applied.keywords:
        return None
    return Traced(transformed.applied, func, max(int(bound), filled), filled)


# -- conditions --------------------------------------------------------------------------------------------------------


@judges_calls(rules.TRACED_FLAG, *TRANSFORMED, when=calls_traced)
def traced_condition(event: Called, report: Reporter) -> None:
    found = called(event)
    if found is None or None in event.args:
        return
    applied, func, shift, filled = found
    known = all(
        value is None or literal_positions(value, default=()) is not None or literal_names(value) is not None
        for value in (applied.keywords.get(option) for option in applied.row.static_options)
    )
    parameters = syntax_parameters.positional_names(func.node.args)
    if not known:
        return
    kept = found.kept(len(parameters))
    given = [(shift + place, value) for place, value in enumerate(event.args)]
    given += [(parameters.index(name), value) for name, value in event.keywords.items() if name in parameters]
    if applied.row.name in COMPILING:  # a derivative leaves what it is given by name alone
        named = [item.arg for item in func.node.args.kwonlyargs]
        static = found.kept_by_name(named)
        parameters += named
        traced = (name for name in event.keywords if name in named and name not in static)
        given += [(parameters.index(name), event.keywords[name]) for name in traced]
    for place, value in given:
        if place >= len(parameters) or place in kept or not (_is_flag(value) or _is_flag_of_caller(event.frame, value)):
            continue
        test = _decides(func, parameters[place]) or _decided_by_layer(func, _receiver(event, shift), parameters[place])
        if test is not None:
            fix, mend = _made_static(applied, func, place - filled, parameters[place])
            also = (related(event.frame.module, event.node, "called with this flag"),)
            what = f"an argument of a function under `{applied.text}`"
            report(func.module, test, fix=fix, name=parameters[place], what=what, mend=mend, related=also)
            return


def literal_names(value: Value) -> list[str] | None:
    """Names written as a string or a tuple of strings; ``None`` if they are not known."""
    items = value.items if isinstance(value, Seq) and value.exact else [value]
    found = [item.value for item in items if isinstance(item, Const) and isinstance(item.value, str)]
    return found if len(found) == len(items) else None


def _is_flag(value: Value | None) -> bool:
    return isinstance(value, Const) and isinstance(value.value, (bool, str))


def _is_flag_of_caller(frame: Frame, value: Value | None) -> bool:
    """Whether a value is a parameter of the calling function that is a flag by default."""
    known = [item for item in options(value) if isinstance(item, (ParameterNumber, ParameterVal))] if value else []
    return len(known) == 1 and frame.func is not None and _is_flag(frame.func.defaults.get(known[0].name))


def _receiver(event: Called, shift: int) -> Value | None:
    """The object that a method runs on, which a call by its class gets as the first argument."""
    if not shift:
        return event.args[0] if event.args else None
    if isinstance(event.callee, Transformed) and isinstance(event.callee.func, BoundMethod):
        return event.callee.func.receiver
    return event.callee.receiver if isinstance(event.callee, BoundMethod) else event.callee


DECIDING = {"BatchNorm": "use_running_average", "Dropout": "deterministic"}
"""Options by which a layer of the library decides in Python what it does."""


def _decided_by_layer(func: FuncVal, receiver: Value | None, name: str) -> ast.expr | None:
    """Where a method hands a parameter to a layer of its object that asks for the truth of it."""
    this = func.node.args.args[0].arg if func.node.args.args else None
    for call in calls_in(func.node) if isinstance(receiver, Obj) and not assigned_in(func.node)[name] else ():
        target = call.func
        if isinstance(target, ast.Attribute) and is_name(target.value, this):
            attr = attribute_of(receiver, target.attr) if isinstance(receiver, Obj) else None
            layer = attr.value if attr is not None else None
            library = layer.cls.called_as if isinstance(layer, Obj) else None
            option = DECIDING.get(library.name) if library is not None else None
            given = keyword_node(call, option) if option is not None else None
            if is_name(given, name):
                return given
    return None


def _decides(func: FuncVal, name: str) -> ast.expr | None:
    """The condition of a function that asks for the truth of a parameter, which nothing binds anew."""
    for node in walk(func.node):
        if is_name(node, name) and not isinstance(node.ctx, ast.Load):
            return None
    for node in own_nodes(func.node):
        test = node.test if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)) else None
        test = node if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else test
        found = _asked(test, name) if test is not None else None
        if found is not None:
            return found
    return None


def _asked(test: ast.expr, name: str) -> ast.expr | None:
    if is_name(test, name):
        return test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asked(test.operand, name)
    if isinstance(test, ast.BoolOp):
        return _asked(test.values[0], name)
    if isinstance(test, ast.Compare) and is_name(test.left, name):
        plain = isinstance(test.ops[0], (ast.Eq, ast.NotEq)) and isinstance(test.comparators[0], ast.Constant)
        return test.left if plain else None
    return None


def _made_static(applied: TransformVal, func: FuncVal, place: int, name: str) -> tuple[Fix | None, str]:
    """Name a parameter in the options of the transform, where these can be written in place."""
    row, node = applied.row.name, applied.node
    option = f'static_argnames="{name}"' if row in COMPILING else f"static_argnums=({place},)"
    mend = (
        f"make it static: `{applied.text}({'f, ' if not isinstance(node, (ast.Name, ast.Attribute)) else ''}{option})`"
    )
    bare = isinstance(node, (ast.Name, ast.Attribute)) and row.startswith("nnx.")
    decorated = isinstance(func.node, ast.FunctionDef) and node in func.node.decorator_list
    if not bare or not decorated:
        return None, mend
    text = f"{func.module.source.segment(node)}({option})"
    return Fix(f"Make `{name}` static", (Edit(func.module.source.span(node), text),)), mend


# -- sizes -------------------------------------------------------------------------------------------------------------


@judges_calls(rules.TRACED_SIZE, "builtins.range")
def traced_size(event: Called, report: Reporter) -> None:
    for value, node in zip(event.args, event.nodes, strict=False):
        scope = next((each for each in event.frame.scope if each.level > 0), None)
        traced = isinstance(value, Array) or (isinstance(value, Obj) and value.cls.is_variable)
        if scope is not None and traced and isinstance(value, (Array, Obj)) and value.level >= scope.level:
            if scope.row.name not in TRACING or not event.frame.certain_within(scope):
                continue
            fix: Callable[[], Fix | None] | None = partial(_plain_number, event.frame, node)
            applied: TransformVal | None = scope.applied
        else:
            fix, applied = None, standing_in(event.frame, node)
        if applied is not None:
            report(event.frame.module, node, fix=fix, name=text_of(node), transform=applied.text, function=event.name)
            return


def _plain_number(frame: Frame, node: ast.expr) -> Fix | None:
    """Keep a number that is written out as what it is."""
    obj = value_at(frame, node.value) if isinstance(node, ast.Attribute) else None
    attr = attribute_of(obj, node.attr) if isinstance(obj, Obj) and isinstance(node, ast.Attribute) else None
    made = assigned_value(attr, frame.module) if attr is not None else None
    number = made.args[0] if isinstance(made, ast.Call) and len(made.args) == 1 else None
    if made is None or not isinstance(number, ast.Constant) or type(number.value) is not int:
        return None
    return unsafe("Keep it as a plain number", replace(frame.module.source, made, str(number.value)))


# -- static arguments --------------------------------------------------------------------------------------------------


NAMING = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames")
"""The options that name arguments."""


@judges(MISSING_PARAMETER, TransformApplied)
def missing_parameter(event: TransformApplied, report: Reporter) -> None:
    applied = event.applied
    method = isinstance(event.func, BoundMethod)
    func = event.func.func if isinstance(event.func, BoundMethod) else event.func
    if not applied.row.cached or not isinstance(func, FuncVal) or func.wraps is not None or func.decorators:
        return
    arguments = func.node.args
    names = syntax_parameters.positional_names(arguments)[method:]
    known = {*names, *(item.arg for item in arguments.kwonlyargs)}
    for option in NAMING:
        value = applied.keywords.get(option)
        wrong: list[str] = []
        if value is not None and option.endswith("names") and arguments.kwarg is None:
            wrong = [repr(name) for name in literal_names(value) or () if name not in known]
        elif value is not None and option.endswith("nums") and arguments.vararg is None and not method:
            places = literal_positions(value, default=()) or ()
            wrong = [str(place) for place in places if not -len(names) <= place < len(names)]
        if wrong and applied.module is event.frame.module:
            kind = "static" if option.startswith("static") else "donated"
            given = " and ".join(wrong)
            report(event.frame.module, applied.node, transform=applied.row.name, option=kind, given=given)


@judges_calls(UNHASHABLE_STATIC_ARGUMENT, *TRANSFORMED, when=calls_traced)
def unhashable_static_argument(event: Called, report: Reporter) -> None:
    found = called(event)
    if found is None or found.applied.row.name not in COMPILING:
        return
    applied, shift = found.applied, found.shift
    places = found.kept(len(event.args) + shift)
    named = found.kept_by_name(event.keywords)
    given: list[tuple[bool, str, Value | None, ast.expr | None]] = [
        (place + shift in places, str(place), value, node)
        for place, (value, node) in enumerate(zip(event.args, event.nodes, strict=False))
    ]
    given += [
        (name in named, repr(name), value, keyword_node(event.node, name)) for name, value in event.keywords.items()
    ]
    for static, argument, value, node in given:
        if not static or value is None or node is None or isinstance(node, ast.Starred):
            continue
        # What is an object of NNX has a hash, by identity, that JAX makes do with.
        known = isinstance(value, Obj) and (value.cls.is_pytree or value.cls.is_variable)
        if _has_no_hash(value) and not (known and applied.row.name == "jax.jit"):
            fix = partial(_traced, applied) if known else None
            text = value.describe()
            report(event.frame.module, node, fix=fix, argument=argument, transform=applied.text, given=text)


def _traced(applied: TransformVal) -> Fix | None:
    """Pass an object as any other argument, where it is the only one that is to be static."""
    call, node = applied.node, keyword_node(applied.node, "static_argnums")
    if not isinstance(call, ast.Call) or not isinstance(node, ast.Constant):
        return None
    return unsafe("Leave out `static_argnums`", remove_argument(applied.module.source, call, node))


@judges_calls(NOT_AN_ARRAY, *TRANSFORMED, when=calls_traced)
def value_as_array(event: Called, report: Reporter) -> None:
    found = called(event)
    if found is None or found.applied.row.name not in TRACING or not statics_known(found.applied):
        return
    applied, func, shift = found.applied, found.func, found.shift
    kept = {place - shift for place in found.kept(len(event.args) + shift)}
    parameters = syntax_parameters.positional_names(func.node.args)[shift:]
    kept |= {
        place
        for place, (value, name) in enumerate(zip(event.args, parameters, strict=False))
        if _is_flag(value) and _decides(func, name) is not None  # that is said where it decides
    }
    given: list[tuple[bool, str, Value | None, ast.expr | None]] = [
        (place not in kept, parameters[place] if place < len(parameters) else "", value, node)
        for place, (value, node) in enumerate(zip(event.args, event.nodes, strict=False))
    ]
    named = found.kept_by_name(event.keywords)
    given += [
        (name not in named, name, value, keyword_node(event.node, name)) for name, value in event.keywords.items()
    ]
    for traced, name, value, node in given:
        if value is None or not traced or node is None or isinstance(node, ast.Starred):
            continue
        for path, part in _parts(value):
            what = _no_array(event, part) or (None if path else _said(event, func, name, part))
            if what is not None:
                shown = "..." if path and isinstance(node, (ast.Dict, ast.List, ast.Tuple)) else text_of(node)
                report(event.frame.module, node, path=shown + path, given=what, transform=applied.text)
                break


def _parts(value: Value) -> Iterator[tuple[str, Value]]:
    """A value, and what it certainly holds where it is a plain container or a record, each with the path to it."""
    yield "", value
    cls = value.cls if isinstance(value, Obj) else None
    if isinstance(cls, UserClass) and (cls.named_tuple or cls.leaf_names):
        for name, part in (fields_of(value) or {}).items():
            if cls.named_tuple or name in cls.leaf_names:
                yield from ((f".{name}{path}", held) for path, held in _parts(part))
    if isinstance(value, (DictVal, Seq)) and value.exact and not value.shrunk and not value.fills:
        entries = value.items if isinstance(value, DictVal) else enumerate(value.items)
        for key, part in entries:
            place = key.value if isinstance(key, Const) else key
            if isinstance(place, (str, int)):
                yield from ((f"[{place!r}]{path}", held) for path, held in _parts(part))


REGISTERING = ("register_pytree", "register_dataclass", "register_static")
"""What makes a class known to JAX, also by code that nobody is seen to run, begins like that."""


def _no_array(event: Called, value: Value | None) -> str | None:
    """What a value is that JAX certainly cannot take for an array or a tree of arrays."""
    if isinstance(value, Const):
        return "a string" if isinstance(value.value, str) else None
    if value is STRING:
        return "a string"
    if isinstance(value, FuncVal):
        return value.describe()
    if isinstance(value, TransformationVal):
        return value.describe()
    if isinstance(value, Obj) and isinstance(value.cls, UserClass) and value.kind is Kind.OTHER:
        cls = value.cls
        plain = value.origin is not None and not value.assumed and cls.library is None and not cls.opaque
        known = cls.decorators.keys() <= {"dataclasses.dataclass"} and not cls.named_tuple
        modules = {event.frame.module, *(item.module for item in cls.ancestors if isinstance(item, UserClass))}
        known = known and not any(module.mentions(*REGISTERING) for module in modules)
        return f"an object of `{cls.name}`, a class that JAX does not know" if plain and known else None
    return None


def _said(event: Called, func: FuncVal, name: str, value: Value) -> str | None:
    """What the annotation of the parameter that a value goes to says that it is, where JAX takes no such thing."""
    note = next((each.annotation for each in syntax_parameters.each(func.node.args) if each.arg == name), None)
    env = func.env if isinstance(func.env, Env) else None
    if note is None or env is None or isinstance(value, Array) or (isinstance(value, Const) and value.value is None):
        return None
    note, frame = parse_string(note), Frame(func.module, env)
    known = isinstance(value, Const) or (isinstance(value, Other) and is_number(value))
    if is_name(note, "str") and not known:
        return "a string" if env.lookup("str") is None else None
    if isinstance(note, ast.Subscript) and declared_name(frame, note) == "typing.Literal" and not known:
        parts = note.slice.elts if isinstance(note.slice, ast.Tuple) else [note.slice]
        strings = all(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts)
        return "a string" if strings else None
    said = resolved(env, note)
    cls = said.cls if isinstance(said, ClassVal) else None
    if not isinstance(cls, UserClass) or any(each.mentions(*REGISTERING) for each in (cls.module, event.frame.module)):
        return None
    bases = {canonical_of(cls.module.env, base) for base in cls.node.bases}
    is_enum = not bases.isdisjoint(ENUMS) and bases <= ENUMS | {"builtins.str"}  # members may be numbers, too
    return f"a member of `{cls.name}`, which is no array" if is_enum else None


ENUMS = frozenset({"enum.Enum", "enum.StrEnum"})
"""Classes whose members are no arrays, unless they have another base beside these that is of numbers."""


def _has_no_hash(value: Value) -> bool:
    """Whether a value certainly cannot tell compiled functions apart."""
    if isinstance(value, Obj):
        return value.cls.is_pytree or value.cls.is_variable or is_record_without_hash(value)
    return isinstance(value, Array) or _is_made_mutable(value)


def is_record_without_hash(obj: Obj) -> bool:
    """Whether an object is of a dataclass that compares by value.

    It has a hash only where it is frozen, and that is the hash of its fields.
    """
    cls = obj.cls
    if not isinstance(cls, UserClass) or obj.assumed or cls.is_open or cls.opaque or cls.remade:
        return False
    for item in cls.lineage:
        made = item.decorators.get("dataclasses.dataclass")
        options = made.keywords if isinstance(made, ast.Call) else []
        if not {"__eq__", "__hash__"}.isdisjoint({*item.methods, *item.attributes}):
            return False
        if any(not isinstance(option.value, ast.Constant) for option in options):
            return False
        if made is None or item.option("eq") is False:
            continue
        if item.option("frozen") is not True and item.option("unsafe_hash") is not True:
            return True
        held = [attribute_of(obj, field.name) for field in cls.all_fields() if _is_filled(obj, field)]
        plain = [attr.value for attr in held if attr is not None and len(attr.assignments) < 2]
        return any(_is_made_mutable(each) for each in plain)
    return False


def _is_filled(obj: Obj, field: Field) -> bool:
    """Whether it is known what an object has in a field: it was given, or a factory has made it."""
    made = isinstance(field.value, FieldVal) and "default_factory" in field.value.keywords
    return made or field.name in obj.attrs or field.name in (obj.args or {})


def _is_made_mutable(value: Value) -> bool:
    """Whether a value is a list, set or dict that the program makes.

    People annotate shapes as ``list[int]`` and give tuples, and give frozen mappings for a ``dict``.
    """
    if isinstance(value, FrozenDictVal):
        return False
    mutable = isinstance(value, DictVal) or (isinstance(value, Seq) and value.type in {"list", "set"})
    return mutable and isinstance(value, (DictVal, Seq)) and value.node is not None


def is_traced_parameter(frame: Frame, name: str) -> bool:
    """Whether a name is a parameter of the running function that a transform traces: a number there is no number."""
    scope = frame.scope[-1] if frame.scope else None
    if scope is None or scope.frame is not frame or scope.row.name not in TRACING or frame.func is None:
        return False
    parameters = syntax_parameters.positional_names(frame.func.node.args)
    call = frame.call
    if name not in parameters or not isinstance(call, ast.Call) or "**" in scope.applied.keywords or scope.held:
        return False
    place = parameters.index(name)
    shift = 0 if frame.receiver is None else 1
    given = place - shift < len(call.args) or any(item.arg == name for item in call.keywords)
    return given and place not in kept_positions(scope.applied, frame.func, len(parameters))
