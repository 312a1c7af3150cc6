"""What a function did to its inputs and what it returned: a static description, and how it is applied.

While a function is traced, its objects are fresh copies that hold tracers (``_inner``). Only values that are new leave
the trace. The `Outcome` says what they are; it is static, and travels through JAX transforms as structure of a pytree,
so that a compiled function that is not traced again gives its outcome, too.

Invariants

- An outcome refers to no object and no tracer.
- Objects are numbered as in the joint graph (``_inputs``): by their indices there if the structure was not edited, and
  by those of the edited graph otherwise.
- Applying an outcome checks everything first, and then writes: what raises has changed nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

import jax

from nnx_rules.errors import format_path
from nnxkit._graph._graphdef import GraphDef
from nnxkit._graph._program import program_of
from nnxkit._trace import mutation_error
from nnxkit._transforms._inputs import Inputs, unflatten
from nnxkit._transforms._joint import Root
from nnxkit._variable import Metadata, Variable, to_ref

_set: Callable[..., None] = object.__setattr__
# The quickest way to write many: no lookup by name, and no call in Python.
_set_raw_value: Callable[[Any, Any], None] = vars(Variable)["_raw_value"].__set__


class Part(NamedTuple):
    """A graph that leaves a trace.

    Attributes:
        graphdef: its structure. Objects of the inputs have outer indices in edited inputs, and are references in
            results.
        sources: for each leaf the input leaf that it is, or ``None`` for a returned value.
    """

    graphdef: GraphDef[Any]
    sources: tuple[int | None, ...]


class Result(NamedTuple):
    """The structure of what a function returned.

    Attributes:
        treedef: the pytree with graph objects as leaves.
        marks: what its leaves are.
        objects: the graph of these objects; ``None`` if there are none.
        pytrees: how many of them are Pytrees.
    """

    treedef: Any
    marks: tuple[int, ...]
    objects: Part | None
    pytrees: int


@jax.tree_util.register_static
@dataclass(frozen=True)
class Outcome:
    """What a function did, without values. The returned values are, in order: those of written leaves, those of new
    leaves of the edited inputs, those of objects in the result, and the bare leaves of the result.

    Attributes:
        written: input leaves that have a new value.
        bare: whether some of these are bare leaves.
        metadata: input leaves (Variables) that have new metadata.
        edits: the inputs, if their structure was edited.
        result: the result.
        places: for each value its group and its place there; ``None`` if there is one group.
        only_values: whether nothing but values of Variables changed, and the result holds no graph object.
    """

    written: tuple[int, ...]
    bare: bool
    metadata: tuple[tuple[int, Metadata], ...]
    edits: Part | None
    result: Result
    places: tuple[tuple[int, int], ...] | None = None
    only_values: bool = field(init=False, compare=False, repr=False)
    _pick: Callable[[Any], Any] | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        simple = not self.bare and not self.metadata and self.edits is None and self.result.objects is None
        _set(self, "only_values", simple)
        # itemgetter gives tuples only for two and more.
        leading = self.written == tuple(range(len(self.written)))
        _set(self, "_pick", None if leading else itemgetter(*self.written, self.written[0]))

    def targets(self, sources: Sequence[Any]) -> Sequence[Any]:
        """The written ones of the sources of the input leaves; then there may be others."""
        return sources if self._pick is None else self._pick(sources)

    def values(self, groups: Sequence[list[Any]]) -> list[Any]:
        """The returned values in order."""
        return groups[0] if self.places is None else [groups[group][place] for group, place in self.places]


def apply(inputs: Inputs, outcome: Outcome, groups: Sequence[list[Any]]) -> Any:
    """Write what a function did into the objects that it was called with.

    Args:
        inputs: the inputs.
        outcome: what the function did.
        groups: the returned values, by group.

    Returns:
        what the function returned.

    Raises:
        TraceContextError: something to be written belongs to another trace level.

    Nothing is written if anything fails.
    """
    values = outcome.values(groups)
    if not outcome.only_values:
        return _Application(inputs, outcome, values).run()
    count = len(outcome.written)
    if count:
        targets = outcome.targets(inputs.joint.sources())
        if not inputs.joint.is_of_current_trace():
            _check_traces(inputs, outcome.written)
        deque(map(_set_raw_value, targets, islice(values, count)), maxlen=0)
    return outcome.result.treedef.unflatten(values[count:])


def _check_traces(inputs: Inputs, places: Sequence[int]) -> None:
    """Raise for the first of these leaves that belongs to another trace level.

    Raises:
        TraceContextError: there is one.
    """
    joint = inputs.joint
    sources = joint.sources()
    slots = {slot.position: slot.trace for slot in joint.slots}
    for place in places:
        source = sources[place]
        trace = source._trace_state if isinstance(source, Variable) else slots.get(place)
        if trace is not None and not trace.is_valid():
            raise mutation_error(format_path(inputs.structure.name(joint.paths[place])))


class _Application:
    """An outcome that changes more than values, or whose result has graph objects."""

    def __init__(self, inputs: Inputs, outcome: Outcome, values: Sequence[Any]) -> None:
        self.inputs = inputs
        self.outcome = outcome
        self.values: Iterator[Any] = iter(values)
        # Walking the inputs again is what costs here, so it is not done for results that are merely new objects.
        if outcome.bare or outcome.edits is not None:
            self.slots = {slot.position: slot for slot in inputs.joint.slots}
        else:
            self.slots = {}
        self.sources = inputs.joint.sources()

    def run(self) -> Any:
        outcome = self.outcome
        written = [(place, next(self.values)) for place in outcome.written]
        _check_traces(self.inputs, [place for place, _ in (*written, *outcome.metadata)])
        objects = None if outcome.edits is None else self.refill(outcome.edits)
        for place, value in written:
            self.write(place, value)
        for place, metadata in outcome.metadata:
            self.sources[place]._replace_metadata(metadata)
        return self.result(objects)

    def write(self, place: int, value: Any) -> None:
        slot = self.slots.get(place)
        if slot is None:
            _set_raw_value(self.sources[place], value)
        else:
            slot.owner[slot.key] = value

    def refill(self, edits: Part) -> dict[int, Any]:
        """Give the caller's objects the edited structure; returns the objects by their indices in that."""
        graphdef = edits.graphdef
        program = program_of(graphdef)
        objects = self.inputs.joint.objects
        reused = {
            graphdef.base + number: objects[index]
            for number, index in enumerate(graphdef.outer or ())
            if index is not None
        }
        built = _with_refs(program.build(self.leaves(edits), reused=reused))
        return {index: built[place] for index, place in program.places.items()}

    def leaves(self, part: Part) -> list[Any]:
        return [next(self.values) if source is None else self.leaf(source) for source in part.sources]

    def leaf(self, place: int) -> Any:
        slot = self.slots.get(place)
        return self.sources[place] if slot is None else slot.owner[slot.key]

    def result(self, objects: dict[int, Any] | None) -> Any:
        treedef, marks, part, pytrees = self.outcome.result
        root = Root((), ())
        if part is not None:
            program = program_of(part.graphdef)
            if objects is None and program.refers_outside:
                objects = dict(enumerate(self.inputs.joint.objects))
            built = _with_refs(program.build(self.leaves(part), known=objects))
            root = Root.from_node(built[program.root], pytrees)
        return unflatten(treedef, marks, root.pytrees, root.variables, list(self.values))


def _with_refs(built: list[Any]) -> list[Any]:
    """Give new Variables that live in array references, of which only the values left the trace, references again."""
    for item in built:
        if isinstance(item, Variable) and item._var_metadata["ref"]:
            _set_raw_value(item, to_ref(item._raw_value))
    return built
