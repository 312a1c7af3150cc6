"""Reading and changing attributes of abstract objects, with the data/static status of each.

Invariants: a status comes from :func:`nnx_rules.attributes.decide` and from nowhere else; an earlier assignment
counts as *before* a later one only if it dominates it (every path to the later one runs through it), so that
exclusive branches never meet.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import events, foreign
from nnx_lint.model.arrays import array_attribute, method_at
from nnx_lint.model.callables import (
    BoundMethod,
    FuncVal,
    SuperVal,
    Transformed,
    TransformVal,
)
from nnx_lint.model.classes import LibClass, UserClass, library_class
from nnx_lint.model.containers import DictVal, ReturnedDict, Seq
from nnx_lint.model.crossing import Axes, crossed, more_axes, refresh, set_leaf_level
from nnx_lint.model.fields import is_metadata
from nnx_lint.model.forms import arguments_of, bind, plain_value
from nnx_lint.model.handed import handed_in, is_model, to_instance
from nnx_lint.model.heap import touch
from nnx_lint.model.states import ForeignVal, GraphDefVal, PartVal, SownVal, StateVal, TransformationVal
from nnx_lint.model.strings import HOLE, fits, text_in
from nnx_lint.model.switching import switched
from nnx_lint.model.symbols import NamedParameter, NamedRecord, form_seen_from, part_of, seen_from
from nnx_lint.model.unions import UnionVal, join, options, present
from nnx_lint.model.values import (
    MAX_NESTING,
    SOME_VARIABLE,
    UNKNOWN,
    Array,
    ArrayAttr,
    Assignment,
    Attr,
    ClassVal,
    Const,
    Ext,
    HostArray,
    ModuleVal,
    NamespaceVal,
    Obj,
    Other,
    TagVal,
    Unknown,
    Value,
    VariableVal,
    VersionVal,
)
from nnx_lint.syntax.binding import ASKING, names_in
from nnx_rules.attributes import Status, Verdict, decide
from nnx_rules.names import MAPPING_METHODS, VARIABLE_ATTRIBUTES
from nnx_rules.rules import attributes as rules
from nnx_rules.streams import METHODS, SAMPLERS

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter


# -- reading -----------------------------------------------------------------------------------------------------------


def get_attribute(
    interp: Interpreter, frame: Frame, value: Value, name: str, node: ast.AST, *, sure: bool = True
) -> Value:
    """The value of ``value.name``; not ``sure`` where it may be another value that is asked."""
    value = present(value)
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(value, SuperVal):
        return value.method(name) or UNKNOWN
    if isinstance(value, UnionVal):
        return join(*(get_attribute(interp, frame, option, name, node, sure=False) for option in value.options))
    if isinstance(value, Ext):
        from nnx_lint.model.imports import library_member

        return library_member(interp, frame, node, value.name, name)
    if isinstance(value, ModuleVal):
        from nnx_lint.model.imports import module_attribute

        interp.load(value.module)
        return module_attribute(interp, value.module, name)
    if isinstance(value, Obj):
        if name in WATCHED:
            interp.publish(events.Used(frame, node, value, name))
        return object_attribute(interp, frame, value, name, node, sure=sure)
    if isinstance(value, Array):
        if name in WATCHED:
            interp.publish(events.Used(frame, node, value, name))
        return array_attribute(value, name, value.level)
    if isinstance(value, ArrayAttr):
        return method_at(value, name)
    if isinstance(value, (Seq, StateVal)):
        interp.publish(events.Used(frame, node, value, name))
    if isinstance(value, (StateVal, PartVal)):
        from nnx_lint.model import elements

        if name not in elements.STATE_METHODS:
            found = elements.part(value, name)
            return BoundMethod(value, name) if found is UNKNOWN and isinstance(value, StateVal) else found
    if isinstance(value, ReturnedDict) and not hasattr(dict, name):
        interp.publish(events.Used(frame, node, value, name))
    if isinstance(value, (Seq, DictVal, StateVal, NamespaceVal)):
        return BoundMethod(value, name)
    if isinstance(value, GraphDefVal) and name in {"apply", "merge"}:
        return BoundMethod(value, name)
    if isinstance(value, ClassVal):
        return class_attribute(value, name)
    if isinstance(value, TagVal):
        interp.publish(events.Used(frame, node, value, name))
    if isinstance(value, (Transformed, TransformVal)):
        return BoundMethod(value, name)
    if isinstance(value, (ForeignVal, TransformationVal)):
        return foreign.member(value, name) or UNKNOWN
    if isinstance(value, VersionVal):
        return value
    if isinstance(value, (NamedParameter, NamedRecord)):
        return part_of(value, name)
    if isinstance(value, BoundMethod) and name in STREAM and is_stream(value):
        return SOME_VARIABLE
    if isinstance(value, BoundMethod) and name in SAMPLERS and is_stream(value) and value.name not in METHODS:
        return BoundMethod(value.receiver, name)  # a stream draws as the streams do that it belongs to
    if isinstance(value, BoundMethod) and name == "fork" and RNG_STREAM is not None and is_stream(value):
        owner = value.receiver
        return BoundMethod(Obj(RNG_STREAM, owner.level if isinstance(owner, Obj) else frame.level), name)
    if isinstance(value, FuncVal) and value.is_property and name in {"getter", "setter", "deleter"}:
        return BoundMethod(value, name)
    if isinstance(value, Const) and isinstance(value.value, (str, bytes)):
        return BoundMethod(value, name)
    if isinstance(value, SownVal) and name == "value":
        interp.publish(events.Used(frame, node, value, name))
        return value
    if isinstance(value, SownVal) and name == "get_value":
        return BoundMethod(value, name)
    if isinstance(value, VariableVal) and name in {"copy", "replace"}:
        return BoundMethod(value, name)
    if isinstance(value, SownVal) or (isinstance(value, VariableVal) and name in WATCHED):
        interp.publish(events.Used(frame, node, value, name))
    return UNKNOWN


STREAM = frozenset({"count", "key"})
"""The Variables of a random stream."""

RNG_STREAM = library_class("nnx.RngStream")


def is_stream(value: BoundMethod) -> bool:
    """Whether an attribute is a random stream of an ``nnx.Rngs``."""
    owner = value.receiver
    return isinstance(owner, Obj) and value.func is None and owner.cls.derives_from("nnx.Rngs")


WATCHED = frozenset({"model", "raw_value", "value"})
"""Attributes of library objects whose reading is told to the rules."""


def class_attribute(value: ClassVal, name: str) -> Value:
    """The value of ``Class.name``."""
    cls = value.cls
    if not isinstance(cls, UserClass):
        return BoundMethod(value, name)
    found = cls.find(name)
    if found is not None:
        func = found[1]
        return BoundMethod(value, name, func) if _takes(func, "classmethod") else func
    attribute = cls.class_attribute(name)
    if attribute is not None:
        return attribute
    if name == "__new__" and cls.is_pytree and not cls.is_open:
        return Ext("builtins.object.__new__")
    if cls.foreign and name == "create":
        return Ext(f"{cls.foreign}.{name}")
    return BoundMethod(value, name) if cls.library is not None else UNKNOWN


def object_attribute(
    interp: Interpreter, frame: Frame, obj: Obj, name: str, node: ast.AST, *, sure: bool = True
) -> Value:
    """The value of an attribute of an instance: its own, a method, a class-level value."""
    attr = attribute_of(obj, name)
    if attr is not None:
        return attr.value
    if name == "__dict__":
        return namespace(obj)
    if name == "__class__":
        return ClassVal(obj.cls)
    cls = obj.cls
    if isinstance(cls, UserClass):
        found = cls.find(name)
        if found is not None:
            return bind_method(interp, frame, obj, name, found[1], node)
        value = cls.class_attribute(name)
        if value is not None:
            return class_level(obj, cls, name, value)
    computed = [attr.value for key, attr in computed_names(obj) if fits(name, key)]
    if computed and not (name in MAPPING_METHODS and cls.derives_from("nnx.Dict")):
        return join(*computed)
    if cls.is_variable:
        public = not name.startswith("_")  # the library's own are not for us to know
        if sure and public and type(variable_value(obj)) is Array and name not in VARIABLE_ATTRIBUTES:
            interp.publish(events.AttributeMissed(frame, node, obj, name))
        return variable_attribute(obj, name)
    if sure:
        missed = events.EntryMissed if cls.derives_from("types.SimpleNamespace") else events.AttributeMissed
        interp.publish(missed(frame, node, obj, name))
    if cls.library is not None and (name in {"__call__", "__setattr__"} or not name.startswith("__")):
        from nnx_lint.model.instances import library_member

        return library_member(obj, name)
    return UNKNOWN


def class_level(obj: Obj, cls: UserClass, name: str, value: Value) -> Value:
    """What an instance has of a value in the body of its class, where nothing is known to have been assigned.

    Of an instance that only an annotation vouches for it may be another one; and what something unknown made of an
    annotated name, or what it is in a class below, is anybody's guess.
    """
    if (cls.remade or cls.is_open) and any(name in item.fields for item in cls.lineage):
        return UNKNOWN
    if not obj.assumed or not isinstance(value, Const):
        return value
    return UNKNOWN if value.value is None else Other(value.describe())


def namespace(obj: Obj) -> Value:
    """The dict of the attributes of an instance. Who takes it may fill it with all that ``__init__`` would set."""
    touch(obj)
    obj.bare = False
    return NamespaceVal(obj)


def bind_method(interp: Interpreter, frame: Frame, obj: Obj, name: str, func: Value, node: ast.AST) -> Value:
    """A function of the class, seen from an instance."""
    if isinstance(func, FuncVal):
        if "staticmethod" in func.decorators:
            return func
        if "classmethod" in func.decorators:
            return BoundMethod(ClassVal(obj.cls), name, func)
        if func.is_property:
            return interp.call_function(frame, func, [], {}, node, receiver=obj)
        return BoundMethod(obj, name, func)
    if isinstance(func, Transformed):
        if _takes(func, "staticmethod"):
            return func
        return BoundMethod(ClassVal(obj.cls) if _takes(func, "classmethod") else obj, name, func)
    return UNKNOWN


def _takes(func: Value, decorator: str) -> bool:
    """Whether a function of a class, or the one that a transform of it runs, is a static method or one of the class."""
    while isinstance(func, Transformed):
        func = func.func
    return isinstance(func, FuncVal) and decorator in func.decorators


def attribute_of(obj: Obj, name: str) -> Attr | None:
    """The attribute of an instance; taken from its template, at the instance's own level, when first asked for."""
    attr = obj.attrs.get(name)
    if attr is not None:
        return attr
    template = obj.template
    if template is None:
        return None
    original = attribute_of(template, name)
    if original is None:
        return None
    touch(obj)
    if (taken := handed_in(obj, original.value)) is not None:
        attr = obj.attrs[name] = Attr(taken, original.declared)
        attr.assignments = original.assignments
        return attr
    gained = None if obj.gained is None or template.gained is None else obj.gained - template.gained
    known = not _unfolds(obj) and not (isinstance(original.value, Array) and is_metadata(obj.cls, name))
    axes = Axes(1, 0, obj.extent) if gained == 1 and obj.extent is not None else Axes(gained)
    attr = Attr(refresh(original.value, obj.level, axes=axes) if known else UNKNOWN, original.declared)
    if attr.value.symbol is not None or (isinstance(attr.value, Array) and attr.value.form is not None):
        attr.value = seen_from(attr.value, arguments_of(obj) if is_model(template) else obj.binds)
    if type(attr.value) is HostArray and obj.level > template.level and not is_model(template):
        attr.value = Array(obj.level, attr.value.form)  # it has become a leaf of an argument
    _hold(attr.value, obj)
    bind(attr.value, obj)
    attr.value = to_instance(attr.value, obj)
    if obj.assumed and isinstance(attr.value, Obj):
        attr.value.assumed = True
    if obj.training is not True:
        attr.value = switched(name, attr.value, obj.training)
    if obj.leaf_level is not None:
        set_leaf_level(attr.value, obj.leaf_level, params=obj.leaf_params)
    attr.assignments = original.assignments
    obj.attrs[name] = attr
    if isinstance(attr.value, (Seq, DictVal)):
        attr.value.owner = (obj, name)
    return attr


