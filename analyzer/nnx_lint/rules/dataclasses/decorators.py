"""What decorates a Pytree class, or should (NNX118, NNX144, NNX147 to NNX149, NNX153)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.events import AttributeSet, Called, ClassDefined, Event, Used
from nnx_lint.model.values import Array, ClassVal, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.bindings import place_of, values_in
from nnx_lint.rules.edits import insert, replace
from nnx_lint.rules.program import FUNCTIONS, canonical_of, enclosing, is_tried
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.dotted import root_of
from nnx_rules.rules import attributes, dataclasses

if TYPE_CHECKING:
    from nnx_lint.source import SourceFile

REFUSED = frozenset({"frozen", "repr"})
"""Options of ``dataclasses.dataclass`` that ``nnx.dataclass`` does not take."""


@judges(dataclasses.UNSUPPORTED_OPTION, ClassDefined)
def unsupported_option(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    decorator = cls.decorators.get("nnx.dataclass")
    if decorator is None:
        return
    for name in sorted(REFUSED & cls.preset.keys()):
        report(cls.module, decorator, option=name)
    if not isinstance(decorator, ast.Call):
        return
    for option in decorator.keywords:
        if option.arg in REFUSED:
            fix = partial(_without, cls.module.source, decorator, option)
            report(cls.module, option, option=option.arg, fix=fix)


@judges(attributes.PYTREE_SLOTS, ClassDefined)
def slots_option(event: ClassDefined, report: Reporter) -> None:
    """A dataclass that is made anew, with a slot for each field of its own."""
    cls = event.cls
    if not cls.is_pytree or not any(not field.init_only for field in cls.fields.values()):
        return
    for name in ("nnx.dataclass", "dataclasses.dataclass"):
        decorator = cls.decorators.get(name)
        if isinstance(decorator, ast.Call) and cls.option("slots") is True:
            for option in decorator.keywords:
                if option.arg == "slots":
                    fix = partial(_without, cls.module.source, decorator, option)
                    report(cls.module, option, fix=fix, cls=cls.name)


def _without(source: SourceFile, call: ast.Call, option: ast.keyword) -> Fix:
    """Remove one keyword of a call, and the call's parentheses with the last one."""
    title = f"Remove `{option.arg}`"
    if len(call.keywords) == 1 and not call.args:
        return Fix(title, (Edit(Span(source.span(call.func).end, source.span(call).end), ""),))
    index = call.keywords.index(option)
    if index + 1 < len(call.keywords):
        return Fix(title, (Edit(Span(source.span(option).start, source.span(call.keywords[index + 1]).start), ""),))
    before = call.keywords[index - 1] if index else call.args[-1]
    return Fix(title, (Edit(Span(source.span(before).end, source.span(option).end), ""),))


def asks_equality(event: Used) -> bool:
    """Whether two instances of a class are compared."""
    return event.what == "an equality"


@judges(dataclasses.EQ_ON_ARRAYS, Used, when=asks_equality)
def instances_compared(event: Used, report: Reporter) -> None:
    _judge_equality(event.value, event, "instances are compared here", report)


@judges(dataclasses.EQ_ON_ARRAYS, Used, when=lambda event: event.what == "a key")
def instance_as_key(event: Used, report: Reporter) -> None:
    _judge_hash(event.value, event, report)


@judges_calls(dataclasses.EQ_ON_ARRAYS, "builtins.hash")
def instance_hashed(event: Called, report: Reporter) -> None:
    if event.args and event.args[0] is not None:
        _judge_hash(event.args[0], event, report)


def _judge_hash(value: Value, event: Event, report: Reporter) -> None:
    """A class that compares by value has no hash, unless it defines one itself."""
    if isinstance(value, Obj) and isinstance(value.cls, UserClass) and "__hash__" not in value.cls.methods:
        _judge_equality(value, event, "an instance is hashed here", report)


