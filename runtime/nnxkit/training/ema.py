"""Exponential moving averages of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import jax

from nnxkit._annotations import data
from nnxkit._graph import as_pure, clone, merge, split, state
from nnxkit._pytree import Pytree
from nnxkit._state import State, filter_state
from nnxkit._state import merge_state as _merge_state
from nnxkit._variable import Variable

if TYPE_CHECKING:
    from nnx_rules.filters import Filter

A = TypeVar("A")


class EMA(Pytree):
    """An exponential moving average of Variables: ``average = decay * average + (1 - decay) * value``.

    Source: Polyak, Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992, with exponential weights.

    Variables: ``params``, copies of those that are averaged, with their paths and types.

    Args:
        params: a module, or its state.
        decay: how much of the average an update keeps.
        only: filter for the Variables to average.
        graph: graph or tree mode for looking at the module; ``None`` for the configured one.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> model = nnx.Dict(w=nnx.Param(jnp.array(1.0)))
    >>> ema = nnx.EMA(model, 0.75)
    >>> model.w[...] = 5.0
    >>> ema.update(model)
    >>> float(ema.apply_to(model).w), float(model.w)
    (2.0, 5.0)
    """

    def __init__(self, params: Any, decay: float, *, only: Filter = ..., graph: bool | None = None) -> None:
        self.graph = graph
        self.decay = decay
        self.filter = only
        # A copy: the average must not change with the model.
        self.params: State = data(clone(self._select(params)))

    def update(self, updates: Any) -> None:
        """Average the Variables of a module, or a state, into what is there.

        Args:
            updates: a module or state with the structure of the one that this was made for.

        Raises:
            ValueError: the structure is another.
            TraceContextError: the averages belong to another trace level.
        """
        decay = self.decay
        new = jax.tree.map(
            lambda average, value: decay * average + (1 - decay) * value,
            as_pure(self.params),
            as_pure(self._select(updates)),
        )
        leaves = jax.tree.leaves(self.params, is_leaf=lambda leaf: isinstance(leaf, Variable))
        for variable, value in zip(leaves, jax.tree.leaves(new), strict=True):
            variable.set_value(value)

    def apply_to(self, model: A) -> A:
        """A module like another one, with the averages in the place of what is averaged.

        All Variables are shared, those of the average with ``self.params``: the module follows later updates.

        Args:
            model: the module, or a state.
        """
        if isinstance(model, State):
            both: Any = _merge_state(model, self.params)
            return both  # type: ignore[no-any-return]
        graphdef, _, rest = split(model, self.filter, ..., graph=self.graph)
        merged: A = merge(graphdef, self.params, rest)
        return merged

    def _select(self, params: Any) -> State:
        own = isinstance(params, State)
        found: State = filter_state(params, self.filter) if own else state(params, self.filter, graph=self.graph)
        return found
