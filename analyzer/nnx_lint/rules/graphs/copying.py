"""Copies where one thing was meant to be shared, or the reverse: weights that are tied by copying them (NNX363), an
object that is updated from itself, or that takes the place of its copy (NNX364).
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.events import AttributeSet, Called, Mutated
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import StateVal
from nnx_lint.model.values import UNKNOWN, Obj, UnionVal, present
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import value_of
from nnx_lint.rules.program import (
    FUNCTIONS,
    LOOPS,
    ancestors,
    assigned_in,
    canonical_of,
    enclosing,
    in_test,
    own_nodes,
    resolved,
)
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import graphs as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

# -- weights that are copied -------------------------------------------------------------------------------------------

TRANSPOSED = frozenset({"T", "mT", "transpose", "swapaxes"})


@judges(rules.COPIED_WEIGHTS, AttributeSet, of=(Obj, UnionVal))
def param_copied(event: AttributeSet, report: Reporter) -> None:
    value = present(event.value)
    if event.frame.initializing is None or not isinstance(value, Obj) or not value.cls.derives_from("nnx.Param"):
        return
    if isinstance(event.value_node, ast.Call) and isinstance(event.node, ast.Assign):
        _judge(event.frame, event.node, event.node.targets[0], event.value_node, report)


@judges(rules.COPIED_WEIGHTS, Mutated)
def value_copied(event: Mutated, report: Reporter) -> None:
    node, target = event.node, event.target
    if event.frame.initializing is None or not isinstance(node, ast.Assign) or event.effect != "write":
        return
    place = node.targets[0]
    written = isinstance(place, (ast.Attribute, ast.Subscript)) and isinstance(target, Obj)
    if written and isinstance(target, Obj) and target.cls.derives_from("nnx.Param"):
        _judge(event.frame, node, place, node.value, report)


def _judge(frame: Frame, node: ast.Assign, place: ast.expr, value: ast.expr, report: Reporter) -> None:
    """Report weights that are the transposed ones of another layer: that is what tied layers have."""
    turned = any(isinstance(item, ast.Attribute) and item.attr in TRANSPOSED for item in walk(value))
    for source in walk(value):
        found = resolved(frame.env, source) if isinstance(source, ast.Attribute) else None
        if turned and isinstance(found, Obj) and found.cls.derives_from("nnx.Param"):
            report(frame.module, node, name=text_of(place), source=text_of(source))
            return


# -- objects that are updated from themselves --------------------------------------------------------------------------


@judges_calls(rules.SELF_UPDATE, "nnx.update")
def updated_from_itself(event: Called, report: Reporter) -> None:
    if len(event.args) != 2 or None in event.args or len(event.nodes) != 2:
        return
    target, state = present(event.args[0] or event.result), event.args[1]
    if not isinstance(target, Obj) or not isinstance(state, StateVal):
        return
    source = _source_of(event.frame, event.nodes[1])
    if source is None or not _are_one(event.frame, target, event.nodes[0], present(state.of), source):
        return
    name, other = text_of(event.nodes[0]), text_of(source)
    report(event.frame.module, event.node, name=name, other=other, so=", so this changes nothing")


@judges_calls(rules.SELF_UPDATE, "jax.tree.map", "jax.tree_util.tree_map", "optax.incremental_update")
def averaged_with_itself(event: Called, report: Reporter) -> None:
    """A mean of two States of one object: that of a moving average, or of a target network."""
    taken = [
        (present(value.of), source)
        for value, node in zip(event.args, event.nodes, strict=False)
        if isinstance(value, StateVal) and (source := _source_of(event.frame, node)) is not None
    ]
    for (one, one_node), (other, other_node) in itertools.pairwise(taken):
        if one is not UNKNOWN and _are_one(event.frame, one, one_node, other, other_node):
            name, shown = text_of(one_node), text_of(other_node)
            report(event.frame.module, event.node, name=name, other=shown, so=", so this is the State that it has")
            return


def _source_of(frame: Frame, node: ast.expr) -> ast.expr | None:
    """The object whose State an expression is, or a name that is bound once to its State."""
    node = value_of(frame.module, node) or node
    call = node if isinstance(node, ast.Call) and canonical_of(frame.env, node.func) == "nnx.state" else None
    return call.args[0] if call is not None and call.args else None


def _binds(statement: ast.Assign, name: str) -> bool:
    return len(statement.targets) == 1 and text_of(statement.targets[0]) == name


# -- copies that give way to the original ------------------------------------------------------------------------------

NO_LONGER = " from here on, and no longer a copy"
COPYING = ("nnx.clone", "copy.deepcopy", "copy.copy")


@judges(rules.SELF_UPDATE, AttributeSet, of=(Obj, UnionVal))
def original_on_attribute(event: AttributeSet, report: Reporter) -> None:
    """An attribute that holds a clone of another one is assigned that one itself."""
    copied = present(event.before.value) if event.before is not None else UNKNOWN
    value, frame = present(event.value), event.frame
    if not isinstance(copied, Obj) or copied.merged or copied.leaf_level is not None or copied.template is None:
        return
    if not isinstance(value, Obj) or frame.initializing is event.obj or in_test(frame):
        return
    names = [name for name in event.obj.attrs if name != event.name and _held(event.obj, name) is value]
    if any(_original(event.obj, name) is copied.template for name in names):
        owner = "self." if frame.receiver is event.obj else ""
        report(frame.module, event.node, name=f"{owner}{event.name}", other=f"{owner}{names[0]}", so=NO_LONGER)


@judges_calls(rules.SELF_UPDATE, *COPYING)
def original_in_place_of_copy(event: Called, report: Reporter) -> None:
    """A copy that is kept beside an object, and is brought up to date by assigning the object itself."""
    module, call = event.frame.module, event.node
    statement = next(ancestors(module, call), None)
    source = event.nodes[0] if event.nodes else None
    made = event.args[0] if event.args else None
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or source is None:
        return
    if event.subject != "nnx.clone" and not (isinstance(made, Obj) and made.cls.derives_from("nnx.Module")):
        return
    target = statement.targets[0]
    if isinstance(target, ast.Attribute):
        scope: ast.AST | None = enclosing(module, call, ast.ClassDef)
    else:
        scope = enclosing(module, call, *FUNCTIONS)
    if scope is None or in_test(event.frame) or not isinstance(target, (ast.Attribute, ast.Name)):
        return
    name, others = text_of(target), _names_of(module, call, source)
    if isinstance(target, ast.Name) and assigned_in(scope)[text_of(source)]:
        return
    for item in walk(scope):
        if not isinstance(item, ast.Assign) or item.lineno <= statement.lineno or not _binds(item, name):
            continue
        again = isinstance(target, ast.Attribute) or isinstance(enclosing(module, item, *LOOPS, *FUNCTIONS), LOOPS)
        if again and text_of(item.value) in others:
            report(module, item, name=name, other=text_of(item.value), so=NO_LONGER)


def _names_of(module: Module, call: ast.AST, source: ast.expr) -> set[str]:
    """How a class calls what a constructor copies: what it is bound to beside the copy."""
    scope = enclosing(module, call, *FUNCTIONS)
    shown = text_of(source)
    kept = [item for item in own_nodes(scope) if isinstance(item, ast.Assign)] if scope is not None else []
    return {shown, *(text_of(item.targets[0]) for item in kept if text_of(item.value) == shown)}


def _are_one(frame: Frame, one: Value, one_node: ast.expr, other: Value, other_node: ast.expr) -> bool:
    """Whether two expressions, which are written differently, are one object: by name, or as attributes of one.

    The values alone do not tell: one stands for all elements of a list whose length is not known.
    """
    if ast.dump(one_node) == ast.dump(other_node):
        return False
    if isinstance(one_node, ast.Attribute) and isinstance(other_node, ast.Attribute):
        owner = resolved(frame.env, one_node.value)
        if not isinstance(owner, Obj) or ast.dump(one_node.value) != ast.dump(other_node.value):
            return False
        original = _original(owner, one_node.attr)
        same = original is not None and original is _original(owner, other_node.attr)
        return same and _source(owner, one_node.attr) == _source(owner, other_node.attr)
    return one is other and _named(frame.module, one_node) == _named(frame.module, other_node)


def _named(module: Module, node: ast.expr) -> object:
    """What tells objects apart that names stand for: the expression that made them, or the name that has no other."""
    while (bound := value_of(module, node)) is not None:
        node = bound
    scope = enclosing(module, node, *FUNCTIONS)
    return (id(scope), node.id) if isinstance(node, ast.Name) else id(node)


def _source(owner: Obj, name: str) -> object:
    """The same for an attribute, which may be assigned another one."""
    for _ in owner.attrs:
        attr = attribute_of(owner, name)
        last = attr.assignments[-1] if attr is not None and attr.assignments else None
        node = last.value_node if last is not None else None
        if last is None or node is None:
            return name
        node = value_of(last.module, node) or node
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return _named(last.module, node)
        name = node.attr
    return name


def _original(owner: Obj, name: str) -> Obj | None:
    """The object that an attribute was assigned: an instance has copies of what its template holds, each by itself."""
    value = _held(owner, name)
    while value is not None and owner.template is not None and value.template is _held(owner.template, name):
        owner, value = owner.template, value.template
    return value


def _held(owner: Obj, name: str) -> Obj | None:
    attr = attribute_of(owner, name)
    value = present(attr.value) if attr is not None else None
    return value if isinstance(value, Obj) else None
