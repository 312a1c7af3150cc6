"""Configurations that libraries make: the objects that hold the numbers a program is run with.

``types.SimpleNamespace`` is the plainest one. ``argparse`` makes one of what a parser was told, absl has the flags that
a file defines, ``ml_collections`` makes them of dicts, and tyro and its like call a function or a class with what the
command line says, which is nothing at first.

Invariants: what somebody may say otherwise when the program starts is a number that decides no condition
(:class:`~nnx_lint.model.values.Computed`), or it is not known; an attribute that nobody was seen to set is not known.
"""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, cast

from nnx_lint.model.arithmetic import MAX_NUMBER
from nnx_lint.model.attributes import ANY_NAME, attribute_names, forget, forget_all, forget_names, original_of
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.containers import DictVal, FrozenDictVal, Seq
from nnx_lint.model.heap import touch
from nnx_lint.model.later import is_set_later, set_later
from nnx_lint.model.unions import present
from nnx_lint.model.values import STRING, UNKNOWN, Attr, ClassVal, Computed, Const, NamespaceVal, Obj, Value
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

    Handler = Callable[[Interpreter, Frame, Arguments, ast.AST, str], Value]

NAMESPACE = LibClass("types.SimpleNamespace", (), None)
CONFIG_DICT = LibClass("ml_collections.ConfigDict", (NAMESPACE,), None)
ARGUMENTS = LibClass("argparse.Namespace", (NAMESPACE,), None)
PARSER = LibClass("argparse.ArgumentParser", (), None)
"""Of a parser, the attributes are those of what it will make."""

CONFIGS = frozenset({NAMESPACE, ARGUMENTS, CONFIG_DICT})
CLASSES = CONFIGS | {PARSER}


def is_config(value: Value) -> bool:
    """Whether a value is an object that has the attributes it was given, and no methods that matter."""
    return isinstance(value, Obj) and value.cls in CONFIGS


class Parser(Obj):
    """A parser of what a program is started with, and the branches in which it was made."""

    __slots__ = ("branches",)

    def __init__(self, frame: Frame, node: ast.AST) -> None:
        super().__init__(PARSER, frame.level, {}, node)
        self.branches = frame.branches


def is_parser(value: Value | None) -> bool:
    """Whether a value is a parser, which libraries tell of options of their own."""
    return isinstance(value, Parser)


def _made(frame: Frame, values: Mapping[str, Value], node: ast.AST, cls: LibClass = NAMESPACE) -> Obj:
    made = Obj(cls, frame.level, {}, node)
    made.attrs = {name: Attr(value) for name, value in values.items()}
    return made


def started_with(value: Value | None) -> Value:
    """What the start of a program leaves of a default: a number, which may be another one."""
    held = value.value if isinstance(value, Const) else None
    return Computed(held) if isinstance(held, (int, float)) and not isinstance(held, bool) else UNKNOWN


def copied(obj: Obj, keep: Callable[[Value], Value | None]) -> Obj:
    """Another such object, with what is kept of each value; the others are not known."""
    made = Obj(obj.cls, 0, {})
    made.attrs = {name: Attr(keep(attr.value) or UNKNOWN) for name, attr in obj.attrs.items()}
    return made


def lacks(value: Value, name: str) -> bool:
    """Whether nothing was seen to give an object an attribute: one that is no module, and is as it was made."""
    if not isinstance(value, Obj) or value.assumed or value.cls.tracked or ANY_NAME in value.attrs:
        return False
    cls = value.cls
    if not isinstance(cls, UserClass):
        return is_config(value) and name not in value.attrs
    plain = not (cls.is_open or cls.opaque or cls.remade or cls.find("__getattr__"))
    return plain and cls.find(name) is None and cls.class_attribute(name) is None and original_of(value, name) is None


def is_record(cls: ClassBase) -> bool:
    """Whether instances of a class of the project are there for what they hold: a dataclass, or one without methods."""
    if not isinstance(cls, UserClass) or cls.tracked:
        return False
    return cls.generated_init or all(name.startswith("__") for item in cls.lineage for name in item.methods)


def give_away(values: Iterable[Value | None]) -> None:
    """Note that something unknown has configurations in its hands: it may set what it likes."""
    for value in values:
        if value is not None and (is_config(value) or isinstance(value, Parser)):
            forget_all(value)
        elif value is not None:
            may_be_filled(value)


