"""Training steps that begin anew each time: an optimizer that is made in the compiled function, or in the loop that
takes the steps (NNX621).

Invariants: an optimizer that leaves the function or the round, or takes several steps in it, is meant to be made there;
so is one for a model that is made there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint import syntax_parameters
from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import TransformationVal
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import (
    FUNCTIONS,
    LOOPS,
    STATEMENT_LOOPS,
    ancestors,
    assigned_in,
    canonical_of,
    enclosing,
    given,
    in_test,
    is_tried,
)
from nnx_lint.rules.training.optimizers import OPTIMIZERS
from nnx_lint.syntax_walk import walk
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

COMPILING = frozenset({"jax.jit", "nnx.jit", "nnx.pmap", "jax.pmap"})
STATELESS = frozenset({"optax.sgd", "optax.sign_sgd"})
"""Optimizers that remember nothing between steps, without options that make them do so."""


@judges_calls(rules.OPTIMIZER_IN_STEP, *OPTIMIZERS)
def optimizer_in_step(event: Called, report: Reporter) -> None:
    frame, module, node = event.frame, event.frame.module, event.node
    scope = frame.scope[-1] if frame.scope else None
    if scope is None or scope.frame is not frame or scope.row.name not in COMPILING or in_test(frame):
        return
    model = given(event).node_of(0, "model")
    name = _bound_by(next(ancestors(module, node), None))
    if frame.func is None or name is None or not _is_parameter(frame, model) or _remembers_nothing(event):
        return
    if not is_tried(module, node) and _takes_one_step(module, frame.func.node, name.id):
        report(module, node, name=name.id, when=f"`{frame.func.name}` runs")


@judges_calls(rules.OPTIMIZER_IN_STEP, *OPTIMIZERS)
def optimizer_in_round(event: Called, report: Reporter) -> None:
    """An optimizer that each round of a loop makes for a model that was there before it, and steps once."""
    frame, module, node = event.frame, event.frame.module, event.node
    model, parent = given(event).node_of(0, "model"), next(ancestors(module, node), None)
    loop = enclosing(module, node, *LOOPS, *FUNCTIONS)
    if not isinstance(loop, STATEMENT_LOOPS) or parent not in loop.body:
        return
    name, tx = _bound_by(parent), given(event).get(1, "tx")
    if name is None or not isinstance(tx, TransformationVal) or in_test(frame):
        return
    root = model
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or assigned_in(loop)[root.id] or _is_set(loop, model):
        return
    if not _remembers_nothing(event) and _takes_one_step(module, loop, name.id):
        report(module, node, name=name.id, when="the loop goes round")


def _bound_by(statement: ast.AST | None) -> ast.Name | None:
    """The only name that a statement binds to the value that it computes."""
    several = isinstance(statement, ast.Assign) and len(statement.targets) != 1
    if several or not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    return target if isinstance(target, ast.Name) else None


def _is_set(loop: ast.AST, model: ast.expr | None) -> bool:
    """Whether a loop assigns the attribute that a model is."""
    stored = (node for node in walk(loop) if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load))
    return any(text_of(node) == text_of(model) for node in stored) if isinstance(model, ast.Attribute) else False


def _is_parameter(frame: Frame, model: ast.expr | None) -> bool:
    """Whether the model comes from the caller, who goes on with it."""
    arguments = frame.func.node.args if frame.func is not None else None
    names = syntax_parameters.positional_names(arguments) if arguments is not None else []
    return isinstance(model, ast.Name) and model.id in names


def _remembers_nothing(event: Called) -> bool:
    node, tx = given(event).node_of(1, "tx"), given(event).get(1, "tx")
    if not isinstance(node, ast.Call):
        return isinstance(tx, TransformationVal) and tx.maker in STATELESS
    return canonical_of(event.frame.env, node.func) in STATELESS and len(node.args) + len(node.keywords) < 2


def _takes_one_step(module: Module, top: ast.AST, name: str) -> bool:
    """Whether all that a function or a round of a loop does with an optimizer is to update it, once."""
    scope = top if isinstance(top, FUNCTIONS) else enclosing(module, top, *FUNCTIONS, ast.Module) or top
    uses = [node for node in walk(scope) if isinstance(node, ast.Name) and node.id == name]
    used = [node for node in uses if isinstance(node.ctx, ast.Load)]
    if assigned_in(scope)[name] != 1 or len(used) != 1:
        return False
    parent = next(ancestors(module, used[0]), None)
    loop = enclosing(module, used[0], *LOOPS, *FUNCTIONS)
    return isinstance(parent, ast.Attribute) and parent.attr == "update" and loop is top
