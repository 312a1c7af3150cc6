"""Names of mapped axes: what a transform that maps over an axis does to the metadata of Variables.

Metadata may say how the axes of a value are laid out: ``out_sharding=("layers", "embed")``. A function under
``nnx.vmap`` or ``nnx.scan`` sees values without the mapped axis, so the name of that axis must go while it runs, and
must be added to what it returns. ``transform_metadata={nnx.PARTITION_NAME: "layers"}`` asks for it.

Invariants

- Each Variable is renamed once, however often it is reached, and only by an axis: not under ``None``, not if carried.
- Names change on the objects of the trace, before the function runs and after; the caller's objects get what has
  changed as any other change of metadata.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, overload

import jax.numpy as jnp

from nnx_rules.records import Record
from nnx_rules.rules import transforms as rules
from nnxkit._graph._plan import plan_of
from nnxkit._sharding import axis_names
from nnxkit._state._order import Path
from nnxkit._transforms._axes import arguments
from nnxkit._transforms._inputs import BARE, Flat, argument_names
from nnxkit._transforms._lift import Lift, call_function
from nnxkit._transforms._prefixes import Prefixes
from nnxkit._transforms._signatures import F
from nnxkit._transforms._wrapper import MISSING, Transformed, wrap
from nnxkit._variable import Variable

PARTITION_NAME = "partition_name"
"""The key of ``transform_metadata`` for the name of the mapped axis."""

Call = Callable[[Callable[..., Any], Any], Any]
"""Calls a function with ``(args, kwargs)``, as `call_function` does."""


def call_renamed(
    metadata: Mapping[str, Any], prefixes: Prefixes, option: str, out_prefix: Any, call: Call = call_function
) -> Call:
    """What calls a function so that it sees no Variable with the name of the mapped axis; for `Lift.run`.

    Args:
        metadata: the option ``transform_metadata``.
        prefixes: axes of the arguments.
        option: name of the option with the axes of the result.
        out_prefix: axes of the result.
        call: how to call the function apart from that.
    """
    if PARTITION_NAME not in metadata:
        return call
    name, modes = metadata[PARTITION_NAME], prefixes.modes
    others = {key: value for key, value in metadata.items() if key != PARTITION_NAME}

    def renamed(f: Callable[..., Any], tree: Any) -> Any:
        names = argument_names(tree)
        for number, path, variable, axis in mapped_variables(tree, prefixes, set()):
            inside = _inside(variable, axis)
            _edit_others(variable, others, functools.partial(_without, inside))
            _remove(variable, inside, name, (*names[number], *path), modes.transform)
        result = call(f, tree)
        seen: set[int] = set()
        for _, _, variable, axis in mapped_variables(tree, prefixes, seen):
            add(variable, _inside(variable, axis))
        for _, _, variable, axis in mapped_variables(result, Prefixes(option, out_prefix, result, modes), seen):
            add(variable, _inside(variable, axis))
        return result

    def add(variable: Variable[Any], axis: int) -> None:
        _edit_others(variable, others, lambda held, value: (*held[:axis], value, *held[axis:]))
        variable.add_axis(axis, name)

    return renamed


def mapped_variables(tree: Any, prefixes: Prefixes, seen: set[int]) -> Iterator[tuple[int, Path, Variable[Any], int]]:
    """The Variables of a pytree that have an axis: the number of the leaf that they are in, their path there,
    themselves, and the axis. Those in ``seen`` are left out; what is given joins it.
    """
    flat = Flat.of(tree)
    for number, (leaf, mark) in enumerate(zip(flat.leaves, flat.marks, strict=True)):
        if mark == BARE:
            continue
        plan, resolve = plan_of(leaf), prefixes.resolver(number)
        for path, source in zip(plan.paths, plan.sources, strict=True):
            if isinstance(source, Variable) and id(source) not in seen:
                seen.add(id(source))
                axis = resolve(path, source)
                if isinstance(axis, int):
                    yield number, path, source, axis


def _inside(variable: Variable[Any], axis: int) -> int:
    """The axis of a value outside, whose value inside the Variable holds, counted from the front."""
    return axis if axis >= 0 else axis + jnp.ndim(variable.get_raw_value()) + 1


def _without(axis: int, held: tuple[Any, ...], _: Any) -> tuple[Any, ...]:
    return held[:axis] + held[axis + 1 :]


def _edit_others(
    variable: Variable[Any], others: Mapping[str, Any], edit: Callable[[tuple[Any, ...], Any], tuple[Any, ...]]
) -> None:
    """Edit the metadata that, like the names of axes, has one entry for each axis of the value."""
    for key, value in others.items():
        held = variable.get_metadata(key, None)
        if isinstance(held, tuple):
            variable.set_metadata(key, edit(held, value))


def _remove(variable: Variable[Any], axis: int, name: str | None, path: Path, transform: str) -> None:
    names = axis_names(variable.get_metadata())
    if names is not None:
        found = names[axis] if axis < len(names) else None
        if found != name:
            raise rules.AXIS_NAME.error(
                transform=transform, path=path, names=tuple(names), axis=axis, found=repr(found), name=repr(name)
            )
    variable.remove_axis(axis, name)


class RenamingOptions(Record):
    """Options of ``nnx.transform_metadata``."""

    in_axes: Any
    out_axes: Any
    partition: str | None


class Renaming(Transformed):
    """A function under ``nnx.transform_metadata``."""

    options: RenamingOptions

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        options = self.options
        args, kwargs, axes = arguments(self, "in_axes", options.in_axes, args, kwargs)
        lift = Lift(self.modes, (args, kwargs), self.function)
        prefixes = Prefixes("in_axes", (axes, 0), lift.inputs.tree, self.modes)
        metadata = {PARTITION_NAME: options.partition}
        call = call_renamed(metadata, prefixes, "out_axes", options.out_axes)
        return lift.apply(*lift.run(lift.values, call=call))


@overload
def transform_metadata(
    f: F, *, in_axes: Any = 0, out_axes: Any = 0, partition: str | None, graph: bool | None = None
) -> F: ...
@overload
def transform_metadata(
    *, in_axes: Any = 0, out_axes: Any = 0, partition: str | None, graph: bool | None = None
) -> Callable[[F], F]: ...
def transform_metadata(
    f: Callable[..., Any] = MISSING,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    partition: str | None,
    graph: bool | None = None,
) -> Any:
    """Call a function with the metadata that Variables have inside of a transform that maps over an axis.

    Their values stay as they are: this is for a function that is under ``jax.vmap`` or the like already.

    Args:
        f: the function; without it a decorator.
        in_axes: axes of the arguments, as for `nnx.vmap`.
        out_axes: axes of the result.
        partition: name of the axis in ``out_sharding``.
        graph: graph or tree mode; ``None`` for the one in force.

    Raises:
        TransformArgumentError: at a call, if a Variable has another name at the axis.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> w = nnx.Param(jnp.zeros((2, 3)), out_sharding=("layers", "embed"), eager_sharding=False)
    >>> nnx.transform_metadata(lambda w: w.out_sharding, partition="layers")(w)
    ('embed',)
    """
    return wrap("nnx.transform_metadata", Renaming, f, RenamingOptions(in_axes, out_axes, partition), graph, None)