def original_of(obj: Obj, name: str) -> Attr | None:
    """The attribute of an instance, or the one of a template that it would be taken from: of another level, but of the
    same kind and with the same assignments. What is not wanted then is never taken.
    """
    of: Obj | None = obj
    while of is not None:
        if name in of.attrs:
            return of.attrs[name]
        of = of.template
    return None


MAX_NESTED = 4
"""In how many of its own class an instance may be before what it holds is not known: a class whose constructor makes
instances of the class itself would unfold for ever."""


def _unfolds(obj: Obj) -> bool:
    """Whether an instance is inside of so many others of its class that there may be no end to it."""
    count, holder = 0, obj.holder
    while holder is not None:
        count, holder = count + (holder.cls is obj.cls), holder.holder
    return count >= MAX_NESTED


def _hold(value: Value, holder: Obj, depth: int = MAX_NESTING) -> None:
    """Note what instances are inside of, of a value that is nowhere else."""
    if isinstance(value, Obj):
        value.holder = holder
    elif isinstance(value, (Seq, DictVal)) and depth:
        for item in value.items:
            _hold(item[1] if isinstance(item, tuple) else item, holder, depth - 1)


ANY_NAME = HOLE
"""The name of the attributes of which nothing is known, not even the name."""


def computed_names(obj: Obj) -> list[tuple[str, Attr]]:
    """The attributes of an instance whose names are known in part (:mod:`~nnx_lint.model.strings`)."""
    names = (name for name in attribute_names(obj) if HOLE in name)
    return [(name, attr) for name in names if (attr := attribute_of(obj, name)) is not None]


