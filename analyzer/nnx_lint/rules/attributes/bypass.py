"""Attributes that reach an object past its class: through ``__dict__`` or ``object.__setattr__`` (NNX120), or before
the object is initialized (NNX128).

Constructors may do either on purpose (frozen dataclasses do), and so may methods that rebuild an object from what
another one holds; only data that a finished object is given this way is certainly lost.
"""

from __future__ import annotations

import ast
import keyword

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import AttributeBypassed, AttributeSet
from nnx_lint.model.frames import Frame
from nnx_lint.model.strings import HOLE
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.edits import replace
from nnx_lint.rules.program import ancestors
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.attributes import Status
from nnx_rules.rules import attributes as rules


@judges(rules.STATUS_BYPASS, AttributeBypassed)
def status_bypass(event: AttributeBypassed, report: Reporter) -> None:
    obj, frame = event.obj, event.frame
    if not isinstance(obj.cls, UserClass) or not obj.cls.checked or not event.value.facts().is_data:
        return
    if HOLE in event.name:
        return
    attr = attribute_of(obj, event.name)
    recorded = attr is not None and (attr.declared is Status.DATA or bool(attr.assignments))
    if recorded or (obj.assumed and frame.module.mocks) or event.name.startswith("_pytree__") or _rebuilds(frame):
        return
    if not frame.module.has(event.name, taken_back):
        value = event.value.describe()
        report(frame.module, event.node, fix=lambda: assigned(event), cls=obj.cls.name, path=event.name, value=value)


def assigned(event: AttributeBypassed) -> Fix | None:
    """Assign the attribute."""
    module, node = event.frame.module, event.node
    source = module.source
    if not isinstance(event.obj.cls, UserClass) or event.obj.cls.find("__setattr__") is not None:
        return None
    if not event.name.isidentifier() or keyword.iskeyword(event.name):
        return None
    title = f"Assign `{event.name}`"
    match node:
        case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(value=owner), slice=ast.Constant()) as target]):
            text = source.segment(owner)
        case ast.Assign(targets=[ast.Subscript(value=ast.Call(args=[owner]), slice=ast.Constant()) as target]):
            text = source.segment(owner)
        case ast.Call(args=[owner, ast.Constant(), value], keywords=[]) if isinstance(
            next(ancestors(module, node), None), ast.Expr
        ):
            text = f"{source.segment(owner)}.{event.name} = {source.segment(value)}"
            return Fix(title, replace(source, node, text), Applicability.UNSAFE)
        case _:
            return None
    return Fix(title, replace(source, target, f"{text}.{event.name}"), Applicability.UNSAFE)


@remembered
def taken_back(tree: ast.AST) -> frozenset[str]:
    """Attributes that code also sets to ``None``, or deletes, past the class: there they only hand a value on.

    What is put into an object and taken out again in one call is not meant to be data.
    """
    found: set[str] = set()
    for call in walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        literals = [item.value if isinstance(item, ast.Constant) else ... for item in call.args]
        match call.func.attr, literals:
            case ("__setattr__", [_, str(name), None]) | ("__delattr__", [_, str(name)]):
                found.add(name)
            case ("pop", [str(name), *_]) if _is_namespace(call.func.value):
                found.add(name)
            case _:
                pass
    return frozenset(found)


def _is_namespace(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "__dict__") or (
        isinstance(node, ast.Call) and is_name(node.func, "vars")
    )


def _rebuilds(frame: Frame) -> bool:
    """Whether this runs in a constructor, or in another special method that fills an object."""
    current: Frame | None = frame
    while current is not None:
        if current.initializing is not None or (current.name.startswith("__") and current.name != "__call__"):
            return True
        current = current.caller
    return False


@judges(rules.ATTRIBUTE_BEFORE_INIT, AttributeSet)
def attribute_before_init(event: AttributeSet, report: Reporter) -> None:
    cls = event.obj.cls
    if event.obj.bare and isinstance(cls, UserClass) and cls.is_pytree and not cls.opaque and not cls.is_open:
        report(event.frame.module, event.node, cls=cls.name, path=event.name)
