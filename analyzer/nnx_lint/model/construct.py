"""Definitions of functions and classes, and what an instance of a class looks like.

The *model* of a class is one abstract instance on which ``__init__`` ran with parameters of unknown values (or of
their annotated types). Every other instance takes its attributes from the model, at its own trace level.

Invariants: a class is modelled once; modelling a class that is being modelled (recursive structures) gives an
instance without attributes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import annotations as annotated
from nnx_lint.model import events
from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.classes import ClassBase, Field, LibClass, UserClass, method_of
from nnx_lint.model.frames import Frame
from nnx_lint.model.modules import Env
from nnx_lint.model.values import (
    UNKNOWN,
    AliasVal,
    Assignment,
    Attr,
    ClassVal,
    Const,
    DictVal,
    Ext,
    FieldVal,
    Obj,
    TagVal,
    Value,
    options,
)
from nnx_rules.attributes import Declaration, Status, decide, declare

if TYPE_CHECKING:
    from nnx_lint.model.interpreter import Interpreter


# -- functions
# -----------------------------------------------------------------------------------------------------------------


def define_function(interp: Interpreter, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
    """Execute a ``def``: defaults and decorators now, the body later."""
    func = FuncVal(node, frame.module, frame.env, frame.cls if frame.env.kind == "class" else None)
    bind_defaults(interp, frame, func)
    interp.defined(func, frame)
    return decorate(interp, frame, func, node)


def bind_defaults(interp: Interpreter, frame: Frame, func: FuncVal) -> None:
    """Evaluate the defaults of parameters."""
    from nnx_lint.model.expressions import evaluate

    arguments = func.node.args
    parameters = [*arguments.posonlyargs, *arguments.args]
    for parameter, default in zip(
        parameters[len(parameters) - len(arguments.defaults) :], arguments.defaults, strict=True
    ):
        func.defaults[parameter.arg] = evaluate(interp, frame, default)
    for parameter, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword_default is not None:
            func.defaults[parameter.arg] = evaluate(interp, frame, keyword_default)


KNOWN_DECORATORS = frozenset(
    {"property", "staticmethod", "classmethod", "functools.cached_property", "functools.cache", "functools.lru_cache"}
    | {
        "abc.abstractmethod",
        "typing.override",
        "typing.overload",
        "typing.final",
        "functools.wraps",
        "contextlib.contextmanager",
    }
)


def decorate(interp: Interpreter, frame: Frame, func: FuncVal, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
    """Apply decorators, innermost first. One that is not known makes the function unknown, but its body is still seen
    on its own.
    """
    from nnx_lint.model.calls import apply_decorator
    from nnx_lint.model.expressions import evaluate

    value: Value = func
    names: list[str] = []
    for decorator in reversed(node.decorator_list):
        callee = evaluate(interp, frame, decorator)
        if isinstance(callee, Ext):
            name = callee.name.removeprefix("builtins.")
            if name in KNOWN_DECORATORS:
                names.append(name)
                func.decorators = tuple(names)
                continue
        if isinstance(callee, Ext) and callee.name.partition(".")[0] in {
            "jaxtyping",
            "typeguard",
            "beartype",
            "typing_extensions",
        }:
            continue
        value = apply_decorator(interp, frame, callee, value, decorator)
    func.decorators = tuple(names)
    return value


# -- classes
# -------------------------------------------------------------------------------------------------------------------


def define_class(interp: Interpreter, frame: Frame, node: ast.ClassDef) -> Value:
    """Execute a class statement."""
    from nnx_lint.model.expressions import evaluate

    bases: list[ClassBase] = []
    unresolved = named_tuple = False
    for base in node.bases:
        value = evaluate(interp, frame, base.value if isinstance(base, ast.Starred) else base)
        if isinstance(value, AliasVal):
            value = value.origin
        candidates = [option for option in options(value) if isinstance(option, ClassVal)]
        if len(candidates) == 1 and len(options(value)) == 1:
            bases.append(candidates[0].cls)
        elif (isinstance(value, Ext) and value.name in HARMLESS_BASES) or (
            isinstance(base, ast.Subscript)
            and isinstance(head := evaluate(interp, frame, base.value), Ext)
            and head.name in HARMLESS_BASES
        ):
            named_tuple = named_tuple or (isinstance(value, Ext) and value.name == "typing.NamedTuple")
        else:
            unresolved = True
    body_env = Env("class", frame.env)
    cls = UserClass(node, frame.module, tuple(bases), unresolved, body_env)
    cls.registered_container = cls.named_tuple = named_tuple
    for keyword in node.keywords:
        held = evaluate(interp, frame, keyword.value)
        if keyword.arg == "pytree" and isinstance(held, Const):
            cls.pytree_keyword = bool(held.value)
        elif (
            keyword.arg != "pytree"
            and not (keyword.arg == "metaclass" and isinstance(held, Ext) and held.name == "abc.ABCMeta")
        ) or keyword.arg == "pytree":
            cls.dynamic = True
    body = Frame(frame.module, body_env, caller=None, level=frame.level, scope=frame.scope, cls=cls)
    decorators(interp, frame, cls, node)
    interp.block(body, node.body)
    collect_body(interp, body, cls, node)
    if cls.is_pytree:
        interp.defined_class(cls)
    interp.publish(events.ClassDefined(frame, node, cls))
    return ClassVal(cls)


HARMLESS_BASES = frozenset(
    {
        "typing.Generic",
        "typing.Protocol",
        "abc.ABC",
        "builtins.object",
        "typing.NamedTuple",
        "typing_extensions.Protocol",
    }
)
"""Bases that add nothing to what we track."""

REGISTERING = frozenset(
    {
        "flax.struct.dataclass",
        "jax.tree_util.register_pytree_node_class",
        "jax.tree_util.register_dataclass",
        "jax.tree_util.register_pytree_with_keys_class",
        "jax.tree_util.register_static",
        "chex.dataclass",
    }
)
"""Decorators that make a class a JAX container."""


def decorators(interp: Interpreter, frame: Frame, cls: UserClass, node: ast.ClassDef) -> None:
    """Note what decorates a class."""
    from nnx_lint.model.expressions import evaluate

    for decorator in node.decorator_list:
        value = evaluate(interp, frame, decorator.func if isinstance(decorator, ast.Call) else decorator)
        if isinstance(value, Ext):
            name = value.name
            if name == "functools.partial" and isinstance(decorator, ast.Call) and decorator.args:
                inner = evaluate(interp, frame, decorator.args[0])
                name = inner.name if isinstance(inner, Ext) else name
            cls.decorators[name] = decorator
            cls.registered_container = cls.registered_container or name in REGISTERING
            cls.registered_data = cls.registered_data or name == "nnx.register_data_type"
        else:
            cls.unknown_decorators = True


def collect_body(interp: Interpreter, body: Frame, cls: UserClass, node: ast.ClassDef) -> None:
    """Sort the names of a class body into methods, fields and class-level values."""
    assigned: dict[str, ast.AST] = {}
    own: list[Declaration] = []
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            assigned.update((target.id, statement) for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            if statement.value is not None:
                assigned[name] = statement
            if annotated.is_class_variable(interp, body, statement.annotation):
                continue
            value = body.env.names.get(name) if statement.value is not None else None
            cls.fields[name] = Field(name, statement.annotation, statement, value)
            status = annotated.declared_status(interp, body, statement.annotation)
            if status is not None:
                own.append(Declaration(name, status, "annotation"))
            if isinstance(value, (TagVal, FieldVal)):
                cls.fields[name].has_default = not {"default", "default_factory"}.isdisjoint(value.keywords)
                keyword_only = value.keywords.get("kw_only")
                cls.fields[name].keyword_only = isinstance(keyword_only, Const) and keyword_only.value is True
    for name, value in body.env.names.items():
        if isinstance(value, (FuncVal, Transformed)) and name not in assigned:
            cls.methods[name] = value
        elif name in assigned:
            cls.attributes[name] = (value, assigned[name])
        elif not isinstance(value, ClassVal):
            cls.methods[name] = value
    for name, (value, _) in cls.attributes.items():
        status = specified_status(value)
        if status is not None:
            own.append(Declaration(name, status, "field"))
    inherited = [item.declared for item in cls.ancestors[1:] if isinstance(item, UserClass)]
    declared = declare(inherited, own)
    cls.declared, cls.conflicts = dict(declared.statuses), declared.conflicts


def specified_status(value: Value) -> Status | None:
    """The status that a field specifier gives: ``nnx.data()``, ``nnx.static()``, metadata of ``dataclasses.field``."""
    if isinstance(value, TagVal):
        return value.tag.status
    if not isinstance(value, FieldVal) or "metadata" not in value.keywords:
        return None
    static = metadata_entry(value, "static")
    if isinstance(static, Const) and isinstance(static.value, bool):
        return Status.STATIC if static.value else Status.DATA
    return None if static is None else Status.UNKNOWN


def metadata_entry(field: FieldVal, name: str) -> Value | None:
    """An entry of the metadata of a field; unknown if the metadata is not written out."""
    metadata = field.keywords.get("metadata")
    if not isinstance(metadata, DictVal) or not metadata.exact:
        return None if metadata is None else UNKNOWN
    return next((held for key, held in metadata.items if isinstance(key, Const) and key.value == name), None)


# -- instances
# -----------------------------------------------------------------------------------------------------------------


def instance_of(interp: Interpreter, cls: ClassBase, level: int) -> Obj:
    """An instance of a class, of which only the class is known."""
    obj = Obj(cls, level)
    if isinstance(cls, UserClass):
        obj.template = model_of(interp, cls)
    elif isinstance(cls, LibClass):
        from nnx_lint.model.members import library_instance

        library_instance(obj, None)
    return obj


def model_of(interp: Interpreter, cls: ClassBase, *, fresh: bool = False) -> Obj:
    """The model of a class; with ``fresh`` an instance at level 0 that may be changed without changing the model."""
    if not isinstance(cls, UserClass):
        return instance_of(interp, cls, 0)
    if cls.model is None:
        cls.model = Obj(cls, 0)
        if id(cls.node) in interp.modelled:
            cls.dynamic = True  # a constructor defines its own class anew, and would do so without end
            return cls.model
        interp.modelled.add(id(cls.node))
        build_model(interp, cls, cls.model)
        interp.modelled.discard(id(cls.node))
    if not fresh:
        return cls.model
    obj = Obj(cls, cls.model.level)
    obj.template = cls.model
    return obj


def build_model(interp: Interpreter, cls: UserClass, obj: Obj) -> None:
    """Run the constructor of a class on its model."""
    frame = Frame(cls.module, cls.module.env)
    frame.initializing = obj
    obj.constructing = True
    found = method_of(cls, "__init__")
    generated = next(
        (
            item
            for item in cls.ancestors
            if isinstance(item, UserClass) and (item.own_dataclass or "__init__" in item.methods)
        ),
        None,
    )
    if generated is not None and generated.own_dataclass and "__init__" not in generated.methods:
        dataclass_attributes(interp, frame, cls, obj)
    elif found is not None:
        run_initializer(interp, frame, obj, found[1])
    post = method_of(cls, "__post_init__")
    if cls.is_dataclass and post is not None:
        run_initializer(interp, frame, obj, post[1])
    obj.constructing = False
    if cls.is_pytree:
        interp.publish(events.Constructed(frame, cls.node, cls, obj))


def run_initializer(interp: Interpreter, frame: Frame, obj: Obj, func: FuncVal) -> None:
    """Run a method of the constructor on the model, as an entry."""
    interp.entered.add(id(func.node))
    env = Env("function", func.env, func)  # type: ignore[arg-type]
    inner = Frame(func.module, env, func=func, caller=frame, call=None, level=0, cls=func.cls, receiver=obj)
    inner.initializing = obj
    interp.bind_entry(inner, func, obj)
    interp.body(inner, func)


def dataclass_attributes(interp: Interpreter, frame: Frame, cls: UserClass, obj: Obj) -> None:
    """The attributes that a generated ``__init__`` assigns: one for each field, of the annotated type."""
    for field in cls.all_fields():
        owner = next(
            (item for item in cls.ancestors if isinstance(item, UserClass) and item.fields.get(field.name) is field),
            cls,
        )
        scope = Frame(owner.module, owner.env, cls=owner)
        value = annotated.value_of(interp, scope, field.annotation)
        declared = cls.declared_status(field.name)
        verdict = decide(declared, value.facts(), checked=cls.checked, declared=True)
        attr = obj.attrs[field.name] = Attr(value, declared)
        attr.assignments.append(Assignment(value, verdict.status, owner.module, field.node, None, (), verdict.broken))


def status_of(obj: Obj, name: str) -> Status | None:
    """The status that an attribute of an instance has after its last assignment."""
    from nnx_lint.model.attributes import attribute_of

    attr = attribute_of(obj, name)
    if attr is None:
        return None
    return attr.assignments[-1].status if attr.assignments else attr.declared
