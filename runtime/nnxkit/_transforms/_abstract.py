"""``nnx.eval_shape`` and ``nnx.make_jaxpr``: what a function of objects would do.

Invariants

- The function is traced, and nothing that it does reaches the caller's objects.
- What ``eval_shape`` returns says where it would lie: under a mesh every Variable has the sharding of its metadata, so
  that a checkpoint can be restored into it without more being said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import jax

from nnx_rules.records import Record
from nnxkit._graph import iter_graph
from nnxkit._sharding import context_mesh, partition_spec, spec_of
from nnxkit._transforms._lift import Function, Lift, abstract_result, modes_of
from nnxkit._transforms._signatures import P, R
from nnxkit._transforms._statics import Dynamic
from nnxkit._transforms._wrapper import MISSING, Transformed, wrap
from nnxkit._variable import Variable

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr


def eval_shape(
    f: Callable[..., R],
    *args: Any,
    graph: bool | None = None,
    graph_updates: bool | None = None,
    **kwargs: Any,
) -> R:
    """What a function would return, with ``jax.ShapeDtypeStruct`` in the place of arrays. Nothing is computed.

    Those of Variables have the sharding that ``out_sharding`` says, on the mesh of the Variable or of the context.

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
    context = context_mesh()
    for _, node in iter_graph(result):
        if isinstance(node, Variable):
            _say_sharding(node, context)
    return result


def _say_sharding(variable: Variable[Any], context: Any) -> None:
    struct, metadata = variable.get_raw_value(), variable.get_metadata()
    mesh = metadata.get("mesh") or context
    if not isinstance(struct, jax.ShapeDtypeStruct) or struct.sharding is not None or mesh.empty:
        return
    try:
        sharding = jax.sharding.NamedSharding(mesh, spec_of(metadata) or partition_spec())
    except ValueError:  # names of logical axes, for which rules are to come
        return
    variable.set_raw_value(struct.update(sharding=sharding))  # type: ignore[no-untyped-call]


class JaxprOptions(Record):
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
