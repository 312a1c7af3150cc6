"""``nnx.grad`` and ``nnx.value_and_grad``: derivatives with respect to objects.

Invariants

- With graph updates, the gradient of a module is a State: of its Params, or of what a `DiffState` takes. Without, it is
  an object of the module's type with gradients in all its leaves. A Variable has a Variable as its gradient, an array
  an array, a container the same container.
- Everything else, captures included, is a constant to the derivative. What the function writes comes back all the
  same.
- A Variable that is reached twice has one gradient, the sum over its uses.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import jax
import jax.numpy as jnp
import numpy as np

from nnx_rules.filters import parse
from nnx_rules.records import Record
from nnx_rules.rules import transforms as rules
from nnxkit._facts import describe
from nnxkit._graph._plan import plan_of
from nnxkit._graph._program import program_of
from nnxkit._state import State
from nnxkit._state._order import Path
from nnxkit._transforms._inner import Modes
from nnxkit._transforms._inputs import BARE, PYTREE, is_object, mark_of, replaced
from nnxkit._transforms._joint import Root
from nnxkit._transforms._lift import Groups, Lift, call_function
from nnxkit._transforms._outcome import Outcome
from nnxkit._transforms._prefixes import DiffState, FilterPrefix, Prefixes, label_inputs
from nnxkit._transforms._signatures import P, R
from nnxkit._transforms._wrapper import MISSING, Transformed, reach_of, wrap
from nnxkit._variable import Variable
from nnxkit._variable_types import Param

NO_REDUCE_AXES = "JAX has no reduce_axes any more: sum over the axes inside of the function"


class Wanted(FilterPrefix):
    """A filter prefix that says for each leaf whether it is differentiated."""

    def __init__(self, literal: Any) -> None:
        self.filters, self.prefixes = (literal,), (True, False)
        self._expr = parse(literal)

    def map_prefix(self, path: Path, leaf: Any) -> bool:
        """Whether a leaf is differentiated."""
        return self._expr(path, leaf)


def differentiated(argnums: Sequence[int | DiffState], args: tuple[Any, ...], modes: Modes) -> tuple[Any, ...]:
    """Prefixes for positional arguments that say what is differentiated.

    Raises:
        TransformArgumentError: a position is there twice, or has no argument; or filters are given in a mode without
            them.
    """
    prefixes: list[Any] = [False] * len(args)
    for item in argnums:
        place = item.argnum if isinstance(item, DiffState) else item
        if not isinstance(place, int):
            raise rules.ARGNUMS_TYPE.error(transform=modes.transform, given=describe(place))
        if not -len(args) <= place < len(args):
            raise rules.ARGNUM_RANGE.error(transform=modes.transform, argnum=place, count=len(args))
        if prefixes[place] is not False:
            raise rules.ARGNUM_REPEATED.error(transform=modes.transform, argnum=place)
        label = functools.partial(_label, item if isinstance(item, DiffState) else None, modes)
        prefixes[place] = jax.tree.map(label, args[place], is_leaf=is_object)
    return tuple(prefixes)


def _label(wanted: DiffState | None, modes: Modes, leaf: Any) -> Any:
    """What of an argument's leaf is differentiated: a filter is for objects, an array is all or nothing."""
    if wanted is not None:
        return Wanted(wanted.filter) if is_object(leaf) else True
    return Wanted(Param) if modes.updates and mark_of(leaf) == PYTREE else True