def may_be_filled(value: Value) -> None:
    """Note that something unknown has a plain object, such as a trainer, in its hands: it may have set other attributes
    beside those that the object has.
    """
    cls = value.cls if isinstance(value, Obj) else None
    if isinstance(value, Obj) and isinstance(cls, UserClass) and not (cls.tracked or cls.generated_init):
        touch(value)
        value.attrs.setdefault(ANY_NAME, Attr(UNKNOWN))


def hand_to(func: FuncVal, values: Iterable[Value]) -> None:
    """Note that configurations and records are in the hands of a function that is not followed: it may set what its
    file sets of anything.
    """
    for value in values:
        if isinstance(value, Parser):
            forget_all(value)
        if not isinstance(value, Obj) or not (is_config(value) or is_record(value.cls)) or _is_frozen(value):
            continue
        for name in attribute_names(value):
            own = isinstance(value.cls, UserClass) and is_set_later(value.cls, name)
            if own or func.module.has(f".{name}", set_later):
                forget(value, name)


def _is_frozen(obj: Obj) -> bool:
    return isinstance(obj.cls, UserClass) and obj.cls.is_frozen


def entries(obj: Obj) -> DictVal:
    """The dict of the attributes of an object, as far as they are known: all of them of what a library made."""
    known = {name: attr.value for name, attr in obj.attrs.items()}
    whole = is_config(obj) and ANY_NAME not in known
    return DictVal([(Const(name), value) for name, value in known.items()], exact=whole)


def as_dict(value: Value) -> Value:
    """A value, and for ``vars(obj)`` the dict that it is."""
    return entries(value.of) if isinstance(value, NamespaceVal) else value


# -- what makes them ---------------------------------------------------------------------------------------------------