def forget(obj: Obj, name: str) -> None:
    """Note that an attribute of an instance has got a value that was not seen."""
    touch(obj)
    attr = attribute_of(obj, name)
    obj.attrs[name] = Attr(UNKNOWN, attr.declared if attr is not None else Status.UNKNOWN)


def forget_names(obj: Obj) -> None:
    """Note that an instance got attributes of unknown names: of a configuration of a library, any of its own."""
    touch(obj)
    if isinstance(obj.cls, LibClass) and not obj.cls.tracked:
        obj.attrs = {name: Attr(UNKNOWN) for name in obj.attrs}
    obj.attrs[ANY_NAME] = Attr(UNKNOWN, Status.UNKNOWN)


def forget_all(value: Value) -> None:
    """Note that any attribute of an instance may hold anything by now."""
    if isinstance(value, Obj) and not value.cls.is_variable:
        for name in attribute_names(value):
            forget(value, name)
        forget_names(value)


def attribute_names(obj: Obj) -> list[str]:
    """The names of all known attributes, those of the template included."""
    names = dict.fromkeys(attribute_names(obj.template)) if obj.template is not None else {}
    names.update(dict.fromkeys(obj.attrs))
    return list(names)


def variable_attribute(obj: Obj, name: str) -> Value:
    """An attribute of a Variable: its value, a method, or an attribute of the array inside."""
    from nnx_rules import api

    if name in {"value", "raw_value"}:
        return variable_value(obj)
    if name in api.VARIABLE_WRITES or name in {"get_value", "copy", "replace", "get_metadata", "has_metadata"}:
        return BoundMethod(obj, name)
    held = variable_value(obj)
    if isinstance(held, Array):
        return array_attribute(held, name, obj.level)
    return UNKNOWN


