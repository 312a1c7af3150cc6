"""What an instance has of something that its constructor made, where that depends on the instance.

The model of a class holds what the constructor makes of parameters of which nothing is known. A function that it
defines closes over ``self`` and over those parameters, a method that it keeps is one of ``self``, a partial may hold
either; a State or a GraphDef that it takes is one of a parameter; a part may keep what it was handed on. Of an instance
both are known: they are the instance, and what it was made with.

Invariants: only what belongs to the model of the class is exchanged, so copies of an instance, at another trace level
for example, go on with what the constructor captured; nothing is changed in place.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.forms import resolved
from nnx_lint.model.modules import Env
from nnx_lint.model.states import GraphDefVal, StateVal
from nnx_lint.model.values import Obj, ParameterVal, Value

if TYPE_CHECKING:
    from collections.abc import Mapping


def to_instance(value: Value, obj: Obj) -> Value:
    """An attribute of the model of a class, as an instance has it whose template is that model."""
    if not isinstance(value, (FuncVal, BoundMethod, PartialVal, Transformed, GraphDefVal, StateVal)):
        return value
    model = obj.template
    return _exchanged(value, obj, model) if model is not None and is_model(model) else value


def handed_in(obj: Obj, value: Value) -> Value | None:
    """What an instance has for an attribute of its template that came from outside: what the constructor of its owner
    was given, and handed on to it, or the object that another attribute has for the same one.
    """
    if any(value is each for each in (obj.args or {}).values()):
        given = resolved(obj, value)
        if given is not value:
            return given
    held = (attr.value for attr in obj.attrs.values()) if isinstance(value, Obj) else ()
    return next((each for each in held if isinstance(each, Obj) and each.template is value), None)


def is_model(obj: Obj) -> bool:
    """Whether an object stands for all instances of a class, or for all that are made with the same sizes."""
    cls = obj.cls
    return isinstance(cls, UserClass) and (obj is cls.model or obj.sized)


def _exchanged(value: Value, obj: Obj, model: Obj) -> Value:
    if isinstance(value, Transformed):
        func = _exchanged(value.func, obj, model)
        return value if func is value.func else Transformed(value.applied, func)
    if isinstance(value, BoundMethod):
        return BoundMethod(obj, value.name, value.func) if value.receiver is model else value
    if isinstance(value, PartialVal):
        return _partial(value, obj, model)
    if isinstance(value, (GraphDefVal, StateVal)):
        of = _of_instance(value.of, obj, model)
        if of is value.of:
            return value
        return GraphDefVal(of) if isinstance(value, GraphDefVal) else value.again(obj.level, of)
    if not isinstance(value, FuncVal) or not isinstance(value.env, Env) or value.env.kind != "function":
        return value
    names = {name: _of_instance(held, obj, model) for name, held in value.env.names.items()}
    return value if _same(names, value.env.names) else _in_scope(value, names)


def _partial(value: PartialVal, obj: Obj, model: Obj) -> PartialVal:
    func = _exchanged(value.func, obj, model)
    args = [_of_instance(item, obj, model) for item in value.args]
    keywords = {name: _of_instance(item, obj, model) for name, item in value.keywords.items()}
    same = func is value.func and all(map(operator.is_, args, value.args)) and _same(keywords, value.keywords)
    return value if same else PartialVal(func, args, keywords, opaque=value.opaque)


def _of_instance(value: Value, obj: Obj, model: Obj) -> Value:
    if value is model:
        return obj
    if isinstance(value, ParameterVal) and obj.args is not None and "**" not in obj.args:
        return obj.args.get(value.name, value)
    return value


def _same(left: Mapping[str, Value], right: Mapping[str, Value]) -> bool:
    return all(held is right[name] for name, held in left.items())


def _in_scope(func: FuncVal, names: dict[str, Value]) -> FuncVal:
    """A function that closes over other values."""
    scope = func.env
    assert isinstance(scope, Env)
    env = Env(scope.kind, scope.parent, scope.func)
    env.names, env.globals, env.nonlocals = names, scope.globals, scope.nonlocals
    made = FuncVal(func.node, func.module, env, func.cls)
    made.defaults, made.decorators, made.setter, made.wraps = func.defaults, func.decorators, func.setter, func.wraps
    return made
