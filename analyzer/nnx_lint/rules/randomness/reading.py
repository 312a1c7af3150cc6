"""What is known of random streams: the names that an ``nnx.Rngs`` was made with, and the streams that a class draws.

Invariants: the streams of an object are known only if the program shows how it was made; the streams that a class draws
from a parameter are those that every instance draws while it is made.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import UserClass, library_class, method_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.unions import options, present
from nnx_lint.model.uses import RNGS
from nnx_lint.model.values import (
    UNKNOWN,
    Array,
    ClassVal,
    Const,
    Obj,
    Other,
    ParameterVal,
    Value,
)
from nnx_lint.rules.bindings import names_of_first, pairs_of
from nnx_lint.rules.program import assigned_in, calls_in, canonical_of, resolved, straight
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.layers import CELLS
from nnx_rules.signatures import SIGNATURES
from nnx_rules.streams import METHODS, NORMS, SAMPLERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

DICT = library_class("nnx.Dict")
STREAM = library_class("nnx.RngStream")

MAX_DEPTH = 5
"""How deep submodules are looked into."""


class Streams(NamedTuple):
    """The names of the streams that an ``nnx.Rngs`` has; ``default`` is among them if others are answered by it."""

    names: tuple[str, ...]

    @property
    def has_default(self) -> bool:
        return "default" in self.names

    def __str__(self) -> str:
        return ", ".join(f"`{name}`" for name in self.names) or "none"


def is_rngs(value: Value | None) -> bool:
    """Whether a value certainly is an ``nnx.Rngs``."""
    return isinstance(value, Obj) and RNGS in value.cls.ancestors


def stands_for_rngs(value: Value | None) -> bool:
    """Whether a value is an ``nnx.Rngs``, or a parameter of the name that these have everywhere."""
    return is_rngs(value) or (isinstance(value, ParameterVal) and value.name == "rngs")


def streams_of(value: Value | None) -> Streams | None:
    """The streams of an ``nnx.Rngs`` that the program shows being made; ``None`` where they are not known."""
    if not isinstance(value, Obj) or value.cls is not RNGS or value.args is None or value.attrs:
        return None
    names: list[str] = []
    for name, given in value.args.items():
        if name == "**":
            return None
        if name != "default" or isinstance(given, (Array, Other)):
            names.append(name)
        elif isinstance(given, Const):
            names += ["default"] if given.value is not None else []
        elif isinstance(given, DictVal) and given.exact:
            keys = [key.value for key, _ in given.items if isinstance(key, Const)]
            if len(keys) != len(given.items):
                return None
            names += [str(key) for key in keys]
        else:
            return None
    return Streams(tuple(names))


def stream_name(value: Value | None) -> str | None:
    """The name of the stream that an attribute of an ``nnx.Rngs`` is: ``rngs.params``."""
    if isinstance(value, BoundMethod) and value.func is None and is_rngs(value.receiver):
        return value.name if value.name not in METHODS else None
    return None


# -- what is drawn -----------------------------------------------------------------------------------------------------


def drawn_by(obj: Obj) -> list[str]:
    """The streams that an instance of a library class certainly draws while it is made."""
    library = obj.cls.library
    signature = SIGNATURES.get(library.canonical) if library is not None else None
    if library is None or signature is None or obj.args is None or "**" in obj.args:
        return []
    if library.name == "Dropout":
        name = obj.args.get("rng_collection", Const("dropout"))
        return [name.value] if isinstance(name, Const) and isinstance(name.value, str) else []
    if library.name in {"RNN", "Bidirectional"}:
        return ["carry"]
    if "rngs" not in signature.required:
        return []
    if library.name == "MultiHeadAttention" and _is_positive(obj.args.get("dropout_rate")):
        return ["params", "dropout"]
    if library.name in NORMS:
        switches = [obj.args.get(name) for name in ("use_scale", "use_bias") if name in signature.keywords]
        return [] if any(switch is not None for switch in switches) else ["params"]
    return ["params"]


def carry_made(event: Called) -> tuple[Obj, Value | None] | None:
    """The cell of the library whose ``initialize_carry`` is called, and the ``rngs`` that the call gives, if any."""
    callee = event.callee
    cell = callee.receiver if isinstance(callee, BoundMethod) and callee.func is None else None
    made = cell.cls.made_as if isinstance(cell, Obj) else None
    if not isinstance(cell, Obj) or made is None or made.canonical not in CELLS:
        return None
    if None in event.args or "**" in event.keywords:
        return None
    return cell, event.args[1] if len(event.args) > 1 else event.keywords.get("rngs")


def _is_positive(value: Value | None) -> bool:
    return isinstance(value, Const) and isinstance(value.value, float) and value.value > 0


class Drawn(NamedTuple):
    """A stream that a class draws from a parameter of its constructor, and the layer that needs it."""

    stream: str
    layer: str


def drawn_from_parameter(cls: UserClass) -> list[Drawn]:
    """The streams that the constructor of a class certainly draws from the one ``nnx.Rngs`` that it is given."""
    known = cls.model is not None and streams_parameter(cls) is not None
    return [*_drawn_by_name(cls), *_drawn(cls, cls.model, 0)] if known else []


def _drawn_by_name(cls: UserClass) -> Iterator[Drawn]:
    """The streams that the constructor of a class certainly asks for itself, of those that it is given."""
    made, parameter = method_of(cls, "__init__"), streams_parameter(cls)
    func = made[1].wrapped.node if made is not None else None
    if parameter is None or func is None or assigned_in(func)[parameter.arg]:
        return
    for call in _certain_calls(func):
        asked = call.func if isinstance(call.func, ast.Attribute) and not call.args else None
        if asked is not None and is_name(asked.value, parameter.arg) and asked.attr not in METHODS:
            yield Drawn(asked.attr, cls.name)


def _drawn(cls: UserClass, model: Obj | None, depth: int) -> Iterator[Drawn]:
    for layer in _given_the_streams(model) if depth < MAX_DEPTH else ():
        if layer.cls.made_as is not None:
            yield from (Drawn(stream, layer.cls.name) for stream in drawn_by(layer))
        elif isinstance(layer.cls, UserClass) and layer.cls is not cls and layer.cls.model is not None:
            yield from _drawn(layer.cls, layer.cls.model, depth + 1)


def _given_the_streams(model: Obj | None) -> Iterator[Obj]:
    """The layers that a constructor certainly makes with the streams that it is given itself."""
    for name in attribute_names(model) if model is not None else ():
        attr = attribute_of(model, name) if model is not None else None
        if attr is None or not attr.assignments or any(item.branches or item.doubtful for item in attr.assignments):
            continue
        for layer in elements(attr.value):
            rngs = (layer.args or {}).get("rngs")
            if isinstance(rngs, Obj) and rngs.cls is RNGS and rngs.assumed:
                yield layer


def asked_for(cls: UserClass, depth: int = 0) -> Iterator[tuple[str, Module, ast.Call]]:
    """The streams of the ``nnx.Rngs`` given to a constructor that it, or a method or a part of what it makes, may ask
    for by name, and where.
    """
    parameter, made = streams_parameter(cls), method_of(cls, "__init__")
    if parameter is None or made is None or depth >= MAX_DEPTH:
        return
    for call in calls_in(made[1].wrapped.node):
        func = call.func
        if isinstance(func, ast.Attribute) and is_name(func.value, parameter.arg) and func.attr not in METHODS:
            yield func.attr, made[1].module, call
    for name in cls.methods:
        method = method_of(cls, name)
        if method is not None and not isinstance(method[1].wrapped.node, ast.Lambda):
            yield from _drawn_from_kept(cls, method[1].wrapped, calls_in(method[1].wrapped.node))
    for layer in _given_the_streams(cls.model):
        collection = (layer.args or {}).get("rng_collection")
        if isinstance(layer.cls, UserClass) and layer.cls.made_as is None and layer.cls is not cls:
            yield from asked_for(layer.cls, depth + 1)
        elif isinstance(collection, Const) and isinstance(layer.node, ast.Call) and layer.origin is not None:
            yield from ((name, layer.origin[0], layer.node) for name in drawn_by(layer) if name == collection.value)


def drawn_when_called(cls: UserClass) -> Iterator[tuple[str, Module, ast.Call]]:
    """The streams that each call of an instance draws from the ``nnx.Rngs`` that its constructor was given and keeps,
    and where.
    """
    called = method_of(cls, "__call__")
    if called is not None and called[1].wrapped is called[1]:
        yield from _drawn_from_kept(cls, called[1], _certain_calls(called[1].node))


def _drawn_from_kept(
    cls: UserClass, func: FuncVal, calls: Iterable[ast.Call]
) -> Iterator[tuple[str, Module, ast.Call]]:
    """The draws among calls in a method from the ``nnx.Rngs`` that the constructor was given and keeps."""
    parameter, made = streams_parameter(cls), method_of(cls, "__init__")
    if parameter is None or made is None:
        return
    receivers = names_of_first(func.node)
    kept = _kept(cls, made[1].wrapped, parameter.arg)
    kept = {name for name in kept if cls.model is not None and _is_settled(cls.model, name)}
    for call in calls if kept else ():
        for name, owner in streams_asked(call):
            own = isinstance(owner, ast.Attribute) and owner.attr in kept
            if own and isinstance(owner, ast.Attribute) and any(is_name(owner.value, each) for each in receivers):
                yield name, func.module, call


def streams_asked(call: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The stream that a call may draw from, with what it would be one of: ``rngs.noise()``, ``rngs.noise.normal(...)``,
    and ``rngs.normal(...)``, which draws from the default one.
    """
    func = call.func if isinstance(call, ast.Call) else None
    if not isinstance(func, ast.Attribute):
        return
    if func.attr not in METHODS:
        yield func.attr, func.value
    elif func.attr in SAMPLERS:
        yield "default", func.value
        if isinstance(func.value, ast.Attribute) and func.value.attr not in METHODS:
            yield func.value.attr, func.value.value


