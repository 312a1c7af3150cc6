"""Types registered as data: a subclass that is not (NNX125), a registration that comes too late (NNX126).

``nnx.register_data_type`` looks up the exact type of a value at the moment when an attribute is first assigned.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal
from nnx_lint.model.events import AttributeSet, Called
from nnx_lint.model.values import ClassVal, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.edits import insert
from nnx_lint.rules.spelling import spelled
from nnx_rules.attributes import Kind, Status
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.modules import Module

# -- subclasses --------------------------------------------------------------------------------------------------------


@judges(rules.REGISTERED_TYPE_SUBCLASS, AttributeSet)
def subclass_assigned(event: AttributeSet, report: Reporter) -> None:
    if event.verdict is None or event.before is not None or event.attr.declared is not None or event.obj.assumed:
        return
    if isinstance(event.obj.cls, UserClass) and event.obj.cls.checked and event.verdict.broken is None:
        _judge(event, event.value, report)


@judges_calls(rules.REGISTERED_TYPE_SUBCLASS, "nnx.is_data")
def subclass_asked(event: Called, report: Reporter) -> None:
    if event.args and event.args[0]:
        _judge(event, event.args[0], report)


def _judge(event: AttributeSet | Called, value: Value, report: Reporter) -> None:
    """Report an instance that is static although the type above its own is data."""
    if not isinstance(value, Obj) or value.assumed or value.origin is None or not _is_no_data(value):
        return
    cls = value.cls
    base = next((item for item in cls.ancestors if item.registered_data), None)
    if base is None or not isinstance(cls, UserClass) or not isinstance(base, UserClass) or _is_special(cls):
        return
    node = event.value_node or event.node if isinstance(event, AttributeSet) else event.node
    where = (related(cls.module, cls.node.bases[0], f"`{cls.name}` is defined here"),) if cls.node.bases else ()
    fix = partial(registered, cls, event.frame.module)
    report(event.frame.module, node, fix=fix, related=where, cls=cls.name, base=base.name)


def _is_no_data(value: Obj) -> bool:
    """Whether a value is no data by its type: of a class that JAX does not know, or that is a container for it."""
    cls = value.cls
    known = isinstance(cls, UserClass) and not KNOWN_TO_JAX.isdisjoint(cls.decorators) and not cls.registered_data
    return value.kind is Kind.OTHER or known


KNOWN_TO_JAX = frozenset(
    {"flax.struct.dataclass", "jax.tree_util.register_dataclass", "jax.tree_util.register_pytree_node_class"}
)
"""Decorators by which JAX takes instances apart, which makes no data of them."""


def registered(cls: UserClass, module: Module) -> Fix | None:
    """Register a class as well."""
    name = spelled("nnx.register_data_type", module)
    if cls.module is not module or name is None:
        return None
    source = module.source
    first = min([cls.node.lineno, *(item.lineno for item in cls.node.decorator_list)])
    added = insert(source.line_start(first), f"{source.line_indent(first)}@{name}\n")
    return Fix(f"Register `{cls.name}`", added, Applicability.UNSAFE)


def _is_special(cls: UserClass) -> bool:
    """Whether a class may be registered by what makes it: a decorator, a metaclass, a hook of a base class."""
    return any(
        isinstance(item, UserClass) and (item.unknown_decorators or item.dynamic or "__init_subclass__" in item.methods)
        for item in cls.ancestors
    )


# -- too late ----------------------------------------------------------------------------------------------------------


@judges_calls(rules.REGISTERED_TYPE_LATE, "nnx.register_data_type")
def registered_late(event: Called, report: Reporter) -> None:
    if not event.args:
        return
    given, frame = event.args[0], event.frame
    if not isinstance(given, ClassVal):
        return
    for obj in (held for value in frame.env.names.values() for held in _held_by(value)):
        if not isinstance(obj, Obj) or obj.origin is None or obj.assumed or not obj.cls.is_pytree:
            continue
        for name in attribute_names(obj):
            attr = attribute_of(obj, name)
            last = attr.assignments[-1] if attr is not None and attr.assignments else None
            held = last.value if last is not None else None
            if last is None or not isinstance(held, Obj) or held.cls is not given.cls:
                continue
            # Of a type that JAX takes apart it is not known whether it holds data; none of it is data by itself.
            taken_apart = last.status is Status.UNKNOWN and held.cls.registered_container
            if last.status is not Status.STATIC and not taken_apart:
                continue
            where = (related(last.module, last.node, "the attribute became static here"),)
            report(frame.module, event.node, related=where, cls=given.cls.name, owner=obj.cls.name, path=name)
            return


def _held_by(value: Value) -> Iterator[Value]:
    """A value, and what a dict or a plain object holds that it is."""
    yield value
    if isinstance(value, DictVal):
        yield from (item for _, item in value.items)
    elif isinstance(value, Obj) and value.kind is Kind.OTHER:
        yield from (attr.value for attr in value.attrs.values())
