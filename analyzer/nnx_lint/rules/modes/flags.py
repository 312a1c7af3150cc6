"""Flags that a forward pass takes and does not hand on (NNX843).

A parameter that a method never reads is harmless by itself: a base may ask for it. It is a mistake where the method
calls a layer that takes a parameter of this name and reads it, and leaves that to its default.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass, method_of
from nnx_lint.model.events import Constructed
from nnx_lint.model.values import Const, Obj
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.bindings import names_of_first
from nnx_lint.rules.edits import append_argument, unsafe
from nnx_lint.rules.modes.inverted import LEARNING, RESTING
from nnx_lint.rules.modes.layers import SETTING
from nnx_lint.rules.program import own_nodes
from nnx_lint.rules.randomness.reading import elements
from nnx_lint.syntax.binding import is_name, names_in
from nnx_lint.syntax.dotted import called_by
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import construction as rules
from nnx_rules.signatures import CALL_KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Iterator


@judges(rules.FLAG_NOT_FORWARDED, Constructed)
def flag_not_forwarded(event: Constructed, report: Reporter) -> None:
    func = event.cls.own_method("__call__")
    if not isinstance(func, FuncVal) or isinstance(func.node, ast.Lambda) or not event.cls.derives_from("nnx.Module"):
        return
    flags = _flags(func)
    if not flags or "locals" in names_in(func.node):
        return
    calls = list(_calls(func, event.obj))
    for name in flags:
        informed = _informed(func, calls, name)
        if informed is None:
            continue
        for call, layer in calls:
            if any(item.arg in {name, None} for item in call.keywords) or any(map(_is_starred, call.args)):
                continue
            like = any(layer.cls is other.cls and layer is not other for other in informed)
            told = layer in informed or layer.args is None or name in layer.args
            if informed and (told or not (like or _learns_unless_told(func, layer, name))):
                continue
            mend = f"{name}={name}" if _takes(layer, name, len(call.args)) else _mode(event.cls, call, layer, name)
            if mend is not None:
                slots: dict[str, Any] = {"name": name, "layer": ast.unparse(called_by(call)), "mend": mend}
                fix = unsafe(f"Hand on `{name}`", append_argument(func.module.source, call, mend))
                report(func.module, call, fix=fix, cls=event.cls.name, method="__call__", **slots)


def _is_starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def _informed(func: FuncVal, calls: list[tuple[ast.Call, Obj]], name: str) -> list[Obj] | None:
    """The layers that get a flag; ``None`` if the method does anything else with it.

    A layer of such a class that does not get the flag was forgotten. Where no layer gets it, all of them were.
    """
    reads = sum(is_name(node, name) for node in walk(func.node))
    values = [
        (value, layer) for call, layer in calls for value in [*call.args, *(item.value for item in call.keywords)]
    ]
    given = [layer for value, layer in values if is_name(value, name) or _is_opposite(value, name)]
    return given if len(given) == reads else None


def _is_opposite(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and is_name(node.operand, name)


def _learns_unless_told(func: FuncVal, layer: Obj, name: str) -> bool:
    """Whether a layer goes on learning while the layers beside it are told by a flag that nothing is learned.

    One that rests by default may be meant to, such as an encoder that is not trained. Nothing else may switch it:
    layers of the library are left alone, as `eval()` of a model, in any file, puts those that are not told at rest.
    """
    if name not in RESTING | LEARNING or func.module.mentions(SETTING):
        return False
    found = method_of(layer.cls, "__call__")
    default = found[1].defaults.get(name) if found is not None and layer.cls.called_as is None else None
    return isinstance(default, Const) and default.value is (name in LEARNING)


def _flags(func: FuncVal) -> list[str]:
    """The parameters that are switches: annotated as ``bool``, or with a truth value as their default."""
    arguments = func.node.args
    found: list[str] = []
    for item in [*arguments.args[1:], *arguments.kwonlyargs]:
        default = func.defaults.get(item.arg)
        annotated = is_name(item.annotation, "bool")
        if annotated or (isinstance(default, Const) and isinstance(default.value, bool)):
            found.append(item.arg)
    return found


def _calls(func: FuncVal, obj: Obj) -> Iterator[tuple[ast.Call, Obj]]:
    """The calls of attributes of the object, and of elements of them in loops, with the layers that these are."""
    names = names_of_first(func.node)
    nodes = own_nodes(func.node)
    loops = {name.id: held for node in nodes if isinstance(node, ast.For) for name, held in _loop(node)}
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        called = called_by(node)
        over = loops.get(called.id) if isinstance(called, ast.Name) else None
        target = over or called
        if not isinstance(target, ast.Attribute):
            continue
        if not isinstance(target.value, ast.Name) or target.value.id not in names:
            continue
        attr = attribute_of(obj, target.attr)
        held = list(elements(attr.value)) if attr is not None else []
        if len(held) == 1 or (over is not None and len({layer.cls for layer in held}) == 1):
            yield node, held[0]


def _loop(node: ast.For) -> Iterator[tuple[ast.Name, ast.expr]]:
    """The name that a loop binds to each element of something, and what that is: ``for layer in layers``."""
    over: ast.expr = node.iter
    name: ast.expr = node.target
    called = over.func if isinstance(over, ast.Call) and len(over.args) == 1 else None
    if isinstance(over, ast.Call) and isinstance(called, ast.Name) and called.id in {"enumerate", "reversed"}:
        over = over.args[0]
        if called.id == "enumerate":
            name = name.elts[1] if isinstance(name, ast.Tuple) and len(name.elts) == 2 else ast.Constant(None)
    if isinstance(name, ast.Name):
        yield name, over


OPTIONS = {"Dropout": "deterministic", "BatchNorm": "use_running_average"}
"""What layers of the library call the flag by which they are told that nothing is learned."""


def _mode(cls: UserClass, call: ast.Call, layer: Obj, name: str) -> str | None:
    """How to hand on a flag that says whether something is learned to a layer that calls it by another name.

    ``None`` for other flags, and where the layer is told otherwise: when it is made, by the call, or by ``eval()``.
    """
    option = OPTIONS.get(layer.cls.works_as.name) if layer.cls.works_as is not None else None
    if option is None or name not in RESTING | LEARNING or layer.args is None or option in layer.args:
        return None
    if any(item.arg == option for item in call.keywords) or len(call.args) > 1:
        return None
    return None if cls.module.mentions(SETTING) else f"{option}={'not ' if name in LEARNING else ''}{name}"


def _takes(layer: Obj, name: str, positional: int) -> bool:
    """Whether a layer takes a flag of this name that a call with so many positional arguments does not give."""
    library = layer.cls.called_as
    if library is not None:
        return name in CALL_KEYWORDS.get(library.name, ())
    found = method_of(layer.cls, "__call__")
    if found is None or found[1].wrapped is not found[1] or name not in names_in(found[1].node):
        return False
    arguments = found[1].node.args
    names = [item.arg for item in arguments.args][1:]
    default = found[1].defaults.get(name)
    known = name in names[positional:] or any(item.arg == name for item in arguments.kwonlyargs)
    return known and isinstance(default, Const)
