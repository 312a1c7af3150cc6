"""Results that are thrown away, or used where there is none (NNX221, NNX225, NNX226).

Invariants: the last expression of a notebook's cell is shown, and what a test expects to fail is not executed; neither
throws a result away by mistake.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.arrays import is_array_function
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.classes import LibClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import AttributeMissed, Called, Ran
from nnx_lint.model.expressions import text_of
from nnx_lint.model.instances import ARRAY_LAYERS, effect_of
from nnx_lint.model.statements import assigned_names
from nnx_lint.model.values import Array, Ext, Obj, StateVal
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.edits import replace
from nnx_lint.rules.program import FUNCTIONS, STATEMENT_LOOPS, ancestors, around, enclosing, in_test
from nnx_lint.rules.traces.boundaries import objects_in
from nnx_lint.rules.updates.lost import drops
from nnx_lint.rules.updates.ownership import changes_of, related
from nnx_lint.syntax_walk import walk
from nnx_rules.api import Effect
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame

# -- results that are thrown away --------------------------------------------------------------------------------------

NEW_VALUES = {
    "nnx.capture": "a function",
    "nnx.clone": "a copy",
    "nnx.map": "a new object",
    "nnx.map_state": "a new State",
    "nnx.merge_state": "a new State",
    "nnx.view": "a new object",
    "optax.apply_updates": "new parameters",
    "optax.incremental_update": "new parameters",
    "nnx.with_attributes": "a new object",
}
"""Functions that are called for what they return, and nothing else, with what that is."""


def discarded(event: Called) -> bool:
    """Whether a call is all of a statement."""
    return event.frame.discards is event.node


@judges(rules.UNUSED_RESULT, Called, when=discarded)
def unused_result(event: Called, report: Reporter) -> None:
    frame = event.frame
    if is_shown(frame):
        return
    result = new_value(event)
    if result is not None:
        report(frame.module, event.node, name=event.name, result=f"returns {result}", mend="bind the result to a name")


def is_shown(frame: Frame) -> bool:
    """Whether a statement may be there for its value, in a notebook, or for what it raises, in a test."""
    return in_test(frame) or (frame.func is None and frame.module.source.path.endswith(".ipynb"))


def new_value(event: Called) -> str | None:
    """What a call returns that is made for what it returns only."""
    callee = event.callee
    if _is_in_forward_pass(event.frame) and _computes(event):
        return "an array"
    if isinstance(callee, Ext):
        return NEW_VALUES.get(event.subject or "")
    if not isinstance(callee, BoundMethod) or callee.func is not None:
        return None
    if isinstance(callee.receiver, StateVal):
        return "a new State" if callee.name in {"map", "filter", "split"} else None
    if not isinstance(callee.receiver, Obj):
        return None
    cls = callee.receiver.cls
    if cls.is_variable:
        return "a new Variable" if callee.name in {"replace", "copy"} else None
    streams = cls.derives_from("nnx.Rngs") or cls.derives_from("nnx.RngStream")
    # Of streams that are made for this call alone nothing can be drawn twice.
    func = event.node.func if isinstance(event.node, ast.Call) else None
    named = isinstance(func, ast.Attribute) and isinstance(func.value, (ast.Name, ast.Attribute))
    return "new streams" if streams and named and callee.name in {"fork", "split"} else None


def _is_in_forward_pass(frame: Frame) -> bool:
    """Whether a statement is part of the forward pass of a module, which is there for what it returns."""
    own = frame.func.cls if frame.func is not None and frame.func.name == "__call__" else None
    return own is not None and own.derives_from("nnx.Module")


def _computes(event: Called) -> bool:
    """Whether a call computes an array, and certainly does nothing else."""
    callee = event.callee
    if isinstance(callee, Obj):
        pure = effect_of(callee, "__call__") in {None, Effect.PURE} and isinstance(callee.cls, LibClass)
        return pure and callee.cls.name in ARRAY_LAYERS and isinstance(event.result, Array)
    return isinstance(callee, Ext) and isinstance(event.result, Array) and is_array_function(callee.name)


@judges(rules.UNUSED_RESULT, AttributeMissed)
def method_not_called(event: AttributeMissed, report: Reporter) -> None:
    module, node = event.frame.module, event.node
    if event.name not in {"train", "eval"} or not event.obj.cls.derives_from("nnx.Module") or is_shown(event.frame):
        return
    if isinstance(node, ast.Attribute) and isinstance(next(ancestors(module, node), None), ast.Expr):
        text = text_of(node)
        report(module, node, name=text, result="is not called: it names a method", mend=f"call it: `{text}()`")


# -- results that are None ---------------------------------------------------------------------------------------------


@judges_calls(rules.IN_PLACE_RESULT, "nnx.update", "nnx.reseed", "nnx.set_metadata", "nnx.replace_by_pure_dict")
@judges_calls(rules.IN_PLACE_RESULT, ".train", ".eval", ".set_attributes", ".update")
def in_place_result(event: Called, report: Reporter) -> None:
    frame, node, callee = event.frame, event.node, event.callee
    if frame.discards is node or not isinstance(node, ast.Call):
        return
    if not isinstance(callee, Ext):
        receiver = callee.receiver if isinstance(callee, BoundMethod) and callee.func is None else None
        name = callee.name if isinstance(callee, BoundMethod) else ""
        if not isinstance(receiver, Obj) or not receiver.cls.derives_from(IN_PLACE.get(name, "nnx.Module")):
            return
    outers = around(frame, node)
    if outers and used_in(outers[-1], node) and not _expects_none(frame, outers[-1]):
        report(frame.module, node, fix=lambda: in_a_statement(frame, node, outers[-1]), name=event.name)


IN_PLACE = {"update": "nnx.Optimizer"}
"""The class whose method changes its object in place, where that is not ``nnx.Module``."""


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


@judges(rules.IGNORED_STATE, Ran, when=drops)
def ignored_state(event: Ran, report: Reporter) -> None:
    result, scope = event.result, event.scope
    if event.frame.scope or not isinstance(event.node, ast.Call) or not scope.row.cached:
        return
    items = result.items if isinstance(result, Seq) and result.exact else [result]
    owned = [item.target for item in changes_of(event)]
    new = [
        position
        for position, item in enumerate(items)
        if isinstance(item, StateVal) and any(related(of, obj) for of in objects_in(item.of) for obj in owned)
    ]
    outers = around(event.frame, event.node)
    loop = next((item for item in reversed(outers) if isinstance(item, STATEMENT_LOOPS)), None)
    if not new or loop is None or not _thrown_away(outers, len(items), new, isinstance(result, Seq)):
        return
    bound = assigned_names(loop.body)
    states = [
        node
        for node, value in zip(event.node.args, event.args, strict=False)
        if any(isinstance(each, StateVal) for each in (value.items if isinstance(value, Seq) else [value]))
    ]
    if states and all(isinstance(node, ast.Name) and node.id not in bound for node in states):
        report(event.frame.module, event.node, name=text_of(event.node.func))


def _thrown_away(outers: list[ast.AST], count: int, positions: list[int], several: bool) -> bool:
    """Whether a call stands where none of these elements of its result are bound to a name that one can use."""
    outer = outers[-1]
    if isinstance(outer, ast.Expr):
        return True
    if isinstance(outer, ast.Subscript) and isinstance(outer.slice, ast.Constant) and several:
        index = outer.slice.value
        return isinstance(index, int) and index % count not in positions if count else False
    target = outer.targets[0] if isinstance(outer, ast.Assign) and len(outer.targets) == 1 else None
    if not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) != count:
        return False
    return all(isinstance(target.elts[each], ast.Name) and target.elts[each].id == "_" for each in positions)  # type: ignore[attr-defined]
