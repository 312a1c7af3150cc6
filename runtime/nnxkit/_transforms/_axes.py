"""Axes: what is common to the transforms that map a function over an axis, or over devices.

Invariants

- The axis of everything is known before the function runs, and whether it fits is checked then: a value lacks the axis,
  sizes differ, a random stream was not split.
- What the function only captures is passed whole. It may write to it as long as all elements write the same value,
  which is checked while it runs, and it may not draw random numbers from it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from typing import Any, NoReturn

import jax
import jax.core
import numpy as np

from nnx_rules.errors import format_path
from nnx_rules.rules import rngs as rng_rules
from nnx_rules.rules import transforms as rules
from nnxkit._facts import describe
from nnxkit._rngs import RngCount, RngState
from nnxkit._state._order import Path
from nnxkit._trace import TraceState, current_trace
from nnxkit._transforms._lift import Groups, Lift
from nnxkit._transforms._outcome import Outcome
from nnxkit._transforms._prefixes import is_prefix_leaf
from nnxkit._transforms._wrapper import Transformed


class Neutral(enum.Enum):
    """The label of what is not passed."""

    CAPTURED = "captured"


CAPTURED = Neutral.CAPTURED


def axis_of(label: Any) -> Any:
    """The axis that a label stands for, as JAX takes it."""
    return None if label is CAPTURED else label


def arguments(
    transformed: Transformed, option: str, entries: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]:
    """The arguments of a call, and the entry of each positional one.

    Keyword arguments go to their positions, unless the entries cover those that are there already. Entries may go on
    for parameters that the call leaves out: these are given their defaults.

    Args:
        transformed: the function.
        option: name of the option with the entries, for messages.
        entries: one entry for all arguments, or a tuple or list with one for each.
        args: positional arguments.
        kwargs: keyword arguments.

    Raises:
        TransformTypeError: the entries are in another container.
    """
    if isinstance(entries, tuple | list):
        if len(entries) != len(args):
            args, kwargs = transformed.positional(args, kwargs, len(entries))
        return args, kwargs, tuple(entries)
    if not jax.tree_util.treedef_is_leaf(jax.tree.structure(entries, is_leaf=is_prefix_leaf)):
        raise rules.AXES_TYPE.error(option=option, transform=transformed.modes.transform, given=describe(entries))
    args, kwargs = transformed.positional(args, kwargs)
    return args, kwargs, (entries,) * len(args)


def mapped_size(lift: Lift, axes: Sequence[Any], given: int | None) -> int | None:
    """How many elements there are along the axes that are to be mapped over; ``None`` if there are no such axes.

    Args:
        lift: the call.
        axes: the axis of each value; what is no int is not mapped over.
        given: the size that the caller says.

    Raises:
        RngArgumentError: a random stream has a single key.
        TransformArgumentError: a value lacks its axis, or sizes differ.
    """
    size = given
    first: int | None = None
    for place, axis in enumerate(axes):
        if not isinstance(axis, int):
            continue
        for leaf in jax.tree.leaves(lift.values[place]):
            shape = np.shape(leaf)
            if not -len(shape) <= axis < len(shape):
                _refuse_axis(lift, place, axis, shape)
            if size is None:
                size, first = shape[axis], place
            elif shape[axis] != size:
                other = (
                    "`axis_size`" if first is None else f"axis {axes[first]} of `{format_path(lift.name_of(first))}`"
                )
                raise rules.AXIS_SIZES.error(
                    transform=lift.modes.transform,
                    path=lift.name_of(place),
                    axis=axis,
                    size=shape[axis],
                    other=f"{size} of {other}",
                )
    return size


def _refuse_axis(lift: Lift, place: int, axis: int, shape: tuple[int, ...]) -> NoReturn:
    path = lift.name_of(place)
    if not shape and place < lift.num_leaves and isinstance(lift.inputs.joint.sources()[place], RngState):
        raise rng_rules.UNSPLIT_RNGS.error(transform=lift.modes.transform, path=_stream_path(path), axis=axis)
    raise rules.AXIS_OUT_OF_RANGE.error(transform=lift.modes.transform, path=path, axis=axis, shape=shape)


def refuse_draws(lift: Lift, labels: Sequence[Hashable], outcome: Outcome) -> None:
    """Raise if a function that is mapped over an axis drew from a random stream that it only captures.

    Raises:
        RngArgumentError: it did.
    """
    sources = lift.inputs.joint.sources()
    for place in outcome.written:
        if labels[place] is CAPTURED and isinstance(sources[place], RngCount):
            raise rng_rules.CAPTURED_RNGS_UNDER_MAP.error(
                transform=lift.modes.transform, path=_stream_path(lift.name_of(place))
            )


def _stream_path(path: Path) -> Path:
    """The path of a random stream from that of its key or count."""
    return path[:-1] if path[-1] in ("key", "count") else path


def returned(
    outcome: Outcome, groups: Groups, labels: Sequence[Hashable], wanted: Container[Hashable]
) -> Iterator[tuple[int, Hashable, Any]]:
    """The values that leave a trace under some labels: number, label and value of each.

    Args:
        outcome: what the function did.
        groups: the values by group.
        labels: the labels of the groups.
        wanted: the labels that count.
    """
    if not any(group for group, label in zip(groups, labels, strict=True) if label in wanted):
        return
    places = outcome.places or [(0, place) for place in range(len(groups[0]))]
    for number, (group, place) in enumerate(places):
        if labels[group] in wanted:
            yield number, labels[group], groups[group][place]


class Watch:
    """A context in which ``jax.vmap`` is called, and what is to be the same for all of its elements is."""

    def __init__(self) -> None:
        self.level: TraceState | None = None
        self.refusals: list[Callable[[], NoReturn]] = []

    def __enter__(self) -> Watch:
        self.level = current_trace()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.level = None
        self.refusals.clear()

    def require_same(self, value: Any, refuse: Callable[[], NoReturn]) -> None:
        """Refuse a value in the function under ``jax.vmap`` of which each element has its own.

        Args:
            value: the value.
            refuse: raises.
        """
        tracers = [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.core.Tracer)]
        if not tracers:
            return
        number = len(self.refusals)
        self.refusals.append(refuse)

        # JAX keeps the rule as long as the program, hence nothing but this object is in it.
        def rule(axis_size: int, is_mapped: list[list[bool]], values: list[Any]) -> tuple[list[Any], list[bool]]:
            # JAX asks the innermost jax.vmap to which a value belongs; that may be one further out.
            if self.level is not None and self.level.is_valid():
                self.refusals[number]()
            return values, is_mapped[0]

        look = jax.custom_batching.custom_vmap(lambda values: values)
        look.def_vmap(rule)
        # Nothing depends on the answer: what JAX keeps of this is dead code.
        look([jax.lax.stop_gradient(leaf) for leaf in tracers])
