"""What ``cond``, ``switch`` and the loops keep between calls outside of a compiled function.

These take their functions at each call, often new ones of the same code, so there is no wrapper to keep anything. A
call outside of any trace is compiled as a whole, and what JAX made of it is kept: functions of the same code, which
read the same, on inputs of the same structure, are not traced again.

Invariants

- A call is kept only if it reads nothing that may have changed unnoticed: what its functions, and the methods of its
  objects, find in closures and globals is part of the key (`Captures.constants`), and where that can be edited in
  place, or is not known, the call is traced every time.
- Values that come out as they went in are no results of the compiled function: the caller gets those that he gave, as
  from JAX. A choice makes arrays of numbers, a loop leaves them as they are.
- What is kept refers to no object of a call, to no function, and to no array that one reads. It is only ever traced
  while a call of the same key runs, and asks `Running` which that is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from nnxkit._trace import TraceState
from nnxkit._transforms._captures_classes import classes_in, constants_of_classes
from nnxkit._transforms._captures_code import origin_of
from nnxkit._transforms._captures_shapes import is_object
from nnxkit._transforms._kept import Running, Structures
from nnxkit._transforms._lift import Lift
from nnxkit._transforms._same import Same

_VALUES = (jax.Array, np.ndarray, np.generic, bool, int, float, complex)
_MOST_KEPT = 256
"""Calls that are kept. Who counts in a global that a branch reads has a new key at each."""

_kept: Structures[Callable[..., Any]] = Structures(_MOST_KEPT)
_running = Running()


def solved(
    solve: Callable[..., Any],
    dynamic: Sequence[Any],
    lift: Lift,
    further: tuple[Hashable, ...] = (),
    *,
    makes_arrays: bool = False,
) -> Any:
    """``solve(*dynamic)``, compiled and kept where that is possible.

    Args:
        solve: a function of arrays, over the values of a call. What it depends on otherwise is the structure of the
            inputs, the functions, and ``further``.
        dynamic: its arguments.
        lift: the call.
        further: hashable values that it depends on.
        makes_arrays: whether numbers come out as arrays also where they are what went in.
    """
    if not _outside_traces().is_valid():
        return solve(*dynamic)
    leaves, treedef = jax.tree.flatten(dynamic)
    # 1 and True are equal, and mean different things.
    compiled = _compiled_for(leaves, lift, (treedef, tuple(map(type, further)), further))
    if compiled is None:
        return solve(*dynamic)
    _running.calls.append((solve, treedef))
    try:
        values, rest = compiled(leaves)
    finally:
        _running.calls.pop()
    new = iter(values)
    given = jnp.asarray if makes_arrays else _itself
    return rest.treedef.unflatten([next(new) if place is None else given(leaves[place]) for place in rest.unchanged])


def _itself(value: Any) -> Any:
    return value


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Rest:
    """What a call gave beside new values.

    Attributes:
        treedef: the structure of what it gave.
        unchanged: for each leaf of that its place among the arguments, if it is one of them.
    """

    treedef: Any
    unchanged: tuple[int | None, ...]


def _compiled_for(leaves: list[Any], lift: Lift, further: tuple[Hashable, ...]) -> Callable[..., Any] | None:
    """What is kept for a call on these values; ``None`` if it is not to be kept."""
    functions = [captures.function for captures in lift.inputs.captures]
    codes = list(map(_code_of, functions))
    if None in codes:
        return None
    if not all(isinstance(leaf, _VALUES) and not isinstance(leaf, Tracer) for leaf in leaves):
        return None
    classes = constants_of_classes(classes_in(lift.inputs.joint.graphdefs()))
    constants = [classes, *(captures.constants() for captures in lift.inputs.captures)]
    if None in constants:
        return None
    key = (lift.modes, tuple(map(Same, codes)), tuple(constants), further)
    return _kept.find(lift.inputs.key(), functools.partial(_compiled, lift.modes.transform), key)


@functools.cache
def _outside_traces() -> TraceState:
    with jax.ensure_compile_time_eval():
        return TraceState()


def _compiled(name: str) -> Callable[..., Any]:
    def call(leaves: list[Any]) -> tuple[list[Any], _Rest]:
        solve, treedef = _running.calls[-1]
        given = {id(leaf): place for place, leaf in enumerate(leaves)}
        results, rest = jax.tree.flatten(solve(*treedef.unflatten(leaves)))
        unchanged = tuple([given.get(id(leaf)) for leaf in results])
        return [leaf for leaf, place in zip(results, unchanged, strict=True) if place is None], _Rest(rest, unchanged)

    call.__name__ = name  # for profiles
    return jax.jit(call)


def _code_of(f: Any) -> Any:
    """What a function has that depends on neither inputs nor constants. ``None`` if that is not known."""
    if isinstance(f, FunctionType):
        # The closures of functions of libraries are not among the constants.
        return f if origin_of(f.__globals__).library else f.__code__
    if isinstance(f, MethodType):
        return _code_of(f.__func__) if is_object(f.__self__) else None
    return type(f) if is_object(f) else None
