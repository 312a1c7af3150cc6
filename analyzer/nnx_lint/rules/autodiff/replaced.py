"""States that are called, and attributes of a module in which a method puts one, where the class calls the module that
was there (NNX464).

A target network, or a copy that is averaged, is brought up to date by ``nnx.update(self.target, state)``; who assigns
the State instead has no network any more.

Invariants: the constructor makes a module there, in every case, and the class calls it by this attribute; what is
assigned certainly is a State. Such a call is not told again.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import AttributeSet, Called
from nnx_lint.model.later import CONSTRUCTORS, set_later
from nnx_lint.model.states import StateVal
from nnx_lint.model.values import Obj, with_article
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import names_of_first
from nnx_lint.rules.program import is_tried
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import autodiff as rules

if TYPE_CHECKING:
    from nnx_lint.model.values import Value


@judges_calls(rules.GRADIENT_AS_MODULE, StateVal)
def gradient_called(event: Called, report: Reporter) -> None:
    func, cls = event.node.func if isinstance(event.node, ast.Call) else None, event.frame.cls
    if isinstance(func, ast.Attribute) and is_name(func.value, "self") and isinstance(cls, UserClass):
        made = cls.model.attrs.get(func.attr) if cls.model is not None else None
        if made is not None and _is_network(made.value) and f"{cls.name}.{func.attr}" in set_later(cls.node):
            return  # the method that set it is told
    report(event.frame.module, event.node, name=event.name, problem="cannot be called")


@judges(rules.GRADIENT_AS_MODULE, AttributeSet, when=lambda event: isinstance(event.value, StateVal))
def replaced_by_state(event: AttributeSet, report: Reporter) -> None:
    cls, func = event.obj.cls, event.frame.func
    if not isinstance(cls, UserClass) or func is None or func.cls is not cls or func.name in CONSTRUCTORS:
        return
    made = cls.model.attrs.get(event.name) if cls.model is not None else None
    if made is None or not _is_network(made.value) or not isinstance(made.value, Obj):
        return
    caller = _calling(cls.node).get(event.name)
    if caller is not None and not is_tried(event.frame.module, event.node):
        problem = f"`{caller}` calls what is there, which was {with_article(made.value.cls.name)}"
        place = event.value_node or event.node
        report(event.frame.module, place, name=f"self.{event.name}", problem=problem)


def _is_network(value: Value) -> bool:
    return isinstance(value, Obj) and value.cls.derives_from("nnx.Module")


@remembered
def _calling(cls: ast.AST) -> dict[str, str]:
    """The attributes of ``self`` that the methods of a class call, each with the name of such a method."""
    found: dict[str, str] = {}
    for method in cls.body if isinstance(cls, ast.ClassDef) else ():
        if isinstance(method, ast.FunctionDef):
            own = names_of_first(method)
            for node in walk(method):
                func = node.func if isinstance(node, ast.Call) else None
                if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in own:
                    found.setdefault(func.attr, method.name)
    return found
