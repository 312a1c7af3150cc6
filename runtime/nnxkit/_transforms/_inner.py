"""The inputs inside of a trace: fresh objects that hold tracers, and what a function did to them.

Invariants

- The objects are new for every trace and belong to it, so whatever raises while it runs, the caller's objects never
  hold a tracer.
- Only values that differ from what came in are returned: a Variable that the function only read costs nothing behind
  it.
- With ``graph_updates`` every change of the inputs is returned. Without it only those of Variables are, and the result
  must not share objects with the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

import jax

from nnx_rules.rules import transforms as rules
from nnxkit._epoch import EPOCH
from nnxkit._graph._graphdef import Record, VariableRecord
from nnxkit._graph._layouts import Kind, kind_of
from nnxkit._graph._plan import Walk
from nnxkit._state._order import Path
from nnxkit._transforms._inputs import (
    BARE,
    PYTREE,
    VARIABLE,
    Flat,
    Names,
    Structure,
    is_object,
    require_tree,
    root_of,
    split_path,
)
from nnxkit._transforms._joint import Root
from nnxkit._transforms._outcome import Outcome, Part, Result
from nnxkit._variable import Variable, to_array


class Modes(NamedTuple):
    """How a transform treats structure (see ``_graph._modes``), and its name for messages."""

    graph: bool
    updates: bool
    transform: str


class Labels(Protocol):
    """What a JAX transform does with each returned value: a vmap axis, a sharding."""

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """All labels that there can be."""
        ...

    def of_input(self, leaf: int) -> Hashable:
        """The label of a leaf of the inputs, by its number."""
        ...

    def of_new(self, path: Path, leaf: Any) -> Hashable:
        """The label of a leaf that the function added to its inputs, by its path in the joint graph."""
        ...

    def of_result(self, result: Flat) -> Callable[[int, Path, Any], Hashable]:
        """For a result a function that gives labels: by number of the leaf of the result, path below it, and leaf."""
        ...


class _OneGroup:
    """Labels of transforms that treat all values alike."""

    groups: tuple[Hashable, ...] = (None,)

    def of_input(self, leaf: int) -> Hashable:
        return None

    def of_new(self, path: Path, leaf: Any) -> Hashable:
        return None

    def of_result(self, result: Flat) -> Callable[[int, Path, Any], Hashable]:
        return lambda number, path, leaf: None


ONE_GROUP: Labels = _OneGroup()


class Inner:
    """The inputs inside of a trace.

    Args:
        structure: structure of the joint graph.
        values: values of its leaves.

    Attributes:
        leaves: the Variables, references and bare values that the leaves became.
        root: the objects.
    """

    def __init__(self, structure: Structure, values: Sequence[Any]) -> None:
        program = structure.program
        self.structure = structure
        self.values = values
        self.epoch = EPOCH.value
        self.built = program.build(values, version=1)
        self.leaves = self.built[: len(program.paths)]
        self.metadata = [leaf._var_metadata if isinstance(leaf, Variable) else None for leaf in self.leaves]
        # Containers may be edited in place.
        self.contents = {
            place: jax.tree.flatten(value) for place, value in enumerate(values) if kind_of(value) is Kind.CONTAINER
        }
        self.node = self.built[program.root]
        self.root = Root.from_node(self.node, structure.pytrees)

    def is_edited(self) -> bool:
        """Whether the structure may have been edited."""
        program = self.structure.program
        states = (self.built[place] for place in program.states)
        return EPOCH.value != self.epoch or not program.rigid or not all(state.is_private() for state in states)

    def indices(self) -> dict[int, int]:
        """Indices of the objects, by identity."""
        return {id(self.built[place]): index for index, place in self.structure.program.places.items()}

    def collect(
        self, result: Any, modes: Modes, labels: Labels = ONE_GROUP, always: Collection[int] = ()
    ) -> tuple[tuple[list[Any], ...], Outcome]:
        """Look at what a function has done to the inputs.

        Args:
            result: what it returned.
            modes: how structure is treated.
            labels: how values are grouped.
            always: leaves whose values are returned even if they were not written.

        Returns:
            the values to return from the trace, by group, and the outcome.

        Raises:
            GraphError: without ``graph_updates``, the result has a Variable of the inputs; in tree mode, an object
                twice.
        """
        return _Collector(self, modes, labels, always).collect(result)


class _Collector:
    def __init__(self, inner: Inner, modes: Modes, labels: Labels, always: Collection[int]) -> None:
        self.inner = inner
        self.always = always
        self.modes = modes
        self.labels = labels
        self.numbers = {label: number for number, label in enumerate(labels.groups)}
        self.groups: tuple[list[Any], ...] = tuple([] for _ in self.numbers)
        self.places: list[tuple[int, int]] = []
        self.walk = Walk({}, inner.node) if modes.updates and inner.is_edited() else None

    def give(self, value: Any, label: Hashable) -> None:
        """Return a value from the trace."""
        number = self.numbers[label]
        self.places.append((number, len(self.groups[number])))
        self.groups[number].append(value)

    def collect(self, result: Any) -> tuple[tuple[list[Any], ...], Outcome]:
        inner = self.inner
        same = self.walk is None or self.is_same(self.walk)
        written, bare = self.written(same)
        metadata = tuple(
            (place, leaf._var_metadata)
            for place, (leaf, before) in enumerate(zip(inner.leaves, inner.metadata, strict=True))
            if before is not None and leaf._var_metadata is not before and leaf._var_metadata != before
        )
        edits = None if same or self.walk is None else self.edits(self.walk)
        structure = self.result(result)
        places = tuple(self.places) if len(self.groups) > 1 else None
        return self.groups, Outcome(tuple(written), bare, metadata, edits, structure, places)

    def is_same(self, walk: Walk) -> bool:
        """Whether the inputs are the same objects, at the same places, with the same static values."""
        inner = self.inner
        return walk.index == inner.indices() and _is_same_structure(
            walk.plan.graphdef.records, inner.structure.graphdef.records
        )

    def written(self, same: bool) -> tuple[list[int], bool]:
        """Return the new values of leaves; bare ones have places of their own only if the structure is the same."""
        inner = self.inner
        after = {place: leaf._raw_value for place, leaf in enumerate(inner.leaves) if isinstance(leaf, Variable)}
        if same and self.walk is not None and self.walk.plan.slots:
            leaves = self.walk.plan.leaves()
            after.update((slot.position, leaves[slot.position]) for slot in self.walk.plan.slots)
        for place in self.always:
            if not isinstance(inner.leaves[place], jax.Ref):
                after.setdefault(place, inner.values[place])
        written = []
        for place in sorted(after):
            value = after[place]
            if (
                value is not inner.values[place]
                or place in self.always
                or (place in inner.contents and not _is_same_content(inner.contents[place], jax.tree.flatten(value)))
            ):
                written.append(place)
                self.give(value, self.labels.of_input(place))
        return written, any(not isinstance(inner.leaves[place], Variable) for place in written)

    def edits(self, walk: Walk) -> Part:
        """The edited inputs; returns the values of new leaves."""
        inner, plan = self.inner, walk.plan
        leaves = plan.leaves()
        known = {id(leaf): place for place, leaf in enumerate(inner.leaves)}
        sources = tuple([known.get(id(leaf)) for leaf in leaves])
        for path, leaf, source in zip(plan.paths, leaves, sources, strict=True):
            if source is None:
                self.give(_value(leaf), self.labels.of_new(path, leaf))
        indices = inner.indices()
        outer = tuple([indices.get(id(obj)) for obj in walk.met])
        return Part(plan.graphdef.with_outer(outer), sources)

    def result(self, result: Any) -> Result:
        """The structure of the result; returns its values."""
        flat = Flat.of(result)
        label = self.labels.of_result(flat)
        root = root_of([leaf for leaf in flat.leaves if is_object(leaf)])
        part = None
        if root.node:
            plan = self.walk_result(flat, root).plan
            pytrees, variables = flat.numbers(PYTREE), flat.numbers(VARIABLE)
            for path, leaf in zip(plan.paths, plan.leaves(), strict=True):
                number, below = split_path(path, pytrees, variables)
                self.give(_value(leaf), label(number, below, leaf))
            part = Part(plan.graphdef, (None,) * len(plan.paths))
        for number, (leaf, mark) in enumerate(zip(flat.leaves, flat.marks, strict=True)):
            if mark == BARE:
                self.give(leaf, label(number, (), leaf))
        return Result(flat.treedef, flat.marks, part, len(root.pytrees))

    def walk_result(self, flat: Flat, root: Root) -> Walk:
        if self.modes.updates:
            # Goes on counting where the inputs ended, so objects of the inputs are references.
            return Walk(self.inner.indices() if self.walk is None else self.walk.index, root.node)
        walk = Walk({}, root.node)
        names = Names("result", flat.treedef, flat.marks)
        paths = {id(leaf): path for path, leaf in zip(self.inner.structure.paths, self.inner.leaves, strict=True)}
        for path, leaf in zip(walk.plan.paths, walk.plan.sources, strict=True):
            if leaf is not None and id(leaf) in paths:
                raise rules.RETURNED_INPUT.error(
                    transform=self.modes.transform,
                    value=type(leaf).__name__,
                    path=names(path),
                    other_path=self.inner.structure.name(paths[id(leaf)]),
                )
        if not self.modes.graph:
            require_tree(root.node, walk.plan.graphdef, self.modes.transform)
        return walk


def _value(leaf: Any) -> Any:
    """What leaves the trace of a new leaf; for an array reference, which cannot, what it holds."""
    return to_array(leaf._raw_value) if isinstance(leaf, Variable) else leaf


def _is_same_content(before: tuple[list[Any], Any], after: tuple[list[Any], Any]) -> bool:
    return before[1] == after[1] and all(a is b for a, b in zip(before[0], after[0], strict=True))


def _is_same_structure(after: Sequence[Record], before: Sequence[Record]) -> bool:
    """Whether two graphs differ in the metadata of Variables at most."""
    return len(after) == len(before) and all(
        a == b or (isinstance(a, VariableRecord) and isinstance(b, VariableRecord) and a.type is b.type)
        for a, b in zip(after, before, strict=True)
    )
