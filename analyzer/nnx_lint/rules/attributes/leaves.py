"""Data attributes with something that JAX cannot take (NNX113, NNX114, NNX124), or data on one branch only (NNX106)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.arrays import is_array_function
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import AttributeSet, Called, ClassDefined, Constructed
from nnx_lint.model.unions import UnionVal
from nnx_lint.model.values import (
    Assignment,
    ClassVal,
    Const,
    Ext,
    Obj,
    TagVal,
    Value,
)
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.attributes.containers import is_checked
from nnx_lint.rules.attributes.given import attributes_by_call
from nnx_lint.rules.edits import replace, unwrap, wrap
from nnx_lint.rules.program import canonical_of, resolved
from nnx_lint.rules.spelling import spelled
from nnx_rules.attributes import Kind, Status, Tag
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.frames import Frame


def is_foreign(value: Value) -> bool:
    """Whether JAX certainly refuses the value as a leaf: a string, a function, a class, a set, a plain dataclass."""
    if isinstance(value, Const):
        return isinstance(value.value, (str, bytes))
    if isinstance(value, Seq):
        return value.opaque
    if isinstance(value, Ext):
        return value.name.startswith(("nnx.", "jax.nn.")) and is_array_function(value.name)
    if isinstance(value, Obj):
        return _is_plain(value)
    return isinstance(value, (FuncVal, ClassVal)) or (isinstance(value, BoundMethod) and value.func is not None)


def _is_plain(obj: Obj) -> bool:
    """Whether an object is of a dataclass of the project that JAX certainly does not know. A class of another kind
    may be meant for ``nnx.register_data_type``.
    """
    cls = obj.cls
    if not isinstance(cls, UserClass) or obj.kind is not Kind.OTHER or cls.is_open or cls.opaque or cls.remade:
        return False
    if not cls.is_dataclass:
        return False
    if any(item.registered_container or REGISTERS & item.methods.keys() for item in cls.lineage):
        return False
    return not obj.assumed or not cls.module.project.heirs.exist(cls.name)


REGISTERS = frozenset({"__init_subclass__", "__jax_array__", "tree_flatten"})
"""Methods by which a class may be known to JAX after all."""


@judges(rules.NON_ARRAY_DATA, AttributeSet, of=(TagVal,))
def non_array_data(event: AttributeSet, report: Reporter) -> None:
    value = event.value
    if not isinstance(value, TagVal) or value.tag is not Tag.DATA or value.value is None or not is_checked(event.obj):
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
    if verdict.status is not Status.DATA or not is_checked(event.obj) or not before.value.facts().is_data:
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
    value, verdict, module = event.value, event.verdict, event.frame.module
    held = value.value if isinstance(value, TagVal) else value
    if not isinstance(held, DictVal) or verdict is None or verdict.broken is not None or not is_checked(event.obj):
        return
    library, version = report.runs_on(module)
    # flax looks for data in every value that is assigned; elsewhere only what is data gets to JAX.
    if verdict.status is not Status.DATA and (library != "flax" or (version is not None and version < CHECKED_SINCE)):
        return
    written = held.node.keys if isinstance(held.node, ast.Dict) else []
    nodes = written if len(written) == len(held.items) else [None] * len(held.items)
    kinds = [_kind_of_key(key, node, event.frame) for (key, _), node in zip(held.items, nodes, strict=True)]
    if held.exact and len(kinds) > 1 and None not in kinds and (len(set(kinds)) > 1 or not SORTED.issuperset(kinds)):
        types = " and ".join(sorted({f"`{kind}`" for kind in kinds}))
        report(module, event.value_node or event.node, cls=event.obj.cls.name, path=event.name, types=types)


@judges_calls(rules.MIXED_KEYS, "class")
def mixed_keys_by_call(event: Called, report: Reporter) -> None:
    """The same where the keys come from what a caller gives: ``Heads([2, 4])``."""
    for cls, name, attr, known in attributes_by_call(event):
        held, first = attr.value, attr.assignments[0] if attr.assignments else None
        if not isinstance(held, DictVal) or not held.exact or first is None or first.broken is not None:
            continue
        before = known.value
        kinds = {_kind_of_key(key, None, event.frame) for key, _ in held.items}
        told = isinstance(before, DictVal) and before.exact
        if not told and first.status is Status.DATA and None not in kinds and len(kinds) > 1:
            types = " and ".join(sorted(f"`{kind}`" for kind in kinds))
            where = (related(first.module, first.node, "the attribute is assigned here"),)
            report(event.frame.module, event.node, related=where, cls=cls.name, path=name, types=types)


CHECKED_SINCE = (0, 12)
"""The version of flax that looks for data in every value that becomes an attribute."""


SORTED = frozenset({"bytes", "int", "str"})
"""Types whose values can be sorted; numbers of all types can be sorted together."""


def _kind_of_key(key: Value, node: ast.expr | None, frame: Frame) -> str | None:
    """The type of a key, ``int`` for all numbers; ``None`` if it is not known."""
    owner = resolved(frame.env, node.value) if isinstance(node, ast.Attribute) else None
    if isinstance(owner, ClassVal):
        return owner.cls.name if _is_enum(owner.cls) else None
    if isinstance(key, ClassVal):
        return "type"
    kind = type(key.value) if isinstance(key, Const) else None
    return "int" if kind in {bool, float} else kind.__name__ if kind is not None else None


def _is_enum(cls: ClassBase) -> bool:
    """Whether a class is an enumeration whose members cannot be sorted."""
    if not isinstance(cls, UserClass) or len(cls.node.bases) != 1 or cls.node.decorator_list or "__lt__" in cls.methods:
        return False
    return canonical_of(cls.module.env, cls.node.bases[0]) == "enum.Enum"


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
    if not is_checked(event.obj) or not _is_optional(value.options):
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
