"""Results that are used where there is none, and States that a step returns for nothing (NNX221, NNX226)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called, Ran
from nnx_lint.model.expressions import text_of
from nnx_lint.model.statements import assigned_names
from nnx_lint.model.states import OptStateVal, StateVal
from nnx_lint.model.values import Ext, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.edits import replace
from nnx_lint.rules.program import FUNCTIONS, STATEMENT_LOOPS, around, enclosing, reads_of
from nnx_lint.rules.traces.boundaries import objects_in
from nnx_lint.rules.updates.lost import drops
from nnx_lint.rules.updates.ownership import at_level, changes_of, related
from nnx_lint.syntax_walk import walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame

# -- results that are None ---------------------------------------------------------------------------------------------


@judges_calls(rules.IN_PLACE_RESULT, "nnx.update", "nnx.reseed", "nnx.set_metadata", "nnx.replace_by_pure_dict")
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
    outers = around(frame, node)
    if outers and used_in(outers[-1], node) and not _expects_none(frame, outers[-1]):
        report(frame.module, node, fix=lambda: in_a_statement(frame, node, outers[-1]), name=event.name)


IN_PLACE = {"update": ("nnx.Optimizer", "nnx.metrics.Metric"), "reset": ("nnx.metrics.Metric",)}
"""The classes whose method changes its object in place, where that is not ``nnx.Module``."""


def used_in(outer: ast.AST, node: ast.AST) -> bool:
    """Whether an expression needs the value of a part of it."""
    if isinstance(outer, ast.Assign):
        target = outer.targets[0]
        return len(outer.targets) == 1 and not (isinstance(target, ast.Name) and target.id.startswith("_"))
    if isinstance(outer, ast.Call):
        return True
    return isinstance(outer, (ast.Attribute, ast.keyword, ast.BinOp, ast.Subscript))


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
    scope, items, node = event.scope, _results(event), event.node
    if event.frame.scope or not isinstance(node, ast.Call) or not scope.row.cached:
        return
    outers = around(event.frame, node)
    loop = next((item for item in reversed(outers) if isinstance(item, STATEMENT_LOOPS)), None)
    if loop is None:
        return
    owned = [item.target for item in changes_of(event)] if drops(event) else []
    bound = assigned_names(loop.body)
    for of_kind in (_is_state, _is_optimizer_state):
        new = [place for place, item in enumerate(items) if of_kind(item) and _is_new(item, owned, event)]
        passed = [
            each
            for each, value in zip(node.args, event.args, strict=False)
            if any(map(of_kind, value.items if isinstance(value, Seq) else [value]))
        ]
        kept = passed and all(isinstance(each, ast.Name) and each.id not in bound for each in passed)
        if kept and new and _thrown_away(event.frame, outers, len(items), new, isinstance(event.result, Seq)):
            report(event.frame.module, node, name=text_of(node.func))
            return


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
        if _thrown_away(frame, outers, len(items), [place], isinstance(event.result, Seq)):
            report(frame.module, node, name=text_of(node.func))
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


def _thrown_away(frame: Frame, outers: list[ast.AST], count: int, positions: list[int], several: bool) -> bool:
    """Whether a call stands where none of these elements of its result are bound to a name that one uses."""
    outer = outers[-1]
    if isinstance(outer, ast.Expr):
        return True
    if isinstance(outer, ast.Subscript) and isinstance(outer.slice, ast.Constant) and several:
        index = outer.slice.value
        return isinstance(index, int) and index % count not in positions if count else False
    target = outer.targets[0] if isinstance(outer, ast.Assign) and len(outer.targets) == 1 else None
    if not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) != count:
        return False
    scope = frame.func.node if frame.func is not None else frame.module.tree
    bound = [target.elts[each] for each in positions]
    return all(isinstance(name, ast.Name) and (name.id == "_" or not reads_of(scope, name.id)) for name in bound)
