"""NNX2: trace levels. Objects of an outer trace that a transformed function changes, bakes in, or lets escape.

``where`` says in words where the object comes from ("it is a global of the module"), ``transform`` names the transform
as written.
"""

from nnx_rules.errors import TraceContextError
from nnx_rules.registry import Fixable, Rule, Versions

CAPTURED_MUTATION = Rule(
    code="NNX201",
    name="captured-mutation",
    summary="A function under a transform changes an object that it captured instead of received.",
    message="Cannot mutate `{name}` from a different trace level: {where}",
    help="pass `{name}` as an argument, and return it from a `jax` transform or use the `nnx` one",
    exception=TraceContextError,
    in_flax="Cannot mutate {name} from a different trace level; Cannot mutate '{name}' from different trace level",
    fix=Fixable.SAFE,
)
CAPTURED_STATEFUL_CALL = Rule(
    code="NNX202",
    name="captured-stateful-call",
    summary="A function under a transform calls a captured module or optimizer that updates its own state.",
    message="`{name}` is captured by a function under `{transform}` ({where}), and calling it changes its {state}",
    help="pass `{name}` as an argument, and return it from a `jax` transform or use the `nnx` one",
    fix=Fixable.SAFE,
)
CAPTURED_RNGS = Rule(
    code="NNX203",
    name="captured-rngs",
    summary="A function under a transform draws from random streams that it captured.",
    message="`{name}` is captured by a function under `{transform}` ({where}), and drawing from it changes its counter",
    help="create the streams inside, or pass them as an argument",
    fix=Fixable.SAFE,
)
CAPTURED_INTO_TRANSFORM = Rule(
    code="NNX204",
    name="captured-into-transform",
    summary="A captured object is an argument of an `nnx` transform that runs inside another trace.",
    message="`{name}` is captured by a function under `{outer}`, and `{transform}` writes its arguments back",
    help="pass `{name}` as an argument of the outer function",
    versions=Versions(flax_since=(0, 12), nnxkit=False),
    fix=Fixable.SAFE,
)
JAX_OVER_NNX = Rule(
    code="NNX205",
    name="jax-over-nnx-transform",
    summary="A `jax` transform runs over a function that calls an `nnx`-transformed function on a captured module.",
    message="`{name}` is captured by a function under `{outer}`, and `{transform}` writes its arguments back",
    help="{mend}",
    versions=Versions(flax_since=(0, 11), nnxkit=False),
)
NONDIFF_ARGUMENT_MUTATED = Rule(
    code="NNX206",
    name="nondiff-argument-mutated",
    summary=(
        "`jax.grad` passes arguments that it does not differentiate through as they are; merging and changing "
        "them changes the originals."
    ),
    message="`{name}` is changed under `{transform}`, but it belongs to the caller: {where}",
    help="make a copy inside: `nnx.merge(..., copy=True)` or `nnx.clone(...)`",
    versions=Versions(flax_since=(0, 11)),
    fix=Fixable.SAFE,
)
UNTRACKED_MUTATION = Rule(
    code="NNX207",
    name="untracked-captured-mutation",
    summary="A function under a transform changes a captured object in a way that flax does not check.",
    message="`{name}` is captured by a function under `{transform}`, and {action} changes it while tracing, unchecked",
    help="pass `{name}` as an argument, and return it from a `jax` transform or use the `nnx` one",
)
BOUND_METHOD_TRANSFORM = Rule(
    code="NNX208",
    name="bound-method-transform",
    summary="An `nnx` transform is applied to a bound method of a module.",
    message="`{transform}` does not take the bound method `{name}`: the module would be captured, not passed",
    help="decorate the method, or write `{transform}({unbound})` and pass the instance",
    versions=Versions(flax_since=(0, 12, 1), nnxkit=False),
    fix=Fixable.UNSAFE,
)
TRANSFORMED_INSTANCE = Rule(
    code="NNX209",
    name="transformed-instance",
    summary="A transform is applied to an object, or a method of one, that changes its own state when it is called.",
    message="`{transform}` captures `{name}`, which it transforms, and calling that changes its {state}",
    help="transform a function that takes the object: `{transform}(lambda m, *args: m(*args))`",
    fix=Fixable.SAFE,
)
PARTIAL_CAPTURE = Rule(
    code="NNX210",
    name="partial-capture",
    summary="A transform is applied to a `functools.partial` that holds an object, which the function changes.",
    message="`{transform}` captures `{name}`, which the partial holds, and the function changes its {state}",
    help="transform the function first, then bind the object: `nnx.cached_partial({transform}(f), {name})`",
    fix=Fixable.UNSAFE,
)
STATIC_SELF = Rule(
    code="NNX211",
    name="static-self",
    summary="A method is compiled with `self` as a static argument, so the module is a constant.",
    message="`self` is a static argument of `{cls}.{path}`: what it holds is a constant of the compiled function",
    help="use `@nnx.jit` without static arguments",
    fix=Fixable.SAFE,
)
JITTED_METHOD_STORED = Rule(
    code="NNX212",
    name="jitted-method-stored",
    summary="A module stores a compiled function of its own data, which goes on using this one object and its data.",
    message="`{cls}.{path}` is compiled by `{transform}` with this object as a capture: it keeps the data it has now",
    help="decorate a method instead",
    fix=Fixable.UNSAFE,
)
PLAIN_SELF = Rule(
    code="NNX213",
    name="transform-of-plain-self",
    summary="A method of a class that is no Pytree is transformed; JAX cannot take `self`.",
    message="`{cls}` is no Pytree, so `{transform}` cannot take the `self` of `{path}`",
    help="derive `{cls}` from `nnx.Pytree`",
    fix=Fixable.UNSAFE,
)
TRACER_ESCAPE = Rule(
    code="NNX214",
    name="tracer-escape",
    summary="A value computed under a transform is stored outside of the function.",
    message="`{name}` outlives the function under `{transform}`, and now holds a tracer",
    help="return the value instead",
)
CAPTURED_RETURNED = Rule(
    code="NNX215",
    name="captured-returned",
    summary="A function under an `nnx` transform returns an object that it captured.",
    message="`{name}` is captured by a function under `{transform}`, which cannot return it",
    help="pass `{name}` as an argument",
    versions=Versions(flax_since=(0, 11), nnxkit=False),
    fix=Fixable.SAFE,
)
CAPTURED_REBOUND = Rule(
    code="NNX216",
    name="captured-rebound",
    summary="A function under a transform binds something else to a name that led to a captured object.",
    message="`{name}` leads to a captured object, and the function under a transform binds something else in its place",
    help="return the new object, or change the captured one in place",
    exception=TraceContextError,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