def variable_value(obj: Obj) -> Value:
    """What a Variable holds. A number or string may be another one by now, and ``None`` is there to be replaced."""
    held = (obj.args or {}).get("value")
    if isinstance(held, Array):
        return Array(obj.level, crossed(form_seen_from(held.form, obj.binds), more_axes(obj)))
    if isinstance(held, Const):
        return plain_value(obj, held)
    return held if held is not None else UNKNOWN


def forget_form(obj: Obj) -> None:
    """Note that a Variable got another value, of any shape and dtype."""
    held = variable_value(obj)
    if isinstance(held, Array) and held.form is not None:
        touch(obj)
        obj.args = {**(obj.args or {}), "value": Array(obj.level)}


# -- writing
# -------------------------------------------------------------------------------------------------------------------


def set_attribute(
    interp: Interpreter,
    frame: Frame,
    target: Value,
    text: str,
    name: str,
    value: Value,
    value_node: ast.expr | None,
    node: ast.AST,
) -> None:
    """Execute ``target.name = value``."""
    obj = present(target)
    if not isinstance(obj, Obj):
        if isinstance(obj, UnionVal):
            variables = all(isinstance(option, Obj) and option.cls.is_variable for option in obj.options)
            action = f"`.{name} =`" if variables and name in WATCHED else f"setting `.{name}`"
            mutate(interp, frame, obj, text, action, "write", node)
        if isinstance(obj, VariableVal):
            used = events.Used(frame, node, obj, name)
            interp.publish(used if name in WATCHED else events.VariableAttributeSet(frame, node, obj, name, "set"))
        if isinstance(obj, PartVal) and isinstance(obj.of, Obj) and (had := attribute_of(obj.of, name)) is not None:
            interp.publish(events.AttributeSet(frame, node, obj.of, name, value, value_node, had, None, None))
        if isinstance(obj, (Array, BoundMethod)):
            interp.publish(events.OtherAttributeSet(frame, node, obj, name))
        if isinstance(obj, ClassVal) and isinstance(obj.cls, UserClass):
            runs = not frame.doubtful and (frame.func is None or frame.caller is not None)
            obj.cls.change(name, value if runs else UNKNOWN, node if frame.module is obj.cls.module else obj.cls.node)
        return
    if obj.cls.is_variable:
        if name in {"value", "raw_value"}:
            forget_form(obj)
            mutate(interp, frame, obj, text, f"`.{name} =`", "write", node)
        else:
            interp.publish(events.VariableAttributeSet(frame, node, obj, name, "set"))
        return
    setter = setter_of(obj, name)
    if setter is not None:
        interp.call_function(frame, setter, [untagged(value) if obj.cls.is_pytree else value], {}, node, receiver=obj)
        return
    if obj is not frame.initializing:
        mutate(interp, frame, obj, text, f"setting `.{name}`", "write", node)
    touch(obj)
    attr = attribute_of(obj, name)
    if attr is None:
        declared = obj.cls.declared_status(name) if isinstance(obj.cls, UserClass) else None
        if declared is None and may_be_set(obj, name):
            declared = Status.UNKNOWN
        attr = obj.attrs[name] = Attr(UNKNOWN, declared)
    before, current = current_status(attr, frame.branches)
    if HOLE in name and before is not None:
        before, current = None, Status.UNKNOWN  # it need not be the same attribute
    verdict: Verdict | None = None
    checked = isinstance(obj.cls, UserClass) and obj.cls.checked
    # Where mocks are at work, an attribute that the class itself does not know may be set on one of them.
    known = attr.declared is not None or bool(attr.assignments) or obj is frame.receiver
    if obj.cls.is_pytree and not obj.assumed and (known or not frame.module.mocks) and stored(obj, name):
        verdict = decide(current, value.facts(), checked=checked, declared=before is None)
        free = isinstance(value_node, ast.IfExp) and names_in(value_node.test).isdisjoint(ASKING)
        if isinstance(value, UnionVal) and free:
            # Either arm may be what is assigned: the first that cannot be decides.
            arms = (decide(current, arm.facts(), checked=checked, declared=before is None) for arm in value.options)
            verdict = next((arm for arm in arms if arm.broken is rules.DATA_IN_STATIC_ATTRIBUTE), verdict)
    event = events.AttributeSet(frame, node, obj, name, value, value_node, attr, before, verdict)
    interp.publish(event)
    status = verdict.status if verdict is not None else Status.UNKNOWN
    broken = verdict.broken if verdict is not None else None
    plain = untagged(value)
    assignment = Assignment(plain, status, frame.module, node, value_node, frame.branches, broken)
    assignment.doubtful = frame.doubtful
    attr.assignments = (*attr.assignments, assignment)
    attr.value = held(attr, plain, obj, frame)
    if isinstance(plain, (Seq, DictVal)) and plain.owner is None:
        touch(plain)
        plain.owner = (obj, name)


