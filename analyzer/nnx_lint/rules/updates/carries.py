"""Steps that hand on the state that they were given, and drop the new one (NNX221).

``updates, new_state = tx.update(grads, state, params)`` and ``new_carry, y = cell(carry, x)`` change nothing in place.
A step that returns the old value, or none, begins in each round where it began in the first one.

Invariants: the new value is read nowhere, and the old one is returned in its place, or is handed over by a loop again
and again; the optimizer is one that keeps arrays.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.containers import Seq
from nnx_lint.model.expressions import text_of
from nnx_lint.model.loops import STEPPING
from nnx_lint.model.recurrent import Pair
from nnx_lint.model.states import GradientVal, OptStateVal, StateVal, TransformationVal
from nnx_lint.model.unions import options
from nnx_lint.model.values import ClassVal, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import bound_to, pairs_of
from nnx_lint.rules.program import (
    STATEMENT_LOOPS,
    around,
    assigned_in,
    block_of,
    canonical_of,
    in_test,
    is_measured,
    names_of_parameters,
    own_nodes,
    reads_of,
    resolved,
    statement_of,
)
from nnx_lint.rules.repeating import handed_for, loop_around, outwards
from nnx_lint.rules.updates.dropped import EACH_ROUND
from nnx_lint.syntax.binding import assigned_names, is_name
from nnx_lint.syntax.places import begin, end
from nnx_lint.syntax.walk import dumped, walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


def makes_state(event: Called) -> bool:
    """Whether an optimizer of optax makes a new state, of arrays."""
    callee, result = event.callee, event.result
    if not isinstance(callee, BoundMethod) or not isinstance(callee.receiver, TransformationVal):
        return False
    state = result.items[1] if isinstance(result, Seq) and result.exact and len(result.items) == 2 else None
    return isinstance(state, OptStateVal) and state.keeps


@judges_calls(rules.IGNORED_STATE, ".update", when=makes_state)
def unkept_state(event: Called, report: Reporter) -> None:
    frame, node = event.frame, event.node
    old = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
    if old is None or not isinstance(node, ast.Call) or in_test(frame) or not _drops(frame, node, 1, text_of(old)):
        return
    if isinstance(old, ast.Name):
        kept = _returns(frame, old) or _is_repeated(frame, old.id)
    else:
        kept = isinstance(old, ast.Attribute) and (
            _replaces_others(frame, old) or _is_put_into_record(frame, old) or _moves_on(frame, old)
        )
    if kept:
        report(frame.module, node, name=text_of(node.func), so=f": `{text_of(old)}` stays what it was{EACH_ROUND}")


@judges_calls(rules.IGNORED_STATE, "jax.tree.map", "optax.apply_updates")
def unkept_update(event: Called, report: Reporter) -> None:
    """``new = jax.tree.map(step, params, grads)`` in a loop that goes on with ``params``, and keeps the last one."""
    frame, node, taken = event.frame, event.node, bound_to(event.frame.module, event.node)
    loop = next((outer for outer in reversed(around(frame, node)) if isinstance(outer, STATEMENT_LOOPS)), None)
    target = taken.target if taken is not None else None
    trees = [*zip(event.nodes, event.args, strict=True)][-2:] if len(event.nodes) > 1 else []
    old = next((each for each, value in trees if _is_of(value, StateVal)), None)
    if loop is None or not isinstance(target, ast.Name) or not isinstance(old, ast.Name) or in_test(frame):
        return
    scope = frame.func.node if frame.func is not None else frame.module.tree
    known = event.subject != "jax.tree.map" or all(_is_of(value, StateVal, GradientVal) for _, value in trees)
    if not known or old.id in assigned_names([loop]):
        return
    reads, inside = reads_of(scope, target.id), {*walk(loop)}
    if reads and inside.isdisjoint(reads) and not is_measured(frame.env, scope):
        report(frame.module, node, name=event.name, so=f" by the loop: `{old.id}` stays what it was{EACH_ROUND}")


def _is_of(value: Value | None, *types: type[Value]) -> bool:
    """Whether a value is of these types, whatever branch or round it comes from."""
    return value is not None and all(isinstance(option, types) for option in options(value))


def steps_a_cell(event: Called) -> bool:
    """Whether a recurrent cell is called in a step of a loop of JAX."""
    scope = event.frame.scope[-1] if event.frame.scope else None
    called = isinstance(event.result, Pair) and isinstance(event.callee, Obj)
    return called and scope is not None and scope.frame is event.frame and scope.row.name in STEPPING


@judges_calls(rules.IGNORED_STATE, "()", when=steps_a_cell)
def unkept_carry(event: Called, report: Reporter) -> None:
    frame, node = event.frame, event.node
    old = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if (
        isinstance(old, ast.Name)
        and isinstance(node, ast.Call)
        and _drops(frame, node, 0, old.id)
        and _returns(frame, old)
    ):
        report(frame.module, node, name=text_of(node.func), so=f": `{old.id}` stays what it was{EACH_ROUND}")


def _drops(frame: Frame, call: ast.Call, position: int, old: str) -> bool:
    """Whether nothing reads what a call gives at a position, where it is unpacked in no loop of the function."""
    taken, func = bound_to(frame.module, call), frame.func.node if frame.func is not None else None
    target = taken.target if taken is not None else None
    if not isinstance(target, ast.Tuple) or not isinstance(func, ast.FunctionDef) or len(target.elts) != 2:
        return False
    new, outers = target.elts[position], around(frame, call)
    if not isinstance(new, ast.Name) or not outers or any(isinstance(outer, STATEMENT_LOOPS) for outer in outers):
        return False
    if new.id != old:
        return new.id == "_" or not reads_of(func, new.id)
    return all(begin(read) < end(call) for read in reads_of(func, new.id))


def _returns(frame: Frame, old: ast.Name) -> bool:
    """Whether a function returns what it was given by this name, by itself or in a tuple."""
    func = frame.func.node if frame.func is not None else None
    if not isinstance(func, ast.FunctionDef) or assigned_in(func)[old.id] > 1:
        return False
    todo = [node.value for node in own_nodes(func) if isinstance(node, ast.Return)]
    for value in todo:
        if isinstance(value, ast.Tuple):
            todo += value.elts
    return any(is_name(value, old.id) for value in todo)


def _returned_calls(frame: Frame) -> Iterator[ast.Call]:
    """The calls that give what a function returns, by itself or in a tuple; it may have a name before."""
    func = frame.func.node if frame.func is not None else None
    returned = [node.value for node in own_nodes(func) if isinstance(node, ast.Return)] if func is not None else []
    for value in returned:
        elements = value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []
        for each in elements:
            call = _latest_value(frame.module, each)
            if isinstance(call, ast.Call):
                yield call


def _latest_value(module: Module, node: ast.expr) -> ast.expr:
    """What a name is bound to last before a place, in the block that the place stands in; or the expression."""
    statement = statement_of(module, node) if isinstance(node, ast.Name) else None
    before = block_of(module, statement) if statement is not None else []
    for each in reversed(before[: before.index(statement)] if statement in before else []):
        for target, value in pairs_of(each):
            if isinstance(node, ast.Name) and is_name(target, node.id):
                return value
        if isinstance(node, ast.Name) and node.id in assigned_names([each]):
            break
    return node


def _replaces_others(frame: Frame, old: ast.Attribute) -> bool:
    """Whether a function returns a record with other fields replaced than the one that it was given."""
    for each in _returned_calls(frame):
        method = each.func if isinstance(each.func, ast.Attribute) else None
        named = {keyword.arg for keyword in each.keywords}
        replaced = method is not None and method.attr in REPLACING and dumped(method.value) == dumped(old.value)
        if replaced and not each.args and None not in named and old.attr not in named:
            return True
    return False


def _is_put_into_record(frame: Frame, old: ast.Attribute) -> bool:
    """Whether a function returns a new record that has what the one had which it was given."""
    for each in _returned_calls(frame):
        given = [*each.args, *(keyword.value for keyword in each.keywords)]
        made = isinstance(resolved(frame.env, each.func), ClassVal)
        if made and any(dumped(_latest_value(frame.module, item)) == dumped(old) for item in given):
            return True
    return False


def _moves_on(frame: Frame, old: ast.Attribute) -> bool:
    """Whether a method keeps the parameters that it updates, in an attribute of the same object."""
    func = frame.func.node if frame.func is not None else None
    pairs = (pair for node in own_nodes(func) for pair in pairs_of(node)) if func is not None else ()
    return any(
        isinstance(target, ast.Attribute)
        and dumped(target.value) == dumped(old.value)
        and isinstance(value, ast.Call)
        and canonical_of(frame.env, value.func) == "optax.apply_updates"
        for target, value in pairs
    )


REPLACING = frozenset({"_replace", "replace"})
"""Methods of records that give one with other fields."""


def _is_repeated(frame: Frame, name: str) -> bool:
    """Whether a loop calls a function in each round with the same value of a parameter."""
    func, call, caller = frame.func, frame.call, frame.caller
    if func is None or caller is None or not isinstance(call, ast.Call) or name not in names_of_parameters(func.node):
        return False
    handed = handed_for(frame, name)
    if not isinstance(handed, ast.Name):
        return False
    calls = [(caller, call, handed.id), *outwards(caller, handed.id)]
    return any(each and loop_around(outer.module, place, each) is not None for outer, place, each in calls)
