"""``nnx.checkify``: run-time checks in functions of objects.

Invariants

- What the function wrote comes back whether its checks hold or not: the error is a value, and only its user knows what
  a failure means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from nnx_rules.records import Record
from nnxkit._transforms._lift import Lift
from nnxkit._transforms._signatures import P, R
from nnxkit._transforms._wrapper import MISSING, Transformed, wrap

if TYPE_CHECKING:
    from jax.experimental import checkify as jax_checkify


class CheckOptions(Record):
    """Options of ``nnx.checkify``."""

    errors: Any


class Checked(Transformed):
    """A function under ``nnx.checkify``."""

    options: CheckOptions

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from jax.experimental import checkify as jax_checkify  # JAX does not load it before it is used

        errors = jax_checkify.user_checks if self.options.errors is MISSING else self.options.errors
        lift = Lift(self.modes, (args, kwargs), self.function)
        error, (groups, outcome) = jax_checkify.checkify(lift.run, errors)(lift.values)
        return error, lift.apply(groups, outcome)


@overload
def checkify(
    f: Callable[P, R], errors: Any = ..., graph: bool | None = None, graph_updates: bool | None = None
) -> Callable[P, tuple[jax_checkify.Error, R]]: ...
@overload
def checkify(
    *, errors: Any = ..., graph: bool | None = None, graph_updates: bool | None = None
) -> Callable[[Callable[P, R]], Callable[P, tuple[jax_checkify.Error, R]]]: ...
def checkify(
    f: Callable[..., Any] = MISSING,
    errors: Any = MISSING,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """Make the checks of a function a value, as ``jax.experimental.checkify.checkify``.

    Args:
        f: the function; without it a decorator.
        errors: the kinds of checks, as there; those of ``checkify.check`` by default.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Returns:
        a function that returns ``(error, result)``; ``error.throw()`` raises if a check failed.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> from jax.experimental import checkify
    >>> @nnx.checkify
    ... def root(v):
    ...     checkify.check(v[...] >= 0, "negative")
    ...     return jnp.sqrt(v)
    >>> error, result = root(nnx.Param(jnp.array(4.0)))
    >>> error.get(), float(result)
    (None, 2.0)
    """
    return wrap("nnx.checkify", Checked, f, CheckOptions(errors), graph, graph_updates)
