"""A learning rate that is set on an optimizer, where nothing reads it (NNX825).

The optimizers of PyTorch and Keras keep their rate, and a program changes it there. In NNX it is part of the
transformation, so the assignment makes one attribute more and the steps stay what they were.

Invariants: the object certainly is an ``nnx.Optimizer`` of the library itself, and nothing in the file reads an
attribute of this name.
"""

from __future__ import annotations

from nnx_lint.model.classes import LibClass
from nnx_lint.model.events import AttributeSet
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.program import attribute_reads
from nnx_rules.rules.variables import TENSOR_IDIOM

RATES = frozenset({"learning_rate", "lr"})

OPTIMIZERS = frozenset({"nnx.Optimizer", "nnx.ModelAndOptimizer"})


def sets_rate(event: AttributeSet) -> bool:
    """Whether an optimizer gets an attribute that is called like its learning rate."""
    return event.name in RATES and isinstance(event.obj.cls, LibClass) and event.obj.cls.canonical in OPTIMIZERS


@judges(TENSOR_IDIOM, AttributeSet, when=sets_rate)
def rate_of_optimizer(event: AttributeSet, report: Reporter) -> None:
    if not attribute_reads(event.frame.module.tree, event.name):
        problem = f"nothing reads `{event.name}` of an optimizer: its steps are as large as before"
        mend = (
            "hand a schedule to the transformation, or make it by `optax.inject_hyperparams` and set "
            '`optimizer.opt_state.hyperparams["learning_rate"][...]`'
        )
        report(event.frame.module, event.node, problem=problem, mend=mend)