def setter_of(obj: Obj, name: str) -> FuncVal | None:
    """The function that takes assignments to an attribute which is a property."""
    found = obj.cls.find(name) if isinstance(obj.cls, UserClass) else None
    return found[1].setter if found is not None and isinstance(found[1], FuncVal) else None


def may_be_set(obj: Obj, name: str) -> bool:
    """Whether an attribute that nothing assigns by this name may have been assigned by a computed one.

    A name of which nothing is known is taken to be another one: who hands options on by name rarely means what the
    class assigns itself.
    """
    if HOLE in name:
        return any(fits(key, name) for key in attribute_names(obj))
    return any(fits(name, key) for key, _ in computed_names(obj) if key != ANY_NAME)


def current_status(attr: Attr, branches: tuple[tuple[int, int], ...]) -> tuple[Assignment | None, Status | None]:
    """The last assignment that certainly happened before, and the status of the attribute by now, if it has one."""
    before: Assignment | None = None
    current = attr.declared
    for item in attr.assignments:
        if item.dominates(branches):
            before, current = item, item.status
        elif item.status is not current and not item.excludes(branches):
            current = Status.UNKNOWN
    return before, current


def stored(obj: Obj, name: str) -> bool:
    """Whether an assignment is stored in the instance: no property or other descriptor of the class takes it."""
    if not isinstance(obj.cls, UserClass):
        return True
    found = obj.cls.find(name)
    if found is not None:
        return isinstance(found[1], FuncVal) and not found[1].is_property
    value = obj.cls.class_attribute(name)
    return not isinstance(value, (Obj, Unknown)) or (isinstance(value, Obj) and value.cls.tracked)


