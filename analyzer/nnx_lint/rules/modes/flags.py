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
from nnx_lint.rules.modes.inverted import LEARNING, RESTING
from nnx_lint.rules.modes.layers import SETTING
from nnx_lint.rules.program import own_nodes
from nnx_lint.rules.randomness.reading import elements
from nnx_lint.syntax_walk import walk
from nnx_rules.rules import construction as rules
from nnx_rules.signatures import CALL_KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Iterator


@judges(rules.FLAG_NOT_FORWARDED, Constructed)
def flag_not_forwarded(event: Constructed, report: Reporter) -> None:
    func = event.cls.methods.get("__call__")
    if not isinstance(func, FuncVal) or isinstance(func.node, ast.Lambda) or not event.cls.derives_from("nnx.Module"):
        return
    read = _read(func)
    flags = [name for name in _flags(func) if name not in read]
    if not flags or "locals" in read:
        return
    for call, layer in _calls(func, event.obj):
        for name in flags:
            given = any(item.arg in {name, None} for item in call.keywords)
            starred = any(isinstance(item, ast.Starred) for item in call.args)
            if given or starred:
                continue
            mend = f"{name}={name}" if _takes(layer, name, len(call.args)) else _mode(event.cls, call, layer, name)
            if mend is not None:
                slots: dict[str, Any] = {"name": name, "layer": ast.unparse(call.func), "mend": mend}
                report(event.cls.module, call, cls=event.cls.name, method="__call__", **slots)


def _flags(func: FuncVal) -> list[str]:
    """The parameters that are switches: annotated as ``bool``, or with a truth value as their default."""
    arguments = func.node.args
    found: list[str] = []
    for item in [*arguments.args[1:], *arguments.kwonlyargs]:
        default = func.defaults.get(item.arg)
        annotated = isinstance(item.annotation, ast.Name) and item.annotation.id == "bool"
        if annotated or (isinstance(default, Const) and isinstance(default.value, bool)):
            found.append(item.arg)
    return found


def _calls(func: FuncVal, obj: Obj) -> Iterator[tuple[ast.Call, Obj]]:
    """The calls of attributes of the object, with the layers that these are."""
    receiver = func.node.args.args[0].arg if func.node.args.args else None
    for node in own_nodes(func.node):
        target = node.func if isinstance(node, ast.Call) else None
        if not isinstance(node, ast.Call) or not isinstance(target, ast.Attribute):
            continue
        if not isinstance(target.value, ast.Name) or target.value.id != receiver:
            continue
        attr = attribute_of(obj, target.attr)
        held = list(elements(attr.value)) if attr is not None else []
        if len(held) == 1:
            yield node, held[0]


OPTIONS = {"Dropout": "deterministic", "BatchNorm": "use_running_average"}
"""What layers of the library call the flag by which they are told that nothing is learned."""


def _mode(cls: UserClass, call: ast.Call, layer: Obj, name: str) -> str | None:
    """How to hand on a flag that says whether something is learned to a layer that calls it by another name.

    ``None`` for other flags, and where the layer is told otherwise: when it is made, by the call, or by ``eval()``.
    """
    option = OPTIONS.get(layer.cls.name) if not isinstance(layer.cls, UserClass) else None
    if option is None or name not in RESTING | LEARNING or layer.args is None or option in layer.args:
        return None
    if any(item.arg == option for item in call.keywords) or len(call.args) > 1:
        return None
    return None if cls.module.mentions(SETTING) else f"{option}={'not ' if name in LEARNING else ''}{name}"


def _takes(layer: Obj, name: str, positional: int) -> bool:
    """Whether a layer takes a flag of this name that a call with so many positional arguments does not give."""
    if not isinstance(layer.cls, UserClass):
        return name in CALL_KEYWORDS.get(layer.cls.name, ())
    found = method_of(layer.cls, "__call__")
    if found is None or found[1].wrapped is not found[1] or name not in _read(found[1]):
        return False
    arguments = found[1].node.args
    names = [item.arg for item in arguments.args][1:]
    default = found[1].defaults.get(name)
    known = name in names[positional:] or any(item.arg == name for item in arguments.kwonlyargs)
    return known and isinstance(default, Const)


def _read(func: FuncVal) -> set[str]:
    """The names that stand anywhere in a function."""
    return {node.id for node in walk(func.node) if isinstance(node, ast.Name)}
