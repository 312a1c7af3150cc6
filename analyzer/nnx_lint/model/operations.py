"""Operations on arrays: the shapes and dtypes of what functions, methods, operators and indices return.

How shapes come out is in :mod:`nnx_rules.shape_algebra`; here it is read off the arguments. Invariants: as in
:mod:`~nnx_lint.model.forms`, a dimension is a number only where it certainly is that number; a function that is not
listed gives nothing, and so does a call with options that are not listed.
"""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from nnx_lint.model import bounds, indexing, lax, networks, pairing, parts, patterns, sampling, spectra
from nnx_lint.model.callables import PartialVal
from nnx_lint.model.containers import Seq
from nnx_lint.model.forms import NOTHING, dimension, dtype_of, is_number, literal, plain, shape_of
from nnx_lint.model.values import NONE, Array, Const, Ext, Other, Value
from nnx_rules import layers
from nnx_rules import shape_algebra as algebra
from nnx_rules.shapes import UNKNOWN, Dimension, Form, Shape, Symbol
from nnx_rules.sizes import added, minus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.model.calls import Arguments

    Operation = Callable[[Arguments], Form]

# -- making ------------------------------------------------------------------------------------------------------------


def _filled(default: str | None, position: int = 0, dtype: int = 1) -> Operation:
    def form(args: Arguments) -> Form:
        given = args.get(dtype, "dtype")
        return Form(shape_of(args.get(position, "shape")), default if given is None else dtype_of(given))

    return form


def _drawn(args: Arguments) -> Form:
    given, shape = args.get(2, "dtype"), args.get(1, "shape")
    dtype = "float32" if given is None else dtype_of(given)
    return Form(() if shape is None else shape_of(shape), dtype)


def _full(args: Arguments) -> Form:
    given = args.get(2, "dtype")
    dtype = literal(args.get(1, "fill_value")).dtype if given is None else dtype_of(given)
    return Form(shape_of(args.get(0, "shape")), dtype)


def _converted(args: Arguments) -> Form:
    value = args.get(0, "object") or args.get(0, "a")
    given = args.get(1, "dtype")
    known = literal(value)
    return known if given is None else Form(known.shape, dtype_of(given))


def _like(args: Arguments) -> Form:
    given = args.keywords.get("dtype")
    known = literal(args.get(0))
    return Form(known.shape, known.dtype if given is None else dtype_of(given))


def _range(args: Arguments) -> Form:
    given, options = args.keywords.get("dtype"), args.keywords.keys() - {"dtype"}
    values = [item.value for item in args.positional if isinstance(item, Const)]
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    known = 0 < len(numbers) == len(args.positional) <= 3
    steps = [int(value) for value in numbers if known and (isinstance(value, int) or value.is_integer())]
    counts = all(isinstance(item, (Const, Other)) and is_number(item) for item in args.positional)
    dtype = dtype_of(given) if given is not None else "int32" if counts else "float32" if known else None
    sizes = [dimension(item) for item in args.positional if item is not None and not known and not args.starred]
    size = len(range(*steps)) if 0 < len(steps) == len(numbers) and 0 not in steps[2:] else UNKNOWN
    if 0 < len(sizes) < 3:
        size = minus(sizes[-1], sizes[0]) if len(sizes) > 1 else sizes[0]
    return Form((UNKNOWN if options else size,), dtype)


def _some_of(args: Arguments) -> Form:
    """Elements of an array along one axis, nobody knows how many."""
    return Form((UNKNOWN,), literal(args.get(0)).dtype)


def _spaced(args: Arguments) -> Form:
    """So many numbers between two others."""
    ends, number = [args.get(0, "start"), args.get(1, "stop")], args.get(2, "num")
    told = args.keywords.keys() - {"start", "stop", "num", "endpoint"} or len(args.positional) > len(ends) + 2
    if told or not all(isinstance(end, Const) for end in ends):
        return NOTHING
    return Form((50 if number is None else dimension(number),), "float32")


