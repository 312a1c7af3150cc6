"""Parameters and submodules that a module makes the first time it is called (NNX834).

Invariant: the forward pass comes to the place under a condition that asks whether the thing is there, itself or through
methods of the same object.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.classes import method_of
from nnx_lint.model.events import AttributeSet, ItemSet
from nnx_lint.model.unions import options
from nnx_lint.model.values import Obj, Value
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import FUNCTIONS, calls_in, enclosing
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.frames import Frame


@judges(rules.LAZY_ATTRIBUTE, AttributeSet, of=(Obj,))
def lazy_attribute(event: AttributeSet, report: Reporter) -> None:
    frame = event.frame
    if event.obj is not frame.receiver or frame.initializing or not is_module(event.obj):
        return
    if _is_trained(event.value) and _is_first_call(frame, event.node, lambda test: _asks_for(test, event.name)):
        report(frame.module, event.node, cls=event.obj.cls.name, path=event.name)


@judges(rules.LAZY_ATTRIBUTE, ItemSet, of=(Obj,))
def lazy_entry(event: ItemSet, report: Reporter) -> None:
    """The same with an entry of an ``nnx.Dict`` that the module keeps."""
    frame = event.frame
    target = event.node.targets[0] if isinstance(event.node, ast.Assign) else None
    kept = target.value if isinstance(target, ast.Subscript) else None
    if not isinstance(kept, ast.Attribute) or frame.initializing or not _is_trained(event.value):
        return
    owner = frame.receiver
    if not isinstance(owner, Obj) or not is_module(owner) or not event.obj.cls.derives_from("nnx.Dict"):
        return
    attr = attribute_of(owner, kept.attr)
    held = attr is not None and event.obj in options(attr.value)
    if held and _is_first_call(frame, event.node, lambda test: _asks_whether_in(test, ast.unparse(kept))):
        report(frame.module, event.node, cls=owner.cls.name, path=f"{kept.attr}[...]")


def _is_trained(value: Value) -> bool:
    """Whether a value is a parameter, or a module that may have some."""
    if not isinstance(value, Obj):
        return False
    return value.cls.derives_from("nnx.Param") or (is_module(value) and not value.cls.is_variable)


def _is_first_call(frame: Frame, node: ast.AST, asks: Callable[[ast.expr], bool]) -> bool:
    """Whether a forward pass, or a method of the same object that it calls, comes to a place under a condition that
    asks whether something is there.
    """
    asked = False
    while frame.func is not None:
        guard = enclosing(frame.module, node, ast.If, *FUNCTIONS)
        asked = asked or (isinstance(guard, ast.If) and asks(guard.test))
        if frame.func.name == "__call__":
            return asked
        if _runs_in_constructor(frame.receiver, frame.func.name):
            return False  # the constructor sees to what it knows of
        caller, call = frame.caller, frame.call
        if caller is None or call is None or caller.receiver is not frame.receiver:
            return False
        frame, node = caller, call
    return False


def _runs_in_constructor(obj: Value | None, name: str) -> bool:
    """Whether the constructor of an object calls a method, by its name."""
    found = method_of(obj.cls, "__init__") if isinstance(obj, Obj) else None
    calls = calls_in(found[1].node) if found is not None else []
    return any(isinstance(call.func, ast.Attribute) and call.func.attr == name for call in calls)


def _asks_whether_in(test: ast.expr, container: str) -> bool:
    """Whether a condition asks whether a container lacks an entry."""
    return any(
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.NotIn)
        and ast.unparse(node.comparators[0]) == container
        for node in walk(test)
    )


def _asks_for(test: ast.expr, name: str) -> bool:
    """Whether a condition asks if an attribute is there: ``hasattr``, or a comparison with ``None``."""
    for node in walk(test):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"hasattr", "getattr"}:
            asked: list[ast.expr] = node.args
            wanted: object = name
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == name:
            asked, wanted = node.comparators, None
        else:
            continue
        if any(isinstance(item, ast.Constant) and item.value == wanted for item in asked):
            return True
    return isinstance(test, ast.UnaryOp) and isinstance(test.operand, ast.Attribute) and test.operand.attr == name
