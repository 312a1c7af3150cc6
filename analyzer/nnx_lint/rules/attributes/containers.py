"""Containers that hold data where JAX does not look: filled after they became static (NNX104, NNX105), of a kind that
is one leaf (NNX107), or plain inside of a library container (NNX123).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, PartialVal
from nnx_lint.model.classes import UserClass, method_of
from nnx_lint.model.containers import DictVal, Fill, Seq
from nnx_lint.model.events import AttributeSet, Called, Constructed, ContainerFilled
from nnx_lint.model.unions import options
from nnx_lint.model.values import (
    Array,
    HostArray,
    Obj,
    Value,
)
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.attributes.given import attributes_by_call
from nnx_lint.rules.attributes.mends import as_data, wrapper_of
from nnx_lint.rules.attributes.usage import is_handed_over, is_used_plainly
from nnx_lint.rules.bindings import place_of
from nnx_lint.rules.edits import insert, replace, unsafe, wrap
from nnx_lint.rules.program import assigned_in, keyword_node
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.binding import is_name
from nnx_rules.attributes import Kind, Status, recheck
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Attr


# -- filled during construction ----------------------------------------------------------------------------------------


@judges(rules.STATIC_CONTAINER_FILLED, Constructed)
def static_container_filled(event: Constructed, report: Reporter) -> None:
    for name, attr in event.obj.attrs.items():
        fill = _data_put_in(attr, event.cls)
        if fill is not None:
            last, value = attr.assignments[-1], attr.value
            report(
                fill.module,
                fill.node,
                cls=event.cls.name,
                path=name,
                value=value.describe(),
                related=(related(last.module, last.node, "the attribute became static here"),),
                fix=lambda name=name, attr=attr, fill=fill: _data_from_start(event.cls, name, attr, fill),  # type: ignore[misc]
            )


@judges_calls(rules.STATIC_CONTAINER_FILLED, "class")
def filled_with_given(event: Called, report: Reporter) -> None:
    """The same with what one call gives: `self.layers = []`, and each of the layers is appended."""
    for cls, name, attr, known in attributes_by_call(event):
        fill = _data_put_in(attr, cls)
        if fill is not None and _data_put_in(known, cls) is None:
            places = (related(fill.module, fill.node, "the container is filled here"),)
            value = attr.value.describe()
            report(event.frame.module, event.node, cls=cls.name, path=name, value=value, related=places)


def _data_put_in(attr: Attr, cls: UserClass) -> Fill | None:
    """The data that a container got after it had become static."""
    last, value = attr.assignments[-1] if attr.assignments else None, attr.value
    if last is None or last.broken is not None or not isinstance(value, (Seq, DictVal)):
        return None
    if recheck(last.status, value.facts(), checked=cls.checked) is not rules.STATIC_CONTAINER_FILLED:
        return None
    return next((fill for fill in value.fills if fill.value.element_facts().is_data), None)


def _data_from_start(cls: UserClass, name: str, attr: Attr, fill: Fill) -> Fix | None:
    last, value = attr.assignments[-1], attr.value
    node = last.value_node
    if node is None or last.module is not fill.module:
        return None
    targets = last.node.targets if isinstance(last.node, ast.Assign) else []
    plain = isinstance(node, (ast.Name, ast.Attribute)) or is_used_plainly(cls, name)
    if any(isinstance(target, ast.Name) for target in targets) and (plain or wrapper_of(node, value) == "nnx.data"):
        return None
    return as_data(last.module, last.module.env, node, value, plain=plain)


# -- filled later ------------------------------------------------------------------------------------------------------


@judges(rules.STATIC_CONTAINER_FILLED_LATE, ContainerFilled)
def static_container_filled_late(event: ContainerFilled, report: Reporter) -> None:
    owner = event.container.owner
    if owner is None or event.frame.initializing is owner[0]:
        return
    obj, name = owner
    attr = obj.attrs.get(name)
    if attr is None or not _stays_static(obj, attr) or not _is_lost(event):
        return
    if _fills_in_construction(obj, name, event.node) or is_handed_over(obj.cls, name):
        return
    report(
        event.frame.module,
        event.node,
        cls=obj.cls.name,
        path=name,
        value=event.value.describe(),
        method=event.frame.name,
        fix=partial(_data_from_its_assignment, attr, event.frame.module),
    )


def _data_from_its_assignment(attr: Attr, module: Module) -> Fix | None:
    """Make the container data where it is assigned: unsafe, as it is a leaf of the model from then on."""
    last = attr.assignments[-1]
    if last.module is not module or last.value_node is None or len(attr.assignments) > 1:
        return None
    fix = as_data(module, module.env, last.value_node, attr.value)
    return unsafe(fix.title, fix.edits) if fix is not None else None


def _stays_static(obj: Obj, attr: Attr) -> bool:
    return (
        isinstance(obj.cls, UserClass)
        and obj.cls.checked
        and bool(attr.assignments)
        and all(item.status is Status.STATIC and item.broken is None for item in attr.assignments)
    )


def _fills_in_construction(obj: Obj, name: str, node: ast.AST) -> bool:
    """Whether the constructor runs this statement too: then the check at its end finds it."""
    model = obj.cls.model if isinstance(obj.cls, UserClass) else None
    attr = model.attrs.get(name) if model is not None else None
    value = attr.value if attr is not None else None
    return isinstance(value, (Seq, DictVal)) and any(fill.node is node for fill in value.fills)


def _is_lost(event: ContainerFilled) -> bool:
    """Whether what is put in is certainly missed: a parameter always, an array where the forward pass computes it."""
    facts = event.value.facts()
    if not facts.is_data:
        return False
    if facts.kind in {Kind.VARIABLE, Kind.PYTREE}:
        return True
    frame = event.frame
    while frame.caller is not None and frame.name != "__call__":
        frame = frame.caller
    return frame.name == "__call__" or event.frame.level > event.container.level or _came_in(event)


def _came_in(event: ContainerFilled) -> bool:
    """Whether a traced function fills the container of an object that it was given, and made none in its place."""
    obj, name = event.container.owner or (None, "")
    outer = obj.template if obj is not None and event.frame.scope else None
    if obj is None or outer is None or outer.level >= obj.level:
        return False
    attr = attribute_of(outer, name)
    held = attr.value if attr is not None else None
    return isinstance(held, (Seq, DictVal)) and held.node is not None and held.node is event.container.node


# -- opaque containers -------------------------------------------------------------------------------------------------


@judges(rules.DATA_IN_OPAQUE_CONTAINER, AttributeSet, of=(Seq,))
def data_in_opaque_container(event: AttributeSet, report: Reporter) -> None:
    value = event.value
    if event.verdict is None or event.verdict.broken is not None or not isinstance(value, Seq) or not value.opaque:
        return
    # A generator of arrays makes them when it is asked: a stream of batches, no parameters.
    made_later = value.type == "generator" and all(item.kind is Kind.ARRAY for item in value.items)
    if not is_checked(event.obj) or made_later or not any(item.facts().is_data for item in value.items):
        return
    node = event.value_node
    report(
        event.frame.module,
        node or event.node,
        cls=event.obj.cls.name,
        path=event.name,
        value=value.describe(),
        mend=USE_A_LIST,
        fix=lambda: _list_of(event, node, value) if node is not None else None,
    )


@judges(rules.DATA_IN_OPAQUE_CONTAINER, Constructed)
def opaque_container_filled(event: Constructed, report: Reporter) -> None:
    if not event.cls.checked:
        return
    for name, attr in event.obj.attrs.items():
        value = attr.value
        if not isinstance(value, Seq) or not value.opaque or value.shrunk:
            continue
        fill = next((item for item in value.fills if item.value.kind in {Kind.VARIABLE, Kind.PYTREE}), None)
        if fill is not None and not is_handed_over(event.cls, name):
            report(fill.module, fill.node, cls=event.cls.name, path=name, value=value.describe(), mend=USE_A_LIST)


@judges(rules.DATA_IN_OPAQUE_CONTAINER, Constructed)
def module_in_partial(event: Constructed, report: Reporter) -> None:
    """A module that only a ``functools.partial`` holds, or one in a plain container."""
    attrs = event.obj.attrs
    partials = [
        (name, attr, held)
        for name, attr in (attrs.items() if event.cls.checked else ())
        for held in elements_of(attr.value)
        if isinstance(held, PartialVal) and held.opaque
    ]
    if not partials:
        return
    known = {id(held) for attr in attrs.values() for held in _held(attr.value)}
    told = set[str]()
    for name, attr, value in partials:
        last = attr.assignments[-1] if attr.assignments else None
        if last is None or last.broken is not None or name in told:
            continue
        parts = [value.func, *value.args, *value.keywords.values()]
        hidden = next((part for part in parts if _is_module(part) and id(part) not in known), None)
        if hidden is not None:
            text = f"a partial of {hidden.describe()}"
            mend = "make the module an attribute of its own, and hand over the arguments where it is called"
            report(last.module, last.node, cls=event.cls.name, path=name, value=text, mend=mend)
            told.add(name)


def _held(value: Value) -> list[Value]:
    """A value, and what it holds."""
    if isinstance(value, Obj):
        return [value, *(held for attr in value.attrs.values() for held in _held(attr.value))]
    return [value, *(held for item in value.items for held in _held(item))] if isinstance(value, Seq) else [value]


def _is_module(value: Value) -> bool:
    return isinstance(value, Obj) and value.cls.derives_from("nnx.Module") and value.origin is not None


USE_A_LIST = "use `nnx.List(...)`"


def is_checked(obj: Obj) -> bool:
    """Whether the class of an object, a user's, holds data to what it says of its attributes."""
    return isinstance(obj.cls, UserClass) and obj.cls.checked


