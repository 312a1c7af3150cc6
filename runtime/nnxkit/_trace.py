"""Trace levels: which trace an object belongs to, and the check that every mutation makes.

An object belongs to the JAX trace that was current when it was created, unflattened, unpickled or merged. Changing
it under another trace would store a tracer in an object that outlives it, so every way to mutate a Pytree, a
Variable or a container calls :func:`check_mutation` first.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from nnx_rules.errors import TraceContextError
from nnx_rules.rules import traces as rules

if TYPE_CHECKING:
    from nnx_rules.errors import NNXError


def _first_opaque_trace_state() -> object:
    global _opaque_trace_state
    from jax.extend.core import get_opaque_trace_state  # with which comes Pallas, a fifth of what the import would cost

    _opaque_trace_state = functools.partial(get_opaque_trace_state, convention="nnx")
    return _opaque_trace_state()


_opaque_trace_state: Callable[[], object] = _first_opaque_trace_state


def current_jax_trace() -> object:
    """What JAX says of the trace that is current now; it compares with what it said before."""
    return _opaque_trace_state()


class TraceState:
    """The trace that was current when this was made.

    >>> current_trace().is_valid()
    True
    """

    __slots__ = ("jax_trace",)

    def __init__(self) -> None:
        self.jax_trace: object = _opaque_trace_state()

    def is_valid(self) -> bool:
        """Whether that trace is still the current one."""
        return bool(self.jax_trace == _opaque_trace_state())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceState) and bool(self.jax_trace == other.jax_trace)

    __hash__: ClassVar[None] = None  # type: ignore[assignment] # the states of JAX have none

    def __repr__(self) -> str:
        return f"{type(self).__name__}(jax_trace={self.jax_trace!r})"


class PytreeState(TraceState):
    """The trace state of a Pytree, under the name that ``nnx.iter_graph`` shows."""

    __slots__ = ()


def current_trace() -> TraceState:
    """The trace that is current now."""
    return TraceState()


def mutation_error(name: str) -> NNXError:
    """The error for a mutation of an object (called ``name``) from another trace level.

    Programs that came from flax catch ``flax.errors.TraceContextError``. Nobody can do that without having imported it,
    so the error is one of flax's, too, where ``flax.errors`` is loaded.
    """
    error = rules.CAPTURED_MUTATION.error(
        cls=name, name=name, where="it was made outside of the function that is being traced, which captures it"
    )
    flax_errors = sys.modules.get("flax.errors")
    if flax_errors is not None:
        error.__class__ = _as_flax_error(flax_errors.TraceContextError)
    return error


@functools.cache
def _as_flax_error(flax_error: Any) -> type[TraceContextError]:
    """The class of errors that are one of flax's, too. What is pickled is not: who reads it may not have flax."""

    class Error(TraceContextError, flax_error):  # type: ignore[misc] # a class that only this process knows
        def __reduce__(self) -> tuple[Any, ...]:
            rebuild, (_, *fields) = super().__reduce__()
            return rebuild, (TraceContextError, *fields)

    Error.__name__, Error.__qualname__ = TraceContextError.__name__, TraceContextError.__qualname__
    Error.__module__ = "nnxkit.errors"
    return Error


def check_mutation(trace: TraceState, name: str) -> None:
    """Raise unless ``trace`` is current.

    Raises:
        TraceContextError: the object called ``name`` belongs to another trace.
    """
    if not trace.is_valid():
        raise mutation_error(name)
