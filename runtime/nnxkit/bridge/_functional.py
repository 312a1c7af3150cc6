"""An NNX module in the style of Linen: ``init`` gives the state, ``apply`` takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nnxkit._graph import GraphDef, split
from nnxkit._rngs import Rngs


class Functional:
    """A class of modules with the arguments to make one.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> model = nnx.bridge.functional(nnx.Linear)(2, 3)
    >>> state = model.init(rngs=nnx.Rngs(0))
    >>> y, (graphdef, state) = model.apply(state)(jnp.ones((1, 2)))
    >>> y.shape
    (1, 3)
    """

    def __init__(self, module_type: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module_type = module_type
        self.args = args
        self.kwargs = kwargs
        self.graphdef: GraphDef[Any] | None = None

    def init(self, *, rngs: Rngs | None = None) -> Any:
        """Make a module; returns its state."""
        further = {} if rngs is None else {"rngs": rngs}
        self.graphdef, state = split(self.module_type(*self.args, **self.kwargs, **further))
        return state

    def apply(self, *states: Any) -> Any:
        """What calls the module, or a method of it, with a state; a call returns ``(result, (graphdef, state))``.

        Raises:
            ValueError: there was no `init`.
        """
        if self.graphdef is None:
            raise ValueError("`init` has not been called yet, so the structure of the module is not known")
        return self.graphdef.apply(*states)


def functional(cls: Callable[..., Any]) -> Callable[..., Functional]:
    """A class of modules whose instances are `Functional`."""
    return lambda *args, **kwargs: Functional(cls, args, kwargs)