def _list_of(event: AttributeSet, node: ast.expr, value: Seq) -> Fix | None:
    name = spelled("nnx.List", event.frame.module, event.frame.env)
    if name is None or value.type == "deque" or isinstance(node, ast.Name):
        return None
    source = event.frame.module.source
    title = f"Use `{name}(...)`"
    if isinstance(node, (ast.Set, ast.SetComp, ast.GeneratorExp)):
        span = source.span(node)
        opening, closing = Span(span.start, span.start + 1), Span(span.end - 1, span.end)
        return Fix(title, (Edit(opening, f"{name}(["), Edit(closing, "])")))
    if isinstance(node, ast.Call) and value.type in {"set", "frozenset"} and len(node.args) == 1:
        return Fix(title, replace(source, node.func, name))
    return Fix(title, wrap(source, node, name))


# -- ordinary objects --------------------------------------------------------------------------------------------------


@judges(rules.DATA_IN_PLAIN_OBJECT, AttributeSet, of=(Obj, Seq, DictVal))
def data_in_plain_object(event: AttributeSet, report: Reporter) -> None:
    """An ordinary object, or a plain container of such, that hides data."""
    if event.verdict is None or event.verdict.broken is not None or not is_checked(event.obj):
        return
    for value in elements_of(event.value):
        if not isinstance(value, Obj) or value.assumed:
            continue
        held = _hidden(value)
        if held is not None and not any(attr.value is held for attr in event.obj.attrs.values()):
            report(
                event.frame.module,
                event.value_node or event.node,
                cls=event.obj.cls.name,
                path=event.name,
                value=held.describe(),
                holder=value.cls.name,
            )
            return


