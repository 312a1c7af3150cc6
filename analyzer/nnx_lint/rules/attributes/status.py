"""Assignments that contradict the data/static status of their attribute (NNX101 to NNX103, NNX115).

The verdict is that of ``nnx_rules.attributes``; the rules here only say where, and how to mend it.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.classes import UserClass, method_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import AttributeSet, Called
from nnx_lint.model.states import GradientVal, StateVal
from nnx_lint.model.values import (
    Assignment,
    Const,
    Obj,
    Other,
    ParameterVal,
    TagVal,
)
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.alternatives import is_wrapped_beside
from nnx_lint.rules.attributes.annotations import ineffective
from nnx_lint.rules.attributes.given import attributes_by_call
from nnx_lint.rules.attributes.mends import as_data, is_given, is_shared
from nnx_lint.rules.attributes.usage import is_handed_over, is_used_plainly
from nnx_lint.rules.edits import insert, unwrap, wrap
from nnx_lint.rules.program import assigned_in, keyword_node
from nnx_lint.rules.spelling import spelled
from nnx_rules.attributes import Status, decide
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from nnx_rules.registry import Rule


def broken(event: AttributeSet) -> Rule | None:
    """The rule that an assignment breaks, by the shared decision procedure."""
    return event.verdict.broken if event.verdict is not None else None


def breaks(event: AttributeSet) -> bool:
    """Whether an assignment breaks one."""
    return broken(event) is not None


@judges(rules.DATA_IN_STATIC_ATTRIBUTE, AttributeSet, when=breaks)
def data_in_static_attribute(event: AttributeSet, report: Reporter) -> None:
    if broken(event) is not report.rule or ineffective(event) or unchecked_base(event) is not None:
        return
    node = event.value_node
    if is_wrapped_beside(event.frame, event.node, node):
        return
    report(
        event.frame.module,
        node or event.node,
        cls=event.obj.cls.name,
        path=event.name,
        value=event.value.describe(),
        fix=lambda: _into_container(event, node) if node is not None else None,
    )


HOLDERS = (Seq, DictVal, StateVal, GradientVal)
"""What is static unless something says that it is data, whatever it holds."""


@judges_calls(rules.DATA_IN_STATIC_ATTRIBUTE, "class")
@judges_calls(rules.DATA_MARKED_STATIC, "class")
def data_through_parameter(event: Called, report: Reporter) -> None:
    """A container or a State that a caller gives for a parameter, which the constructor assigns as it is; or any data,
    where the class says that the attribute is static.
    """
    obj = event.result
    if not isinstance(obj, Obj) or not isinstance(obj.cls, UserClass) or not obj.args or not obj.cls.checked:
        return
    found = method_of(obj.cls, "__init__")
    if found is None or obj.cls.find("__setattr__") is not None:
        return
    for name, attr in obj.attrs.items():
        last = attr.assignments[0] if len(attr.assignments) == 1 else None
        if last is None or last.branches or not isinstance(last.value, ParameterVal):
            continue
        parameter = last.value.name
        given = obj.args.get(parameter)
        if given is None or given is not attr.value or assigned_in(found[1].node)[parameter]:
            continue
        declared = attr.declared is not None
        if not declared and not isinstance(given, HOLDERS):
            continue
        if decide(attr.declared, given.facts(), checked=True, declared=declared).broken is report.rule:
            by_position = next(
                (node for value, node in zip(event.args, event.nodes, strict=False) if value is given), None
            )
            report(
                event.frame.module,
                by_position or keyword_node(event.node, parameter) or event.node,
                cls=obj.cls.name,
                path=name,
                value=given.describe(),
                related=(related(last.module, last.node, "the attribute is assigned here"),),
            )


@judges_calls(rules.DATA_IN_STATIC_ATTRIBUTE, "class")
@judges_calls(rules.DATA_MARKED_STATIC, "class")
def data_of_caller(event: Called, report: Reporter) -> None:
    """The same for a constructor that makes something of what it is given: a list of it, a field, `*layers`."""
    for cls, name, attr, known in attributes_by_call(event):
        first = attr.assignments[0] if attr.assignments else None
        as_it_is = any(isinstance(item.value, ParameterVal) for item in known.assignments)
        told = as_it_is and isinstance(event.result, Obj) and name in event.result.attrs and not cls.generated_init
        if first is None or first.broken is not report.rule or told:
            continue
        if all(item.broken is None for item in known.assignments):
            places = (related(first.module, first.node, "the attribute is assigned here"),)
            value = first.value.describe()
            report(event.frame.module, event.node, cls=cls.name, path=name, value=value, related=places)


def _into_container(event: AttributeSet, node: ast.expr) -> Fix | None:
    frame = event.frame
    if is_given(frame, node) or not isinstance(event.node, (ast.Assign, ast.AnnAssign)):
        return None
    plain = is_shared(frame, node) or is_used_plainly(event.obj.cls, event.name)
    return as_data(frame.module, frame.env, node, event.value, plain=plain)


def unchecked_base(event: AttributeSet) -> UserClass | None:
    """The ``pytree=False`` class whose method makes the assignment, on an instance of a checked class below it."""
    owner = event.frame.cls
    if isinstance(owner, UserClass) and owner is not event.obj.cls and owner.pytree_keyword is False:
        return owner
    return None


@judges(rules.PYTREE_FALSE_NOT_INHERITED, AttributeSet, when=breaks)
def pytree_false_not_inherited(event: AttributeSet, report: Reporter) -> None:
    cls, base = event.obj.cls, unchecked_base(event)
    if base is None or broken(event) is not rules.DATA_IN_STATIC_ATTRIBUTE or not isinstance(cls, UserClass):
        return
    node = cls.node
    last = [*node.bases, *(item.value for item in node.keywords)][-1]
    end = cls.module.source.span(last).end
    report(
        cls.module,
        node.bases[0],
        cls=cls.name,
        base=base.name,
        path=event.name,
        related=(related(event.frame.module, event.node, "the assignment"),),
        fix=Fix("Add `pytree=False`", insert(end, ", pytree=False")) if cls.pytree_keyword is None else None,
    )


@judges(rules.DATA_MARKED_STATIC, AttributeSet, when=breaks)
def data_marked_static(event: AttributeSet, report: Reporter) -> None:
    if broken(event) is not report.rule:
        return
    mark = event.value.node if isinstance(event.value, TagVal) else None
    written = mark is not None and mark is event.value_node and len(mark.args) == 1
    source = event.frame.module.source
    report(
        event.frame.module,
        event.value_node or event.node,
        cls=event.obj.cls.name,
        path=event.name,
        value=event.value.describe(),
        fix=(lambda: Fix("Remove the static mark", unwrap(source, mark))) if mark is not None and written else None,
    )


@judges(rules.DATA_TO_STATIC_ATTRIBUTE, AttributeSet, when=breaks)
def data_to_static_attribute(event: AttributeSet, report: Reporter) -> None:
    if broken(event) is not report.rule:
        return
    if event.frame.initializing is not event.obj and is_handed_over(event.obj.cls, event.name):
        return
    first = event.before
    if first is not None and first.broken is report.rule:
        return  # the assignment before fails for the same reason
    places = (related(first.module, first.node, "the attribute became static here"),) if first is not None else ()
    report(
        event.frame.module,
        event.node,
        cls=event.obj.cls.name,
        path=event.name,
        value=event.value.describe(),
        related=places,
        fix=lambda: _mark_first(event, first) if first is not None else None,
    )


@judges(rules.DATA_TO_STATIC_ATTRIBUTE, AttributeSet, when=lambda event: event.verdict is None)
def data_to_none_of_another(event: AttributeSet, report: Reporter) -> None:
    """The same from outside, on an object of which only the class is known: by an annotation, or since the program
    asked for its type. What every constructor makes ``None``, and no class below or beside it marks, is static.
    """
    cls, name, first = event.obj.cls, event.name, next(iter(event.attr.assignments), None)
    if first is None or len(event.attr.assignments) > 1 or event.attr.declared is not None:
        return
    none = isinstance(first.value, Const) and first.value.value is None and first.status is Status.STATIC
    if not none or first.branches or first.doubtful or not isinstance(cls, UserClass) or not cls.checked:
        return
    if cls.is_open or not event.obj.cls.is_pytree or event.frame.initializing is not None or event.frame.module.mocks:
        return
    if decide(Status.STATIC, event.value.facts(), checked=True, declared=False).broken is not report.rule:
        return
    if is_handed_over(cls, name) or cls.module.project.heirs.mentioning(cls.name, name):
        return
    marking = f".{name} = nnx.data("
    if event.frame.module.mentions(marking) or cls.module.mentions(marking):
        return  # it may be data by then
    places = (related(first.module, first.node, "the attribute became static here"),)
    value = event.value.describe()
    fix = partial(_mark_first, event, first)
    report(event.frame.module, event.node, cls=cls.name, path=name, value=value, related=places, fix=fix)


def _mark_first(event: AttributeSet, first: Assignment) -> Fix | None:
    node, statement = first.value_node, first.node
    if (
        node is None
        or first.module is not event.frame.module
        or not isinstance(first.value, (Const, Other, Seq, DictVal))
    ):
        return None
    if isinstance(first.value, Const) and isinstance(first.value.value, (str, bytes)):
        return None
    if isinstance(statement, ast.Assign) and any(isinstance(target, ast.Name) for target in statement.targets):
        return None
    name = spelled("nnx.data", first.module)
    if name is None:
        return None
    return Fix(f"Wrap the first value in `{name}(...)`", wrap(first.module.source, node, name))
