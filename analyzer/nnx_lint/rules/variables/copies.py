"""Values of Variables that a function takes out, changes and never puts back (NNX225).

``kernel = layer.kernel[...]`` gives the array a name. ``kernel += delta`` and ``kernel = kernel.at[0].set(x)`` make
another array, and give the name to that: the Variable stays as it was. It is a mistake where the function says nothing
more of the name, so that what it has computed is lost.

Invariants: the name belongs to the function alone, and is bound to the value of a Variable and to what is computed from
itself; the last of these is read nowhere, in no later round of a loop either.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.events import Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import present
from nnx_lint.model.values import ArrayAttr, HostArray, Obj
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.program import (
    STATEMENT_LOOPS,
    ancestors,
    in_test,
    outer_names,
    own_nodes,
    own_set,
    reads_of,
    resolved,
    statement_of,
)
from nnx_lint.rules.variables.operators import is_variable
from nnx_lint.syntax.binding import is_name, names_in
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

    Function = ast.FunctionDef | ast.AsyncFunctionDef

Change = ast.Assign | ast.AnnAssign | ast.AugAssign


def takes_value(event: Used) -> bool:
    """Whether the whole value of a Variable is read."""
    return event.what in {"an index", "value"} and isinstance(event.node, (ast.Subscript, ast.Attribute))


@judges(rules.UNUSED_RESULT, Used, when=takes_value)
def changed_copy(event: Used, report: Reporter) -> None:
    frame, node = event.frame, event.node
    func = frame.func.node if frame.func is not None else None
    owner = node.value if isinstance(node, (ast.Subscript, ast.Attribute)) else None
    if not isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)) or owner is None or not _is_whole(node):
        return
    held = (event.value.args or {}).get("value") if isinstance(event.value, Obj) else None
    if isinstance(held, HostArray) or in_test(frame):
        return  # an array of numpy is changed in place
    module = frame.module
    statement = statement_of(module, node)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return
    change: Change | None = None
    name = _name_bound(statement)
    if name is None or name.startswith("_"):
        return
    if statement.value is node:
        change = _last_change(func, name, statement)
    elif is_name(owner, name):
        change = statement
    if change is None or not _is_lost(module, func, name, change, statement if statement is not change else None):
        return
    shown = change if isinstance(change, ast.AugAssign) else change.value
    if shown is not None:
        mend = f"write it into the Variable: `{text_of(node)} = ...`"
        report(module, change, name=module.source.segment(shown), result="makes a new array", mend=mend)


def updates_variable(event: Called) -> bool:
    """Whether an update of an array, ``variable.at[...].set(x)``, is computed of a Variable."""
    callee = event.callee
    return isinstance(callee, ArrayAttr) and callee.owner == "at" and callee.name != "get"


@judges(rules.UNUSED_RESULT, Called, when=updates_variable)
def changed_variable(event: Called, report: Reporter) -> None:
    """The same for a name of the Variable itself, which knows how to compute such an update."""
    frame, node, module = event.frame, event.node, event.frame.module
    func = frame.func.node if frame.func is not None else None
    statement = statement_of(module, node)
    at = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    owner = at.value.value if isinstance(at, ast.Subscript) and isinstance(at.value, ast.Attribute) else None
    if not isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)) or owner is None or in_test(frame):
        return
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is not node:
        return
    name, held = _name_bound(statement), resolved(frame.env, owner)
    if name is None or name.startswith("_") or not is_variable(present(held) if held is not None else None):
        return
    if _is_lost(module, func, name, statement, None):
        mend = f"write into the Variable: `{text_of(owner)}[...] = ...`"
        report(module, node, name=module.source.segment(node), result="makes a new array", mend=mend)


def _is_whole(node: ast.AST) -> bool:
    """Whether an expression is ``variable[...]`` or ``variable.value``."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value is ...
    return isinstance(node, ast.Attribute) and node.attr == "value"


def _name_bound(statement: Change) -> str | None:
    """The name that an assignment binds, and nothing else."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None


def _last_change(func: Function, name: str, taken: ast.stmt) -> Change | None:
    """The statement that binds a name last, if it computes from it; ``None`` if another one binds it than these."""
    binding = _binding(func)
    changes = [node for node in binding.statements.get(name, ()) if node is not taken and _changes(node, name)]
    if not changes or binding.times[name] != len(changes) + 1:
        return None
    last = max(changes, key=begin)
    return last if begin(last) > begin(taken) else None


class _Binding(NamedTuple):
    """The assignments of a function that bind one name and nothing else, by it, and how often it binds each name."""

    statements: dict[str, list[Change]]
    times: Counter[str]


@remembered
def _binding(func: Function) -> _Binding:
    found = _Binding({}, Counter())
    for node in own_nodes(func):
        if isinstance(node, ast.Name):
            found.times[node.id] += not isinstance(node.ctx, ast.Load)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            name = _name_bound(node)
            if name is not None:
                found.statements.setdefault(name, []).append(node)
    return found


def _changes(statement: Change, name: str) -> bool:
    """Whether an assignment to a name computes from what it was."""
    return isinstance(statement, ast.AugAssign) or (statement.value is not None and name in names_in(statement.value))


def _is_lost(module: Module, func: Function, name: str, change: Change, taken: ast.stmt | None) -> bool:
    """Whether nothing reads a name after a change, and no other scope has to do with it."""
    nodes = own_set(func)
    if name in outer_names(func):
        return False
    own, loops = set(walk(change)), _loops_around(module, func, change)
    if taken is not None and _loops_around(module, func, taken) != loops:
        return False
    bound = taken is not None or (bool(loops) and _binds(loops[0], name))  # anew in each round
    again = {node for loop in loops for node in walk(loop)} if not bound else set[ast.AST]()
    first = begin(taken) if taken is not None else (0, 0)
    return all(
        read in nodes and read not in again - own and (read in own or first < begin(read) < begin(change))
        for read in reads_of(func, name)
    )


def _loops_around(module: Module, func: Function, node: ast.AST) -> list[ast.AST]:
    around = itertools.takewhile(lambda outer: outer is not func, ancestors(module, node))
    return [outer for outer in around if isinstance(outer, STATEMENT_LOOPS)]


def _binds(loop: ast.AST, name: str) -> bool:
    """Whether a loop has a name for its element."""
    target = loop.target if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    return target is not None and name in names_in(target)