def _diagonal(args: Arguments) -> Form:
    """``eye(N, M)``: a square one where there is no second size."""
    rows, given = dimension(args.get(0, "N") or NONE), args.get(3, "dtype")
    columns = args.get(1, "M")
    shape = (rows, rows if columns is None else dimension(columns))
    return Form(shape, "float32" if given is None else dtype_of(given))


def _keys(args: Arguments) -> Form:
    """New keys, each of the shape of the one that they are made of: ``PRNGKey`` makes arrays of two numbers."""
    number, key = args.get(1, "num"), literal(args.get(0, "key")).shape
    count = (2,) if number is None else shape_of(number) or (UNKNOWN,)
    return Form((*count, *(key if key is not None else (algebra.ANY,))), None)


def _one_hot(args: Arguments) -> Form:
    classes = args.get(1, "num_classes")
    shape = literal(args.get(0)).shape
    return Form((*(shape if shape is not None else (algebra.ANY,)), dimension(classes)) if classes else None, "float32")


# -- element by element ------------------------------------------------------------------------------------------------


def _same(args: Arguments) -> Form:
    known = literal(args.get(0))
    return Form(known.shape, known.dtype if layers.is_fractional(known.dtype) else None)


def _kept(args: Arguments) -> Form:
    return literal(args.get(0))


def _compared(args: Arguments) -> Form:
    return Form(_paired(args).shape, "bool")


def _paired(args: Arguments) -> Form:
    """A function of two arrays, element by element."""
    one, other = literal(args.get(0)), literal(args.get(1))
    return Form(_broadcast(one.shape, other.shape), _common(one.dtype, other.dtype))


def _common(left: str | None, right: str | None) -> str | None:
    """The dtype of a sum or product of two, in the cases that are plain."""
    both = {left, right}
    if left == right and layers.is_fractional(left):
        return left
    if spectra.COMPLEX in both and both <= {spectra.COMPLEX, "float32", "int32", "bool"}:
        return spectra.COMPLEX
    return "float32" if "float32" in both and both <= {"float32", "int32", "bool"} else None


def _chosen(args: Arguments) -> Form:
    """``where(condition, a, b)``."""
    given = [literal(args.get(position)) for position in range(3)]
    if len(args.positional) != 3 or args.keywords:
        return NOTHING
    return Form(algebra.broadcast(*(each.shape for each in given)), _common(given[1].dtype, given[2].dtype))


def _per_example(args: Arguments) -> Form:
    """A loss of logits and one-hot labels."""
    axis = args.get(2, "axis")
    logits, labels = (literal(args.get(position, name)) for position, name in _LOGITS)
    dtype = logits.dtype if layers.is_fractional(logits.dtype) else None
    shape = algebra.broadcast(logits.shape, labels.shape) or logits.shape or (algebra.ANY,)
    return Form(_examples(shape[:-1] or shape) if axis is None else None, dtype)


_LOGITS = ((0, "logits"), (1, "labels"))


def _per_label(args: Arguments) -> Form:
    """A loss of logits and integer labels."""
    logits, labels = (literal(args.get(position, name)) for position, name in _LOGITS)
    shape = labels.shape if labels.shape is not None or not logits.shape else logits.shape[:-1]
    return Form(_examples(shape), logits.dtype if layers.is_fractional(logits.dtype) else None)


def _examples(shape: Shape | None) -> Shape:
    """The shape of the losses of examples, of which nobody knows how they are counted."""
    return (EXAMPLES,) if shape is None or shape == (algebra.ANY,) else shape


EXAMPLES = Symbol("*examples")
"""As many dimensions as examples have: none at all for one alone."""


def _pair_loss(*names: str) -> Operation:
    """A loss of two arrays, element by element; without the second it is one of the first."""

    def form(args: Arguments) -> Form:
        given = [args.get(position, name) for position, name in enumerate(names)]
        shapes = [literal(value).shape for value in given if value is not None]
        dtype = literal(given[0]).dtype
        shape = functools.reduce(_broadcast, shapes) if shapes else None
        return Form(shape, dtype if layers.is_fractional(dtype) else None)

    return form


