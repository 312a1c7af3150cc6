"""Arrays: which library functions, methods and operators return them.

What jax says of its own functions is in :mod:`nnx_lint.model.tables.jax_results`; what is known of numpy, optax and the
functions that NNX adds is written here.

Invariants: a result is called an array only where it certainly is one for these arguments; an overload is chosen only
where every earlier one is excluded by an argument that is known. An element of a numpy array may be a numpy scalar,
which is no data for NNX, so it stays unknown, and so do functions of numpy that return scalars for scalars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model import bounds
from nnx_lint.model.arithmetic import one_number
from nnx_lint.model.callables import LibraryFunction
from nnx_lint.model.containers import Seq
from nnx_lint.model.crossing import refresh
from nnx_lint.model.forms import shape_value
from nnx_lint.model.operations import FUNCTIONS, of_method, of_property
from nnx_lint.model.states import TransformationVal
from nnx_lint.model.tables.jax_results import METHODS, OVERLOADS, PROPERTIES, RESULTS
from nnx_lint.model.values import (
    FRACTION,
    NONE,
    NUMBER,
    SHAPE,
    UNKNOWN,
    Array,
    ArrayAttr,
    Const,
    HostArray,
    NumpyScalar,
    Obj,
    Other,
    Value,
)
from nnx_rules.shape_algebra import is_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.calls import Arguments
    from nnx_rules.shapes import Form, Shape


# -- kinds -------------------------------------------------------------------------------------------------------------


def _same(args: Arguments, level: int) -> Value:
    value = args.get(0)
    return refresh(value, level) if value is not None else UNKNOWN


KINDS: dict[str, Callable[[Arguments, int], Value]] = {
    "array": lambda args, level: Array(level),
    "ufunc": lambda args, level: Array(level),
    "plain": lambda args, level: Other("a plain value"),
    "shape": lambda args, level: SHAPE,
    "list": lambda args, level: Seq("list", [Array(level)], level, exact=False),
    "tuple": lambda args, level: Seq("tuple", [Array(level)], level, exact=False),
    "initializer": lambda args, level: LibraryFunction("array"),  # `array_call` says which
    "same": _same,
}
"""What a kind of the tables stands for."""


def value_of_kind(kind: str | None, args: Arguments, level: int) -> Value:
    """A value of a kind of the tables; several kinds with commas between them are a tuple of these."""
    if kind is None:
        return UNKNOWN
    if "," in kind:
        return Seq("tuple", [KINDS[item](args, level) for item in kind.split(",")], level)
    return KINDS[kind](args, level)


# -- functions ---------------------------------------------------------------------------------------------------------

_MAKING = """
    arange argsort array asarray ascontiguousarray atleast_1d atleast_2d bartlett blackman broadcast_to concatenate
    cumprod cumsum diag empty empty_like expand_dims eye fft.fftfreq fft.rfftfreq frombuffer fromiter full full_like
    geomspace hamming hanning hstack identity intersect1d kaiser kron linspace loadtxt logspace ones ones_like outer pad
    random.permutation random.rand random.randn repeat reshape setdiff1d stack tile transpose tri tril triu union1d
    vander vstack zeros zeros_like
"""

NUMPY_ARRAYS = frozenset(_MAKING.split())
"""Functions of numpy that return an ``ndarray`` for all that people give them."""

_OF_EACH = """
    abs arccos arcsin arctan arctanh clip conj cos cosh deg2rad exp expm1 floor imag log log10 log1p log2 maximum
    minimum power rad2deg real round sign sin sinc sinh sqrt square tan tanh
