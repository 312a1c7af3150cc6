"""States that are trained or edited, and never put back into the object that they come from (NNX229).

``nnx.state`` and ``nnx.split`` take a State out of an object. What a functional training loop makes of it is a new
State, and what is written under a key of it is a new entry: the object is as it was, until ``nnx.update`` or
``nnx.merge`` gets the State.

Invariant: a State that anything reads after its last change is not judged, wherever that is.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Called
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import FUNCTIONS, STATEMENT_LOOPS, ancestors, enclosing, in_test, own_nodes, statement_of
from nnx_lint.syntax_walk import children, remembered, walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module


@judges_calls(rules.STATE_NOT_APPLIED, "nnx.split", "nnx.state")
def state_not_applied(event: Called, report: Reporter) -> None:
    module, node = event.frame.module, event.node
    statement = statement_of(module, node)
    source = event.nodes[0] if event.nodes else None
    if not isinstance(statement, ast.Assign) or statement.value is not node or len(statement.targets) != 1:
        return
    if not isinstance(source, ast.Name) or in_test(event.frame):
        return
    scope = enclosing(module, node, *FUNCTIONS) or module.tree
    target = statement.targets[0]
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    for name in names[1:] if event.subject == "nnx.split" else names:
        if not isinstance(name, ast.Name):
            continue
        place = _trained(module, scope, name.id, source.id)
        what = "is trained here"
        if place is None:
            place, what = _edited(module, scope, name.id), "is edited here"
        if place is not None:
            report(module, place, name=name.id, what=what, model=source.id)
            return


def _uses(scope: ast.AST, name: str) -> list[ast.Name]:
    """Where a name of a scope is used, but for the functions below that have a parameter of this name."""
    return _uses_by_name(scope).get(name, [])


@remembered
def _uses_by_name(scope: ast.AST) -> dict[str, list[ast.Name]]:
    found: dict[str, list[ast.Name]] = {}
    nodes = [(node, frozenset[str]()) for node in children(scope)]
    for node, hidden in nodes:
        if isinstance(node, FUNCTIONS):
            arguments = node.args
            parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            hidden = hidden.union(item.arg for item in parameters)
        elif isinstance(node, ast.Name) and node.id not in hidden:
            found.setdefault(node.id, []).append(node)
        nodes.extend((below, hidden) for below in children(node))
    return found


def _trained(module: Module, scope: ast.AST, name: str, model: str) -> ast.stmt | None:
    """The step of a loop that makes a State from itself, where the State is not read after it and the model is."""
    for loop in own_nodes(scope):
        if not isinstance(loop, STATEMENT_LOOPS):
            continue
        inside = set(walk(loop))
        steps = [item for item in walk(loop) if isinstance(item, ast.Assign) and _is_step(item, name)]
        read = {use for use in _uses(scope, name) if isinstance(use.ctx, ast.Load)}
        taken = {use for step in steps for use in _uses(step, name)}
        before = {use for use in read if use.lineno < loop.lineno and enclosing(module, use, *FUNCTIONS) is _own(scope)}
        later = [use for use in _uses(scope, model) if use not in inside and use.lineno > loop.lineno]
        if steps and read <= taken | before and any(isinstance(use.ctx, ast.Load) for use in later):
            return steps[0]
    return None


def _own(scope: ast.AST) -> ast.AST | None:
    return None if isinstance(scope, ast.Module) else scope


def _is_step(node: ast.Assign, name: str) -> bool:
    """Whether a statement binds a name to what a call makes of it: ``params, loss = step(params, x)``."""
    if len(node.targets) != 1 or not isinstance(node.value, ast.Call):
        return False
    target = node.targets[0]
    bound = target.elts if isinstance(target, ast.Tuple) else [target]
    given = [*node.value.args, *(item.value for item in node.value.keywords)]
    return any(isinstance(item, ast.Name) and item.id == name for item in bound) and any(
        isinstance(item, ast.Name) and item.id == name for item in given
    )


def _edited(module: Module, scope: ast.AST, name: str) -> ast.stmt | None:
    """The statement that writes an entry of a State of which nothing else is read."""
    found: ast.stmt | None = None
    for use in _uses(scope, name):
        if isinstance(use.ctx, ast.Store):
            continue
        outer: ast.AST = use
        for parent in ancestors(module, use):
            if not isinstance(parent, ast.Subscript) or parent.value is not outer:
                break
            outer = parent
        statement = statement_of(module, use)
        if not isinstance(statement, ast.Assign) or outer is use:
            return None
        place = statement.targets[0]
        if not isinstance(place, ast.Subscript) or not _is_entry(place, name):
            return None
        found = found or statement
    return found


def _is_entry(place: ast.Subscript, name: str) -> bool:
    """Whether a target is an entry of a State under literal keys, and not the value of a Variable in it."""
    node: ast.expr = place
    while isinstance(node, ast.Subscript):
        if not isinstance(node.slice, ast.Constant) or not isinstance(node.slice.value, (str, int)):
            return False
        node = node.value
    return isinstance(node, ast.Name) and node.id == name
