"""NNX217 to NNX239: updates that are lost, and values that go stale. Nothing of it is ever an error at run time.

``name`` is an object as the function names it, ``transform`` the transform as written, ``root`` the argument that leads
to the object.
"""

from nnx_rules.registry import Fixable, Rule, Severity, Versions

LOST_UPDATE = Rule(
    code="NNX217",
    name="lost-update",
    summary="A function under a `jax` transform changes an object that it received, and does not return it.",
    message="`{name}` belongs to an argument of a function under `{transform}`, which works on a copy: what {action} "
    "changes is lost",
    help="use `{nnx}`, which brings changes back, or return `{root}` and use what is returned",
    fix=Fixable.SAFE,
)
LOST_OPTIMIZER_STEP = Rule(
    code="NNX218",
    name="lost-optimizer-step",
    summary="A training step under a `jax` transform updates an optimizer that it received, and does not return it.",
    message="`{name}` is updated under `{transform}`, which works on copies of its arguments: {loss}",
    help="use `{nnx}`, which brings changes back, or return the model and the optimizer",
    fix=Fixable.SAFE,
)
LOST_MERGED_UPDATE = Rule(
    code="NNX219",
    name="lost-merged-update",
    summary="A function under a `jax` transform changes an object that it merged, and does not return its state.",
    message="`{name}` is merged from a State under `{transform}`: what {action} changes is lost, as its state is not "
    "returned",
    help="return the new state too: `return ..., nnx.state({root})`",
)
STALE_CAPTURE = Rule(
    code="NNX220",
    name="stale-capture",
    summary="A compiled function reads an object that it captured, and the object changes after it was compiled.",
    message="`{name}` is captured by a function under `{transform}`, which keeps the values that it has at the first "
    "call: later changes are not seen",
    help="pass `{name}` as an argument",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
)
IGNORED_STATE = Rule(
    code="NNX221",
    name="ignored-state",
    summary="The state that a step of a loop or a loss returns is thrown away: the next one begins with the old one.",
    message="the state that `{name}` returns is not used{so}",
    help="bind it to the name that is passed in the next round, or `nnx.update` the model with it",
    severity=Severity.WARNING,
)
GRADIENT_OF_CAPTURE = Rule(
    code="NNX222",
    name="gradient-of-capture",
    summary="A function that is differentiated uses a captured object instead of its parameter.",
    message="`{name}` {how}, and the parameter `{parameter}`, with respect to which `{transform}` "
    "differentiates, is not used: all gradients are zero",
    help="{mend}",
    fix=Fixable.SAFE,
)
ALIASED_SNAPSHOT = Rule(
    code="NNX223",
    name="aliased-snapshot",
    summary="A State, or the object itself, is kept to restore or compare an object, and changes with the object.",
    message="{what} `{name}`, which {so}",
    help="keep a copy: `nnx.clone({kept})`",
    versions=Versions(flax_since=(0, 11)),
    fix=Fixable.UNSAFE,
)
ALIASED_MERGE = Rule(
    code="NNX224",
    name="aliased-merge",
    summary="An object that was merged from the State of another one shares its Variables, and one of them is changed.",
    message="`{name}` shares the Variables of `{other}`: changing one changes both",
    help="make a copy: `nnx.clone({other})`, or `nnx.merge(..., copy=True)`",
    severity=Severity.WARNING,
    versions=Versions(flax_since=(0, 11, 2)),
    fix=Fixable.UNSAFE,
)
UNUSED_RESULT = Rule(
    code="NNX225",
    name="unused-result",
    summary="The result of a function that changes nothing is thrown away.",
    message="`{name}` {result} and changes nothing, and the result is not used",
    help="{mend}",
    fix=Fixable.UNSAFE,
)
IN_PLACE_RESULT = Rule(
    code="NNX226",
    name="in-place-result",
    summary="The result of a function that changes its object in place, and returns None, is used.",
    message="`{name}` changes its object in place and returns None",
    help="call it in a statement of its own, and go on with the object",
    fix=Fixable.SAFE,
)
LOST_METADATA = Rule(
    code="NNX227",
    name="lost-metadata",
    summary="A function under `nnx.jit` changes the metadata of a Variable, which flax does not bring back.",
    message="`{name}` is an argument of a function under `{transform}`: {action} changes its metadata, which does not "
    "come back",
    help="set metadata outside of the transform",
    severity=Severity.WARNING,
    versions=Versions(nnxkit=False),
)
LOST_STRUCTURE = Rule(
    code="NNX228",
    name="lost-structure",
    summary="Without graph updates, a function under a transform changes an attribute of an object.",
    message="`{name}` belongs to an argument of a function under `{transform}` without graph updates: only values of "
    "Variables come back, and {action} is lost",
    help="hold what changes in a Variable, `nnx.Variable(jnp.array(...))`, and write its value",
    fix=Fixable.UNSAFE,
)
STATE_NOT_APPLIED = Rule(
    code="NNX229",
    name="state-not-applied",
    summary="A State is trained or edited, and never put back into the object that it comes from.",
    message="`{name}` {what}, and nothing puts it into `{model}`, which stays as it was",
    help="{mend}: `nnx.update({model}, {state})`",
)
LOST_COUNT = Rule(
    code="NNX230",
    name="lost-count",
    summary="A compiled function counts in a plain object, where the number only changes while JAX traces.",
    message="`{name}` is counted up while `{transform}` traces, and stays what it is in all calls after that",
    help="count where the compiled function is called, or in a Variable of the module: `nnx.Variable(jnp.array(0))`",
    severity=Severity.WARNING,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
