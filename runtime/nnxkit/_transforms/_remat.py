"""``nnx.remat``: ``jax.checkpoint`` for functions of objects: what is computed again in the backward pass.

Invariants

- Arguments and captures are inputs of the checkpointed function, so their values are what is kept for the backward
  pass.
- Static arguments stay the Python values that they are. A graph object among them is an input all the same.
- A function that is called again with inputs of the same structure, as the layers of a model are, is traced once: JAX
  remembers the trace of a function, and there is one function for each structure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import jax

from nnx_rules.records import Record
from nnxkit._transforms._inner import Modes
from nnxkit._transforms._kept import Running, Structures
from nnxkit._transforms._lift import Groups, Lift
from nnxkit._transforms._outcome import Outcome
from nnxkit._transforms._signatures import F
from nnxkit._transforms._statics import Dynamic
from nnxkit._transforms._wrapper import MISSING, Transformed, reach_of, wrap


class RematOptions(Record):
    """Options of ``nnx.remat``. What ``jax`` holds goes to ``jax.checkpoint`` as it is."""

    static_argnums: Any
    jax: dict[str, Any]


_running = Running()
_Pure = Callable[[Sequence[Any]], tuple[Groups, Outcome]]


class Rematerialized(Transformed):
    """A function under ``nnx.remat``."""

    options: RematOptions

    def __init__(self, f: Callable[..., Any], options: RematOptions, modes: Modes) -> None:
        super().__init__(f, options, modes)
        self.known: Structures[_Pure] = Structures()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        static = self.options.static_argnums
        lift = Lift(self.modes, self.positional(args, kwargs, reach_of(static)), self.function)
        dynamic = Dynamic(lift, static)
        pure = self.known.find(lift.inputs.key(), _make_pure, dynamic.static_values())
        _running.calls.append(dynamic)
        try:
            groups, outcome = jax.checkpoint(pure, **self.options.jax)(dynamic.values)
        finally:
            _running.calls.pop()
        return lift.apply(groups, outcome)


def _make_pure() -> _Pure:
    def pure(values: Sequence[Any]) -> tuple[Groups, Outcome]:
        dynamic: Dynamic = _running.calls[-1]
        return dynamic.run(values)

    return pure


@overload
def remat(
    f: F,
    *,
    prevent_cse: bool = True,
    static_argnums: int | Sequence[int] = ...,
    policy: Callable[..., bool] | None = None,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> F: ...
@overload
def remat(
    *,
    prevent_cse: bool = True,
    static_argnums: int | Sequence[int] = ...,
    policy: Callable[..., bool] | None = None,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[[F], F]: ...
def remat(
    f: Callable[..., Any] = MISSING,
    *,
    prevent_cse: bool = True,
    static_argnums: int | Sequence[int] = (),
    policy: Callable[..., bool] | None = None,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """Compute the intermediate values of a function again in the backward pass instead of keeping them.

    Args:
        f: the function; without it a decorator.
        prevent_cse: as for ``jax.checkpoint``.
        static_argnums: positions of arguments that are not traced; negative ones count from the last argument.
        policy: as for ``jax.checkpoint``: which intermediate values are kept.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Raises:
        TransformArgumentError: at a call, if there is no argument at a static position.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> model = nnx.Dict(w=nnx.Param(jnp.array(2.0)))
    >>> block = nnx.remat(lambda m, x: jnp.tanh(m.w * x))
    >>> float(nnx.grad(lambda m: block(m, 0.0))(model).w)
    0.0
    """
    options = RematOptions(static_argnums, {"prevent_cse": prevent_cse, "policy": policy})
    return wrap("nnx.remat", Rematerialized, f, options, graph, graph_updates)


checkpoint = remat
"""The same under the name that it has in JAX."""
