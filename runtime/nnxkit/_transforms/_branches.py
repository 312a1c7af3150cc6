"""``nnx.cond`` and ``nnx.switch``: one of several functions runs, chosen by a value.

Invariants

- What one branch writes, the others leave as it was: a Variable that any branch writes comes back from all of them.
- Edits of structure come back if all branches make the same ones; they can not depend on a value.
- Values that no branch writes are not assigned.
- An object that is returned is the caller's if all branches return that one. Where they return different ones it is a
  new object with the values of the chosen one, as for bare values.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from nnx_rules.rules import transforms as rules
from nnxkit._graph import clone
from nnxkit._state._order import Path
from nnxkit._transforms._eager import solved
from nnxkit._transforms._inputs import Flat, replaced
from nnxkit._transforms._lift import Function, Groups, Lift, modes_of
from nnxkit._transforms._outcome import Outcome
from nnxkit._transforms._places import (
    describe_mark,
    describe_metadata,
    describe_place,
    describe_tree,
    differences,
    inputs_after,
    leaves_that_differ,
    metadata_after,
    objects_in_result,
    returned_names,
)
from nnxkit._transforms._signatures import R, S
from nnxkit._transforms._value_types import type_of


class _Branches:
    """The branches of one call.

    Args:
        lift: the call.
        names: names of the branches, for messages.
        copied: the leaves of the result that are a choice between objects: all branches return copies.
    """

    def __init__(self, lift: Lift, names: Sequence[str], copied: frozenset[int] = frozenset()) -> None:
        self.lift = lift
        self.names = names
        self.copied = copied
        self.written: set[int] = set()
        self.bare = False
        self.first: _Branch | None = None

    def run(self, number: int, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """What JAX traces for a branch: all leaves of the joint graph, and the other values that come back.

        JAX drops those that go through all branches unchanged.
        """
        call = functools.partial(_call_branch, copied=self.copied)
        (returned,), outcome = self.lift.run(values, number=number, call=call)
        count = len(outcome.written)
        leaves = replaced(values[: self.lift.num_leaves], outcome.written, returned[:count])
        others = returned[count:]
        self.written.update(outcome.written)
        self.bare = self.bare or outcome.bare
        # A single branch is called and not traced, so it may return anything.
        values = [*leaves, *others] if len(self.names) > 1 else []
        branch = _Branch(self.lift, number, outcome, values)
        self.first = self.first or branch
        self.require_agreement(self.first, branch)
        return leaves, others

    def require_agreement(self, first: _Branch, branch: _Branch) -> None:
        """Raise unless two branches agree in what comes back; `_Choice`, if they will where they return new objects."""
        problem = first.structural_difference(branch)
        if problem is not None:
            if choices := first.choices(branch) - self.copied:
                raise _Choice(self.copied | choices)
            raise self.error(rules.BRANCH_STRUCTURE, first, branch, *problem)
        for place, (before, after) in enumerate(zip(first.types, branch.types, strict=True)):
            if before != after:
                raise self.error(rules.BRANCH_TYPE, first, branch, first.name_of(place), str(before), str(after))

    def error(self, rule: Any, first: _Branch, second: _Branch, path: Path, one: str, other: str) -> Exception:
        """The error for two branches that disagree at a path."""
        error: Exception = rule.error(
            transform=self.lift.modes.transform,
            path=path,
            first=self.names[first.number],
            second=self.names[second.number],
            one=one,
            other=other,
        )
        return error

    def joined(self, leaves: list[Any], others: list[Any]) -> tuple[Groups, Outcome]:
        """What came back, and the outcome that says what it is."""
        assert self.first is not None
        written = tuple(sorted(self.written))
        outcome = dataclasses.replace(self.first.outcome, written=written, bare=self.bare)
        return [[*(leaves[place] for place in written), *others]], outcome


class _Branch:
    """What one branch did.

    Args:
        lift: the call.
        number: which branch.
        outcome: what it did.
        values: what it gives to JAX.
    """

    def __init__(self, lift: Lift, number: int, outcome: Outcome, values: Sequence[Any]) -> None:
        self.lift = lift
        self.number = number
        self.outcome = outcome
        self.types = list(map(type_of, values))

    def choices(self, other: _Branch) -> frozenset[int]:
        """The leaves of the result where another branch returns another object."""
        one, two = self.outcome, other.outcome
        if (one.result.treedef, one.result.marks) != (two.result.treedef, two.result.marks):
            return frozenset()
        return leaves_that_differ(self.lift.structure, one, two)

    def structural_difference(self, other: _Branch) -> tuple[Path, str, str] | None:
        """Where another branch leaves or returns another structure, and what is there after either."""
        structure, outcomes = self.lift.structure, (self.outcome, other.outcome)
        if outcomes[0].edits != outcomes[1].edits:
            first, second = (inputs_after(structure, outcome).places for outcome in outcomes)
            for path in differences(first, second):
                one, two = (describe_place(structure, places, path) for places in (first, second))
                return structure.name(path), one, two
        for place in {**dict(self.outcome.metadata), **dict(other.outcome.metadata)}:
            old, new = (metadata_after(structure, outcome, place) for outcome in outcomes)
            if old != new:
                return self.lift.name_of(place), *describe_metadata(old, new)
        results = [outcome.result for outcome in outcomes]
        if results[0].treedef != results[1].treedef:
            return ("result",), describe_tree(results[0].treedef), describe_tree(results[1].treedef)
        if results[0].marks != results[1].marks:
            return describe_mark(*results)
        objects = [objects_in_result(structure, outcome) for outcome in outcomes]
        for path in differences(*objects):
            one, two = (describe_place(structure, places, path) for places in objects)
            return path, one, two
        return None

    def name_of(self, place: int) -> Path:
        """The name of a value that the branch gives to JAX, by its place among them."""
        count = self.lift.num_leaves
        if place < count:
            return self.lift.name_of(place)
        names = returned_names(self.lift.structure, self.outcome)
        return names[len(self.outcome.written) + place - count]


class _Choice(Exception):
    """Branches return different objects at these leaves of the result."""

    def __init__(self, leaves: frozenset[int]) -> None:
        self.leaves = leaves


def _call_branch(f: Callable[..., Any], tree: tuple[Any, Any], copied: frozenset[int]) -> Any:
    result = f(*tree[1]["operands"])
    if not copied:
        return result
    flat = Flat.of(result)
    copies = iter(clone([flat.leaves[number] for number in sorted(copied)], graph=True))
    return flat.treedef.unflatten([next(copies) if n in copied else leaf for n, leaf in enumerate(flat.leaves)])


def _run(
    transform: str,
    functions: Sequence[Callable[..., Any]],
    names: Sequence[str],
    operands: tuple[Any, ...],
    choose: Callable[..., Any],
    choice: Any,
    graph: bool | None,
    graph_updates: bool | None,
) -> Any:
    """Run what ``choose`` makes of a choice, of the branches over values, and of these values."""
    modes = modes_of(transform, graph, graph_updates)
    lift = Lift(modes, ((), {"operands": operands}), *(Function(f) for f in functions))

    def solve(choice: Any, values: list[Any]) -> tuple[Groups, Outcome]:
        copied: frozenset[int] = frozenset()
        while True:
            branches = _Branches(lift, names, copied)
            runs = [functools.partial(branches.run, number) for number in range(len(functions))]
            try:
                leaves, others = choose(choice, runs, values)
            except _Choice as found:
                copied = found.leaves
                continue
            return branches.joined(leaves, others)

    if len(functions) == 1:  # it is called and not traced
        return lift.apply(*solve(choice, lift.values))
    return lift.apply(*solved(solve, (choice, lift.values), lift, makes_arrays=True))


def cond(
    pred: Any,
    true_fun: Callable[..., R],
    false_fun: Callable[..., S],
    *operands: Any,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> R | S:
    """Run one of two functions, as ``jax.lax.cond``, on objects.

    Both may use and write Modules and Variables, operands or captured; what the function that runs writes is done to
    the caller's objects.

    Args:
        pred: a boolean scalar.
        true_fun: runs if it is true; gets the operands.
        false_fun: runs otherwise.
        *operands: anything that JAX and nnx take.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Returns:
        what the function returned. Both must return the same structure, shapes and dtypes; where they return different
        objects of the same structure, a new object with the values of the chosen one.

    Raises:
        TransformTypeError: the functions disagree in what they return, in structure that they edit, or in the type of
            a Variable that one of them writes.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> count = nnx.Variable(jnp.array(0))
    >>> def up(x):
    ...     count[...] += 1
    ...     return x + 1.0
    >>> float(nnx.cond(True, up, lambda x: x, 2.0)), int(count[...])
    (3.0, 1)
    """
    names = ("true_fun", "false_fun")

    def choose(pred: Any, branches: Sequence[Callable[..., Any]], values: list[Any]) -> Any:
        return jax.lax.cond(pred, *branches, values)

    result: R | S = _run("nnx.cond", (true_fun, false_fun), names, operands, choose, pred, graph, graph_updates)
    return result


def switch(
    index: Any,
    branches: Sequence[Callable[..., R]],
    *operands: Any,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> R:
    """Run one of several functions, as ``jax.lax.switch``, on objects.

    Args:
        index: which function: an integer scalar, clamped to the range.
        branches: the functions; see `nnx.cond` for what they may do.
        *operands: anything that JAX and nnx take.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Returns:
        what the function returned.

    Raises:
        TransformTypeError: as for `nnx.cond`.
        ValueError: there is no branch.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> scale = nnx.Param(jnp.array(3.0))
    >>> float(nnx.switch(1, [lambda x: x, lambda x: x * scale], 2.0))
    6.0
    """
    names = [f"branches[{number}]" for number in range(len(branches))]
    result: R = _run("nnx.switch", branches, names, operands, jax.lax.switch, index, graph, graph_updates)
    return result
