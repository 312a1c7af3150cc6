"""What layers have in common: how parameters are made, and how what is given to a layer is checked.

Invariants

- A parameter that a layer does not have is ``nnx.data(None)``, so that it can be set later.
- Keys are drawn in the order in which the parameters are listed for the layer, so one seed gives one set of parameters.
- A check costs a comparison; only an error looks for what the caller calls the layer.
"""

from __future__ import annotations

import functools
import inspect
import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, cast

import jax
import jax.numpy as jnp

from nnx_rules import layers
from nnx_rules.errors import NNXError, format_path
from nnx_rules.rules import modules as rules
from nnx_rules.rules import rngs as rng_rules
from nnx_rules.shapes import UNKNOWN, Form
from nnxkit._annotations import data
from nnxkit._graph import iter_graph
from nnxkit._module import Module
from nnxkit._variable_types import Param

if TYPE_CHECKING:
    from nnxkit._rngs import Rngs

NO_METADATA: Mapping[str, Any] = MappingProxyType({})


def param(
    init: Callable[..., Any],
    rngs: Rngs,
    shape: Sequence[int],
    dtype: Any,
    metadata: Mapping[str, Any] = NO_METADATA,
    *,
    when: bool = True,
) -> Any:
    """A ``Param`` with a value from an initializer; a data attribute of ``None`` unless ``when``.

    Raises:
        LayerArgumentError: what the layer was given for the initializer, the streams or the dtype is none.
    """
    return Param(initialized(init, rngs, tuple(shape), dtype), **metadata) if _is_set(when) else data(None)


def _is_set(flag: Any) -> bool:
    """Whether an option such as ``use_bias`` is set.

    Raises:
        LayerArgumentError: it is an array that is neither true nor false.
    """
    try:
        return bool(flag)
    except ValueError as error:
        problem = f"whether it has a parameter is given as {_shown(flag)} of shape {jnp.shape(flag)}"
        raise unfit(problem, "pass True or False; a value to begin with comes from an initializer") from error


def initialized(init: Callable[..., Any], rngs: Rngs, shape: tuple[int, ...], dtype: Any) -> Any:
    """What an initializer gives for the next key of the stream ``params``.

    Raises:
        LayerArgumentError: one of these is not what it has to be.
    """
    try:
        return init(rngs.params(), shape, dtype)
    except (AttributeError, TypeError, ValueError, ZeroDivisionError) as error:
        if not isinstance(error, NNXError):
            _explain(init, rngs, shape, dtype)
        raise


