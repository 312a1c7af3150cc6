"""Modes that a GraphDef keeps (part of NNX849): ``nnx.split(model)`` before ``model.eval()``.

A mode is a static attribute, so it is in the GraphDef. What is merged with one from before a switch is in the mode from
before, and where nobody uses the object itself any more the switch does nothing.

Invariants: the object is made where it is split and switched, no loop comes back to the place, and nothing but NNX gets
the object, so that nobody else can have it in hand.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    binds,
    bound_in,
    canonical_of,
    enclosing,
    in_test,
    names_of_parameters,
    own_nodes,
)
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame


@judges_calls(rules.EVALUATED_IN_TRAINING, ".eval")
def split_before_switch(event: Called, report: Reporter) -> None:
    frame, module, call = event.frame, event.frame.module, event.node
    func = call.func if isinstance(call, ast.Call) else None
    model = func.value if isinstance(func, ast.Attribute) else None
    if not isinstance(model, ast.Name) or not isinstance(next(ancestors(module, call), None), ast.Expr):
        return
    scope, name = enclosing(module, call, *FUNCTIONS, ast.Module), model.id
    if scope is None or enclosing(module, call, *STATEMENT_LOOPS, *FUNCTIONS) not in {scope, None} or in_test(frame):
        return
    is_given = isinstance(scope, FUNCTIONS) and name in names_of_parameters(scope)
    if bound_in(scope)[name] != 1 or is_given or not _is_ours(frame, scope, name, call):
        return
    for split, kept in _splits(frame, scope, name):
        if begin(split) < begin(call) and bound_in(scope)[kept] == 1 and _is_merged_after(frame, scope, kept, call):
            layer = f"`{kept}`, which is split off it, keeps that mode, whatever `{name}.eval()` switches below"
            report(module, split, name=name, layer=layer)
            return


def _is_ours(frame: Frame, scope: ast.AST, name: str, switch: ast.AST) -> bool:
    """Whether nobody has an object in hand but functions of NNX, and nothing reads it after it was switched."""
    for node in walk(scope):
        if not isinstance(node, ast.Name) or node.id != name or isinstance(node.ctx, ast.Store):
            continue
        inner = enclosing(frame.module, node, *FUNCTIONS)
        if inner is not None and inner is not scope and binds(inner, name):
            continue  # another name
        outer = next(ancestors(frame.module, node), None)
        ours = isinstance(outer, ast.Call) and (canonical_of(frame.env, outer.func) or "").startswith("nnx.")
        if begin(node) > begin(switch) or not (ours or isinstance(outer, ast.Attribute)):
            return False
    return True


def _splits(frame: Frame, scope: ast.AST, name: str) -> Iterator[tuple[ast.Call, str]]:
    """The calls that split an object, with the names of their GraphDefs."""
    for node in own_nodes(scope):
        call, target = (node.value, node.targets[0]) if isinstance(node, ast.Assign) else (None, None)
        first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else None
        if not isinstance(call, ast.Call) or not isinstance(first, ast.Name) or not call.args:
            continue
        if is_name(call.args[0], name) and canonical_of(frame.env, call.func) == "nnx.split":
            yield call, first.id


def _is_merged_after(frame: Frame, scope: ast.AST, name: str, switch: ast.AST) -> bool:
    """Whether a GraphDef is merged after a place, there or in a function that is called after it."""
    after = [node for node in own_nodes(scope) if isinstance(node, ast.Name) and begin(node) > begin(switch)]
    for node in walk(scope):
        merges = isinstance(node, ast.Call) and bool(node.args) and is_name(node.args[0], name)
        if not merges or not isinstance(node, ast.Call) or canonical_of(frame.env, node.func) != "nnx.merge":
            continue
        func = enclosing(frame.module, node, *FUNCTIONS)
        if func is scope or func is None:
            if begin(node) > begin(switch):
                return True
        elif any(is_name(each, getattr(func, "name", "")) for each in after):
            return True
    return False
