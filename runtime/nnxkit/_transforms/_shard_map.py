"""``nnx.shard_map``: functions of objects that run on every device of a mesh with its shards of their values.

Invariants

- What comes back has the spec under which it went in; what is new in an argument has that of the argument's prefix, and
  the result has those of ``out_specs``. What the function only captures is on all devices as a whole.
- Where JAX knows that devices have different values of something, and its spec has no axis for that, an error names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, overload

import jax
import numpy as np
from jax.sharding import PartitionSpec

from nnx_rules.records import Record
from nnx_rules.rules import transforms as rules
from nnxkit._transforms._axes import arguments, returned
from nnxkit._transforms._lift import Groups, Lift
from nnxkit._transforms._outcome import Outcome
from nnxkit._transforms._places import returned_names
from nnxkit._transforms._prefixes import Prefixes, PrefixLabels, label_inputs
from nnxkit._transforms._signatures import F
from nnxkit._transforms._wrapper import MISSING, Transformed, wrap

_partition_spec: Callable[..., PartitionSpec] = PartitionSpec
WHOLE = _partition_spec()


class ShardMapOptions(Record):
    """Options of ``nnx.shard_map``. What ``jax`` holds goes to ``jax.shard_map`` as it is."""

    mesh: Any
    in_specs: Any
    out_specs: Any
    jax: dict[str, Any]


class ShardMapped(Transformed):
    """A function under ``nnx.shard_map``."""

    options: ShardMapOptions
    prefix_options = ("in_specs", "out_specs")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        options = self.options
        args, kwargs, entries = arguments(self, "in_specs", options.in_specs, args, kwargs)
        lift = Lift(self.modes, (args, kwargs), self.function)
        by_keyword = WHOLE if isinstance(options.in_specs, tuple | list) else options.in_specs
        prefixes = Prefixes("in_specs", (entries, by_keyword), lift.inputs.tree, self.modes)
        labels = label_inputs(lift.inputs, prefixes, None)
        # What gets a sharding has it afterwards, too.
        sharded = {place for place, label in enumerate(labels[: lift.num_leaves]) if label is not None}
        out = PrefixLabels(lift.inputs, labels, prefixes, None, "out_specs", options.out_specs)

        def pure(values: Sequence[Any]) -> tuple[Groups, Outcome]:
            groups, outcome = lift.run(values, out, always=sharded)
            require_replicated(lift, groups, outcome, out.groups)
            return groups, outcome

        mapped = jax.shard_map(
            pure,
            mesh=options.mesh,
            in_specs=([_spec_of(label) for label in labels],),
            out_specs=(tuple(_spec_of(label) for label in out.groups), WHOLE),
            **options.jax,
        )
        try:
            groups, outcome = mapped(lift.values)
        except ValueError:
            require_fitting(lift, labels, options.mesh)
            raise
        return lift.apply(groups, outcome)


def require_replicated(lift: Lift, groups: Groups, outcome: Outcome, labels: Sequence[Hashable]) -> None:
    """Raise if devices have different values of something, and its spec has no axis for that.

    Raises:
        TransformArgumentError: they have, by its path.
    """
    for number, label, value in returned(outcome, groups, labels, labels):
        spec = _spec_of(label)
        for leaf in jax.tree.leaves(value):
            # Newer versions of JAX may keep this elsewhere; their own check comes after this one.
            manual = getattr(jax.typeof(leaf), "mat", None)
            missing = [] if manual is None else sorted(manual.varying.difference(_names(spec)))
            if missing:
                raise rules.VARYING_WITHOUT_AXIS.error(
                    transform=lift.modes.transform,
                    path=returned_names(lift.structure, outcome)[number],
                    axes=" and ".join(map(repr, missing)),
                    spec=_show(spec),
                )


def require_fitting(lift: Lift, labels: Sequence[Any], mesh: Any) -> None:
    """Raise if a value can not be divided as its spec says; JAX does not know what it is called.

    Raises:
        TransformArgumentError: a value has too few axes, or an axis of the wrong size.
    """
    sizes = (jax.sharding.get_abstract_mesh() if mesh is None else mesh).shape
    for place, label in enumerate(labels):
        spec = _spec_of(label)
        for leaf in jax.tree.leaves(lift.values[place]):
            shape = np.shape(leaf)
            if len(spec) > len(shape) or any(
                size % math.prod(sizes.get(name, 1) for name in _names([entry]))
                for size, entry in zip(shape, spec, strict=False)
            ):
                raise rules.SPEC_DOES_NOT_FIT.error(
                    transform=lift.modes.transform,
                    path=lift.name_of(place),
                    shape=shape,
                    spec=_show(spec),
                    mesh=dict(sizes),
                )


def _spec_of(label: Any) -> Any:
    """A label as JAX takes it, which knows no ``None`` for results."""
    return WHOLE if label is None else label


def _names(spec: Any) -> Iterator[str]:
    """The names of mesh axes in a spec."""
    for entry in spec:
        if isinstance(entry, tuple):
            yield from entry
        elif isinstance(entry, str):
            yield entry


def _show(spec: Any) -> str:
    return f"P({', '.join(map(repr, spec))})"


@overload
def shard_map(
    f: F,
    *,
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    axis_names: AbstractSet[Any] = ...,
    check_vma: bool = True,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> F: ...
@overload
def shard_map(
    *,
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    axis_names: AbstractSet[Any] = ...,
    check_vma: bool = True,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[[F], F]: ...
def shard_map(
    f: Callable[..., Any] = MISSING,
    *,
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    axis_names: AbstractSet[Any] = frozenset(),
    check_vma: bool = True,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """Run a function of objects on every device of a mesh, each with its shards, as ``jax.shard_map`` does for arrays.

    Args:
        f: the function; without it a decorator.
        mesh: the mesh; ``None`` for that of ``jax.set_mesh``.
        in_specs: the ``PartitionSpec`` of each argument, for a graph object also a `nnx.StateSharding`; one for all,
            or a tuple with one for each positional argument. With a tuple, arguments by keyword are passed whole.
        out_specs: specs of the result.
        axis_names: as for ``jax.shard_map``.
        check_vma: as for ``jax.shard_map``. Without this check, what is passed whole comes back as one device has it.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Raises:
        TransformArgumentError: at a call, if specs do not fit, or devices have different values of something whose
            spec has no axis for that.
        TransformTypeError: at a call, if ``in_specs`` is a dict or the like.
        GraphError: at a call, if an object that is passed twice has two specs.

    >>> import jax, jax.numpy as jnp, nnxkit as nnx
    >>> from jax.sharding import Mesh, PartitionSpec as P
    >>> mesh = Mesh(jax.devices()[:1], ("data",))
    >>> mean = nnx.Variable(jnp.array(0.0))
    >>> @nnx.shard_map(mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))
    ... def center(mean, x):
    ...     mean[...] = jax.lax.pmean(x.mean(), "data")
    ...     return x - mean
    >>> center(mean, jnp.arange(3.0)).tolist(), float(mean[...])
    ([-1.0, 0.0, 1.0], 1.0)
    """
    options = ShardMapOptions(mesh, in_specs, out_specs, {"axis_names": axis_names, "check_vma": check_vma})
    return wrap("nnx.shard_map", ShardMapped, f, options, graph, graph_updates)