"""

NUMPY_OF_EACH = frozenset(_OF_EACH.split())
"""Functions of numpy that compute with each element of an ``ndarray``, as operators do."""

NUMPY_FLOATS = frozenset(
    {"arccos", "arcsin", "arctan", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2"}
    | {"sin", "sinh", "sqrt", "tan", "tanh"}
)
"""Those of one number among them that give a number with a fraction, of a dtype of its own, for any number."""

NUMPY_DRAWS = {
    "random.choice": 1,
    "random.normal": 2,
    "random.randint": 2,
    "random.random": 0,
    "random.standard_normal": 0,
    "random.uniform": 2,
}
"""Functions of numpy that return an ``ndarray`` where they are given a size, with its position."""

DEVICES = "jax.experimental.mesh_utils.create_device_mesh"
"""A function of jax that returns an ``ndarray``, of devices."""

NNX_ARRAYS = frozenset(
    ["avg_pool", "dot_product_attention", "make_attention_mask", "make_causal_mask", "max_pool", "min_pool"]
)
"""Functions of NNX, besides those of ``jax.nn``, that return an array."""

NNX_INITIALIZERS = frozenset({"ones_init", "zeros_init"})
"""Functions of ``nnx.initializers``, besides those of jax, that return an initializer."""

OPTAX_FUNCTIONS = frozenset(
    {"apply_updates", "bias_correction", "global_norm", "incremental_update", "inject_hyperparams"}
    | {"inject_stateful_hyperparams", "periodic_update", "power_iteration", "safe_norm"}
    | {
        "safe_increment",
        "safe_root_mean_squares",
        "smooth_labels",
        "tree",
        "update_moment",
        "value_and_grad_from_state",
    }
)
"""Names of optax that do not make a gradient transformation or a schedule."""


OPTAX_SCHEDULES = frozenset(
    {
        "constant_schedule",
        "cosine_decay_schedule",
        "cosine_onecycle_schedule",
        "exponential_decay",
        "join_schedules",
        "linear_onecycle_schedule",
        "linear_schedule",
        "piecewise_constant_schedule",
        "piecewise_interpolate_schedule",
        "polynomial_schedule",
        "sgdr_schedule",
        "warmup_constant_schedule",
        "warmup_cosine_decay_schedule",
        "warmup_exponential_decay_schedule",
    }
)
"""Functions of optax that make a schedule: a function of the number of the step."""

OPTAX_LOSSES = frozenset(
    {
        "convex_kl_divergence",
        "cosine_distance",
        "cosine_similarity",
        "ctc_loss",
        "hinge_loss",
        "huber_loss",
        "kl_divergence",
        "l2_loss",
        "log_cosh",
        "safe_softmax_cross_entropy",
        "sigmoid_binary_cross_entropy",
        "sigmoid_focal_loss",
        "smooth_labels",
        "softmax_cross_entropy",
        "softmax_cross_entropy_with_integer_labels",
        "squared_error",
    }
)
"""Functions of optax that return an array."""

OPTAX_NUMBERS = frozenset(
    {"global_norm", "tree.max", "tree.min", "tree.norm", "tree.sum", "tree.vdot", "tree_utils.tree_norm"}
    | {f"tree_utils.tree_{name}" for name in ("l1_norm", "l2_norm", "max", "min", "sum", "vdot")}
)
"""Functions of optax that make one number of a whole tree."""


def array_call(name: str, args: Arguments, level: int) -> Value:
    """The result of calling a library function of this canonical name."""
    head, _, rest = name.partition(".")
    if head == "jax":
        if name == DEVICES:
            return HostArray(level)
        made = value_of_kind(result_kind(name, args), args, level)
        return LibraryFunction(made.result, name) if isinstance(made, LibraryFunction) else made
    if head == "numpy":
        several = rest in NUMPY_DRAWS and args.get(NUMPY_DRAWS[rest], "size") not in (None, NONE)
        if rest in NUMPY_FLOATS and len(args.positional) == 1 and one_number(args.positional[0] or UNKNOWN) is not None:
            return FRACTION
        each = rest in NUMPY_OF_EACH and any(map(_has_axes, args.positional))
        if several or each or rest in NUMPY_ARRAYS:
            return HostArray(level)
        return _of_numpy(_shape_given(name, args), level)
    if head == "optax" and (rest.removeprefix("losses.") in OPTAX_LOSSES or rest in OPTAX_NUMBERS):
        return Array(level)
    if head == "optax":
        # Gradient transformations and schedules are namedtuples of functions and plain functions.
        if rest.removeprefix("schedules.") in OPTAX_SCHEDULES:
            return TransformationVal(schedule=True, rough=_only_shrinks(rest.removeprefix("schedules."), args))
        if rest in OPTAX_ASKING or ("." not in rest and rest not in OPTAX_FUNCTIONS):
            trees, rough = _trees_of(rest, args), _is_rough(rest, args)
            asks, keeps = _asked_by(rest, args), _keeps(rest, args)
            return TransformationVal(maker=rest, asks=asks, rough=rough, trees=trees, keeps=keeps)
        return UNKNOWN
    if head == "nnx":
        if rest.removeprefix("initializers.") in NNX_INITIALIZERS:
            return LibraryFunction("array", f"jax.nn.{rest}")
        kind = "array" if rest in NNX_ARRAYS else result_kind(f"jax.nn.{rest}", args)
        made = value_of_kind(kind, args, level)
        return LibraryFunction(made.result, f"jax.nn.{rest}") if isinstance(made, LibraryFunction) else made
    return UNKNOWN


def _shape_given(name: str, args: Arguments) -> Shape | None:
    """The shape of what a function of numpy gives for these arguments."""
    function = FUNCTIONS.get(name) if not args.starred else None
    return function(args).shape if function is not None else None


def _of_numpy(shape: Shape | None, level: int, form: Form | None = None) -> Value:
    """What numpy gives: an array, where it certainly has axes, or one number; else it may be either."""
    if shape == ():
        return NumpyScalar()
    return HostArray(level, form) if shape is not None and is_whole(shape) else UNKNOWN


def _has_axes(value: Value | None) -> bool:
    """Whether a value is an array of numpy that is no single number, for all that is known."""
    return isinstance(value, HostArray) and (value.form is None or value.form.shape != ())


_SEARCH = ("params", "value", "grad", "value_fn")

OPTAX_ASKING = {
    "contrib.reduce_on_plateau": ("value",),
    "lbfgs": _SEARCH,
    "polyak_sgd": ("params", "value"),
    "scale_by_backtracking_linesearch": _SEARCH,
    "scale_by_polyak": ("params", "value"),
    "scale_by_zoom_linesearch": _SEARCH,
    **dict.fromkeys(("adadelta", "adamaxw", "adamw", "adan", "fromage", "lamb", "lars", "lion", "nadamw"), ("params",)),
    **dict.fromkeys(("adaptive_grad_clip", "add_decayed_weights", "novograd", "scale_by_trust_ratio"), ("params",)),
}
"""Transformations of optax that need more than the gradients, as they do if they are made without ``linesearch=``."""


def _asked_by(maker: str, args: Arguments) -> tuple[str, ...]:
    """What each update of a transformation needs besides the gradients; of a chain what its parts need."""
    parts = [value for value in args.positional if isinstance(value, TransformationVal)] if maker == "chain" else []
    own = OPTAX_ASKING.get(maker, ()) if args.keywords.keys().isdisjoint({"linesearch", "**"}) else ()
    return tuple(dict.fromkeys(name for names in (own, *(part.asks for part in parts)) for name in names))


OPTAX_TREES = {
    "add_decayed_weights": "mask",
    "masked": "mask",
    "multi_transform": "param_labels",
    "partition": "param_labels",
}
"""Transformations that take a tree for the parameters, or a function that makes one, as their second argument."""


def _trees_of(maker: str, args: Arguments) -> tuple[tuple[str, str, Value], ...]:
    """What a transformation, and those that it is given, got for the tree of the parameters."""
    name = OPTAX_TREES.get(maker, "mask")
    own = args.get(1, name) if maker in OPTAX_TREES else args.keywords.get(name)
    inner = (tree for part in args.positional if isinstance(part, TransformationVal) for tree in part.trees)
    return (*([(maker, name, own)] if own is not None else []), *inner)


_ROUGH = """
    adaptive_grad_clip add_decayed_weights add_noise centralize clip clip_by_block_rms clip_by_global_norm
    scale_by_adam scale_by_adamax scale_by_amsgrad scale_by_belief scale_by_factored_rms scale_by_lion scale_by_novograd
    scale_by_radam scale_by_rms scale_by_rss scale_by_stddev scale_by_trust_ratio scale_by_yogi trace zero_nans
