"""Which library functions return arrays.

Invariants: a function is listed as array-valued only where its result certainly is an array (or a list of arrays) for
all arguments; numpy functions that return scalars for scalars are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.values import (
    UNKNOWN,
    Array,
    Other,
    Seq,
    Value,
)

if TYPE_CHECKING:
    from nnx_lint.model.calls import Arguments

JNP_PLAIN = frozenset(
    {
        "shape",
        "ndim",
        "size",
        "dtype",
        "finfo",
        "iinfo",
        "issubdtype",
        "isdtype",
        "result_type",
        "promote_types",
        "can_cast",
    }
    | {
        "broadcast_shapes",
        "iscomplexobj",
        "isrealobj",
        "isscalar",
        "array_equal",
        "array_equiv",
        "allclose",
        "get_printoptions",
    }
    | {
        "set_printoptions",
        "printoptions",
        "array_repr",
        "array_str",
        "einsum_path",
        "save",
        "savez",
        "load",
        "vectorize",
    }
    | {
        "ufunc",
        "frompyfunc",
        "apply_along_axis",
        "apply_over_axes",
        "piecewise",
        "poly1d",
        "iterable",
        "from_dlpack",
        "__version__",
    }
)
"""Functions of ``jax.numpy`` whose result is no array, or not certainly one."""

JNP_LISTS = frozenset(
    {
        "split",
        "array_split",
        "hsplit",
        "vsplit",
        "dsplit",
        "meshgrid",
        "broadcast_arrays",
        "atleast_1d",
        "nonzero",
        "where",
    }
)
"""Functions of ``jax.numpy`` that (may) return a list or tuple of arrays."""

NUMPY_ARRAYS = frozenset(
    {
        "array",
        "asarray",
        "zeros",
        "ones",
        "empty",
        "full",
        "arange",
        "linspace",
        "eye",
        "identity",
        "zeros_like",
        "ones_like",
        "full_like",
    }
    | {
        "empty_like",
        "stack",
        "concatenate",
        "hstack",
        "vstack",
        "tile",
        "repeat",
        "logspace",
        "geomspace",
        "diag",
        "tri",
        "tril",
        "triu",
    }
    | {"reshape", "transpose", "ascontiguousarray", "frombuffer", "loadtxt", "fromiter", "random.randn", "random.rand"}
)
"""Functions of numpy that always return an ``ndarray``."""

RANDOM_PLAIN = frozenset({"key_impl", "clone_impl"})

LAX_ARRAYS = frozenset(
    {
        "add",
        "sub",
        "mul",
        "div",
        "dot",
        "dot_general",
        "conv",
        "conv_general_dilated",
        "exp",
        "log",
        "tanh",
        "rsqrt",
        "sqrt",
        "stop_gradient",
    }
    | {
        "dynamic_slice",
        "dynamic_update_slice",
        "dynamic_index_in_dim",
        "reshape",
        "transpose",
        "broadcast",
        "convert_element_type",
    }
    | {
        "select",
        "iota",
        "cumsum",
        "cumlogsumexp",
        "reduce_window",
        "erf",
        "lgamma",
        "clamp",
        "expand_dims",
        "squeeze",
        "concatenate",
    }
)
"""Functions of ``jax.lax`` that always return one array (``stop_gradient`` only of one)."""

NN_PLAIN = frozenset({"initializers"})


def array_call(name: str, args: Arguments, level: int) -> Value:
    """The result of calling a library function of this canonical name."""
    head, _, rest = name.partition(".")
    if head == "jax":
        return _jax(rest, args, level)
    if head == "numpy":
        return Array(level) if rest in NUMPY_ARRAYS else UNKNOWN
    if head == "optax":
        # Gradient transformations and schedules are namedtuples of functions and plain functions.
        return Other("an optax transformation") if "." not in rest and rest not in OPTAX_FUNCTIONS else UNKNOWN
    if name.startswith("nnx.initializers."):
        return BoundMethod(Array(level), "initializer")
    if head == "nnx" and rest in NNX_ARRAYS:
        return Array(level)
    return UNKNOWN


OPTAX_FUNCTIONS = frozenset(
    {"apply_updates", "global_norm", "softmax_cross_entropy", "l2_loss", "incremental_update", "tree"}
)
NNX_ARRAYS = frozenset(
    {
        "relu",
        "gelu",
        "silu",
        "swish",
        "sigmoid",
        "tanh",
        "softmax",
        "log_softmax",
        "elu",
        "selu",
        "celu",
        "leaky_relu",
        "softplus",
        "relu6",
    }
    | {
        "hard_tanh",
        "hard_sigmoid",
        "hard_silu",
        "hard_swish",
        "soft_sign",
        "log_sigmoid",
        "one_hot",
        "standardize",
        "glu",
        "logsumexp",
    }
    | {"avg_pool", "max_pool", "min_pool", "make_causal_mask", "make_attention_mask", "dot_product_attention"}
)


def _jax(rest: str, args: Arguments, level: int) -> Value:
    package, _, function = rest.partition(".")
    if package == "numpy":
        return _jnp(function, args, level)
    if package == "random":
        return Array(level) if function and function not in RANDOM_PLAIN else UNKNOWN
    if package == "nn":
        if function.startswith("initializers."):
            return BoundMethod(Array(level), "initializer")
        return Array(level) if function and "." not in function else UNKNOWN
    if package == "lax":
        first = args.get(0)
        if function == "stop_gradient" and not isinstance(first, Array):
            return first if first is not None else UNKNOWN
        return Array(level) if function in LAX_ARRAYS else UNKNOWN
    if rest in {"device_put", "block_until_ready", "device_get"}:
        return args.get(0) or UNKNOWN
    return UNKNOWN


def _jnp(function: str, args: Arguments, level: int) -> Value:
    if function in JNP_PLAIN or not function:
        return Other("a plain value") if function in {"shape", "ndim", "size", "dtype", "finfo", "iinfo"} else UNKNOWN
    if function in JNP_LISTS:
        if function == "where" and len(args.positional) >= 3:
            return Array(level)
        return (
            Seq("list", [Array(level)], level, exact=False)
            if function in {"split", "array_split", "meshgrid"}
            else UNKNOWN
        )
    package, _, name = function.partition(".")
    if name and package not in {"linalg", "fft"}:
        return UNKNOWN
    if package == "linalg" and name in {"svd", "qr", "eigh", "eig", "slogdet", "lstsq"}:
        return Seq("tuple", [Array(level)], level, exact=False)
    return Array(level)
