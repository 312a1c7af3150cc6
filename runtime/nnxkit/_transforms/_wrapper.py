"""Transformed functions: what is common to all transforms that wrap a function.

A transform is a class below `Transformed` with its options as a frozen dataclass. An instance wraps one function. It is
a descriptor, so that a transform decorates a method as it decorates a function; and it can be asked for its function
and for the same transform of another one, which is how captures are found through it.

Invariants

- Modes are those in force when the function was wrapped.
- A wrapper has no state but caches.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, ClassVar, Self

from nnxkit._transforms._inner import Modes
from nnxkit._transforms._lift import Function, modes_of
from nnxkit._transforms._prefixes import require_kinds

MISSING: Any = dataclasses.MISSING


class Transformed:
    """A function under a transform.

    Args:
        f: the function.
        options: options of the transform, an instance of its own dataclass.
        modes: how structure is treated.

    Raises:
        TransformArgumentError: a prefix among the options is of a kind that the mode does not have.
    """

    prefix_options: ClassVar[tuple[str, ...]] = ()
    """The options that are prefixes of arguments or results."""

    def __init__(self, f: Callable[..., Any], options: Any, modes: Modes) -> None:
        for option in self.prefix_options:
            require_kinds(option, getattr(options, option), modes)
        self.options = options
        self.modes = modes
        self.function = Function(f)
        functools.update_wrapper(self, f, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"{self.modes.transform}({self.function.f!r})"

    def __nnx_wrapped__(self) -> Callable[..., Any]:
        """The function."""
        return self.function.f

    def __nnx_rewrap__(self, f: Callable[..., Any]) -> Self:
        """The same transform of another function."""
        return type(self)(f, self.options, self.modes)

    def positional(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], reach: int = 0
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with those given by keyword in their positions, as far as positions lead.

        The first ``reach`` parameters, of which the options of the transform speak, are given their defaults where the
        call leaves them out.
        """
        if not kwargs and reach <= len(args):
            return args, kwargs
        try:
            signature = inspect.signature(self.function.f)
            bound = signature.bind(*args, **kwargs)
        except (TypeError, ValueError):  # a builtin without signature; or the call is wrong, and says so itself
            return args, kwargs
        placed, named = list(bound.args), dict(bound.kwargs)
        for each in list(signature.parameters.values())[len(placed) : reach]:
            if each.kind not in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
                break
            placed.append(named.pop(each.name, each.default))
        return tuple(placed), named


def reach_of(positions: int | Sequence[Any]) -> int:
    """How many arguments there are up to the last one of some positions: all, if one is counted from the last."""
    entries = positions if isinstance(positions, Sequence) else [positions]
    numbers = [entry for entry in entries if isinstance(entry, int)]
    return sys.maxsize if min(numbers, default=0) < 0 else 1 + max(numbers, default=-1)


def wrap(
    name: str,
    cls: type[Transformed],
    f: Callable[..., Any],
    options: Any,
    graph: bool | None,
    graph_updates: bool | None,
) -> Any:
    """Transform a function, or make a decorator if there is none yet."""
    modes = modes_of(name, graph, graph_updates)
    if f is MISSING:
        return lambda function: cls(function, options, modes)
    return cls(f, options, modes)
