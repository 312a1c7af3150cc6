"""``nnx.scan``: a function runs for each element of its inputs, and hands a carry from one run to the next.

Invariants

- A value is scanned over (an int), carried (`Carry`), or broadcast to all steps (``None``). What is only captured is
  carried; JAX makes constants of what no step writes.
- What a step writes comes back: stacked if it is scanned over, as the last step left it if it is carried. In the
  default mode broadcast means that steps only read; in the others broadcast Variables are carried.
- Random streams that are broadcast give every step the same numbers: each begins with their state, and afterwards they
  have the state that one step leaves.
- Structure may be edited only where objects are scanned over: each step begins with a new one of those.
- JAX traces again only for another structure, or other types: all values are passed, and what a trace found out
  is part of what the loop returns.
- The rest is as in ``_loop``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, overload

import jax
import jax.numpy as jnp

from nnx_rules import carries
from nnx_rules.records import Record
from nnx_rules.rules import transforms as rules
from nnxkit._facts import describe
from nnxkit._rngs import RngState
from nnxkit._state._order import Path
from nnxkit._transforms._axes import arguments, mapped_size
from nnxkit._transforms._carried import Carried
from nnxkit._transforms._inner import Modes
from nnxkit._transforms._inputs import PYTREE, is_object, replaced
from nnxkit._transforms._kept import Running, Structures
from nnxkit._transforms._lift import Lift
from nnxkit._transforms._loop import Loop, Notes, first_loose
from nnxkit._transforms._metadata import call_renamed
from nnxkit._transforms._outcome import Outcome
from nnxkit._transforms._places import returned_names
from nnxkit._transforms._prefixes import Carry, FilterPrefix, Prefixes, PrefixLabels, is_prefix_leaf, label_inputs
from nnxkit._transforms._signatures import F
from nnxkit._transforms._wrapper import MISSING, Transformed, wrap


class ScanOptions(Record):
    """Options of ``nnx.scan``. What ``jax`` holds goes to ``jax.lax.scan`` as it is."""

    length: int | None
    in_axes: Any
    out_axes: Any
    transform_metadata: Mapping[str, Any]
    jax: dict[str, Any]


class Scanned(Transformed):
    """A function under ``nnx.scan``."""

    options: ScanOptions
    prefix_options = ("in_axes", "out_axes")

    def __init__(self, f: Callable[..., Any], options: ScanOptions, modes: Modes) -> None:
        super().__init__(f, options, modes)
        _check_axes(options, modes)
        self.steps: Structures[Callable[..., Any]] = Structures()

    def __nnx_rewrap__(self, f: Callable[..., Any]) -> Self:
        """The same transform of the same function over other captures, with the same steps."""
        other = super().__nnx_rewrap__(f)
        other.steps = self.steps
        return other

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs, axes = arguments(self, "in_axes", self.options.in_axes, args, kwargs)
        if len(_carries(axes)) > 1:
            flax = "When in_axes=Carry, the function must take exactly one argument"
            problem = "only one argument can be carried", "carry a tuple", flax
            raise _axes_error(self.options, self.modes, "in_axes", *problem)
        lift = Lift(self.modes, (args, kwargs), self.function)
        return _Scan(self, lift, axes).run(self.steps.find(lift.inputs.key(), _make_step))


class _Scan:
    """One call of a scanned function.

    Args:
        scanned: the function.
        lift: the call.
        axes: the axis of each positional argument.
    """

    def __init__(self, scanned: Scanned, lift: Lift, axes: tuple[Any, ...]) -> None:
        options = self.options = scanned.options
        self.lift = lift
        self.carry = next(iter(_carries(axes)), None)
        inputs, modes = lift.inputs, lift.modes
        self.prefixes = Prefixes("in_axes", (axes, 0), inputs.tree, modes)
        labels = label_inputs(inputs, self.prefixes, Carry)
        if not modes.updates:
            count = lift.num_leaves
            labels[:count] = [Carry if label is None else label for label in labels[:count]]
        self.labels = labels
        self.kept = [place for place, label in enumerate(labels) if not isinstance(label, int)]
        self.scanned = [place for place, label in enumerate(labels) if isinstance(label, int)]
        sources = inputs.joint.sources()
        self.repeated = [place for place in self.kept if labels[place] is None and _is_stream(sources, place)]
        self.length = self.find_length()
        self.result = _ResultAxes(options.out_axes, modes)
        prefix = (Carry, self.result.others)
        self.out = PrefixLabels(inputs, labels, self.prefixes, Carry, "out_axes", prefix)
        self.call = call_renamed(options.transform_metadata, self.prefixes, "out_axes", prefix, self.call_step)
        carry = () if self.carry is None else inputs.tree[0][self.carry]
        bare = [place for place in self.kept if place >= lift.num_leaves and labels[place] is Carry]
        self.loop = Loop(lift, Carried(lift, carry, ("args", self.carry), bare), self.kept, self.may_edit)

    def find_length(self) -> int:
        """The number of steps."""
        transform = self.lift.modes.transform
        given, size = self.options.length, mapped_size(self.lift, self.labels, None)
        length = size if given is None else given
        if length is None:
            raise rules.SCAN_LENGTH.error(transform=transform, problem="there is nothing to scan over, and no `length`")
        if size is not None and size != length:
            problem = f"`length` is {length}, and there are {size} elements to scan over"
            raise rules.SCAN_LENGTH.error(transform=transform, problem=problem)
        return length

    def may_edit(self, path: Path) -> bool:
        """Whether a step may edit what is at a path of the joint graph: it is scanned over."""
        structure = self.lift.structure
        if path in structure.paths:
            return isinstance(self.labels[structure.paths.index(path)], int)
        first: Any = path[0]
        numbers = self.lift.inputs.flat.numbers(PYTREE)
        if first >= len(numbers):
            return False
        entry = self.prefixes.leaves[numbers[first]]
        return any(isinstance(axis, int) for axis in (entry.prefixes if isinstance(entry, FilterPrefix) else [entry]))

    def call_step(self, f: Callable[..., Any], tree: tuple[Any, Any]) -> tuple[list[Any], Any]:
        """Call the function; returns the loose values of the carry, and what else it returned."""
        args, kwargs = tree
        others: list[Any] = []

        def run() -> Any:
            carry, rest = self.result.split(f(*args, **kwargs))
            others.append(rest)
            return carry

        loose = self.loop.carried.step(() if self.carry is None else args[self.carry], run)
        return loose, others[0]

    def step(self, carry: list[list[Any]], elements: list[Any]) -> tuple[list[list[Any]], tuple[list[Any], Notes]]:
        """What JAX traces: one step over values."""
        kept, repeated = carry
        places = (*self.kept, *self.scanned, *self.repeated)
        values = replaced([None] * len(self.labels), places, (*kept, *elements, *repeated))
        new, others, notes = self.loop.step(values, self.call, labels=self.out)
        for place in sorted(notes.written | notes.renewed):
            if self.labels[place] is None and place not in self.repeated:
                raise rules.SCAN_BROADCAST.error(transform=self.lift.modes.transform, path=self.lift.name_of(place))
        stacks = [*(new[place] for place in self.written(notes)), *others]
        return [[new[place] for place in self.kept], repeated], (stacks, notes)

    def written(self, notes: Notes) -> list[int]:
        """The places of the scanned values that a step writes."""
        return [place for place in sorted(notes.written) if isinstance(self.labels[place], int)]

    def axes(self, outcome: Outcome) -> list[int]:
        """The axes at which to stack what a step gives apart from the carry.

        Raises:
            TransformArgumentError: something new in the inputs has no axis.
        """
        if outcome.places is None:
            return []
        labels = [self.out.groups[group] for group, _ in outcome.places]
        known, first = len(outcome.written), first_loose(outcome)
        carried = [place is not None for source, place in self.loop.edited(outcome) if source is None]
        for number, label in enumerate(labels[known:first], known):
            if not isinstance(label, int) and not (number - known < len(carried) and carried[number - known]):
                path = returned_names(self.lift.structure, outcome)[number]
                raise rules.LOOP_STRUCTURE.error(
                    transform=self.lift.modes.transform, path=path, one="missing", other="new"
                )
        # The loose values of the carry are labelled as that.
        return [label for label in labels if isinstance(label, int)]

    def run(self, step: Callable[..., Any]) -> Any:
        """Run all steps; returns what the scanned function returns.

        Args:
            step: calls `step` of the running call.
        """
        values = self.lift.values
        carry = [[values[place] for place in places] for places in (self.kept, self.repeated)]
        elements = [_move(values[place], self.labels[place], 0) for place in self.scanned]
        _running.calls.append(self)
        try:
            carry, (stacks, notes) = jax.lax.scan(step, carry, elements, length=self.length, **self.options.jax)
        finally:
            _running.calls.pop()
        assert notes.outcome is not None
        written = self.written(notes)
        stacks = [_move(stack, 0, axis) for stack, axis in zip(stacks, self.axes(notes.outcome), strict=True)]
        after = replaced(values, (*self.kept, *written), (*carry[0], *stacks[: len(written)]))
        self.loop.notes = self.loop.notes.then(notes)
        return self.result.join(*self.loop.finish(after, stacks[len(written) :]))


_running = Running()


def _make_step() -> Callable[..., Any]:
    return lambda carry, elements: _running.calls[-1].step(carry, elements)


def _is_stream(sources: Sequence[Any], place: int) -> bool:
    """Whether a value is the state of a random stream."""
    return place < len(sources) and isinstance(sources[place], RngState)


def _carries(axes: Sequence[Any]) -> list[int]:
    """The places of the carry. Axes may be Variables, which compare as their values do."""
    return [place for place, axis in enumerate(axes) if axis is Carry]


def _move(value: Any, source: int, destination: int) -> Any:
    """A value with an axis moved; a Variable may hold a pytree."""
    if source == destination:
        return value
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, source, destination), value)


class _ResultAxes:
    """``out_axes``: where the carry is in the result, and the axes of the rest.

    Attributes:
        others: axes of the rest.
    """

    def __init__(self, out_axes: Any, modes: Modes) -> None:
        self.out_axes = out_axes
        self.modes = modes
        self.carry = next(iter(_carries(out_axes)), None) if isinstance(out_axes, tuple) else None
        if out_axes is Carry:
            self.others: Any = ()
        elif self.carry is None:
            self.others = out_axes
        else:
            self.others = (*out_axes[: self.carry], *out_axes[self.carry + 1 :])

    def split(self, result: Any) -> tuple[Any, Any]:
        """The carry and the rest of a result."""
        if self.out_axes is Carry:
            return result, ()
        if self.carry is None:
            return (), result
        count = len(self.out_axes)
        if not isinstance(result, tuple) or len(result) != count:
            given = f"{len(result)} of them" if isinstance(result, tuple) else describe(result)
            problem = f"the function is to return a tuple of {count} values, and returns {given}"
            raise rules.PREFIX_MISMATCH.error(option="out_axes", transform=self.modes.transform, problem=problem)
        return result[self.carry], (*result[: self.carry], *result[self.carry + 1 :])

    def join(self, carry: Any, rest: Any) -> Any:
        """A result from the carry and the rest."""
        if self.out_axes is Carry:
            return carry
        return rest if self.carry is None else (*rest[: self.carry], carry, *rest[self.carry :])


def _check_axes(options: ScanOptions, modes: Modes) -> None:
    """Raise for axes that make no sense, whatever the arguments are.

    Raises:
        TransformArgumentError: they do.
    """
    found = carries.problem(_leaves(options.in_axes), _leaves(options.out_axes))
    if found is not None:
        raise _axes_error(options, modes, *found)


def _leaves(axes: Any) -> list[carries.Leaf]:
    """The axes of an option, as the rule sees them."""
    found = []
    for item in axes if isinstance(axes, tuple | list) else [axes]:
        inside = jax.tree.leaves(item, is_leaf=is_prefix_leaf)
        found += [_leaf(leaf, whole=leaf is item) for leaf in inside]
    return found


def _leaf(leaf: Any, *, whole: bool) -> carries.Leaf:
    by_filter = isinstance(leaf, FilterPrefix)
    entries = leaf.prefixes if by_filter else (leaf,)
    return carries.Leaf(tuple(map(_label, entries)), whole, by_filter, leaf)


def _label(axis: Any) -> carries.Label:
    if axis is None:
        return carries.Label.BROADCAST
    if axis is Carry:
        return carries.Label.CARRY
    if isinstance(axis, Carry):
        return carries.Label.CALLED
    return carries.Label.AXIS if isinstance(axis, int) or is_object(axis) else carries.Label.OTHER


def _axes_error(options: ScanOptions, modes: Modes, option: str, problem: str, mend: str, flax: str = "") -> Exception:
    given = _show(getattr(options, option))
    error: Exception = rules.SCAN_AXES.error(
        option=option, transform=modes.transform, given=given, problem=problem, mend=mend, flax=flax
    )
    return error


def _show(axes: Any) -> str:
    """Axes as people write them."""
    if isinstance(axes, tuple):
        return "(" + ", ".join(map(_show, axes)) + ("," if len(axes) == 1 else "") + ")"
    return "Carry" if axes is Carry else repr(axes)


@overload
def scan(
    f: F,
    *,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    in_axes: Any = ...,
    out_axes: Any = ...,
    transform_metadata: Mapping[str, Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> F: ...
@overload
def scan(
    *,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    in_axes: Any = ...,
    out_axes: Any = ...,
    transform_metadata: Mapping[str, Any] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[[F], F]: ...
def scan(
    f: Callable[..., Any] = MISSING,
    *,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    in_axes: Any = (Carry, 0),
    out_axes: Any = (Carry, 0),
    transform_metadata: Mapping[str, Any] = MappingProxyType({}),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """Run a function of objects for each element of its inputs, with a carry, as ``jax.lax.scan`` does for arrays.

    Modules and Variables may be carried, scanned over, broadcast, or captured. What the steps write to those that are
    carried or captured goes from step to step; to those that are scanned over it is stacked. With graph updates a step
    may return new Variables in the carry, if nothing else holds those that it was given: their values go on.

    Args:
        f: the function; without it a decorator.
        length: number of steps, if nothing is scanned over.
        reverse: as for ``jax.lax.scan``.
        unroll: as for ``jax.lax.scan``.
        _split_transpose: as for ``jax.lax.scan``.
        in_axes: for each argument `nnx.Carry`, an axis to scan over, or ``None`` to give all of it to each step; for a
            graph object also a `nnx.StateAxes` of these; one for all, or a tuple with one for each. Arguments by
            keyword have axis 0.
        out_axes: for each result `nnx.Carry` or the axis to stack it at; alone if the function returns one value.
        transform_metadata: ``{nnx.PARTITION_NAME: name}`` for the name of the scanned axis in ``out_sharding``.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Raises:
        TransformArgumentError: if the axes make no sense; at a call, if they do not fit, the number of steps is not
            known, a step writes to something broadcast, or returns a carry with other objects.
        TransformTypeError: at a call, if a step changes the structure of the carry, or the type of a value.
        GraphError: at a call, if an object that is passed twice has two axes.
        RngArgumentError: at a call, if a random stream that is scanned over was not split.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> layers = nnx.vmap(lambda w: nnx.Dict(w=nnx.Param(w)))(jnp.array([2.0, 3.0, 4.0]))
    >>> @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
    ... def forward(x, layer):
    ...     return x * layer.w
    >>> float(forward(1.0, layers))
    24.0
    """
    jax_options = {"reverse": reverse, "unroll": unroll, "_split_transpose": _split_transpose}
    options = ScanOptions(length, in_axes, out_axes, transform_metadata, jax_options)
    return wrap("nnx.scan", Scanned, f, options, graph, graph_updates)
