"""Attributes that the constructor leaves out, or sets to ``None``, for some arguments, asked of an instance made with
such (NNX864), or called (NNX836).

``if use_bn: self.bn = ...`` gives some instances the attribute and others not, and a method that uses it without asking
fails for the others. What one call of the class leaves out is known from its sized model
(:mod:`nnx_lint.model.sized`), in which the conditions of the constructor are decided by the arguments.

Where nobody is seen to make an instance, the class itself shows the mistake if a method asks whether the attribute
``is None`` that one of its branches alone assigns, or if its forward pass reads it whatever the arguments were.

Invariants: only constructors of the class and its bases assign such an attribute, nothing in these files names it in a
string, and the statement that asks for it runs whenever the method of that instance does.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import ANY_NAME, attribute_names
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.events import AttributeMissed, Called, ClassDefined
from nnx_lint.model.expressions import text_of
from nnx_lint.model.members import is_present
from nnx_lint.model.values import Const, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.construction.classes import is_left_out
from nnx_lint.rules.construction.missing import is_known
from nnx_lint.rules.program import FUNCTIONS, ancestors, is_asked_for, is_tried
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Related
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


@judges(rules.MISSING_ATTRIBUTE, AttributeMissed)
def left_out(event: AttributeMissed, report: Reporter) -> None:
    node, name = event.node, event.name
    places = _decided(event.frame, event.obj, name, node) if isinstance(node, ast.Attribute) else ()
    cls = event.obj.cls
    if places and not (isinstance(cls, UserClass) and is_left_out(cls, event.obj, name)):
        mend = "the constructor assigns it under a condition: ask for the same, or assign `None` otherwise"
        report(event.frame.module, node, cls=event.obj.cls.name, name=name, mend=mend, related=places)


@judges(rules.MISSING_ATTRIBUTE, AttributeMissed)
def left_out_by_option(event: AttributeMissed, report: Reporter) -> None:
    """A Variable that an option leaves out, ``use_bias=False``: in its place is ``None``, of which a part is asked."""
    obj, node, module = event.obj, event.node, event.frame.module
    spec = obj.cls.spec if isinstance(obj.cls, LibClass) else None
    members = [each for each in (spec.members if spec is not None else None) or () if each.path == (event.name,)]
    if not members or obj.assumed or obj.args is None or not isinstance(node, ast.Attribute):
        return
    outer = next(ancestors(module, node), None)
    used = isinstance(outer, (ast.Attribute, ast.Subscript)) and outer.value is node
    if not used or any(is_present(each, obj.args) is not False for each in members):
        return
    option = next((each.unless[0] for each in members if each.unless is not None and not each.unless[1]), None)
    if option is None or is_tried(module, node) or is_asked_for(module, node) or event.frame.doubtful:
        return
    mend = f"it was made with `{option}=False`: ask first `if {text_of(node)} is not None`"
    report(module, node, cls=obj.cls.name, name=event.name, mend=mend)


@judges_calls(rules.NOT_CALLABLE, Const)
def none_called(event: Called, report: Reporter) -> None:
    """What the constructor sets to ``None`` for some arguments."""
    func, owner = event.node.func if isinstance(event.node, ast.Call) else None, event.owner
    none = isinstance(event.callee, Const) and event.callee.value is None
    if not none or not isinstance(func, ast.Attribute) or not isinstance(owner, Obj):
        return
    places = _decided(event.frame, owner, func.attr, func)
    if places:
        mend = f"this instance has `None` there: call it only `if {event.name} is not None`"
        report(event.frame.module, event.node, cls="None", name=event.name, mend=mend, related=places)


@judges(rules.MISSING_ATTRIBUTE, ClassDefined)
def left_out_in_class(event: ClassDefined, report: Reporter) -> None:
    """An attribute that the constructor assigns under a condition alone, and a method takes for granted."""
    cls = event.cls
    func = cls.own_method("__init__")
    if not isinstance(func, FuncVal) or isinstance(func.node, ast.Lambda) or not is_known(cls):
        return
    for name, place in _options(func.node).items():
        if _only_in_constructors(cls, name, cls.module) is None or _assigned(func.node.body, name):
            continue
        asked = next(filter(None, (_taken_for_granted(cls, each, name) for each in cls.methods.values())), None)
        if asked is not None and not is_tried(cls.module, asked) and not is_asked_for(cls.module, asked):
            mend = "the constructor assigns it under a condition: ask for the same, or assign `None` otherwise"
            places = (related(cls.module, place, f"`{name}` is assigned here, under a condition"),)
            report(cls.module, asked, cls=cls.name, name=name, mend=mend, related=places)


@remembered
def _options(func: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.AST]:
    """The attributes that a constructor assigns under a plain condition, and not otherwise, each with a place."""
    found: dict[str, ast.AST] = {}
    for outer in func.body:
        if isinstance(outer, ast.If) and not outer.orelse and _is_flag(outer.test):
            for node in outer.body:
                targets = node.targets if isinstance(node, ast.Assign) else ()
                found.update((each.attr, each) for each in map(_own_store, targets) if each is not None)
    return found


def _is_flag(test: ast.expr) -> bool:
    """Whether a condition is an option: a name or a field of one, or whether it ``is not None``. Whoever calls a module
    has given it streams, which only those leave out who look at its form.
    """
    if last_name(test) in {"rngs", "rng", "key"}:
        return False
    if isinstance(test, ast.Compare):
        none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        return none and isinstance(test.ops[0], ast.IsNot) and len(test.ops) == 1 and _is_flag(test.left)
    return isinstance(test, ast.Name) or (isinstance(test, ast.Attribute) and _is_flag(test.value))


def _assigned(body: list[ast.stmt], name: str) -> bool:
    """Whether a constructor assigns an attribute under other conditions, too."""
    return sum(_sets(node, name) for statement in body for node in walk(statement)) > 1


def _taken_for_granted(cls: UserClass, func: object, name: str) -> ast.Attribute | None:
    """Where a method asks first of all whether an attribute is ``None``, or where a forward pass reads it first."""
    node = func.node if isinstance(func, FuncVal) else None
    if not isinstance(node, ast.FunctionDef) or node.name == "__init__":
        return None
    for statement in node.body:
        test = statement.test if isinstance(statement, (ast.Assert, ast.If)) else None
        first = test.values[0] if isinstance(test, ast.BoolOp) else test
        compared = (
            first.left if isinstance(first, ast.Compare) and isinstance(first.ops[0], (ast.Is, ast.IsNot)) else None
        )
        if isinstance(compared, ast.Attribute) and _reads(compared, name):
            return compared
        if test is not None and (not isinstance(statement, ast.If) or any(map(_leaves, walk(statement)))):
            return None
        once = not isinstance(statement, (ast.For, ast.While, ast.With, ast.Try))
        if test is None and node.name == "__call__" and once:
            for each in walk(statement):
                if isinstance(each, ast.Attribute) and _reads(each, name):
                    return each if _runs(cls.module, each, statement) else None
    return None


def _reads(node: ast.Attribute, name: str) -> bool:
    return node.attr == name and is_name(node.value, "self")


def _leaves(node: ast.AST) -> bool:
    return isinstance(node, (ast.Raise, ast.Return))


def _runs(module: Module, node: ast.AST, statement: ast.stmt) -> bool:
    """Whether an expression is computed whenever its statement runs."""
    for outer in ancestors(module, node):
        if outer is statement:
            return True
        if isinstance(outer, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.comprehension, *FUNCTIONS)):
            return False
    return False


def _decided(frame: Frame, obj: Obj, name: str, node: ast.Attribute) -> tuple[Related, ...]:
    """The places that decide what an instance has under a name; none where that is not certain."""
    cls = obj.cls
    if not isinstance(cls, UserClass) or frame.doubtful or obj.assumed or obj.origin is None or not is_known(cls):
        return ()
    if not _is_sized(obj, cls) or ANY_NAME in attribute_names(obj):
        return ()
    place = _only_in_constructors(cls, name, frame.module)
    if place is None or is_tried(frame.module, node) or is_asked_for(frame.module, node):
        return ()
    return (
        related(*obj.origin, "this instance has none"),
        related(*place, f"`{name}` is assigned here, under a condition"),
    )


def _is_sized(obj: Obj, cls: UserClass) -> bool:
    """Whether all that a constructor makes of its arguments is known of an instance."""
    models = [each.model for each in cls.sized.values() if each.model is not None]
    found: Obj | None = obj
    while found is not None and all(found is not model for model in models):
        found = found.template
    return found is not None


def _only_in_constructors(cls: UserClass, name: str, here: Module) -> tuple[Module, ast.AST] | None:
    """Where constructors assign an attribute, if nothing else may; ``None`` if something may."""
    owners = cls.lineage
    inside: list[tuple[Module, ast.AST]] = []
    for owner in owners:
        func = owner.methods.get("__init__")
        if isinstance(func, FuncVal):
            inside += [(owner.module, node) for node in walk(func.node) if _sets(node, name)]
        if name in owner.methods or name in owner.attributes or name in owner.fields:
            return None
    modules = {id(module): module for module in (here, *(owner.module for owner in owners))}.values()
    own = {owner.node for owner in owners}
    texts = (statement for module in modules for statement in module.tree.body)
    everywhere = sum((_stored if text in own else _stored_in_others)(text)[name] for text in texts)
    strings = any(module.has(name, strings_in) for module in modules)
    return inside[0] if inside and not strings and everywhere == len(inside) else None


def _sets(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load)


@remembered
def _stored(statement: ast.AST) -> Counter[str]:
    """How often each attribute is assigned or deleted."""
    nodes = (node for node in walk(statement) if isinstance(node, ast.Attribute))
    return Counter(node.attr for node in nodes if not isinstance(node.ctx, ast.Load))


@remembered
def _stored_in_others(statement: ast.AST) -> Counter[str]:
    """The same without what the methods of a class do to their own objects, which are no others."""
    if not isinstance(statement, ast.ClassDef):
        return _stored(statement)
    return _stored(statement) - Counter(each.attr for each in map(_own_store, walk(statement)) if each is not None)


def _own_store(node: ast.AST) -> ast.Attribute | None:
    own = isinstance(node, ast.Attribute) and is_name(node.value, "self")
    return node if isinstance(node, ast.Attribute) and own and not isinstance(node.ctx, ast.Load) else None


@remembered
def strings_in(statement: ast.AST) -> frozenset[str]:
    nodes = (node for node in walk(statement) if isinstance(node, ast.Constant))
    return frozenset(node.value for node in nodes if isinstance(node.value, str))
