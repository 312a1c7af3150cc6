"""What is where in the inputs and the result of a function: how two structures differ, and what a value is called.

A trace gives structures as GraphDefs (``_outcome``). Branches must agree in them and steps of a loop must keep them,
and who breaks that wants to read a path.

Invariants

- Objects of the inputs are known by the path that they have there, wherever they are later. So a replaced object is a
  difference even if it looks the same, and so is one that moved.
- Paths of inputs are those of the joint graph, `Structure.name` makes of them what the caller sees; paths of results
  begin with ``result``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax

from nnx_rules.errors import format_path
from nnxkit._graph._graphdef import LEAF, GraphDef, LeafAttr, NodeRecord, Record, RefRecord, Static, VariableRecord
from nnxkit._graph._program import program_of
from nnxkit._state._order import Path
from nnxkit._transforms._inputs import BARE, PYTREE, VARIABLE, Names, Structure, split_path
from nnxkit._transforms._outcome import Outcome, Result
from nnxkit._variable import Metadata, Variable


class Place(NamedTuple):
    """What is at a path.

    Attributes:
        content: the class of an object, a static value, or a bare leaf.
        origin: the path where the object was met first; with ``None`` in front if the inputs do not have it.
        extra: what else must agree: the status of an attribute, the metadata of a new Variable.
    """

    content: Any
    origin: tuple[Any, ...] = ()
    extra: tuple[Any, ...] = ()


Places = Mapping[Path, Place]


class Described(NamedTuple):
    """The structure of a graph by paths, and its objects by indices."""

    places: dict[Path, Place]
    objects: dict[int, Place]


def places_of(graphdef: GraphDef[Any]) -> Places:
    """What is where in a graph."""
    return _describe(graphdef, None).places


def inputs_after(structure: Structure, outcome: Outcome) -> Described:
    """The inputs after a function ran on them."""
    before = _describe(structure.graphdef, None)
    if outcome.edits is None:
        return before
    graphdef = outcome.edits.graphdef
    kept = {
        graphdef.base + number: before.objects[index]
        for number, index in enumerate(graphdef.outer or ())
        if index is not None
    }
    return _describe(graphdef, kept)


def renewed_inputs(structure: Structure, outcome: Outcome) -> Places:
    """The inputs after a function ran on them, in which a new object passes for the one whose place it took: it is of
    the same class, with the same metadata, wherever the other was, and nothing was written to the other.
    """
    before, after = places_of(structure.graphdef), inputs_after(structure, outcome).places
    numbers = {path: number for number, path in enumerate(structure.paths)}
    written = {structure.paths[place] for place in outcome.written}
    old, new = paths_by_origin(before), paths_by_origin(after)
    found = dict(after)
    for path, place in after.items():
        if place.origin != (None, *path) or path in written or old.get(path) != new[place.origin]:
            continue
        if before[path].content is not place.content:
            continue
        own = (metadata_before(structure, numbers[path]),) if issubclass(place.content, Variable) else ()
        if place.extra[: len(own)] == own:
            for other in new[place.origin]:
                found[other] = Place(place.content, path, after[other].extra[len(own) :])
    return found


def paths_by_origin(places: Places) -> dict[Path, list[Path]]:
    """For each object the paths at which it is."""
    found: dict[Path, list[Path]] = {}
    for path, place in places.items():
        if place.origin:
            found.setdefault(place.origin, []).append(path)
    return found


def objects_in_result(structure: Structure, outcome: Outcome) -> Places:
    """The objects that a function returned."""
    name = Names("result", outcome.result.treedef, outcome.result.marks)
    return {name(path): place for path, place in _below_result(structure, outcome).items()}


def leaves_that_differ(structure: Structure, one: Outcome, other: Outcome) -> frozenset[int]:
    """The numbers of the leaves of a result, the same pytree after both outcomes, that are different objects."""
    result = one.result
    numbers = [[number for number, own in enumerate(result.marks) if own == mark] for mark in (PYTREE, VARIABLE)]
    paths = differences(_below_result(structure, one), _below_result(structure, other))
    return frozenset(split_path(path, *numbers)[0] for path in paths)


def _below_result(structure: Structure, outcome: Outcome) -> Places:
    part = outcome.result.objects
    if part is None:
        return {}
    places = _describe(part.graphdef, inputs_after(structure, outcome).objects).places
    # The root and the list of its Variables are nothing that the caller knows.
    outer = ((), (outcome.result.pytrees,))
    return {path: place for path, place in places.items() if path not in outer}


def metadata_before(structure: Structure, place: int) -> Metadata:
    """The metadata of a Variable of the inputs, by the place of its leaf."""
    leaf_type = structure.program.leaf_types[place]
    assert leaf_type is not None
    return leaf_type.metadata


def metadata_after(structure: Structure, outcome: Outcome, place: int) -> Metadata:
    """The same after a function ran on the inputs."""
    return dict(outcome.metadata).get(place) or metadata_before(structure, place)


def differences(before: Places, after: Places) -> Iterator[Path]:
    """The paths at which two structures differ."""
    return (path for path in dict.fromkeys([*after, *before]) if before.get(path) != after.get(path))


def describe_place(structure: Structure, places: Places, path: Path) -> str:
    """What is at a path, for messages."""
    place = places.get(path)
    if place is None:
        return "missing"
    if isinstance(place.content, Static):
        return f"`{place.content.value!r}`"
    if isinstance(place.content, LeafAttr):
        return "an array"
    cls = place.content.__name__
    if place.origin[:1] == (None,):
        return f"a new `{cls}`"
    moved = place.origin and place.origin != path
    return f"`{format_path(structure.name(place.origin))}`, a `{cls}`" if moved else f"a `{cls}`"


def describe_mark(one: Result, other: Result) -> tuple[Path, str, str]:
    """The first leaf of a result that is an object in one case and none in the other, and what it is, for messages."""
    number, marks = next(
        (number, marks) for number, marks in enumerate(zip(one.marks, other.marks, strict=True)) if marks[0] != marks[1]
    )
    names = {BARE: "a value", PYTREE: "a module or Pytree", VARIABLE: "a Variable"}
    return Names("result", one.treedef, one.marks).leaves[number], names[marks[0]], names[marks[1]]


def describe_metadata(before: Metadata, after: Metadata) -> tuple[str, str]:
    """Metadata as far as it changed, before and after, for messages."""

    def describe(metadata: Metadata, other: Metadata) -> str:
        own = {name: value for name, value in metadata.items() if name not in other or other[name] != value}
        return f"a Variable with the metadata {own}"

    return describe(before, after), describe(after, before)


def describe_tree(treedef: Any) -> str:
    """The structure of a pytree, for messages."""
    return "`" + str(treedef).removeprefix("PyTreeDef(").removesuffix(")") + "`"


def returned_names(structure: Structure, outcome: Outcome) -> list[Path]:
    """What the caller calls the returned values of an outcome, in their order."""
    found = [structure.paths[place] for place in outcome.written]
    if outcome.edits is not None:
        paths = program_of(outcome.edits.graphdef).paths
        found += [path for path, source in zip(paths, outcome.edits.sources, strict=True) if source is None]
    names = [structure.name(path) for path in found]
    name = Names("result", outcome.result.treedef, outcome.result.marks)
    if outcome.result.objects is not None:
        names += map(name, program_of(outcome.result.objects.graphdef).paths)
    return names + [name.leaves[number] for number in name.bare]


def _describe(graphdef: GraphDef[Any], kept: Mapping[int, Place] | None) -> Described:
    """Describe a graph; ``kept`` are the objects that the inputs have, ``None`` if these are the inputs."""
    found = Described({}, dict(kept or {}))
    pending = iter(zip(graphdef.records, graphdef.indices(), strict=True))

    def visit(path: Path, status: tuple[Any, ...]) -> None:
        record, index = next(pending)
        if isinstance(record, RefRecord):
            place = found.objects[record.index]
        elif index in found.objects:
            place = found.objects[index]
        else:
            place = _place(record, path, is_input=kept is None)
            if index is not None:
                found.objects[index] = place
        found.places[path] = place._replace(extra=place.extra + status)
        if isinstance(record, NodeRecord):
            for key, entry in zip(record.keys, record.entries, strict=True):
                here = (*path, key)
                own = (record.metadata[str(key)],) if record.indexed else ()
                if isinstance(entry, Static) or entry == LEAF:
                    found.places[here] = Place(entry, extra=own)
                else:
                    visit(here, own)

    if graphdef.records:
        visit((), ())
    return found


def _place(record: Record, path: Path, *, is_input: bool) -> Place:
    """What is where an object or a container is met first."""
    origin = path if is_input else (None, *path)
    if isinstance(record, VariableRecord):
        # The metadata of those that the inputs have is compared apart: it can change without an edit of structure.
        return Place(record.type, origin, () if is_input else (record.metadata,))
    if isinstance(record, NodeRecord):
        return Place(record.type, origin) if record.indexed else Place(record.type, extra=(record.metadata,))
    return Place(jax.Ref, origin)
