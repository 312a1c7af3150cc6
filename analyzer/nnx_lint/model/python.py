"""What the built-in functions of Python do to abstract values. Dispatch is by canonical name."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import attributes
from nnx_lint.model.classes import library_class
from nnx_lint.model.construct import instance_of
from nnx_lint.model.expressions import element_of, text_of
from nnx_lint.model.values import NUMBER, UNKNOWN, ClassVal, Const, DictVal, Ext, Obj, Other, Seq, Value, present

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
    items: list[tuple[Value, Value]] = []
    exact = not args.starred
    if isinstance(given, DictVal):
        items.extend(given.items)
        exact = exact and given.exact
    elif given is not None:
        pair = element_of(given, frame.level)
        held = pair.items[1] if isinstance(pair, Seq) and pair.exact and len(pair.items) == 2 else UNKNOWN
        items.append((UNKNOWN, held))
        exact = False
    items.extend((Const(key), value) for key, value in args.keywords.items() if key != "**")
    return DictVal(items, frame.level, exact=exact, node=node)


def _zip(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    parts = [element_of(value, frame.level) if value is not None else UNKNOWN for value in args.positional]
    return Seq("generator", [Seq("tuple", parts, frame.level)], frame.level, exact=False)


def _enumerate(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    element = element_of(args.get(0) or UNKNOWN, frame.level)
    return Seq("generator", [Seq("tuple", [NUMBER, element], frame.level)], frame.level, exact=False)


def _range(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    return Seq("range", [NUMBER], frame.level, exact=False)


def _elements_as(type_name: str) -> Handler:
    def handler(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
        return Seq(type_name, [element_of(args.get(0) or UNKNOWN, frame.level)], frame.level, exact=False)

    return handler


def _map(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    from nnx_lint.model.calls import Arguments as CallArguments
    from nnx_lint.model.calls import invoke

    func = args.get(0) or UNKNOWN
    elements: list[Value | None] = [element_of(value or UNKNOWN, frame.level) for value in args.positional[1:]]
    return Seq(
        "map",
        [invoke(interp, frame, func, CallArguments(node, elements, {}, []), node, name)],
        frame.level,
        exact=False,
    )


def _plain(what: str) -> Handler:
    def handler(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
        return Other(what)

    return handler


def _hasattr(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    target, key = args.get(0), args.get(1)
    if isinstance(target, Ext) and target.name == "nnx" and isinstance(key, Const):
        known = f"nnx.{key.value}"
        if library_class(known) is not None or known in {"nnx.data", "nnx.static"}:
            return Const(True)
    return Other("a bool")


def _getattr(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    target, key = args.get(0), args.get(1)
    if target is None or not isinstance(key, Const) or not isinstance(key.value, str):
        return UNKNOWN
    if len(args.positional) > 2 and not isinstance(present(target), Obj):
        return UNKNOWN
    return attributes.get_attribute(interp, frame, target, key.value, node)


def _setattr(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    target, key, value = args.get(0), args.get(1), args.get(2)
    where = args.node_of(0)
    if target is None or value is None or where is None:
        return UNKNOWN
    if isinstance(key, Const) and isinstance(key.value, str):
        attributes.set_attribute(interp, frame, target, text_of(where), key.value, value, args.node_of(2), node)
    elif isinstance(target, Obj) and target is not frame.initializing:
        attributes.mutate(interp, frame, target, text_of(where), "`setattr(...)`", "write", node)
    return UNKNOWN


def _vars(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    target = present(args.get(0) or UNKNOWN)
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


HANDLERS: dict[str, Handler] = {
    "builtins.list": _sequence("list"),
    "builtins.tuple": _sequence("tuple"),
    "builtins.set": _sequence("set"),
    "builtins.frozenset": _sequence("frozenset"),
    "collections.deque": _sequence("deque"),
    "builtins.sorted": _sequence("list"),
    "builtins.reversed": _elements_as("generator"),
    "builtins.filter": _elements_as("generator"),
    "builtins.dict": _dict,
    "collections.OrderedDict": _dict,
    "builtins.zip": _zip,
    "builtins.enumerate": _enumerate,
    "builtins.range": _range,
    "builtins.map": _map,
    "builtins.int": _plain("an int"),
    "builtins.float": _plain("a float"),
    "builtins.bool": _plain("a bool"),
    "builtins.str": _plain("a string"),
    "builtins.len": _plain("an int"),
    "builtins.isinstance": _plain("a bool"),
    "builtins.hasattr": _hasattr,
    "builtins.callable": _plain("a bool"),
    "builtins.repr": _plain("a string"),
    "builtins.id": _plain("an int"),
    "builtins.hash": _plain("an int"),
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.vars": _vars,
    "builtins.object.__setattr__": _object_setattr,
    "builtins.object.__new__": _object_new,
}
