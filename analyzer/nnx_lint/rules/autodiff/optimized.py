"""Optimizers that are differentiated in the place of the model that they step (NNX460).

``nnx.value_and_grad(loss_fn)(optimizer)`` has the gradients of the Params of the optimizer, and there are none: the
model is not part of it. A loss that takes its model from around it gives a value all the same.

Invariant: the optimizer is certainly of the kind that gets its model for each update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.callables import Transformed
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import present
from nnx_lint.model.uses import OPTIMIZER
from nnx_lint.model.values import Obj
from nnx_lint.relevance import KEEPER
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.autodiff.gradients import NNX_GRAD, differentiated, differentiates
from nnx_lint.rules.callees import compiled_by
from nnx_rules.rules import autodiff as rules
from nnx_rules.rules import training

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module


@judges_calls(rules.NOTHING_TO_TRAIN, Transformed, when=differentiates)
def gradient_of_optimizer(event: Called, report: Reporter) -> None:
    module = event.frame.module
    applied = compiled_by(event.callee).applied if isinstance(event.callee, Transformed) else None
    if applied is None or applied.row.name not in NNX_GRAD:
        return
    for value, node in differentiated(event):
        optimizer = present(value)
        if isinstance(optimizer, Obj) and optimizer.cls is OPTIMIZER and _keeps_no_model(optimizer, module, report):
            what = rules.NO_PARAMS.format(name=text_of(node), cls="Optimizer")
            report(module, node, transform=applied.text, what=what, mend=rules.TRAIN_THE_MODEL)


def _keeps_no_model(optimizer: Obj, module: Module, report: Reporter) -> bool:
    if not training.OPTIMIZER_WITHOUT_WRT.versions.holds(*report.runs_on(module)):
        return False  # all did before that version
    heirs = module.project.heirs
    return not optimizer.assumed or not (heirs.possible(KEEPER) or heirs.possible("Optimizer"))
