"""Bridge modules that are used before they are bound (NNX863).

``init`` and ``apply`` bind a bridge module for all of its methods, decorated or not, and so does the method of another
one in which it is made. So the class alone shows nothing: what fails is a method that is called of an object right
after it was made, outside of every class.

Invariants: the object is one that a call makes, or a name that is bound once to it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import Called
from nnx_lint.model.values import ClassVal
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import bound_to, names_of_first
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    call_of,
    calls_in,
    canonical_of,
    enclosing,
    is_tried,
    reads_of,
)
from nnx_lint.syntax.dotted import called_by
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.modules import Module

BOUND = frozenset({"param", "variable", "make_rng"})
"""What a module can do only while it is bound."""


def _makes_one(event: Called) -> bool:
    """Whether a call makes a bridge module."""
    cls = event.callee.cls if isinstance(event.callee, ClassVal) else None
    if not isinstance(cls, UserClass) or not cls.module.mentions("bridge"):
        return False
    return any(canonical_of(cls.env, base) == "nnx.bridge.Module" for base in cls.node.bases)


@judges_calls(rules.BRIDGE_UNBOUND, ClassVal, when=_makes_one)
def bridge_unbound_use(event: Called, report: Reporter) -> None:
    module, cls = event.frame.module, event.callee.cls if isinstance(event.callee, ClassVal) else None
    if not isinstance(cls, UserClass) or not isinstance(event.node, ast.Call):
        return
    if enclosing(module, event.node, ast.ClassDef) is not None or is_tried(module, event.node):
        return
    for name in _methods_called(module, event.node):
        method = cls.own_method(name)
        if isinstance(method, FuncVal) and isinstance(method.node, ast.FunctionDef) and not method.node.decorator_list:
            for attribute in _of_itself(method.node):
                report(cls.module, attribute, method=attribute.attr, path=f"{cls.name}.{name}")


def _methods_called(module: Module, made: ast.Call) -> Iterator[str]:
    """The methods that are called of an object, by the call that makes it or by the name that it gets."""
    bound = bound_to(module, made)
    if bound is None:
        yield from _method_called(module, made)
    elif isinstance(bound.target, ast.Name):
        scope = enclosing(module, made, *FUNCTIONS) or module.tree
        if assigned_in(scope)[bound.target.id] == 1:
            for read in reads_of(scope, bound.target.id):
                if enclosing(module, read, ast.ClassDef) is None and not is_tried(module, read):
                    yield from _method_called(module, read)


def _method_called(module: Module, node: ast.expr) -> Iterator[str]:
    if call_of(module, node) is not None:
        yield "__call__"
        return
    parent = next(ancestors(module, node), None)
    if isinstance(parent, ast.Attribute) and call_of(module, parent) is not None:
        yield parent.attr


def _of_itself(method: ast.FunctionDef) -> Iterator[ast.Attribute]:
    """Where a method calls those methods of its own object that need it bound."""
    names = names_of_first(method)
    for call in calls_in(method):
        func = called_by(call)
        of_itself = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in names
        if isinstance(func, ast.Attribute) and of_itself and func.attr in BOUND:
            yield func
