"""What takes the place of a parameter that is ``None``, in an attribute that already holds this ``None`` (NNX103).

``self.norm = norm`` leaves a static attribute where nothing is given, and ``if norm is None: self.norm = ...`` then
assigns data to it: whoever relies on the default gets an error.

Invariants: the condition of the arm asks for the parameter or the attribute itself, and the parameter is what the
attribute got last, so that the attribute certainly became static with this ``None``. Of a fallback that is not known it
is believed that it is what the annotation of the parameter promises.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.attributes import stored
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import AttributeSet
from nnx_lint.model.unions import options, present
from nnx_lint.model.values import UNKNOWN, TagVal, Unknown
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.attributes.status import broken
from nnx_lint.rules.edits import wrap
from nnx_lint.rules.program import ancestors, assigned_in, names_of_parameters, own_nodes
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.walk import walk
from nnx_rules.attributes import DATA_KINDS, Status, decide
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from nnx_lint.model.values import Assignment, Value


@judges(rules.DATA_TO_STATIC_ATTRIBUTE, AttributeSet)
def fallback_for_none(event: AttributeSet, report: Reporter) -> None:
    before, cls = event.before, event.obj.cls
    if before is None or broken(event) is not None or not isinstance(cls, UserClass) or event.obj.assumed:
        return
    if not cls.checked or not cls.is_pytree or event.attr.declared is not None or not stored(event.obj, event.name):
        return
    if isinstance(before.value, TagVal) or not _is_none(event, before):
        return
    value = _promised(before) if type(event.value) is Unknown else event.value
    if decide(Status.STATIC, value.facts(), checked=True).broken is report.rule:
        report(
            event.frame.module,
            event.node,
            cls=cls.name,
            path=event.name,
            value=value.describe(),
            related=(related(before.module, before.node, "the attribute became static here, where this is None"),),
            fix=lambda: _mark(before),
        )


def _promised(before: Assignment) -> Value:
    """What an annotation says that a parameter is unless it is ``None``, if that is always data."""
    promised = present(before.value)
    known = promised is not before.value and all(item.kind in DATA_KINDS for item in options(promised))
    return promised if known else UNKNOWN


def _mark(before: Assignment) -> Fix | None:
    """Make the attribute data from the beginning, whatever is given."""
    name = spelled("nnx.data", before.module)
    if name is None or before.value_node is None:
        return None
    edits = wrap(before.module.source, before.value_node, name)
    return Fix(f"Wrap what is given in `{name}(...)`", edits, Applicability.UNSAFE)


def _is_none(event: AttributeSet, before: Assignment) -> bool:
    """Whether the arm of an assignment runs only where the attribute got a parameter that is ``None``."""
    func, given, node = event.frame.func, before.value_node, event.node
    if func is None or not isinstance(func.node, ast.FunctionDef) or not isinstance(given, ast.Name):
        return False
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or before.module is not event.frame.module:
        return False
    if given.id not in names_of_parameters(func.node) or assigned_in(func.node)[given.id]:
        return False
    if any(item is not before and item.node is not node for item in event.attr.assignments):
        return False
    if not any(item is before.node for item in own_nodes(func.node)):
        return False
    asked = {given.id, ast.unparse(node.targets[0])}
    arms = [outer for outer in ancestors(event.frame.module, node) if isinstance(outer, ast.If)]
    return any(
        _asks_for_none(arm.test) in asked and any(item is node for part in arm.body for item in walk(part))
        for arm in arms
    )


def _asks_for_none(test: ast.expr) -> str | None:
    """What a condition compares with ``None``."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Is):
        return None
    right = test.comparators[0]
    return ast.unparse(test.left) if isinstance(right, ast.Constant) and right.value is None else None
