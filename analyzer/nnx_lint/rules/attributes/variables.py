"""Variables and modules that are in no state: replaced by an array (NNX122), or attributes of the class (NNX110)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.events import AttributeSet, Constructed
from nnx_lint.model.values import UNKNOWN, Array, Const, Obj, TagVal, Value, options, present
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.edits import insert
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame


@judges(rules.VARIABLE_OVERWRITTEN, AttributeSet)
def variable_overwritten(event: AttributeSet, report: Reporter) -> None:
    # On the arms of one branch the attribute has the value of one of them only.
    held = event.attr.value if event.before is not None or not event.frame.branches else UNKNOWN
    variable = _variable(held)
    if variable is None or not _is_array(event.value) or (event.obj.assumed and event.frame.module.mocks):
        return
    if event.value_node is not None and _reads(event.value_node, event.name):
        return
    if event.frame.initializing is event.obj and event.before and event.before.branches != event.frame.branches:
        return  # a constructor that replaces it under a condition chooses what the attribute is to be
    report(
        event.frame.module,
        event.node,
        cls=event.obj.cls.name,
        path=event.name,
        variable=variable.cls.name,
        value=event.value.describe(),
        fix=lambda: _write_into(event.frame, event.node, variable),
    )


def _variable(value: Value) -> Obj | None:
    """The Variable that an attribute certainly holds."""
    found = [item for item in options(present(value)) if isinstance(item, Obj) and item.cls.is_variable]
    return found[0] if found and len(found) == len(options(present(value))) else None


def _is_array(value: Value) -> bool:
    if isinstance(value, TagVal):
        return False
    number = isinstance(value, Const) and isinstance(value.value, (int, float, complex))
    return isinstance(value, Array) or number


def _reads(node: ast.expr, name: str) -> bool:
    """Whether the expression is nothing but the value of that same attribute: the Variable is unwrapped on purpose."""
    if isinstance(node, ast.Call) and not node.args:
        node = node.func
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        inner = node.value
        return isinstance(inner, ast.Attribute) and inner.attr == name
    return False


def _write_into(frame: Frame, node: ast.AST, variable: Obj) -> Fix | None:
    """Write the value into the Variable: by item assignment into an array, by ``set_value`` over a Python number."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Attribute):
        return None
    source = frame.module.source
    target, value = source.span(node.targets[0]), source.span(node.value)
    held = (variable.args or {}).get("value")
    if isinstance(held, Const):
        if source.text[target.end : value.start].strip() != "=" or "\n" in source.segment(node):
            return None
        setter = Edit(Span(target.end, value.start), ".set_value(")
        return Fix("Write into the Variable", (setter, *insert(value.end, ")")))
    by_convention = variable.cls.derives_from("nnx.Param") or variable.cls.derives_from("nnx.BatchStat")
    if not isinstance(held, Array) and not by_convention:
        return None
    return Fix("Write into the Variable", insert(target.end, "[...]"))


@judges(rules.CLASS_LEVEL_DATA, Constructed)
def class_level_data(event: Constructed, report: Reporter) -> None:
    cls = event.cls
    for name, (value, node) in cls.attributes.items():
        if not isinstance(value, Obj) or not value.cls.tracked or name in event.obj.attrs:
            continue
        if cls.is_dataclass and name in cls.fields:
            continue
        report(cls.module, node, cls=cls.name, path=name, value=value.describe())
