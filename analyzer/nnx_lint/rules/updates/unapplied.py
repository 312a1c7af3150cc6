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
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    canonical_of,
    enclosing,
    in_test,
    own_nodes,
    statement_of,
)
from nnx_lint.syntax.walk import children, remembered, walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Env, Module


@judges_calls(rules.STATE_NOT_APPLIED, "nnx.split", "nnx.state")
def state_not_applied(event: Called, report: Reporter) -> None:
    module, node = event.frame.module, event.node
    statement = statement_of(module, node)
    source = event.nodes[0] if event.nodes else None
    target = _taking(statement, node) if isinstance(statement, ast.Assign) else None
    if target is None or not isinstance(source, ast.Name) or in_test(event.frame):
        return
    scope = enclosing(module, node, *FUNCTIONS) or module.tree
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    for name in names[1:] if event.subject == "nnx.split" else names:
        if not isinstance(name, ast.Name):
            continue
        place = _trained(module, scope, name.id, source.id)
        what = "is trained here"
        if place is None:
            place, what = _edited(module, event.frame.env, scope, name.id), "is edited here"
        if place is None:
            place, what = _mapped(event, scope, name.id, source.id), "is made from its State here"
        if place is not None:
            report(module, place, name=name.id, what=what, model=source.id)
            return


def _taking(statement: ast.Assign, node: ast.AST) -> ast.expr | None:
    """The target that a statement binds to an expression, alone or as one of several."""
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return next((one for one, other in zip(target.elts, value.elts, strict=True) if other is node), None)
    return target if value is node and len(statement.targets) == 1 else None


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
        taken = {use for step in _leading_to(loop, steps) for use in _uses(step, name)}
        before = {use for use in read if use.lineno < loop.lineno and enclosing(module, use, *FUNCTIONS) is _own(scope)}
        later = [use for use in _uses(scope, model) if use not in inside and use.lineno > loop.lineno]
        # In the loop, too, the model is as it was: the loss of each round is that of the same parameters.
        lossy = [use for use in _uses(loop, model) if use not in taken and _is_differentiated(module, use)]
        if steps and read <= taken | before and any(isinstance(use.ctx, ast.Load) for use in [*later, *lossy]):
            return steps[0]
    return None


def _leading_to(loop: ast.AST, steps: list[ast.Assign]) -> list[ast.Assign]:
    """The statements of a loop that bind what a step reads, and the step itself."""
    found = list(steps)
    assigned = [item for item in walk(loop) if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call)]
    for step in found:
        wanted = {item.id for item in walk(step.value) if isinstance(item, ast.Name)}
        bound = [item for item in assigned if item not in found and wanted & _bound_by(item)]
        found += bound
    return found


def _bound_by(node: ast.Assign) -> set[str]:
    return {item.id for target in node.targets for item in walk(target) if isinstance(item, ast.Name)}


def _is_differentiated(module: Module, use: ast.Name) -> bool:
    """Whether a name is an argument of a gradient that is called where it is made."""
    call = next(ancestors(module, use), None)
    made = call.func if isinstance(call, ast.Call) and use in call.args else None
    return isinstance(made, ast.Call) and canonical_of(module.env, made.func) in DIFFERENTIATING


MAPS = frozenset({"jax.tree.map", "jax.tree_util.tree_map", "jax.tree.map_with_path", "nnx.map_state"})


def _mapped(event: Called, scope: ast.AST, name: str, model: str) -> ast.stmt | None:
    """The last statement that maps a State to one that nothing reads, in a function that goes on with the object or
    returns nothing.
    """
    module, env = event.frame.module, event.frame.env
    read = {use for use in _uses(scope, name) if isinstance(use.ctx, ast.Load)}
    steps = [item for item in own_nodes(scope) if isinstance(item, ast.Assign) and read.intersection(walk(item.value))]
    calls = [item.value for item in steps if isinstance(item.value, ast.Call)]
    if not steps or any(canonical_of(env, call.func) not in MAPS for call in calls) or len(calls) < len(steps):
        return None
    taken = {use for step in steps for use in walk(step.value)}
    targets = [step.targets[0] for step in steps]
    named = [target.id for target in targets if isinstance(target, ast.Name) and not target.id.startswith("_")]
    unread = all(each == name or not any(isinstance(use.ctx, ast.Load) for use in _uses(scope, each)) for each in named)
    last = steps[-1]
    later = any(use.lineno > last.lineno and isinstance(use.ctx, ast.Load) for use in _uses(scope, model))
    silent = not any(isinstance(item, (ast.Return, ast.Yield, ast.YieldFrom)) for item in own_nodes(scope))
    outer = enclosing(module, last, ast.For, ast.AsyncFor, ast.While, *FUNCTIONS)
    straight = (outer is None or outer is scope) and not isinstance(scope, ast.Module)
    return last if read <= taken and unread and (later or silent) and straight and len(named) == len(steps) else None


DIFFERENTIATING = frozenset({"nnx.grad", "nnx.value_and_grad"})


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


def _edited(module: Module, env: Env, scope: ast.AST, name: str) -> ast.stmt | None:
    """The statement that writes an entry of a State of which nothing else is read, or all of them."""
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
        filled = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(filled, ast.Call) and canonical_of(env, filled.func) == FILLING and filled.args[:1] == [use]:
            found = found or statement
            continue
        if not isinstance(statement, ast.Assign) or outer is use:
            return None
        place = statement.targets[0]
        if not isinstance(place, ast.Subscript) or not _is_entry(place, name):
            return None
        found = found or statement
    return found


FILLING = "nnx.replace_by_pure_dict"
"""The function that writes all entries of a State."""


def _is_entry(place: ast.Subscript, name: str) -> bool:
    """Whether a target is an entry of a State under literal keys, and not the value of a Variable in it."""
    node: ast.expr = place
    while isinstance(node, ast.Subscript):
        if not isinstance(node.slice, ast.Constant) or not isinstance(node.slice.value, (str, int)):
            return False
        node = node.value
    return isinstance(node, ast.Name) and node.id == name
