"""Results of functions that take filters: one State for each.

Which class a State is, is read off what the overload that mypy chose returns, and off the library where that overload
leaves it open.
"""

from __future__ import annotations

from mypy.plugin import FunctionContext, MethodContext
from mypy.types import Instance, TupleType, Type, get_proper_type

from nnx_mypy.arguments import Context, arguments, positional, tuple_of
from nnx_mypy.library import Library, anything


def split(context: FunctionContext, library: Library) -> Type:
    """``(graphdef, *states)``."""
    given = _positional(context)
    if not given:
        return _unknown_length(context)
    default = get_proper_type(context.default_return_type)
    if isinstance(default, TupleType):
        graphdef, state = default.items[:2]
    else:
        graphdef, state = library.instance("GraphDef", [given[0]]), library.instance("State")
    return tuple_of(context, [graphdef, *[state] * max(len(given) - 1, 1)])


def states(context: FunctionContext, library: Library) -> Type:
    """A State, or a tuple with one for each of several filters, which follow the first argument."""
    return _states(context, library, skipped=1)


def states_of_method(context: MethodContext, library: Library) -> Type:
    """The same where all arguments are filters."""
    return _states(context, library, skipped=0)


def _states(context: Context, library: Library, skipped: int) -> Type:
    given = _positional(context)
    if given is None or len(given) < skipped:
        return anything()
    count = max(len(given) - skipped, 1)
    state = _state(context.default_return_type) or library.instance("State")
    return state if count == 1 else tuple_of(context, [state] * count)


def unpacked(context: FunctionContext, library: Library) -> Type:
    """What `states` gives, of GraphStates."""
    given = _positional(context)
    if not given:
        return anything()
    state = library.instance("GraphState", [given[0]])
    return state if len(given) <= 2 else tuple_of(context, [state] * (len(given) - 1))


def _positional(context: Context) -> list[Type] | None:
    given = arguments(context)
    return positional(given) if given is not None else None


def _state(default: Type) -> Type | None:
    """The class of the States in what an overload returns: one, a tuple of them, or several."""
    proper = get_proper_type(default)
    if isinstance(proper, TupleType) and proper.items:
        return _state(proper.items[0])
    if isinstance(proper, Instance):
        return _state(proper.args[0]) if proper.type.fullname == "builtins.tuple" else proper
    return None


def _unknown_length(context: Context) -> Type:
    return context.api.named_generic_type("builtins.tuple", [anything()])
