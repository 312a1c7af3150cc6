"""Training steps that begin anew each time: an optimizer that is made in the compiled function (NNX621).

Invariant: an optimizer that leaves the function, or takes several steps in it, is meant to be made there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Called
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import (
    FUNCTIONS,
    LOOPS,
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
    parent = next(ancestors(module, node), None)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or frame.func is None:
        return
    name = parent.targets[0]
    if not isinstance(name, ast.Name) or not _is_parameter(frame, model) or _remembers_nothing(event):
        return
    if not is_tried(module, node) and _takes_one_step(module, frame.func.node, name.id):
        report(module, node, name=name.id, function=frame.func.name)


def _is_parameter(frame: Frame, model: ast.expr | None) -> bool:
    """Whether the model comes from the caller, who goes on with it."""
    arguments = frame.func.node.args if frame.func is not None else None
    names = [item.arg for item in (*arguments.posonlyargs, *arguments.args)] if arguments is not None else []
    return isinstance(model, ast.Name) and model.id in names


def _remembers_nothing(event: Called) -> bool:
    node = given(event).node_of(1, "tx")
    name = canonical_of(event.frame.env, node.func) if isinstance(node, ast.Call) else None
    return isinstance(node, ast.Call) and name in STATELESS and len(node.args) + len(node.keywords) < 2


def _takes_one_step(module: Module, func: ast.AST, name: str) -> bool:
    """Whether all that a function does with an optimizer is to update it, once."""
    uses = [node for node in walk(func) if isinstance(node, ast.Name) and node.id == name]
    used = [node for node in uses if isinstance(node.ctx, ast.Load)]
    if assigned_in(func)[name] != 1 or len(used) != 1:
        return False
    parent = next(ancestors(module, used[0]), None)
    loop = enclosing(module, used[0], *LOOPS, *FUNCTIONS)
    return isinstance(parent, ast.Attribute) and parent.attr == "update" and loop is func
