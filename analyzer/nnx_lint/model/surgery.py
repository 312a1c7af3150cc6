"""Model surgery: functions that walk through a model and put other modules in the place of some.

What a walk meets has no path that anybody knows. So a function that walks through a model, and stores attributes of
anything but its own object, may have put anything anywhere into it.

The same holds of a function of another library that is handed a model in a statement of its own.

Invariants: a walk that only reads, or that sets flags, numbers or the values of Variables, leaves all facts as they
are.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import attributes
from nnx_lint.model.effects import REWIRED
from nnx_lint.model.unions import options
from nnx_lint.model.values import UNKNOWN, Ext, Obj, ParameterVal, Value
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

    Handler = Callable[[Interpreter, Frame, Arguments, ast.AST, str], Value]


def walked(interp: Interpreter, frame: Frame, model: Value, node: ast.AST) -> None:
    """Note that the code of a frame reaches parts of a model by names that are not known."""
    around = frame.func.node if frame.func is not None else _statement(frame, node)
    if around is None or not _rewires(around):
        return
    for item in options(model):
        if isinstance(item, (Obj, ParameterVal)) and item is not frame.initializing:
            interp.effects.changed(frame, item, REWIRED, "write", "")
            attributes.forget_all(item)


def handed(frame: Frame, args: Arguments, node: ast.AST) -> None:
    """Note that a function of which nothing is known was called for what it does, and not for what it returns."""
    if frame.discards is node:
        for value in (*args.positional, *args.keywords.values()):
            if isinstance(value, Obj) and value.cls.derives_from("nnx.Module"):
                attributes.forget_names(value)


def _statement(frame: Frame, node: ast.AST) -> ast.stmt | None:
    """The statement of a module that a node lies in."""
    line = getattr(node, "lineno", 0)
    found = (item for item in frame.module.tree.body if item.lineno <= line <= (item.end_lineno or 0))
    return next(found, None)


@remembered
def _rewires(code: ast.AST) -> bool:
    """Whether code stores attributes that may be modules, of objects other than that whose method it is."""
    own = next(iter(code.args.args), None) if isinstance(code, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    receiver = own.arg if own is not None and own.arg in {"self", "cls"} else ""
    return any(_stores(item, receiver) for item in walk(code))


def _stores(node: ast.AST, receiver: str) -> bool:
    if isinstance(node, ast.Call):
        func = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        target, value = node.args[0] if node.args else None, node.args[-1] if len(node.args) > 1 else None
        if func not in {"setattr", "__setattr__"}:
            return False
    elif isinstance(node, ast.Assign) and isinstance(place := node.targets[0], (ast.Attribute, ast.Subscript)):
        # An element of a list of layers, or of `vars(module)`, is as good a place.
        if isinstance(place, ast.Attribute) and place.attr in {"value", "raw_value"}:
            return False
        target, value = place.value, node.value
    else:
        return False
    if isinstance(target, ast.Call) and len(target.args) == 1:
        target = target.args[0]  # `vars(self)` is as much its own as `self` is
    own = is_name(target, receiver)
    return not own and not isinstance(value, (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Compare, ast.BoolOp))


def _walk(interp: Interpreter, frame: Frame, args: Arguments, node: ast.AST, name: str) -> Value:
    walked(interp, frame, args.get(0) or UNKNOWN, node)
    return UNKNOWN


def reduced(interp: Interpreter, frame: Frame, func: Value, start: Value | None, node: ast.AST) -> None:
    """Note that ``functools.reduce(getattr, path, model)`` walks down a model."""
    if isinstance(func, Ext) and func.name == "builtins.getattr":
        walked(interp, frame, start or UNKNOWN, node)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(
        ("nnx.iter_modules", "nnx.iter_children", "nnx.iter_module_children", "nnx.iter_graph", "nnx.recursive_map"),
        _walk,
    ),
}
