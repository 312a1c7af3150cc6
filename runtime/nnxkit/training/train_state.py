"""Train states: everything of a training step as one immutable JAX pytree."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Generic, Self, dataclass_transform

import jax
import jax.numpy as jnp

from nnxkit._graph import GraphDef, call
from nnxkit._state import merge_state
from nnxkit._typevars import TypeVar

if TYPE_CHECKING:
    import optax  # type: ignore[import-untyped, import-not-found, unused-ignore]

    from nnxkit._state import State

M = TypeVar("M", default=Any)

_IS_CHILD = "pytree_node"
"""Metadata of a field that says whether it is a child of the pytree; the others are part of its structure."""


@dataclass_transform(frozen_default=True, kw_only_default=False)
class _Immutable:
    """Subclasses are frozen dataclasses and JAX pytrees."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True)(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        children = [field.name for field in fields if field.metadata.get(_IS_CHILD, True)]
        rest = [field.name for field in fields if field.name not in children]
        jax.tree_util.register_dataclass(cls, children, rest)


class TrainState(_Immutable, Generic[M]):
    """Structure, parameters and optimizer of a model, for steps in functional style.

    Subclasses add fields. A field with ``metadata={"pytree_node": False}`` is part of the structure.

    Attributes:
        graphdef: structure of the model.
        params: the parameters.
        opt_state: state of the optimizer.
        step: how many steps were made, an int32 scalar.
        tx: the optax transformation.

    >>> import jax, optax, nnxkit as nnx
    >>> graphdef, params = nnx.split(nnx.Linear(2, 3, rngs=nnx.Rngs(0)))
    >>> train_state = nnx.TrainState.create(graphdef, params=params, tx=optax.sgd(0.1))
    >>> train_state = train_state.apply_gradients(jax.tree.map(jax.numpy.ones_like, params))
    >>> int(train_state.step)
    1
    """

    graphdef: GraphDef[M]
    params: State
    opt_state: Any
    step: jax.Array
    tx: optax.GradientTransformation = dataclasses.field(metadata={_IS_CHILD: False})

    @classmethod
    def create(
        cls, graphdef: GraphDef[M], *, params: State, tx: optax.GradientTransformation, step: int = 0, **kwargs: Any
    ) -> Self:
        """A train state before its first step.

        Args:
            graphdef: structure of the model.
            params: the parameters.
            tx: the optax transformation.
            step: the number to begin with.
            **kwargs: the fields of a subclass.
        """
        return cls(graphdef=graphdef, params=params, opt_state=tx.init(params), step=jnp.asarray(step), tx=tx, **kwargs)

    def apply(self, state: State | str, *states: State | str) -> Any:
        """Call methods of the model on states, as ``nnx.call``: ``out, (graphdef, state) = ts.apply("params")(x)``.

        Args:
            state: a state, or the name of a field that holds one.
            *states: further ones.
        """
        held = [getattr(self, item) if isinstance(item, str) else item for item in (state, *states)]
        return call((self.graphdef, merge_state(*held)))

    def apply_gradients(self, grads: State, **kwargs: Any) -> Self:
        """The train state after a step of the optimizer.

        Args:
            grads: gradients with the structure of ``params``.
            **kwargs: fields of a subclass to set, too.
        """
        from optax import apply_updates  # whoever has a `tx` has imported it; a model alone starts sooner

        updates, opt_state = self.tx.update(grads, self.opt_state, self.params)
        params = apply_updates(self.params, updates)
        return self.replace(step=self.step + 1, params=params, opt_state=opt_state, **kwargs)

    def replace(self, **changes: Any) -> Self:
        """The same train state with other values of some fields."""
        return dataclasses.replace(self, **changes)
