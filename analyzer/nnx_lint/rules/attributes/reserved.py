"""Attributes with the name of a method of ``nnx.Module`` (NNX119).

Many models have an attribute ``train`` or ``eval`` and never call the method that it hides; only the call shows that
the method was meant. The attribute is what must be renamed, so it is where the finding is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import Called
from nnx_lint.model.values import Array, Const, Obj, Other, UnionVal, Value, options, present
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    import ast

    from nnx_lint.model.modules import Module

METHODS = frozenset({"train", "eval", "set_attributes", "sow", "perturb", "iter_modules", "iter_children"})
"""The public methods of a module."""

PLAIN = frozenset({"a number", "a string", "a bool", "an int", "a float"})


@judges_calls(rules.RESERVED_ATTRIBUTE, Const, Array, Other, UnionVal)
def reserved_attribute(event: Called, report: Reporter) -> None:
    owner = present(event.owner) if event.owner is not None else None
    if not isinstance(owner, Obj) or not isinstance(owner.cls, UserClass) or not _fails(event.callee):
        return
    cls, name = owner.cls, event.name.rpartition(".")[2]
    if name not in METHODS or not cls.derives_from("nnx.Module") or cls.opaque or cls.find(name) is not None:
        return
    if owner.assumed and (event.frame.module.mocks or cls.module.project.heirs.exist(cls.name)):
        return
    place = _assignment(owner, cls, name)
    if place is not None:
        called = (related(event.frame.module, event.node, "it is called here"),)
        report(*place, related=called, cls=cls.name, path=name, value=event.callee.describe())


def _fails(value: Value) -> bool:
    """Whether a value certainly cannot be called."""
    return all(
        isinstance(option, (Const, Array)) or (isinstance(option, Other) and option.what in PLAIN)
        for option in options(value)
    )


def _assignment(owner: Obj, cls: UserClass, name: str) -> tuple[Module, ast.AST] | None:
    """Where the attribute gets its value."""
    attr = attribute_of(owner, name)
    if attr is not None:
        last = attr.assignments[-1] if attr.assignments else None
        return (last.module, last.node) if last is not None else None
    holder = next((item for item in cls.lineage if name in item.attributes), None)
    return (holder.module, holder.attributes[name][1]) if holder is not None else None
