"""The carry of a loop over objects: what a step is given, and what it may return for that.

Invariants

- The carry that a step returns has the containers and the objects that it was given. With graph updates these are the
  very Pytrees; without, Pytrees may be new ones of the same structure, which hold the same Variables.
- With graph updates a step may also return another Variable of the same type, where nothing but the carry holds the
  one that it was given, and nothing but the carry will hold the other: then only the value matters. It goes on, the
  loop returns a new Variable, and the one of the caller stays as it was, as after a loop of Python.
- Not so in a loop that may have no step: nobody knows whether the Variable that it returns is a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax

from nnx_rules.rules import transforms as rules
from nnxkit._graph._layouts import Kind, key_name, kind_of
from nnxkit._graph._plan import Walk
from nnxkit._graph._program import program_of
from nnxkit._state._order import Path
from nnxkit._transforms._inner import Inner
from nnxkit._transforms._inputs import BARE, Flat, Structure, is_object, root_of, unflatten
from nnxkit._transforms._joint import Joint, Root
from nnxkit._transforms._lift import Lift
from nnxkit._transforms._places import (
    Places,
    describe_metadata,
    describe_place,
    describe_tree,
    differences,
    metadata_before,
    paths_by_origin,
    places_of,
)
from nnxkit._variable import Variable


class Carried:
    """The carry of a loop, outside and inside of its steps.

    The *loose* values of a carry are those that are not in Variables: its bare leaves, and without graph updates, where
    writing to them does not come back, the bare attributes of its objects.

    Args:
        lift: the call.
        carry: the carry, as the caller gave it.
        name: what the caller calls it.
        leaves: places of its bare leaves among the values of the call.
        may_renew: whether steps may put new objects into the places of others.

    Attributes:
        may_renew: that.
        loose: places of its loose values among the values of the call.
    """

    def __init__(self, lift: Lift, carry: Any, name: Path, leaves: Iterable[int], *, may_renew: bool = True) -> None:
        self.lift = lift
        self.may_renew = may_renew
        self.anew: list[tuple[Path, Variable[Any], Variable[Any]]] = []
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
            old, root, count = joint.root, new.root, len(joint.root.pytrees)
            self.require_same(old.pytrees, root.pytrees, self.names[:count])
            variables = zip(self.names[count:], old.variables, root.variables, strict=True)
            self.anew = [(name, one, other) for name, one, other in variables if one is not other]
            return values
        if new.graphdef != graphdef:
            raise_edited(self.transform, self.structure, places_of(graphdef), places_of(new.graphdef))
        self.require_same(sources, new.sources(), [self.structure.name(path) for path in self.joint.paths])
        return values + [slot.owner[slot.key] for slot in new.slots]

    def new_values(self, inner: Inner) -> dict[int, Any]:
        """The new values of the Variables for which the step that has just run returned new ones.

        Args:
            inner: the inputs of the step, and what it did to them.

        Returns:
            the values, by the places of the Variables among the values of the call.

        Raises:
            TransformArgumentError: one of them is held by something else or was written to, or the other one is
                held by something else or of another type.
        """
        if not self.anew:
            return {}
        structure, transform, inputs = self.lift.structure, self.lift.modes.transform, self.lift.inputs
        paths, sources = paths_by_origin(places_of(structure.graphdef)), inputs.joint.sources()
        numbers = {id(leaf): place for place, leaf in enumerate(inner.leaves)}
        captured = {id(item) for found in inputs.captures for item in found.objects}
        # Those that the carry no longer has at their own places may be at other ones.
        held = Walk({}, inner.node).index.keys() - {id(old) for _, old, _ in self.anew}
        values: dict[int, Any] = {}
        for name, old, new in self.anew:
            place = numbers[id(old)]
            metadata = metadata_before(structure, place)
            if (
                not self.may_renew
                or type(new) is not type(old)
                or id(new) in held
                or len(paths[structure.paths[place]]) > 1
                or id(sources[place]) in captured
                or old._raw_value is not inner.values[place]
                or {kind_of(old._raw_value), kind_of(new._raw_value)} != {Kind.LEAF}
            ):
                raise rules.LOOP_OBJECT.error(transform=transform, path=name, value=type(new).__name__)
            if new._var_metadata != metadata:
                one, other = describe_metadata(metadata, new._var_metadata)
                raise rules.LOOP_STRUCTURE.error(transform=transform, path=name, one=one, other=other)
            values[place] = new._raw_value
            held = held | {id(new)}
        return values

    def require_same(self, before: Sequence[Any], after: Sequence[Any], names: Sequence[Path]) -> None:
        """Raise unless these are the same objects."""
        for one, other, name in zip(before, after, names, strict=True):
            if one is not other:
                raise rules.LOOP_OBJECT.error(transform=self.transform, path=name, value=type(other).__name__)

    def result(self, loose: Sequence[Any], anew: Mapping[int, Any]) -> Any:
        """The carry after the loop.

        Args:
            loose: its loose values.
            anew: the values of its Variables for which steps returned new ones, by their places among the values of
                the call.
        """
        count = self.flat.marks.count(BARE)
        root = self.joint.root
        if anew:
            sources = self.lift.inputs.joint.sources()
            new = {id(sources[place]): sources[place].copy(value) for place, value in anew.items()}
            root = root._replace(variables=tuple([new.get(id(variable), variable) for variable in root.variables]))
        if not self.updates:
            leaves = list(self.joint.sources())
            for slot, value in zip(self.slots, loose[count:], strict=True):
                leaves[slot.position] = value
            program = program_of(self.joint.graphdef)
            root = Root.from_node(program.build(leaves)[program.root], len(root.pytrees))
        return unflatten(self.flat.treedef, self.flat.marks, root.pytrees, root.variables, loose[:count])


def _joint(flat: Flat) -> Joint:
    return Joint.of(root_of([leaf for leaf in flat.leaves if is_object(leaf)]))


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
