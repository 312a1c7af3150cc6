"""Steps of a loop over objects: what goes from one step to the next, and what may not change on the way.

A step is a function from the values of one call to new ones (``_lift``). Its objects are fresh for each step, so what
is to go on must be a value: that of a Variable, of an array attribute, or a leaf of the carry.

Invariants

- The carry that a step returns is as ``_carried`` says.
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
from nnxkit._graph._program import program_of
from nnxkit._state._order import Path
from nnxkit._transforms._carried import Carried, raise_edited
from nnxkit._transforms._inner import ONE_GROUP, Labels
from nnxkit._transforms._inputs import replaced
from nnxkit._transforms._lift import Lift
from nnxkit._transforms._outcome import Outcome, Part
from nnxkit._transforms._places import (
    describe_metadata,
    inputs_after,
    metadata_before,
    places_of,
    renewed_inputs,
)
from nnxkit._transforms._value_types import can_become, type_of


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Notes:
    """What the steps of a loop did, without values.

    Attributes:
        written: places of the values that a step wrote.
        renewed: places of the values of new objects, which a step put into the places of others.
        anew: places of the values of Variables of the carry for which a step returned new ones.
        bare: whether some of the written are bare leaves.
        outcome: what the last step did; ``None`` if there was none.
    """

    written: frozenset[int] = frozenset()
    renewed: frozenset[int] = frozenset()
    anew: frozenset[int] = frozenset()
    bare: bool = False
    outcome: Outcome | None = None

    def then(self, later: Notes) -> Notes:
        """What these steps and later ones did. Without compilation, steps may do different things."""
        return Notes(
            self.written | later.written,
            self.renewed | later.renewed,
            self.anew | later.anew,
            self.bare or later.bare,
            later.outcome,
        )


class Loop:
    """The steps of a loop over the values of one call.

    Args:
        lift: the call.
        carried: the carry.
        places: places of the values that go from step to step.
        may_edit: tells for a path of the joint graph whether steps may edit it.

    Attributes:
        notes: what the steps did until now.
    """

    def __init__(
        self,
        lift: Lift,
        carried: Carried,
        places: Iterable[int],
        may_edit: Callable[[Path], bool] = lambda _: False,
    ) -> None:
        self.lift = lift
        self.carried = carried
        self.places = list(places)
        self.may_edit = may_edit
        self.notes = Notes()

    def step(
        self,
        values: Sequence[Any],
        call: Callable[[Callable[..., Any], Any], Any],
        *,
        number: int = 0,
        labels: Labels = ONE_GROUP,
    ) -> tuple[list[Any], list[Any], Notes]:
        """Run a step.

        Args:
            values: the values before it.
            call: calls the function; returns the loose values of the carry, and what else the function returned.
            number: which function it is.
            labels: how returned values are grouped.

        Returns:
            the values after it; what it returned apart from the carry; and what it did.

        Raises:
            TransformArgumentError: it edits the structure of what goes from step to step, or returns others of it.
            TransformTypeError: it changes the type of what goes from step to step.
        """
        inner, tree, functions = self.lift.enter(values)
        result = call(functions[number], tree)
        anew = self.carried.new_values(inner)
        groups, outcome = inner.collect(result, self.lift.modes, labels)
        self._require_unedited(outcome)
        returned = outcome.values(groups)
        first, loose = first_loose(outcome), self.carried.loose
        new = replaced(values, outcome.written, returned[: len(outcome.written)])
        new = replaced(new, loose, returned[first : first + len(loose)])
        new = replaced(new, list(anew), list(anew.values()))
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
        renewed = frozenset(place for source, place in self.edited(outcome) if source != place and place is not None)
        notes = Notes(frozenset(outcome.written), renewed, frozenset(anew), outcome.bare, outcome)
        self.notes = self.notes.then(notes)
        return new, [*others, *fresh, *returned[first + len(loose) :]], notes

    def edited(self, outcome: Outcome) -> Iterator[tuple[int | None, int | None]]:
        """The leaves of edited inputs: for each the input leaf that it is, ``None`` if it is new; and its place among
        the values that go from step to step, ``None`` if it is none of them.
        """
        if outcome.edits is not None:
            carried = set(self.places)
            numbers = {path: place for place, path in enumerate(self.lift.structure.paths) if place in carried}
            paths = program_of(outcome.edits.graphdef).paths
            yield from zip(outcome.edits.sources, map(numbers.get, paths), strict=True)

    def _require_unedited(self, outcome: Outcome) -> None:
        structure, transform = self.lift.structure, self.lift.modes.transform
        if outcome.edits is not None:
            after = (
                renewed_inputs(structure, outcome)
                if self.carried.may_renew
                else inputs_after(structure, outcome).places
            )
            raise_edited(transform, structure, places_of(structure.graphdef), after, self.may_edit)
        for place, new in outcome.metadata:
            if place in self.places:
                old = metadata_before(structure, place)
                (one, other), path = describe_metadata(old, new), self.lift.name_of(place)
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
            return self.carried.result(loose, {}), None
        last, rest = notes.outcome, iter(others)
        edits, new, renewed = self._last_edits(last, values, rest)
        written = tuple(sorted((notes.written | notes.renewed) - renewed - notes.anew))
        outcome = dataclasses.replace(last, written=written, bare=notes.bare, edits=edits, places=None)
        objects = [] if last.result.objects is None else islice(rest, last.result.objects.sources.count(None))
        returned = [*(values[place] for place in written), *new, *objects, *loose, *rest]
        loose, result = self.lift.apply([returned], outcome)
        return self.carried.result(loose, {place: values[place] for place in notes.anew}), result

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
