"""Steps that no transform runs, and whose new state goes nowhere (NNX221): the caller drops it, or the function that
made it ends without it.

``_, loss = self.update(self.state, batch)`` in a loop hands over the same state in each round. So does a function that
binds its parameter ``params`` anew in a loop and returns the loss alone. What runs under a transform is judged by
:mod:`~nnx_lint.rules.updates.dropped`, what a cell carries in an attribute here as well.

Invariants: the optimizer is one of optax that the step was seen to use; the loop hands over the same value each time; a
function with a loop of its own is a whole training, which may be tried several times from one beginning, unless the
outer loop only counts.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.expressions import text_of
from nnx_lint.model.loops import LOOPS
from nnx_lint.model.recurrent import Pair
from nnx_lint.model.states import OptStateVal, StateVal
from nnx_lint.model.values import Obj, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import bound_to, names_of_first, pairs_of
from nnx_lint.rules.program import (
    STATEMENT_LOOPS,
    around,
    assigned_in,
    canonical_of,
    in_test,
    is_measured,
    names_of_parameters,
    reads_of,
)
from nnx_lint.rules.repeating import argument, loop_around
from nnx_lint.rules.updates.carries import makes_state
from nnx_lint.rules.updates.dropped import (
    EACH_ROUND,
    FORGOTTEN,
    given_one_by_one,
    innermost_loop,
    is_counted,
    is_kept,
    is_thrown_away,
    named,
    parts_of,
)
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

    Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def steps(event: Called) -> bool:
    """Whether a function of the project returns what an optimizer of optax keeps, among other things."""
    func = event.callee.func if isinstance(event.callee, BoundMethod) else event.callee
    return isinstance(func, FuncVal) and any(isinstance(part, OptStateVal) for part in parts_of(event.result))


@judges_calls(rules.IGNORED_STATE, FuncVal, BoundMethod, when=steps)
def ignored_by_loop(event: Called, report: Reporter) -> None:
    frame, node = event.frame, event.node
    loop = innermost_loop(frame, node) if isinstance(node, ast.Call) and not frame.scope else None
    if loop is None or not isinstance(node, ast.Call) or in_test(frame):
        return
    passed = [each for each in given_one_by_one(node) if any(map(_is_state, parts_of(named(frame, each))))]
    before = {id(part) for each in passed for part in parts_of(named(frame, each))}
    new = {id(part) for part in parts_of(event.result) if _is_state(part) and id(part) not in before}
    if not passed or not new or not all(is_kept(frame, each, loop) for each in passed):
        return
    func = event.callee.func if isinstance(event.callee, BoundMethod) else event.callee
    if isinstance(func, FuncVal) and _trains_whole(func) and not is_counted(loop, node, func.node):
        return
    if is_thrown_away(frame, node, event.result, new, loop):
        report(frame.module, node, name=text_of(node.func), so=EACH_ROUND)


def _trains_whole(func: FuncVal) -> bool:
    """Whether a function has a loop of its own."""
    inner = [*walk(func.node)]
    calls = (part for part in inner if isinstance(part, ast.Call))
    return any(isinstance(part, STATEMENT_LOOPS) for part in inner) or any(
        canonical_of(func.module.env, call.func) in LOOPS for call in calls
    )


def _is_state(value: Value) -> bool:
    return isinstance(value, (OptStateVal, StateVal))


@judges_calls(rules.IGNORED_STATE, ".update", when=makes_state)
def dropped_in_loop(event: Called, report: Reporter) -> None:
    """``updates, _ = tx.update(grads, opt_state)`` in a loop that goes on with the state that it began with."""
    frame, node = event.frame, event.node
    loop = innermost_loop(frame, node) if isinstance(node, ast.Call) else None
    old = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
    taken = bound_to(frame.module, node)
    target = taken.target if taken is not None else None
    if loop is None or old is None or not isinstance(target, ast.Tuple) or len(target.elts) != 2 or in_test(frame):
        return
    new, scope = target.elts[1], frame.func.node if frame.func is not None else frame.module.tree
    if not isinstance(new, ast.Name) or (new.id != "_" and reads_of(scope, new.id)) or not is_kept(frame, old, loop):
        return
    if isinstance(node, ast.Call) and not is_measured(frame.env, scope):
        report(frame.module, node, name=text_of(node.func), so=EACH_ROUND)


@judges_calls(rules.IGNORED_STATE, "optax.apply_updates")
def forgotten_update(event: Called, report: Reporter) -> None:
    """``params = optax.apply_updates(params, updates)`` of a parameter, in a function that returns the loss alone."""
    frame, node, func = event.frame, event.node, event.frame.func
    taken = bound_to(frame.module, node)
    if not any(isinstance(outer, STATEMENT_LOOPS) for outer in around(frame, node)):
        return  # nothing reads the name at all
    old = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if taken is None or func is None or not isinstance(old, ast.Name) or not is_name(taken.target, old.id):
        return
    if old.id not in names_of_parameters(func.node) or isinstance(func.node, ast.Lambda) or in_test(frame):
        return
    end = taken.statement.end_lineno or taken.statement.lineno
    if any(read.lineno > end for read in reads_of(func.node, old.id)) or _is_handed_out(func.node, old.id):
        return
    given, caller, call = argument(frame, old.id), frame.caller, frame.call
    if not isinstance(given, ast.Name) or caller is None or not isinstance(call, ast.Call) or in_test(caller):
        return
    loop = loop_around(caller.module, call, given.id)
    if not isinstance(loop, STATEMENT_LOOPS) or not is_counted(loop, call, func.node):
        return
    if not is_measured(caller.env, caller.func.node if caller.func is not None else caller.module.tree):
        report(frame.module, node, name=event.name, so=FORGOTTEN)


def _is_handed_out(func: ast.AST, name: str) -> bool:
    """Whether a function gives what has a name to others: it returns it, or puts it somewhere."""
    places = (ast.Return, ast.Yield, ast.Tuple, ast.List, ast.Dict)
    inner = (part for node in walk(func) if isinstance(node, places) for part in walk(node))
    return any(is_name(part, name) and isinstance(part.ctx, ast.Load) for part in inner if isinstance(part, ast.Name))


# -- carries -----------------------------------------------------------------------------------------------------------


def steps_own_cell(event: Called) -> bool:
    """Whether a method calls a cell with a carry that an attribute of its object holds."""
    return isinstance(event.result, Pair) and isinstance(event.callee, Obj) and event.frame.receiver is not None


@judges_calls(rules.IGNORED_STATE, "()", when=steps_own_cell)
def forgotten_carry(event: Called, report: Reporter) -> None:
    """``carry, y = self.cell(self.carry[...], x)`` in a class that resets the carry, and never stores a new one."""
    frame, node, func = event.frame, event.node, event.frame.func
    given = _holder(node.args[0]) if isinstance(node, ast.Call) and node.args else None
    taken = bound_to(frame.module, node)
    target = taken.target if taken is not None else None
    if func is None or not isinstance(given, ast.Attribute) or not isinstance(target, ast.Tuple):
        return
    new = target.elts[0] if len(target.elts) == 2 else None
    cls = func.cls
    if not isinstance(new, ast.Name) or not isinstance(cls, UserClass) or not isinstance(node, ast.Call):
        return
    used = new.id != "_" and (reads_of(func.node, new.id) or assigned_in(func.node)[new.id] > 1)
    if used or given.value not in _own(func.node):
        return
    stores = [store for item in cls.lineage for store in _stores(item.node) if store[0] == given.attr]
    resets = [store for store in stores if store[1]]
    if resets and len(resets) == len(stores) and _is_first(cls.node, node, given):
        report(frame.module, node, name=text_of(node.func), so=f": `{text_of(given)}` stays what it was")


def _is_first(cls: ast.AST, call: ast.Call, given: ast.Attribute) -> bool:
    """Whether no method above calls anything with the same carry."""
    calls = (node for node in walk(cls) if isinstance(node, ast.Call) and node.args and node.lineno < call.lineno)
    holders = (_holder(each.args[0]) for each in calls if len(each.args) == len(call.args))
    return not any(isinstance(holder, ast.Attribute) and holder.attr == given.attr for holder in holders)


def _holder(node: ast.expr) -> ast.expr:
    """What holds the value that ``self.carry[...]`` or ``self.carry.value`` reads or sets."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.value if isinstance(node, ast.Attribute) and node.attr == "value" else node


def _own(func: Function) -> set[ast.AST]:
    """The places where a method names its object."""
    names = names_of_first(func)
    return {node for node in walk(func) if isinstance(node, ast.Name) and node.id in names}


@remembered
def _stores(cls: ast.AST) -> list[tuple[str, bool]]:
    """The attributes that methods besides the constructor set, each with whether that begins anew."""
    found: list[tuple[str, bool]] = []
    for method in cls.body if isinstance(cls, ast.ClassDef) else ():
        if not isinstance(method, ast.FunctionDef) or method.name == "__init__":
            continue
        for target, value in (pair for node in walk(method) for pair in pairs_of(node)):
            holder = _holder(target)
            if isinstance(holder, ast.Attribute):
                found.append((holder.attr, _begins_anew(value)))
    return found


def _begins_anew(value: ast.expr) -> bool:
    """Whether an expression is a first value: ``jnp.zeros(...)``, ``self.cell.initialize_carry(...)``, ``None``."""
    if isinstance(value, ast.Constant):
        return True
    name = last_name(value.func) if isinstance(value, ast.Call) else ""
    return name in {"full", "initialize_carry", "ones", "ones_like", "zeros", "zeros_like"}
