"""Results that are used where there is none, and States that a step returns for nothing (NNX221, NNX226)."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called, Ran
from nnx_lint.model.expressions import text_of
from nnx_lint.model.recurrent import Pair
from nnx_lint.model.states import OptStateVal, StateVal
from nnx_lint.model.values import Ext, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.reporting import related as attached
from nnx_lint.rules.bindings import bound_to, handed_on
from nnx_lint.rules.edits import replace
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    around,
    calls_in,
    canonical_of,
    enclosing,
    own_statements,
    reads_of,
    resolved,
)
from nnx_lint.rules.traces.boundaries import objects_in
from nnx_lint.rules.updates.lost import drops
from nnx_lint.rules.updates.ownership import at_level, changes_of, related
from nnx_lint.syntax.binding import assigned_names
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame

# -- results that are None ---------------------------------------------------------------------------------------------


IN_PLACE_FUNCTIONS = ("nnx.update", "nnx.reseed", "nnx.set_metadata", "nnx.replace_by_pure_dict")


@judges_calls(rules.IN_PLACE_RESULT, *IN_PLACE_FUNCTIONS)
@judges_calls(rules.IN_PLACE_RESULT, ".train", ".eval", ".set_attributes", ".update", ".reset")
def in_place_result(event: Called, report: Reporter) -> None:
    frame, node, callee = event.frame, event.node, event.callee
    if frame.discards is node or not isinstance(node, ast.Call):
        return
    if not isinstance(callee, Ext):
        receiver = callee.receiver if isinstance(callee, BoundMethod) and callee.func is None else None
        name = callee.name if isinstance(callee, BoundMethod) else ""
        owners = IN_PLACE.get(name, ("nnx.Module",))
        if not isinstance(receiver, Obj) or not any(map(receiver.cls.derives_from, owners)):
            return
        told = receiver.cls.derives_from("nnx.Optimizer") and report.runs_on(frame.module)[0] == "flax"
        if told and not _replaces(next(iter(around(frame, node)[-1:]), None), node):
            return  # newer versions of flax return the updates
    outers = around(frame, node)
    if outers and isinstance(outers[-1], ast.Return):
        report.memory(HandedOn).calls[id(node)] = event
    elif outers and (used_in(outers[-1], node) or _gathered(outers, node)) and not _expects_none(frame, outers[-1]):
        report(frame.module, node, fix=lambda: in_a_statement(frame, node, outers[-1]), name=event.name)


def _replaces(outer: ast.AST | None, call: ast.Call) -> bool:
    """Whether the result of a call takes the place of what the call is given, or of the object whose method it is; one
    that is unpacked is taken for something else too.
    """
    target = outer.targets[0] if isinstance(outer, ast.Assign) and len(outer.targets) == 1 else None
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    if target is None or isinstance(target, ast.Tuple):
        return target is not None
    return ast.unparse(target) in map(ast.unparse, [*call.args, *owner])


class HandedOn:
    """The calls that give None to the caller of a function, by their syntax."""

    def __init__(self) -> None:
        self.calls: dict[int, Called] = {}

    def name_of(self, func: FuncVal, call: ast.Call) -> str | None:
        """What a function calls for its result, where that gives None."""
        if id(call) in self.calls:
            return self.calls[id(call)].name
        return text_of(call.func) if canonical_of(func.module.env, call.func) in IN_PLACE_FUNCTIONS else None


@judges_calls(rules.IN_PLACE_RESULT, FuncVal, Transformed, BoundMethod)
def none_handed_on(event: Called, report: Reporter) -> None:
    """The result of a function that returns nothing but such None is used."""
    noted, frame, node = report.memory(HandedOn), event.frame, event.node
    if frame.discards is node or not isinstance(node, ast.Call):
        return
    func: Value | None = event.callee
    while isinstance(func, (Transformed, BoundMethod)):
        func = func.func
    if not isinstance(func, FuncVal) or func.wraps is not None:
        return
    returned = _returned_calls(func.node)
    names = [*itertools.takewhile(bool, (noted.name_of(func, value) for value in returned))]
    outers = around(frame, node) if returned and len(names) == len(returned) else []
    if not outers or _expects_none(frame, outers[-1]):
        return
    outer, value = outers[-1], returned[0]
    passed = isinstance(outer, ast.keyword) or (isinstance(outer, ast.Call) and outer.func is not node)
    if used_in(outer, node) and not passed and _is_read(frame, outer):
        used = (attached(frame.module, node, "and the result is used here"),)  # something may well be called with None
        report(func.module, value, name=names[0], related=used)


@remembered
def _returned_calls(func: ast.AST) -> list[ast.Call]:
    """The calls whose results a function returns; none if it returns anything else."""
    if not isinstance(func, ast.FunctionDef):
        return []
    returned = [node.value for node in own_statements(func) if isinstance(node, ast.Return)]
    calls = [value for value in returned if isinstance(value, ast.Call)]
    return calls if len(calls) == len(returned) else []


def _is_read(frame: Frame, outer: ast.AST) -> bool:
    """Whether a name that an assignment binds is read."""
    target = outer.targets[0] if isinstance(outer, ast.Assign) else None
    scope = frame.func.node if frame.func is not None else frame.module.tree
    return not isinstance(target, ast.Name) or bool(reads_of(scope, target.id))


IN_PLACE = {"update": ("nnx.Optimizer", "nnx.metrics.Metric"), "reset": ("nnx.metrics.Metric",)}
"""The classes whose method changes its object in place, where that is not ``nnx.Module``."""


def _gathered(outers: list[ast.AST], node: ast.AST) -> bool:
    """Whether a list of such results is made, and used."""
    made = outers[-1]
    return isinstance(made, ast.ListComp) and made.elt is node and len(outers) > 1 and used_in(outers[-2], made)


def used_in(outer: ast.AST, node: ast.AST) -> bool:
    """Whether an expression needs the value of a part of it."""
    if isinstance(outer, ast.Assign):
        target = outer.targets[0]
        return len(outer.targets) == 1 and not (isinstance(target, ast.Name) and target.id.startswith("_"))
    if isinstance(outer, ast.Call):
        return True
    return isinstance(outer, (ast.Attribute, ast.keyword, ast.BinOp, ast.Subscript, ast.withitem))


def _expects_none(frame: Frame, outer: ast.AST) -> bool:
    """Whether an assignment binds a name that the function then asks for being ``None``."""
    target = outer.targets[0] if isinstance(outer, ast.Assign) else None
    scope = enclosing(frame.module, outer, *FUNCTIONS, ast.Module)
    return isinstance(target, ast.Name) and any(
        isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Name)
        and node.left.id == target.id
        and isinstance(node.ops[0], (ast.Is, ast.IsNot))
        for node in (walk(scope) if scope is not None else ())
    )


def in_a_statement(frame: Frame, node: ast.Call, outer: ast.AST) -> Fix | None:
    """Call it in a statement of its own, where what it changes is what it was bound to, or a new object."""
    if not isinstance(outer, ast.Assign) or not isinstance(outer.targets[0], ast.Name):
        return None
    source, name = frame.module.source, outer.targets[0].id
    line = source.text[: source.span(outer).start].rpartition("\n")[2]
    method = isinstance(node.func, ast.Attribute) and node.func.attr in {"train", "eval", "set_attributes"}
    given = node.func.value if method and isinstance(node.func, ast.Attribute) else node.args[0] if node.args else None
    if given is None or line.strip() or "\n" in source.segment(outer):
        return None
    if isinstance(given, ast.Name) and given.id == name:
        return Fix("Call it in a statement of its own", replace(source, outer, source.segment(node)))
    if not method or not isinstance(given, ast.Call):
        return None
    rest = source.segment(node)[len(source.segment(given)) :]
    return Fix(
        "Call it in a statement of its own",
        replace(source, outer, f"{name} = {source.segment(given)}\n{line}{name}{rest}"),
    )


# -- states that are thrown away ---------------------------------------------------------------------------------------


def _is_state(value: Value | None) -> bool:
    return isinstance(value, StateVal)


def _is_optimizer_state(value: Value | None) -> bool:
    return isinstance(value, OptStateVal)


def returns_state(event: Ran) -> bool:
    """Whether a State, or what an optimizer of optax keeps, is among what a function returns."""
    return any(_is_state(item) or _is_optimizer_state(item) for item in _results(event))


def _results(event: Ran) -> list[Value]:
    result = event.result
    return result.items if isinstance(result, Seq) and result.exact else [result]


@judges(rules.IGNORED_STATE, Ran, when=returns_state)
def ignored_state(event: Ran, report: Reporter) -> None:
    items = _results(event)
    frame, node = handed_on(event.frame, event.node)
    if event.frame.scope or not isinstance(node, ast.Call) or not event.scope.row.cached:
        return
    outers = around(frame, node)
    loop = next((item for item in reversed(outers) if isinstance(item, STATEMENT_LOOPS)), None)
    if loop is None:
        return
    owned = [item.target for item in changes_of(event)] if drops(event) else []
    bound = assigned_names(loop.body)
    for of_kind in (_is_state, _is_optimizer_state):
        new = [place for place, item in enumerate(items) if of_kind(item) and _is_new(item, owned, event)]
        given = [(each, resolved(frame.env, each)) for each in node.args]
        passed = [
            each for each, value in given if any(map(of_kind, value.items if isinstance(value, Seq) else [value]))
        ]
        kept = passed and all(isinstance(each, ast.Name) and each.id not in bound for each in passed)
        if kept and new and _thrown_away(frame, node, len(items), new, isinstance(event.result, Seq), loop):
            report(frame.module, node, name=text_of(node.func), so=EACH_ROUND)
            return


EACH_ROUND = ", so each round of the loop begins with the same one"


@judges(rules.IGNORED_STATE, Ran, when=drops)
def ignored_object(event: Ran, report: Reporter) -> None:
    """An object that a step changes comes back, and the loop goes on with the one that it handed over."""
    frame, node, items = event.frame, event.node, _results(event)
    if frame.scope or not isinstance(node, ast.Call) or not event.scope.row.cached:
        return
    returned = [(place, item) for place, item in enumerate(items) if isinstance(item, Obj) and item.cls.tracked]
    outers = around(frame, node) if returned else []
    loop = next((item for item in reversed(outers) if isinstance(item, STATEMENT_LOOPS)), None)
    if loop is None:
        return
    bound, changed = assigned_names(loop.body), [item.target for item in changes_of(event)]
    handed = [(each, value) for each, value in zip(node.args, event.args, strict=False) if isinstance(each, ast.Name)]
    for place, item in returned:
        given = next((each for each, value in handed if value is at_level(item, frame.level)), None)
        if given is None or given.id in bound or not any(related(item, obj) for obj in changed):
            continue
        if _thrown_away(frame, node, len(items), [place], isinstance(event.result, Seq), loop):
            report(frame.module, node, name=text_of(node.func), so=EACH_ROUND)
            return


def steps_a_cell(event: Called) -> bool:
    """Whether a recurrent cell is called."""
    return isinstance(event.result, Pair) and isinstance(event.callee, Obj)


@judges_calls(rules.IGNORED_STATE, "()", when=steps_a_cell)
def ignored_carry(event: Called, report: Reporter) -> None:
    """What a recurrent cell carries on is dropped, and the loop goes on with the carry that it began with."""
    frame, node = event.frame, event.node
    carry = node.args[0] if isinstance(node, ast.Call) and node.args else None
    outers = around(frame, node) if isinstance(carry, ast.Name) else []
    loop = next((item for item in reversed(outers) if isinstance(item, STATEMENT_LOOPS)), None)
    if not isinstance(node, ast.Call) or not isinstance(carry, ast.Name) or loop is None:
        return
    if carry.id not in assigned_names([loop]) and _thrown_away(frame, node, 2, [0], True, loop):
        report(frame.module, node, name=text_of(node.func), so=EACH_ROUND)


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
    scope = event.frame.func.node if event.frame.func is not None else event.frame.module.tree
    for value, name in pairs:
        unread = isinstance(name, ast.Name) and not name.id.startswith("_") and not reads_of(scope, name.id)
        if _is_state(value) and unread and event.frame.func is not None:
            func = event.scope.frame.func if event.scope.frame is not None else None
            loss = func.name if func is not None else event.scope.text
            report(event.frame.module, name, name=loss, so=": what it changes is lost")
            return


def _is_new(item: Value, owned: list[Obj], event: Ran) -> bool:
    """Whether a result is not what the function was given, but what it made of it."""
    frame = event.scope.frame
    given = list(frame.given.values()) if frame is not None else []
    if isinstance(item, StateVal) and any(related(of, obj) for of in objects_in(item.of) for obj in owned):
        return True
    made = any(
        value.of is item.of if isinstance(value, StateVal) and isinstance(item, StateVal) else type(value) is type(item)
        for value in given
    )
    return made and all(value is not item for value in given)


def _thrown_away(frame: Frame, node: ast.Call, count: int, positions: list[int], several: bool, loop: ast.AST) -> bool:
    """Whether a call stands where none of these elements of its result are bound to a name that the loop uses."""
    outer = next(ancestors(frame.module, node))
    if isinstance(outer, ast.Expr):
        return True
    if isinstance(outer, ast.Subscript) and isinstance(outer.slice, ast.Constant) and several:
        index = outer.slice.value
        return isinstance(index, int) and index % count not in positions if count else False
    taken = bound_to(frame.module, node)
    target = taken.target if taken is not None else None
    names = _names_for(target, count) if isinstance(target, (ast.Tuple, ast.List)) else None
    return names is not None and all(_is_unused(frame, names[each], loop) for each in positions)


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


def _is_unused(frame: Frame, name: ast.expr, loop: ast.AST) -> bool:
    """Whether nothing reads what a target takes, or only what follows the loop, which sees the last round of it."""
    if not isinstance(name, ast.Name):
        return False
    scope = frame.func.node if frame.func is not None else frame.module.tree
    reads = reads_of(scope, name.id) if name.id != "_" else []
    inside = {id(part) for part in walk(loop)}
    before = any(id(read) in inside or read.lineno < getattr(loop, "lineno", 0) for read in reads)
    return not before and not _is_measured(frame, scope)


def _is_measured(frame: Frame, scope: ast.AST) -> bool:
    """Whether a function waits for results, as those do that measure how long the same step takes again and again."""
    named = (canonical_of(frame.env, call.func) or getattr(call.func, "attr", "") for call in calls_in(scope))
    return any(name.endswith("block_until_ready") for name in named)
