"""What built-in layers ask of their constructor arguments and of the arrays that they are called with.

:func:`problem` judges the numbers that a layer is made with, one against the other; :func:`call` says which shape comes
out for which shape, or what of the shape cannot be. Shapes are those of :mod:`nnx_rules.shapes`: a dimension may be a
Symbol, and one that starts with ``*`` stands for any number of dimensions.

Invariants: an argument that is missing has its default, one that is a Symbol is not known; what is not known decides
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from nnx_rules.records import Record
from nnx_rules.shape_algebra import ANY, broadcast, einsum, is_whole, lettered, places, spread, window
from nnx_rules.shapes import UNKNOWN, Dimension, Form, Shape, Symbol, size, spliced
from nnx_rules.sizes import Size, differ, two_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

# -- constructors ------------------------------------------------------------------------------------------------------


class Problem(NamedTuple):
    """What is wrong with the arguments of a layer, and the mend: the slots of ``layer-arguments``."""

    problem: str
    mend: str


OTHER_SIZES = "choose sizes that can"


def _number(arguments: Mapping[str, object], *names: str, default: int | None = None) -> int | None:
    """The first of these arguments that is given, where it is a number; the next stands in for one that is ``None``."""
    value = _first(arguments, names)
    if value is None:
        return default
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _first(arguments: Mapping[str, object], names: Iterable[str]) -> object:
    return next((value for name in names if (value := arguments.get(name)) is not None), None)


def _sized(arguments: Mapping[str, object], *names: str) -> Dimension | None:
    """The same, where it may be known by its name alone."""
    value = _first(arguments, names)
    return value if isinstance(value, (int, Size)) and not isinstance(value, bool) else None


def _divides(arguments: Mapping[str, object], names: tuple[str, ...], by_names: tuple[str, ...]) -> Problem | None:
    number, by = _number(arguments, *names), _number(arguments, *by_names)
    if number is None or by is None or (by and number % by == 0):
        return None
    return Problem(f"{names[0]}={number} cannot be divided by {by_names[0]}={by}", OTHER_SIZES)


def _attention(arguments: Mapping[str, object]) -> Problem | None:
    heads = ("num_heads",)
    return (
        _divides(arguments, ("qkv_features", "in_features"), heads)
        or _divides(arguments, heads, ("num_kv_heads",))
        or _probability(arguments, "dropout_rate")
    )


def _dropout(arguments: Mapping[str, object]) -> Problem | None:
    return _probability(arguments, "rate")


def _probability(arguments: Mapping[str, object], name: str) -> Problem | None:
    """A number that says how likely something is; what is not known yet may be one."""
    value = arguments.get(name)
    if not isinstance(value, (int, float)) or value is FRACTION or 0 <= value <= 1:
        return None
    tenths = f", such as {value / 100:g} for {value:g} %" if 1 < value <= 100 else ""
    return Problem(f"{name}={value:g} is no probability", f"pass a number between 0 and 1{tenths}")


def _convolution(arguments: Mapping[str, object]) -> Problem | None:
    return _strided_window(arguments, {"CIRCULAR", "REFLECT", "CAUSAL"}) or _grouped(arguments)


def _transposed_convolution(arguments: Mapping[str, object]) -> Problem | None:
    return _strided_window(arguments, {"CIRCULAR"})


def _grouped(arguments: Mapping[str, object]) -> Problem | None:
    if arguments.get("feature_group_count") is None:
        return None
    group = ("feature_group_count",)
    return _divides(arguments, ("in_features",), group) or _divides(arguments, ("out_features",), group)


def _strided_window(arguments: Mapping[str, object], paddings: set[str]) -> Problem | None:
    """What is said of each axis that a window goes along, as often as the window has axes.

    Args:
        arguments: the arguments of a convolution.
        paddings: names of paddings that this one knows beside those of every window.
    """
    window = _several(arguments.get("kernel_size", UNKNOWN))
    if window is None or not is_whole(window):
        return None
    count = len(window)
    for name in ("strides", "input_dilation", "kernel_dilation", "padding"):
        value = arguments.get(name)
        if not isinstance(value, tuple):
            continue
        items = cast("tuple[object, ...]", value)
        several = any(str(item).startswith("*") for item in items)
        if not several and len(items) != count and (name, len(items)) != ("padding", 1):
            given = f"{name}={items} and kernel_size={window}"
            return Problem(f"{given} have different lengths", "give one number for each axis of the window, or one")
    padding = arguments.get("padding")
    if not isinstance(padding, str) or isinstance(padding, Symbol):
        return None
    known = sorted({*PADDINGS, *paddings})
    if padding.upper() not in known:
        return Problem(f"padding={padding!r} is none that it knows", f"write one of {', '.join(known)}, or numbers")
    if padding.upper() == "CAUSAL" and count != 1:
        problem = f"causal padding has a meaning along one axis, and the kernel has {count}"
        return Problem(problem, "pad with explicit pairs instead")
    return None


PADDINGS = ("SAME", "SAME_LOWER", "VALID")
"""The names of paddings that every window knows."""


def _groups(arguments: Mapping[str, object]) -> Problem | None:
    groups = arguments.get("num_groups", 32)
    each = arguments.get("group_size")
    if isinstance(groups, Symbol) or isinstance(each, Symbol):
        return None
    if bool(groups) == bool(each):
        given = f"num_groups={groups} and group_size={each}, and exactly one has to be given"
        return Problem(given, "pass `num_groups=None` with `group_size=`")
    parts, features = groups or each, _number(arguments, "num_features")
    if features is None or not isinstance(parts, int) or features % parts == 0:
        return None
    what = "groups" if groups else "features a group"
    return Problem(
        f"{features} features cannot be divided: {parts} {what}",
        "pass `num_groups` or `group_size` that divides the features",
    )


def _equation(arguments: Mapping[str, object]) -> Problem | None:
    text = arguments.get("einsum_str")
    if text is None or isinstance(text, Symbol):
        return None
    equation = "".join(text.split()) if isinstance(text, str) else ""
    if "->" not in equation or equation.count(",") != 1:
        return Problem(
            f"`einsum_str` {text!r} is not an equation of two operands with `->`",
            "write the input, the kernel and the result out: `...i,ij->...j`",
        )
    given, _, result = equation.partition("->")
    new = sorted(set(result) - {*given, "."})
    if new:
        return Problem(f"the result of `{equation}` has `{new[0]}`, which no operand has", "take it from an operand")
    kernel, bias = (_known(arguments.get(name)) for name in ("kernel_shape", "bias_shape"))
    operand = given.partition(",")[2]
    held = lettered(operand, kernel) if kernel is not None else None
    if kernel is not None and held is None:
        return Problem(f"kernel_shape={kernel} is no `{operand}` of `{equation}`", "give a size for each letter")
    if held is None or bias is None:
        return None
    letters, beside = held
    expected = (*(letters[name] for name in result.replace("...", "") if name in letters), *beside)
    if size(bias) == size(expected):
        return None
    return Problem(
        f"bias_shape={bias} does not fit kernel_shape={kernel}: of `{operand}`, {expected} is in the result of "
        f"`{equation}`",
        "give the sizes of the kernel that are in the result",
    )


def _known(value: object) -> tuple[int, ...] | None:
    """A size or several, where all of them are numbers."""
    shape = _several(value) if value is not None else None
    numbers = tuple(item for item in shape or () if isinstance(item, int))
    return numbers if shape is not None and len(numbers) == len(shape) else None


def _axes(arguments: Mapping[str, object]) -> Problem | None:
    """A linear map takes as many sizes as it takes axes."""
    takes, axes = (_several(arguments.get(name, default)) for name, default in (("in_features", None), ("axis", -1)))
    known = takes is not None and axes is not None and is_whole(takes) and is_whole(axes)
    if takes is None or axes is None or not known or len(takes) == len(axes):
        return None
    last = tuple(range(-len(takes), 0))
    given = (
        f"in_features has {_counted(takes, 'size')}, and axis={_or_one(axes)} names {_counted(axes, 'axis', 'axes')}"
    )
    return Problem(given, f"name the axes that it sums over: `axis={last if len(last) > 1 else -1}`")


def _or_one(axes: Shape) -> object:
    return axes if len(axes) != 1 else axes[0]


def _counted(items: Shape, one: str, several: str | None = None) -> str:
    return f"{len(items)} {one if len(items) == 1 else several or one + 's'}"


_SIZES: dict[str, tuple[str, ...]] = {
    "nnx.Linear": ("in_features", "out_features"),
    "nnx.LinearGeneral": ("in_features", "out_features"),
    "nnx.Einsum": ("kernel_shape", "bias_shape"),
    "nnx.Conv": ("in_features", "out_features", "kernel_size", "feature_group_count"),
    "nnx.ConvTranspose": ("in_features", "out_features", "kernel_size"),
    "nnx.Embed": ("num_embeddings", "features"),
    "nnx.MultiHeadAttention": (
        *("num_heads", "num_kv_heads", "in_features", "in_kv_features", "qkv_features", "out_features"),
    ),
    "nnx.LoRA": ("in_features", "lora_rank", "out_features"),
    "nnx.GroupNorm": ("num_features", "num_groups", "group_size"),
    **dict.fromkeys(("nnx.BatchNorm", "nnx.LayerNorm", "nnx.RMSNorm", "nnx.InstanceNorm"), ("num_features",)),
    **dict.fromkeys(
        ("nnx.LSTMCell", "nnx.OptimizedLSTMCell", "nnx.GRUCell", "nnx.SimpleCell"), ("in_features", "hidden_features")
    ),
}
"""The constructor arguments that are sizes of arrays."""

SIZES = frozenset(name for names in _SIZES.values() for name in names)
"""Their names."""

_SEVERAL = frozenset(
    {
        *(("nnx.LinearGeneral", name) for name in ("in_features", "out_features")),
        *(("nnx.MultiHeadAttention", name) for name in ("in_features", "in_kv_features", "out_features")),
        *(("nnx.Einsum", name) for name in ("kernel_shape", "bias_shape")),
        *((name, "kernel_size") for name in ("nnx.Conv", "nnx.ConvTranspose")),
    }
)
"""Those that may be several sizes."""

_OPTIONAL = frozenset(
    {("nnx.Einsum", "bias_shape"), *(("nnx.GroupNorm", name) for name in ("num_groups", "group_size"))}
)
"""Those that may be ``None``."""


def counts(name: str) -> frozenset[str]:
    """The constructor arguments of a class that are one size each."""
    return frozenset(each for each in _SIZES.get(name, ()) if (name, each) not in _SEVERAL | _OPTIONAL)


FRACTION = float("nan")
"""Stands for a number of which nothing is known but that it has a fraction, as all have that ``/`` gives."""


def no_size(name: str, arguments: Mapping[str, object]) -> Problem | None:
    """Which of the constructor arguments of a class is no size, where a size is asked for; ``None`` if all are.

    Args:
        name: canonical name of the class.
        arguments: what is given, as for :func:`problem`; also things that can be no size at all.

    >>> no_size("nnx.Linear", {"in_features": 3, "out_features": -4}).problem
    'out_features=-4 is no size'
    """
    for argument in _SIZES.get(name, ()):
        value = arguments.get(argument, UNKNOWN)
        if value is None and (name, argument) in _OPTIONAL:
            continue
        several = isinstance(value, tuple) and (name, argument) in _SEVERAL
        sizes = cast("tuple[object, ...]", value if several else (value,))
        if not all(isinstance(item, Symbol) or (isinstance(item, int) and item >= 0) for item in sizes):
            wanted = "whole numbers above 0" if several else "a whole number above 0"
            fractional = any(isinstance(item, float) for item in sizes)
            how = ": `//` divides to one, and `int(...)` makes one" if fractional else ""
            given = f"{argument}={value!r}" if value is not FRACTION else f"`{argument}`, which has a fraction,"
            return Problem(f"{given} is no size", f"give {wanted}{how}")
    return None


INTEGERS = frozenset({"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (4, 8, 16, 32, 64))})
"""Dtypes of whole numbers."""

DRAWN = frozenset(
    {
        *("nnx.Conv", "nnx.ConvTranspose", "nnx.Einsum", "nnx.Embed", "nnx.Linear", "nnx.LinearGeneral"),
        *("nnx.MultiHeadAttention", "nnx.GRUCell", "nnx.LSTMCell", "nnx.OptimizedLSTMCell", "nnx.SimpleCell"),
    }
)
"""Layers that draw a parameter, if they get no initializer."""


def integer_parameters(dtype: str) -> Problem:
    """What is wrong with a layer whose parameters are to be integers, and are drawn as floats."""
    problem = f"`param_dtype` is {dtype}, and its initializer does not make integers"
    return Problem(problem, "pass a dtype of floats, such as jnp.float32")


_CONSTRUCTORS: dict[str, Callable[[Mapping[str, object]], Problem | None]] = {
    "nnx.MultiHeadAttention": _attention,
    "nnx.Dropout": _dropout,
    "nnx.Conv": _convolution,
    "nnx.ConvTranspose": _transposed_convolution,
    "nnx.GroupNorm": _groups,
    "nnx.Einsum": _equation,
    "nnx.LinearGeneral": _axes,
}


CHECKED = frozenset({*_CONSTRUCTORS, *_SIZES})
"""The classes whose constructor arguments are judged, by canonical name."""


def problem(name: str, arguments: Mapping[str, object]) -> Problem | None:
    """What is wrong with the constructor arguments of a class; ``None`` if nothing is known to be.

    Args:
        name: canonical name of the class.
        arguments: what is given, by parameter name: numbers, strings, ``None``, tuples, and Symbols for the unknown.

    >>> problem("nnx.GroupNorm", {"num_features": 6}).problem
    '6 features cannot be divided: 32 groups'
    """
    judge = _CONSTRUCTORS.get(name)
    return judge(arguments) if judge is not None else None


# -- calls -------------------------------------------------------------------------------------------------------------


class Layer(Record):
    """How a layer reads its first argument.

    Attributes:
        argument: the name of that argument.
        takes: the constructor arguments that say what its last axis has; the first that is given counts.
        gives: the same for the result; ``()`` if the shape stays as it is.
        unless: constructor arguments with which the layer looks at other axes.
        integers: whether it takes integers only, and adds an axis.
        broadcasts: whether an axis of size one fits any other, as flax has it.
        spatial: whether it looks at neighbours along the axes between the first and the last.
    """

    argument: str = "inputs"
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    integers: bool = False
    spatial: bool = False
    broadcasts: bool = False


_NORM = Layer("x", ("num_features",), broadcasts=True, unless=("axis", "feature_axes", "reduction_axes"))
_LINEAR = Layer("inputs", ("in_features",), ("out_features",))

CALLS: dict[str, Layer] = {
    "nnx.Linear": _LINEAR,
    "nnx.LoRALinear": Layer("x", ("in_features",), ("out_features",)),
    "nnx.LoRA": Layer("x", ("in_features",), ("out_features",)),
    "nnx.Conv": Layer("inputs", ("in_features",), ("out_features",), spatial=True),
    "nnx.ConvTranspose": Layer("inputs", ("in_features",), ("out_features",), spatial=True),
    "nnx.Embed": Layer("inputs", gives=("features",), integers=True),
    "nnx.BatchNorm": _NORM,
    "nnx.LayerNorm": _NORM,
    "nnx.RMSNorm": _NORM,
    "nnx.GroupNorm": _NORM,
    "nnx.InstanceNorm": _NORM,
    "nnx.Dropout": Layer("inputs"),
    "nnx.PReLU": Layer("inputs"),
    "nnx.MultiHeadAttention": Layer("inputs_q", ("in_features",), ("out_features", "in_features")),
}
"""The layers whose calls are known by canonical name."""

CELLS: dict[str, Layer] = dict.fromkeys(
    ("nnx.GRUCell", "nnx.LSTMCell", "nnx.OptimizedLSTMCell", "nnx.SimpleCell"),
    Layer("inputs", ("in_features",), ("hidden_features",)),
)
"""The cells of which an ``nnx.RNN`` is known: what it is called with, and what it gives."""

CARRIES: dict[str, Layer] = dict.fromkeys(
    ("nnx.GRUCell", "nnx.SimpleCell"), Layer("carry", ("hidden_features",), ("hidden_features",))
)
"""The cells whose carry is one array."""

SOURCES: dict[str, dict[str, Layer]] = {
    name: {"nnx.MultiHeadAttention": Layer(name, ("in_kv_features", "in_features"))}
    for name in ("inputs_k", "inputs_v")
}
"""What layers are called with besides their first argument, by its name; attention takes keys and values."""

METHODS: dict[str, dict[str, Layer]] = {"attend": {"nnx.Embed": Layer("query", ("features",), ("num_embeddings",))}}
"""Other methods of layers that are called with an array."""


class Mismatch(NamedTuple):
    """What a layer expects of its argument; ``dtype`` says that it is about that, not about the shape; ``names`` are
    what tells the two sizes apart, where they are known to differ by their names alone.
    """

    argument: str
    expected: str
    dtype: bool = False
    names: tuple[Dimension, Dimension] | None = None


def call(
    name: str, arguments: Mapping[str, object], given: Form, table: Mapping[str, Layer] = CALLS
) -> tuple[Form | None, Mismatch | None]:
    """What comes out of a layer that is called with an array, and why it cannot be called with that.

    Args:
        name: canonical name of the layer's class.
        arguments: its constructor arguments, as for :func:`problem`.
        given: what is known of the array.
        table: the layers by name; the cells for what a recurrent layer does with one.

    >>> form, wrong = call("nnx.Linear", {"in_features": 4, "out_features": 8}, Form((2, 3)))
    >>> wrong.expected, form.shape
    ('(..., 4)', (2, 8))
    """
    if name in _OTHERS and table is CALLS:
        return _OTHERS[name](arguments, given)
    layer = table.get(name)
    if layer is None or any(arguments.get(option) is not None for option in layer.unless):
        return None, None
    if layer.integers:
        return _embedded(layer, arguments, given)
    wrong: Mismatch | None = None
    expected = _sized(arguments, *layer.takes)
    last = given.shape[-1] if given.shape else UNKNOWN
    repeated = layer.broadcasts and 1 in (expected, last)
    single = given.shape == () and not layer.spatial
    if expected is not None and (single or differ(last, expected)) and not repeated:
        wrong = Mismatch(layer.argument, f"(..., {expected})")
    elif expected is not None and not repeated and (names := two_names(last, expected)) is not None:
        wrong = Mismatch(layer.argument, f"(..., {expected})", names=names)
    if not layer.gives and (expected is None or repeated):
        same = given if not layer.broadcasts else Form(given.shape, _promoted(given.dtype))  # a norm has parameters
        return (None if repeated else same), wrong
    result = expected if not layer.gives else _sized(arguments, *layer.gives)
    leading = given.shape[:-1] if given.shape else (ANY,)
    if layer.spatial and len(leading) > 1:
        size = _several(arguments.get("kernel_size", UNKNOWN))
        first = max(len(leading) - len(size), 0) if size is not None else 1  # whatever is before is counted along
        leading = (*leading[:first], *_strided(leading[first:], arguments, name))
    dtype = given.dtype if name == "nnx.Linear" and given.dtype == "complex64" else _promoted(given.dtype)
    return Form((*leading, UNKNOWN if result is None else result), dtype), wrong


def taken(name: str, arguments: Mapping[str, object]) -> Dimension | None:
    """The size of the last axis of what a layer takes; ``None`` where it is not known, or may be several.

    >>> taken("nnx.Linear", {"in_features": 4, "out_features": 8})
    4
    """
    layer = CALLS.get(name)
    if layer is None or any(arguments.get(option) is not None for option in layer.unless):
        return None
    return _sized(arguments, *layer.takes)


def _promoted(dtype: str | None) -> str | None:
    """What comes of numbers of a dtype and parameters that nobody gave another one than float32."""
    return dtype if dtype in {"float32", "float64"} else None


def _strided(axes: Shape, arguments: Mapping[str, object], name: str) -> Shape:
    """The sizes of the axes that a convolution goes along."""
    size, strides, padding = (arguments.get(option) for option in ("kernel_size", "strides", "padding"))
    padding = "SAME" if padding is None else padding
    if arguments.get("input_dilation") not in (None, 1) or name not in {"nnx.Conv", "nnx.ConvTranspose"}:
        return tuple(item if str(item).startswith("*") else UNKNOWN for item in axes)
    if name == "nnx.Conv":
        return window(axes, size, strides, padding, arguments.get("kernel_dilation"))
    plain = arguments.get("kernel_dilation") in (None, 1)
    return spread(axes, size, strides, padding if plain else UNKNOWN)


def _general(arguments: Mapping[str, object], given: Form) -> tuple[Form | None, Mismatch | None]:
    """A linear map over several axes."""
    takes, gives, axes = (_several(arguments.get(name, default)) for name, default in _GENERAL)
    batch = _pairs(arguments.get("batch_axis"))
    if batch is None or takes is None or gives is None or axes is None or len(axes) != len(takes):
        return None, None
    shape = given.shape if given.shape is not None else (ANY,)
    leading = tuple(axis for axis, _ in batch)
    sizes = [*batch, *zip(axes, takes, strict=True)]
    if is_whole(shape):
        gone = places((*leading, *axes), len(shape))
        first = gone is not None and gone[: len(leading)] == tuple(range(len(leading)))
        if gone is None or not first or not all(_may_equal(shape[axis], length) for axis, length in _known_axes(sizes)):
            known = all(isinstance(axis, int) for axis, _ in sizes)
            return None, Mismatch("inputs", _with_axes(sizes)) if known else None
        return Form((*(item for place, item in enumerate(shape) if place not in gone[len(leading) :]), *gives)), None
    count = len(axes)
    if batch or axes != tuple(range(-count, 0)):
        return None, None
    if len(shape) <= count:
        return Form((ANY, *gives)), None
    fits = all(_may_equal(*pair) for pair in zip(shape[-count:], takes, strict=True))
    wrong = None if fits else Mismatch("inputs", _with_axes(sizes))
    return Form((*shape[:-count], *gives), _promoted(given.dtype)), wrong


_GENERAL = (("in_features", None), ("out_features", None), ("axis", -1))


def _pairs(value: object) -> tuple[tuple[int, int], ...] | None:
    """Axes with their sizes; ``None`` if they are not known."""
    if value is None:
        return ()
    return cast("tuple[tuple[int, int], ...]", value) if isinstance(value, tuple) else None


def _known_axes(sizes: Sequence[tuple[Dimension, Dimension]]) -> Iterator[tuple[int, Dimension]]:
    return ((axis, length) for axis, length in sizes if isinstance(axis, int))


def _with_axes(sizes: Sequence[tuple[Dimension, Dimension]]) -> str:
    """A shape that has these sizes along these axes, some counted from the end.

    >>> _with_axes([(1, 2), (-1, 3)])
    '(?, 2, ..., 3)'
    """
    wanted = dict(_known_axes(sizes))
    head = [wanted.get(axis, UNKNOWN) for axis in range(max(wanted, default=-1) + 1)]
    tail = [wanted.get(axis, UNKNOWN) for axis in range(min(0, min(wanted, default=0)), 0)]
    return shown((*head, ANY, *tail))


def _several(value: object) -> Shape | None:
    """A size or several, where it is known how many; what a class computes with, or names a size, is one."""
    if isinstance(value, Size):
        return (value,)
    return None if isinstance(value, Symbol) else spliced(value)


def _may_equal(left: Dimension, right: Dimension) -> bool:
    return not differ(left, right)


def _repeats(left: Dimension, right: Dimension) -> bool:
    """Whether two axes may be one, of which einsum repeats the one that has size one."""
    return _may_equal(left, right) or 1 in (left, right)


def _equated(arguments: Mapping[str, object], given: Form) -> tuple[Form | None, Mismatch | None]:
    """An equation with a kernel."""
    text, kernel = arguments.get("einsum_str"), _several(arguments.get("kernel_shape"))
    if not isinstance(text, str) or isinstance(text, Symbol) or kernel is None or _equation(arguments) is not None:
        return None, None
    text = "".join(text.split())
    first, second = text.partition("->")[0].split(",")
    held = lettered(second, kernel)
    if held is not None and given.shape is not None:
        found = lettered(first, given.shape)
        wanted = {name: held[0].get(name, UNKNOWN) for name in first}
        fits = found is not None and broadcast(found[1], held[1]) is not None
        if found is None or not fits or not all(_repeats(item, wanted[name]) for name, item in found[0].items()):
            head, dots, tail = first.partition("...")
            sizes = [[wanted[name] for name in part] for part in (head, tail)]
            return None, Mismatch("inputs", shown((*sizes[0], *([ANY] if dots else ()), *sizes[1])))
    shape = einsum(text, given.shape, kernel)
    return (Form(shape, _promoted(given.dtype)) if shape is not None else None), None


_OTHERS: dict[str, Callable[[Mapping[str, object], Form], tuple[Form | None, Mismatch | None]]] = {
    "nnx.Einsum": _equated,
    "nnx.LinearGeneral": _general,
}
"""Layers that look at axes in ways of their own."""


def _embedded(layer: Layer, arguments: Mapping[str, object], given: Form) -> tuple[Form | None, Mismatch | None]:
    wrong = Mismatch(layer.argument, "integers", True) if is_fractional(given.dtype) else None
    features = _sized(arguments, *layer.gives)
    leading = given.shape if given.shape is not None else (ANY,)
    return Form((*leading, UNKNOWN if features is None else features)), wrong


def is_fractional(dtype: str | None) -> bool:
    """Whether numbers of a dtype have fractions."""
    return dtype is not None and dtype.startswith(("float", "bfloat", "complex"))


def is_integral(dtype: str | None) -> bool:
    """Whether a dtype is one of integers."""
    return dtype is not None and dtype.startswith(("int", "uint"))


def shown(shape: Shape) -> str:
    """A shape as messages show it: ``(2, 8)``, ``(..., 16)``, ``(4, ?, 16)``."""
    parts = ["..." if str(item).startswith("*") else str(item) for item in shape]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