def kept_streams(frame: Frame, node: ast.expr) -> Value | None:
    """The ``nnx.Rngs`` that an attribute of an object keeps, or a fork of it, as it was given to the constructor."""
    owner = present(resolved(frame.env, node.value) or UNKNOWN) if isinstance(node, ast.Attribute) else None
    cls = owner.cls if isinstance(owner, Obj) else None
    parameter = streams_parameter(cls) if isinstance(cls, UserClass) else None
    if not isinstance(owner, Obj) or not isinstance(cls, UserClass) or not isinstance(node, ast.Attribute):
        return None
    made = method_of(cls, "__init__") if parameter is not None else None
    if parameter is None or made is None or cls.model is None or not _is_settled(cls.model, node.attr):
        return None
    kept = node.attr in _kept(cls, made[1].wrapped, parameter.arg)
    return (owner.args or {}).get(parameter.arg) if kept else None


def _kept(cls: UserClass, func: FuncVal, parameter: str, depth: int = 0) -> set[str]:
    """The attributes that a constructor sets to the streams that it is given, itself or by a method that it calls."""
    found, body = set[str](), func.node.body
    receivers = names_of_first(func.node)
    for statement in straight(body) if isinstance(body, list) and depth < MAX_DEPTH else ():
        pairs = ((target, value) for target, value in pairs_of(statement) if isinstance(target, ast.Attribute))
        found |= {target.attr for target, value in pairs if _is_given(value, parameter)}
        call = statement.value if isinstance(statement, ast.Expr) else None
        own = call.func if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
        called = isinstance(own, ast.Attribute) and isinstance(own.value, ast.Name) and own.value.id in receivers
        method = method_of(cls, own.attr) if own is not None and called else None
        if not isinstance(call, ast.Call) or method is None or method[1].wrapped is not method[1]:
            continue
        names = syntax_parameters.positional_names(method[1].node.args)[1:]
        given = [*zip(names, call.args, strict=False), *((item.arg, item.value) for item in call.keywords)]
        for name, value in given:
            if name is not None and is_name(value, parameter):
                found |= _kept(cls, method[1], name, depth + 1)
    return found