@judges_calls(rules.DATA_IN_PLAIN_OBJECT, "class")
def plain_object_through_parameter(event: Called, report: Reporter) -> None:
    """The same for an object that a caller gives for a parameter, which the constructor assigns as it is."""
    obj = event.result
    found = method_of(obj.cls, "__init__") if isinstance(obj, Obj) and obj.args and is_checked(obj) else None
    if found is None or not isinstance(obj, Obj):
        return
    for parameter, value in (obj.args or {}).items():
        if not isinstance(value, Obj) or value.assumed or assigned_in(found[1].node)[parameter]:
            continue
        held = _hidden(value)
        if held is None or isinstance(held, HostArray):
            continue  # settings may well hold a table of NumPy's
        if held.kind is not Kind.ARRAY and held in (value.args or {}).values():
            continue  # a module that is wrapped may be state elsewhere, or frozen on purpose
        for name in attribute_names(obj):
            attr = attribute_of(obj, name)
            last = attr.assignments[0] if attr is not None and len(attr.assignments) == 1 else None
            if last is None or attr is None or attr.declared is not None or last.branches:
                continue
            if not is_name(last.value_node, parameter) or last.module is not found[1].module:
                continue
            own = found[1].node
            inside = own.lineno <= getattr(last.node, "lineno", 0) <= (own.end_lineno or 0)
            if not inside or any(other.value is held for other in obj.attrs.values()):
                continue
            places = (related(last.module, last.node, "the attribute is assigned here"),)
            node = next((at for given, at in zip(event.args, event.nodes, strict=False) if given is value), None)
            cls, holder = obj.cls.name, value.cls.name
            where = node or keyword_node(event.node, parameter) or event.node
            report(event.frame.module, where, cls=cls, path=name, value=held.describe(), holder=holder, related=places)