def _over_last(*names: str) -> Operation:
    """A loss of two arrays that goes over their last axis."""
    whole = _pair_loss(*names)

    def form(args: Arguments) -> Form:
        known = whole(args)
        plain_call = args.keywords.keys() <= {*names, "epsilon"} and len(args.positional) <= len(names)
        return Form(known.shape[:-1], known.dtype) if plain_call and known.shape else NOTHING

    return form


# -- axes --------------------------------------------------------------------------------------------------------------


def _axes(value: Value | None) -> object:
    """Axes as an argument gives them, or counts: ``None``, a number, several, or a Symbol for what is not known."""
    return None if value is None else plain(value, sized=True)


def _summed(args: Arguments) -> Form:
    """A reduction that makes complex numbers of complex ones."""
    form = _reduction(args)
    return Form(form.shape, spectra.COMPLEX) if literal(args.get(0, "a")).dtype == spectra.COMPLEX else form


def _reduction(args: Arguments) -> Form:
    known = literal(args.get(0, "a"))
    dtype = known.dtype if layers.is_fractional(known.dtype) and known.dtype != spectra.COMPLEX else None
    keeps = _axes(args.keywords.get("keepdims"))
    if args.keywords.keys() & {"where", "initial", "dtype", "out"} or len(args.positional) > 2:
        return NOTHING
    if not isinstance(keeps, (bool, type(None))):
        return NOTHING
    return Form(algebra.reduced(known.shape, _axes(args.get(1, "axis")), keeps=bool(keeps)), dtype)


def _norm(args: Arguments) -> Form:
    """``norm(x, ord, axis)``: as a reduction, whose axis comes later."""
    if len(args.positional) > 1:
        return NOTHING
    return _reduction(type(args)(args.node, args.positional, _without(args.keywords, "ord"), args.nodes))


def _without(keywords: dict[str, Value], name: str) -> dict[str, Value]:
    return {key: value for key, value in keywords.items() if key != name}


def _counted(args: Arguments) -> Form:
    """A reduction that makes integers of integers."""
    form, known = _reduction(args), literal(args.get(0, "a"))
    return Form(form.shape, "int32") if known.dtype == "int32" and form != NOTHING else _summed(args)


def _found(args: Arguments) -> Form:
    return Form(_reduction(args).shape, "int32")


def _asked(args: Arguments) -> Form:
    return Form(_reduction(args).shape, "bool")


def _reshaped(args: Arguments) -> Form:
    known = literal(args.get(0))
    wanted = shape_of(args.get(1, "shape") or args.get(1, "newshape"))
    return Form(algebra.reshaped(known.shape, wanted), known.dtype) if wanted is not None else NOTHING


def _flat(args: Arguments) -> Form:
    known = literal(args.get(0))
    return Form(algebra.reshaped(known.shape, (-1,)), known.dtype)


def _on_axes(shape: Callable[..., Shape | None], *names: str) -> Operation:
    """A function of an array and of axes under these names."""

    def form(args: Arguments) -> Form:
        known = literal(args.get(0))
        axes = [_axes(args.get(position, name)) for position, name in enumerate(names, 1)]
        return Form(shape(known.shape, *axes), known.dtype)

    return form


def _together(shape: Callable[[Sequence[Shape | None], object], Shape | None]) -> Operation:
    """A function that puts arrays together along an axis."""

    def form(args: Arguments) -> Form:
        given = args.get(0)
        if not isinstance(given, Seq) or not given.exact or args.keywords.keys() - {"axis"}:
            return NOTHING
        forms = [literal(item) for item in given.items]
        axis = args.get(1, "axis")
        dtypes = {form.dtype for form in forms}
        dtype = dtypes.pop() if len(dtypes) == 1 else None
        return Form(shape([form.shape for form in forms], 0 if axis is None else _axes(axis)), dtype)

    return form