def _is_given(value: ast.expr, parameter: str) -> bool:
    """Whether an expression is a parameter, or has the streams of one."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not (value.args or value.keywords):
        return value.func.attr == "fork" and _is_given(value.func.value, parameter)
    return is_name(value, parameter)


def _is_settled(model: Obj, name: str) -> bool:
    """Whether an attribute has one assignment, and is an ``nnx.Rngs``."""
    attr = attribute_of(model, name)
    return attr is not None and len(attr.assignments) == 1 and is_rngs(attr.value)


def _certain_calls(func: ast.AST) -> Iterator[ast.Call]:
    """The calls that a function makes whenever it ends without an error."""
    for statement in straight(getattr(func, "body", [])):
        if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
            continue
        if not any(isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda)) for node in walk(statement)):
            yield from calls_in(statement)


def elements(value: Value) -> Iterator[Obj]:
    """An object, or the objects in a container."""
    if isinstance(value, Obj):
        held = value.attrs.get("[]")
        if held is not None:
            yield from elements(held.value)
        elif value.cls.derives_from("nnx.Sequential") and (layers := value.attrs.get("layers")) is not None:
            yield from elements(layers.value)
        elif value.cls is DICT:
            for attr in value.attrs.values():
                yield from elements(attr.value)
        else:
            yield value
    elif isinstance(value, Seq):
        for item in value.items:
            if len(options(item)) == 1:
                yield from elements(item)


def streams_parameter(cls: UserClass) -> ast.arg | None:
    """The parameter of a constructor that takes the random streams: annotated so, or handed to a layer as its ``rngs``;
    ``None`` if there is none, or more than one, or if the constructor makes something else of what it is given.
    """
    found = method_of(cls, "__init__")
    if found is None or isinstance(found[1].node, ast.Lambda):
        return None
    func = found[1].wrapped
    arguments = func.node.args
    parameters = syntax_parameters.each(arguments)[1:]
    taken = [item for item in parameters if _takes_streams(func, item)]
    if len(taken) != 1:
        return None
    name = taken[0].arg
    return None if assigned_in(func.node)[name] else taken[0]


def _takes_streams(func: FuncVal, parameter: ast.arg, depth: int = 0) -> bool:
    said = parameter.annotation
    if said is not None:
        if isinstance(said, ast.BinOp) and isinstance(said.right, ast.Constant) and said.right.value is None:
            said = said.left  # `nnx.Rngs | None`
        elif isinstance(said, ast.Subscript) and canonical_of(func.module.env, said.value) == "typing.Optional":
            said = said.slice
        return canonical_of(func.module.env, said) == "nnx.Rngs"
    return parameter.arg in _given_as_rngs(func.node) or (depth < MAX_DEPTH and _hands_on(func, parameter.arg, depth))


def _hands_on(func: FuncVal, name: str, depth: int) -> bool:
    """Whether a function hands a parameter, by position, to the constructor of a class of the project as streams."""
    for call in calls_in(func.node):
        place = next((i for i, item in enumerate(call.args) if is_name(item, name)), None)
        made = resolved(func.module.env, call.func) if place is not None else None
        found = method_of(made.cls, "__init__") if isinstance(made, ClassVal) else None
        if place is None or found is None or isinstance(found[1].node, ast.Lambda):
            continue
        parameters = syntax_parameters.positional(found[1].wrapped.node.args)[1:]
        if place < len(parameters) and _takes_streams(found[1].wrapped, parameters[place], depth + 1):
            return True
    return False


@remembered
def _given_as_rngs(scope: ast.AST) -> set[str]:
    """The names that a function hands to something as its ``rngs``."""
    given = (item for call in calls_in(scope) for item in call.keywords if item.arg == "rngs")
    return {item.value.id for item in given if isinstance(item.value, ast.Name)}
