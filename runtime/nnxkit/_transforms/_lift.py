"""One call of a transformed function: from the caller's objects to a pure function of values, and back.

The life of a call: `Lift` takes the arguments and what the function captures as one joint graph (``_inputs``). `run`
is what JAX traces: it builds fresh objects from values, runs the function on them, and looks at what it did
(``_inner``). `apply` brings that back to the caller's objects (``_outcome``).

Invariants

- `values` are those of the leaves of the joint graph, then the bare leaves of the arguments; `run` takes as many.
- `run` may be called any number of times, by JAX, with tracers; it never touches the caller's objects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import Any

import jax

from nnxkit._graph._modes import is_graph_mode, set_graph_updates
from nnxkit._state._order import Path
from nnxkit._transforms._captures import Captures, captures_of
from nnxkit._transforms._inner import ONE_GROUP, Inner, Labels, Modes
from nnxkit._transforms._inputs import BARE, Inputs, Structure
from nnxkit._transforms._outcome import Outcome, apply

Groups = Sequence[list[Any]]
"""Returned values, by label."""


def modes_of(transform: str, graph: bool | None, graph_updates: bool | None) -> Modes:
    """What the keywords ``graph`` and ``graph_updates`` of a transform mean now."""
    in_graph = is_graph_mode(graph)
    updates = set_graph_updates.current_value() if graph_updates is None else graph_updates
    return Modes(in_graph, in_graph and updates, transform)


class Function:
    """A function under a transform, with what it captures.

    Args:
        f: the function.
    """

    __slots__ = ("_captures", "f")

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self._captures = captures_of(f)

    @property
    def captures(self) -> Captures:
        """What it captures now."""
        if not self._captures.is_current():
            self._captures = captures_of(self.f, self._captures)
        return self._captures


_captures = attrgetter("captures")


def call_function(f: Callable[..., Any], tree: tuple[Any, Any]) -> Any:
    """Call a function with ``(args, kwargs)``."""
    args, kwargs = tree
    return f(*args, **kwargs)


class Lift:
    """One call of one or several functions.

    Args:
        modes: how structure is treated.
        tree: the arguments: ``(args, kwargs)``.
        functions: the functions.
    """

    def __init__(self, modes: Modes, tree: tuple[Any, Any], *functions: Function) -> None:
        self.modes = modes
        self.inputs = Inputs(tree, *map(_captures, functions))

    @functools.cached_property
    def structure(self) -> Structure:
        """Structure of the joint graph.

        Raises:
            GraphError: in tree mode, an object is reached twice.
        """
        if not self.modes.graph:
            self.inputs.require_tree(self.modes.transform)
        return self.inputs.structure

    @property
    def num_leaves(self) -> int:
        """How many leaves the joint graph has."""
        return len(self.structure.paths)

    def name_of(self, place: int) -> Path:
        """What the caller calls a value, by its place in `values`."""
        if place < self.num_leaves:
            return self.structure.name(self.structure.paths[place])
        inputs = self.inputs
        return inputs.argument_names()[inputs.flat.numbers(BARE)[place - self.num_leaves]]

    @functools.cached_property
    def values(self) -> list[Any]:
        """The values that JAX gets."""
        return self.inputs.values()

    def enter(self, values: Sequence[Any]) -> tuple[Inner, Any, list[Callable[..., Any]]]:
        """Fresh objects, and the arguments and the functions over them.

        Args:
            values: values as in `values`.
        """
        inner = Inner(self.structure, values[: self.num_leaves])
        return inner, *self.inputs.enter(inner.root, values[self.num_leaves :])

    def run(
        self,
        values: Sequence[Any],
        labels: Labels = ONE_GROUP,
        *,
        number: int = 0,
        call: Callable[[Callable[..., Any], Any], Any] = call_function,
        always: Collection[int] = (),
    ) -> tuple[Groups, Outcome]:
        """Run a function on fresh objects.

        Args:
            values: values as in `values`.
            labels: how the returned values are grouped.
            number: which function.
            call: calls the function; gets it and the arguments.
            always: leaves whose values are returned even if they were not written.

        Returns:
            the returned values by group, and the outcome.
        """
        inner, tree, functions = self.enter(values)
        return inner.collect(call(functions[number], tree), self.modes, labels, always)

    def apply(self, groups: Groups, outcome: Outcome) -> Any:
        """Bring an outcome back to the caller's objects; returns what the function returned."""
        return apply(self.inputs, outcome, groups)


def abstract_result(lift: Lift, groups: Groups, outcome: Outcome) -> Any:
    """What a function returned that ran on abstract values. The caller's objects stay as they are: where the result
    refers to them, it gets copies with ``jax.ShapeDtypeStruct`` in the place of arrays.
    """
    values = jax.eval_shape(list, lift.values)[: lift.num_leaves]
    return apply(lift.inputs.over(Inner(lift.structure, values).root), outcome, groups)
