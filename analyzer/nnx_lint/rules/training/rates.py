"""A learning rate that is set on an optimizer, where nothing reads it, or sought where none is kept (NNX825, NNX618).

The optimizers of PyTorch and Keras keep their rate, and a program changes it there. In NNX it is part of the
transformation, so the assignment makes one attribute more and the steps stay what they were. Only what
`optax.inject_hyperparams` makes keeps its rate in its state, under `hyperparams`.

Invariants: the object certainly is an ``nnx.Optimizer`` of the library itself, and nothing in the file reads an
attribute of this name; what is said of a state is said of the optimizer that a name is bound to once, or of the only
one that the file makes, where a function is handed one or an object has one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.classes import LibClass
from nnx_lint.model.events import AttributeSet, OtherAttributeSet
from nnx_lint.model.states import TransformationVal
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.program import (
    FUNCTIONS,
    assigned_in,
    attribute_reads,
    calls_in,
    enclosing,
    given,
    is_asked_for,
    is_tried,
    parameters_in,
)
from nnx_lint.rules.training.optimizers import FACTORIES
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import last_name
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules.training import OPTIMIZER_TRANSFORMATION
from nnx_rules.rules.variables import TENSOR_IDIOM

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value

RATES = frozenset({"learning_rate", "lr"})
NAMES = frozenset(name.rpartition(".")[2] for name in OPTIMIZERS)

MEND = (
    "hand a schedule to the transformation, or make it by `optax.inject_hyperparams` and set "
    '`optimizer.opt_state.hyperparams["learning_rate"][...]`'
)


def _is_optimizer(value: Value) -> bool:
    return isinstance(value, Obj) and isinstance(value.cls, LibClass) and value.cls.canonical in OPTIMIZERS


def sets_rate(event: AttributeSet) -> bool:
    """Whether an optimizer gets an attribute that is called like its learning rate."""
    return event.name in RATES and _is_optimizer(event.obj)


@judges(TENSOR_IDIOM, AttributeSet, when=sets_rate)
def rate_of_optimizer(event: AttributeSet, report: Reporter) -> None:
    if not attribute_reads(event.frame.module.tree, event.name):
        problem = f"nothing reads `{event.name}` of an optimizer: its steps are as large as before"
        report(event.frame.module, event.node, problem=problem, mend=MEND)


@judges(TENSOR_IDIOM, OtherAttributeSet, of=(BoundMethod,), when=lambda event: event.name in RATES)
def rate_of_transformation(event: OtherAttributeSet, report: Reporter) -> None:
    """The same for `optimizer.tx`, whose functions know the rate that they were made with."""
    kept = event.value
    if isinstance(kept, BoundMethod) and kept.name == "tx" and _is_optimizer(kept.receiver):
        problem = f"nothing reads `{event.name}` of a transformation: its steps are as large as before"
        report(event.frame.module, event.node, problem=problem, mend=MEND)


@judges_calls(OPTIMIZER_TRANSFORMATION, *OPTIMIZERS)
def rate_not_kept(event: Called, report: Reporter) -> None:
    """The state of a transformation is asked for its rate, and keeps none."""
    module, tx = event.frame.module, given(event).get(1, "tx")
    maker = tx.maker if isinstance(tx, TransformationVal) else ""
    if (maker not in FACTORIES and maker != "chain") or not module.mentions("hyperparams"):
        return
    scope = enclosing(module, event.node, *FUNCTIONS) or module.tree
    reads = attribute_reads(module.tree, "hyperparams")
    bound = bound_to(module, event.node) if reads else None
    if bound is None or not isinstance(bound.target, (ast.Attribute, ast.Name)):
        return
    name = last_name(bound.target) or ""
    alone = scope is module.tree or isinstance(bound.target, ast.Attribute)
    alone = alone and sum(last_name(call.func) in NAMES for call in calls_in(module.tree)) == 1
    if isinstance(bound.target, ast.Name) and assigned_in(scope)[name] != 1:
        return
    for read in reads:
        state = read.value
        if not isinstance(state, ast.Attribute) or state.attr != "opt_state":
            continue
        func = enclosing(module, read, *FUNCTIONS)
        own = isinstance(bound.target, ast.Name) and is_name(state.value, name) and (func or scope) is scope
        handed = isinstance(state.value, ast.Attribute) and state.value.attr == name
        if isinstance(state.value, ast.Name) and func is not None:
            handed = parameters_in(func)[state.value.id] > 0 and not assigned_in(func)[state.value.id]
        if (own or (alone and handed)) and not is_tried(module, read) and not is_asked_for(module, read):
            kept = "is a tuple, one state for each part" if maker == "chain" else "keeps no rate"
            problem = f"was made with `optax.{maker}`, whose state {kept}, and is asked for `hyperparams`"
            mend = (
                f"make it by `optax.inject_hyperparams(optax.{maker})(learning_rate=...)`"
                if maker != "chain"
                else "give the place of the part that has them: `opt_state[1].hyperparams`"
            )
            report(module, read, cls=name, problem=problem, mend=mend)
            return