def _explain(init: Any, rngs: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise with what is wrong with the arguments of an initializer, if that is known."""
    if not hasattr(rngs, "params"):
        seed = "key" if isinstance(rngs, jax.Array) else "0"
        layer = type(next(callers(), None)).__name__
        mend = f"rngs=nnx.Rngs({seed})"
        raise rng_rules.SEED_AS_RNGS.error(cls=layer, parameter="rngs", value=_shown(rngs), mend=mend)
    if callable(given := inspect.unwrap(init)):
        require_dtype(dtype)
    if not callable(given):
        problem = f"an initializer is {_shown(given)}, which cannot be called"
        mend = "pass a function of (key, shape, dtype), such as those of nnx.initializers"
    elif not jnp.issubdtype(dtype, jnp.inexact):
        problem = (
            f"`param_dtype` is {jax.dtypes.canonicalize_dtype(dtype).name}, and its initializer does not make integers"
        )
        mend = "pass a dtype of floats, such as jnp.float32"
    elif 0 in shape:
        problem, mend = f"a parameter of shape {shape} has no scale to be initialised with", "choose sizes above 0"
    else:
        return
    raise unfit(problem, mend)


def unfit(problem: str, mend: str) -> NNXError:
    """The error about an argument of the layer that is being made."""
    return rules.LAYER_ARGUMENTS.error(cls=type(next(callers(), None)).__name__, problem=problem, mend=mend)


def _shown(value: Any) -> str:
    return f"an array of {value.dtype.name}" if isinstance(value, jax.Array) else reprlib.repr(value)


def require_dtype(dtype: Any) -> None:
    """Raise if the ``param_dtype`` of the layer that is being made is no dtype.

    Raises:
        LayerArgumentError: it is none.
    """
    if not _is_dtype(dtype):
        raise unfit(f"`param_dtype` is no dtype, but {_shown(dtype)}", "pass a dtype, such as jnp.float32")


def require_number(layer: Module, argument: str, value: Any) -> None:
    """Raise if an argument of a layer is no real number.

    Raises:
        LayerArgumentError: it is none.
    """
    # Variables and arrays of any library tell their shape and dtype.
    scalar = getattr(value, "shape", None) == () and not jnp.issubdtype(value.dtype, jnp.complexfloating)
    if not scalar and not isinstance(value, Real):
        problem = f"`{argument}` is {_shown(value)}, and not a number"
        raise rules.LAYER_ARGUMENTS.error(cls=name_of(layer), problem=problem, mend="pass a number, such as 0.1")


def _is_dtype(dtype: Any) -> bool:
    try:
        jnp.dtype(dtype)
    except (TypeError, ValueError):
        return False
    return not isinstance(dtype, jax.Array)


def value_of(variable: Any) -> Any:
    """The value of a parameter that may be ``None``."""
    return None if variable is None else variable.get_value()


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One thing, or several, as a tuple."""
    return tuple(value) if isinstance(value, Iterable) and getattr(value, "ndim", True) else (value,)


def given_options(**options: Any) -> dict[str, Any]:
    """Options of an operation, without those that are ``None``: not every replacement for it takes them."""
    return {name: value for name, value in options.items() if value is not None}


# Traced once for each shape: JAX keeps what it derives from a jitted function, and under a gradient that is most of the
# work of tracing a layer.
@functools.partial(jax.jit, inline=True)
def add_bias(y: jax.Array, bias: jax.Array) -> jax.Array:
    """``y + bias``, where ``bias`` has the shape of the last axes of ``y``."""
    return y + bias.reshape((1,) * (y.ndim - bias.ndim) + bias.shape)


_reshard: Callable[..., Any] = jax.sharding.reshard


def like_sharding(value: Any, other: Any) -> Any:
    """``value`` sharded as ``other`` is, of the same shape, where that is part of its type: on explicit mesh axes."""
    sharding = jax.typeof(other).sharding
    if jax.sharding.AxisType.Explicit not in sharding.mesh.axis_types:
        return value
    return _reshard(value, sharding)


# Checks


def require_arguments(layer: Module, name: str, **arguments: Any) -> None:
    """Raise if constructor arguments of a layer are no sizes (:func:`nnx_rules.layers.no_size`), or do not go together
    (:func:`nnx_rules.layers.problem`).

    Args:
        layer: the layer that is being made.
        name: canonical name of the class that asks, of which the layer may be a subclass.
        arguments: what the verdict depends on, by parameter name.

    Raises:
        LayerArgumentError: they are not, or do not.
    """
    plain = {key: _plain(value) for key, value in arguments.items()}
    found = layers.no_size(name, plain) or layers.problem(name, plain)
    if found is not None:
        raise rules.LAYER_ARGUMENTS.error(cls=type(layer).__name__, problem=found.problem, mend=found.mend)


def _plain(value: Any) -> Any:
    """An argument as the rules read it: numbers of any library as integers, sequences as tuples; a Symbol for a size
    that JAX only knows by its name.
    """
    if type(value) is int or isinstance(value, str):
        return value
    if isinstance(value, Integral) or (isinstance(value, jax.Array) and value.ndim == 0):
        return int(value) if jnp.issubdtype(jnp.result_type(value), jnp.integer) else value
    if isinstance(value, Sequence):
        return tuple(map(_plain, value))
    return UNKNOWN if jax.export.is_symbolic_dim(cast("Any", value)) else value


def require_input(layer: Module, name: str, x: Any, **arguments: Any) -> None:
    """Raise if an array is none that a layer of these arguments takes, as :func:`nnx_rules.layers.call` has it.

    Args:
        layer: the layer that is called.
        name: canonical name of the class that asks.
        x: the first argument of the call.
        arguments: what the verdict depends on, by the names of the constructor's parameters.

    Raises:
        LayerShapeError: it is not; the error names the layer by its path in the model that is called.
    """
    wrong = layers.call(name, arguments, Form(tuple(x.shape)))[1]
    if wrong is not None:
        _raise_shape(layer, wrong.argument, x, wrong.expected)


def require_size(layer: Module, argument: str, x: Any, size: int) -> None:
    """Raise unless an array has a size along its last axis.

    Raises:
        LayerShapeError: it has not; the error names the layer by its path in the model that is called.
    """
    if not x.ndim or x.shape[-1] != size:
        _raise_shape(layer, argument, x, f"(..., {size})")


def require_shape(layer: Module, argument: str, x: Any, expected: str, *, holds: bool) -> None:
    """Raise unless a condition on the shape of an array holds.

    Raises:
        LayerShapeError: it does not.
    """
    if not holds:
        _raise_shape(layer, argument, x, expected)


def require_broadcast(layer: Module, argument: str, x: Any, shape: Sequence[int]) -> None:
    """Raise unless an array broadcasts to a shape.

    Raises:
        LayerShapeError: it does not.
    """
    if not broadcasts(jnp.shape(x), shape):
        _raise_shape(layer, argument, x, str(tuple(shape)))


def broadcasts(shape: Sequence[int], other: Sequence[int]) -> bool:
    """Whether an array of a shape can be repeated to another one.

    >>> broadcasts((3, 1), (2, 3, 4)), broadcasts((2, 3), (3,))
    (True, False)
    """
    pairs = zip(reversed(shape), reversed(other), strict=False)
    return len(shape) <= len(other) and all(size in (1, length) for size, length in pairs)


def _raise_shape(layer: Module, argument: str, x: Any, expected: str) -> NoReturn:
    raise rules.LAYER_INPUT_SHAPE.error(
        layer=name_of(layer), argument=argument, expected=expected, given=tuple(jnp.shape(x))
    )


def require_integers(layer: Module, argument: str, x: Any) -> None:
    """Raise unless an array holds integers.

    Raises:
        LayerArgumentError: it does not.
    """
    if not jnp.issubdtype(x.dtype, jnp.integer):
        raise rules.LAYER_INPUT_DTYPE.error(
            layer=name_of(layer), argument=argument, expected="integers", given=x.dtype.name
        )


def name_of(layer: Module) -> str:
    """What a layer is called: the path to it from the outermost module that is being called.

    A transform calls copies, which no module outside of it holds. Their names come after that of the module that
    called the transform: ``Model.rnn > GRUCell.dense_i``.
    """
    names, root = [type(layer).__name__], layer
    for caller in callers():
        path = next((path for path, node in iter_graph(caller, graph=True) if node is layer), None)
        if path is None and type(caller) is type(root):
            continue  # what a transform copied as a whole
        name = type(caller).__name__ + (f".{format_path(path)}" if path else "")
        if path is None:
            names.insert(0, name)
            layer = caller
        else:
            names[0] = name
        root = caller
    return " > ".join(names)


def callers() -> Iterator[Module]:
    """The modules whose methods are running, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_argcount:
            first = frame.f_locals.get(code.co_varnames[0])
            if isinstance(first, Module):
                yield first
        frame = frame.f_back
