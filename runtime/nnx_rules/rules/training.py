"""NNX61x: optimizers, averages and metrics."""

from nnx_rules.errors import (
    GradientsMismatchError,
    MetricArgumentError,
    MetricCallError,
    OptimizerArgumentError,
)
from nnx_rules.registry import Rule

OPTIMIZER_WITHOUT_WRT = Rule(
    code="NNX610",
    name="optimizer-without-wrt",
    summary="An optimizer is made without saying what it optimizes.",
    message="`{cls}` got no `wrt`: which Variables of the model it optimizes",
    help="pass `wrt=nnx.Param`; code that calls `update(grads)` wants `nnx.ModelAndOptimizer`",
    exception=OptimizerArgumentError,
)
OPTIMIZER_UPDATE_ARGUMENTS = Rule(
    code="NNX611",
    name="optimizer-update-arguments",
    summary="`update` of an optimizer gets other arguments than the model and its gradients.",
    message="`{cls}.update` {problem}",
    help="{mend}",
    exception=OptimizerArgumentError,
)
GRADIENTS_MISMATCH = Rule(
    code="NNX612",
    name="gradients-mismatch",
    summary="An optimizer gets gradients of something else than what it optimizes.",
    message="the gradients {problem}",
    help="differentiate with respect to what the optimizer was made for: `nnx.grad(f, argnums=nnx.DiffState(0, wrt))`",
    exception=GradientsMismatchError,
)
METRIC_MISSING_ARGUMENT = Rule(
    code="NNX613",
    name="metric-missing-argument",
    summary="A metric is updated without the argument that it measures.",
    message="`{cls}.update` needs `{name}=`, and got {given}",
    help="pass it by this name, or make the metric with another: `{cls}(argname=...)`",
    exception=MetricCallError,
)
METRIC_ARGUMENT = Rule(
    code="NNX614",
    name="metric-argument",
    summary="A metric gets an argument that it has no meaning for.",
    message="`{cls}`: {problem}",
    help="{mend}",
    exception=MetricArgumentError,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
