"""What built-in layers ask of their constructor arguments and of the arrays that they are called with.

:func:`problem` judges the numbers that a layer is made with, one against the other; :func:`call` says which shape comes
out for which shape, or what of the shape cannot be. Shapes are those of :mod:`nnx_rules.shapes`: a dimension may be a
Symbol, and one that starts with ``*`` stands for any number of dimensions.

Invariants: an argument that is missing has its default, one that is a Symbol is not known; what is not known decides
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from nnx_rules.shapes import UNKNOWN, Dimension, Form, Shape, Symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# -- constructors ------------------------------------------------------------------------------------------------------


class Problem(NamedTuple):
    """What is wrong with the arguments of a layer, and the mend: the slots of ``layer-arguments``."""

    problem: str
    mend: str


SIZES = "choose sizes that can"


def _number(arguments: Mapping[str, object], *names: str, default: int | None = None) -> int | None:
    """The first of these arguments that is given, where it is a number; the next stands in for one that is ``None``."""
    for name in names:
        value = arguments.get(name)
        if value is None:
            continue
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    return default


def _divides(arguments: Mapping[str, object], names: tuple[str, ...], by_names: tuple[str, ...]) -> Problem | None:
    number, by = _number(arguments, *names), _number(arguments, *by_names)
    if number is None or by is None or (by and number % by == 0):
        return None
    return Problem(f"{names[0]}={number} cannot be divided by {by_names[0]}={by}", SIZES)


def _attention(arguments: Mapping[str, object]) -> Problem | None:
    heads = ("num_heads",)
    return _divides(arguments, ("qkv_features", "in_features"), heads) or _divides(arguments, heads, ("num_kv_heads",))


def _convolution(arguments: Mapping[str, object]) -> Problem | None:
    if arguments.get("feature_group_count") is None:
        return None
    group = ("feature_group_count",)
    return _divides(arguments, ("in_features",), group) or _divides(arguments, ("out_features",), group)


def _groups(arguments: Mapping[str, object]) -> Problem | None:
    groups = arguments.get("num_groups", 32)
    size = arguments.get("group_size")
    if isinstance(groups, Symbol) or isinstance(size, Symbol):
        return None
    if bool(groups) == bool(size):
        given = f"num_groups={groups} and group_size={size}, and exactly one has to be given"
        return Problem(given, "pass `num_groups=None` with `group_size=`")
    parts, features = groups or size, _number(arguments, "num_features")
    if features is None or not isinstance(parts, int) or features % parts == 0:
        return None
    what = "groups" if groups else "features a group"
    return Problem(
        f"{features} features cannot be divided: {parts} {what}",
        "pass `num_groups` or `group_size` that divides the features",
    )


def _equation(arguments: Mapping[str, object]) -> Problem | None:
    text = arguments.get("einsum_str")
    if not isinstance(text, str) or isinstance(text, Symbol):
        return None
    if "->" in text and text.count(",") == 1:
        return None
    return Problem(
        f"`einsum_str` {text!r} is not an equation of two operands with `->`",
        "write the input, the kernel and the result out: `...i,ij->...j`",
    )


_CONSTRUCTORS: dict[str, Callable[[Mapping[str, object]], Problem | None]] = {
    "nnx.MultiHeadAttention": _attention,
    "nnx.Conv": _convolution,
    "nnx.ConvTranspose": _convolution,
    "nnx.GroupNorm": _groups,
    "nnx.Einsum": _equation,
}


CHECKED = frozenset(_CONSTRUCTORS)
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


@dataclass(frozen=True, slots=True)
class Layer:
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


class Mismatch(NamedTuple):
    """What a layer expects of its argument; ``dtype`` says that it is about that, and not about the shape."""

    argument: str
    expected: str
    dtype: bool = False


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
    layer = table.get(name)
    if layer is None or any(arguments.get(option) is not None for option in layer.unless):
        return None, None
    if layer.integers:
        return _embedded(layer, arguments, given)
    wrong: Mismatch | None = None
    size = _number(arguments, *layer.takes)
    last = given.shape[-1] if given.shape else UNKNOWN
    broadcast = layer.broadcasts and 1 in (size, last)
    if size is not None and isinstance(last, int) and last != size and not broadcast:
        wrong = Mismatch(layer.argument, f"(..., {size})")
    if not layer.gives and (size is None or broadcast):
        return (None if broadcast else given), wrong
    result = size if not layer.gives else _number(arguments, *layer.gives)
    leading = given.shape[:-1] if given.shape else (ANY,)
    if layer.spatial and len(leading) > 1:
        leading = (leading[0], *_strided(leading[1:], arguments, name))
    dtype = given.dtype if given.dtype and given.dtype.startswith("float") else None
    return Form((*leading, UNKNOWN if result is None else result), dtype), wrong


def _strided(axes: Shape, arguments: Mapping[str, object], name: str) -> Shape:
    """The sizes of the axes that a convolution goes along."""
    dilated = any(arguments.get(option) not in (None, 1) for option in ("input_dilation", "kernel_dilation"))
    if name != "nnx.Conv" or dilated:
        return tuple(item if str(item).startswith("*") else UNKNOWN for item in axes)
    return window(axes, arguments.get("kernel_size"), arguments.get("strides"), arguments.get("padding", "SAME"))


def window(axes: Shape, size: object, strides: object, padding: object) -> Shape:
    """The sizes of axes that a window goes along: a convolution or pooling with these options."""
    sizes, steps = (_per_axis(value, len(axes)) for value in (size, 1 if strides is None else strides))
    return tuple(_moved(*item, padding) for item in zip(axes, sizes, steps, strict=True))


def _per_axis(value: object, count: int) -> tuple[object, ...]:
    items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,) * count
    return items if len(items) == count else (UNKNOWN,) * count


def _moved(axis: Dimension, size: object, step: object, padding: object) -> Dimension:
    if not isinstance(axis, int) or not isinstance(step, int) or step < 1:
        return axis if str(axis).startswith("*") else UNKNOWN
    if padding == "SAME":
        return -(-axis // step)
    if padding == "VALID" and isinstance(size, int) and 0 < size <= axis:
        return (axis - size) // step + 1
    return UNKNOWN


def _embedded(layer: Layer, arguments: Mapping[str, object], given: Form) -> tuple[Form | None, Mismatch | None]:
    wrong = Mismatch(layer.argument, "integers", True) if is_fractional(given.dtype) else None
    features = _number(arguments, *layer.gives)
    leading = given.shape if given.shape is not None else (ANY,)
    return Form((*leading, UNKNOWN if features is None else features)), wrong


ANY = Symbol("*?")
"""Any number of dimensions of which nothing is known."""


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