def untagged(value: Value) -> Value:
    """The value that an attribute holds after ``nnx.data(...)`` or ``nnx.static(...)`` was unwrapped."""
    if isinstance(value, UnionVal):
        return join(*(untagged(option) for option in value.options))
    return value.value if isinstance(value, TagVal) and value.value is not None else value


def held(attr: Attr, value: Value, obj: Obj, frame: Frame) -> Value:
    """What the attribute may hold afterwards: the new value alone only if nothing else can be current later. The arms
    that lead to a constructor lead to its object, too.
    """
    constructor = obj is frame.receiver and frame.func is not None and frame.func.name == "__init__"
    shared = len(frame.caller.branches) if constructor and frame.caller is not None else 0
    if not frame.branches[shared:] or not attr.assignments[:-1]:
        return value
    return join(value, *(item.value for item in attr.assignments[:-1]))


def bypass(interp: Interpreter, frame: Frame, obj: Obj, key: Value, value: Value, node: ast.AST) -> None:
    """Write an attribute without ``__setattr__`` of its class, which leaves its status as it is."""
    touch(obj)
    obj.bare = False
    name = text_in(key)
    if name is None:
        forget_names(obj)
        return
    if attribute_of(obj, name) is None:
        attr = obj.attrs[name] = Attr(untagged(value))
        if obj is frame.initializing:
            attr.assignments = (Assignment(attr.value, Status.UNKNOWN, frame.module, node, None, frame.branches),)
    interp.publish(events.AttributeBypassed(frame, node, obj, name, value))
    if obj is not frame.initializing and not obj.cls.tracked:
        obj.attrs[name] = Attr(untagged(value))
    elif name in obj.attrs:
        obj.attrs[name].value = untagged(value)


def delete_attribute(interp: Interpreter, frame: Frame, target: Value, text: str, name: str, node: ast.AST) -> None:
    """Execute ``del target.name``: the status is forgotten."""
    obj = present(target)
    if isinstance(obj, Obj):
        if obj.cls.is_variable:
            interp.publish(events.VariableAttributeSet(frame, node, obj, name, "deleted"))
        mutate(interp, frame, obj, text, f"`del .{name}`", "untracked", node)
        attr = attribute_of(obj, name)
        if attr is not None:
            touch(obj)
            attr.assignments = ()
            attr.value = UNKNOWN


def mutate(
    interp: Interpreter,
    frame: Frame,
    target: Value,
    text: str,
    action: str,
    effect: str,
    node: ast.AST,
    state: str = "state",
) -> None:
    """Publish that an object is changed."""
    known = [option for option in options(present(target)) if isinstance(option, (Obj, StateVal))]
    if known and len(known) == len(options(present(target))):
        latest = max(known, key=lambda option: option.level)
        interp.effects.changed(frame, latest, action, effect, state)
        event = events.Mutated(frame, node, latest, text, action, effect, state)
        for scope in frame.scope:
            scope.changes.append(event)
        interp.publish(event)
