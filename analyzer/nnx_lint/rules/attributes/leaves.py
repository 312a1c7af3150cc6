"""Data attributes with something that JAX cannot take (NNX113, NNX114, NNX124), or data on one branch only (NNX106)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.arrays import is_array_function
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import AttributeSet, ClassDefined, Constructed
from nnx_lint.model.values import (
    Assignment,
    ClassVal,
    Const,
    Ext,
    TagVal,
    UnionVal,
    Value,
)
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.edits import replace, unwrap, wrap
from nnx_lint.rules.spelling import spelled
from nnx_rules.attributes import Kind, Status, Tag
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.values import Obj


def is_foreign(value: Value) -> bool:
    """Whether JAX certainly refuses the value as a leaf: a string, a function, a class, a set."""
    if isinstance(value, Const):
        return isinstance(value.value, (str, bytes))
    if isinstance(value, Seq):
        return value.opaque
    if isinstance(value, Ext):
        return value.name.startswith(("nnx.", "jax.nn.")) and is_array_function(value.name)
    return isinstance(value, (FuncVal, ClassVal)) or (isinstance(value, BoundMethod) and value.func is not None)


def _checked(obj: Obj) -> bool:
    return isinstance(obj.cls, UserClass) and obj.cls.checked


@judges(rules.NON_ARRAY_DATA, AttributeSet, of=(TagVal,))
def non_array_data(event: AttributeSet, report: Reporter) -> None:
    value = event.value
    if not isinstance(value, TagVal) or value.tag is not Tag.DATA or value.value is None or not _checked(event.obj):
        return
    if not is_foreign(value.value):
        return
    source = event.frame.module.source
    written = value.node is event.value_node and len(value.node.args) == 1
    report(
        event.frame.module,
        event.value_node or event.node,
        cls=event.obj.cls.name,
        path=event.name,
        value=value.describe(),
        fix=(lambda: Fix("Remove the mark", unwrap(source, value.node))) if written else None,
    )


@judges(rules.NON_ARRAY_DATA, ClassDefined)
def non_array_field(event: ClassDefined, report: Reporter) -> None:
    """A field of a dataclass that is data, and whose default is nothing that JAX can take."""
    cls = event.cls
    for name, field in cls.fields.items() if cls.checked else ():
        mark = field.value
        default = mark.keywords.get("default") if isinstance(mark, TagVal) and mark.tag is Tag.DATA else None
        if default is not None and is_foreign(default):
            source, node = cls.module.source, field.node.value
            static = spelled("nnx.static", cls.module)
            call = mark.node if isinstance(mark, TagVal) and mark.node is node else None
            fix = Fix(f"Use `{static}`", replace(source, call.func, static)) if call is not None and static else None
            report(cls.module, node or field.node, cls=cls.name, path=name, value=default.describe(), fix=fix)


@judges(rules.DATA_ATTRIBUTE_LOSES_ARRAY, AttributeSet)
def data_attribute_loses_array(event: AttributeSet, report: Reporter) -> None:
    verdict, before, node = event.verdict, event.before, event.value_node
    if verdict is None or before is None or isinstance(event.value, TagVal) or not is_foreign(event.value):
        return
    if verdict.status is not Status.DATA or not _checked(event.obj) or not before.value.facts().is_data:
        return
    module = event.frame.module
    name = spelled("nnx.static", module, event.frame.env)
    report(
        module,
        node or event.node,
        cls=event.obj.cls.name,
        path=event.name,
        value=event.value.describe(),
        related=(related(before.module, before.node, "the attribute became data here"),),
        fix=Fix(f"Wrap the value in `{name}(...)`", wrap(module.source, node, name))
        if name and node is not None
        else None,
    )


@judges(rules.MIXED_KEYS, AttributeSet, of=(DictVal, TagVal))
def mixed_keys(event: AttributeSet, report: Reporter) -> None:
    value, verdict = event.value, event.verdict
    held = value.value if isinstance(value, TagVal) else value
    if not isinstance(held, DictVal) or verdict is None or verdict.status is not Status.DATA or not _checked(event.obj):
        return
    if not held.exact or not all(isinstance(key, Const) for key, _ in held.items):
        return
    kinds = {type(key.value) for key, _ in held.items if isinstance(key, Const)}
    if len(kinds) > 1 and not kinds <= {int, float, bool}:
        types = " and ".join(sorted(f"`{kind.__name__}`" for kind in kinds))
        report(event.frame.module, event.value_node or event.node, cls=event.obj.cls.name, path=event.name, types=types)


# -- data on one branch only -------------------------------------------------------------------------------------------


@judges(rules.OPTIONAL_DATA_UNMARKED, AttributeSet, of=(UnionVal,))
def optional_data_unmarked(event: AttributeSet, report: Reporter) -> None:
    value, node = event.value, event.value_node
    if (
        not isinstance(value, UnionVal)
        or event.before is not None
        or event.attr.declared is not None
        or event.verdict is None
    ):
        return
    if not _checked(event.obj) or not _is_optional(value.options):
        return
    module = event.frame.module
    name = spelled("nnx.data", module, event.frame.env)
    report(
        module,
        node or event.node,
        cls=event.obj.cls.name,
        path=event.name,
        fix=Fix(f"Wrap the value in `{name}(...)`", wrap(module.source, node, name))
        if name and node is not None
        else None,
    )


@judges(rules.OPTIONAL_DATA_UNMARKED, Constructed)
def optional_data_on_branches(event: Constructed, report: Reporter) -> None:
    if not event.cls.checked:
        return
    for name, attr in event.obj.attrs.items():
        nothing = [
            item for item in attr.assignments if item.value.facts().kind is Kind.OTHER and item.status is Status.STATIC
        ]
        data = [item for item in attr.assignments if item.status is Status.DATA]
        apart = [item for item in nothing if all(item.excludes(other.branches) for other in data)]
        if data and apart and len(nothing) + len(data) == len(attr.assignments):
            item = apart[0]
            if item.value_node is None or not isinstance(item.value, Const) or item.value.value is not None:
                continue
            report(item.module, item.value_node, cls=event.cls.name, path=name, fix=partial(_mark_all, apart))


def _mark_all(assignments: Sequence[Assignment]) -> Fix | None:
    """Make every ``None`` data that is assigned instead of data; one that is left would be found the next time."""
    source = assignments[0].module.source
    name = spelled("nnx.data", assignments[0].module)
    nodes = dict.fromkeys(item.value_node for item in assignments if item.module.source is source)
    edits = [edit for node in nodes if node is not None and name for edit in wrap(source, node, name)]
    return Fix(f"Wrap the value in `{name}(...)`", tuple(edits)) if edits else None


def _is_optional(options: tuple[Value, ...]) -> bool:
    """Whether one option is ``None`` and all others are data."""
    nothing = [item for item in options if isinstance(item, Const) and item.value is None]
    return len(nothing) == 1 and all(
        item.facts().is_data and item.kind is not Kind.CONTAINER for item in options if item not in nothing
    )