def elements_of(value: Value) -> list[Value]:
    """The elements of a plain container, or the value itself."""
    if isinstance(value, Seq):
        return list(value.items)
    return [item for _, item in value.items] if isinstance(value, DictVal) else [value]


@judges(rules.DATA_IN_PLAIN_OBJECT, AttributeSet, of=(Array,))
def array_kept_by_plain_object(event: AttributeSet, report: Reporter) -> None:
    """A forward pass that keeps an array in an ordinary object which the module holds: NNX does not see it change."""
    frame, owner, obj = event.frame, event.frame.receiver, event.obj
    forward = frame.func is not None and frame.func.name == "__call__" and frame.initializing is None
    if not forward or not isinstance(owner, Obj) or not is_checked(owner) or obj.cls.tracked or obj.assumed:
        return
    target = place_of(event)
    path = target.value if target is not None else None
    plain = isinstance(obj.cls, UserClass) and obj.kind is Kind.OTHER and not (obj.cls.opaque or obj.cls.remade)
    attr = owner.attrs.get(path.attr) if isinstance(path, ast.Attribute) else None
    if plain and isinstance(path, ast.Attribute) and attr is not None and attr.value is obj and _is_array(event.value):
        value = event.value.describe()
        report(frame.module, event.node, cls=owner.cls.name, path=path.attr, value=value, holder=obj.cls.name)


def _is_array(value: Value) -> bool:
    return isinstance(value, Array) and not isinstance(value, HostArray)


def _hidden(obj: Obj) -> Value | None:
    """What an instance of an ordinary class certainly hides: a Variable or module, or in a dataclass an array.

    An ordinary object may well keep a constant array; but dataclasses compare their fields, and a compiled function
    compares its static values, which fails for arrays.
    """
    cls = obj.cls
    if not isinstance(cls, UserClass) or obj.kind is not Kind.OTHER or cls.opaque or cls.unknown_decorators:
        return None
    values = [*(obj.args or {}).values(), *(attr.value for attr in obj.attrs.values())]
    if obj.template is not None:
        values += [attr.value for attr in obj.template.attrs.values()]
    kinds = {Kind.VARIABLE, Kind.PYTREE}
    if cls.is_dataclass:
        kinds.add(Kind.ARRAY)
    held = (part for value in values for part in elements_of(value))
    return next((value for value in held if value.kind in kinds and not _handed_in(value)), None)


def _handed_in(value: Value) -> bool:
    """Whether an object came through an annotated parameter: it may be state elsewhere, or frozen on purpose."""
    return any(isinstance(option, Obj) and option.assumed for option in options(value))


# -- plain containers inside of library containers ---------------------------------------------------------------------

HOLDERS = frozenset({"nnx.List", "nnx.Dict", "nnx.Sequential"})
ADDING = frozenset({"append", "insert", "setdefault"})


