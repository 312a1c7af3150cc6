"""What type checkers see of transformed functions.

A transform keeps the signature of its function. Where the result is called just as the function is, the transform is
declared to return the type that it got, so that methods, overloads and ``__init__`` stay what they are. Where it can do
more, its type is one of the protocols below: generic in parameters and result, and a descriptor, so that a transformed
method is a method. The classes that implement them are not part of the interface.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")


class TransformedFunction(Protocol[P, R_co]):
    """A function, or a method, under a transform."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function under the transform."""
        ...

    @overload
    def __get__(self, instance: None, owner: Any = None, /) -> Self: ...
    @overload
    def __get__(self: Callable[Concatenate[S, Q], R], instance: S, owner: Any = None, /) -> Callable[Q, R]: ...
    @overload
    def __get__(self, instance: Any, owner: Any = None, /) -> Callable[..., R_co]: ...


class Stage(Protocol):
    """A traced or lowered function, or what a compiled one tells: everything that JAX's own stages have."""

    def __getattr__(self, name: str, /) -> Any: ...


class CompiledFunction(Stage, Protocol[P, R_co]):
    """A compiled function: it takes objects of the structure that it was lowered for."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the compiled function."""
        ...


class LoweredFunction(Stage, Protocol[P, R_co]):
    """A lowered function: ``nnx.jit(f).lower(...)``."""

    def compile(self, *args: Any, **options: Any) -> CompiledFunction[P, R_co]:
        """Compile it."""
        ...


class TracedFunction(Stage, Protocol[P, R_co]):
    """A traced function: ``nnx.jit(f).trace(...)``."""

    def lower(self, **options: Any) -> LoweredFunction[P, R_co]:
        """Lower it."""
        ...


class Lowerable(Protocol[P, R_co]):
    """A function that is compiled when it is called, and can be lowered before: ``nnx.jit_partial(f, ...)``."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function."""
        ...

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> LoweredFunction[P, R_co]:
        """Lower the function for these arguments, as ``jax.jit(f).lower``."""
        ...

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> TracedFunction[P, R_co]:
        """Trace the function for these arguments, as ``jax.jit(f).trace``."""
        ...

    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """What the function would return for these arguments, with ``jax.ShapeDtypeStruct`` in the place of arrays."""
        ...


class JittedFunction(TransformedFunction[P, R_co], Lowerable[P, R_co], Protocol[P, R_co]):
    """A function under ``nnx.jit``."""

    def clear_cache(self) -> None:
        """Forget all compiled functions."""
        ...


class CustomVjpFunction(TransformedFunction[P, R_co], Protocol[P, R_co]):
    """A function under ``nnx.custom_vjp``."""

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Define the derivative."""
        ...
