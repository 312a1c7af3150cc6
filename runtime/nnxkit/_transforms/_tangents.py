"""``nnx.vjp`` and ``nnx.jvp``: derivatives as linear maps between objects.

Invariants

- In every mode the tangent or cotangent of an object is an object of its type, of a container the same container, of an
  array an array.
- Arguments by position are differentiated; those that can only be given by keyword, and captures, are constants.
- The function runs once. What it writes comes back at once, whether the derivative is used or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import jax

from nnx_rules.errors import format_path
from nnx_rules.records import Record
from nnx_rules.registry import Rule
from nnx_rules.rules import transforms as rules
from nnxkit._facts import describe
from nnxkit._state._order import Path
from nnxkit._transforms._gradients import NO_REDUCE_AXES, Cotangents, primary
from nnxkit._transforms._inputs import Inputs, replaced
from nnxkit._transforms._lift import Groups, Lift, call_function
from nnxkit._transforms._outcome import Outcome
from nnxkit._transforms._packing import Packing, is_of_type, pack, tangent_type
from nnxkit._transforms._prefixes import Prefixes, label_inputs
from nnxkit._transforms._signatures import P, R, S
from nnxkit._transforms._wrapper import MISSING, Transformed, wrap


class TangentOptions(Record):
    """Options of ``nnx.vjp`` and ``nnx.jvp``."""

    has_aux: bool


class _Differentiable:
    """One call, as a function of the values of its positional arguments."""

    def __init__(self, lift: Lift, has_aux: bool) -> None:
        self.lift = lift
        self.has_aux = has_aux
        self.prefixes = Prefixes("primals", (True, False), lift.inputs.tree, lift.modes)
        labels = label_inputs(lift.inputs, self.prefixes, False)
        self.places = [place for place, label in enumerate(labels) if label]
        self.primals = [lift.values[place] for place in self.places]
        self.packing: Packing | None = None

    def __call__(self, primals: Sequence[Any]) -> tuple[list[Any], tuple[Groups, Outcome]]:
        """What JAX differentiates: returns the values of the result, and everything that the call returns."""
        current = replaced(self.lift.values, self.places, primals)
        values: list[Any] = []

        def call(f: Callable[..., Any], tree: Any) -> Any:
            result = call_function(f, tree)
            self.packing, own = pack(primary(result, self.has_aux, self.lift.modes.transform))
            values.extend(own)
            return result

        return values, self.lift.run(current, call=call)

    def apply(self, groups: Groups, outcome: Outcome) -> tuple[Any, tuple[Any, ...]]:
        """Bring everything back; returns the result, and a tuple with the auxiliary one, if there is one."""
        result = self.lift.apply(groups, outcome)
        return (result[0], (result[1],)) if self.has_aux else (result, ())


def _require_like(
    rule: Rule, transform: str, expected: Packing, given: Packing, names: Sequence[Path], kind: str
) -> None:
    """Raise unless a tangent has the structure of what it belongs to."""
    if expected.is_like(given):
        return
    root = str(names[0][0]) if names else kind
    ours, theirs = dict.fromkeys(names), dict.fromkeys(given.names(root))
    missing = [path for path in ours if path not in theirs]
    surplus = [path for path in theirs if path not in ours]
    if missing:
        problem = f"it has nothing for `{format_path(missing[0])}`"
    elif surplus:
        problem = f"there is no `{format_path(surplus[0])}`"
    else:
        problem = "the containers or objects are of other types"
    raise rule.error(transform=transform, problem=problem)


def _require_types(
    rule: Rule, transform: str, expected: Sequence[Any], given: Sequence[Any], names: Sequence[Path]
) -> None:
    """Raise unless tangents have the types that they must have."""
    for type_, value, name in zip(expected, given, names, strict=True):
        if not is_of_type(value, type_):
            own, other = jax.tree.map(_show, type_), jax.tree.map(lambda leaf: _show(jax.typeof(leaf)), value)
            problem = f"for `{format_path(name)}` it is {other}, and must be {own}"
            raise rule.error(transform=transform, problem=problem)


def _show(aval: Any) -> str:
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]"


class Pullback:
    """Takes the cotangent of a result to those of the arguments: what ``nnx.vjp`` returns beside the result."""

    def __init__(self, call: _Differentiable, types: Sequence[Any], backward: Callable[[list[Any]], Any]) -> None:
        assert call.packing is not None
        self._call = call
        self._packing = call.packing
        self._types = types
        self._backward = backward

    def __call__(self, cotangent: Any, /) -> tuple[Any, ...]:
        """The cotangents of the positional arguments.

        Args:
            cotangent: of the structure of the result; floats where that has floats, and ``float0`` where it has
                integers.

        Raises:
            TransformArgumentError: it is of another structure or type.
        """
        call, rule = self._call, rules.COTANGENT_MISMATCH
        lift, transform = call.lift, call.lift.modes.transform
        packing, values = pack(cotangent)
        names = self._packing.names("result")
        _require_like(rule, transform, self._packing, packing, names, "result")
        _require_types(rule, transform, self._types, values, names)
        (gradients,) = self._backward(values)
        cotangents = Cotangents(lift, call.places, gradients)
        return tuple(cotangents.of_argument(number, call.prefixes) for number in range(len(lift.inputs.tree[0])))


class Vjp(Transformed):
    """A function under ``nnx.vjp``: called with its arguments, it returns its result and a `Pullback`."""

    options: TangentOptions

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        lift = Lift(self.modes, self.positional(args, kwargs), self.function)
        call = _Differentiable(lift, self.options.has_aux)
        values, backward, (groups, outcome) = jax.vjp(call, call.primals, has_aux=True)
        pullback = Pullback(call, list(map(tangent_type, values)), backward)
        result, aux = call.apply(groups, outcome)
        return result, pullback, *aux


class Jvp(Transformed):
    """A function under ``nnx.jvp``: called with arguments and their tangents, it returns the result and its tangent."""

    options: TangentOptions

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        rule, transform = rules.TANGENT_MISMATCH, self.modes.transform
        for name, given in (("primals", primals), ("tangents", tangents)):
            if not isinstance(given, tuple | list):
                problem = f"`{name}` is {describe(given)}, and must be a tuple or a list"
                raise rule.error(transform=transform, problem=problem)
        args = tuple(primals)
        call = _Differentiable(Lift(self.modes, (args, {}), self.function), self.options.has_aux)
        expected, values = pack(args)
        packing, given_values = pack(tuple(tangents))
        names = expected.names("primals")
        _require_like(rule, transform, expected, packing, names, "primals")
        _require_types(rule, transform, list(map(tangent_type, values)), given_values, names)
        ordered = self.ordered(call, args, given_values)
        _, out_tangents, (groups, outcome) = jax.jvp(call, (call.primals,), (ordered,), has_aux=True)
        assert call.packing is not None
        result, aux = call.apply(groups, outcome)
        return result, call.packing.unpack(out_tangents), *aux

    def ordered(self, call: _Differentiable, args: tuple[Any, ...], tangents: Sequence[Any]) -> list[Any]:
        """Tangents of the arguments in the order of the values of the call, which may have captures in between."""
        keys = Inputs((args, {})).joint.leaf_keys()
        by_key = dict(zip(keys, tangents, strict=False))
        joint = call.lift.inputs.joint.leaf_keys()
        bare = iter(tangents[len(keys) :])
        return [by_key[joint[place]] if place < len(joint) else next(bare) for place in call.places]


@overload
def vjp(
    f: Callable[..., R],
    primal: Any,
    /,
    *primals: Any,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> tuple[R, Callable[..., tuple[Any, ...]]]: ...
@overload
def vjp(
    f: Callable[..., tuple[R, S]],
    primal: Any,
    /,
    *primals: Any,
    has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> tuple[R, Callable[..., tuple[Any, ...]], S]: ...
@overload
def vjp(
    f: Callable[P, R],
    /,
    *,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[P, tuple[R, Callable[..., tuple[Any, ...]]]]: ...
@overload
def vjp(
    f: Callable[P, tuple[R, S]],
    /,
    *,
    has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[P, tuple[R, Callable[..., tuple[Any, ...]], S]]: ...
@overload
def vjp(
    f: Callable[..., Any] = ...,
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any: ...
def vjp(
    f: Callable[..., Any] = MISSING,
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """The result of a function, and the function that pulls cotangents back, as ``jax.vjp``, for objects.

    Args:
        f: the function; without it a decorator.
        primals: its arguments; without any, the transformed function, which takes them.
        has_aux: whether the function returns a pair, of which only the first is differentiated.
        reduce_axes: accepted for code written for earlier versions of JAX; must be empty.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Returns:
        ``(result, pullback)``, or ``(result, pullback, aux)``. The pullback takes a cotangent of the structure of the
        result, and returns a tuple with one cotangent for each argument, of the structure of the argument.

    Raises:
        TransformArgumentError: with ``has_aux``, the function returns no pair; from the pullback: the cotangent does
            not fit.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> model = nnx.Dict(w=nnx.Param(jnp.array(2.0)))
    >>> result, pullback = nnx.vjp(lambda m, x: m.w * x, model, jnp.array(3.0))
    >>> of_model, of_x = pullback(jnp.array(1.0))
    >>> float(of_model.w), float(of_x)
    (3.0, 2.0)
    """
    if reduce_axes:
        raise NotImplementedError(NO_REDUCE_AXES)
    transformed = wrap("nnx.vjp", Vjp, f, TangentOptions(has_aux), graph, graph_updates)
    return transformed(*primals) if primals else transformed


@overload
def jvp(
    f: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    has_aux: Literal[False] = False,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> tuple[R, R]: ...
@overload
def jvp(
    f: Callable[..., tuple[R, S]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    has_aux: Literal[True],
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> tuple[R, R, S]: ...
@overload
def jvp(
    f: Callable[..., R],
    *,
    has_aux: Literal[False] = False,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[[Sequence[Any], Sequence[Any]], tuple[R, R]]: ...
@overload
def jvp(
    f: Callable[..., Any] = ...,
    primals: Sequence[Any] = ...,
    tangents: Sequence[Any] = ...,
    *,
    has_aux: bool = False,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any: ...
def jvp(
    f: Callable[..., Any] = MISSING,
    primals: Sequence[Any] = MISSING,
    tangents: Sequence[Any] = MISSING,
    *,
    has_aux: bool = False,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """The result of a function and its derivative in a direction, as ``jax.jvp``, for objects.

    Args:
        f: the function; without it a decorator.
        primals: a tuple or list of its arguments; without it the transformed function, which takes both.
        tangents: as many, of the structure of the arguments; they may be the arguments themselves.
        has_aux: whether the function returns a pair, of which only the first is differentiated.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Returns:
        ``(result, tangent)``, or ``(result, tangent, aux)``. The tangent has the structure of the result.

    Raises:
        TransformTypeError: the tangents do not fit the arguments.
        TransformArgumentError: with ``has_aux``, the function returns no pair.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> model, direction = (nnx.Dict(w=nnx.Param(jnp.array(value))) for value in (2.0, 1.0))
    >>> result, tangent = nnx.jvp(lambda m: m.w ** 2, (model,), (direction,))
    >>> float(result), float(tangent)
    (4.0, 4.0)
    """
    transformed = wrap("nnx.jvp", Jvp, f, TangentOptions(has_aux), graph, graph_updates)
    return transformed if primals is MISSING else transformed(primals, tangents)
