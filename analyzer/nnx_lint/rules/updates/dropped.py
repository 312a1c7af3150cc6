"""States and objects that a step returns for nothing (NNX221): the next round begins where this one began.

A function that is compiled by JAX changes nothing in place, so a step returns what it makes: a State, what an optimizer
of optax keeps, an object, by themselves or in a tuple, a dict or a record; a cell returns what it carries on.

Invariants: what is thrown away certainly is another value than what was handed over, and the loop hands over the same
one in each round; a round of which anything else is kept is looked at for itself, and not to go on.
"""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING

from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called, Ran
from nnx_lint.model.expressions import text_of
from nnx_lint.model.foreign import methods_of
from nnx_lint.model.later import is_set_later
from nnx_lint.model.loops import LOOPS
from nnx_lint.model.recurrent import Pair
from nnx_lint.model.states import ForeignVal, OptStateVal, StateVal
from nnx_lint.model.values import UNKNOWN, Const, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import bound_to, handed_on, pairs_of, value_of
from nnx_lint.rules.program import (
    STATEMENT_LOOPS,
    ancestors,
    around,
    calls_in,
    canonical_of,
    in_test,
    is_measured,
    names_of_parameters,
    own_nodes,
    reads_of,
    resolved,
)
from nnx_lint.rules.randomness.selected import parts_around
from nnx_lint.rules.repeating import argument, loop_around
from nnx_lint.rules.traces.boundaries import objects_in
from nnx_lint.rules.updates.lost import drops, matters
from nnx_lint.rules.updates.ownership import at_level, changes_of, related
from nnx_lint.rules.updates.results import IN_PLACE
from nnx_lint.syntax.binding import assigned_names, is_name, names_in
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import updates as rules
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnx_lint.model.frames import Frame, TraceScope
    from nnx_lint.model.modules import Module
    from nnx_lint.rules.updates.ownership import Change


def _is_state(value: Value) -> bool:
    return isinstance(value, StateVal)


def _is_optimizer_state(value: Value) -> bool:
    return isinstance(value, OptStateVal)


def _is_train_state(value: Value) -> bool:
    """Whether a value is the record that programs of Linen train."""
    return isinstance(value, ForeignVal) and "apply_gradients" in methods_of(value)


def parts_of(value: Value | None, depth: int = 4) -> Iterator[Value]:
    """What a value is put together of: the elements of tuples, lists and dicts, and the fields of records, inner ones
    too; the record of Linen counts as a part itself.
    """
    if value is not None and _is_train_state(value):
        yield value
    inner: Iterable[Value] | None = None
    if depth and isinstance(value, Seq) and value.exact:
        inner = value.items
    elif depth and isinstance(value, DictVal) and value.exact:
        inner = (item for _, item in value.items)
    elif depth and isinstance(value, ForeignVal):
        inner = value.held.values()
    elif depth and isinstance(value, Obj) and not value.cls.tracked:
        inner = (attr.value for attr in value.attrs.values()) if value.attrs else (value.args or {}).values()
    if inner is not None:
        for each in inner:
            yield from parts_of(each, depth - 1)
    elif value is not None:
        yield value


KINDS = (_is_state, _is_optimizer_state, _is_train_state)
"""What a step makes anew."""


def returns_state(event: Ran) -> bool:
    """Whether a State, what an optimizer of optax keeps, or a record of both is among what a function returns."""
    return any(of_kind(item) for item in parts_of(event.result) for of_kind in KINDS)


def _result(event: Ran) -> Value:
    """What the whole call gives, whose function another transform may have been applied to before."""
    result = event.result
    for each in reversed(event.scope.within):
        if each.row.name in DIFFERENTIATING:
            gives_value = each.row.name.endswith("value_and_grad")
            pair = isinstance(result, Seq) and result.exact and len(result.items) == 2
            auxiliary = result.items[1] if isinstance(result, Seq) and pair else UNKNOWN
            items = [result, UNKNOWN] if gives_value else [UNKNOWN, auxiliary]
            result = Seq("tuple", items, event.frame.level)
    return result


