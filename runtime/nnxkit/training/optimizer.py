"""Optimizers: optax transformations with their state kept in Variables.

Invariants: ``opt_state`` has the structure that ``tx.init`` gave it, with every leaf in a Variable (``OptVariable``
for a leaf that belongs to a Variable of the model, ``OptArray`` for any other), until a caller puts a bare value in the
place of one: ``opt_state.hyperparams["learning_rate"] = 0.1``; ``update`` computes everything first and writes only
when nothing failed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic

import jax
import jax.numpy as jnp

from nnx_rules.errors import format_path
from nnx_rules.rules import training as rules
from nnxkit._annotations import data, static
from nnxkit._graph import as_pure, state, update
from nnxkit._graph._layouts import key_name
from nnxkit._pytree import Pytree
from nnxkit._sharding import place
from nnxkit._state import State
from nnxkit._typevars import TypeVar
from nnxkit._variable import Variable
from nnxkit._variable_types import Param

if TYPE_CHECKING:
    import optax  # type: ignore[import-untyped, import-not-found, unused-ignore]

    from nnx_rules.filters import Filter

A = TypeVar("A", default=Any)
Model = TypeVar("Model", default=Any)
MISSING: Any = dataclasses.MISSING


class OptState(Variable[A]):
    """State of an optimizer."""

    __slots__ = ()


class OptArray(OptState[A]):
    """Optimizer state that belongs to no Variable of the model, such as a step count."""

    __slots__ = ()


class OptVariable(OptState[A]):
    """Optimizer state that belongs to a Variable of the model, with the metadata of that Variable."""

    __slots__ = ()


def _is_variable(value: Any) -> bool:
    return isinstance(value, Variable)


def _is_state(value: Any) -> bool:
    return isinstance(value, State | Variable)


def _kept(opt_state: Any) -> Any:
    # A State that copied its levels is known not to change, so graph functions need not look at it again.
    return data(
        jax.tree.map(lambda leaf: State(leaf) if isinstance(leaf, State) else leaf, opt_state, is_leaf=_is_state)
    )


def _as_state(leaf: Any) -> OptState[Any]:
    if not isinstance(leaf, Variable):
        return OptArray(leaf)
    value, metadata = leaf.get_raw_value(), leaf.get_metadata()
    if "optimizer_sharding" in metadata:  # its state may be sharded further than the Variable itself
        metadata["out_sharding"] = metadata.pop("optimizer_sharding")
        value = place(OptVariable, value, metadata)
    return OptVariable.from_metadata(value, metadata)


def _gradients_for(params: Any, grads: Any) -> Any:
    """Gradients of these parameters. Those of others are left out: a part of a model may be trained with gradients of
    all of it. Costs a comparison of structures where they are the same.

    Raises:
        GradientsMismatchError: one is missing, or has another shape.
    """
    structures: list[Any] = [jax.tree.structure(tree) for tree in (params, grads)]
    if structures[0] == structures[1] and all(map(_have_one_shape, jax.tree.leaves(params), jax.tree.leaves(grads))):
        return grads
    own, given = (dict(_named(tree)) for tree in (params, grads))
    for name, leaf in own.items():
        if name not in given:
            raise rules.GRADIENTS_MISMATCH.error(problem=f"have no `{name}`, which the optimizer was made for")
        if not _have_one_shape(leaf, given[name]):
            shapes = f"has shape {jnp.shape(given[name])}, and the parameter {jnp.shape(leaf)}"
            raise rules.GRADIENTS_MISMATCH.error(problem=f"do not fit: that of `{name}` {shapes}")
    return jax.tree.unflatten(structures[0], [given[name] for name in own])


def _have_one_shape(param: Any, gradient: Any) -> bool:
    return jnp.shape(param) == jnp.shape(gradient)


def _named(tree: Any) -> Iterator[tuple[str, Any]]:
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        yield format_path(tuple(key_name(entry) for entry in path)), leaf


class Optimizer(Pytree, Generic[Model]):
    """An optax optimizer for the Variables of a model that the filter ``wrt`` takes.

    Args:
        model: the model; the optimizer does not keep it.
        tx: the optax transformation.
        wrt: filter for the Variables to optimize.
        graph: graph or tree mode for looking at the model; ``None`` for the configured one.

    Raises:
        OptimizerArgumentError: ``wrt`` is not given.

    >>> import jax, optax, nnxkit as nnx
    >>> model = nnx.Dict(w=nnx.Param(jax.numpy.array(1.0)))
    >>> optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
    >>> grads = jax.tree.map(jax.numpy.ones_like, nnx.state(model, nnx.Param))
    >>> _ = optimizer.update(model, grads)
    >>> float(model.w), int(optimizer.step)
    (0.8999999761581421, 1)
    """

    def __init__(
        self, model: Model, tx: optax.GradientTransformation, *, wrt: Filter = MISSING, graph: bool | None = None
    ) -> None:
        if wrt is MISSING:
            raise rules.OPTIMIZER_WITHOUT_WRT.error(cls=type(self).__name__)
        self.graph = graph
        self.step: OptState[jax.Array] = OptState(jnp.array(0, dtype=jnp.uint32))
        self.tx: Any = static(tx)
        opt_state = jax.tree.map(_as_state, tx.init(state(model, wrt, graph=graph)), is_leaf=_is_variable)
        self.opt_state: Any = _kept(opt_state)
        self.wrt: Filter = static(wrt)

    def update(self, model: Model, grads: Any = MISSING, **kwargs: Any) -> Any:
        """Update the Variables of ``model`` and the state of the optimizer, in place.

        Args:
            model: the model that the optimizer was made for.
            grads: gradients of ``nnx.state(model, wrt)``; those of other Variables are ignored.
            **kwargs: further arguments of ``tx.update``.

        Returns:
            The updates that were added to the Variables, as optax returned them.

        Raises:
            OptimizerArgumentError: ``grads`` is missing, or stands where the model belongs.
            GradientsMismatchError: ``grads`` lacks one, or an array has another shape.
            TraceContextError: model or optimizer belong to another trace level.
        """
        if grads is MISSING:
            raise rules.OPTIMIZER_UPDATE_ARGUMENTS.error(
                cls=type(self).__name__,
                problem="got one argument, and takes the model and its gradients",
                mend="call `optimizer.update(model, grads)`; only `nnx.ModelAndOptimizer` keeps its model",
            )
        if isinstance(model, State) and isinstance(grads, Pytree):
            raise rules.OPTIMIZER_UPDATE_ARGUMENTS.error(
                cls=type(self).__name__,
                problem=f"got a State first and a {type(grads).__name__} second, and takes the model first",
                mend="call `optimizer.update(model, grads)`",
            )
        from optax import apply_updates  # whoever has a `tx` has imported it; a model alone starts sooner

        params = as_pure(state(model, self.wrt, graph=self.graph))
        gradients = _gradients_for(params, as_pure(grads))
        updates, opt_state = self.tx.update(gradients, as_pure(self.opt_state), params, **as_pure(kwargs))
        new_params = apply_updates(params, updates)
        structure: Any
        leaves, structure = jax.tree.flatten(self.opt_state, is_leaf=_is_variable)
        # A Variable may hold more than an array, or nothing: what a mask of optax leaves out.
        new_leaves = structure.flatten_up_to(opt_state)
        update(model, new_params)
        for leaf, value in zip(leaves, new_leaves, strict=True):
            if _is_variable(leaf):
                leaf.set_value(value)
        if not all(map(_is_variable, leaves)):
            pairs = zip(leaves, new_leaves, strict=True)
            self.opt_state = _kept(structure.unflatten([leaf if _is_variable(leaf) else new for leaf, new in pairs]))
        self.step.set_value(self.step.get_value() + 1)
        return updates


class ModelAndOptimizer(Optimizer[Model]):
    """An optimizer that keeps the model that it was made for: the form of old code.

    Args:
        model: the model.
        tx: the optax transformation.
        wrt: filter for the Variables to optimize.
    """

    def __init__(self, model: Model, tx: optax.GradientTransformation, *, wrt: Filter = Param) -> None:
        super().__init__(model, tx, wrt=wrt)
        self.model = data(model)

    def update(self, grads: Any, /, **kwargs: Any) -> Any:  # type: ignore[override]
        """Update the model that the optimizer keeps; see :meth:`Optimizer.update`."""
        return super().update(self.model, grads, **kwargs)
