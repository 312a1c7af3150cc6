"""Functions that return nothing, and whose result is used, or that say what they return (part of NNX867).

``loss = train_step(model, optimizer, batch)`` is ``None`` where the step forgets its last line, and the program fails
where it prints the loss. Invariants: the very function is known, no ``return`` in it has a value, and the result, under
the one name that it gets, is used for something that ``None`` cannot do; or a method of a module is annotated with what
it returns, and its last statement goes on with names of its own.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.definitions import is_declaration
from nnx_lint.model.events import ClassDefined
from nnx_lint.model.values import Const, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.bindings import target_of, values_in
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    certain_block,
    enclosing,
    is_tried,
    outer_names,
    own_nodes,
    own_statements,
    reads_of,
)
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

NUMBERS = frozenset({"float", "int", "len", "round"})
"""Functions of Python that take numbers or arrays, and fail for ``None``."""

GIVING = (ast.Yield, ast.YieldFrom, ast.Await)


@judges_calls(rules.FORGOTTEN_RETURN, FuncVal, Transformed, BoundMethod, PartialVal)
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


@judges(rules.FORGOTTEN_RETURN, ClassDefined)
def promised(event: ClassDefined, report: Reporter) -> None:
    """A method that says what it returns, and ends where it has made it: `def blocks(self) -> list:`."""
    for name, func in event.cls.methods.items():
        node = func.node if isinstance(func, FuncVal) and func.wraps is None else None
        if not isinstance(node, ast.FunctionDef) or node.returns is None or node.decorator_list or name == "__call__":
            continue  # of a forward pass more is known: `forgotten_return`
        of_items = node.returns.value if isinstance(node.returns, ast.Subscript) else node.returns
        last, said = _last(node), last_name(of_items)
        if last is None or said in UNSAID or not said or not returns_nothing(node):
            continue
        if event.cls.derives_from("nnx.Module") and not is_tried(event.frame.module, node):
            function, ends = f"{event.cls.name}.{name}", f"is to return `{ast.unparse(node.returns)}`"
            report(event.cls.module, node.body[-1], function=function, ends=ends, name=last)


UNSAID = frozenset(
    {"Any", "AsyncIterator", "Generator", "Iterable", "Iterator", "Never", "NoReturn", "None", "Optional"}
)
"""Annotations that allow a function to give nothing, or to give what it returns in another way."""


def _last(func: ast.FunctionDef) -> str | None:
    """The name of its own that the last statement of a function binds, fills or changes."""
    last = func.body[-1]
    while inner := last.body if isinstance(last, (ast.For, ast.If)) else certain_block(last):
        last = inner[-1]
    target: ast.AST | None = None
    if isinstance(last, ast.Assign):
        target = last.targets[0]
    elif isinstance(last, (ast.AnnAssign, ast.AugAssign)):
        target = last.target
    elif isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and isinstance(last.value.func, ast.Attribute):
        target = last.value.func.value
    named = isinstance(target, ast.Name) and assigned_in(func)[target.id]
    return target.id if isinstance(target, ast.Name) and named and target.id not in outer_names(func) else None


def _called(callee: Value) -> FuncVal | None:
    """The function that a call runs, if it is known to be this one: a method of an object that was seen to be made."""
    found: Value | None = callee
    while isinstance(found, (Transformed, BoundMethod, PartialVal)):
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


def _is_needed(module: Module, node: ast.AST, depth: int = 3) -> bool:
    """Whether the value of an expression is used for what ``None`` cannot do, at once or under its one name, or under
    another name for that.
    """
    target = target_of(module, node)
    if target is None:
        return _needs(module, node)
    if not isinstance(target, ast.Name):
        return isinstance(target, (ast.List, ast.Tuple))
    scope, name = enclosing(module, node, *FUNCTIONS) or module.tree, target.id
    reads = reads_of(scope, name) if values_in(scope).get(name) == [node] else []
    if any(_asks(module, read) for read in reads):
        return False
    named = [read for read in reads if isinstance(target_of(module, read), ast.Name)] if depth else []
    return any(_needs(module, read) for read in reads) or any(_is_needed(module, each, depth - 1) for each in named)


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