def _namespace(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """An object with the attributes that it is given, and those that the program sets."""
    return UNKNOWN if args.starred or args.positional else _made(frame, args.keywords, node)


def _config_dict(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """One of a dict, of another one, or of nothing yet; dicts in it become such objects, too."""
    given = args.get(0)
    if args.starred or not args.keywords.keys() <= {"type_safe", "convert_dict"}:
        return UNKNOWN
    if isinstance(given, Obj) and is_config(given):
        return _made(frame, {key: attr.value for key, attr in given.attrs.items()}, node, CONFIG_DICT)
    if given is None:
        return _made(frame, {}, node, CONFIG_DICT)
    return _of_dict(frame, given, node) if isinstance(given, DictVal) else UNKNOWN


def _of_dict(frame: Frame, given: Value, node: ast.AST) -> Value:
    if not isinstance(given, DictVal) or not given.exact:
        return UNKNOWN if isinstance(given, DictVal) else given
    pairs = {str(key.value): value for key, value in given.items if isinstance(key, Const)}
    held = {key: _of_dict(frame, value, node) for key, value in pairs.items()}
    return _made(frame, held, node, CONFIG_DICT) if len(held) == len(given.items) else UNKNOWN


def _parser(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    plain = not args.starred and args.keywords.keys().isdisjoint({"argument_default", "parents", "**"})
    return Parser(frame, node) if plain else UNKNOWN


def _option(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """What ``click.option`` hands to the function below it, by the name of the parameter."""
    names = [value.value for value in args.positional if isinstance(value, Const) and isinstance(value.value, str)]
    own = next((each for each in names if each.isidentifier()), None) or _destination(args)
    known = own is not None and args.keywords.keys().isdisjoint({"callback", "is_flag", "multiple", "nargs", "**"})
    return _made(frame, {own: started_with(args.keywords.get("default"))}, node) if known and own else UNKNOWN


def _json(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """What a text in the program says."""
    text = args.get(0, "s")
    if not isinstance(text, Const) or not isinstance(text.value, str) or len(args.keywords) + len(args.positional) > 1:
        return UNKNOWN
    try:
        return _of_json(frame, json.loads(text.value), node)
    except (ValueError, RecursionError):
        return UNKNOWN


def _of_json(frame: Frame, held: object, node: ast.AST) -> Value:
    if isinstance(held, dict):
        entries = cast("dict[str, object]", held)
        pairs: list[tuple[Value, Value]] = [(Const(key), _of_json(frame, each, node)) for key, each in entries.items()]
        return DictVal(pairs, frame.level, node=node)
    if isinstance(held, list):
        items = cast("list[object]", held)
        return Seq("list", [_of_json(frame, each, node) for each in items], frame.level, node=node)
    return Const(held)


def _frozen(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """A dict of numbers that nobody changes; what holds arrays is taken apart by JAX, and no plain dict."""
    given = args.get(0)
    plain = isinstance(given, DictVal) and given.facts().holds_data is False and not args.keywords
    if not isinstance(given, DictVal) or not plain:
        return UNKNOWN
    made = DictVal if name.rpartition(".")[2] == "unfreeze" else FrozenDictVal
    return made(given.items, frame.level, exact=given.exact, node=node)


def _defined_flag(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    default = args.get(1, "default")
    path = default.value if isinstance(default, Const) and isinstance(default.value, str) else ""
    held = _of_file(interp, frame, path, node) if path.endswith(".py") else started_with(default)
    return _made(frame, {"value": held}, node)


def _run(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """A function that absl calls with what is left of the command line."""
    from nnx_lint.model.calls import Arguments, invoke

    called = present(args.get(0, "main") or UNKNOWN)
    return invoke(interp, frame, called, Arguments(node, [UNKNOWN], {}, []), node, name)


def _started(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    """A function or a dataclass that is called with what the command line says."""
    from nnx_lint.model.calls import Arguments, invoke

    called = present(args.get(0) or UNKNOWN)
    given: dict[str, Value] = {}
    if isinstance(called, FuncVal):
        given = {key: started_with(value) for key, value in called.defaults.items()}
    elif isinstance(called, ClassVal) and isinstance(called.cls, UserClass) and called.cls.generated_init:
        fields = (field for field in called.cls.all_fields() if isinstance(field.value, Const))
        given = {field.name: started_with(field.value) for field in fields if field.init is True}
    else:
        return UNKNOWN
    return invoke(interp, frame, called, Arguments(node, [], given, []), node, name)


_NUMBERS = ("DEFINE_float", "DEFINE_integer")
_FILE = "DEFINE_config_file"

HANDLERS: dict[str, Handler] = {
    "absl.app.run": _run,
    "argparse.ArgumentParser": _parser,
    "click.option": _option,
    "json.loads": _json,
    "types.SimpleNamespace": _namespace,
    **dict.fromkeys(("flax.core.FrozenDict", "flax.core.freeze", "flax.core.unfreeze"), _frozen),
    **dict.fromkeys(("flax.core.frozen_dict.FrozenDict", "types.MappingProxyType"), _frozen),
    **{f"absl.flags.{name}": _defined_flag for name in _NUMBERS},
    f"ml_collections.config_flags.{_FILE}": _defined_flag,
    **dict.fromkeys(
        (
            *("ml_collections.ConfigDict", "ml_collections.FrozenConfigDict"),
            *("ml_collections.config_dict.ConfigDict", "ml_collections.config_dict.FrozenConfigDict"),
            "omegaconf.OmegaConf.create",
        ),
        _config_dict,
    ),
    **dict.fromkeys(("fire.Fire", "tyro.cli", "typer.run"), _started),
}


# -- reading and filling them ------------------------------------------------------------------------------------------


def member(obj: Obj, name: str) -> Value:
    """What a parser or a configuration has besides the attributes that are known: methods, perhaps."""
    own = obj.cls is CONFIG_DICT or (obj.cls is PARSER and name in PARSER_METHODS)
    if obj.cls is PARSER and not own:
        forget_names(obj)  # parsers below it, and what it is told otherwise
    return BoundMethod(obj, name) if own else UNKNOWN


_GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group"})
PARSER_METHODS = _GROUPS | {"add_argument", "parse_args", "parse_known_args", "set_defaults"}
LOOKING = frozenset(
    {"eq_as_configdict", "get_oneway_ref", "get_ref", "get_type", "is_locked", "is_type_safe", "items", "iteritems"}
    | {"keys", "lock", "to_dict", "to_json", "to_yaml", "unlock", "unlocked", "values"}
)
"""Methods of a ``ConfigDict`` that leave what it holds as it is."""
FILLING = frozenset({"convert_dict", "copy_and_resolve_references", "ignore_type", "update_from_flattened_dict"})
"""Others of its methods."""


def has_method(obj: Obj, name: str) -> bool:
    """Whether every configuration of this class has a method of this name."""
    listed = name in LOOKING or name in FILLING or hasattr(dict, name)
    return obj.cls is CONFIG_DICT and listed


def call_method(frame: Frame, obj: Obj, method: str, args: Arguments, node: ast.AST) -> Value:
    """Call a method of a parser, or of a configuration."""
    if isinstance(obj, Parser):
        return _ask_parser(frame, obj, method, args, node)
    if method == "get":
        return entries(obj).entry(args.get(0, "key")) or UNKNOWN
    if method == "copy_and_resolve_references":
        return _made(frame, {name: attr.value for name, attr in obj.attrs.items()}, node, CONFIG_DICT)
    given = _of_dict(frame, args.get(0) or DictVal([]), node) if method == "update" else UNKNOWN
    if not args.starred and isinstance(given, Obj) and is_config(given):
        touch(obj)
        obj.attrs.update((name, Attr(attr.value)) for name, attr in given.attrs.items())
        obj.attrs.update((name, Attr(value)) for name, value in args.keywords.items())
    elif method not in LOOKING:
        forget_names(obj)
    return UNKNOWN


def _ask_parser(frame: Frame, parser: Parser, method: str, args: Arguments, node: ast.AST) -> Value:
    if method in _GROUPS:
        return parser
    if method == "add_argument":
        name = _destination(args)
        if name is None or "**" in args.keywords:
            forget_names(parser)
        else:
            touch(parser)
            default = _default(args)
            parser.attrs[name] = Attr(default if frame.branches == parser.branches and _is_one(args) else UNKNOWN)
        return UNKNOWN
    if method == "set_defaults":
        touch(parser)
        for name in parser.attrs if "**" in args.keywords else args.keywords:
            parser.attrs[name] = Attr(started_with(args.keywords.get(name)))
        return UNKNOWN
    given = args.get(0, "args")
    plain = args.keywords.keys() <= {"args"} and not args.starred and not (isinstance(given, Seq) and given.items)
    told = {name: attr.value for name, attr in parser.attrs.items()}
    made = _made(frame, told, node, ARGUMENTS) if plain else UNKNOWN
    return Seq("tuple", [made, UNKNOWN], frame.level) if method == "parse_known_args" else made


def _default(args: Arguments) -> Value:
    """What an argument of a program is that nobody gives; without a type it is a string, whatever anybody gives."""
    given = args.keywords.get("default")
    text = isinstance(given, Const) and isinstance(given.value, str)
    return STRING if text and "type" not in args.keywords else started_with(given)


def _is_one(args: Arguments) -> bool:
    """Whether an argument of a program is one value as it is written, and not a list of several."""
    return args.keywords.keys().isdisjoint({"action", "nargs", "**"})


def _destination(args: Arguments) -> str | None:
    """The attribute that an argument of a program is kept under."""
    told = args.keywords.get("dest")
    if isinstance(told, Const):
        return str(told.value)
    names = [value.value for value in args.positional if isinstance(value, Const) and isinstance(value.value, str)]
    long = [name for name in names if name.startswith("--")]
    first = next(iter([*long, *names]), None)
    return first.lstrip("-").replace("-", "_") if first else None


FLAGS = "absl.flags.FLAGS"


def flag(interp: Interpreter, frame: Frame, name: str, node: ast.AST) -> Value:
    """A flag of absl that the file defines which reads it."""
    found = (each.partition("=") for each in frame.module.all_of(_defined))
    text = next((text for known, _, text in found if known == name), "")
    if frame.module.has(f".{name}", set_later) or frame.module.mentions("set_default"):
        return UNKNOWN
    return _of_file(interp, frame, text, node) if text.endswith(".py") else started_with(_number(text))


def _number(text: str) -> Const | None:
    return Const(float(text) if "." in text or "e" in text else int(text)) if text else None


def _of_file(interp: Interpreter, frame: Frame, path: str, node: ast.AST) -> Value:
    """What `get_config` makes in a file of the project, which a flag names."""
    from nnx_lint.model.imports import module_attribute

    module = interp.project.find(path.removesuffix(".py").strip("./").replace("/", "."), frame.module)
    if module is None:
        return UNKNOWN
    interp.load(module)
    maker = module_attribute(interp, module, "get_config")
    return interp.call_function(frame, maker, [], {}, node) if isinstance(maker, FuncVal) else UNKNOWN


@remembered
def _defined(statement: ast.AST) -> frozenset[str]:
    """The flags that a statement defines with a number, or with a file of Python: ``name=default``."""
    calls = (node for node in walk(statement) if isinstance(node, ast.Call) and len(node.args) > 1)
    told = ((node.args[0], node.args[1]) for node in calls if last_name(node.func) in {*_NUMBERS, _FILE})
    return frozenset(
        f"{name.value}={default.value}"
        for name, default in told
        if isinstance(name, ast.Constant) and isinstance(name.value, str)
        if isinstance(default, ast.Constant) and isinstance(default.value, (int, float, str))
        if _is_told(default.value)
    )


def _is_told(default: float | str) -> bool:
    number = not isinstance(default, (bool, str)) and -MAX_NUMBER < default < MAX_NUMBER
    return number or (isinstance(default, str) and default.endswith(".py"))
