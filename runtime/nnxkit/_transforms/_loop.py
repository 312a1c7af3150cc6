"""Steps of a loop over objects: what goes from one step to the next, and what may not change on the way.

A step is a function from the values of one call to new ones (``_lift``). Its objects are fresh for each step, so what
is to go on must be a value: that of a Variable, of an array attribute, or a leaf of the carry.

Invariants

- The carry that a step returns has the containers and the objects that it was given. With graph updates these are the
  very Pytrees; without, Pytrees may be new ones of the same structure, which hold the same Variables.
- No step edits the structure of what goes from step to step. It may put a new object into the place of one of the same
  structure: what that holds goes on, and after the loop the caller's object has a new one, as a loop of Python would
  leave it. Where nobody knows whether there will be a step, it may not: which object would be there afterwards?
- All values can go from step to step. JAX finds those that no step writes, and makes them constants of the loop.
- The caller's objects are written once, after the loop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import jax

from nnx_rules.rules import transforms as rules
from nnxkit._graph._layouts import key_name
from nnxkit._graph._program import program_of
from nnxkit._state._order import Path
from nnxkit._transforms._inner import ONE_GROUP, Labels
from nnxkit._transforms._inputs import BARE, Flat, Structure, is_object, replaced, root_of, unflatten
from nnxkit._transforms._joint import Joint, Root
from nnxkit._transforms._lift import Lift
from nnxkit._transforms._outcome import Outcome, Part
from nnxkit._transforms._places import (
    Places,
    describe_metadata,
    describe_place,
    describe_tree,
    differences,
    inputs_after,
    metadata_before,
    places_of,
    renewed_inputs,
)
from nnxkit._transforms._value_types import can_become, type_of


class Carried:
    """The carry of a loop, outside and inside of its steps.

    The *loose* values of a carry are those that are not in Variables: its bare leaves, and without graph updates, where
    writing to them does not come back, the bare attributes of its objects.

    Args:
        lift: the call.
        carry: the carry, as the caller gave it.
        name: what the caller calls it.
        leaves: places of its bare leaves among the values of the call.

    Attributes:
        loose: places of its loose values among the values of the call.
    """

    def __init__(self, lift: Lift, carry: Any, name: Path, leaves: Iterable[int]) -> None:
        self.updates = lift.modes.updates
        self.transform = lift.modes.transform
        self.flat = Flat.of(carry)
        self.joint = _joint(self.flat)
        paths, _ = jax.tree_util.tree_flatten_with_path(carry, is_leaf=is_object)
        names = {id(leaf): (*name, *map(key_name, path)) for path, leaf in reversed(paths)}
        root = self.joint.root
        self.names = [names[id(item)] for item in (*root.pytrees, *root.variables)]
        self.structure = Structure(self.joint.graphdef, self.joint.paths, len(root.pytrees), lambda: self.names)
        self.slots = [] if self.updates else self.joint.slots
        places = {key: place for place, key in enumerate(lift.inputs.joint.leaf_keys())}
        keys = self.joint.leaf_keys()
        self.loose = [*leaves, *(places[keys[slot.position]] for slot in self.slots)]

    def step(self, carry: Any, run: Callable[[], Any]) -> list[Any]:
        """Run a step.

        Args:
            carry: the carry that it is given.
            run: runs it; returns the carry that it returns.

        Returns:
            the loose values of the returned carry.

        Raises:
            TransformArgumentError: the returned carry has other objects, or their structure was edited.
            TransformTypeError: the returned carry is another pytree.
        """
        before = Flat.of(carry)
        joint = _joint(before)
        # Read before the step can edit anything.
        graphdef, sources = joint.graphdef, joint.sources()
        after = Flat.of(run())
        if (after.treedef, after.marks) != (before.treedef, before.marks):
            one, other = describe_tree(before.treedef), describe_tree(after.treedef)
            raise rules.LOOP_TREE.error(transform=self.transform, one=one, other=other)
        values = after.select(BARE)
        new = _joint(after)
        if self.updates:
            root = new.root
            self.require_same(
                (*joint.root.pytrees, *joint.root.variables), (*root.pytrees, *root.variables), self.names
            )
            return values
        if new.graphdef != graphdef:
            raise_edited(self.transform, self.structure, places_of(graphdef), places_of(new.graphdef))
        self.require_same(sources, new.sources(), [self.structure.name(path) for path in self.joint.paths])
        return values + [slot.owner[slot.key] for slot in new.slots]

    def require_same(self, before: Sequence[Any], after: Sequence[Any], names: Sequence[Path]) -> None:
        """Raise unless these are the same objects."""
        for one, other, name in zip(before, after, names, strict=True):
            if one is not other:
                raise rules.LOOP_OBJECT.error(transform=self.transform, path=name, value=type(other).__name__)

    def result(self, loose: Sequence[Any]) -> Any:
        """The carry after the loop, from its loose values."""
        count = self.flat.marks.count(BARE)
        root = self.joint.root
        if not self.updates:
            leaves = list(self.joint.sources())
            for slot, value in zip(self.slots, loose[count:], strict=True):
                leaves[slot.position] = value
            program = program_of(self.joint.graphdef)
            root = Root.from_node(program.build(leaves)[program.root], len(root.pytrees))
        return unflatten(self.flat.treedef, self.flat.marks, root.pytrees, root.variables, loose[:count])


def _joint(flat: Flat) -> Joint:
    return Joint.of(root_of([leaf for leaf in flat.leaves if is_object(leaf)]))


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Notes:
    """What the steps of a loop did, without values.

    Attributes:
        written: places of the values that a step wrote.
        renewed: places of the values of new objects, which a step put into the places of others.
        bare: whether some of the written are bare leaves.
        outcome: what the last step did; ``None`` if there was none.
    """

    written: frozenset[int] = frozenset()
    renewed: frozenset[int] = frozenset()
    bare: bool = False
    outcome: Outcome | None = None


class Loop:
    """The steps of a loop over the values of one call.

    Args:
        lift: the call.
        carried: the carry.
        places: places of the values that go from step to step.
        may_edit: tells for a path of the joint graph whether steps may edit it.
        may_renew: whether steps may put new objects into the places of others.
    """

    def __init__(
        self,
        lift: Lift,
        carried: Carried,
        places: Iterable[int],
        may_edit: Callable[[Path], bool] = lambda _: False,
        *,
        may_renew: bool = True,
    ) -> None:
        self.lift = lift
        self.carried = carried
        self.places = list(places)
        self.may_edit = may_edit
        self.may_renew = may_renew
        self.notes = Notes()

    def step(
        self,
        values: Sequence[Any],
        call: Callable[[Callable[..., Any], Any], Any],
        *,
        number: int = 0,
        labels: Labels = ONE_GROUP,
    ) -> tuple[list[Any], list[Any]]:
        """Run a step.

        Args:
            values: the values before it.
            call: calls the function; returns the loose values of the carry, and what else the function returned.
            number: which function it is.
            labels: how returned values are grouped.

        Returns:
            the values after it; and what it returned apart from the carry.

        Raises:
            TransformArgumentError: it edits the structure of what goes from step to step.
            TransformTypeError: it changes the type of what goes from step to step.
        """
        groups, outcome = self.lift.run(values, labels, number=number, call=call)
        self._require_unedited(outcome)
        returned = outcome.values(groups)
        first, loose = first_loose(outcome), self.carried.loose
        new = replaced(values, outcome.written, returned[: len(outcome.written)])
        new = replaced(new, loose, returned[first : first + len(loose)])
        fresh = iter(returned[len(outcome.written) : first])
        others = []
        for source, place in self.edited(outcome):
            value = next(fresh) if source is None else values[source]
            if place is None:
                others += [value] if source is None else []
            elif source != place:
                new[place] = value
        for place in self.places:
            if not can_become(values[place], new[place]):
                raise rules.LOOP_TYPE.error(
                    transform=self.lift.modes.transform,
                    path=self.lift.name_of(place),
                    one=type_of(values[place]),
                    other=type_of(new[place]),
                )
        self.note(outcome)
        return new, [*others, *fresh, *returned[first + len(loose) :]]

    def edited(self, outcome: Outcome) -> Iterator[tuple[int | None, int | None]]:
        """The leaves of edited inputs: for each the input leaf that it is, ``None`` if it is new; and its place among
        the values that go from step to step, ``None`` if it is none of them.
        """
        if outcome.edits is not None:
            carried = set(self.places)
            numbers = {path: place for place, path in enumerate(self.lift.structure.paths) if place in carried}
            paths = program_of(outcome.edits.graphdef).paths
            yield from zip(outcome.edits.sources, map(numbers.get, paths), strict=True)

    def note(self, outcome: Outcome) -> None:
        """Remember what a step did. Without compilation, steps may do different things."""
        renewed = [place for source, place in self.edited(outcome) if source != place and place is not None]
        self.notes = Notes(
            self.notes.written.union(outcome.written),
            self.notes.renewed.union(renewed),
            self.notes.bare or outcome.bare,
            outcome,
        )

    def _require_unedited(self, outcome: Outcome) -> None:
        structure, transform = self.lift.structure, self.lift.modes.transform
        if outcome.edits is not None:
            after = renewed_inputs(structure, outcome) if self.may_renew else inputs_after(structure, outcome).places
            raise_edited(transform, structure, places_of(structure.graphdef), after, self.may_edit)
        for place, new in outcome.metadata:
            if place in self.places:
                old = metadata_before(structure, place)
                one, other, path = describe_metadata(old, new), describe_metadata(new, old), self.lift.name_of(place)
                raise rules.LOOP_STRUCTURE.error(transform=transform, path=path, one=one, other=other)

    def finish(self, values: Sequence[Any], others: Sequence[Any]) -> tuple[Any, Any]:
        """Write what the steps wrote into the caller's objects.

        Args:
            values: the values after the loop.
            others: what the steps returned apart from the carry.

        Returns:
            the carry, and what else the function returned.
        """
        loose = [values[place] for place in self.carried.loose]
        notes = self.notes
        if notes.outcome is None:  # without compilation, a loop may have had no step
            return self.carried.result(loose), None
        last, rest = notes.outcome, iter(others)
        edits, new, renewed = self._last_edits(last, values, rest)
        written = tuple(sorted((notes.written | notes.renewed) - renewed))
        outcome = dataclasses.replace(last, written=written, bare=notes.bare, edits=edits, places=None)
        objects = [] if last.result.objects is None else islice(rest, last.result.objects.sources.count(None))
        returned = [*(values[place] for place in written), *new, *objects, *loose, *rest]
        loose, result = self.lift.apply([returned], outcome)
        return self.carried.result(loose), result

    def _last_edits(
        self, outcome: Outcome, values: Sequence[Any], others: Iterator[Any]
    ) -> tuple[Part | None, list[Any], set[int]]:
        """The edits of the last step, with what the loop made of the values that go from step to step.

        Returns:
            the edits, the values of their new leaves, and the places of these as far as they go from step to step.
        """
        if outcome.edits is None:
            return None, [], set()
        bare = {slot.position for slot in self.lift.inputs.joint.slots}
        sources: list[int | None] = []
        new, renewed = [], set()
        for source, place in self.edited(outcome):
            if place is None:
                new += [next(others)] if source is None else []
            elif source != place or place in bare:
                source = None
                new.append(values[place])
                renewed.add(place)
            sources.append(source)
        return Part(outcome.edits.graphdef, tuple(sources)), new, renewed


def first_loose(outcome: Outcome) -> int:
    """Where the bare values of the result begin, of which the loose ones are the first."""
    parts = [part for part in (outcome.edits, outcome.result.objects) if part is not None]
    return len(outcome.written) + sum(part.sources.count(None) for part in parts)


def raise_edited(
    transform: str,
    structure: Structure,
    before: Places,
    after: Places,
    may_edit: Callable[[Path], bool] = lambda _: False,
) -> None:
    """Raise for the first path at which structure was edited that may not be, if there is one."""
    for path in differences(before, after):
        if not may_edit(path):
            one, other = (describe_place(structure, places, path) for places in (before, after))
            raise rules.LOOP_STRUCTURE.error(transform=transform, path=structure.name(path), one=one, other=other)
