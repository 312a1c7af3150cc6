"""Sized models: what the constructor of a class makes of the sizes that one call gives it.

The model of a class (:mod:`~nnx_lint.model.construct`) holds what is true of every instance. Of an instance that is
made with numbers, flags, classes of layers, or configurations of numbers more is known: how many layers it has, and of
which sizes; of one that is made with a list of modules or a State, what it puts them into; of one that maps over its
streams, that it is given some.
So the constructor runs once more for each set of such arguments, and says nothing but what it makes of classes and
initializers that it is given.

Invariants: what the constructor is handed follows from the key that the model is kept under, and holds nothing of the
caller; a class that is being modelled gets no sized model, and one whose constructor ends early has none. Of a plain
object, a configuration or a trainer, only the numbers and the modules in it are known: what it says decides no
condition of those that look at it, unless nothing can change it after it was made.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import FuncVal, PartialVal, Transformed, is_closure
from nnx_lint.model.classes import UserClass
from nnx_lint.model.configs import as_dict, copied, is_config, is_record
from nnx_lint.model.construct import build_model, instance_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import AttributeMissed, Called, CalledOneOf, EntryMissed, ItemSet
from nnx_lint.model.later import ITEM, is_set_later
from nnx_lint.model.modules import Env
from nnx_lint.model.states import GradientVal, StateVal
from nnx_lint.model.strings import HOLE
from nnx_lint.model.symbols import NamedRecord
from nnx_lint.model.uses import RNGS
from nnx_lint.model.values import (
    MAX_NESTING,
    UNKNOWN,
    Array,
    Attr,
    ClassVal,
    Computed,
    Const,
    Ext,
    FieldVal,
    HostArray,
    NamespaceVal,
    Obj,
    Other,
    ParameterVal,
    PartitionedArray,
    Unknown,
    Value,
)
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import names_in
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.events import Event
    from nnx_lint.model.interpreter import Interpreter

MAX_SIZED = 16
"""How many sets of arguments of one class an evaluation tells apart."""

MAX_RUNNING = 40
"""How many evaluations may be under way; no program nests that deep."""

STEPS = 4_000
"""How many statements a constructor may execute for it."""


def give_sizes(interp: Interpreter, obj: Obj) -> None:
    """Let an instance be what its constructor makes of its arguments, where these are sizes."""
    cls = obj.cls
    if not isinstance(cls, UserClass) or obj.args is None or not _takes_sizes(cls, obj.args):
        return
    key: list[tuple[str, Hashable | None]] = []
    given: dict[str, Value] = {}
    for name, value in sorted(obj.args.items()):
        known = _known(value)
        key.append((name, known))  # also of what is not known: it is given, and no default stands for it
        told = known is not None or name == "**" or (isinstance(value, Obj) and value.cls is RNGS)
        given[name] = _handed(interp, value, known) if told else NamedRecord(name)
    model = _model(interp, cls, tuple(key), given)
    if model is not None:
        obj.template = model


def is_sized(value: Value | None) -> bool:
    """Whether an object is what its constructor makes of certain sizes, or a copy of one."""
    obj = value if isinstance(value, Obj) else None
    while obj is not None and not obj.sized:
        obj = obj.template
    return obj is not None


def _takes_sizes(cls: UserClass, args: Mapping[str, Value]) -> bool:
    """Whether a constructor that can be run gets a number, or has one as a default and gets nothing unknown."""
    if cls.is_variable or cls.replaced_init or cls.opaque:
        return False
    if cls.generated_init:
        kept = [field.value for field in cls.all_fields() if field.name not in args]
        return (
            any(map(_decides, args.values())) or _is_told_by(kept, {}) or any(map(_is_name_of, [*args.values(), *kept]))
        )
    found = cls.find("__init__")
    func = found[1] if found is not None else None
    if not isinstance(func, FuncVal) or func.wraps is not None:
        return False
    rest = func.node.args.vararg
    if rest is not None and rest.arg not in args:
        return False
    if "**" not in args and any(_is_flag(args.get(name, func.defaults.get(name))) for name in _flags(func.node)):
        return True
    if any(map(_is_part, args.values())) and _gathers(func.node):
        return True
    if any(isinstance(value, Obj) and value.cls is RNGS for value in args.values()) and (
        _maps(func) or _keeps_streams(func.node)
    ):
        return True
    if "**" not in args and any(_is_none(func.defaults.get(name)) for name in _made_up(func.node) if name not in args):
        return True
    return any(map(_decides, args.values())) or _is_told_by(func.defaults.values(), args)


@remembered
def _made_up(func: ast.AST) -> frozenset[str]:
    """The parameters that a constructor puts something of its own in the place of: ``c = c or Config()``."""
    found: set[str] = set()
    for node in walk(func):
        targets = node.targets if isinstance(node, ast.Assign) else []
        made = node.value if isinstance(node, ast.Assign) else None
        parts = made.values if isinstance(made, ast.BoolOp) else [made]
        parts = [made.body, made.orelse] if isinstance(made, ast.IfExp) else parts
        if any(isinstance(part, ast.Call) for part in parts):
            found.update(target.id for target in targets if isinstance(target, ast.Name))
    return frozenset(found)


def _is_none(value: Value | None) -> bool:
    return isinstance(value, Const) and value.value is None


@remembered
def _flags(func: ast.AST) -> frozenset[str]:
    """The names by which a constructor decides which attributes there are."""
    tests = (node.test for node in walk(func) if isinstance(node, ast.If) and _sets_attributes(node))
    return frozenset(part.id for test in tests for part in walk(test) if isinstance(part, ast.Name))


@remembered
def _gathers(func: ast.AST) -> bool:
    """Whether a constructor puts things into a container that it assigns."""
    values = (node.value for node in walk(func) if isinstance(node, ast.Assign) and not _is_name(node.targets[0]))
    return any(isinstance(value, (ast.List, ast.Tuple, ast.Dict)) for value in values)


def _maps(func: FuncVal) -> bool:
    """Whether a constructor uses a function that maps over axes: of streams, how they were made decides."""
    for name, attribute in _used(func.node):
        found = func.env.lookup(name) if isinstance(func.env, Env) else None
        value = found[1] if found is not None else None
        if isinstance(value, Ext) and (attribute or value.name.rpartition(".")[2]) in MAPPING:
            return True
    return False


@remembered
def _keeps_streams(func: ast.AST) -> bool:
    """Whether a constructor keeps streams that it takes of others, which nothing but what it is given says."""
    assigned = (node.value for node in walk(func) if isinstance(node, ast.Assign) and not _is_name(node.targets[0]))
    called = (value.func for value in assigned if isinstance(value, ast.Call))
    return any(isinstance(node, ast.Attribute) and node.attr == "fork" for node in called)


MAPPING = frozenset({"pmap", "vmap"})


@remembered
def _used(func: ast.AST) -> frozenset[tuple[str, str]]:
    """What may be a function that maps: names that are called, and those of which an attribute called so is read."""
    nodes = walk(func)
    called = {(node.func.id, "") for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    dotted = (node for node in nodes if isinstance(node, ast.Attribute) and node.attr in MAPPING)
    owned = {(name, node.attr) for node in dotted if (name := root_of(node)) is not None}
    plain = (each for node in nodes if isinstance(node, ast.FunctionDef) for each in node.decorator_list)
    return frozenset(called | owned | {(node.id, "") for node in plain if isinstance(node, ast.Name)})


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Tuple))


def _is_flag(value: Value | None) -> bool:
    return isinstance(value, Const) and (value.value is None or isinstance(value.value, (bool, str)))


def _is_name_of(value: Value | None) -> bool:
    """Whether a field says by a name what is meant: an axis of a mesh, a kind of layer."""
    return isinstance(value, Const) and isinstance(value.value, str)


def _sets_attributes(node: ast.If) -> bool:
    return any(isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) for part in walk(node))


def _is_told_by(defaults: Iterable[Value | None], args: Mapping[str, Value]) -> bool:
    """Whether there are numbers among the defaults, and nothing that is given may say otherwise."""
    numbers = any(value is not None and (_has_number(value) or _makes_config(value)) for value in defaults)
    return numbers and not any(isinstance(value, (Unknown, Other)) for value in args.values())


def _makes_config(value: Value) -> bool:
    """Whether the default of a field is a plain object that is made for each instance."""
    factory = value.keywords.get("default_factory") if isinstance(value, FieldVal) else None
    return isinstance(factory, FuncVal) or (isinstance(factory, ClassVal) and not factory.cls.tracked)


def _is_number(value: Value | None) -> bool:
    return isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool)


def _decides(value: Value) -> bool:
    """Whether an argument says something of what the constructor makes: numbers, or data in a container."""
    held = _items(value)
    if _has_number(value) or _is_state(value) or is_layer_factory(value):
        return True
    if isinstance(value, Seq) and value.exact and held and all(map(_is_name_of, held)):
        return True  # the names of the parts that it makes
    return any(_is_part(item) for item in held) or any(map(_decides, held))


def is_layer_factory(value: Value | None) -> bool:
    """Whether a value is a class of modules, or a partial of one: a constructor that gets it makes layers with it."""
    while isinstance(value, PartialVal):
        value = value.func
    return isinstance(value, ClassVal) and value.cls.derives_from("nnx.Module")


def _items(value: Value) -> list[Value]:
    """What a plain container holds."""
    value = as_dict(value)
    if isinstance(value, DictVal):
        return [item for _, item in value.items]
    return value.items if isinstance(value, Seq) and value.type in {"tuple", "list"} else []


def _is_part(value: Value) -> bool:
    """Whether a value is a module, a Variable or an array, of which a container is not to be a static attribute."""
    return type(value) in {Array, HostArray, PartitionedArray} or (
        isinstance(value, Obj) and value.cls.tracked and value.cls is not RNGS and not value.cls.is_open
    )


def _is_state(value: Value) -> bool:
    """Whether a value is a State that has Variables, or was made of one leaf by leaf."""
    return isinstance(value, (StateVal, GradientVal)) and value.facts().holds_data is True


def _has_number(value: Value) -> bool:
    """Whether an argument is a number, several, or a configuration that says some."""
    if isinstance(value, Seq):
        return value.exact and any(map(_has_number, value.items))
    if isinstance(value, ClassVal):
        return bool(_numbers_of(value))
    if isinstance(value, Obj) and is_config(value):
        return any(_is_number(attr.value) or is_config(attr.value) for attr in value.attrs.values())
    return _is_number(value) or (isinstance(value, Obj) and _is_configuration(value))


# -- arguments ---------------------------------------------------------------------------------------------------------


def _known(value: Value, depth: int = MAX_NESTING) -> Hashable | None:
    """What is known of an argument, as part of a key; ``None`` if it tells nothing."""
    if isinstance(value, Const):
        return type(value.value), value.value
    if isinstance(value, ClassVal):
        return value.cls, _numbers_of(value)
    if isinstance(value, Ext):
        return value.name
    if isinstance(value, FuncVal) and isinstance(value.env, Env) and value.env.kind == "module":
        return value  # others are made anew each time
    if isinstance(value, PartialVal):
        keywords = tuple((name, _constant(item)) for name, item in sorted(value.keywords.items()))
        held = (_known(value.func), tuple(map(_constant, value.args)), keywords)
        return None if held[0] is None or None in (*held[1], *(item for _, item in keywords)) else ("partial", *held)
    if isinstance(value, Seq) and not value.shrunk and value.type in {"tuple", "list"}:
        items = tuple(map(_known, value.items))
        sure = value.exact or all(map(_is_part, value.items))
        return None if None in items or not sure else (value.type, value.exact, items)
    if isinstance(value, NamespaceVal):
        return _known(as_dict(value), depth)
    if isinstance(value, DictVal) and value.exact and not value.shrunk:
        pairs = tuple((_known(key), _known(item)) for key, item in value.items)
        return None if any(None in pair for pair in pairs) else ("dict", pairs, value.shared)
    if _is_state(value):
        return "data", StateVal
    if isinstance(value, Obj) and value.cls is RNGS:
        # Those that have all streams are like any other.
        named = value.args and value.args.keys().isdisjoint({"default", "**"}) and not value.attrs
        return ("streams", *sorted(value.args)) if named and value.args else None
    if _is_part(value):
        return ("data", value.cls, _is_seen_made(value)) if isinstance(value, Obj) else ("data", type(value))
    if isinstance(value, Obj) and is_config(value):
        return _of_config(value, depth)
    if isinstance(value, Obj) and _is_configuration(value):
        # A field that is not known leaves the others what they are: a vocabulary may be as large as its tokenizer says.
        told = {**(value.args or {}), **{name: _told(attr.value) for name, attr in _changed(value)}}
        return value.cls, tuple(
            (name, _known(each) if each is not None else None) for name, each in sorted(told.items())
        )
    return None


def _of_config(value: Obj, depth: int) -> Hashable | None:
    """What is known of a configuration that a library has made: each attribute by itself."""
    if not depth:
        return None
    return value.cls, tuple((name, _known(attr.value, depth - 1)) for name, attr in sorted(value.attrs.items()))


def _numbers_of(value: ClassVal) -> tuple[tuple[str, object], ...]:
    """The numbers in the body of a class that is a configuration by itself."""
    held = value.cls.attributes if isinstance(value.cls, UserClass) and not value.cls.tracked else {}
    return tuple(
        (name, each.value) for name, (each, _) in sorted(held.items()) if isinstance(each, Const) and _is_number(each)
    )


def _constant(value: Value | None) -> Hashable | None:
    """What is known of something that a partial holds, where nothing can change it."""
    return _known(value) if isinstance(value, (Const, ClassVal, Ext)) else None


def _is_configuration(obj: Obj) -> bool:
    """Whether an object is a plain one of which it is known how its constructor made it, and what was set since."""
    if not isinstance(obj.cls, UserClass) or obj.cls.tracked or obj.args is None or obj.assumed:
        return False
    if not is_record(obj.cls):
        return _is_as_made(obj)
    return obj.template is not None and not any(HOLE in name for name in obj.attrs)


def _is_as_made(obj: Obj) -> bool:
    """Whether nothing has been set on an object since its constructor returned."""
    return obj.template is not None and not _changed(obj)


def _changed(obj: Obj) -> list[tuple[str, Attr]]:
    """What has been set on an object since its constructor returned."""
    if obj.template is None:
        return []
    made = ((name, attr, attribute_of(obj.template, name)) for name, attr in obj.attrs.items())
    return [
        (name, attr)
        for name, attr, before in made
        if before is None or _places(before) != _places(attr) or _is_filled(attr.value)
    ]


def _is_filled(value: Value) -> bool:
    """Whether something was put into a container after it was made, or taken out of it."""
    return isinstance(value, (Seq, DictVal)) and bool(value.fills or value.shrunk)


def _places(attr: Attr) -> list[ast.AST]:
    """Where an attribute is assigned."""
    return [assignment.node for assignment in attr.assignments]


def _is_seen_made(obj: Obj) -> bool:
    return obj.origin is not None and not obj.assumed and _is_as_made(obj)


def _handed(interp: Interpreter, value: Value, known: Hashable | None) -> Value:
    """An argument as the constructor gets it: a copy, if it could be changed."""
    if isinstance(value, Obj) and value.cls is RNGS:
        streams = interp.instance(RNGS, 0)
        if isinstance(streams, Obj) and known is not None:
            named: dict[str, Value] = dict.fromkeys(value.args or (), UNKNOWN)
            streams.args = named
        return streams
    if known is None:
        return UNKNOWN
    if isinstance(value, Seq):
        return Seq(value.type, (_handed(interp, item, known) for item in value.items), exact=value.exact)
    if isinstance(value, NamespaceVal):
        return _handed(interp, as_dict(value), known)
    if isinstance(value, DictVal):
        table = DictVal(((key, _handed(interp, item, known)) for key, item in value.items), node=value.node)
        table.shared = value.shared
        return table
    if isinstance(value, Array):
        return type(value)(0)
    if _is_state(value):
        return StateVal(ParameterVal("", required=True), 0)
    if not isinstance(value, Obj):
        return value
    if is_config(value):
        return copied(value, lambda held: _told(_handed(interp, held, _known(held))))
    if _is_part(value):
        if not isinstance(value.cls, UserClass) or not _is_seen_made(value):
            return interp.instance(value.cls, 0)
        part = instance_of(interp, value.cls, 0)
        part.origin = value.cls.module, value.cls.node  # it is of this class, and of none below
        part.training = None
        return part
    args = {name: _handed(interp, given, _known(given)) for name, given in (value.args or {}).items()}
    copy = Obj(value.cls, 0, args)
    copy.template = value.template  # it is as its constructor left it, but for what has been set since
    copy.attrs = {
        name: Attr(_told(_handed(interp, attr.value, _known(attr.value))) or UNKNOWN) for name, attr in _changed(value)
    }
    return copy


# -- models ------------------------------------------------------------------------------------------------------------


class Sized:
    """The model of a class for some arguments (``None`` where it cannot be made), the evaluation that made it, and what
    that did that may be wrong for some callers only.
    """

    def __init__(self, evaluation: Interpreter) -> None:
        self.model: Obj | None = None
        self.evaluation = evaluation
        self.noted: list[Called | ItemSet] = []
        self.layers: list[CalledOneOf | EntryMissed | AttributeMissed] = []

    def note(self, event: Event) -> None:
        """Keep what rules may ask for: items of containers of the library, and streams under a transform. What the
        arguments make of a layer is kept apart, and what they lack: every rule may judge that.
        """
        if isinstance(event, ItemSet) or (isinstance(event, Called) and _is_told_of(event)):
            self.noted.append(event)
        if isinstance(event, (CalledOneOf, EntryMissed)) or _asks_record(event):
            self.layers.append(event)
        elif isinstance(event, Called) and (_makes_as_told(event) or _looks_up(event)):
            self.layers.append(CalledOneOf(event.frame, event.node, [event]))


def _asks_record(event: Event) -> TypeGuard[AttributeMissed]:
    """Whether a plain object is asked for an attribute that it was not seen to have."""
    return isinstance(event, AttributeMissed) and is_record(event.obj.cls)


def _makes_as_told(event: Called) -> bool:
    """Whether a constructor makes a layer of a class, or with an initializer, that its arguments say."""
    func, call = event.frame.func, event.node
    if func is None or not isinstance(call, ast.Call) or not is_layer_factory(event.callee):
        return False
    parts = [call.func, *(item.value for item in call.keywords if item.arg is not None and item.arg.endswith("_init"))]
    names = frozenset(name for part in parts for name in names_in(part))
    return not names.isdisjoint(syntax_parameters.names(func.node.args)) and names.isdisjoint(_compared(func.node))


def _looks_up(event: Called) -> bool:
    """Whether a constructor asks a library for a name that its arguments may say: ``getattr(optax, config.name)``."""
    asks = isinstance(event.callee, Ext) and event.callee.name == "builtins.getattr" and len(event.args) > 1
    return asks and isinstance(event.args[0], Ext) and isinstance(event.args[1], Const)


@remembered
def _compared(func: ast.AST) -> frozenset[str]:
    """The names of which a constructor asks what they are, and not only whether they are there at all: which of its
    calls are made for which class is not known.
    """
    tests = (node.test for node in walk(func) if isinstance(node, (ast.If, ast.IfExp)))
    parts = (part for test in tests for part in walk(test) if isinstance(part, (ast.Compare, ast.Call)))
    asking = (part for part in parts if not isinstance(part, ast.Compare) or not _is_written_none(part.comparators[0]))
    return frozenset(name for part in asking for name in names_in(part))


def _is_written_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_told_of(event: Called) -> bool:
    mapped = isinstance(event.callee, Transformed) and any(isinstance(v, Obj) and v.cls is RNGS for v in event.args)
    return mapped or event.inherited == "nnx.Dict"


def _model(interp: Interpreter, cls: UserClass, key: Hashable, given: dict[str, Value]) -> Obj | None:
    """The model of a class for these arguments, made once; ``None`` where it cannot be made."""
    project = interp.project
    asked = interp.sizes.setdefault(cls, set())
    if key not in asked and len(asked) == MAX_SIZED:
        return None
    asked.add(key)
    if key not in cls.sized:
        if cls.node in project.modelling:
            for each in [each for each in project.running if each.subject is cls.node]:
                project.note_partial(each)
            return None
        if len(project.running) >= MAX_RUNNING:
            return None
        inner = interp.silent(cls.module, STEPS)
        made = Sized(inner)
        inner.publish = made.note
        model: Obj | None = None
        with inner.evaluating_for(cls.node, cls.sized, key):
            model = Obj(cls, 0)
            project.modelling.add(cls.node)
            try:
                build_model(inner, cls, model, given)
            finally:
                project.modelling.discard(cls.node)
            if not cls.is_pytree:
                _keep_numbers(interp, model)
        if not inner.ended_early and inner.failure is None:
            model.sized = True
            made.model = model
        cls.sized[key] = made
    made = cls.sized[key]
    project.note_partial(made.evaluation)
    interp.used.add(made.evaluation)
    for event in made.layers if made.model is not None else ():
        interp.publish(event)
    return made.model


def _keep_numbers(interp: Interpreter, model: Obj) -> None:
    """Leave of what is known of a plain object the numbers in it, the modules, and other objects like it; of one that
    cannot be changed the flags, too.
    """
    frozen = isinstance(model.cls, UserClass) and model.cls.is_frozen
    numbers = {name: _kept(model.cls, name, attr.value, frozen=frozen) for name, attr in model.attrs.items()}
    model.template = instance_of(interp, model.cls, 0)
    for name, attr in list(model.attrs.items()):
        number = numbers[name]
        if number is None:
            del model.attrs[name]
        else:
            attr.value = number


def _kept(cls: ClassBase, name: str, value: Value, *, frozen: bool) -> Value | None:
    """What is kept of an attribute. That a field of a dataclass is left out says what stands for it."""
    if frozen and _is_flag(value):
        return value
    field = isinstance(cls, UserClass) and cls.generated_init and not is_set_later(cls, name)
    if not field or is_set_later(cls, f"{name}{ITEM}"):
        return _told(value)
    if _is_none(value):
        return value
    if isinstance(value, Seq) and value.exact and value.type == "list":
        items = [_told(item) for item in value.items]
        return Seq("list", [item for item in items if item is not None]) if None not in items else None
    if isinstance(value, DictVal) and value.exact:
        pairs = [(key, _told(item)) for key, item in value.items]
        return DictVal([(key, item or UNKNOWN) for key, item in pairs])
    return _told(value)


def _is_made_inside(value: Value) -> bool:
    """Whether a value is a function that the constructor itself defines, transformed or not: a step that knows the
    sizes of this object by the names around it.
    """
    while isinstance(value, Transformed):
        value = value.func
    return isinstance(value, FuncVal) and is_closure(value)


def _told(value: Value) -> Value | None:
    """What is kept of a value that a plain object holds."""
    if _is_part(value) or is_sized(value) or isinstance(value, Ext) or is_layer_factory(value) or is_config(value):
        return value
    if _is_made_inside(value):
        return value
    if isinstance(value, Const) and (_is_number(value) or isinstance(value.value, float)):
        return Computed(value.value)
    if isinstance(value, Seq) and value.exact and value.type == "tuple":
        held = [_told(item) for item in value.items]
        return Seq("tuple", [item for item in held if item is not None]) if None not in held else None
    return None
