"""NNX61x: optimizers, averages and metrics."""

from nnx_rules.errors import (
    GradientsMismatchError,
    MetricArgumentError,
    MetricCallError,
    OptimizerArgumentError,
)
from nnx_rules.registry import Fixable, Rule, Severity, Versions

OPTIMIZER_WITHOUT_WRT = Rule(
    code="NNX610",
    name="optimizer-without-wrt",
    summary="An optimizer is made without saying what it optimizes.",
    message="`{cls}` got no `wrt`: which Variables of the model it optimizes",
    help="pass `wrt=nnx.Param`; code that calls `update(grads)` wants `nnx.ModelAndOptimizer`",
    exception=OptimizerArgumentError,
    fix=Fixable.SAFE,
    versions=Versions(flax_since=(0, 11)),
)
OPTIMIZER_UPDATE_ARGUMENTS = Rule(
    code="NNX611",
    name="optimizer-update-arguments",
    summary="`update` of an optimizer gets other arguments than the model and its gradients.",
    message="`{cls}.update` {problem}",
    help="{mend}",
    exception=OptimizerArgumentError,
    fix=Fixable.SAFE,
    versions=Versions(flax_since=(0, 11)),
)
GRADIENTS_MISMATCH = Rule(
    code="NNX612",
    name="gradients-mismatch",
    summary="An optimizer gets gradients of something else than what it optimizes.",
    message="the gradients {problem}",
    help="differentiate with respect to what the optimizer was made for: `nnx.grad(f, argnums=nnx.DiffState(0, wrt))`",
    exception=GradientsMismatchError,
    fix=Fixable.SAFE,
)
METRIC_MISSING_ARGUMENT = Rule(
    code="NNX613",
    name="metric-missing-argument",
    summary="A metric is updated without the argument that it measures.",
    message="`{cls}.update` needs `{name}=`, and got {given}",
    help="pass it by this name, or make the metric with another: `{cls}(argname=...)`",
    exception=MetricCallError,
    fix=Fixable.SAFE,
)
METRIC_ARGUMENT = Rule(
    code="NNX614",
    name="metric-argument",
    summary="A metric gets an argument that it has no meaning for.",
    message="`{cls}`: {problem}",
    help="{mend}",
    exception=MetricArgumentError,
    fix=Fixable.SAFE,
)
OPTIMIZER_MODEL_ATTRIBUTE = Rule(
    code="NNX615",
    name="optimizer-model-attribute",
    summary="The model is asked of an optimizer that does not keep it.",
    message="`{cls}` keeps no model, so it has no `.model`",
    help="use the model itself; `nnx.ModelAndOptimizer` is the one that keeps it",
    fix=Fixable.SAFE,
    versions=Versions(flax_since=(0, 11)),
)
OPTIMIZER_WITHOUT_VARIABLES = Rule(
    code="NNX616",
    name="optimizer-without-variables",
    summary="The filter of an optimizer takes no Variable of the model, so that training changes nothing.",
    message="no Variable of `{model}` is taken by wrt={wrt}: each update counts a step and changes nothing",
    help="the Variables of the model are of type {types}: pass a filter that takes those to be trained",
)
OPTIMIZER_OLDER_THAN_MODEL = Rule(
    code="NNX617",
    name="optimizer-older-than-model",
    summary="A model got parameters after its optimizer was made.",
    message="`{path}` was set after the optimizer had been made, and the optimizer has no state for its parameters",
    help="change the model first and make the optimizer afterwards",
)
OPTIMIZER_TRANSFORMATION = Rule(
    code="NNX618",
    name="optimizer-transformation",
    summary="An optimizer gets no optax transformation or no model, or a transformation other arguments than it takes.",
    message="`{cls}` {problem}",
    help="{mend}",
    fix=Fixable.UNSAFE,
)
METRIC_CONTRACT = Rule(
    code="NNX619",
    name="metric-contract",
    summary="A metric class lacks a method that the base class only declares, or calls the declaration.",
    message="`{cls}` {problem}",
    help="{mend}",
    fix=Fixable.SAFE,
)
EMA_OF_OTHER_VALUES = Rule(
    code="NNX620",
    name="ema-of-other-values",
    summary="An average is kept of a model that holds arrays outside of Variables, or random streams.",
    message="`nnx.EMA` averages Variables of floats, and `{path}` is {value}",
    help="pass `only=nnx.Param`",
    fix=Fixable.SAFE,
)
OPTIMIZER_IN_STEP = Rule(
    code="NNX621",
    name="optimizer-made-in-step",
    summary="A training step makes its optimizer: what that remembers is lost after each step.",
    message="`{name}` is made anew each time {when}, so its moments and its count of steps begin at zero",
    help="make it once, before the first step, and keep it",
    severity=Severity.WARNING,
)
LOSS_ARGUMENTS = Rule(
    code="NNX622",
    name="loss-arguments",
    summary="A loss, or what draws from logits, gets logits, labels or targets in another form than it takes.",
    message="`{name}` {problem}",
    help="{mend}",
)

METRIC_NOT_RESET = Rule(
    code="NNX623",
    name="metric-not-reset",
    summary="A metric is computed for each epoch and never reset: each value averages over all epochs so far.",
    message="`{name}` is {lacking}: what it computes here is of {what}",
    help="call `{name}.reset()` after `compute()`, or at the start of each round",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)

GRADIENTS_NOT_APPLIED = Rule(
    code="NNX624",
    name="gradients-not-applied",
    summary="A training step has an optimizer, computes gradients and does not update with them.",
    message="`{name}` are computed and go nowhere, and `{optimizer}` is not used: nothing is trained",
    help="update with them: `{optimizer}.update(model, {name})`",
    severity=Severity.WARNING,
)

EMPTY_METRIC = Rule(
    code="NNX625",
    name="empty-metric",
    summary="A metric is reset, and computed before anything is put into it again.",
    message="`{name}` was reset before this, and nothing has been put into it since",
    help="compute first, and reset then",
    fix=Fixable.UNSAFE,
)

USED_UP_BATCHES = Rule(
    code="NNX626",
    name="used-up-batches",
    summary="A training loop goes through a generator that its first round, or something before it, uses up.",
    message="`{name}` is an iterator, which {used}",
    help="make it anew for each time, `for batch in {maker}:`, or a list of it",
)

BROKEN_GRADIENT_SUM = Rule(
    code="NNX627",
    name="broken-gradient-sum",
    summary="Gradients that are to be summed over several batches replace the sum, or the sum is never emptied.",
    message="`{name}` is to be a sum of gradients, and {so}",
    help="write {mend}",
    severity=Severity.WARNING,
)

AVERAGE_WEIGHTS = Rule(
    code="NNX628",
    name="average-weights-swapped",
    summary="A moving average, such as a target network, takes nearly all of the newest values in each step.",
    message="`{name}` keeps {share} of `{old}`, which it replaces, and takes all the rest of `{new}`",
    help=(
        "swap the two, or their weights: `optax.incremental_update(new, old, step_size)` takes the step of the new "
        "values, such as 0.005, or one minus a decay"
    ),
    severity=Severity.WARNING,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