def _judge_equality(value: Value, event: Event, what: str, report: Reporter) -> None:
    """Report the class of an instance whose ``==`` compares arrays."""
    cls = value.cls if isinstance(value, Obj) else None
    if not isinstance(cls, UserClass) or not isinstance(value, Obj) or "__eq__" in cls.methods:
        return
    decorator = cls.decorators.get("nnx.dataclass") or cls.decorators.get("dataclasses.dataclass")
    if decorator is None or not cls.is_pytree or cls.opaque:
        return
    if isinstance(decorator, ast.Call) and (
        decorator.args or any(option.arg in {"eq", None} for option in decorator.keywords)
    ):
        return
    if "eq" in cls.preset:
        return
    for name in cls.fields:
        attr = attribute_of(value, name)
        if attr is not None and isinstance(attr.value, Array):
            where = (related(event.frame.module, event.node, what),)
            fix = partial(_without_eq, cls, decorator)
            report(cls.module, decorator, cls=cls.name, path=name, related=where, fix=fix)
            return


def _without_eq(cls: UserClass, decorator: ast.expr) -> Fix:
    source = cls.module.source
    if not isinstance(decorator, ast.Call):
        edits = insert(source.span(decorator).end, "(eq=False)")
    elif decorator.keywords:
        edits = insert(source.span(decorator.keywords[-1]).end, ", eq=False")
    else:
        edits = insert(source.span(decorator).end - 1, "eq=False")
    return Fix("Compare instances by identity", edits, Applicability.UNSAFE)


REGISTERING = {
    "flax.struct.dataclass": True,
    "chex.dataclass": True,
    "jax.tree_util.register_pytree_node_class": False,
    "jax.tree_util.register_pytree_with_keys_class": False,
    "jax.tree_util.register_dataclass": False,
}
"""Decorators that register a class with JAX, and whether they make a dataclass of it too."""