def _stacked(args: Arguments) -> Form:
    """Arrays side by side; where a comprehension makes them all alike, of which it is not known how many there are."""
    given, axis = args.get(0), _axes(args.get(1, "axis") or Const(0))
    if not isinstance(given, Seq) or given.each is None or args.keywords.keys() - {"axis"}:
        return _together(algebra.stacked)(args)
    return Form(algebra.stacked([literal(given.each).shape], axis, UNKNOWN), literal(given.each).dtype)


def _of_two(shape: Callable[[Shape | None, Shape | None], Shape | None]) -> Operation:
    def form(args: Arguments) -> Form:
        one, other = literal(args.get(0)), literal(args.get(1))
        return Form(shape(one.shape, other.shape), _common(one.dtype, other.dtype))

    return form


def _equation(args: Arguments) -> Form:
    text, *operands = args.positional
    if not isinstance(text, Const) or not isinstance(text.value, str):
        return NOTHING
    known = [literal(operand) for operand in operands]
    dtype = functools.reduce(_common, (each.dtype for each in known)) if len(known) > 1 else None
    return Form(algebra.einsum(text.value, *(each.shape for each in known)), dtype)


def _padded(args: Arguments) -> Form:
    """``pad(array, widths)``: one number, a pair of numbers, or a pair for each axis."""
    known, widths = literal(args.get(0, "array")), args.get(1, "pad_width")
    if known.shape is None or not algebra.is_whole(known.shape):
        return NOTHING
    whole = isinstance(widths, Seq) and widths.exact
    pairs: list[Value | None] = [*widths.items] if isinstance(widths, Seq) and whole else [widths] * len(known.shape)
    if len(pairs) == 2 and isinstance(widths, Seq) and not any(isinstance(pair, Seq) for pair in pairs):
        pairs = [widths] * len(known.shape)  # a pair of numbers is for all axes
    both = [shape_of(pair) if isinstance(pair, Seq) else (dimension(pair or NONE),) * 2 for pair in pairs]
    if len(both) != len(known.shape):
        return NOTHING
    return Form(tuple(_grown(size, pair) for size, pair in zip(known.shape, both, strict=True)), known.dtype)


def _grown(size: Dimension, pair: Shape | None) -> Dimension:
    """The size of an axis with something added before it and after it."""
    return added((size, *pair)) if pair is not None and len(pair) == 2 else UNKNOWN


def _taken(args: Arguments) -> Form:
    """``take(array, indices, axis)``, of indices along one axis."""
    known, places = literal(args.get(0, "a")), literal(args.get(1, "indices")).shape
    axis = args.get(2, "axis")
    along = axis.value if isinstance(axis, Const) else None
    if known.shape is None or places is None or not algebra.is_whole(known.shape) or not algebra.is_whole(places):
        return NOTHING
    if not isinstance(along, int) or not -len(known.shape) <= along < len(known.shape):
        return NOTHING
    along %= len(known.shape)
    return Form((*known.shape[:along], *places, *known.shape[along + 1 :]), known.dtype)


def _segmented(args: Arguments) -> Form:
    """What ``jax.ops.segment_sum`` and its like make of the rows of an array."""
    known, ids = literal(args.get(0, "data")), literal(args.get(1, "segment_ids")).shape
    if not known.shape or not algebra.is_whole(known.shape) or ids is None or len(ids) != 1:
        return NOTHING
    return Form((dimension(args.get(2, "num_segments") or NONE), *known.shape[1:]), known.dtype)


def _spread_to(args: Arguments) -> Form:
    return Form(shape_of(args.get(1, "shape")), literal(args.get(0)).dtype)


def _initialized(args: Arguments) -> Form:
    """What an initializer makes: it takes a key, a shape and a dtype."""
    given = args.get(2, "dtype")
    return Form(shape_of(args.get(1, "shape")), "float32" if given is None else dtype_of(given))


