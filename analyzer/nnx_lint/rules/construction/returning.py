"""Functions that return nothing, and whose result is used (part of NNX867).

``loss = train_step(model, optimizer, batch)`` is ``None`` where the step forgets its last line, and the program fails
where it prints the loss. Invariants: the very function is known, no ``return`` in it has a value, and the result, under
the one name that it gets, is used for something that ``None`` cannot do.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.definitions import is_declaration
from nnx_lint.model.values import Const, Obj
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.bindings import target_of, values_in
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    enclosing,
    is_tried,
    own_nodes,
    own_statements,
    reads_of,
)
from nnx_lint.syntax.walk import remembered
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

NUMBERS = frozenset({"float", "int", "len", "round"})
"""Functions of Python that take numbers or arrays, and fail for ``None``."""

GIVING = (ast.Yield, ast.YieldFrom, ast.Await)


@judges_calls(rules.FORGOTTEN_RETURN, FuncVal, Transformed, BoundMethod)
def result_of_nothing(event: Called, report: Reporter) -> None:
    frame, node = event.frame, event.node
    if frame.discards is node or not isinstance(event.result, Const) or event.result.value is not None:
        return
    func = _called(event.callee)
    if func is None or not isinstance(node, ast.Call) or not returns_nothing(func.node) or is_declaration(func):
        return
    if not _is_needed(frame.module, node) or is_tried(frame.module, node):
        return
    target = target_of(frame.module, node)
    name = target.id if isinstance(target, ast.Name) else "..."
    place = related(func.module, func.node, f"`{func.name}` has no `return` with a value")
    report(frame.module, node, related=(place,), function=func.name, ends="ends without a value", name=name)


def _called(callee: Value) -> FuncVal | None:
    """The function that a call runs, if it is known to be this one: a method of an object that was seen to be made."""
    found: Value | None = callee
    while isinstance(found, (Transformed, BoundMethod)):
        receiver = found.receiver if isinstance(found, BoundMethod) else None
        if isinstance(receiver, Obj) and (receiver.origin is None or receiver.assumed):
            return None
        found = found.func
    return found if isinstance(found, FuncVal) and found.wraps is None else None


@remembered
def returns_nothing(func: ast.AST) -> bool:
    """Whether a function has statements, and none that gives a value, or leaves the program."""
    if not isinstance(func, ast.FunctionDef):
        return False
    returned = (each.value for each in own_statements(func) if isinstance(each, ast.Return))
    if any(value is not None for value in returned) or isinstance(func.body[-1], (ast.Raise, ast.Pass)):
        return False
    return not any(isinstance(each, GIVING) for each in own_nodes(func))


def _is_needed(module: Module, node: ast.AST) -> bool:
    """Whether the value of an expression is used for what ``None`` cannot do, at once or under its one name."""
    target = target_of(module, node)
    if target is None:
        return _needs(module, node)
    if not isinstance(target, ast.Name):
        return isinstance(target, (ast.List, ast.Tuple))
    scope, name = enclosing(module, node, *FUNCTIONS) or module.tree, target.id
    reads = reads_of(scope, name) if values_in(scope).get(name) == [node] else []
    return any(_needs(module, read) for read in reads) and not any(_asks(module, read) for read in reads)


def _needs(module: Module, node: ast.AST) -> bool:
    outer = next(ancestors(module, node), None)
    if isinstance(outer, ast.Call):
        named = isinstance(outer.func, ast.Name) and outer.func.id in NUMBERS
        return outer.func is node or (named and node in outer.args)
    if isinstance(outer, (ast.Attribute, ast.Subscript)):
        return outer.value is node
    if isinstance(outer, ast.FormattedValue):
        return outer.format_spec is not None
    if isinstance(outer, ast.Assign):
        return isinstance(outer.targets[0], (ast.List, ast.Tuple))
    return isinstance(outer, (ast.BinOp, ast.AugAssign, ast.Starred)) or (
        isinstance(outer, (ast.For, ast.comprehension)) and outer.iter is node
    )


def _asks(module: Module, node: ast.AST) -> bool:
    """Whether a place asks if there is something under a name."""
    outer = next(ancestors(module, node), None)
    tests = (ast.Assert, ast.BoolOp, ast.Compare, ast.If, ast.IfExp, ast.UnaryOp, ast.While)
    return isinstance(outer, tests)
