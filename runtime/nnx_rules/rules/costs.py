"""NNX7: retracing and cost. Everything here works, and compiles more often, or less often, than one thinks."""

from nnx_rules.registry import Fixable, Rule, Severity

TRANSFORM_IN_LOOP = Rule(
    code="NNX701",
    name="transform-in-loop",
    summary="A function is compiled anew in each round of a loop.",
    message="`{transform}` makes a new function in each round of the loop, which is traced and compiled again",
    help="make it once, before the loop",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
)
STATIC_COUNTER = Rule(
    code="NNX702",
    name="static-counter",
    summary="A static attribute or argument changes in each call of a compiled function: each call compiles again.",
    message="`{name}` is static and changes in each call under `{transform}`, so each call compiles again",
    help="{mend}",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
IN_VARIABLE = "hold it in a Variable: `nnx.Variable(jnp.array(0))`"
TRACED = "hand it over as an argument that is not static: then it is an array, and `jnp.where` chooses by it"
IDENTITY_STATIC = Rule(
    code="NNX703",
    name="function-made-by-constructor",
    summary="Each instance has a static function of its own, and new instances go to a compiled function.",
    message="each `{cls}` has another function in `{path}`, so `{transform}` compiles again for each new instance",
    help="define the function at the top level of the module, or make the object once",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
)
COMPILED_CONSTANT = Rule(
    code="NNX704",
    name="compiled-constant",
    summary="A compiled function reads a module or Variable that it captured, whose values become constants.",
    message="`{name}` is captured by a function under `{transform}`: its values are constants of the compiled function",
    help="pass `{name}` as an argument",
    severity=Severity.WARNING,
    default=False,
    fix=Fixable.SAFE,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
