"""Fields of dataclasses on a Pytree: their status, their defaults, their order (NNX140 to NNX143, NNX145, NNX146)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.classes import FIELD_DECORATORS, UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import ClassDefined, Constructed
from nnx_lint.model.fields import Field, metadata_entry
from nnx_lint.model.unions import UnionVal
from nnx_lint.model.values import (
    Array,
    Const,
    FieldVal,
    Obj,
    TagVal,
    Value,
)
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.attributes.leaves import is_foreign
from nnx_lint.rules.autodiff.tracing import is_record_without_hash
from nnx_lint.rules.edits import insert, replace
from nnx_lint.rules.program import canonical_of
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.boundaries import holds_variables
from nnx_lint.syntax.walk import walk
from nnx_rules.attributes import Status, decide
from nnx_rules.rules import attributes, dataclasses

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module


# -- status ------------------------------------------------------------------------------------------------------------


@judges(dataclasses.CONTAINER_FIELD, Constructed)
def container_field(event: Constructed, report: Reporter) -> None:
    for field, module in _generated(event):
        attr = event.obj.attrs[field.name]
        value = attr.assignments[0].value
        if attr.declared is None and _breaks(attr.declared, value):
            text = module.source.segment(field.annotation)
            report(
                module,
                field.node,
                cls=event.cls.name,
                path=field.name,
                annotation=text,
                fix=lambda field=field, module=module: _declare_data(field, module),  # type: ignore[misc]
            )


@judges(attributes.DATA_MARKED_STATIC, Constructed)
def static_field_with_data(event: Constructed, report: Reporter) -> None:
    for field, module in _generated(event):
        attr = event.obj.attrs[field.name]
        value = attr.assignments[0].value
        default = field.value.keywords.get("default") if isinstance(field.value, TagVal) else None
        if default is not None and is_foreign(default):  # the annotation is no more likely to be right than the mark
            continue
        if attr.declared is Status.STATIC and _breaks(attr.declared, value):
            report(
                module,
                field.node,
                cls=event.cls.name,
                path=field.name,
                value=value.describe(),
                fix=lambda field=field, module=module: _static_to_data(field, module),  # type: ignore[misc]
            )


def _generated(event: Constructed) -> list[tuple[Field, Module]]:
    """The fields whose value the generated ``__init__`` assigns, with the module that they are written in."""
    if not event.cls.checked:
        return []
    found: list[tuple[Field, Module]] = []
    for field in event.cls.all_fields():
        attr = event.obj.attrs.get(field.name)
        if attr is not None and attr.assignments and attr.assignments[0].node is field.node:
            found.append((field, attr.assignments[0].module))
    return found


def _breaks(declared: Status | None, value: Value) -> bool:
    """Whether every value that the annotation allows, ``None`` aside, contradicts the status."""
    allowed = value.options if isinstance(value, UnionVal) else (value,)
    kept = [item for item in allowed if not (isinstance(item, Const) and item.value is None)]
    return bool(kept) and all(decide(declared, item.facts()).broken is not None for item in kept)


def _declare_data(field: Field, module: Module) -> Fix | None:
    name = spelled("nnx.data", module)
    source = module.source
    if name is None:
        return None
    if field.node.value is None:
        return Fix(f"Declare the field with `{name}()`", insert(source.span(field.node).end, f" = {name}()"))
    call = field.node.value
    if isinstance(field.value, FieldVal) and isinstance(call, ast.Call) and "metadata" not in field.value.keywords:
        return Fix(f"Declare the field with `{name}(...)`", replace(source, call.func, name))
    if isinstance(field.value, (Const, Seq)) and not isinstance(call, (ast.List, ast.Dict, ast.Set)):
        return Fix(
            f"Declare the field with `{name}(...)`",
            (*insert(source.span(call).start, f"{name}(default="), *insert(source.span(call).end, ")")),
        )
    return None


def _static_to_data(field: Field, module: Module) -> Fix | None:
    """Say data where the field says static, in the specifier or in the annotation."""
    source = module.source
    if isinstance(field.value, TagVal):
        name = spelled("nnx.data", module)
        return Fix(f"Use `{name}(...)`", replace(source, field.value.node.func, name)) if name is not None else None
    annotation = field.annotation
    name = spelled("nnx.Data", module)
    if name is None or not isinstance(annotation, ast.Subscript):
        return None
    return Fix(f"Use `{name}[...]`", replace(source, annotation.value, name))


# -- defaults ----------------------------------------------------------------------------------------------------------


@judges(dataclasses.MUTABLE_DEFAULT, ClassDefined)
def mutable_default(event: ClassDefined, report: Reporter) -> None:
    for field, value, node in _defaults(event.cls, of_configs=True):
        container = isinstance(value, DictVal) or (isinstance(value, Seq) and value.type in {"list", "set"})
        of_pytree = event.cls.is_pytree and (isinstance(value, Array) or _is_variable(value))
        if container or of_pytree or _is_unhashable(event.cls, value, node) or _is_record(value):
            _report_default(event, report, field, value, node)


@judges(dataclasses.SHARED_MODULE_DEFAULT, ClassDefined)
def shared_module_default(event: ClassDefined, report: Reporter) -> None:
    for field, value, node in _defaults(event.cls):
        if isinstance(value, Obj) and value.cls.is_pytree and holds_variables(value):
            _report_default(event, report, field, value, node)


def _is_unhashable(cls: UserClass, value: Value, node: ast.expr) -> bool:
    """Whether a default is certainly an array: an element of one of numpy is hashable."""
    made = canonical_of(cls.module.env, node.func) if isinstance(node, ast.Call) and isinstance(value, Array) else None
    return made is not None and (made.startswith("jax.") or made in ARRAYS_OF_NUMPY)


def _is_record(value: Value) -> bool:
    """Whether a default is of a dataclass that has no hash: one that compares by value, and is not frozen."""
    if not isinstance(value, Obj) or not isinstance(value.cls, UserClass) or value.cls.is_pytree:
        return False
    hashed = any(item.option(name) is True for item in value.cls.lineage for name in ("frozen", "unsafe_hash"))
    return not hashed and is_record_without_hash(value)


ARRAYS_OF_NUMPY = frozenset(
    f"numpy.{name}" for name in ("arange", "array", "asarray", "empty", "eye", "full", "linspace", "ones", "zeros")
)
"""What makes arrays of numpy, and no elements of them."""


def _is_variable(value: Value) -> bool:
    # Variables compare by value, so they are not hashable, and `dataclasses` takes that for mutable.
    return isinstance(value, Obj) and value.cls.is_variable


def _defaults(cls: UserClass, *, of_configs: bool = False) -> list[tuple[Field, Value, ast.expr]]:
    """The fields of a dataclass on a Pytree that have a default, with its value and expression; those of one that holds
    settings only if these count too.
    """
    made = cls.own_dataclass or (
        of_configs and (cls.made_by_base or not cls.decorators.keys().isdisjoint(FIELD_DECORATORS))
    )
    if not made or not (cls.is_pytree or (of_configs and not cls.is_open)):
        return []
    found: list[tuple[Field, Value, ast.expr]] = []
    for field in cls.fields.values():
        value, node = field.value, field.node.value
        if isinstance(value, (TagVal, FieldVal)):
            keywords = {item.arg: item.value for item in value.node.keywords}
            value, node = value.keywords.get("default"), keywords.get("default")
        if value is not None and node is not None:
            found.append((field, value, node))
    return found


def _report_default(event: ClassDefined, report: Reporter, field: Field, value: Value, node: ast.expr) -> None:
    cls = event.cls
    report(
        cls.module,
        node,
        cls=cls.name,
        path=field.name,
        value=value.describe(),
        fix=lambda: _as_factory(cls, field, value, node),
    )


def _as_factory(cls: UserClass, field: Field, value: Value, node: ast.expr) -> Fix | None:
    """Make the default a function that makes a new value for every instance."""
    source = cls.module.source
    title = "Make a new value for every instance with `default_factory`"
    if isinstance(field.value, (TagVal, FieldVal)):
        keyword = next((item for item in field.value.node.keywords if item.value is node), None)
        start = source.span(keyword).start if keyword is not None else source.span(node).start
        between = source.text[start : source.span(node).start]
        if "#" in between or not between.startswith("default"):
            return None
        return Fix(title, (*insert(start + len("default"), "_factory"), *insert(source.span(node).start, "lambda: ")))
    status = cls.declared_status(field.name)
    if status is None:
        status = Status.DATA if value.facts().is_data else Status.STATIC
    field_name = spelled("dataclasses.field", cls.module)
    name = field_name if not cls.is_pytree or value.facts().is_data else None
    if cls.is_pytree and (name is None or isinstance(value, (Seq, DictVal))):
        name = spelled(f"nnx.{status.value}", cls.module)
    if name is None:
        return None
    span = source.span(node)
    return Fix(title, (*insert(span.start, f"{name}(default_factory=lambda: "), *insert(span.end, ")")))


# -- order, options, annotations ---------------------------------------------------------------------------------------


@judges(dataclasses.FIELD_ORDER, ClassDefined)
def field_order(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    if not cls.is_pytree or not cls.own_dataclass or cls.is_open or _order_is_open(cls):
        return
    earlier: Field | None = None
    for field in cls.all_fields():
        if field.keyword_only or field.init is not True:
            continue
        if field.has_default:
            earlier = earlier or field
        elif earlier is not None and cls.fields.get(field.name) is field:
            other = earlier
            report(
                cls.module,
                field.node,
                cls=cls.name,
                path=field.name,
                other_path=earlier.name,
                fix=lambda other=other: _as_keyword_only(cls, other),  # type: ignore[misc]
            )
            return


def _order_is_open(cls: UserClass) -> bool:
    """Whether a decorator decides on parameters in a way that is not read here."""
    return any(
        isinstance(decorator, ast.Call) and any(map(_may_reorder, decorator.keywords))
        for item in cls.ancestors
        if isinstance(item, UserClass)
        for decorator in item.decorators.values()
    )


def _may_reorder(option: ast.keyword) -> bool:
    return option.arg in {"init", None} or (option.arg == "kw_only" and not isinstance(option.value, ast.Constant))


def _as_keyword_only(cls: UserClass, field: Field) -> Fix | None:
    call = field.node.value
    if cls.fields.get(field.name) is not field or not isinstance(field.value, (TagVal, FieldVal)):
        return None
    if not isinstance(call, ast.Call) or not call.keywords:
        return None
    end = cls.module.source.span(call.keywords[-1]).end
    return Fix(f"Make `{field.name}` keyword-only", insert(end, ", kw_only=True"), Applicability.UNSAFE)


@judges(dataclasses.STATIC_METADATA_TYPE, ClassDefined)
def static_metadata_type(event: ClassDefined, report: Reporter) -> None:
    if not event.cls.is_pytree:
        return
    for name, (value, node) in event.cls.attributes.items():
        entry = metadata_entry(value, "static") if isinstance(value, FieldVal) else None
        if isinstance(entry, Const) and not isinstance(entry.value, bool):
            fix = partial(_as_bool, event.cls.module, node, entry)
            report(event.cls.module, node, fix=fix, cls=event.cls.name, path=name, value=entry.describe())


WORDS: dict[object, bool] = {"yes": True, "true": True, "no": False, "false": False, 1: True, 0: False}
"""What people write for a bool."""


def _as_bool(module: Module, node: ast.AST, entry: Const) -> Fix | None:
    value = WORDS.get(entry.value.lower() if isinstance(entry.value, str) else entry.value)
    dicts = [each for each in walk(node) if isinstance(each, ast.Dict)]
    for mapping in dicts if len(dicts) == 1 and value is not None else ():
        for key, held in zip(mapping.keys, mapping.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "static" and isinstance(held, ast.Constant):
                return Fix(f"Write `{value}`", replace(module.source, held, str(value)))
    return None


@judges(dataclasses.MISSING_ANNOTATION, ClassDefined)
def missing_annotation(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    if not cls.is_pytree or not cls.own_dataclass:
        return
    for name, (value, node) in cls.attributes.items():
        if isinstance(value, (TagVal, FieldVal)) and isinstance(node, ast.Assign):
            report(cls.module, node, fix=partial(_annotated, cls.module, node), cls=cls.name, path=name)


def _annotated(module: Module, node: ast.Assign) -> Fix | None:
    """Annotate a field with what fits all values."""
    if len(node.targets) != 1:
        return None
    name = spelled("typing.Any", module) or "object"
    return Fix(f"Annotate it with `{name}`", insert(module.source.span(node.targets[0]).end, f": {name}"))
