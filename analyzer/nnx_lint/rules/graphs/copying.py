"""Copies where one thing was meant to be shared, or the reverse: weights that are tied by copying them (NNX363), an
object that is updated from itself because another name of it was meant to be a copy (NNX364).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import AttributeSet, Called, Mutated
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import StateVal
from nnx_lint.model.values import Obj, present
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import canonical_of, resolved
from nnx_lint.syntax_walk import walk
from nnx_rules.rules import graphs as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Value

# -- weights that are copied -------------------------------------------------------------------------------------------

TRANSPOSED = frozenset({"T", "mT", "transpose", "swapaxes"})


@judges(rules.COPIED_WEIGHTS, AttributeSet)
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
    node = event.nodes[1]
    if not isinstance(target, Obj) or not isinstance(state, StateVal) or not isinstance(node, ast.Call):
        return
    source = node.args[0] if node.args and canonical_of(event.frame.env, node.func) == "nnx.state" else None
    if source is None or not _are_one(target, event.nodes[0], present(state.of), source):
        return
    name, other = text_of(event.nodes[0]), text_of(source)
    report(event.frame.module, event.node, name=name, other=other)


def _are_one(one: Value, one_node: ast.expr, other: Value, other_node: ast.expr) -> bool:
    """Whether two expressions, which are written differently, are one object: by name, or as attributes of one."""
    if ast.dump(one_node) == ast.dump(other_node):
        return False
    if isinstance(one_node, ast.Attribute) and isinstance(other_node, ast.Attribute):
        same_owner = ast.dump(one_node.value) == ast.dump(other_node.value)
        # What an object holds is copied from its template when it is asked for, each attribute by itself.
        shared = isinstance(one, Obj) and isinstance(other, Obj) and one.template is other.template is not None
        return same_owner and shared
    return one is other
