"""Entries of an ``nnx.Dict`` that it does not have (part of NNX864, and of NNX365 for its State).

Its entries are attributes, but a key is looked up where the line runs: a head of another name shows late.

Invariants: all keys are known where the dict is made, by their very names; a dict that some text may put an entry into
later may have any.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import entries
from nnx_lint.model.attributes import ANY_NAME
from nnx_lint.model.events import ContainerUsed
from nnx_lint.model.values import Const, Obj
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.program import is_chosen, is_tried
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module


def lacks_entry(held: Obj, key: str, module: Module) -> bool:
    """Whether an ``nnx.Dict`` certainly has no entry of a name, in this module."""
    names = names_in(held)
    if not names or key in names or held.origin is None:
        return False
    modules = {module, held.origin[0]}
    return not any(each.has(key, _put) or each.has(ANY_NAME, _put) for each in modules)


def names_in(held: Obj) -> list[str]:
    """The keys of an ``nnx.Dict``, if all of them are known."""
    if getattr(held.cls, "canonical", None) != "nnx.Dict" or not (known := entries.known(held)).exact:
        return []
    return [key.value for key, _ in known.items if isinstance(key, Const) and isinstance(key.value, str)]


@remembered
def _put(statement: ast.AST) -> frozenset[str]:
    """The keys under which a statement may put something into a dict, or take it out of one."""
    found = set[str]()
    for node in walk(statement):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if isinstance(node.slice, ast.Constant):
                found.add(str(node.slice.value))
            elif isinstance(node.value, ast.Attribute):
                found.add(ANY_NAME)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr":
            found.add(ANY_NAME)
    return frozenset(found)


def asks_dict(event: ContainerUsed) -> bool:
    """Whether a dict is asked for an entry by its name."""
    return event.operator is ast.Subscript and isinstance(event.other, Const) and isinstance(event.other.value, str)


@judges(rules.MISSING_ATTRIBUTE, ContainerUsed, when=asks_dict)
def missing_entry(event: ContainerUsed, report: Reporter) -> None:
    node, module, key = event.node, event.frame.module, event.other
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load) or not isinstance(key, Const):
        return
    if is_tried(module, node) or is_chosen(module, node):
        return
    if lacks_entry(event.container, str(key.value), module):
        mend = "its entries are " + ", ".join(f"`{name}`" for name in names_in(event.container))
        report(module, node, cls="nnx.Dict", name=str(key.value), mend=mend)
