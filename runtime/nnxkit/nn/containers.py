"""Modules made of other modules and functions."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from nnxkit._containers import List
from nnxkit._module import Module

if TYPE_CHECKING:
    from collections.abc import Callable


def _takes(fn: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    return name in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


class Sequential(Module):
    """Call modules and functions one after the other; without any, it is the identity (and ``None`` of nothing).

    The result of one is the argument of the next: a tuple as several arguments, a dict as keyword arguments.

    >>> import nnxkit as nnx
    >>> nnx.Sequential(lambda x: (x, 2), lambda x, y: x * y)(3)
    6
    """

    def __init__(self, *fns: Callable[..., Any]) -> None:
        self.layers: Any = List(fns)

    def __call__(self, *args: Any, rngs: Any = None, **kwargs: Any) -> Any:
        """Apply the layers; ``rngs`` goes to those that take it.

        Raises:
            TypeError: a layer does not take what the one before returns.
        """
        output: Any = args[0] if len(args) == 1 else args or kwargs or None
        for index, layer in enumerate(self.layers):
            if index:
                args, kwargs = _as_arguments(output)
            extra = {"rngs": rngs} if rngs is not None and _takes(layer, "rngs") else {}
            output = layer(*args, **kwargs, **extra)
        return output


def _as_arguments(output: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(output, tuple):
        return output, {}
    return ((), output) if isinstance(output, dict) else ((output,), {})
