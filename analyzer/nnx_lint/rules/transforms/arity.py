"""How functions of the project are called (NNX838): with arguments that the function does not take, or without one that
it needs.

A checker of types knows what a function takes, but not one that ``nnx.jit`` or ``nnx.value_and_grad`` has made of it,
nor the hooks that a trainer keeps in a list.

Invariants: a transform hands over each argument as it comes, in its place and by its name; a function that a decorator
of the project may have changed is not judged, nor a call that the program expects to fail.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.calls import Arguments
from nnx_lint.model.events import Called, TransformApplied
from nnx_lint.model.parameters import exchanged
from nnx_lint.model.values import UNKNOWN, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.construction.signatures import is_meant, unfit
from nnx_lint.rules.program import is_tried, resolved
from nnx_lint.rules.transforms.calling import RESOLVING
from nnx_lint.syntax.parameters import misfit
from nnx_rules.rules import construction as rules
from nnx_rules.transforms import HANDING_ON

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Value


@judges_calls(rules.LAYER_SIGNATURE, FuncVal, Transformed, PartialVal)
def function_called(event: Called, report: Reporter) -> None:
    func, args = _function(event.callee, Arguments(event.node, event.args, event.keywords, event.nodes))
    if func is None or (func.cls is not None and not func.is_static) or _is_judged_otherwise(event.callee, func, event):
        return
    problem = unfit(func, args, None, made="called", bound=False)
    if problem is not None and is_meant(event):
        name = event.name if func.name == "<lambda>" else func.name
        report(event.frame.module, event.node, cls=name, problem=problem.text, mend=problem.mend)
    elif problem is None and (isinstance(event.callee, Transformed) or any(map(_is_of_nnx, args.positional))):
        pair = exchanged(func, args)
        if pair is None or not is_meant(event):
            return
        text = f"takes `{pair[0]}` before `{pair[1]}`, and gets them the other way round"
        report(event.frame.module, event.node, cls=func.name, problem=text, mend="exchange them")


def chooses(event: TransformApplied) -> bool:
    """Whether a function is a branch of a conditional."""
    return event.applied.row.name in {"jax.lax.cond", "nnx.cond"} and isinstance(event.func, FuncVal)


@judges(rules.LAYER_SIGNATURE, TransformApplied, when=chooses)
def branch_called(event: TransformApplied, report: Reporter) -> None:
    """A branch of a conditional takes another number of operands than the conditional gets."""
    call, func, module = event.node, event.func, event.frame.module
    if not isinstance(call, ast.Call) or not isinstance(func, FuncVal):
        return
    plain = not call.keywords and not any(isinstance(node, ast.Starred) for node in call.args)
    if not plain or not all(_is_function(event.frame, node) for node in call.args[1:3]) or is_tried(module, call):
        return
    first = resolved(event.frame.env, call.args[1])
    count = len(call.args[3:])
    if isinstance(first, FuncVal) and first is not func and misfit(first.node.args, count, ()) is not None:
        return  # which is told of the first one
    problem = unfit(func, Arguments(call, [UNKNOWN] * count, {}, []), None, made="called", bound=False)
    if problem is not None:
        text = f"{problem.text} by `{event.applied.text}`, which gives it all operands"
        report(module, event.func_node, cls=func.name.strip("<>"), problem=text, mend=problem.mend)


def _is_function(frame: Frame, node: ast.expr) -> bool:
    return isinstance(node, ast.Lambda) or isinstance(resolved(frame.env, node), (BoundMethod, FuncVal))


def _is_judged_otherwise(callee: Value, func: FuncVal, event: Called) -> bool:
    """Whether a transform of flax takes no parameters that are given by name only, of which there are some."""
    named = bool(func.node.args.kwonlyargs) and bool(event.keywords)
    return named and isinstance(callee, Transformed) and callee.applied.row.name in RESOLVING


def _function(callee: Value, args: Arguments) -> tuple[FuncVal | None, Arguments]:
    """The function of the project that a call calls, and what it gets, with what partials add, through transforms."""
    while True:
        if isinstance(callee, Transformed) and _hands_on(callee):
            callee = callee.func
        elif isinstance(callee, PartialVal):
            keywords = {**callee.keywords, **args.keywords}
            args = Arguments(args.node, [*callee.args, *args.positional], keywords, args.nodes)
            callee = callee.func
        else:
            break
    return callee if isinstance(callee, FuncVal) else None, args


def _hands_on(callee: Transformed) -> bool:
    """Whether a function gets what the call gives, after what a cache of its first arguments adds."""
    return callee.applied.row.name in HANDING_ON or callee.applied.row.binds


def _is_of_nnx(value: Value | None) -> bool:
    return isinstance(value, Obj) and value.cls.tracked and not value.assumed
