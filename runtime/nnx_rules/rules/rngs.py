"""NNX5: randomness."""

from nnx_rules.errors import LayerStreamsError, RngArgumentError, RngStreamError, RngStreamKeyError
from nnx_rules.registry import Fixable, Rule, Severity, Versions

MISSING_STREAM = Rule(
    code="NNX501",
    name="missing-rng-stream",
    summary="A random stream is used that does not exist, and there is no default stream to fall back on.",
    message="there is no random stream `{name}` and no default stream; the streams are {streams}",
    help="make it: `nnx.Rngs(0)` for a default stream, or `nnx.Rngs({name}=0)`",
    exception=RngStreamError,
    in_flax="No RngStream named '{name}'",
    fix=Fixable.UNSAFE,
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
    fix=Fixable.SAFE,
    exception=RngArgumentError,
)
KEYS_ALREADY_SPLIT = Rule(
    code="NNX504",
    name="rng-keys-split",
    summary="A stream whose key is already split or vmapped is used as if it were a single key.",
    message="the key of stream `{name}` has shape {shape}, and a single key is needed",
    help="use the stream inside the transform that maps over it, or restore the keys first",
    exception=RngArgumentError,
    fix=Fixable.UNSAFE,
)
WITH_RNGS_CONFLICT = Rule(
    code="NNX505",
    name="with-rngs-conflict",
    summary="Filters of two arguments of `nnx.with_rngs` take the same stream.",
    message="the stream `{path}` is taken by filters of {arguments}",
    help="let one of them exclude it; `...` leaves precedence to the others",
    exception=RngArgumentError,
    in_flax="matched by multiple rules",
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
    versions=Versions(flax_since=(0, 9)),
    exception=RngArgumentError,
    fix=Fixable.UNSAFE,
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

STREAM_TYPO = Rule(
    code="NNX513",
    name="rng-stream-typo",
    summary="A random stream is asked for by a name that looks like a slip, and the default stream answers.",
    message="there is no random stream `{name}`, so the default one is used; `{near}` looks like what is meant",
    help="write `{near}`, or declare the stream: `nnx.Rngs(..., {name}=seed)`",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
RNGS_AS_KEY = Rule(
    code="NNX514",
    name="rngs-as-key",
    summary="Random streams are passed where JAX needs a random key.",
    message="`{name}` is {value}, and `{function}` needs a key",
    help="call it to draw a key: `{name}()`",
    fix=Fixable.SAFE,
)
SEED_AS_RNGS = Rule(
    code="NNX515",
    name="seed-as-rngs",
    summary="A layer gets a seed, a key or nothing where it needs `nnx.Rngs`.",
    message="`{cls}` needs `nnx.Rngs` as its `{parameter}`, and gets {value}",
    help="pass random streams: `{mend}`",
    exception=LayerStreamsError,
    fix=Fixable.SAFE,
)
MISSING_RNGS = Rule(
    code="NNX516",
    name="missing-rngs",
    summary="A layer is made without the random streams that its constructor requires.",
    message="`{cls}` is made without `{parameter}`, which it needs to initialize its parameters",
    help="pass it: `{parameter}={mend}`",
    fix=Fixable.SAFE,
)
POSITIONAL_RNGS = Rule(
    code="NNX517",
    name="positional-rngs",
    summary="Random streams are passed by position to a layer that takes them by keyword only.",
    message="`{cls}` takes `rngs` by keyword only, and `{value}` is argument {number}{taken}",
    help="write `rngs={value}`",
    fix=Fixable.SAFE,
)
SAME_SEED = Rule(
    code="NNX518",
    name="same-seed-rngs",
    summary="Layers of one model are made from random streams with one seed.",
    message="`{path}` is made from `{seed}`, {other}: they start with the same numbers",
    help="make one `nnx.Rngs` and pass it to all layers",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
KEY_REUSED = Rule(
    code="NNX519",
    name="random-key-reused",
    summary="A random key is used twice, or in each round of a loop, which gives the same numbers again.",
    message="the key `{name}` is used {again}",
    help="draw another key from the stream, or split this one: `jax.random.split({name})`",
    severity=Severity.WARNING,
)
SPLIT_INSIDE_MAP = Rule(
    code="NNX520",
    name="split-rngs-inside-map",
    summary="`nnx.split_rngs` is applied under `nnx.vmap`, so that the streams are split inside of the map.",
    message="`{outer}` maps over streams that `{inner}` splits only inside of it",
    help="put `{inner}` on top of `{outer}`",
    fix=Fixable.SAFE,
)
IDENTICAL_MEMBERS = Rule(
    code="NNX521",
    name="identical-members",
    summary="Modules are made under a map that gives the same random streams to each of them.",
    message="`{transform}` gives the same streams to every member: all {cls} have equal parameters",
    help="give each a stream of its own: `nnx.vmap(create)(rngs.split(n))`",
    fix=Fixable.UNSAFE,
)
SHARED_NUMBERS = Rule(
    code="NNX522",
    name="shared-random-numbers",
    summary="A module that draws random numbers is called under a map that does not map over its streams.",
    message="under `{transform}` every element draws the same numbers from `{path}`, whose axis is `None`",
    help="split its streams: `nnx.split_rngs(splits=n)` outside, and `nnx.StateAxes({{nnx.RngState: 0, ...: None}})`",
    severity=Severity.WARNING,
)
NOT_ADVANCED = Rule(
    code="NNX523",
    name="rngs-not-advanced",
    summary="A function under a JAX transform draws from random streams that it gets as an argument.",
    message="`{transform}` drops what `{function}` does to `{path}`: the next call draws the same numbers",
    help="use `{mend}`, or return the object and keep it",
    fix=Fixable.SAFE,
)
RNGS_DEFAULT = Rule(
    code="NNX524",
    name="rngs-default-argument",
    summary="`nnx.Rngs` is the default of a parameter: made once, and shared by all calls.",
    message="the default of `{parameter}` is made once, when the module is imported, and all calls draw from it",
    help="require the argument, or default to `None` and make the streams inside of the function",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
FORK_ARGUMENTS = Rule(
    code="NNX525",
    name="fork-arguments",
    summary="`fork` or `split` of random streams gets an argument that it does not have, such as `splits`.",
    message="`{method}` takes no {taken}",
    help="use `{mend}`",
    fix=Fixable.SAFE,
)
STREAM_NEXT = Rule(
    code="NNX526",
    name="stream-next",
    summary="A random stream is asked for its next key by a method that it does not have, such as `next`.",
    message="a random stream has no method `{method}`",
    help="call the stream itself: `{mend}`",
    fix=Fixable.SAFE,
)
RESEED_UNKNOWN = Rule(
    code="NNX527",
    name="reseed-unknown-stream",
    summary="`nnx.reseed` names a stream that nothing in the object has, and does nothing.",
    message="no stream of `{path}` is called `{name}`, so nothing is reseeded; its streams are called {streams}",
    help="name one that it has; what is made from a default stream is called `default`",
    severity=Severity.WARNING,
)
SPLIT_ARGUMENTS = Rule(
    code="NNX528",
    name="split-rngs-arguments",
    summary="`nnx.split_rngs` gets arguments that do not go together.",
    message="`nnx.split_rngs` {problem}",
    help="{mend}",
    fix=Fixable.UNSAFE,
)
SAME_SEED_OBJECTS = Rule(
    code="NNX529",
    name="same-seed-objects",
    summary="Two objects of one class are made from random streams with one seed.",
    message="`{path}` is made from `{seed}`, as is the one on line {other}: they start with the same numbers",
    help="make one `nnx.Rngs` and pass it to both, unless a copy is meant",
    severity=Severity.INFO,
    default=False,
    fix=Fixable.UNSAFE,
)
STREAM_KEY_READ = Rule(
    code="NNX530",
    name="stream-key-read",
    summary="The key that a random stream was made with is used as if it were drawn from the stream.",
    message="`{name}` is the key that the stream was made with: each use of it gives the same numbers",
    help="call the stream to draw a new key: `{mend}`",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)

FIXED_SEED = Rule(
    code="NNX531",
    name="fixed-seed-in-call",
    summary="A forward pass, or each step of a loop, makes streams or a key from one seed: the same numbers each time.",
    message="`{path}` makes `{seed}` anew each time it runs: every call draws the same numbers",
    help="keep streams that `__init__` gets, `self.rngs = rngs`, and draw from them, or take them as an argument",
    severity=Severity.WARNING,
)

COPIED_LAYERS = Rule(
    code="NNX533",
    name="copied-layers",
    summary="The layers of a model are copies of one layer: they all begin with the same numbers.",
    message="each element is a copy of `{name}`: all begin with the same numbers",
    help="make each of them: `nnx.List([{cls}(..., rngs=rngs) for _ in range(n)])`",
    severity=Severity.WARNING,
)
HOST_RANDOM = Rule(
    code="NNX534",
    name="host-random-in-call",
    summary="Compiled code draws from Python's or numpy's generator: once, when it is compiled.",
    message="`{path}` calls `{name}`, which runs when this is compiled and never again: its number stays",
    help="draw from a stream: `jax.random.uniform(self.rngs.dropout(), shape)`",
    severity=Severity.WARNING,
)
KEPT_KEY = Rule(
    code="NNX532",
    name="kept-key",
    summary="A key that the constructor draws is kept, and every call draws its numbers from that one key.",
    message="`{name}` is drawn once, in `{cls}.__init__`: each call gets the same numbers from it",
    help="keep the streams, `self.rngs = rngs`, and draw a key for each call: `self.rngs.{stream}()`",
    severity=Severity.WARNING,
)
KEYS_IN_ARITHMETIC = Rule(
    code="NNX535",
    name="keys-in-arithmetic",
    summary="A State is computed with that holds random keys besides the weights.",
    message="`{name}` holds the random key `{path}` too, and `{done}` fails for a key",
    help="take the parameters only: `nnx.state(model, nnx.Param)`",
)
DEFAULT_STREAM_IGNORED = Rule(
    code="NNX536",
    name="default-stream-ignored",
    summary="Random streams are asked by name before something draws from them, although they have a default stream.",
    message="`{test}` is false for `nnx.Rngs(0)`, which draws `{stream}` from its default stream: {so}",
    help="leave the test out: {mend}",
    severity=Severity.WARNING,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
