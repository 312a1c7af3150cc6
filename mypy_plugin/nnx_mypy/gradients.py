"""Results of ``grad`` and ``value_and_grad``: a function with the parameters of the given one.

What a gradient is depends on what it is taken with respect to: of a module it is a State, of a State or an array the
same again. ``argnums`` says which arguments these are, and is read as it is written. Where it is not a literal, or the
call sets a mode in which gradients are something else, the gradient is ``Any``.
"""

from __future__ import annotations

from typing import NamedTuple

from mypy.nodes import CallExpr, Expression, IntExpr, ListExpr, NameExpr, RefExpr, TupleExpr, UnaryExpr
from mypy.plugin import FunctionContext
from mypy.types import CallableType, Instance, TupleType, Type, get_proper_type

from nnx_mypy.arguments import Argument, arguments, keyword, tuple_of
from nnx_mypy.library import ARRAY, NODES, Library, anything, is_a, package_of

MODES = ("graph", "graph_updates")
DIFF_STATE = "DiffState"
SWITCHES = {"builtins.True": True, "builtins.False": False}


def grad(context: FunctionContext, library: Library) -> Type:
    """The gradient, or with ``has_aux`` a pair of it and the rest."""
    call = _read(context, library)
    if call is None:
        return context.default_return_type
    if not call.has_aux:
        return call.returning(call.gradient)
    result = get_proper_type(call.function.ret_type)
    rest = result.items[1] if isinstance(result, TupleType) and len(result.items) == 2 else anything()
    return call.returning(tuple_of(context, [call.gradient, rest]))


def value_and_grad(context: FunctionContext, library: Library) -> Type:
    """The value, and the gradient."""
    call = _read(context, library)
    if call is None:
        return context.default_return_type
    return call.returning(tuple_of(context, [call.function.ret_type, call.gradient]))


class _Call(NamedTuple):
    """A call that differentiates a function."""

    function: CallableType
    has_aux: bool
    gradient: Type

    def returning(self, result: Type) -> Type:
        """A function with the same parameters and another result; the library makes it, so its types are declared."""
        return self.function.copy_modified(ret_type=result, name=None, implicit=False)


def _read(context: FunctionContext, library: Library) -> _Call | None:
    given = arguments(context)
    if not given or given[0].name not in (None, "f"):
        return None
    function = get_proper_type(given[0].type)
    has_aux = _switch(keyword(given, "has_aux"))
    if not isinstance(function, CallableType) or function.variables or has_aux is None:
        return None
    return _Call(function, has_aux, _gradient(context, library, given, function))


def _switch(argument: Argument | None) -> bool | None:
    """A switch that is off where it is not given; ``None`` where it is not a literal."""
    if argument is None:
        return False
    expression = argument.expression
    return SWITCHES.get(expression.fullname) if isinstance(expression, NameExpr) else None


def _gradient(context: FunctionContext, library: Library, given: list[Argument], function: CallableType) -> Type:
    if any(keyword(given, mode) for mode in MODES):
        return anything()
    argnums = keyword(given, "argnums")
    if argnums is None:
        return _of_argument(library, function, 0)
    if isinstance(argnums.expression, TupleExpr | ListExpr):
        entries = argnums.expression.items
        return tuple_of(context, [_of_argument(library, function, _place(entry)) for entry in entries])
    return _of_argument(library, function, _place(argnums.expression))


def _place(expression: Expression) -> int | None:
    """The position that an entry of ``argnums`` names."""
    if isinstance(expression, CallExpr) and expression.args and isinstance(expression.callee, RefExpr):
        name = expression.callee.fullname
        is_diff_state = package_of(name) is not None and name.rpartition(".")[2] == DIFF_STATE
        return _place(expression.args[0]) if is_diff_state else None
    if isinstance(expression, UnaryExpr) and expression.op == "-" and isinstance(expression.expr, IntExpr):
        return -expression.expr.value
    return expression.value if isinstance(expression, IntExpr) else None


def _of_argument(library: Library, function: CallableType, place: int | None) -> Type:
    """The type of the gradient with respect to a positional argument."""
    kinds = zip(function.arg_types, function.arg_kinds, strict=True)
    positions = [type for type, kind in kinds if kind.is_positional()]
    if place is None or not -len(positions) <= place < len(positions):
        return anything()
    argument = get_proper_type(positions[place])
    if is_a(argument, NODES):
        return library.instance("State")
    is_array = isinstance(argument, Instance) and argument.type.fullname == ARRAY
    return argument if is_array or is_a(argument, {"State"}) else anything()