@judges(rules.IGNORED_STATE, Ran, when=returns_state)
def ignored_state(event: Ran, report: Reporter) -> None:
    result = _result(event)
    frame, node = handed_on(event.frame, event.node)
    if event.frame.scope or not isinstance(node, ast.Call) or not event.scope.row.cached:
        return
    loop = innermost_loop(frame, node)
    if loop is None:
        return
    owned = [item.target for item in changes_of(event) if _is_learned(item, event.scope)] if drops(event) else []
    given = given_one_by_one(node)
    for of_kind in KINDS:
        new = {id(item) for item in parts_of(result) if of_kind(item) and _is_new(item, owned, event)}
        passed = [each for each in given if any(map(of_kind, parts_of(named(frame, each))))]
        kept = passed and all(is_kept(frame, each, loop) for each in passed)
        if kept and new and is_thrown_away(frame, node, result, new, loop):
            report(frame.module, node, name=text_of(node.func), so=EACH_ROUND)
            return
        if new and passed and _is_forgotten(frame, node, passed):
            report(frame.module, node, name=text_of(node.func), so=FORGOTTEN)
            return
        if kept and new:
            return  # what this round makes is looked at for itself, so nothing else of it is to be kept either
        for each in passed if of_kind is _is_state and new else ():
            own = {id(item) for item in parts_of(result) if id(item) in new and _follows(item, named(frame, each))}
            if own and is_kept(frame, each, loop) and is_thrown_away(frame, node, result, own, loop):
                report(frame.module, node, name=text_of(node.func), so=EACH_ROUND)
                return


def _follows(item: Value, given: Value | None) -> bool:
    """Whether two States are of the same part of one object."""
    if not isinstance(item, StateVal) or not isinstance(given, StateVal):
        return False
    return item.of is given.of and item.wanted is given.wanted


def innermost_loop(frame: Frame, node: ast.AST) -> ast.stmt | None:
    """The innermost loop of a function that a call stands in."""
    return next((item for item in reversed(around(frame, node)) if isinstance(item, STATEMENT_LOOPS)), None)


def given_one_by_one(call: ast.Call) -> list[ast.expr]:
    """What a call is given, the elements of tuples one by one; after that what a partial is given right there."""
    calls = [each for each in (call, call.func) if isinstance(each, ast.Call)]
    todo = [item for each in calls for item in (*each.args, *(keyword.value for keyword in each.keywords))]
    for each in todo:
        todo += each.elts if isinstance(each, (ast.Tuple, ast.List)) else ()
    return [each for each in todo if not isinstance(each, (ast.Tuple, ast.List))]


