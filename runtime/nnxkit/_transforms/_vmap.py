"""``nnx.vmap``: functions of objects, over an axis of their values.

Invariants

- Everything that comes back has the axis under which it went in: what a function writes under an int is stacked there;
  under ``None`` it must be the same for all elements, or an error names it. What is new in an argument has the axis
  that the argument's prefix gives it, and the result those of ``out_axes``.
- What the function only captures is passed whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn, overload

import jax

from nnx_rules.records import Record
from nnx_rules.rules import transforms as rules
from nnxkit._transforms._axes import (
    CAPTURED,
    Watch,
    arguments,
    axis_of,
    mapped_size,
    refuse_draws,
    returned,
)
from nnxkit._transforms._lift import Groups, Lift
from nnxkit._transforms._metadata import call_renamed
from nnxkit._transforms._outcome import Outcome
from nnxkit._transforms._places import returned_names
from nnxkit._transforms._prefixes import Prefixes, PrefixLabels, label_inputs
from nnxkit._transforms._signatures import F
from nnxkit._transforms._wrapper import MISSING, Transformed, wrap

WITHOUT_AXIS: Mapping[Hashable, tuple[str, str]] = {
    None: ("its axis is `None`", "give it an axis in `in_axes` or `out_axes`"),
    CAPTURED: ("the function captures it", "pass it as an argument, with an axis in `in_axes`"),
}
"""Why something has no axis, and the mend, by label."""


class VmapOptions(Record):
    """Options of ``nnx.vmap``. What ``jax`` holds goes to ``jax.vmap`` as it is."""

    in_axes: Any
    out_axes: Any
    axis_size: int | None
    transform_metadata: Mapping[str, Any]
    jax: Mapping[str, Any]


class Vmapped(Transformed):
    """A function under ``nnx.vmap``."""

    options: VmapOptions
    prefix_options = ("in_axes", "out_axes")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        options = self.options
        args, kwargs, axes = arguments(self, "in_axes", options.in_axes, args, kwargs)
        lift = Lift(self.modes, (args, kwargs), self.function)
        prefixes = Prefixes("in_axes", (axes, 0), lift.inputs.tree, self.modes)
        labels = label_inputs(lift.inputs, prefixes, CAPTURED)
        size = mapped_size(lift, labels, options.axis_size)
        if size is None:
            raise rules.NOTHING_MAPPED.error(transform=self.modes.transform)
        out = PrefixLabels(lift.inputs, labels, prefixes, CAPTURED, "out_axes", options.out_axes)
        call = call_renamed(options.transform_metadata, prefixes, "out_axes", options.out_axes)
        return lift.apply(*run_mapped(lift, labels, out, size, options.jax, call, lift.values))


def run_mapped(
    lift: Lift,
    labels: Sequence[Hashable],
    out: PrefixLabels,
    size: int | None,
    options: Mapping[str, Any],
    call: Callable[..., Any],
    values: Sequence[Any],
) -> tuple[Groups, Outcome]:
    """Run the function of a call under ``jax.vmap``.

    Args:
        lift: the call.
        labels: the label of each value.
        out: the labels of what comes back.
        size: how many elements there are.
        options: options of ``jax.vmap``.
        call: calls the function.
        values: the values.

    Raises:
        TransformArgumentError: elements have different values of something without an axis.
        RngArgumentError: the function draws from a random stream that it captures.
    """
    watch = Watch()

    def pure(values: Sequence[Any]) -> tuple[Groups, Outcome]:
        groups, outcome = lift.run(values, out, call=call)
        refuse_draws(lift, labels, outcome)
        for number, label, value in returned(outcome, groups, out.groups, WITHOUT_AXIS):
            watch.require_same(value, functools.partial(_refuse, lift, outcome, number, label))
        return groups, outcome

    mapped = jax.vmap(
        pure,
        in_axes=([axis_of(label) for label in labels],),
        out_axes=(tuple(axis_of(label) for label in out.groups), None),
        axis_size=size,
        **options,
    )
    with watch:
        result: tuple[Groups, Outcome] = mapped(values)
    return result


def _refuse(lift: Lift, outcome: Outcome, number: int, label: Hashable) -> NoReturn:
    path = returned_names(lift.structure, outcome)[number]
    why, mend = WITHOUT_AXIS[label]
    raise rules.ELEMENT_VALUES_WITHOUT_AXIS.error(
        transform=lift.modes.transform, path=path, name=path[-1] if path else "", why=why, mend=mend
    )


@overload
def vmap(
    f: F,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | tuple[Hashable, ...] | None = None,
    transform_metadata: Mapping[str, Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> F: ...
@overload
def vmap(
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | tuple[Hashable, ...] | None = None,
    transform_metadata: Mapping[str, Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[[F], F]: ...
def vmap(
    f: Callable[..., Any] = MISSING,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | tuple[Hashable, ...] | None = None,
    transform_metadata: Mapping[str, Any] = MappingProxyType({}),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """Map a function of objects over an axis, as ``jax.vmap`` does for arrays.

    Args:
        f: the function; without it a decorator.
        in_axes: the axis of each argument: an int, ``None`` to pass it whole, for a graph object also a
            `nnx.StateAxes`; one for all, or a tuple with one for each. Arguments by keyword have axis 0.
        out_axes: axes of the result.
        axis_name: name of the axis for collectives such as ``jax.lax.pmean``.
        axis_size: how many elements there are, if no argument has an axis.
        spmd_axis_name: as for ``jax.vmap``.
        transform_metadata: ``{nnx.PARTITION_NAME: name}`` for the name of the axis in ``out_sharding``.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Raises:
        TransformArgumentError: at a call, if the axes do not fit, or elements have different values of something
            without an axis.
        TransformTypeError: at a call, if ``in_axes`` is a dict or the like.
        GraphError: at a call, if an object that is passed twice has two axes.
        RngArgumentError: at a call, if a random stream was not split, or is captured and drawn from.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> @nnx.split_rngs(splits=3)
    ... @nnx.vmap
    ... def make(rngs):
    ...     return nnx.Linear(2, 4, rngs=rngs)
    >>> layers = make(nnx.Rngs(0))
    >>> layers.kernel.shape
    (3, 2, 4)
    >>> nnx.vmap(lambda layer, x: layer(x), in_axes=(0, None))(layers, jnp.ones(2)).shape
    (3, 4)
    """
    jax_options = {"axis_name": axis_name, "spmd_axis_name": spmd_axis_name}
    options = VmapOptions(in_axes, out_axes, axis_size, transform_metadata, jax_options)
    return wrap("nnx.vmap", Vmapped, f, options, graph, graph_updates)
