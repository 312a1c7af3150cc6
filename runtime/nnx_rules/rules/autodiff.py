"""NNX46x: differentiation, and the arguments of functions that are traced."""

from nnx_rules.registry import Fixable, Rule, Severity

NOTHING_TO_TRAIN = Rule(
    code="NNX460",
    name="gradient-of-no-params",
    summary="A module is differentiated that has no `nnx.Param`: the gradient is empty.",
    message="`{transform}` differentiates {what}",
    help="{mend}",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
NO_PARAMS = "the `nnx.Param`s of `{name}`, and `{cls}` has none: the gradient is empty"
TRAIN_OR_SAY_WHAT = "make what is trained an `nnx.Param`, or say what it is: `argnums=nnx.DiffState(0, {kind})`"
TRAIN_THE_MODEL = "differentiate with respect to the model: `nnx.grad(loss_fn)(model, ...)`"
NO_STATE_TO_TRAIN = "`{name}`, a State of `{kind}`: no training step changes those by gradients"
NAMES_OF_STATES = "what is trained is the State of `nnx.Param`: look at the order of the filters that made both"
NO_NUMBERS = "`{name}`, the structure that `nnx.merge` takes first: it holds no numbers, and has no gradient"
SAY_STATE = "differentiate by the State that is merged with it: "
JAX_GRAD_OF_STREAMS = Rule(
    code="NNX461",
    name="jax-grad-of-integers",
    summary="A transform of JAX differentiates a whole module or State, random streams and counters included.",
    message="`{transform}` differentiates all of `{name}`, and `{path}` is of integers",
    help="{mend}",
    fix=Fixable.UNSAFE,
)
PARAMS_ONLY = "use `{name}`, which differentiates the `nnx.Param`s only"
SPLIT_OFF = "differentiate by the parameters: `graphdef, params, rest = nnx.split(model, nnx.Param, ...)`"
GRADIENT_RESULTS = Rule(
    code="NNX462",
    name="gradient-results",
    summary="What a differentiated function, or a step, returns is unpacked into another structure than it has.",
    message="`{transform}`{aux} {verb} {results}, and {problem}",
    help="write `{mend} = ...`",
    fix=Fixable.SAFE,
)
TUPLE_LOSS = Rule(
    code="NNX463",
    name="loss-is-tuple",
    summary="A function is differentiated that returns a tuple, without `has_aux=True`, or no number at all.",
    message="`{transform}` differentiates one number, and `{function}` returns {given}",
    help="{mend}",
    fix=Fixable.UNSAFE,
)
GRADIENT_AS_MODULE = Rule(
    code="NNX464",
    name="gradient-called",
    summary="A State, such as the result of `nnx.grad`, is called like the module.",
    message="`{name}` is a State, and {problem}",
    help="call the module, or `nnx.merge(graphdef, {name})`; give gradients to `optimizer.update(model, {name})`",
)
TRACED_FLAG = Rule(
    code="NNX465",
    name="traced-condition",
    summary="A traced function decides by a Python condition on a value that is not known while JAX traces.",
    message="`{name}` is {what}, so its value is not known to this condition",
    help="{mend}",
    fix=Fixable.SAFE,
)
DONATED_THEN_USED = Rule(
    code="NNX467",
    name="donated-then-used",
    summary="An argument is used after its buffers were donated to a compiled function.",
    message="`{name}` was donated to the call of `{function}`, and its arrays are gone",
    help="use what `{function}` returns, copy `{name}` before: `jax.tree.map(jnp.copy, {name})`, or do not donate it",
    fix=Fixable.SAFE,
)
REDUCE_AXES = Rule(
    code="NNX468",
    name="reduce-axes",
    summary="`reduce_axes` is given, which nothing supports any more.",
    message="`{transform}` has no `reduce_axes` any more",
    help="sum over the axes inside of the function: `jax.lax.psum`",
    fix=Fixable.SAFE,
)
TRACED_SIZE = Rule(
    code="NNX469",
    name="traced-size",
    summary="An array of a traced object is used where Python needs an int.",
    message="`{name}` is traced under `{transform}`, and `{function}` needs a Python int",
    help="keep sizes as plain ints: a static argument, a static attribute, or `nnx.static(...)`; "
    "`jax.lax.dynamic_slice_in_dim` begins where an array says",
    fix=Fixable.UNSAFE,
)
TRACED_VALUE = Rule(
    code="NNX470",
    name="traced-value",
    summary="A number is taken out of an array whose value is not known while JAX traces.",
    message="`{name}` is traced under `{transform}`, and `{function}` needs its value",
    help="compute with `jax.numpy`, and take numbers out of what the compiled function returns; "
    '`jax.debug.print("{{x}}", x=x)` prints them from inside',
)
VALUE_DEPENDENT_SIZE = Rule(
    code="NNX475",
    name="value-dependent-size",
    summary="An array is asked for whose size depends on values that are not known while JAX traces.",
    message="the values in `{name}` decide the size of the result, and it is traced under `{transform}`",
    help="{mend}",
)
MASKED_GRADIENT = Rule(
    code="NNX477",
    name="masked-gradient",
    summary="A gradient is NaN where `jnp.where` leaves out what has no derivative.",
    message="`jnp.where` computes `{name}` where `{condition}` leaves it out, too, and its gradient is NaN there",
    help="{mend}",
    severity=Severity.WARNING,
)
DEBUG_FIELDS = Rule(
    code="NNX478",
    name="debug-print-fields",
    summary="`jax.debug.print` gets arguments that its text has no fields for, or too few for its fields.",
    message="the text of `jax.debug.print` {problem}: it raises an error where JAX traces",
    help="{mend}",
)
ZERO_GRADIENT = Rule(
    code="NNX479",
    name="zero-gradient",
    summary="A loss depends on the parameters by indices, rounding or comparisons only: its gradient is zero.",
    message="`{name}` has no slope, and the loss depends on {of} through it alone: all gradients are zero, and nothing "
    "is learned",
    help="compute the loss of the scores themselves, as `optax.softmax_cross_entropy_with_integer_labels` does; what "
    "counts correct answers is a metric",
    severity=Severity.WARNING,
)
STRAIGHT_THROUGH_SWAPPED = Rule(
    code="NNX480",
    name="straight-through-swapped",
    summary="A value is to be made discrete with the gradient of the original one, and has another value or gradient.",
    message="`{text}` has {problem}",
    help="write `{raw} + jax.lax.stop_gradient({hard} - {raw})`",
    severity=Severity.WARNING,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
