"""The shapes and dtypes of the Variables of built-in layers, from constructor arguments.

One table says for each class and each path below an instance what the dimensions are, in a little language: names of
constructor arguments, separated by spaces, with ``*`` before one that is a shape itself, ``4*hidden_features`` for a
product and ``in_features/groups`` for a quotient. An argument that is not given, or given as ``None``, is what
``DEFAULTS`` says.

Invariants: a dimension is a number only where the arguments make it certain. What is known by its source text alone is
a :class:`Symbol`, and arithmetic with it gives a Symbol; a shape that may have any number of dimensions holds a Symbol
that starts with ``*``. A path that the table lacks has no known shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from nnx_rules.records import Record

if TYPE_CHECKING:
    from collections.abc import Mapping


class Symbol(str):
    """A number or shape of which only the source text is known."""

    __slots__ = ()


UNKNOWN = Symbol("?")

Dimension = int | Symbol
Shape = tuple[Dimension, ...]
Path = tuple[str, ...]


class Form(Record):
    """What a Variable holds: ``None`` where nothing is known."""

    shape: Shape | None = None
    dtype: str | None = None


_FEATURES = "num_features"
_NORM = {"scale": _FEATURES, "bias": _FEATURES}
_LINEAR = {"kernel": "in_features out_features", "bias": "out_features"}
_LSTM_INPUTS = {f"{name}.kernel": "in_features hidden_features" for name in ("ii", "if_", "ig", "io")}
_LSTM_STATES = {
    f"{name}.{part}": dimensions
    for name in ("hi", "hf", "hg", "ho")
    for part, dimensions in (("kernel", "hidden_features hidden_features"), ("bias", "hidden_features"))
}
_HEAD = "qkv_features/num_heads"
_ATTENTION = {
    "query.kernel": f"in_features num_heads {_HEAD}",
    "query.bias": f"num_heads {_HEAD}",
    **{
        f"{name}.{part}": dimensions
        for name in ("key", "value")
        for part, dimensions in (
            ("kernel", f"in_kv_features num_kv_heads {_HEAD}"),
            ("bias", f"num_kv_heads {_HEAD}"),
        )
    },
    "out.kernel": f"num_heads {_HEAD} out_features",
    "out.bias": "out_features",
    "query_ln.scale": _HEAD,
    "key_ln.scale": _HEAD,
}

DIMENSIONS: dict[str, dict[str, str]] = {
    "nnx.Linear": _LINEAR,
    "nnx.LinearGeneral": {"kernel": "*batch_axis *in_features *out_features", "bias": "*batch_axis *out_features"},
    "nnx.Einsum": {"kernel": "*kernel_shape", "bias": "*bias_shape"},
    "nnx.Conv": {"kernel": "*kernel_size in_features/feature_group_count out_features", "bias": "out_features"},
    "nnx.ConvTranspose": {"kernel": "*kernel_size in_features out_features", "bias": "out_features"},
    "nnx.Embed": {"embedding": "num_embeddings features"},
    "nnx.BatchNorm": {**_NORM, "mean": _FEATURES, "var": _FEATURES},
    "nnx.LayerNorm": _NORM,
    "nnx.RMSNorm": {"scale": _FEATURES},
    "nnx.GroupNorm": _NORM,
    "nnx.InstanceNorm": _NORM,
    "nnx.MultiHeadAttention": _ATTENTION,
    "nnx.LSTMCell": {**_LSTM_INPUTS, **_LSTM_STATES},
    "nnx.OptimizedLSTMCell": {
        "dense_i.kernel": "in_features 4*hidden_features",
        "dense_h.kernel": "hidden_features 4*hidden_features",
        "dense_h.bias": "4*hidden_features",
    },
    "nnx.GRUCell": {
        "dense_i.kernel": "in_features 3*hidden_features",
        "dense_i.bias": "3*hidden_features",
        "dense_h.kernel": "hidden_features 3*hidden_features",
    },
    "nnx.SimpleCell": {
        "dense_i.kernel": "in_features hidden_features",
        "dense_i.bias": "hidden_features",
        "dense_h.kernel": "hidden_features hidden_features",
    },
    "nnx.LoRA": {"lora_a": "in_features lora_rank", "lora_b": "lora_rank out_features"},
    "nnx.LoRALinear": {**_LINEAR, "lora.lora_a": "in_features lora_rank", "lora.lora_b": "lora_rank out_features"},
    "nnx.PReLU": {"negative_slope": ""},
    "nnx.RngStream": {"key": "", "count": ""},
    "nnx.Optimizer": {"step": ""},
    "nnx.ModelAndOptimizer": {"step": ""},
    "nnx.metrics.Average": {"total": "", "count": ""},
    "nnx.metrics.Accuracy": {"total": "", "count": ""},
    "nnx.metrics.Welford": {"count": "", "mean": "", "m2": ""},
}
"""The dimensions of what an instance holds, by canonical class name and dotted path."""

DEFAULTS: dict[str, dict[str, str | int | tuple[int, ...]]] = {
    "nnx.LinearGeneral": {"batch_axis": ()},
    "nnx.Conv": {"feature_group_count": 1},
    "nnx.MultiHeadAttention": {
        "qkv_features": "in_features",
        "out_features": "in_features",
        "num_kv_heads": "num_heads",
        "in_kv_features": "in_features",
    },
}
"""What an argument is when it is not given: a value, or (as a string) another argument."""

UNTABLED: dict[str, tuple[tuple[str, object], ...]] = {
    "nnx.ConvTranspose": (("transpose_kernel", False),),
    "nnx.LayerNorm": (("feature_axes", -1),),
    "nnx.RMSNorm": (("feature_axes", -1),),
    "nnx.InstanceNorm": (("feature_axes", -1),),
}
"""Options that change the shapes in ways the table does not tell: they must be absent, or given with this value."""

DTYPES: dict[tuple[str, str], str] = {
    ("nnx.BatchNorm", "mean"): "float32",
    ("nnx.BatchNorm", "var"): "float32",
    ("nnx.RngStream", "key"): "key<fry>",
    ("nnx.RngStream", "count"): "uint32",
    ("nnx.Optimizer", "step"): "uint32",
    ("nnx.ModelAndOptimizer", "step"): "uint32",
    ("nnx.metrics.Average", "total"): "float32",
    ("nnx.metrics.Average", "count"): "int32",
    ("nnx.metrics.Accuracy", "total"): "float32",
    ("nnx.metrics.Accuracy", "count"): "int32",
    ("nnx.metrics.Welford", "count"): "int32",
    ("nnx.metrics.Welford", "mean"): "float32",
    ("nnx.metrics.Welford", "m2"): "float32",
}
"""The dtypes that no argument decides, by class and path; those of all others are the argument ``param_dtype``."""

DTYPE_ARGUMENTS: dict[tuple[str, str], str] = {
    ("nnx.LoRALinear", "lora.lora_a"): "lora_param_dtype",
    ("nnx.LoRALinear", "lora.lora_b"): "lora_param_dtype",
}
"""The arguments that decide a dtype where it is not ``param_dtype``."""

DTYPE_BYTES: dict[str, int] = {
    **dict.fromkeys(("bool", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64", "key<fry>"), 8),
    "complex128": 16,
}
"""The size of one element."""


def in_short(dtype: str) -> str:
    """A dtype as JAX has it that was not told to compute in long numbers.

    >>> in_short("int64"), in_short("complex128"), in_short("bfloat16")
    ('int32', 'complex64', 'bfloat16')
    """
    if dtype.startswith("complex"):
        return "complex64"
    return dtype.replace("64", "32") if dtype.startswith(("float", "int", "uint")) else dtype


def form(name: str, path: Path, arguments: Mapping[str, object]) -> Form | None:
    """What the Variable at ``path`` below an instance of the class ``name`` holds; ``None`` if the table lacks it.

    Args:
        name: canonical name of the class.
        path: attribute names.
        arguments: the constructor arguments by name: integers, tuples of them, ``None``, names of dtypes, and Symbols
            for what is not known. An argument that is missing was not given.
    """
    dotted = ".".join(path)
    dimensions = DIMENSIONS.get(name, {}).get(dotted)
    if dimensions is None:
        return None
    known = all(arguments.get(option, value) == value for option, value in UNTABLED.get(name, ()))
    shape = _shape(name, dimensions, arguments) if known else None
    return Form(shape, _dtype(name, dotted, arguments))


def size(shape: Shape) -> int | None:
    """The number of elements, where all dimensions are numbers."""
    count = 1
    for dimension in shape:
        if isinstance(dimension, Symbol):
            return None
        count *= dimension
    return count


def _shape(name: str, dimensions: str, arguments: Mapping[str, object]) -> Shape | None:
    shape: list[Dimension] = []
    for term in dimensions.split():
        if term.startswith("*"):
            part = spliced(_argument(name, term[1:], arguments))
            if part is None:
                return None
            shape += part
        else:
            shape.append(_dimension(name, term, arguments))
    return tuple(shape)


def _argument(name: str, term: str, arguments: Mapping[str, object]) -> object:
    value = arguments.get(term)
    if value is not None:
        return value
    default = DEFAULTS.get(name, {}).get(term)
    return _argument(name, default, arguments) if isinstance(default, str) else default


def spliced(value: object) -> Shape | None:
    """A shape that is given as one number, as several, or as a Symbol for any number of them."""
    if isinstance(value, Symbol):
        return (value if value == UNKNOWN else Symbol(f"*{value}"),)
    if isinstance(value, int):
        return (value,)
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return tuple(item if isinstance(item, (int, Symbol)) else UNKNOWN for item in items)
    return None


def _dimension(name: str, term: str, arguments: Mapping[str, object]) -> Dimension:
    if term.isdecimal():
        return int(term)
    for operator, combine in (("*", _product), ("/", _quotient)):
        left, found, right = term.partition(operator)
        if found:
            return combine(_dimension(name, left, arguments), _dimension(name, right, arguments))
    value = _argument(name, term, arguments)
    return value if isinstance(value, (int, Symbol)) else UNKNOWN


def _product(left: Dimension, right: Dimension) -> Dimension:
    if isinstance(left, Symbol) or isinstance(right, Symbol):
        return UNKNOWN if UNKNOWN in (left, right) else Symbol(f"{_factor(left)} * {_factor(right)}")
    return left * right


def _quotient(left: Dimension, right: Dimension) -> Dimension:
    if right == 1:
        return left
    if isinstance(left, Symbol) or isinstance(right, Symbol):
        return UNKNOWN if UNKNOWN in (left, right) else Symbol(f"{_factor(left)} // {_factor(right)}")
    return left // right if right and left % right == 0 else UNKNOWN


def _factor(value: Dimension) -> str:
    return f"({value})" if isinstance(value, Symbol) and " " in value else str(value)


def _dtype(name: str, path: str, arguments: Mapping[str, object]) -> str | None:
    fixed = DTYPES.get((name, path))
    if fixed is not None:
        return fixed
    value = arguments.get(DTYPE_ARGUMENTS.get((name, path), "param_dtype"), "float32")
    return value if isinstance(value, str) and value != UNKNOWN else None
