"""What layers have in common: how parameters are made, and how what is given to a layer is checked.

Invariants

- A parameter that a layer does not have is ``nnx.data(None)``, so that it can be set later.
- Keys are drawn in the order in which the parameters are listed for the layer, so one seed gives one set of parameters.
- A check costs a comparison; only an error looks for what the caller calls the layer.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from nnx_rules import layers
from nnx_rules.errors import format_path
from nnx_rules.rules import modules as rules
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
    """A ``Param`` with a value from an initializer; a data attribute of ``None`` unless ``when``."""
    return Param(init(rngs.params(), tuple(shape), dtype), **metadata) if when else data(None)


def value_of(variable: Any) -> Any:
    """The value of a parameter that may be ``None``."""
    return None if variable is None else variable.get_value()


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One thing, or several, as a tuple."""
    return tuple(value) if isinstance(value, Iterable) else (value,)


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
    """Raise if constructor arguments of a layer do not go together, as :func:`nnx_rules.layers.problem` has it.

    Args:
        layer: the layer that is being made.
        name: canonical name of the class that asks, of which the layer may be a subclass.
        arguments: what the verdict depends on, by parameter name.

    Raises:
        LayerArgumentError: they do not.
    """
    plain = {key: int(value) if isinstance(value, Integral) else value for key, value in arguments.items()}
    found = layers.problem(name, plain)
    if found is not None:
        raise rules.LAYER_ARGUMENTS.error(cls=type(layer).__name__, problem=found.problem, mend=found.mend)


def require_size(layer: Module, argument: str, x: Any, size: int, axis: int = -1) -> None:
    """Raise unless an array has a size along an axis.

    Raises:
        LayerShapeError: it has not; the error names the layer by its path in the model that is called.
    """
    if x.ndim < (-axis if axis < 0 else axis + 1) or x.shape[axis] != size:
        expected = f"(..., {size}{', ...' * (axis != -1)})" if axis < 0 else f"{size} along axis {axis}"
        raise rules.LAYER_INPUT_SHAPE.error(
            layer=_name_of(layer), argument=argument, expected=expected, given=tuple(x.shape)
        )


def require_shape(layer: Module, argument: str, x: Any, expected: str, *, holds: bool) -> None:
    """Raise unless a condition on the shape of an array holds.

    Raises:
        LayerShapeError: it does not.
    """
    if not holds:
        raise rules.LAYER_INPUT_SHAPE.error(
            layer=_name_of(layer), argument=argument, expected=expected, given=tuple(x.shape)
        )


def require_integers(layer: Module, argument: str, x: Any) -> None:
    """Raise unless an array holds integers.

    Raises:
        LayerArgumentError: it does not.
    """
    if not jnp.issubdtype(x.dtype, jnp.integer):
        raise rules.LAYER_INPUT_DTYPE.error(
            layer=_name_of(layer), argument=argument, expected="integers", given=x.dtype.name
        )


def _name_of(layer: Module) -> str:
    """What a layer is called: the path to it from the outermost module that is being called."""
    name = type(layer).__name__
    for caller in _callers(sys._getframe(2)):
        for path, node in iter_graph(caller, graph=True):
            if node is layer:
                name = type(caller).__name__ + (f".{format_path(path)}" if path else "")
    return name


def _callers(frame: FrameType | None) -> Iterator[Module]:
    """The modules whose methods are running, innermost first."""
    while frame is not None:
        code = frame.f_code
        if code.co_argcount:
            first = frame.f_locals.get(code.co_varnames[0])
            if isinstance(first, Module):
                yield first
        frame = frame.f_back