def named(frame: Frame, node: ast.expr) -> Value | None:
    """What a name stands for, an attribute, or an entry of a dict under a literal key."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return resolved(frame.env, node)
    held = named(frame, node.value)
    entries = held.items if isinstance(held, DictVal) and held.exact else []
    own = (value for key, value in entries if isinstance(key, Const) and key.value == node.slice.value)
    return next(own, None)


def is_kept(frame: Frame, node: ast.expr, loop: ast.stmt) -> bool:
    """Whether an expression is the same value in each round: nothing there binds the name, and nothing after the
    constructor sets the attribute. What has more than a name is only read.
    """
    inner = node
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        owner = resolved(frame.env, inner.value) if isinstance(inner, ast.Attribute) else None
        if isinstance(inner, ast.Attribute) and not (
            isinstance(owner, Obj) and not is_set_later(owner.cls, inner.attr)
        ):
            return False
        inner = inner.value
    if not isinstance(inner, ast.Name) or inner.id in assigned_names([loop]):
        return False
    through = isinstance(node, ast.Subscript)
    return not through or all(_is_looked_up(frame, each) for each in walk(loop) if is_name(each, inner.id))


def _is_looked_up(frame: Frame, name: ast.AST) -> bool:
    """Whether a place reads an entry of what a name stands for, and does nothing else with it."""
    outer = next(ancestors(frame.module, name))
    return isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Load)


EACH_ROUND = ", so each round of the loop begins with the same one"


@judges(rules.IGNORED_STATE, Ran, when=drops)
def ignored_object(event: Ran, report: Reporter) -> None:
    """An object that a step changes comes back, and the loop goes on with the one that it handed over."""
    frame, node, result = event.frame, event.node, _result(event)
    if frame.scope or not isinstance(node, ast.Call) or not event.scope.row.cached:
        return
    returned = [item for item in parts_of(result) if isinstance(item, Obj) and item.cls.tracked]
    loop = innermost_loop(frame, node) if returned else None
    if loop is None:
        return
    changed = [item.target for item in changes_of(event)]
    handed = [(each, part) for each in given_one_by_one(node) for part in parts_of(named(frame, each))]
    owned = [item.target for item in changes_of(event) if _is_learned(item, event.scope)]
    trained = [each for each, part in handed if isinstance(part, Obj) and any(related(part, obj) for obj in owned)]
    if trained and _is_forgotten(frame, node, trained):
        report(frame.module, node, name=text_of(node.func), so=FORGOTTEN)
        return
    for item in returned:
        given = next((each for each, part in handed if part is at_level(item, frame.level)), None)
        if given is None or not is_kept(frame, given, loop) or not any(related(item, obj) for obj in changed):
            continue
        if is_thrown_away(frame, node, result, {id(item)}, loop):
            report(frame.module, node, name=text_of(node.func), so=EACH_ROUND)
            return


def scans(event: Ran) -> bool:
    """Whether a loop of JAX has run that carries States or objects."""
    name = event.scope.row.name
    return name in LOOPS and name.startswith("jax.") and any(map(_is_carried, parts_of(event.result)))


def _is_carried(value: Value) -> bool:
    return _is_state(value) or _is_optimizer_state(value) or (isinstance(value, Obj) and value.cls.tracked)


@judges(rules.IGNORED_STATE, Ran, when=scans)
def ignored_outcome(event: Ran, report: Reporter) -> None:
    """What a loop of JAX has trained is dropped, its outputs are taken, and the program goes on with what it began
    with.
    """
    frame, call, result = event.frame, event.node, event.result
    pairs = LOOPS[event.scope.row.name].pairs
    pair = isinstance(result, Seq) and bool(result.items)
    if not isinstance(call, ast.Call) or (pairs and not pair):
        return
    taken, alone = bound_to(frame.module, call), isinstance(next(ancestors(frame.module, call)), ast.Expr)
    target = taken.target if taken is not None else None
    learning, loop = any(scope.row.name not in COMPILING for scope in frame.scope), innermost_loop(frame, call)
    step = event.scope.frame.func if event.scope.frame is not None else None
    bound = isinstance(target, ast.Tuple) or (target is not None and not pairs)
    if learning or in_test(frame) or not (bound or alone):
        return
    if loop is not None and (step is None or not is_counted(loop, call, step.node)):
        return
    owned = [item.target for item in changes_of(event) if _is_learned(item, event.scope)]
    new = {
        id(item)
        for item in parts_of(result.items[0] if pairs and isinstance(result, Seq) else result)
        if (any(related(item, obj) for obj in owned) if isinstance(item, Obj) else _is_new(item, owned, event))
    }
    scope = frame.func.node if frame.func is not None else frame.module.tree
    dropped = _is_dropped(frame, target, result, new, loop) if target is not None else not is_measured(frame.env, scope)
    unused = new and dropped
    given = [inner for each in given_one_by_one(call)[1:] for inner in _elements(frame.module, each)]
    begun = [each for each in given if any(map(_is_carried, parts_of(named(frame, each))))]
    names = [each.id for each in begun if isinstance(each, ast.Name)]
    end = call.end_lineno or call.lineno
    if taken is not None and new and 0 < len(names) == len(begun) and loop is None:
        rebound = {*names} <= assigned_names([taken.statement])
        after = (read for name in names for read in reads_of(scope, name) if read.lineno > end)
        if rebound and next(after, None) is None and _is_run_again(frame, names[0]):
            report(frame.module, call, name=text_of(call.func), so=FORGOTTEN)
            return
    if loop is None and bound and new and _is_trained_for_nothing(frame, call, result, new, owned, names):
        report(frame.module, call, name=text_of(call.func), so=STAYS)
        return
    if (
        not unused
        or not names
        or len(names) < len(begun)
        or (taken is not None and any(name in assigned_names([taken.statement]) for name in names))
    ):
        return
    if loop is not None:
        if not _is_made_anew(frame, call, begun) and assigned_names([loop]).isdisjoint(names):
            report(frame.module, call, name=text_of(call.func), so=EACH_ROUND)
        return
    if all(_bound_again(scope, name, end) == sys.maxsize for name in names):
        states = [item for item in parts_of(result) if id(item) in new and isinstance(item, StateVal)]
        models = [of for item in states for of in objects_in(item.of)]
        held = [name for name, value in frame.env.names.items() if any(value is of for of in models)]
        names += [name for name in held if not any(_is_filled(frame, read) for read in reads_of(scope, name))]
    later = [
        read
        for name in names
        for read in reads_of(scope, name)
        if end < read.lineno <= _bound_again(scope, name, end) and not _begins_again(frame, read)
    ]
    if later:
        so = f": `{later[0].id}` is afterwards what it was before"
        report(frame.module, call, name=text_of(call.func), so=so)


STAYS = ": the function ends without it, and what its caller handed over stays as it was"

SEARCHING = re.compile(r"bench|check|dry|estimate|find|measure|probe|profile|search|simulate|test|time|tune|warm")
"""What functions are called that train to look at the losses only."""


def _is_trained_for_nothing(
    frame: Frame, call: ast.Call, result: Value, new: set[int], owned: list[Obj], names: list[str]
) -> bool:
    """Whether a function takes steps with what its caller trains, or its State, and ends with nothing but losses."""
    func = frame.func.node if frame.func is not None else None
    trains = any(item.cls.derives_from("nnx.Optimizer") for item in owned)
    if func is None or isinstance(func, ast.Lambda) or not trains or SEARCHING.search(func.name):
        return False
    begun = [part for name in names for part in parts_of(frame.env.names.get(name))]
    models = [of for state in begun if isinstance(state, StateVal) for of in objects_in(state.of)]
    models += [part for part in begun if isinstance(part, Obj)]
    held = {name for name, value in frame.env.names.items() if any(value is of for of in models)}
    held &= names_of_parameters(func)
    if not held or any(_is_filled(frame, read) for name in held for read in reads_of(func, name)):
        return False
    taken, after = bound_to(frame.module, call), call.end_lineno or call.lineno
    later = (read for name in {*names, *held} for read in reads_of(func, name) if read.lineno > after)
    if taken is None or next(later, None) is not None:
        return False
    states = [item for item in parts_of(result) if id(item) in new and isinstance(item, StateVal)]
    of_each = ((item, objects_in(item.of)) for item in states)
    trained = {id(item) for item, of in of_each if any(each.cls.derives_from("nnx.Optimizer") for each in of)}
    return {*names} <= assigned_names([taken.statement]) or _is_dropped(frame, taken.target, result, trained or new)


def _is_forgotten(frame: Frame, call: ast.Call, passed: list[ast.expr]) -> bool:
    """Whether each round of a loop hands what a function was given to the next one, and the function returns none of
    it, but is called again with what it was given before.
    """
    taken = bound_to(frame.module, call)
    names = [each.id for each in passed if isinstance(each, ast.Name)]
    if taken is None or frame.func is None or len(names) < len(passed):
        return False
    if not {*names} <= assigned_names([taken.statement]) & {*names_of_parameters(frame.func.node)}:
        return False
    own = {id(part) for part in walk(taken.statement)}
    reads = (read for name in names for read in reads_of(frame.func.node, name))
    return all(id(read) in own for read in reads) and _is_run_again(frame, names[0])


FORGOTTEN = ": the function ends without it, so each round of the loop that calls it begins with the same one"


def _is_run_again(frame: Frame, name: str) -> bool:
    """Whether a loop calls the function that is running with the same thing for a parameter each time."""
    given, caller = argument(frame, name), frame.caller
    if not isinstance(given, ast.Name) or frame.call is None or caller is None or in_test(caller):
        return False
    return loop_around(caller.module, frame.call, given.id) is not None


def _is_made_anew(frame: Frame, call: ast.Call, begun: list[ast.expr]) -> bool:
    """Whether a call makes a part of what a loop begins with, as for a run of its own."""
    given = (*call.args, *(each.value for each in call.keywords))
    values = (value_of(frame.module, each) or each for each in given)
    starts = (value.elts for value in values if isinstance(value, ast.Tuple) and not set(begun).isdisjoint(value.elts))
    return any(isinstance(part, ast.Call) for start in starts for part in start)


def is_counted(loop: ast.stmt, call: ast.Call, step: ast.AST) -> bool:
    """Whether a loop counts rounds, and what it calls does not depend on the number: it compares no settings."""
    counts = isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and is_name(loop.iter.func, "range")
    number = loop.target.id if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) else None
    if not counts or number is None:
        return False
    of_number = {number}
    for target, value in (pair for node in walk(loop) for pair in pairs_of(node)):
        if not of_number.isdisjoint(names_in(value)):
            of_number |= names_in(target)
    return of_number.isdisjoint(names_in(call) | names_in(step))


def _bound_again(scope: ast.AST, name: str, after: int) -> int:
    """The line in which a function binds a name anew, below another one."""
    named = (node for node in own_nodes(scope) if is_name(node, name))
    bound = (node.lineno for node in named if not isinstance(node.ctx, ast.Load))
    return min((line for line in bound if line > after), default=sys.maxsize)


def _is_filled(frame: Frame, read: ast.AST) -> bool:
    """Whether a State is put into the object of this name."""
    call = next(ancestors(frame.module, read))
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return isinstance(call, ast.Call) and first is read and canonical_of(frame.env, call.func) == "nnx.update"


def _begins_again(frame: Frame, read: ast.AST) -> bool:
    """Whether another loop of JAX is given the same beginning: runs that are compared, or a short one to look at."""
    outers = (outer for outer, _ in parts_around(frame.module, read) if isinstance(outer, ast.Call))
    return any(canonical_of(frame.env, outer.func) in LOOPS for outer in outers)


COMPILING = frozenset({"jax.jit", "nnx.jit"})
"""Transforms under which a function does what it does without them, and does so once."""


def _elements(module: Module, node: ast.expr) -> list[ast.expr]:
    """The elements of a tuple that a name was bound to, or the name."""
    value = value_of(module, node)
    return value.elts if isinstance(value, ast.Tuple) else [node]


def steps_a_cell(event: Called) -> bool:
    """Whether a recurrent cell is called."""
    return isinstance(event.result, Pair) and isinstance(event.callee, Obj)


@judges_calls(rules.IGNORED_STATE, "()", when=steps_a_cell)
def ignored_carry(event: Called, report: Reporter) -> None:
    """What a recurrent cell carries on is dropped, and the loop goes on with the carry that it began with."""
    frame, node = event.frame, event.node
    carry = node.args[0] if isinstance(node, ast.Call) and node.args else None
    loop = innermost_loop(frame, node) if isinstance(carry, ast.Name) else None
    pair = event.result
    if not isinstance(node, ast.Call) or not isinstance(carry, ast.Name) or loop is None or not isinstance(pair, Pair):
        return
    if not _is_step_in_time(loop, node) or carry.id in assigned_names([loop]):
        return
    if is_thrown_away(frame, node, pair, {id(pair.items[0])}, loop):
        report(frame.module, node, name=text_of(node.func), so=EACH_ROUND)


def _is_step_in_time(loop: ast.stmt, call: ast.Call) -> bool:
    """Whether each round of a loop hands one cell the next of a batch of sequences, or the same input again, and not
    another of several that one carry is tried with.
    """
    bound = assigned_names([loop])
    taken = call.args[1] if len(call.args) > 1 else None
    if any(isinstance(part, ast.Name) and part.id in bound for part in walk(call.func)) or taken is None:
        return False
    index = taken.slice if isinstance(taken, ast.Subscript) else None
    if isinstance(index, ast.Tuple) and isinstance(index.elts[0], ast.Slice):
        return any(isinstance(part, ast.Name) and part.id in bound for part in walk(index))
    return not any(isinstance(part, ast.Name) and part.id in bound for part in walk(taken))


def differentiates(event: Ran) -> bool:
    """Whether a loss was differentiated that returns something beside its value."""
    pair = isinstance(event.result, Seq) and event.result.exact and len(event.result.items) == 2
    return pair and event.scope.row.name in {"jax.grad", "jax.value_and_grad"}


@judges(rules.IGNORED_STATE, Ran, when=differentiates)
def ignored_auxiliary(event: Ran, report: Reporter) -> None:
    """A loss returns the State that it leaves, and the name that this is bound to is never read."""
    taken = bound_to(event.frame.module, event.node)
    target = taken.target if taken is not None else None
    if not isinstance(event.result, Seq) or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return
    auxiliary, bound = event.result.items[1], target.elts[1]
    if event.scope.row.name == "jax.value_and_grad":
        bound = target.elts[0]
        bound = bound.elts[1] if isinstance(bound, ast.Tuple) and len(bound.elts) == 2 else target
    pairs = [(auxiliary, bound)]
    if isinstance(auxiliary, Seq) and isinstance(bound, ast.Tuple) and len(auxiliary.items) == len(bound.elts):
        pairs = [*zip(auxiliary.items, bound.elts, strict=True)]
    for value, name in pairs:
        if taken is not None and _is_state(value) and _is_unread(event.frame, name, taken.statement):
            func = event.scope.frame.func if event.scope.frame is not None else None
            loss = func.name if func is not None else event.scope.text
            report(event.frame.module, name, name=loss, so=": what it changes is lost")
            return


def _is_unread(frame: Frame, name: ast.expr, statement: ast.stmt) -> bool:
    """Whether nothing reads what a statement binds to a name: what it had before may be read up to there."""
    if not isinstance(name, ast.Name) or name.id.startswith("_") or frame.func is None:
        return False
    reads, own = reads_of(frame.func.node, name.id), {id(node) for node in own_nodes(frame.func.node)}
    end, again = statement.end_lineno or statement.lineno, innermost_loop(frame, statement) is not None
    return not reads or (not again and all(id(read) in own and read.lineno <= end for read in reads))


def _is_learned(change: Change, scope: TraceScope) -> bool:
    """Whether a change is more than what a forward pass leaves behind: statistics and random streams, which whoever
    evaluates or draws samples does not keep.
    """
    kept = change.event.effect == "write" or any(map(change.target.cls.derives_from, IN_PLACE["update"]))
    return kept and matters(change, scope)


def _is_new(item: Value, owned: list[Obj], event: Ran) -> bool:
    """Whether a result is not what the function was given, but what it made of it."""
    frame = event.scope.frame
    given = [part for value in frame.given.values() for part in parts_of(value)] if frame is not None else []
    if isinstance(item, StateVal) and any(related(of, obj) for of in objects_in(item.of) for obj in owned):
        return True
    made = any(
        value.of is item.of if isinstance(value, StateVal) and isinstance(item, StateVal) else type(value) is type(item)
        for value in given
    )
    before: Value | None = item
    while isinstance(before, StateVal) and before.before is not None and all(value is not before for value in given):
        before = before.before
    return made and all(value is not before for value in given)


def is_thrown_away(frame: Frame, node: ast.Call, result: Value, new: set[int], loop: ast.stmt) -> bool:
    """Whether a call stands where none of these parts of its result are bound to a name that the loop uses."""
    outer = next(ancestors(frame.module, node))
    if isinstance(outer, ast.Expr):
        return not _is_used_elsewhere(frame, node)
    if isinstance(outer, ast.Subscript) and isinstance(outer.slice, ast.Constant) and isinstance(result, Seq):
        index = outer.slice.value
        count = len(result.items)
        return isinstance(index, int) and count > 0 and not _has_any(result.items[index % count], new)
    taken = bound_to(frame.module, node)
    return taken is not None and _is_dropped(frame, taken.target, result, new, loop)


def _has_any(value: Value, parts: set[int]) -> bool:
    return any(id(part) in parts for part in parts_of(value))


def _is_dropped(frame: Frame, target: ast.expr, value: Value, new: set[int], loop: ast.stmt | None = None) -> bool:
    """Whether what takes a value leaves these parts of it to names that nothing uses."""
    if not _has_any(value, new):
        return True
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, Seq):
        return _is_unused(frame, target, loop, value, new)
    names = _names_for(target, len(value.items))
    taken = zip(names, value.items, strict=True) if names is not None else ()
    return names is not None and all(_is_dropped(frame, name, item, new, loop) for name, item in taken)


def _is_used_elsewhere(frame: Frame, node: ast.Call) -> bool:
    """Whether a function calls the same thing in another place and takes what it returns: here it is compiled only."""
    scope = frame.func.node if frame.func is not None else frame.module.tree
    same = [call for call in calls_in(scope) if call is not node and ast.unparse(call.func) == ast.unparse(node.func)]
    return any(not isinstance(next(ancestors(frame.module, call)), ast.Expr) for call in same)


def _names_for(target: ast.Tuple | ast.List, count: int) -> list[ast.expr] | None:
    """What takes each element of a tuple that is unpacked: the name with a star each of those in the middle."""
    starred = [place for place, item in enumerate(target.elts) if isinstance(item, ast.Starred)]
    if not starred:
        return target.elts if len(target.elts) == count else None
    first, rest = starred[0], len(target.elts) - 1 - starred[0]
    middle = target.elts[first]
    many = count - first - rest
    if not isinstance(middle, ast.Starred) or many < 0:
        return None
    return [*target.elts[:first], *([middle.value] * many), *target.elts[first + 1 :]]


def _is_unused(frame: Frame, name: ast.expr, loop: ast.stmt | None, value: Value, new: set[int]) -> bool:
    """Whether nothing reads what a target takes, or other parts of it only, or only what follows the loop, which sees
    the last round of it.
    """
    if not isinstance(name, ast.Name):
        return False
    scope = frame.func.node if frame.func is not None else frame.module.tree
    reads = reads_of(scope, name.id) if name.id != "_" else ()
    if loop is not None:
        inside = {id(part) for part in walk(loop)}
        reads = [read for read in reads if id(read) in inside or read.lineno < loop.lineno]
    used = [read for read in reads if not _reads_other(frame, read, value, new)]
    return not used and not is_measured(frame.env, scope)


def _reads_other(frame: Frame, read: ast.Name, value: Value, new: set[int]) -> bool:
    """Whether a place reads one part of a record, a dict or a tuple that certainly is none of these."""
    outer = next(ancestors(frame.module, read))
    part: Value | None = None
    if id(value) in new:
        return False
    if isinstance(outer, ast.Attribute) and isinstance(outer.ctx, ast.Load):
        if isinstance(value, ForeignVal):
            part = value.held.get(outer.attr)
        elif isinstance(value, Obj) and not value.cls.tracked:
            attr = value.attrs.get(outer.attr)
            part = attr.value if attr is not None else (value.args or {}).get(outer.attr)
    elif isinstance(outer, ast.Subscript) and outer.value is read and isinstance(outer.slice, ast.Constant):
        key = outer.slice.value
        if isinstance(value, DictVal) and value.exact:
            part = next((item for name, item in value.items if isinstance(name, Const) and name.value == key), None)
        elif (
            isinstance(value, Seq)
            and value.exact
            and isinstance(key, int)
            and -len(value.items) <= key < len(value.items)
        ):
            part = value.items[key]
    return part is not None and not _has_any(part, new)
