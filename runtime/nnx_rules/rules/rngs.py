"""NNX5: randomness."""

from nnx_rules.errors import RngArgumentError, RngStreamError, RngStreamKeyError
from nnx_rules.registry import Rule, Versions

MISSING_STREAM = Rule(
    code="NNX501",
    name="missing-rng-stream",
    summary="A random stream is used that does not exist, and there is no default stream to fall back on.",
    message="there is no random stream `{name}` and no default stream; the streams are {streams}",
    help="make it: `nnx.Rngs(0)` for a default stream, or `nnx.Rngs({name}=0)`",
    exception=RngStreamError,
)
MISSING_STREAM_ITEM = Rule(
    code="NNX502",
    name="missing-rng-stream-item",
    summary='`rngs["name"]` asks for a random stream that does not exist, and there is no default stream.',
    message="there is no random stream `{name}` and no default stream; the streams are {streams}",
    help="make it: `nnx.Rngs(0)` for a default stream, or `nnx.Rngs({name}=0)`",
    exception=RngStreamKeyError,
)
RNG_ARGUMENT = Rule(
    code="NNX503",
    name="rng-argument",
    summary="A random stream is made from something that is neither a seed, a key nor a stream.",
    message="a random stream is made from a seed, a key or a stream, not from {given}",
    help="pass an int seed or `jax.random.key(seed)`",
    exception=RngArgumentError,
)
KEYS_ALREADY_SPLIT = Rule(
    code="NNX504",
    name="rng-keys-split",
    summary="A stream whose key is already split or vmapped is used as if it were a single key.",
    message="the key of stream `{name}` has shape {shape}, and a single key is needed",
    help="use the stream inside the transform that maps over it, or restore the keys first",
    exception=RngArgumentError,
)
WITH_RNGS_CONFLICT = Rule(
    code="NNX505",
    name="with-rngs-conflict",
    summary="Filters of two arguments of `nnx.with_rngs` take the same stream.",
    message="the stream `{path}` is taken by filters of {arguments}",
    help="let one of them exclude it; `...` leaves precedence to the others",
    exception=RngArgumentError,
)
RESEED_POLICY = Rule(
    code="NNX506",
    name="reseed-policy",
    summary="`nnx.reseed` gets a policy that it does not know.",
    message="`{policy}` is no policy of `nnx.reseed`",
    help='use "scalars_only", "match_shape", or a callable (path, key, shape) -> keys',
    exception=RngArgumentError,
)

UNSPLIT_RNGS = Rule(
    code="NNX511",
    name="unsplit-rngs",
    summary="A random stream with a single key is mapped over an axis.",
    message="`{transform}` is to map over axis {axis} of `{path}`, a random stream with a single key",
    help="give each element a key: `with nnx.split_rngs(rngs, splits=...):`, or `@nnx.split_rngs(splits=...)` on top\n"
    "or the same numbers to all of them: axis `None`",
    exception=RngArgumentError,
)
CAPTURED_RNGS_UNDER_MAP = Rule(
    code="NNX512",
    name="captured-rngs-under-map",
    summary="A function that is mapped over an axis draws from a random stream that it captures.",
    message="under `{transform}` every element would draw the same numbers from `{path}`, which the function captures",
    help="pass the stream as an argument, and split it: `@nnx.split_rngs(splits=...)` on top\n"
    "if the same numbers are meant, pass it with axis `None`",
    exception=RngArgumentError,
    versions=Versions(flax=False),
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
