"""NNX2: trace levels. Objects of an outer trace that a transformed function changes, bakes in, or lets escape.

``where`` says in words where the object comes from ("the enclosing function", "the module", "a default argument"),
``transform`` names the transform as written.
"""

from nnx_rules.errors import TraceContextError
from nnx_rules.registry import Fixable, Rule, Severity, Versions

CAPTURED_MUTATION = Rule(
    code="NNX201",
    name="captured-mutation",
    summary="A function under a transform changes an object that it captured instead of received.",
    message="Cannot mutate `{name}` from a different trace level: {where}",
    help="pass `{name}` as an argument, and return it from a `jax` transform or use the `nnx` one",
    exception=TraceContextError,
)
CAPTURED_STATEFUL_CALL = Rule(
    code="NNX202",
    name="captured-stateful-call",
    summary="A function under a transform calls a captured module or optimizer that updates its own state.",
    message="`{name}` is captured by a function under `{transform}` ({where}), and calling it changes its {state}",
    help="pass `{name}` as an argument, and return it from a `jax` transform or use the `nnx` one",
)
CAPTURED_RNGS = Rule(
    code="NNX203",
    name="captured-rngs",
    summary="A function under a transform draws from random streams that it captured.",
    message="`{name}` is captured by a function under `{transform}` ({where}), and drawing from it changes its counter",
    help="create the streams inside, or pass them as an argument",
)
CAPTURED_INTO_TRANSFORM = Rule(
    code="NNX204",
    name="captured-into-transform",
    summary="A captured object is an argument of an `nnx` transform that runs inside another trace.",
    message="`{name}` is captured by a function under `{outer}`, and `{transform}` writes its arguments back",
    help="pass `{name}` as an argument of the outer function",
    versions=Versions(nnxkit=False),
)
JAX_OVER_NNX = Rule(
    code="NNX205",
    name="jax-over-nnx-transform",
    summary="A `jax` transform runs over a function that calls an `nnx`-transformed function on a captured module.",
    message="`{name}` is captured by a function under `{outer}`, and `{transform}` writes its arguments back",
    help="pass `{name}` as an argument, for instance `{outer}(f, in_axes=(None, 0))(module, x)`",
    versions=Versions(nnxkit=False),
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
    fix=Fixable.SAFE,
)
UNTRACKED_MUTATION = Rule(
    code="NNX207",
    name="untracked-captured-mutation",
    summary=(
        "A function under a transform changes a captured object in a way that flax does not check, and a tracer leaks."
    ),
    message=(
        "`{name}` is captured by a function under `{transform}`, and {action} changes it without a check: a "
        "tracer leaks out"
    ),
    help="pass `{name}` as an argument",
    versions=Versions(),
)
BOUND_METHOD_TRANSFORM = Rule(
    code="NNX208",
    name="bound-method-transform",
    summary="An `nnx` transform is applied to a bound method of a module.",
    message="`{transform}` does not take the bound method `{name}`",
    help="decorate the method, or write `{transform}({unbound})` and pass the instance",
    versions=Versions(flax_since=(0, 12, 1), nnxkit=False),
)
TRANSFORMED_INSTANCE = Rule(
    code="NNX209",
    name="transformed-instance",
    summary=(
        "A transform is applied to a module instance, which is then a capture: its state cannot change and its "
        "parameters are baked in."
    ),
    message="`{transform}` captures the instance `{name}`: its parameters are constants, and its state cannot change",
    help="write a function that takes the module: `{transform}(lambda m, *args: m(*args))`",
    versions=Versions(nnxkit=False),
)
PARTIAL_CAPTURE = Rule(
    code="NNX210",
    name="partial-capture",
    summary="A `functools.partial` that holds a module is given to a transform; the module is a capture.",
    message="`{transform}` takes a partial that holds `{name}`: it is captured, not passed",
    help="transform first, then `nnx.cached_partial`",
    versions=Versions(nnxkit=False),
)
STATIC_SELF = Rule(
    code="NNX211",
    name="static-self",
    summary="A method is jitted with `self` as a static argument, so the module is a constant.",
    message="`self` is a static argument of `{cls}.{path}`: its Variables are constants of the compiled function",
    help="use `@nnx.jit` without static arguments",
    fix=Fixable.SAFE,
)
JITTED_METHOD_STORED = Rule(
    code="NNX212",
    name="jitted-method-stored",
    summary="A transformed bound method is stored on the module; it captures the module's present state.",
    message="`{cls}.{path}` keeps `{transform}` of a bound method, which bakes the present parameters in",
    help="decorate the method with `@nnx.jit`",
)
PLAIN_SELF = Rule(
    code="NNX213",
    name="transform-of-plain-self",
    summary="A method of a class that is no Pytree is transformed; JAX cannot take `self`.",
    message="`{cls}` is no Pytree, so `{transform}` cannot take `self` of `{path}`",
    help="derive `{cls}` from `nnx.Pytree`",
)
TRACER_ESCAPE = Rule(
    code="NNX214",
    name="tracer-escape",
    summary="A value made under a transform is stored outside of it.",
    message="`{name}` outlives the function under `{transform}`, and now holds a tracer",
    help="return the value instead",
)
CAPTURED_RETURNED = Rule(
    code="NNX215",
    name="captured-returned",
    summary="A function under an `nnx` transform returns an object that it captured.",
    message="`{name}` is captured by a function under `{transform}`, and cannot be returned from it",
    help="pass `{name}` as an argument",
    severity=Severity.ERROR,
    versions=Versions(nnxkit=False),
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
