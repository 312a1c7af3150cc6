"""Attributes with the name of a method of ``nnx.Module`` (NNX119).

Many models have an attribute ``train`` or ``eval`` and never call the method that it hides; only the call shows that
the method was meant. The attribute is what must be renamed, so it is where the finding is.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import Called
from nnx_lint.model.unions import UnionVal, options, present
from nnx_lint.model.values import (
    Array,
    Const,
    Obj,
    Other,
    ParameterNumber,
    ParameterVal,
    Unknown,
    Value,
)
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.program import ancestors, attribute_reads
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.parameters import defaults
from nnx_rules.modes import MODE_ATTRIBUTES
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

METHODS = frozenset({"train", "eval", "set_attributes", "sow", "perturb", "iter_modules", "iter_children"})
"""The public methods of a module."""

PLAIN = frozenset({"a number", "a string", "a bool", "an int", "a float"})


@judges_calls(rules.RESERVED_ATTRIBUTE, ".train", ".eval")
@judges_calls(rules.RESERVED_ATTRIBUTE, Const, Array, Other, ParameterVal, UnionVal)
def reserved_attribute(event: Called, report: Reporter) -> None:
    owner = present(event.owner) if event.owner is not None else None
    if not isinstance(owner, Obj) or not isinstance(owner.cls, UserClass):
        return
    cls, name, value = owner.cls, event.name.rpartition(".")[2], event.callee
    if isinstance(value, ParameterVal):
        value = _default(owner, cls, value.name) or value
    if name not in METHODS or not cls.derives_from("nnx.Module") or cls.opaque or cls.find(name) is not None:
        return
    if not _fails(value) and not (isinstance(value, Unknown) and _is_flag(cls, name)):
        return
    if owner.assumed and (event.frame.module.mocks or cls.module.project.heirs.exist(cls.name)):
        return
    place = _assignment(owner, cls, name)
    if place is not None:
        shown = next((option for option in options(value) if isinstance(option, Const)), value)
        described = "a bool" if isinstance(shown, Unknown) else shown.describe()
        called = (related(event.frame.module, event.node, "it is called here"),)
        report(*place, related=called, cls=cls.name, path=name, value=described)


def _default(owner: Obj, cls: UserClass, name: str) -> Const | None:
    """The literal that a parameter of the constructor has where nobody gives it."""
    found = cls.find("__init__")
    func = found[1] if found is not None else None
    node = defaults(func.node.args).get(name) if isinstance(func, FuncVal) else None
    left_out = owner.args is not None and name not in owner.args and "**" not in owner.args
    return Const(node.value) if isinstance(node, ast.Constant) and node.value is not None and left_out else None


def _fails(value: Value) -> bool:
    """Whether a value certainly cannot be called. A parameter takes what its default is like."""
    found = options(value)
    plain = any(isinstance(option, Const) and option.value is not None for option in found)
    return all(
        isinstance(option, (Const, Array))
        or (isinstance(option, Other) and option.what in PLAIN)
        or (isinstance(option, ParameterNumber) and plain)
        for option in found
    )


def _is_flag(cls: UserClass, name: str) -> bool:
    """Whether all that a class does with an attribute is to ask whether it is true."""
    reads = [
        (item.module, node)
        for item in cls.lineage
        for node in attribute_reads(item.node, name)
        if is_name(node.value, "self")
    ]
    return bool(reads) and all(_is_asked(next(ancestors(module, node)), node) for module, node in reads)


def _is_asked(outer: ast.AST, node: ast.AST) -> bool:
    if isinstance(outer, (ast.If, ast.IfExp, ast.While)):
        return outer.test is node
    if isinstance(outer, ast.keyword):
        return outer.arg in MODE_ATTRIBUTES or outer.arg in FLAGS
    return isinstance(outer, ast.BoolOp) or (isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not))


FLAGS = frozenset({"is_training", "train", "training"})
"""What programs call the flag of a mode, beside the attributes of the library's layers."""


def _assignment(owner: Obj, cls: UserClass, name: str) -> tuple[Module, ast.AST] | None:
    """Where the attribute gets its value."""
    attr = attribute_of(owner, name)
    if attr is not None:
        last = attr.assignments[-1] if attr.assignments else None
        return (last.module, last.node) if last is not None else None
    holder = next((item for item in cls.lineage if name in item.attributes), None)
    return (holder.module, holder.attributes[name][1]) if holder is not None else None
