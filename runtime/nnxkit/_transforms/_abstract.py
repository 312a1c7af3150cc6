"""``nnx.eval_shape`` and ``nnx.make_jaxpr``: what a function of objects would do.

Invariants

- The function is traced, and nothing that it does reaches the caller's objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import jax
from jax.extend.core import ClosedJaxpr

from nnxkit._transforms._lift import Function, Lift, abstract_result, modes_of
from nnxkit._transforms._signatures import P, R
from nnxkit._transforms._statics import Dynamic
from nnxkit._transforms._wrapper import MISSING, Transformed, wrap


def eval_shape(
    f: Callable[..., R],
    *args: Any,
    graph: bool | None = None,
    graph_updates: bool | None = None,
    **kwargs: Any,
) -> R:
    """What a function would return, with ``jax.ShapeDtypeStruct`` in the place of arrays. Nothing is computed.

    Args:
        f: the function.
        args: its arguments; objects and arrays may be abstract, too.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether the result may have objects of the arguments (it gets abstract copies of them); ``None``
            for the setting in force.
        kwargs: its keyword arguments.

    >>> import nnxkit as nnx
    >>> model = nnx.eval_shape(lambda: nnx.Linear(2, 3, rngs=nnx.Rngs(0)))
    >>> model.kernel.get_value()
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """
    modes = modes_of("nnx.eval_shape", graph, graph_updates)
    lift = Lift(modes, (args, kwargs), Function(f))
    result: R = abstract_result(lift, *jax.eval_shape(lift.run, lift.values))
    return result


@dataclass(frozen=True)
class JaxprOptions:
    """Options of ``nnx.make_jaxpr``."""

    static_argnums: Any


class JaxprMaker(Transformed):
    """A function under ``nnx.make_jaxpr``: called with arguments, it returns the jaxpr."""

    options: JaxprOptions

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        dynamic = Dynamic(Lift(self.modes, (args, kwargs), self.function), self.options.static_argnums)
        return jax.make_jaxpr(dynamic.run)(dynamic.values)


@overload
def make_jaxpr(
    f: Callable[P, Any],
    *,
    static_argnums: int | Sequence[int] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[P, ClosedJaxpr]: ...
@overload
def make_jaxpr(
    *, static_argnums: int | Sequence[int] = ..., graph: bool | None = None, graph_updates: bool | None = None
) -> Callable[[Callable[P, Any]], Callable[P, ClosedJaxpr]]: ...
def make_jaxpr(
    f: Callable[..., Any] = MISSING,
    *,
    static_argnums: int | Sequence[int] = (),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """The jaxpr of a function, as ``jax.make_jaxpr``.

    Its inputs are the values of the objects (those of arguments before captured ones), then the other leaves of the
    arguments. Its outputs are the values that the function wrote, then those of the result.

    Args:
        f: the function; without it a decorator.
        static_argnums: positions of arguments that are not traced; negative ones count from the last argument.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Raises:
        TransformArgumentError: at a call, if there is no argument at a static position.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> nnx.make_jaxpr(lambda v, x: v * x)(nnx.Param(jnp.array(2.0)), 3.0)
    { lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }
    """
    return wrap("nnx.make_jaxpr", JaxprMaker, f, JaxprOptions(static_argnums), graph, graph_updates)
