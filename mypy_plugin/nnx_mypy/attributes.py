"""Attributes that a class forwards to what it stands for: a Variable to its value, ``nnx.call`` to a module."""

from __future__ import annotations

from collections.abc import Callable

from mypy.checker import TypeChecker
from mypy.maptype import map_instance_to_supertype
from mypy.plugin import AttributeContext
from mypy.types import CallableType, Instance, TupleType, Type, get_proper_type

from nnx_mypy.library import anything

AttributeHook = Callable[[AttributeContext, str], Type]


def of_value(context: AttributeContext, name: str) -> Type:
    """Of a Variable: the attribute of the value."""
    return _attribute(context, _argument(context, "Variable"), name) or context.default_attr_type


def of_module(context: AttributeContext, name: str) -> Type:
    """Of ``nnx.call(...)``: a method of the module that returns the new state besides."""
    pair = _argument(context, "ApplyCaller")
    if not isinstance(pair, TupleType) or not pair.items:
        return context.default_attr_type
    graphdef = get_proper_type(pair.items[0])
    if not isinstance(graphdef, Instance) or len(graphdef.args) != 1:
        return context.default_attr_type
    method = _attribute(context, get_proper_type(graphdef.args[0]), name)
    if not isinstance(method, CallableType):
        return context.default_attr_type
    result = TupleType([method.ret_type, pair], context.api.named_generic_type("builtins.tuple", [anything()]))
    return method.copy_modified(ret_type=result, implicit=False)


BY_CLASS: dict[str, AttributeHook] = {"ApplyCaller": of_module, "Variable": of_value}


def _argument(context: AttributeContext, name: str) -> Type | None:
    """The argument of a generic class that the owner of an attribute is, or inherits from."""
    owner = get_proper_type(context.type)
    if not isinstance(owner, Instance):
        return None
    base = next((each for each in owner.type.mro if each.name == name and len(each.defn.type_vars) == 1), None)
    return None if base is None else get_proper_type(map_instance_to_supertype(owner, base).args[0])


def _attribute(context: AttributeContext, owner: Type | None, name: str) -> Type | None:
    """The type of an attribute that a class declares."""
    if not isinstance(context.api, TypeChecker) or not isinstance(owner, Instance) or owner.type.get(name) is None:
        return None
    checker = context.api.expr_checker
    return get_proper_type(checker.analyze_external_member_access(name, owner, context.context))
