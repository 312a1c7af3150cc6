"""Results that are used where there is none: of functions and methods that change their object in place (NNX226)."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.foreign import GENERATORS
from nnx_lint.model.states import ForeignVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Ext, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.reporting import related as attached
from nnx_lint.rules.bindings import target_of
from nnx_lint.rules.construction.returning import UNSAID
from nnx_lint.rules.edits import replace
from nnx_lint.rules.program import (
    FUNCTIONS,
    around,
    canonical_of,
    enclosing,
    own_statements,
    reads_of,
)
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from typing import TypeGuard

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
        outer = next(iter(around(frame, node)[-1:]), None)
        if told and isinstance(outer, ast.Return):
            report.memory(HandedOn).told.add(id(node))
        elif told and not _replaces(frame, node):
            return  # newer versions of flax return the updates
    outers = _chosen_for(around(frame, node), node)
    if outers and isinstance(outers[-1], ast.Return):
        report.memory(HandedOn).calls[id(node)] = event
        if id(node) not in report.memory(HandedOn).told and _promises(enclosing(frame.module, node, *FUNCTIONS)):
            report(frame.module, node, name=event.name)
        return
    used = outers and (_is_used(frame, outers[-1], node) or _gathered(frame, outers, node))
    if used and not _expects_none(frame, node):
        report(frame.module, node, fix=lambda: in_a_statement(frame, node, outers[-1]), name=event.name)


def _is_kept(event: Called) -> bool:
    """Whether a call is more than a statement of its own."""
    return event.frame.discards is not event.node


OF_LISTS = ("append", "clear", "extend", "insert", "remove", "reverse", "sort")
OF_DICTS = ("clear", "update")
SHUFFLES = ("random.shuffle", "numpy.random.shuffle")


@judges_calls(rules.IN_PLACE_RESULT, *SHUFFLES, ".shuffle", *(f".{name}" for name in OF_LISTS), when=_is_kept)
@judges_calls(rules.IN_PLACE_RESULT, ".update", when=_is_kept)
def in_place_of_python(event: Called, report: Reporter) -> None:
    """``order = rng.shuffle(order)``, ``layers = layers.append(layer)``: what has been changed is not returned."""
    frame, node, callee = event.frame, event.node, event.callee
    if not isinstance(node, ast.Call) or not (isinstance(callee, Ext) or _changes_receiver(callee)):
        return
    outers = _chosen_for(around(frame, node), node)
    if not outers or not isinstance(outers[-1], (ast.Assign, ast.AnnAssign, ast.Subscript)):
        return
    if _is_used(frame, outers[-1], node) and _is_read(frame, node) and not _expects_none(frame, node):
        report(frame.module, node, fix=lambda: in_a_statement(frame, node, outers[-1]), name=event.name)


def _changes_receiver(callee: Value | None) -> bool:
    """Whether a method of Python or of numpy changes its object, or its argument, and returns nothing."""
    owner = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    name = callee.name if isinstance(callee, BoundMethod) else ""
    if isinstance(owner, ForeignVal):
        return name == "shuffle" and owner.name in GENERATORS
    if isinstance(owner, Obj):
        return name in OF_LISTS and owner.cls.derives_from("nnx.List")
    return name in (OF_DICTS if isinstance(owner, DictVal) else OF_LISTS) and isinstance(owner, (DictVal, Seq))


def _promises(func: ast.AST | None) -> bool:
    """Whether a function says that it returns something: ``-> nnx.Module``."""
    said = last_name(func.returns) if isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)) else ""
    return bool(said) and said not in UNSAID


def _chosen_for(outers: list[ast.AST], node: ast.AST) -> list[ast.AST]:
    """The nodes around a call, without the conditional expressions that it is one of the results of."""
    while outers and isinstance(outers[-1], ast.IfExp) and outers[-1].test is not node:
        node = outers[-1]
        outers = outers[:-1]
    return outers


def _replaces(frame: Frame, call: ast.Call) -> bool:
    """Whether the result of a call takes the place of what the call is given, or of the object whose method it is; one
    that is unpacked is taken for something else too.
    """
    target = target_of(frame.module, call)
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    if target is None or isinstance(target, ast.Tuple):
        return target is not None
    return ast.unparse(target) in map(ast.unparse, [*call.args, *owner])


class HandedOn:
    """The calls that give None to the caller of a function, by their syntax, and those of them that tell the updates in
    newer versions of flax.
    """

    def __init__(self) -> None:
        self.calls: dict[int, Called] = {}
        self.told: set[int] = set()

    def name_of(self, func: FuncVal, call: ast.Call, beside: list[ast.Call]) -> str | None:
        """What a function calls for one of its results, where that gives None."""
        if id(call) in self.calls:
            return self.calls[id(call)].name
        # On the other branch, what is called of the same object may not have been reached: ``m.train()``, ``m.eval()``.
        receivers = {ast.unparse(each.func.value) for each in beside if id(each) in self.calls and _switches(each.func)}
        if _switches(call.func) and ast.unparse(call.func.value) in receivers:
            return text_of(call.func)
        return text_of(call.func) if canonical_of(func.module.env, call.func) in IN_PLACE_FUNCTIONS else None


def _switches(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr in {"train", "eval"}


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
    names = [*itertools.takewhile(bool, (noted.name_of(func, value, returned) for value in returned))]
    outers = around(frame, node) if returned and len(names) == len(returned) else []
    if not outers or _expects_none(frame, node):
        return
    outer, value = outers[-1], returned[0]
    if any(id(each) in noted.told for each in returned) and not _replaces(frame, node):
        return
    passed = isinstance(outer, ast.keyword) or (isinstance(outer, ast.Call) and outer.func is not node)
    if _is_used(frame, outer, node) and not passed and _is_read(frame, node):
        used = (attached(frame.module, node, "and the result is used here"),)  # something may well be called with None
        report(func.module, value, name=names[0], related=used)


@remembered
def _returned_calls(func: ast.AST) -> list[ast.Call]:
    """The calls whose results a function returns; none if it returns anything else."""
    if not isinstance(func, ast.FunctionDef):
        return []
    returned = [node.value for node in own_statements(func) if isinstance(node, ast.Return)]
    results = [each for value in returned for each in (_results(value) if value is not None else [value])]
    calls = [value for value in results if isinstance(value, ast.Call)]
    return calls if len(calls) == len(results) else []


def _results(value: ast.expr) -> list[ast.expr]:
    """What an expression may be: one of two for a conditional expression."""
    return [*_results(value.body), *_results(value.orelse)] if isinstance(value, ast.IfExp) else [value]


def _is_read(frame: Frame, node: ast.AST) -> bool:
    """Whether the name that an assignment binds to a value is read, if it is one."""
    target = target_of(frame.module, node)
    scope = frame.func.node if frame.func is not None else frame.module.tree
    return not isinstance(target, ast.Name) or bool(reads_of(scope, target.id))


IN_PLACE = {"update": ("nnx.Optimizer", "nnx.metrics.Metric"), "reset": ("nnx.metrics.Metric",)}
"""The classes whose method changes its object in place, where that is not ``nnx.Module``."""


def _gathered(frame: Frame, outers: list[ast.AST], node: ast.AST) -> bool:
    """Whether a list of such results is made, and used."""
    made = outers[-1]
    return isinstance(made, ast.ListComp) and made.elt is node and len(outers) > 1 and _is_used(frame, outers[-2], made)


def _is_used(frame: Frame, outer: ast.AST, node: ast.AST) -> bool:
    """Whether an expression or an assignment needs the value of a part of it."""
    if isinstance(outer, (ast.Assign, ast.AnnAssign, ast.Tuple)):
        target = target_of(frame.module, node)
        return target is not None and not (isinstance(target, ast.Name) and target.id.startswith("_"))
    if isinstance(outer, ast.Call):
        return True
    return isinstance(outer, (ast.Attribute, ast.keyword, ast.BinOp, ast.Subscript, ast.withitem))


def _expects_none(frame: Frame, node: ast.AST) -> bool:
    """Whether an assignment binds a name to a value that the function then asks for being ``None``."""
    target = target_of(frame.module, node)
    scope = enclosing(frame.module, node, *FUNCTIONS, ast.Module)
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
    if is_name(given, name):
        return Fix("Call it in a statement of its own", replace(source, outer, source.segment(node)))
    if not method or not isinstance(given, ast.Call):
        return None
    rest = source.segment(node)[len(source.segment(given)) :]
    return Fix(
        "Call it in a statement of its own",
        replace(source, outer, f"{name} = {source.segment(given)}\n{line}{name}{rest}"),
    )
