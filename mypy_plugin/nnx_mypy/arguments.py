"""The arguments of a call, as it is written.

Mypy gives a hook the arguments by formal parameter. The hook of an overloaded function runs for every overload that is
tried, each with other parameters, and a starred argument stands under several of them or under none; so what counts is
read off the call.
"""

from __future__ import annotations

from typing import NamedTuple

from mypy.nodes import ARG_NAMED, ARG_POS, ARG_STAR, ArgKind, CallExpr, Expression
from mypy.plugin import FunctionContext, MethodContext
from mypy.types import TupleType, Type, UnpackType, get_proper_type

from nnx_mypy.library import anything

Context = FunctionContext | MethodContext


class Argument(NamedTuple):
    """One argument of a call."""

    expression: Expression
    type: Type
    kind: ArgKind
    name: str | None


def arguments(context: Context) -> list[Argument] | None:
    """The arguments of a call, in their order; ``None`` for the call of a decorator, which is not written."""
    call = context.context
    if not isinstance(call, CallExpr):
        return None
    types = {
        id(expression): type
        for expressions, given in zip(context.args, context.arg_types, strict=True)
        for expression, type in zip(expressions, given, strict=True)
    }
    return [
        Argument(each, types[id(each)] if id(each) in types else context.api.get_expression_type(each), kind, name)
        for each, kind, name in zip(call.args, call.arg_kinds, call.arg_names, strict=True)
    ]


def positional(given: list[Argument]) -> list[Type] | None:
    """The types of the positional arguments; ``None`` where their number is unknown."""
    found: list[Type] = []
    for each in given:
        if each.kind == ARG_POS:
            found.append(each.type)
        elif each.kind == ARG_STAR:
            star = get_proper_type(each.type)
            if not isinstance(star, TupleType) or any(isinstance(item, UnpackType) for item in star.items):
                return None
            found += star.items
    return found


def keyword(given: list[Argument], name: str) -> Argument | None:
    """The argument that is given by a name."""
    return next((each for each in given if each.kind == ARG_NAMED and each.name == name), None)


def tuple_of(context: Context, items: list[Type]) -> Type:
    """A tuple type."""
    return TupleType(items, context.api.named_generic_type("builtins.tuple", [anything()]))