class Cotangents:
    """Gradients of the values of a call, as objects: the joint graph with gradients in the place of values.

    Args:
        lift: the call.
        places: the values that have a gradient, by their places among the values of the call.
        found: their gradients.
    """

    def __init__(self, lift: Lift, places: Sequence[int], found: Sequence[Any]) -> None:
        gradients = replaced([None] * len(lift.values), places, found)
        inputs = self.inputs = lift.inputs
        joint = inputs.joint
        self.bare = dict(zip(inputs.flat.numbers(BARE), gradients[lift.num_leaves :], strict=True))
        self.by_leaf = dict(zip(joint.leaf_keys(), gradients, strict=False))
        self.gradients = gradients[: lift.num_leaves]
        self.given: set[Any] = set()

    @functools.cached_property
    def objects(self) -> dict[int, Any]:
        """For each object of the arguments one of the same type that holds the gradients."""
        outer = self.inputs.root
        program = program_of(self.inputs.joint.graphdef)
        built = program.build(self.gradients)
        inner = Root.from_node(built[program.root], len(outer.pytrees))
        objects: dict[int, Any] = dict(zip(map(id, outer.pytrees), inner.pytrees, strict=True))
        objects.update(zip(map(id, outer.variables), inner.variables, strict=True))
        return objects

    def of_argument(self, place: int, prefixes: Prefixes) -> Any:
        """The gradient of a positional argument."""
        args, _ = self.inputs.tree
        before = len(jax.tree.leaves(args[:place], is_leaf=is_object))
        treedef: Any
        leaves, treedef = jax.tree.flatten(args[place], is_leaf=is_object)
        return treedef.unflatten([self.of_leaf(before + number, leaf, prefixes) for number, leaf in enumerate(leaves)])

    def of_leaf(self, number: int, leaf: Any, prefixes: Prefixes) -> Any:
        """The gradient of a leaf of the arguments."""
        if not is_object(leaf):
            return self.bare[number]
        entry = prefixes.leaves[number]
        return self.as_state(leaf, entry) if isinstance(entry, Wanted) else self.objects[id(leaf)]

    def as_state(self, node: Any, wanted: Wanted) -> State:
        """The gradients of what was taken of a module and is not in an earlier State."""
        plan = plan_of(node)
        paths, leaves = [], []
        for path, leaf, key in zip(plan.paths, plan.leaves(), plan.leaf_keys(), strict=True):
            if wanted.map_prefix(path, leaf) and key not in self.given:
                self.given.add(key)
                paths.append(path)
                leaves.append(_like(leaf, self.by_leaf[key]))
        return State.from_sorted(tuple(paths), leaves)


def _like(leaf: Any, gradient: Any) -> Any:
    if not isinstance(leaf, Variable):
        return gradient
    return type(leaf).from_metadata(gradient, leaf._var_metadata)


def primary(result: Any, has_aux: bool, transform: str) -> Any:
    """What of a result is differentiated: all of it, or the first of a pair.

    Raises:
        TransformArgumentError: with ``has_aux``, it is no pair.
    """
    if not has_aux:
        return result
    if not (isinstance(result, tuple) and len(result) == 2):
        raise rules.AUX_PAIR.error(transform=transform, given=describe(result))
    return result[0]


def _positions(argnums: Any, transform: str) -> tuple[int | DiffState, ...]:
    """What is to be differentiated, one by one.

    Raises:
        TransformTypeError: it is given in another way than by position.
    """
    if isinstance(argnums, int | DiffState):
        return (argnums,)
    if not isinstance(argnums, Sequence):
        raise rules.ARGNUMS_TYPE.error(transform=transform, given=describe(argnums))
    return tuple(argnums)


class GradientOptions(Record):
    """Options of ``nnx.grad``."""

    argnums: Any
    has_aux: bool
    with_value: bool
    jax: dict[str, Any]


class Gradient(Transformed):
    """A function under ``nnx.grad`` or ``nnx.value_and_grad``."""

    options: GradientOptions
    prefix_options = ("argnums",)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        options = self.options
        argnums = _positions(options.argnums, self.modes.transform)
        single = isinstance(options.argnums, int | DiffState)
        reach = reach_of([item.argnum if isinstance(item, DiffState) else item for item in argnums])
        args, kwargs = self.positional(args, kwargs, reach)
        lift = Lift(self.modes, (args, kwargs), self.function)
        wanted = differentiated(argnums, args, self.modes)
        prefixes = Prefixes("argnums", (wanted, False), lift.inputs.tree, self.modes)
        labels = label_inputs(lift.inputs, prefixes, False)
        values = lift.values
        places = [place for place, label in enumerate(labels) if label]
        if not options.jax.get("allow_int"):
            _require_inexact(lift, values, places)

        def pure(diff: Sequence[Any]) -> tuple[Any, tuple[Groups, Outcome]]:
            loss: list[Any] = []

            def call(f: Callable[..., Any], tree: Any) -> Any:
                result = call_function(f, tree)
                loss.append(primary(result, options.has_aux, self.modes.transform))
                return result

            returned = lift.run(replaced(values, places, diff), call=call)
            return loss[0], returned

        derivative = jax.grad(pure, has_aux=True, **options.jax)
        gradients, (groups, outcome) = derivative([values[place] for place in places])
        cotangents = Cotangents(lift, places, gradients)
        found = tuple(
            cotangents.of_argument((item.argnum if isinstance(item, DiffState) else item) % len(args), prefixes)
            for item in argnums
        )
        result = lift.apply(groups, outcome)
        grads = found[0] if single else found
        if options.with_value:
            return result, grads
        return (grads, result[1]) if options.has_aux else grads


