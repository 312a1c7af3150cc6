"""``nnx.pmap``: functions of objects, over an axis of their values, one element on each device.

Invariants

- Compiled once for each structure of the inputs, as under ``nnx.jit``.
- What comes back is as under ``nnx.vmap``. That something without an axis is the same on all devices can not be seen
  while a program for one device is traced; so where a trace returns such a value, its function is traced once more,
  under ``jax.vmap``, which sees it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, overload

import jax

from nnx_rules.records import Record
from nnx_rules.rules import transforms as rules
from nnxkit._transforms._axes import CAPTURED, arguments, axis_of, mapped_size, returned
from nnxkit._transforms._jit import CompiledStructure, Jitted, Selection, call_with_static
from nnxkit._transforms._lift import Groups, Lift
from nnxkit._transforms._metadata import call_renamed
from nnxkit._transforms._outcome import Outcome
from nnxkit._transforms._prefixes import Prefixes, PrefixLabels, label_inputs
from nnxkit._transforms._signatures import F
from nnxkit._transforms._vmap import WITHOUT_AXIS, run_mapped
from nnxkit._transforms._wrapper import MISSING, wrap


class PmapOptions(Record):
    """Options of ``nnx.pmap``. What ``jax`` holds goes to ``jax.pmap`` as it is."""

    in_axes: Any
    out_axes: Any
    axis_name: Hashable | None
    axis_size: int | None
    static: Selection
    donated: Selection
    transform_metadata: Mapping[str, Any]
    jax: dict[str, Any]


class Pmapped(Jitted):
    """A function under ``nnx.pmap``."""

    options: PmapOptions  # type: ignore[assignment] # of which the base class needs `static` and `donated`
    prefix_options = ("in_axes", "out_axes")

    def lift(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lift:
        """The call with these arguments."""
        args, kwargs, _ = arguments(self, "in_axes", self.options.in_axes, args, kwargs)
        return super().lift(args, kwargs)

    def compile(self, lift: Lift) -> CompiledStructure:
        """A compiled function for the structure of a call."""
        return _CompiledPmap(self, lift)


class _CompiledPmap(CompiledStructure):
    """``jax.pmap`` of a function over lists of values, for one structure of inputs.

    Attributes:
        unchecked: whether the last trace returned something without an axis that may differ between devices.
    """

    options: PmapOptions
    unchecked = False

    def transform(self, pure: Callable[..., Any], options: PmapOptions, lift: Lift) -> Any:
        """What JAX makes of the function over lists of values."""
        tree, modes = lift.inputs.tree, lift.modes
        axes = options.in_axes
        given = tuple(axes) if isinstance(axes, tuple | list) else (axes,) * len(tree[0])
        prefixes = Prefixes("in_axes", (given, 0), tree, modes)
        self.axes = label_inputs(lift.inputs, prefixes, CAPTURED)
        self.out = PrefixLabels(lift.inputs, self.axes, prefixes, CAPTURED, "out_axes", options.out_axes)
        self.call_renamed = call_renamed(
            options.transform_metadata, prefixes, "out_axes", options.out_axes, call_with_static
        )
        self.options = options
        return jax.pmap(
            pure,
            axis_name=options.axis_name,
            in_axes=self.split([axis_of(label) for label in self.axes]),
            out_axes=(tuple(axis_of(label) for label in self.out.groups), None),
            axis_size=options.axis_size,
            donate_argnums=() if self.kept is None else (1,),
            **options.jax,
        )

    def on_values(self, function: Callable[..., Any], lift: Lift, values: list[Any]) -> Any:
        """Call a function with the values of a call, which is the running one meanwhile."""
        try:
            result = super().on_values(function, lift, values)
        except (ValueError, IndexError):
            self.explain(lift)
            raise
        if self.unchecked:
            jax.eval_shape(functools.partial(self.run_vmapped, lift), lift.values)
            self.unchecked = False
        return result

    def explain(self, lift: Lift) -> None:
        """Raise if the axes of the values do not fit; JAX does not know what they are called.

        Raises:
            RngArgumentError: a random stream has a single key.
            TransformArgumentError: a value lacks its axis, sizes differ, or there are too few devices.
        """
        size = mapped_size(lift, self.axes, self.options.axis_size)
        if size is None:
            raise rules.NOTHING_MAPPED.error(transform=lift.modes.transform)
        devices = self.options.jax["devices"] or jax.local_devices(backend=self.options.jax["backend"])
        if size > len(devices):
            raise rules.TOO_FEW_DEVICES.error(transform=lift.modes.transform, size=size, count=len(devices))

    def run_lifted(self, lift: Lift, values: Sequence[Any]) -> tuple[Groups, Outcome]:
        """Run the function on the values of a call."""
        groups, outcome = lift.run(values, self.out, call=self.call_renamed, always=self.always)
        self.unchecked = any(returned(outcome, groups, self.out.groups, WITHOUT_AXIS))
        return groups, outcome

    def run_vmapped(self, lift: Lift, values: Sequence[Any]) -> tuple[Groups, Outcome]:
        """Run the function on the values of all devices at once."""
        named = {"axis_name": self.options.axis_name}
        return run_mapped(lift, self.axes, self.out, self.options.axis_size, named, self.call_renamed, values)


@overload
def pmap(
    f: F,
    *,
    axis_name: Hashable | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = ...,
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = ...,
    transform_metadata: Mapping[str, Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> F: ...
@overload
def pmap(
    *,
    axis_name: Hashable | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = ...,
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = ...,
    transform_metadata: Mapping[str, Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[[F], F]: ...
def pmap(
    f: Callable[..., Any] = MISSING,
    *,
    axis_name: Hashable | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    transform_metadata: Mapping[str, Any] = MappingProxyType({}),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """Run a function of objects on several devices, each with its element of an axis, as ``jax.pmap`` does for arrays.

    Args:
        f: the function; without it a decorator.
        axis_name: name of the axis for collectives such as ``jax.lax.pmean``.
        in_axes: the axis of each argument, as for `nnx.vmap`; static arguments have an entry, too, of any value.
        out_axes: axes of the result.
        static_broadcasted_argnums: positions of arguments that are part of the compiled function.
        devices: as for ``jax.pmap``.
        backend: as for ``jax.pmap``.
        axis_size: how many elements there are, if no argument has an axis.
        donate_argnums: positions of arguments whose buffers may be used for the results.
        transform_metadata: ``{nnx.PARTITION_NAME: name}`` for the name of the axis in ``out_sharding``.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Raises:
        TransformArgumentError: at a call, if the axes do not fit, there are too few devices, or devices have
            different values of something without an axis.
        TransformTypeError: at a call, if ``in_axes`` is a dict or the like.
        GraphError: at a call, if an object that is passed twice has two axes.
        RngArgumentError: at a call, if a random stream was not split, or is captured and drawn from.

    >>> import jax, jax.numpy as jnp, nnxkit as nnx
    >>> total = nnx.Variable(jnp.array(0.0))
    >>> @nnx.pmap(in_axes=(None, 0), axis_name="devices")
    ... def add(total, x):
    ...     total[...] += jax.lax.psum(x, "devices")
    >>> add(total, jnp.ones(1))
    >>> float(total[...])
    1.0
    """
    options = PmapOptions(
        in_axes,
        out_axes,
        axis_name,
        axis_size,
        Selection(static_broadcasted_argnums, ()),
        Selection(donate_argnums, ()),
        transform_metadata,
        {"devices": devices, "backend": backend},
    )
    return wrap("nnx.pmap", Pmapped, f, options, graph, graph_updates)