# -- tables ------------------------------------------------------------------------------------------------------------

_REDUCING = "amax amin max mean median min nanmax nanmean nanmin nansum prod std sum var"
REDUCTIONS = (*_REDUCING.split(),)
"""Functions that go over some axes of an array, or all, and leave one number of each."""

_PAIRED = "add arctan2 divide fmod hypot logaddexp maximum minimum mod multiply power remainder subtract true_divide"
_COMPARED = "equal greater greater_equal less less_equal logical_and logical_or not_equal"
_NUMPY: dict[str, Operation] = {
    **dict.fromkeys(("ones", "zeros", "empty"), _filled("float32")),
    **dict.fromkeys(("ones_like", "zeros_like", "empty_like", "full_like"), _like),
    **dict.fromkeys(("array", "asarray"), _converted),
    **dict.fromkeys(REDUCTIONS, _reduction),
    "mean": _summed,
    **dict.fromkeys(("max", "min", "prod", "sum"), _counted),
    **dict.fromkeys(("argmax", "argmin"), _found),
    **dict.fromkeys(("all", "any"), _asked),
    **dict.fromkeys(_PAIRED.split(), _paired),
    **dict.fromkeys(_COMPARED.split(), _compared),
    **dict.fromkeys(("flip", "roll", "sort", "cumprod", "cumsum", "tril", "triu", "copy"), _kept),
    "reshape": _reshaped,
    "ravel": _flat,
    "full": _full,
    "arange": _range,
    **dict.fromkeys(("intersect1d", "setdiff1d", "union1d"), _some_of),
    **dict.fromkeys(("geomspace", "linspace", "logspace"), _spaced),
    "eye": _diagonal,
    "where": _chosen,
    "transpose": _on_axes(algebra.transposed, "axes"),
    "swapaxes": _on_axes(algebra.swapped, "axis1", "axis2"),
    "moveaxis": _on_axes(algebra.moved, "source", "destination"),
    "expand_dims": _on_axes(algebra.expanded, "axis"),
    "squeeze": _on_axes(algebra.squeezed, "axis"),
    "concatenate": _together(algebra.joined),
    "stack": _stacked,
    "matmul": _of_two(algebra.product),
    "outer": _of_two(algebra.outer),
    "astype": lambda args: Form(literal(args.get(0, "x")).shape, dtype_of(args.get(1, "dtype"))),
    "dot": _of_two(lambda left, right: algebra.product(left, right) if len(right or (1, 1, 1)) < 3 else None),
    "einsum": _equation,
    "broadcast_to": _spread_to,
    "take": _taken,
    "take_along_axis": indexing.along_axis,
    "pad": _padded,
    "tile": _on_axes(algebra.tiled, "reps"),
    "repeat": _on_axes(algebra.repeated, "repeats", "axis"),
}
_RANDOM: dict[str, Operation] = {
    **dict.fromkeys(("normal", "uniform", "exponential", "gumbel", "laplace"), _drawn),
    **dict.fromkeys(("beta", "truncated_normal"), _filled("float32", 3, 4)),
    "randint": _filled("int32", 1, 4),
    "bernoulli": _filled("bool", 2, 99),
    **sampling.CHOOSING,
    "split": _keys,
    "key": lambda args: Form(()),
    "PRNGKey": lambda args: Form((2,), "uint32"),
    "fold_in": lambda args: Form(literal(args.get(0, "key")).shape),
}
_ELEMENTWISE_NN = (
    "celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid log_softmax mish relu "
    "relu6 selu sigmoid silu soft_sign softmax softplus squareplus standardize swish tanh"
)
_ELEMENTWISE = (
    "arccos arcsin arctan cbrt ceil clip conj cos cosh exp exp2 expm1 fabs floor log log10 log1p log2 "
    "nan_to_num negative reciprocal rint round rsqrt sign sin sinh sqrt square tan tanh"
)
_LOSSES: dict[str, Operation] = {
    "smooth_labels": _same,
    "softmax_cross_entropy": _per_example,
    "safe_softmax_cross_entropy": _per_example,
    "softmax_cross_entropy_with_integer_labels": _per_label,
    "sigmoid_binary_cross_entropy": _pair_loss("logits", "labels"),
    **dict.fromkeys(("huber_loss", "l2_loss", "log_cosh", "squared_error"), _pair_loss("predictions", "targets")),
    **dict.fromkeys(("cosine_distance", "cosine_similarity"), _over_last("predictions", "targets")),
    "kl_divergence": _over_last("log_predictions", "targets"),
}