def _require_inexact(lift: Lift, values: Sequence[Any], places: Sequence[int]) -> None:
    """Raise for a value that has no derivative, by its path.

    Raises:
        TransformTypeError: there is one.
    """
    for place in places:
        for leaf in jax.tree.leaves(values[place]):
            dtype = getattr(leaf, "dtype", type(leaf))
            if isinstance(leaf, jax.Array | np.ndarray | bool | int) and not jnp.issubdtype(dtype, jnp.inexact):
                raise rules.NOT_DIFFERENTIABLE.error(
                    transform=lift.modes.transform, path=lift.name_of(place), dtype=dtype
                )


@overload
def grad(
    f: Callable[P, Any],
    *,
    argnums: int | DiffState = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[P, Any]: ...
@overload
def grad(
    f: Callable[P, Any],
    *,
    argnums: Sequence[int | DiffState],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[P, tuple[Any, ...]]: ...
@overload
def grad(
    f: Callable[P, tuple[Any, R]],
    *,
    argnums: int | DiffState = 0,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[P, tuple[Any, R]]: ...
@overload
def grad(
    f: Callable[P, tuple[Any, R]],
    *,
    argnums: Sequence[int | DiffState],
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[P, tuple[tuple[Any, ...], R]]: ...
@overload
def grad(
    f: Callable[P, Any],
    *,
    argnums: int | DiffState | Sequence[int | DiffState] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[P, Any]: ...
@overload
def grad(
    *,
    argnums: int | DiffState | Sequence[int | DiffState] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]: ...
def grad(
    f: Callable[..., Any] = MISSING,
    *,
    argnums: int | DiffState | Sequence[int | DiffState] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """The gradient of a function, as ``jax.grad``, with respect to objects.

    Args:
        f: the function; its result is a scalar. Without it a decorator.
        argnums: positions of the arguments to differentiate; a `DiffState` for parts of one.
        has_aux: whether the function returns a pair, of which only the first is differentiated.
        holomorphic: as for ``jax.grad``.
        allow_int: as for ``jax.grad``.
        reduce_axes: accepted for code written for earlier versions of JAX; must be empty.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Returns:
        a function that returns the gradient, or ``(gradient, aux)``; one gradient for each position if ``argnums`` is a
        sequence. The gradient of a module is a State of its Params, or, without graph updates, a module.

    Raises:
        TransformArgumentError: at a call, if ``argnums`` does not fit.
        TransformTypeError: at a call, if something to differentiate is of an integer type.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> model = nnx.Dict(w=nnx.Param(jnp.array(2.0)))
    >>> float(nnx.grad(lambda m: m.w ** 2)(model).w)
    4.0
    """
    return _gradient(False, f, argnums, has_aux, holomorphic, allow_int, reduce_axes, graph, graph_updates)


@overload
def value_and_grad(
    f: Callable[P, R],
    *,
    argnums: int | DiffState = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[P, tuple[R, Any]]: ...
@overload
def value_and_grad(
    f: Callable[P, R],
    *,
    argnums: Sequence[int | DiffState],
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[P, tuple[R, tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    f: Callable[P, R],
    *,
    argnums: int | DiffState | Sequence[int | DiffState] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[P, tuple[R, Any]]: ...
@overload
def value_and_grad(
    *,
    argnums: int | DiffState | Sequence[int | DiffState] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[[Callable[P, R]], Callable[P, tuple[R, Any]]]: ...
def value_and_grad(
    f: Callable[..., Any] = MISSING,
    *,
    argnums: int | DiffState | Sequence[int | DiffState] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """As `nnx.grad`, together with the value: ``(value, gradient)``, or ``((value, aux), gradient)``."""
    return _gradient(True, f, argnums, has_aux, holomorphic, allow_int, reduce_axes, graph, graph_updates)


def _gradient(
    with_value: bool,
    f: Any,
    argnums: Any,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    reduce_axes: Sequence[Any],
    graph: bool | None,
    graph_updates: bool | None,
) -> Any:
    if reduce_axes:
        raise NotImplementedError(NO_REDUCE_AXES)
    options = GradientOptions(argnums, has_aux, with_value, {"holomorphic": holomorphic, "allow_int": allow_int})
    return wrap("nnx.value_and_grad" if with_value else "nnx.grad", Gradient, f, options, graph, graph_updates)