@judges_calls(rules.NESTED_PLAIN_CONTAINER, *HOLDERS, *(f".{name}" for name in ADDING))
def nested_plain_container(event: Called, report: Reporter) -> None:
    call = event.node
    if not isinstance(call, ast.Call):
        return
    holder = _holder(event)
    if holder is None:
        return
    for value, node in _elements(event, call, holder):
        if not isinstance(value, (Seq, DictVal)) or not value.facts().holds_data or value.facts().inner_tags:
            continue
        fix, mend = _nested_mend(event, call, holder, value, node)
        report(event.frame.module, node or call, cls=holder, value=value.describe(), mend=mend, fix=fix)


def _holder(event: Called) -> str | None:
    """The library container that a call makes or adds an element to."""
    callee, holder = event.callee, event.inherited
    if _adds(callee) and isinstance(callee.receiver, Obj) and callee.receiver.cls.library is not None:
        holder = callee.receiver.cls.library.canonical
    return holder.removeprefix("nnx.") if holder in HOLDERS else None


def _adds(callee: Value) -> TypeGuard[BoundMethod]:
    """Whether a method of the library adds an element."""
    return isinstance(callee, BoundMethod) and callee.func is None and callee.name in ADDING


def _elements(event: Called, call: ast.Call, holder: str) -> list[tuple[Value, ast.expr | None]]:
    """The elements that a call gives to the container, each with its expression where it has one of its own."""
    if _adds(event.callee):
        last = event.args[-1] if event.args else None
        return [(last, call.args[-1])] if last is not None else []
    found: list[tuple[Value, ast.expr | None]] = []
    if holder == "Sequential":
        plain = len(call.args) == len(event.args)
        pairs = zip(event.args, call.args if plain else [None] * len(event.args), strict=True)
        return [(value, node) for value, node in pairs if value is not None]
    if holder == "Dict":
        by_name = {item.arg: item.value for item in call.keywords if item.arg is not None}
        found += [(value, by_name.get(name)) for name, value in event.keywords.items()]
    given = event.args[0] if event.args else None
    node = call.args[0] if call.args else None
    if isinstance(given, Seq) and holder == "List":
        nodes = _element_nodes(node, len(given.items))
        found += zip(given.items, nodes, strict=True)
    elif isinstance(given, DictVal) and holder == "Dict":
        values = node.values if isinstance(node, ast.Dict) and None not in node.keys else [None] * len(given.items)
        if len(values) == len(given.items):
            found += [(value, part) for (_, value), part in zip(given.items, values, strict=True)]
    return found


def _element_nodes(node: ast.expr | None, count: int) -> list[ast.expr | None]:
    if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == count:
        return [None if isinstance(item, ast.Starred) else item for item in node.elts]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return [node.elt] * count
    return [None] * count


def _nested_mend(
    event: Called, call: ast.Call, holder: str, value: Seq | DictVal, node: ast.expr | None
) -> tuple[Fix | None, str]:
    module = event.frame.module
    source = module.source
    if holder == "Sequential":
        mend = "give the layers as separate arguments: `Sequential(a, b)` or `Sequential(*layers)`"
        if node is None or not isinstance(value, Seq) or len(call.args) != 1 or isinstance(node, ast.Starred):
            return None, mend
        span = source.span(node)
        if isinstance(node, ast.List) and node.elts and not any(isinstance(item, ast.Starred) for item in node.elts):
            after = source.text[span.end : source.span(call).end - 1]
            if not after.strip() and "#" not in after:
                edits = (Edit(Span(span.start, span.start + 1), ""), Edit(Span(span.end - 1, span.end), ""))
                return Fix("Give the layers as separate arguments", edits), mend
        return Fix("Give the layers as separate arguments", insert(span.start, "*")), mend
    mend = "use `nnx.List(...)`, `nnx.Dict(...)` or `nnx.data(...)` for the element"
    return (as_data(module, event.frame.env, node, value) if node is not None else None), mend
