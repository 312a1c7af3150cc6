"""Arrays that are asked for what Variables have (NNX864): ``self.scale.value`` where ``self.scale = jnp.ones(n)``, or
``self.linear(x).value``.

A weight that was to be an ``nnx.Param``, or a Variable that was unwrapped twice.

Invariants: what is asked is the result of a layer, or an attribute that the class sets once, in its constructor, to the
result of a function of JAX or to the value of a Variable; what only an annotation calls an array may be a Variable.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.later import is_set_later
from nnx_lint.model.values import Array, ArrayAttr, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import attributes_named, is_asked_for, is_for_others, is_tried, resolved
from nnx_lint.rules.variables.tensors import is_attribute_of_jax
from nnx_lint.syntax.binding import is_name
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame

METHODS = frozenset({"get_metadata", "get_value", "set_metadata", "set_value"})
"""Methods that Variables have and arrays lack."""


def _is_of_variables(event: Called) -> bool:
    return isinstance(event.callee, ArrayAttr) and event.callee.name in METHODS and not event.callee.owner


@judges_calls(rules.MISSING_ATTRIBUTE, ArrayAttr, when=_is_of_variables)
def method_of_variable(event: Called, report: Reporter) -> None:
    func = event.node.func if isinstance(event.node, ast.Call) else None
    if isinstance(func, ast.Attribute):
        _asked_of_array(event.frame, func, report)


@judges(rules.MISSING_ATTRIBUTE, Used, of=(Array,))
def value_of_array(event: Used, report: Reporter) -> None:
    if event.what in {"raw_value", "value"} and isinstance(event.node, ast.Attribute):
        _asked_of_array(event.frame, event.node, report)


def _asked_of_array(frame: Frame, node: ast.Attribute, report: Reporter) -> None:
    if not isinstance(node.ctx, ast.Load) or is_tried(frame.module, node) or is_asked_for(frame.module, node):
        return
    if is_for_others(frame) or frame.module.mocks or not (_is_result(frame, node.value) or _is_kept(frame, node.value)):
        return
    name = text_of(node.value)
    mend = f"`{name}` is an array: use it as it is"
    if isinstance(node.value, ast.Attribute):
        mend += f", or make it a Variable: `{name} = nnx.Param(...)`"
    report(frame.module, node, cls="Array", name=node.attr, mend=mend)


def _is_result(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression is a call of a layer of the library."""
    callee = resolved(frame.env, node.func) if isinstance(node, ast.Call) else None
    return isinstance(callee, Obj) and callee.cls.works_as is not None and not callee.assumed


def _is_kept(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression is an attribute that is an array, and stays one."""
    owner = resolved(frame.env, node.value) if isinstance(node, ast.Attribute) else None
    if not isinstance(node, ast.Attribute) or not isinstance(owner, Obj) or not is_attribute_of_jax(frame, node):
        return False
    name, lineage = node.attr, owner.cls.lineage
    own = [each for item in lineage for each in attributes_named(item.node).get(name, ()) if _is_store(each)]
    everywhere = (each for item in lineage for each in attributes_named(item.module.tree).get(name, ()))
    others = any(_is_store(each) and not is_name(each.value, "self") for each in everywhere)
    return len(own) == 1 and not others and not is_set_later(owner.cls, name)


def _is_store(node: ast.Attribute) -> bool:
    return not isinstance(node.ctx, ast.Load)
