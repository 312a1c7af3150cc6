"""Attributes over what the class defines: a property that has no setter, a method that a layer hides (NNX150).

Invariants: a property is one of the class that the lookup finds first, and an object with a ``__setattr__`` of its own
is left alone; a method counts as hidden where the same class body defines it and assigns the attribute, since a base
may declare a method that a class below is to replace by a layer; and not where the same function calls it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import AttributeSet
from nnx_lint.model.values import Obj, TagVal
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.program import is_tried
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from nnx_lint.model.values import Value


@judges(rules.MEMBER_HIDDEN, AttributeSet)
def member_hidden(event: AttributeSet, report: Reporter) -> None:
    obj, frame = event.obj, event.frame
    if not isinstance(obj.cls, UserClass) or obj.cls.remade or obj.cls.find("__setattr__") is not None:
        return
    found = obj.cls.find(event.name)
    if found is None or not isinstance(found[1], FuncVal) or is_tried(frame.module, event.node):
        return
    owner, func = found
    if not isinstance(owner, UserClass) or not isinstance(func, FuncVal):
        return
    if func.is_property:
        if func.setter is not None or func.decorators != ("property",) or not obj.cls.derives_from("nnx.Pytree"):
            return
        problem, mend = "is a property without a setter", "write to another attribute, which the property returns"
    elif frame.cls is owner and obj is frame.receiver and not func.decorators and _is_part(event.value):
        if frame.func is not None and _is_called_in(frame.func.node, event.name):
            return  # a helper of the constructor, which nobody needs after it
        problem = f"is a method of the class, and {event.value.describe()} takes its place"
        mend = f"call the attribute something else: `self.{event.name}_layer`"
    else:
        return
    places = (related(owner.module, func.node, f"`{event.name}` is defined here"),)
    report(frame.module, event.node, related=places, cls=obj.cls.name, path=event.name, problem=problem, mend=mend)


def _is_called_in(func: ast.AST, name: str) -> bool:
    called = (node.func for node in walk(func) if isinstance(node, ast.Call))
    return any(isinstance(item, ast.Attribute) and item.attr == name for item in called)


def _is_part(value: Value) -> bool:
    """Whether a value is a module or a Variable, and not something that was made of the method itself."""
    held = value.value if isinstance(value, TagVal) else value
    return isinstance(held, Obj) and (held.cls.is_pytree or held.cls.is_variable)
