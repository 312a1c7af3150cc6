"""Transformed functions: methods under a transform, and functions whose first arguments are given."""

from __future__ import annotations

from mypy.nodes import ARG_POS, RefExpr
from mypy.plugin import FunctionContext, MethodContext
from mypy.plugins.functools import partial_new_callback
from mypy.types import CallableType, Instance, NoneType, Overloaded, Parameters, Type, get_proper_type

from nnx_mypy.arguments import arguments, positional
from nnx_mypy.library import Library, package_of

PARTIAL_FIELD = "__mypy_partial"
"""Where mypy's own plugin for ``functools.partial`` keeps the signature of what is left."""


def bound(context: MethodContext, library: Library) -> Type:
    """``JitWrapped.__get__``: on an instance, a function without its first parameter."""
    wrapped = get_proper_type(context.type)
    if not isinstance(wrapped, Instance) or len(wrapped.args) != 2 or not context.arg_types[0]:
        return context.default_return_type
    if isinstance(get_proper_type(context.arg_types[0][0]), NoneType):
        return wrapped
    parameters = get_proper_type(wrapped.args[0])
    if not isinstance(parameters, Parameters):
        return context.default_return_type
    return _without(_function(context, parameters, wrapped.args[1]), 1) or context.default_return_type


def partial(context: FunctionContext, library: Library) -> Type:
    """``cached_partial``: what the parameters are that are left."""
    default = get_proper_type(context.default_return_type)
    left = _left(context)
    if left is None or not isinstance(default, Instance) or default.type.fullname != "functools.partial":
        return default
    return default.copy_with_extra_attr(PARTIAL_FIELD, left)


def partial_transform(context: FunctionContext) -> Type:
    """``functools.partial(nnx.jit, static_argnames="n")``: the decorator that ``nnx.jit(static_argnames="n")`` is.

    Mypy takes the function that is still missing for the first parameter of an overload that has none.
    """
    given = arguments(context)
    transform = given[0].expression if given else None
    if (
        not given
        or not isinstance(transform, RefExpr)
        or package_of(transform.fullname) is None
        or any(each.kind.is_positional(star=True) for each in given[1:])
    ):
        return partial_new_callback(context)
    decorator = _decorator(context.api.get_expression_type(transform))
    default = get_proper_type(context.default_return_type)
    if decorator is None or not isinstance(default, Instance) or len(default.args) != 1:
        return partial_new_callback(context)
    return default.copy_modified(args=[decorator.ret_type]).copy_with_extra_attr(PARTIAL_FIELD, decorator)


def _decorator(transform: Type) -> CallableType | None:
    """What a transform is with its options alone: a function that takes the function."""
    proper = get_proper_type(transform)
    for item in proper.items if isinstance(proper, Overloaded) else ():
        result = get_proper_type(item.ret_type)
        if item.min_args == 0 and isinstance(result, CallableType) and result.arg_kinds == [ARG_POS]:
            return result
    return None


def jit_partial(context: FunctionContext, library: Library) -> Type:
    """``jit_partial``: a function that can be lowered, with the parameters that are left."""
    default = get_proper_type(context.default_return_type)
    left = _left(context)
    if left is None or not isinstance(default, Instance) or len(default.args) != 2:
        return default
    parameters = Parameters(left.arg_types, left.arg_kinds, left.arg_names)
    return default.copy_modified(args=[parameters, left.ret_type])


def _left(context: FunctionContext) -> CallableType | None:
    """What is left of the first argument, a function, when it gets the others."""
    given = arguments(context)
    types = positional(given) if given is not None else None
    if not given or not types or given[0].kind != ARG_POS:
        return None
    # The parameter takes any function, and mypy lets that decide how a transform in its place is inferred.
    function = context.api.get_expression_type(given[0].expression)
    return _without(_signature(context, function), len(types) - 1)


def _signature(context: FunctionContext, type: Type) -> CallableType | None:
    """The signature of a function, or of one under a transform, which is generic in parameters and result."""
    proper = get_proper_type(type)
    if isinstance(proper, CallableType):
        return proper
    if isinstance(proper, Instance) and len(proper.args) == 2:
        parameters = get_proper_type(proper.args[0])
        if isinstance(parameters, Parameters):
            return _function(context, parameters, proper.args[1])
    return None


def _function(context: FunctionContext | MethodContext, parameters: Parameters, result: Type) -> CallableType:
    fallback = context.api.named_generic_type("builtins.function", [])
    return CallableType(parameters.arg_types, parameters.arg_kinds, parameters.arg_names, result, fallback)


def _without(function: CallableType | None, count: int) -> CallableType | None:
    """A function without its first parameters."""
    if function is None or function.variables or function.is_ellipsis_args:
        return None
    if len(function.arg_kinds) < count or any(not kind.is_positional() for kind in function.arg_kinds[:count]):
        return None
    return function.copy_modified(
        arg_types=function.arg_types[count:],
        arg_kinds=function.arg_kinds[count:],
        arg_names=function.arg_names[count:],
        name=None,
        implicit=False,
    )
