"""Modules made of other modules and functions."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from nnxkit._containers import List
from nnxkit._module import Module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Sequential(Module):
    """Call modules and functions one after the other; without any, it is the identity (and ``None`` of nothing).

    The result of one is the argument of the next: a tuple as several arguments, a dict as keyword arguments. Keyword
    arguments of the call, such as ``deterministic=True``, go to every layer that takes them.

    Iterating gives the layers.

    >>> import nnxkit as nnx
    >>> nnx.Sequential(lambda x: (x, 2), lambda x, y: x * y)(3)
    6
    >>> nnx.Sequential(lambda x: x + 1, lambda x, *, scale: x * scale)(3, scale=10)
    40
    """

    def __init__(self, *fns: Callable[..., Any]) -> None:
        self.layers: Any = List(fns)

    def __call__(self, *args: Any, rngs: Any = None, **kwargs: Any) -> Any:
        """Apply the layers; ``rngs`` and other keyword arguments go to those that take them.

        Raises:
            TypeError: a layer does not take what the one before returns, or takes an argument from both.
        """
        output: Any = args[0] if len(args) == 1 else args or kwargs or None
        shared = kwargs if rngs is None else {**kwargs, "rngs": rngs}
        own: dict[str, Any] = {}
        for index, layer in enumerate(self.layers):
            if index:
                args, own = _as_arguments(output)
            taken = _taken(layer, len(args), shared)
            if twice := [name for name in taken if name in own]:
                raise TypeError(f"Got multiple values for arguments {twice} in Sequential[{index}]")
            output = layer(*args, **own, **{name: shared[name] for name in taken})
        return output

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)


def _as_arguments(output: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(output, tuple):
        return output, {}
    return ((), output) if isinstance(output, dict) else ((output,), {})


def _taken(fn: Callable[..., Any], positional: int, names: dict[str, Any]) -> Sequence[str]:
    """Which of these keyword arguments a function takes beside some positional ones."""
    if not names:
        return ()
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature; the first layer may have all arguments by name
        return () if positional else list(names)
    filled = {parameter.name for parameter in parameters[:positional]}
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    by_name = {parameter.name for parameter in parameters if parameter.kind in _BY_NAME}
    return [name for name in names if name not in filled and (takes_any or name in by_name)]