LOSSES = tuple(_LOSSES)
"""Losses of optax."""

PAIRED = tuple(f"{head}.{name}" for head in ("jax.numpy", "numpy") for name in (*_PAIRED.split(), *_COMPARED.split()))
"""Functions of two arrays, element by element."""

INITIALIZED = "jax.nn.initializers.Initializer"
"""What an initializer is called that a function of the library made."""

_HEADS = ("jax.nn", "nnx")
_FILLING = ("ones", "zeros")

FUNCTIONS: dict[str, Operation] = {
    **{f"{head}.{name}": form for head in ("jax.numpy", "numpy") for name, form in _NUMPY.items()},
    **{f"jax.random.{name}": form for name, form in _RANDOM.items()},
    **{f"numpy.random.{name}": form for name, form in sampling.FUNCTIONS.items()},
    **{f"{head}.{name}": _same for head in _HEADS for name in _ELEMENTWISE_NN.split()},
    **{f"{head}.{name}": _same for head in ("jax.numpy", "numpy", "jax.lax") for name in _ELEMENTWISE.split()},
    **{f"{head}.{name}": form for head in ("jax.numpy", "numpy") for name, form in spectra.FUNCTIONS.items()},
    **{f"{head}.{name}": form for head in ("optax", "optax.losses") for name, form in _LOSSES.items()},
    **dict.fromkeys(("jax.nn.one_hot", "nnx.one_hot"), _one_hot),
    **networks.FUNCTIONS,
    **dict.fromkeys(("jax.nn.logsumexp", "jax.scipy.special.logsumexp"), _reduction),
    **dict.fromkeys(
        (INITIALIZED, *(f"{head}.initializers.{name}" for head in _HEADS for name in _FILLING)), _initialized
    ),
    "jax.numpy.linalg.norm": _norm,
    "jax.image.resize": _spread_to,
    **dict.fromkeys(("jax.lax.stop_gradient", "jax.lax.with_sharding_constraint"), _kept),
    **lax.FUNCTIONS,
    **{f"jax.ops.segment_{name}": _segmented for name in ("max", "min", "prod", "sum")},
    "jax.experimental.mesh_utils.create_device_mesh": lambda args: Form(shape_of(args.get(0, "mesh_shape")), None),
}
"""What the functions return whose results are known from their arguments, by canonical name."""

SQUASHING = frozenset(f"{head}.{name}" for head in _HEADS for name in ("sigmoid", "softmax"))
"""Functions that make probabilities of logits."""


def with_form(name: str, args: Arguments, result: Value, level: int) -> Value:
    """The result of a call of a library function, with what is known of it."""
    if args.starred:
        return result
    if name in parts.FUNCTIONS:
        return parts.FUNCTIONS[name](args, level) or result
    if name in patterns.FUNCTIONS:
        return patterns.moved(name, args, level) or result
    function = FUNCTIONS.get(name)
    if isinstance(result, Array):
        result.bound = bounds.of_function(name, args)
    if function is not None and isinstance(result, Array):
        form = function(args)
        if form != NOTHING:
            result.form = form
        if function in (_same, _kept, indexing.along_axis) and isinstance(given := args.get(0), Array):
            result.maker = given.maker
        elif function is _paired:
            result.maker = pairing.kept([args.get(0), args.get(1)], result)
        if name in SQUASHING:
            result.squashed = name.replace("jax.nn.", "nnx.")
        elif name in bounds.KEEPING and isinstance(given := args.get(0), Array):
            result.squashed = given.squashed
    return result


