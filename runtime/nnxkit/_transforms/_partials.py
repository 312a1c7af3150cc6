"""``nnx.cached_partial`` and ``nnx.jit_partial``: transformed functions with their first arguments given once.

``nnx.jit`` finds the structure of its arguments without a walk anyway, so these are what their names say: partial
applications. What they add is a promise: the structure of the given arguments is that of the moment when they were
given.

Invariants

- The given objects are copied, and share their Variables with the originals. Values are seen and come back both ways,
  later edits of the originals are not seen.
- A function that edits the structure of a given object raises inside the trace, so nothing of the call comes back.
- A function of Python is for functions that put what they get under transforms of nnxkit themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from nnx_rules.rules import transforms as rules
from nnxkit._facts import describe
from nnxkit._graph._functional import clone
from nnxkit._graph._modes import is_graph_mode
from nnxkit._graph._plan import Plan, make_plan
from nnxkit._transforms._jit import jit
from nnxkit._transforms._places import differences, places_of
from nnxkit._transforms._signatures import Lowerable, R
from nnxkit._transforms._wrapper import Transformed


class Partial(functools.partial[Any]):
    """A jitted function with its first arguments."""

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """As for `nnx.jit`; what it compiles to takes the remaining arguments."""
        return self.func.lower(*self.args, *args, **kwargs).with_given(self.args)  # type: ignore[attr-defined]

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """As for `nnx.jit`; what it compiles to takes the remaining arguments."""
        return self.func.trace(*self.args, *args, **kwargs).with_given(self.args)  # type: ignore[attr-defined]

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """As for `nnx.jit`."""
        return self.func.eval_shape(*self.args, *args, **kwargs)  # type: ignore[attr-defined]


def cached_partial(
    f: Callable[..., R],
    *cached_args: Any,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> functools.partial[R]:
    """A function with its first arguments given once.

    Args:
        f: a function under a transform of nnxkit, or one of Python that puts what it gets under such transforms itself.
        cached_args: its first arguments.
        graph: graph or tree mode for a function of Python; that of a transform holds.
        graph_updates: accepted as for other transforms.

    Raises:
        TransformArgumentError: ``f`` is compiled by JAX, which brings no change of ``cached_args`` back.
        GraphError: in tree mode, an object is reached twice; at a call, if the function edits the structure of one of
            ``cached_args``.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> model = nnx.Dict(w=nnx.Param(jnp.array(2.0)))
    >>> times = nnx.cached_partial(nnx.jit(lambda m, x: m.w * x), model)
    >>> model.w[...] = 5.0
    >>> float(times(3.0))
    15.0
    """
    if not isinstance(f, Transformed | FunctionType | MethodType | functools.partial):
        raise rules.NOT_A_TRANSFORM.error(transform="nnx.cached_partial", given=describe(f))
    partial: functools.partial[R] = _partial(functools.partial, "nnx.cached_partial", f, cached_args, graph)
    return partial


def jit_partial(
    fun: Callable[..., R],
    *partial_args: Any,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Lowerable[..., R]:
    """``nnx.jit`` of a function with its first arguments given once, as `cached_partial` gives them.

    Options are those of `nnx.jit`; positions and prefixes count ``partial_args``.

    Args:
        fun: the function.
        partial_args: its first arguments.
        in_shardings: as for ``nnx.jit``.
        out_shardings: as for ``nnx.jit``.
        static_argnums: as for ``nnx.jit``.
        static_argnames: as for ``nnx.jit``.
        donate_argnums: as for ``nnx.jit``.
        donate_argnames: as for ``nnx.jit``.
        keep_unused: as for ``nnx.jit``.
        device: as for ``nnx.jit``.
        backend: as for ``nnx.jit``.
        inline: as for ``nnx.jit``.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Raises:
        GraphError: in tree mode, an object is reached twice; at a call, if the function edits the structure of one of
            ``partial_args``.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> model = nnx.Dict(w=nnx.Param(jnp.array(2.0)))
    >>> float(nnx.jit_partial(lambda m, x: m.w * x, model)(3.0))
    6.0
    """
    jitted: Any = jit(
        fun,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        graph=graph,
        graph_updates=graph_updates,
    )
    partial: Lowerable[..., R] = _partial(Partial, "nnx.jit_partial", jitted, partial_args, graph)
    return partial


def _partial(
    cls: type[functools.partial[Any]], name: str, f: Callable[..., Any], given: tuple[Any, ...], graph: bool | None
) -> Any:
    transformed = f if isinstance(f, Transformed) else None
    function, count = transformed.__nnx_wrapped__() if transformed else f, len(given)

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        before = make_plan(args[:count])
        result = function(*args, **kwargs)
        _require_same(name, before, make_plan(args[:count]))
        return result

    in_graph = transformed.modes.graph if transformed else is_graph_mode(graph)
    called = transformed.__nnx_rewrap__(checked) if transformed else checked
    return cls(called, *clone(given, variables=False, graph=in_graph))


def _require_same(name: str, before: Plan, after: Plan) -> None:
    """Raise if the structure is another one.

    Raises:
        GraphError: it is.
    """
    if before.graphdef != after.graphdef:
        path = next(differences(places_of(before.graphdef), places_of(after.graphdef)))
    else:
        pairs = zip(before.paths, before.sources, after.sources, strict=True)
        replaced = [path for path, old, new in pairs if old is not new]
        if not replaced:
            return
        path = replaced[0]
    raise rules.CACHED_STRUCTURE.error(transform=name, path=("args", *path))