"""

OPTAX_ROUGH = frozenset(_ROUGH.split())
"""Transformations that leave the sign of the gradients, and know no learning rate."""


_KEEPING = """
    adabelief adadelta adagrad adam adamax adamaxw adamw adan amsgrad fromage lamb lion nadam nadamw novograd radam
    rmsprop scale_by_adam scale_by_lion scale_by_rms sm3 trace yogi
"""

OPTAX_KEEPING = frozenset(_KEEPING.split())
"""Transformations of optax that keep arrays for the parameters, whatever their options."""


def _keeps(maker: str, args: Arguments) -> bool:
    """Whether a transformation keeps arrays for the parameters, or one of those that it chains does."""
    if maker == "sgd":
        momentum = args.get(1, "momentum")
        return isinstance(momentum, Const) and momentum.value is not None
    chained = args.positional if maker == "chain" else ()
    return maker in OPTAX_KEEPING or any(isinstance(part, TransformationVal) and part.keeps for part in chained)


RATES = {
    "constant_schedule": ("value",),
    "cosine_decay_schedule": ("init_value",),
    "exponential_decay": ("init_value",),
    "linear_schedule": ("init_value", "end_value"),
    "polynomial_schedule": ("init_value", "end_value"),
    "warmup_cosine_decay_schedule": ("init_value", "peak_value"),
    "warmup_exponential_decay_schedule": ("init_value", "peak_value"),
}
"""The first arguments of schedules: the rates that they go between."""


def _only_shrinks(schedule: str, args: Arguments) -> bool:
    """Whether a schedule certainly gives no negative numbers, which would turn gradients into steps that go down."""
    rates = [args.get(place, name) for place, name in enumerate(RATES.get(schedule, ()))]
    numbers = [rate.value for rate in rates if isinstance(rate, Const)]
    known = [number for number in numbers if isinstance(number, (int, float)) and number >= 0]
    return 0 < len(known) == len(rates)


def _is_rough(maker: str, args: Arguments) -> bool:
    """Whether a transformation makes no steps of gradients, nor does any of those that it chains."""
    if maker == "scale_by_schedule":
        schedule = args.get(0, "step_size_fn")
        return isinstance(schedule, TransformationVal) and schedule.rough
    if maker == "scale":
        factor = args.get(0, "step_size")
        return isinstance(factor, Const) and isinstance(factor.value, (int, float)) and factor.value > 0
    if maker != "chain":
        return maker in OPTAX_ROUGH
    parts = args.positional
    return bool(parts) and all(isinstance(part, TransformationVal) and part.rough for part in parts)


def is_array_function(name: str) -> bool:
    """Whether a library function of this canonical name is a plain function that computes an array."""
    head, _, rest = name.partition(".")
    if head == "nnx":
        return rest in NNX_ARRAYS or is_array_function(f"jax.nn.{rest}")
    return RESULTS.get(name) == "array" or name in OVERLOADS


def result_kind(name: str, args: Arguments) -> str | None:
    """The kind of result of a function of jax, as its signature says; ``None`` where that is not certain."""
    kind = RESULTS.get(name)
    if kind is not None:
        return kind
    if name in OVERLOADS:
        return _chosen(name, args)
    function, _, method = name.rpartition(".")
    return "array" if RESULTS.get(function) == "ufunc" and method in UFUNC_METHODS else None


UFUNC_METHODS = frozenset({"accumulate", "at", "outer", "reduce", "reduceat"})


def _chosen(name: str, args: Arguments) -> str | None:
    """The kind of the overload that these arguments choose."""
    possible: set[str | None] = set()
    for positional, conditions, kind in OVERLOADS[name]:
        fits = _fits(positional, conditions, args)
        if fits is not False:
            possible.add(kind)
        if fits:
            break
    return possible.pop() if len(possible) == 1 else None


def _fits(positional: int | None, conditions: tuple[tuple[int, str, object], ...], args: Arguments) -> bool | None:
    """Whether arguments fit a signature; ``None`` where that is not known."""
    if args.starred:
        return None
    if positional is not None and len(args.positional) > positional:
        return False
    verdicts = [_holds(args.get(position if position >= 0 else len(args.positional), name), wanted)
                for position, name, wanted in conditions]  # fmt: skip
    return False if False in verdicts else None if None in verdicts else True


def _holds(given: Value | None, wanted: object) -> bool | None:
    """Whether an argument is what a signature asks for; one that is not given has a default that is."""
    if wanted == "required":
        return given is not None
    if given is None:
        return True
    if isinstance(wanted, tuple):
        return given.value in wanted if isinstance(given, Const) else None
    if isinstance(given, Seq):
        return wanted == "sequence"
    certain = isinstance(given, Array) or (isinstance(given, Const) and isinstance(given.value, (int, float)))
    return wanted == "array" if certain or (isinstance(given, Obj) and given.cls.is_variable) else None


# -- arrays ------------------------------------------------------------------------------------------------------------

HOST_METHODS = frozenset({"astype", "copy", "flatten", "ravel", "reshape", "squeeze", "swapaxes", "transpose"})
"""Methods of a numpy array that return a numpy array."""

UPDATES = frozenset(["add", "apply", "divide", "get", "max", "min", "mul", "multiply", "power", "set", "subtract"])
"""Methods of ``array.at[...]``."""


def array_attribute(array: Array, name: str, level: int) -> Value:
    """An attribute of an array; methods and ``.at`` are values of their own."""
    kind = PROPERTIES.get(name)
    if kind == "shape":
        return shape_value(array, level)
    if kind == "array" and isinstance(array, HostArray):
        return HostArray(array.level, of_property(array, name))
    if name == "ndim" and array.form is not None and array.form.shape is not None and is_whole(array.form.shape):
        return Const(len(array.form.shape))
    if kind is not None:
        return Array(level, of_property(array, name)) if kind == "array" else Other("a plain value")
    if name in {"sharding", "device", "devices"}:
        return Other("a plain value") if name != "devices" else UNKNOWN
    return ArrayAttr(array.level, name, host=isinstance(array, HostArray), array=array)


def method_at(at: ArrayAttr, name: str) -> ArrayAttr:
    """A method of ``array.at[...]``."""
    method = ArrayAttr(at.level, name, owner=at.name, array=at.array)
    method.part = at.part
    return method


def call_array_method(method: ArrayAttr, args: Arguments, level: int) -> Value:
    """The result of a method of an array, or of ``array.at[...]``."""
    if method.owner == "at":
        updated = method.array.form if method.array is not None and method.name != "get" else None
        return Array(level, updated) if method.name in UPDATES else UNKNOWN
    if method.name == "item":
        return NUMBER
    if method.host and method.name not in HOST_METHODS:
        known = of_method(method.array, method.name, args) if method.array is not None else None
        return _of_numpy(known.shape if known is not None else None, level, known)
    result = HostArray(level) if method.host else value_of_kind(METHODS.get(method.name), args, level)
    if method.array is not None and isinstance(result, Array):
        result.form = of_method(method.array, method.name, args)
        if method.name in bounds.METHODS:
            result.bound, result.squashed = method.array.bound, method.array.squashed
    return result