def keeps_shape(value: Value) -> bool:
    """Whether a function gives each array back in the same shape."""
    while isinstance(value, PartialVal):
        value = value.func
    return isinstance(value, Ext) and FUNCTIONS.get(value.name) is _same


# -- methods, operators, indices ---------------------------------------------------------------------------------------

_METHODS = {
    name: _NUMPY[name]
    for name in (
        *("all", "any", "argmax", "argmin", "copy", "cumsum", "max", "mean", "min", "prod", "squeeze", "std", "sum"),
        *("swapaxes", "var"),
    )
}


def of_method(array: Array, name: str, args: Arguments) -> Form | None:
    """What a method of an array returns."""
    known = array.form or NOTHING
    if args.starred or (array.form is None and name != "reshape"):
        return None
    if name == "astype":
        return Form(known.shape, dtype_of(args.get(0, "dtype")))
    if name in {"flatten", "ravel"}:
        return Form(algebra.reshaped(known.shape, (-1,)), known.dtype)
    if name in {"reshape", "transpose"} and not args.keywords:
        return _rearranged(known, name, [value for value in args.positional if value is not None])
    function = _METHODS.get(name)
    if function is None:
        return None
    inner = type(args)(args.node, [array, *args.positional], args.keywords, args.nodes)
    form = function(inner)
    return form if form != NOTHING else None


def _rearranged(known: Form, name: str, given: list[Value]) -> Form | None:
    """An array reshaped or transposed, to what is given as one tuple or one by one."""
    wanted = shape_of(given[0]) if len(given) == 1 else tuple(map(dimension, given))
    if name == "transpose":
        return Form(algebra.transposed(known.shape, wanted if given else None), known.dtype)
    return Form(algebra.reshaped(known.shape, wanted), known.dtype) if wanted else None


def of_property(array: Array, name: str) -> Form | None:
    """What a property of an array is that is an array."""
    known = array.form
    if known is None or name not in {"T", "mT"}:
        return None
    return Form(algebra.transposed(known.shape) if name == "T" else algebra.swapped(known.shape, -1, -2), known.dtype)


def of_operator(op: ast.operator, left: Value, right: Value) -> Form | None:
    """What an operator that goes element by element, or ``@``, returns for two arrays, or an array and a number."""
    one, other = literal(left), literal(right)
    if isinstance(op, ast.MatMult):
        known = Form(algebra.product(one.shape, other.shape), _common(one.dtype, other.dtype))
    elif type(op) in _ARITHMETIC:
        dtype = _common(one.dtype, other.dtype)
        if {one.dtype, other.dtype} == {"int32"} and (type(op) in _WHOLE or isinstance(op, ast.Div)):
            dtype = "float32" if isinstance(op, ast.Div) else "int32"
        if {one.dtype, other.dtype} == {"bool"} and type(op) in _BITWISE:
            dtype = "bool"
        known = Form(_broadcast(one.shape, other.shape), dtype)
    else:
        return None
    return known if known != NOTHING else None


def _broadcast(one: Shape | None, other: Shape | None) -> Shape | None:
    """The shape of two arrays element by element, also where nothing is known of one."""
    if one is None or other is None:
        return algebra.beside_any(one if other is None else other)
    return algebra.broadcast(one, other)


def of_comparison(left: Value, right: Value) -> Form:
    """What a comparison of two arrays, or an array and a number, returns."""
    return Form(algebra.broadcast(literal(left).shape, literal(right).shape), "bool")


_WHOLE = frozenset({ast.Add, ast.Sub, ast.Mult})
_BITWISE = frozenset({ast.BitAnd, ast.BitOr, ast.BitXor})
_ARITHMETIC = _WHOLE | _BITWISE | {ast.Div, ast.Pow, ast.Mod, ast.FloorDiv}
