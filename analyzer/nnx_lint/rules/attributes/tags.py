"""``nnx.data(...)`` and ``nnx.static(...)`` where they have no meaning (NNX130 to NNX136).

The mark is unwrapped by the assignment to an attribute of a Pytree, or read by the body of a dataclass. Anywhere else
it stays what it is.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import (
    AttributeSet,
    Called,
    ClassDefined,
    Constructed,
    Iterated,
    Tagged,
    Unpacked,
    Used,
)
from nnx_lint.model.values import TagVal, Value
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.edits import insert, unsafe, unwrap, wrap
from nnx_lint.rules.program import FUNCTIONS, ancestors, assigned_in, enclosing, parameters_in, statement_of
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.methods import as_pytree
from nnx_lint.syntax.walk import walk
from nnx_rules.attributes import recheck
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env, Module


def inner_tags(value: Value, depth: int = 0) -> Iterator[TagVal]:
    """The marks inside of a value, the one around it left out."""
    if depth > 6:
        return
    if isinstance(value, TagVal):
        parts: list[Value] = [value.value] if value.value is not None else []
    elif isinstance(value, Seq):
        parts = value.items
    elif isinstance(value, DictVal):
        parts = [item for _, item in value.items]
    else:
        return
    for part in parts:
        if isinstance(part, TagVal):
            yield part
        yield from inner_tags(part, depth + 1)


def name_tags(tags: list[TagVal]) -> str:
    """The marks as they are written, each kind once."""
    return " and ".join(f"`nnx.{name}`" for name in sorted({tag.tag.value for tag in tags}))


# -- nested ------------------------------------------------------------------------------------------------------------


@judges(rules.NESTED_STATUS_ANNOTATION, AttributeSet)
def nested_status_annotation(event: AttributeSet, report: Reporter) -> None:
    if event.verdict is None or event.verdict.broken is not report.rule:
        return
    tags = list(inner_tags(event.value))
    frame, node = event.frame, event.value_node
    report(
        frame.module,
        node or event.node,
        cls=event.obj.cls.name,
        path=event.name,
        tags=name_tags(tags),
        value=event.value.describe(),
        fix=lambda: _hoisted(frame.module, frame.env, node, event.value, tags) if node is not None else None,
    )


@judges(rules.NESTED_STATUS_ANNOTATION, Constructed)
def nested_status_annotation_filled(event: Constructed, report: Reporter) -> None:
    for name, attr in event.obj.attrs.items():
        last = attr.assignments[-1] if attr.assignments else None
        value = attr.value
        if last is None or last.broken is not None or not isinstance(value, (Seq, DictVal)):
            continue
        if recheck(last.status, value.facts(), checked=event.cls.checked) is not report.rule:
            continue
        fill = next((item for item in value.fills if isinstance(item.value, TagVal)), None)
        if fill is not None:
            report(
                fill.module,
                fill.node,
                cls=event.cls.name,
                path=name,
                tags=name_tags(list(inner_tags(value))),
                value=value.describe(),
                related=(related(last.module, last.node, "the container was assigned here"),),
            )


def _hoisted(module: Module, env: Env, node: ast.expr, value: Value, tags: list[TagVal]) -> Fix | None:
    """Move marks that all say the same from inside of the value to the outside; next to an outer mark they only go."""
    source = module.source
    inside = {id(part) for part in walk(node)}
    calls = {id(tag.node): tag.node for tag in tags}
    if any(id(call) not in inside or len(call.args) != 1 or call.keywords for call in calls.values()):
        return None
    edits = tuple(edit for call in calls.values() for edit in unwrap(source, call))
    if isinstance(value, TagVal):
        if any(id(part) in calls for call in calls.values() for part in walk(call) if part is not call):
            return None
        return Fix("Keep the outer mark only", edits)
    kinds = {tag.tag.value for tag in tags}
    name = spelled(f"nnx.{kinds.pop()}", module, env) if len(kinds) == 1 else None
    if name is None or any(id(part) in calls for call in calls.values() for part in walk(call) if part is not call):
        return None
    return Fix(f"Move `{name}(...)` to the outside", (*wrap(source, node, name), *edits))


@judges(rules.STATUS_ANNOTATION_IN_SET, AttributeSet, of=(Seq,))
def status_annotation_in_set(event: AttributeSet, report: Reporter) -> None:
    value = event.value
    if event.verdict is None or event.verdict.broken is not None or not isinstance(value, Seq) or not value.opaque:
        return
    tags = list(inner_tags(value))
    if not tags:
        return
    frame, node = event.frame, event.value_node
    report(
        frame.module,
        node or event.node,
        cls=event.obj.cls.name,
        path=event.name,
        tags=name_tags(tags),
        fix=lambda: _hoisted(frame.module, frame.env, node, value, tags) if node is not None else None,
    )


# -- used as a value ---------------------------------------------------------------------------------------------------

GOING_OVER = (
    "all",
    "any",
    "enumerate",
    "frozenset",
    "iter",
    "list",
    "reversed",
    "set",
    "sorted",
    "sum",
    "tuple",
    "zip",
)
"""Functions of Python that take the elements of each of their arguments by position."""


def _is_misused(value: Value | None, module: Module) -> TypeGuard[TagVal]:
    """Whether a value is a mark, and not one of those in the container of an attribute, which are found there."""
    if not isinstance(value, TagVal) or value.value is None:
        return False
    match statement_of(module, value.node):
        case ast.Assign(targets=[ast.Attribute()], value=held) | ast.AnnAssign(target=ast.Attribute(), value=held):
            return held is value.node
        case _:
            return True


@judges(rules.STATUS_ANNOTATION_NOT_ASSIGNED, Used)
def status_annotation_not_assigned(event: Used, report: Reporter) -> None:
    _report(event, report)


@judges(rules.STATUS_ANNOTATION_NOT_ASSIGNED, Iterated)
def status_annotation_iterated(event: Iterated, report: Reporter) -> None:
    _report(event, report)


@judges(rules.STATUS_ANNOTATION_NOT_ASSIGNED, Unpacked)
def status_annotation_unpacked(event: Unpacked, report: Reporter) -> None:
    _report(event, report)


def _report(event: Used | Iterated | Unpacked, report: Reporter) -> None:
    if _is_misused(event.value, event.frame.module):
        report(event.frame.module, event.node, fix=partial(mark_moved, event), tag=event.value.tag.value)


@judges_calls(rules.STATUS_ANNOTATION_NOT_ASSIGNED, TagVal)
def status_annotation_called(event: Called, report: Reporter) -> None:
    if _is_misused(event.callee, event.frame.module):
        report(event.frame.module, event.node, tag=event.callee.tag.value)


@judges_calls(rules.STATUS_ANNOTATION_NOT_ASSIGNED, *(f"builtins.{name}" for name in ("len", *GOING_OVER)))
def status_annotation_counted(event: Called, report: Reporter) -> None:
    """Functions of Python that go over what they are given, or count it."""
    for value in event.args:
        if _is_misused(value, event.frame.module):
            report(event.frame.module, event.node, tag=value.tag.value)


def mark_moved(event: Used | Iterated | Unpacked) -> Fix | None:
    """Mark the value where it becomes an attribute, not where a local name is bound to it."""
    module, call = event.frame.module, event.value.node if isinstance(event.value, TagVal) else None
    statement = next(ancestors(module, call), None) if call is not None else None
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if call is not None and value is call:
            scope = enclosing(module, statement, *FUNCTIONS, ast.Module)
        case _:
            return None
    if (
        scope is None
        or len(call.args) != 1
        or call.keywords
        or assigned_in(scope)[name] + parameters_in(scope)[name] != 1
    ):
        return None
    stores = [
        node.value
        for node in walk(scope)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    ]
    if not stores:
        return None
    marked = [edit for node in stores for edit in wrap(module.source, node, module.source.segment(call.func))]
    return Fix("Mark the attribute instead", (*unwrap(module.source, call), *marked))


ARRAY_PACKAGES = ("jax.numpy.", "jax.nn.", "jax.lax.", "jax.random.", "numpy.")
"""Packages whose functions take arrays, never a mark."""


@judges_calls(rules.STATUS_ANNOTATION_NOT_ASSIGNED, *(f"{package}*" for package in ARRAY_PACKAGES))
def status_annotation_as_argument(event: Called, report: Reporter) -> None:
    for value in (*event.args, *event.keywords.values()):
        if isinstance(value, TagVal) and value.value is not None:
            report(event.frame.module, event.node, tag=value.tag.value)


@judges(rules.STATUS_ANNOTATION_ON_PLAIN_CLASS, AttributeSet, of=(TagVal,))
def status_annotation_on_plain_class(event: AttributeSet, report: Reporter) -> None:
    cls = event.obj.cls
    if not isinstance(event.value, TagVal) or not isinstance(cls, UserClass) or event.value.value is None:
        return
    if cls.is_pytree or cls.is_open or cls.opaque or cls.unknown_decorators or cls.module.project.heirs.exist(cls.name):
        return
    report(
        event.frame.module,
        event.value_node or event.node,
        fix=partial(as_pytree, cls) if cls.module is event.frame.module else None,
        cls=cls.name,
        path=event.name,
        tag=event.value.tag.value,
    )


# -- arguments ---------------------------------------------------------------------------------------------------------

FIELD_KEYWORDS = frozenset(
    {"default", "default_factory", "init", "repr", "hash", "compare", "metadata", "kw_only", "doc"}
)
"""Keywords of ``dataclasses.field``, over all Python versions."""


@judges(rules.STATUS_ANNOTATION_ARGUMENTS, Tagged)
def status_annotation_arguments(event: Tagged, report: Reporter) -> None:
    call = event.value.node
    unknown = [name for name in event.value.keywords if name not in FIELD_KEYWORDS]
    if len(call.args) > 1:
        given = f"{len(call.args)} values"
    elif call.args and event.value.keywords:
        given = "both"
    elif unknown:
        given = ", ".join(f"`{name}`" for name in unknown)
    else:
        return
    report(
        event.frame.module,
        call,
        fix=partial(_value_or_field, event.frame, call) if given == "both" else None,
        tag=event.value.tag.value,
        given=given,
    )


def _value_or_field(frame: Frame, call: ast.Call) -> Fix | None:
    """Keep what belongs to the place: the value of an attribute in a function, the keywords of a field in a class."""
    source, first, last = frame.module.source, call.args[0], call.keywords[-1]
    if frame.func is not None:
        return unsafe("Keep the value", (Edit(Span(source.span(first).end, source.span(last).end), ""),))
    rest = source.span(call.keywords[0]).start
    return unsafe("Keep the keywords of the field", (Edit(Span(source.span(first).start, rest), ""),))


@judges(rules.EMPTY_STATUS_ASSIGNMENT, AttributeSet, of=(TagVal,))
def empty_status_assignment(event: AttributeSet, report: Reporter) -> None:
    value = event.value
    if not isinstance(value, TagVal) or value.value is not None or event.verdict is None:
        return
    source = event.frame.module.source
    bare = value.node is event.value_node and not value.node.keywords
    report(
        event.frame.module,
        event.value_node or event.node,
        cls=event.obj.cls.name,
        path=event.name,
        tag=value.tag.value,
        fix=(lambda: Fix("Give the value `None`", insert(source.span(value.node).end - 1, "None"))) if bare else None,
    )


@judges(rules.CLASS_LEVEL_STATUS_VALUE, ClassDefined)
def class_level_status_value(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    if not cls.is_pytree:
        return
    for value, _ in cls.attributes.values():
        if isinstance(value, TagVal) and value.value is not None and len(value.node.args) == 1:
            report(cls.module, value.node, tag=value.tag.value, fix=lambda value=value: _as_default(cls, value))  # type: ignore[misc]


def _as_default(cls: UserClass, value: TagVal) -> Fix | None:
    """Name the value as the default; without a dataclass decorator nothing would read it, so the class gets one."""
    source = cls.module.source
    edits = insert(source.span(value.node.args[0]).start, "default=")
    if not cls.is_dataclass:
        name = spelled("nnx.dataclass", cls.module)
        if name is None or cls.find("__init__") is not None or cls.node.decorator_list:
            return None
        indent = source.line_indent(cls.node.lineno)
        edits = (*insert(source.span(cls.node).start, f"@{name}\n{indent}"), *edits)
    return Fix("Make the value the default of the field", edits)