@judges(dataclasses.STRUCT_DATACLASS, ClassDefined)
def struct_dataclass(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    if not cls.is_pytree or cls.pytree_keyword is False or cls.derives_from("nnx.Object"):
        return
    for name, makes_dataclass in REGISTERING.items():
        decorator = cls.decorators.get(name)
        if decorator is not None:
            source = cls.module.source
            spelling = spelled("nnx.dataclass", cls.module) if makes_dataclass else None
            bare = not isinstance(decorator, ast.Call)
            fix = Fix(f"Use `{spelling}`", replace(source, decorator, spelling)) if spelling and bare else None
            mend = "use `@nnx.dataclass`" if makes_dataclass else "remove it"
            report(cls.module, decorator, cls=cls.name, decorator=name, fix=fix, mend=mend)


@judges(dataclasses.FROZEN_MODULE, AttributeSet)
def frozen_module(event: AttributeSet, report: Reporter) -> None:
    cls, module = event.obj.cls, event.frame.module
    if not isinstance(cls, UserClass) or not cls.is_pytree or cls.opaque or cls.remade:
        return
    frozen = (
        item
        for item in cls.ancestors
        if isinstance(item, UserClass) and "dataclasses.dataclass" in item.decorators and item.option("frozen")
    )
    owner = next(frozen, None)
    if owner is None or is_tried(module, event.node):
        return
    if event.obj is event.frame.receiver or not event.obj.assumed:
        where = (related(owner.module, owner.node, "the class is defined here"),)
        mend = "decorate the class with `@nnx.dataclass`, which leaves modules as they have to be"
        report(module, event.node, cls=cls.name, path=event.name, related=where, mend=mend)


@judges(dataclasses.FROZEN_MODULE, AttributeSet)
def frozen_record(event: AttributeSet, report: Reporter) -> None:
    """``state.step += 1``, where the state is a record of ``flax.struct``, or another frozen dataclass."""
    cls, module = event.obj.cls, event.frame.module
    if not isinstance(cls, UserClass) or cls.is_pytree or cls.is_open or cls.opaque or cls.remade:
        return
    func = event.frame.func
    if func is not None and func.name == "__init_subclass__" and event.obj is event.frame.receiver:
        return  # it is the class that gets the attribute
    # What a class below adds to a frozen one, without being frozen itself, its instances may be assigned.
    owner = next(
        (item for item in cls.lineage if _is_sealed(item) and (item is cls or event.name in item.fields)), None
    )
    if owner is None or cls.find("__setattr__") is not None or is_tried(module, event.node):
        return
    if event.obj.assumed and _is_cast(event):
        return  # what stands for it until it is made, such as a configuration
    where = (related(owner.module, owner.node, "the class is defined here"),)
    own = f"`.replace({event.name}=...)`" if STRUCT in owner.decorators else "`dataclasses.replace`"
    mend = f"make another one, and go on with that: {own}"
    report(module, event.node, cls=cls.name, path=event.name, related=where, mend=mend)


def _is_cast(event: AttributeSet) -> bool:
    """Whether only `typing.cast` says of what class an object is."""
    module = event.frame.module
    target = place_of(event)
    scope = enclosing(module, event.node, *FUNCTIONS) or module.tree
    values = values_in(scope).get(root_of(target) or "", []) if target is not None else []
    return any(isinstance(each, ast.Call) and canonical_of(module.env, each.func) == "typing.cast" for each in values)


def _is_sealed(cls: UserClass) -> bool:
    """Whether a class is decorated to be frozen, as `flax.struct` does if nothing is said."""
    said = cls.option("frozen")
    return (STRUCT in cls.decorators and said is not False) or (
        "dataclasses.dataclass" in cls.decorators and bool(said)
    )


STRUCT = "flax.struct.dataclass"
"""The decorator of records that are trees of JAX, which nobody changes."""


@judges_calls(dataclasses.FIELDS_WITHOUT_DATACLASS, "class")
def fields_without_dataclass(event: Called, report: Reporter) -> None:
    if not isinstance(event.callee, ClassVal) or not isinstance(event.callee.cls, UserClass):
        return
    cls = event.callee.cls
    if not cls.is_pytree or cls.is_open or cls.opaque or not (event.args or event.keywords):
        return
    if any(isinstance(item, LibClass) and item.canonical not in PLAIN_BASES for item in cls.ancestors):
        return
    own = cls.lineage
    if cls.is_dataclass or any(
        item.decorators or item.unknown_decorators or MAKERS & item.methods.keys() for item in own
    ):
        return
    if not any(item.fields for item in own):
        return
    report(
        event.frame.module,
        event.node,
        cls=cls.name,
        lack="no `__init__`, and is called with arguments",
        related=(related(cls.module, cls.node, "the class is defined here"),),
        fix=lambda: _decorate(cls) if cls.module is event.frame.module else None,
    )


@judges_calls(dataclasses.FIELDS_WITHOUT_DATACLASS, "class")
def fields_below_dataclass(event: Called, report: Reporter) -> None:
    """A class below a dataclass, whose own fields nothing takes, because it is not decorated itself."""
    cls = event.callee.cls if isinstance(event.callee, ClassVal) else None
    if not isinstance(cls, UserClass) or not cls.is_pytree or cls.is_open or cls.opaque or cls.remade:
        return
    if not cls.generated_init or cls.replaced_init or cls.find("__new__") is not None:
        return
    taken = {field.name for field in cls.all_fields()}
    fields = {name: item for item in cls.lineage if not item.has_fields for name in item.fields.keys() - taken}
    given = next((name for name in event.keywords if name in fields), None)
    if given is None:
        return
    below = fields[given]
    base = next(item for item in cls.lineage if item.has_fields)
    report(
        event.frame.module,
        event.node,
        cls=below.name,
        lack=f"the `__init__` of the dataclass `{base.name}`, which does not take `{given}`",
        related=(related(below.module, below.node, "the class is defined here"),),
        fix=lambda: _decorate(below) if below.module is event.frame.module else None,
    )


PLAIN_BASES = frozenset({"nnx.Pytree", "nnx.Object", "nnx.Module"})
MAKERS = frozenset({"__init__", "__new__", "__init_subclass__", "__class_getitem__"})


def _decorate(cls: UserClass) -> Fix | None:
    name = spelled("nnx.dataclass", cls.module)
    if name is None or not cls.fields:
        return None
    source = cls.module.source
    indent = source.line_indent(cls.node.lineno)
    return Fix(f"Decorate the class with `{name}`", insert(source.span(cls.node).start, f"@{name}\n{indent}"))
