"""Attributes that are asked for where the constructor has not made them (NNX864): ``if tied: self.head = ...`` in the
constructor, and ``self.head(x)`` under ``else`` of ``if not self.tied`` in the forward pass.

What decides is a parameter of the constructor, or an attribute that is set to it once.

Invariants: one statement of the constructor alone sets the attribute that is asked for, and one what decides; nothing
binds the parameter anew; both conditions are that alone, or its negation.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.construction.conditional import strings_in
from nnx_lint.rules.construction.missing import is_known
from nnx_lint.rules.program import FUNCTIONS, ancestors, assigned_in, attributes_named, block_of, is_tried, statement_of
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import root_of
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module

Decision = tuple[str, bool]
"""What decides, as the constructor writes it, and whether it must be true."""


def _is_conditional(event: Called) -> bool:
    """Whether what is called is an attribute of the present object that was set under a condition."""
    owner, func = event.owner, event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(owner, Obj) or owner is not event.frame.receiver or not isinstance(func, ast.Attribute):
        return False
    attr = attribute_of(owner, func.attr)
    return attr is not None and len(attr.assignments) == 1 and bool(attr.assignments[0].branches)


@judges_calls(rules.MISSING_ATTRIBUTE, "()", when=_is_conditional)
def under_the_opposite(event: Called, report: Reporter) -> None:
    func, cls, frame = event.node.func if isinstance(event.node, ast.Call) else None, None, event.frame
    if isinstance(event.owner, Obj) and isinstance(event.owner.cls, UserClass) and frame.func is not None:
        cls = event.owner.cls
    made = cls.methods.get("__init__") if cls is not None else None
    if cls is None or frame.func is None or not isinstance(func, ast.Attribute) or not isinstance(made, FuncVal):
        return
    if frame.func.cls is not cls or frame.func is made or not is_known(cls) or is_tried(frame.module, func):
        return
    place = _only_place(cls, made, func.attr)
    needed = _decisions(cls, made, cls.module, place) if place is not None else set[Decision]()
    if place is None or not needed:
        return
    if any((what, not how) in needed for what, how in _decisions(cls, made, frame.module, func)):
        mend = "the constructor assigns it under the opposite condition"
        where = (related(cls.module, place, f"`{func.attr}` is assigned here only"),)
        report(frame.module, func, cls=cls.name, name=func.attr, mend=mend, related=where)


def _only_place(cls: UserClass, made: FuncVal, name: str) -> ast.Attribute | None:
    """Where a constructor sets an attribute, if nothing else in the file does for objects of this class."""
    if cls.module.has(name, strings_in) or any(name in {*x.methods, *x.attributes, *x.fields} for x in cls.lineage):
        return None
    stored = [item for item in attributes_named(cls.module.tree).get(name, ()) if not isinstance(item.ctx, ast.Load)]
    own = [item for item in attributes_named(cls.node).get(name, ()) if item in stored]
    others = any(not is_name(item.value, "self") for item in stored)
    inside = attributes_named(made.node).get(name, ())
    return own[0] if len(own) == 1 and own[0] in inside and not others else None


def _decisions(cls: UserClass, made: FuncVal, module: Module, node: ast.AST) -> set[Decision]:
    """What certainly holds where a node stands, of what the constructor is given."""
    found: set[Decision] = set()
    inner = node
    for outer in ancestors(module, node):
        if isinstance(outer, FUNCTIONS):
            break
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
            body = outer.body if isinstance(outer.body, list) else [outer.body]
            found |= _decision(cls, made, outer.test, inner in body)
        inner = outer
        if isinstance(inner, ast.stmt):
            block = block_of(module, inner)
            earlier = block[: block.index(inner)] if inner in block else []
            ending = (each for each in earlier if isinstance(each, ast.If) and isinstance(each.body[-1], ENDING))
            found |= {item for each in ending for item in _decision(cls, made, each.test, False)}
    return found


ENDING = (ast.Return, ast.Raise)


def _decision(cls: UserClass, made: FuncVal, test: ast.expr, holds: bool) -> set[Decision]:
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, holds = test.operand, not holds
    if isinstance(test, ast.Attribute) and is_name(test.value, "self"):
        stored = [item for item in attributes_named(cls.node).get(test.attr, ()) if isinstance(item.ctx, ast.Store)]
        statement = statement_of(cls.module, stored[0]) if len(stored) == 1 else None
        if not isinstance(statement, ast.Assign) or statement not in made.node.body:  # type: ignore[operator]
            return set()
        test = statement.value
    root = root_of(test)
    if root is None or root == "self" or assigned_in(made.node)[root] > 1:
        return set()
    if isinstance(test, ast.Name) and assigned_in(made.node)[test.id]:
        bound = [item for item in made.node.body if isinstance(item, ast.Assign)]  # type: ignore[union-attr]
        values = [item.value for item in bound if any(is_name(target, test.id) for target in item.targets)]
        return {(ast.unparse(values[0]), holds)} if len(values) == 1 else set()
    return {(ast.unparse(test), holds)}
