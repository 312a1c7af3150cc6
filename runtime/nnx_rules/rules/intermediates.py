"""NNX64x: values that modules sow, perturb and capture."""

from nnx_rules.registry import Fixable, Rule, Severity

SOWN_NOT_COLLECTED = Rule(
    code="NNX640",
    name="sown-not-collected",
    summary="A module that sows is called again and again, and nothing collects what it has sown.",
    message="each call sows another value into `{path}`, and nothing takes them out{traced}",
    help="capture them: `y, sown = nnx.capture(model, {variable})(x)`, or `nnx.pop(model, {variable})` after each call",
    severity=Severity.WARNING,
)
SOW_ARGUMENTS = Rule(
    code="NNX641",
    name="sow-arguments",
    summary="`sow` or `perturb` gets its arguments in another order than it takes them.",
    message="`{method}` takes {order}, and its name here is {value}",
    help="write `{mend}`",
    fix=Fixable.SAFE,
)
SOW_REDUCTION = Rule(
    code="NNX649",
    name="sow-reduction",
    summary="`sow` reduces with a function of arrays, and begins with an empty tuple.",
    message="`sow` begins with an empty tuple, which `{reduction}` cannot combine with the value",
    help="say what to begin with: `init_fn=lambda: 0.0`",
    fix=Fixable.UNSAFE,
)
MODULE_METHOD_ON_PYTREE = Rule(
    code="NNX642",
    name="module-method-on-pytree",
    summary="A method of `nnx.Module` is called on an object that is only an `nnx.Pytree`.",
    message="`{cls}` is an `nnx.Pytree` and no `nnx.Module`: it has no `{method}`",
    help="derive it from `nnx.Module`",
    fix=Fixable.UNSAFE,
)
PERTURBATION_UNUSED = Rule(
    code="NNX643",
    name="perturbation-unused",
    summary="The result of `perturb` is not used, so the perturbation has no effect and no gradient.",
    message="the result of `perturb` is dropped: the gradient of `{name}` will be zero",
    help="go on with the result: `{mend}`",
    fix=Fixable.SAFE,
)
CAPTURE_RESULTS = Rule(
    code="NNX644",
    name="capture-results",
    summary="The results of a captured function are unpacked into another number of names than there are.",
    message="`nnx.capture` with {types} returns {results}, and {targets} names take them",
    help="name one Variable type for each State that is wanted: `nnx.capture(model, nnx.Intermediate)`",
    fix=Fixable.UNSAFE,
)
CAPTURED_TYPE_DIFFERS = Rule(
    code="NNX645",
    name="captured-type-differs",
    summary="A value is sown as another Variable type than the one that is captured or popped, and stays behind.",
    message="`{taking}` of `{captured}` does not {verb} `{path}`, which is sown as `{sown}`",
    help="{verb} the very type: `{taking}(model, {sown})`",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
CAPTURE_ARGUMENTS = Rule(
    code="NNX646",
    name="capture-arguments",
    summary="`nnx.capture` gets something that it does not take.",
    message="`nnx.capture` {problem}",
    help="{mend}",
    fix=Fixable.SAFE,
)
SOWN_UNDER_MAP = Rule(
    code="NNX647",
    name="sown-under-map",
    summary="A module sows under a map that does not map over the module.",
    message="under `{transform}` each element sows its own value into `{path}`, whose axis is `None`",
    help="capture around the module, inside of the map, or map over the sown values with `nnx.StateAxes`",
)

SOWN_TUPLE = Rule(
    code="NNX648",
    name="sown-tuple",
    summary="What a module sowed under a name is a tuple of all its values, and is used as if it were one of them.",
    message="what is sown as `{name}` is collected in a tuple, one value for each call, which is {how} here",
    help="take one of them: `{mend}`, or sow with `init_fn=` and `reduce_fn=`",
    fix=Fixable.UNSAFE,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
