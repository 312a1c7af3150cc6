"""Prefixes: what is to be done with which part of the arguments.

A prefix is a pytree whose leaves stand for whole subtrees of the arguments: a vmap axis, a sharding. For a graph object
it may be a *filter prefix* (`StateAxes`, `StateSharding`), which tells its Variables apart, or, without graph updates,
an object of the same structure whose Variables hold the prefixes (`nnx.prefix` makes one).

Invariants

- Every leaf of the joint graph has one label. An object that is reached by two paths must get the same from both; one
  that is captured as well as passed has the label of the argument.
- Filter prefixes belong to the default mode, objects as prefixes to the others; `require_kinds` sees to that when a
  function is transformed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec, Sharding

from nnx_rules.errors import format_path
from nnx_rules.filters import parse
from nnx_rules.rules import filters as filter_rules
from nnx_rules.rules import transforms as rules
from nnxkit._filters import compile_filters, name_leaves
from nnxkit._graph._plan import plan_of
from nnxkit._graph._traverse import is_node, iter_graph
from nnxkit._state import State
from nnxkit._state._order import Path
from nnxkit._transforms._inner import Modes
from nnxkit._transforms._inputs import BARE, PYTREE, VARIABLE, Flat, Inputs, is_object


class Carry:
    """Marks the argument or the result of a scanned function that goes from one step to the next. It is used as it is,
    not as an instance.
    """

    __module__ = "nnxkit"


class FilterPrefix(Mapping[Any, Any]):
    """Filters and what each of them assigns, a mapping; the first filter that takes a leaf decides.

    Args:
        entries: a mapping, or pairs, of filters and what they assign.

    Raises:
        FilterTypeError: a key is no filter.
        FilterError: a filter can never match because of the earlier ones.
    """

    __module__ = "nnxkit"

    def __init__(self, entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]], /) -> None:
        if isinstance(entries, State):
            # Paths as filters: a State that holds the prefixes.
            entries = [(PathIs(path), _held(leaf)) for path, leaf in zip(*entries.flat_items(), strict=True)]
        items = list(entries.items() if isinstance(entries, Mapping) else entries)
        self.filters: tuple[Any, ...] = tuple(literal for literal, _ in items)
        self.prefixes: tuple[Any, ...] = tuple(prefix for _, prefix in items)
        self._exprs = compile_filters(self.filters).exprs

    def __getitem__(self, literal: Any) -> Any:
        for known, prefix in zip(self.filters, self.prefixes, strict=True):
            if known == literal:
                return prefix
        raise KeyError(literal)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.filters)

    def __len__(self) -> int:
        return len(self.filters)

    def map_prefix(self, path: Path, leaf: Any) -> Any:
        """What is assigned to a leaf.

        Raises:
            FilterError: no filter takes it.
        """
        for expr, prefix in zip(self._exprs, self.prefixes, strict=True):
            if expr(path, leaf):
                return prefix
        raise filter_rules.NON_EXHAUSTIVE_PREFIX.error(path=path, leaves=name_leaves([path]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FilterPrefix) or type(self) is not type(other):
            return False
        return (self.filters, self.prefixes) == (other.filters, other.prefixes)

    def __hash__(self) -> int:
        return hash((type(self), self.filters, self.prefixes))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.items())!r})"


class StateAxes(FilterPrefix):
    """Axes for the Variables of one argument of ``nnx.vmap``, ``nnx.scan`` or ``nnx.pmap``, by filter.

    >>> import nnxkit as nnx
    >>> axes = nnx.StateAxes({nnx.Param: 0, ...: None})
    >>> axes.axes, axes[nnx.Param]
    ((0, None), 0)
    """

    @property
    def axes(self) -> tuple[Any, ...]:
        """The axes, in the order of the filters."""
        return self.prefixes


class StateSharding(FilterPrefix):
    """Shardings for the Variables of one argument of ``nnx.jit`` or ``nnx.shard_map``, by filter."""

    @property
    def shardings(self) -> tuple[Any, ...]:
        """The shardings, in the order of the filters."""
        return self.prefixes


class PathIs:
    """A filter for one path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, path: Path, leaf: Any) -> bool:
        return path == self.path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PathIs) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return format_path(self.path)


class DiffState:
    """An argument to differentiate, and a filter for what in it.

    Args:
        argnum: position of the argument.
        filter: takes the leaves to differentiate.
    """

    __module__ = "nnxkit"

    def __init__(self, argnum: int, filter: Any) -> None:
        self.argnum = argnum
        self.filter = filter
        self._expr = parse(filter)

    def takes(self, path: Path, leaf: Any) -> bool:
        """Whether a leaf is differentiated."""
        return self._expr(path, leaf)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DiffState) and (self.argnum, self.filter) == (other.argnum, other.filter)

    def __hash__(self) -> int:
        return hash((self.argnum, self.filter))

    def __repr__(self) -> str:
        return f"DiffState(argnum={self.argnum!r}, filter={self.filter!r})"


def require_kinds(option: str, prefix: Any, modes: Modes) -> None:
    """Raise unless a prefix is of kinds that a mode has.

    Args:
        option: where it was given.
        prefix: the prefix: axes, shardings, positions of arguments.
        modes: how structure is treated.

    Raises:
        TransformArgumentError: it has filters without graph updates, or objects with them.
    """
    for entry in jax.tree.leaves(prefix, is_leaf=is_prefix_leaf):
        if isinstance(entry, FilterPrefix | DiffState) and not modes.updates:
            mode = "a transform without graph updates"
            mend = f"{_WITHOUT_FILTERS[isinstance(entry, DiffState)]}, or use the default mode"
        elif is_object(entry) and modes.updates:
            mode = "a transform with graph updates"
            mend = "use `nnx.StateAxes` or `nnx.StateSharding`, or `graph_updates=False`"
        else:
            continue
        kind = type(entry).__name__
        raise rules.PREFIX_MODE.error(
            option=option, transform=modes.transform, given=f"a `{kind}`", kind=kind, mode=mode, mend=mend
        )


_WITHOUT_FILTERS = (
    "use `nnx.prefix(node, {filter: ...})`",
    "split the module, and pass what is differentiated as a State of its own",
)


def _held(leaf: Any) -> Any:
    return leaf.get_raw_value() if hasattr(leaf, "get_raw_value") else leaf


Resolver = Callable[[Path, Any], Any]
"""From the path of a leaf below a graph object, and the leaf, to its label."""


class Prefixes:
    """The prefixes of one option of a transform, for one pytree.

    Args:
        option: name of the option, for messages.
        prefix: the prefix.
        tree: what it is for, a pytree with graph objects as leaves.
        modes: mode and name of the transform.

    Attributes:
        leaves: the prefix of each leaf of the pytree.

    Raises:
        TransformArgumentError: it does not fit.
    """

    def __init__(self, option: str, prefix: Any, tree: Any, modes: Modes) -> None:
        self.option = option
        self.modes = modes
        treedef: Any
        given, treedef = jax.tree.flatten(prefix, is_leaf=is_prefix_leaf)
        try:
            subtrees = treedef.flatten_up_to(tree)
        except (ValueError, TypeError) as error:
            # What follows in JAX's words is a dump of both trees.
            problem = str(error).partition("\n")[0].partition(";")[0]
            raise rules.PREFIX_MISMATCH.error(option=option, transform=modes.transform, problem=problem) from None
        self.leaves: list[Any] = []
        for entry, subtree in zip(given, subtrees, strict=True):
            self.leaves += [entry] * len(jax.tree.leaves(subtree, is_leaf=is_object))

    def resolver(self, number: int) -> Resolver:
        """For a graph object, by its number among the leaves, what gives the labels of its leaves."""
        entry = self.leaves[number]
        if isinstance(entry, FilterPrefix):
            return entry.map_prefix
        if is_object(entry):
            items = iter_graph(entry, graph=True)
            by_path = {path: _held(value) for path, value in items if value is None or not is_node(value)}
            return lambda path, leaf: self._by_path(by_path, path)
        return lambda path, leaf: entry

    def _by_path(self, by_path: Mapping[Path, Any], path: Path) -> Any:
        # As in every prefix, what is no node stands for all that is below.
        for length in range(len(path), -1, -1):
            if path[:length] in by_path:
                return by_path[path[:length]]
        problem = f"it has nothing for `{format_path(path)}`"
        raise rules.PREFIX_MISMATCH.error(option=self.option, transform=self.modes.transform, problem=problem)


def label_inputs(inputs: Inputs, prefixes: Prefixes, neutral: Any) -> list[Any]:
    """The label of each value of a call: of the leaves of the joint graph, then of the bare leaves of the arguments.

    Args:
        inputs: the inputs.
        prefixes: prefixes of the arguments.
        neutral: label of what is only captured.

    Raises:
        GraphError: an object that is reached twice gets two different labels.
    """
    found: dict[Any, tuple[Any, Path]] = {}
    bare = []
    names = inputs.argument_names()
    for number, (leaf, mark) in enumerate(zip(inputs.flat.leaves, inputs.flat.marks, strict=True)):
        if mark == BARE:
            bare.append(prefixes.resolver(number)((), leaf))
            continue
        plan, resolve = plan_of(leaf), prefixes.resolver(number)
        name = names[number]
        for path, below, key in zip(plan.paths, plan.leaves(), plan.leaf_keys(), strict=True):
            label = resolve(path, below)
            known, other = found.setdefault(key, (label, (*name, *path)))
            if known != label:
                raise rules.INCONSISTENT_ALIASING.error(
                    transform=prefixes.modes.transform,
                    path=other,
                    other_path=(*name, *path),
                    value=type(below).__name__,
                    prefixes=f"{known} and {label}",
                    prefix=known,
                    other_prefix=label,
                )
    return [*(found[key][0] if key in found else neutral for key in inputs.joint.leaf_keys()), *bare]


class PrefixLabels:
    """Labels of values that come back from a transform, by prefixes of its arguments and of its result.

    Args:
        inputs: the inputs.
        labels: labels of the values, as `label_inputs` gives them.
        prefixes: prefixes of the arguments.
        neutral: label of what is only captured.
        option: name of the option with the prefix of the result.
        result: the prefix of the result.

    Attributes:
        groups: all labels that there can be.
    """

    def __init__(
        self, inputs: Inputs, labels: Sequence[Any], prefixes: Prefixes, neutral: Any, option: str, result: Any
    ) -> None:
        self.labels = labels
        self.prefixes = prefixes
        self.neutral = neutral
        self.option = option
        self.out_prefix = result
        self.numbers = inputs.flat.numbers(PYTREE), inputs.flat.numbers(VARIABLE)
        entries = jax.tree.leaves(result, is_leaf=is_prefix_leaf)
        every = [neutral, *labels, *_all_labels(prefixes.leaves), *_all_labels(entries)]
        self.groups: tuple[Hashable, ...] = tuple(dict.fromkeys(every))

    def of_input(self, leaf: int) -> Hashable:
        """The label of a leaf of the inputs."""
        label: Hashable = self.labels[leaf]
        return label

    def of_new(self, path: Path, leaf: Any) -> Hashable:
        """The label of a new leaf of the inputs: that of the argument in which it is."""
        first: Any = path[0]
        if first >= len(self.numbers[0]):
            neutral: Hashable = self.neutral
            return neutral  # a captured Pytree: Variables have nothing below them
        label: Hashable = self.prefixes.resolver(self.numbers[0][first])(path[1:], leaf)
        return label

    def of_result(self, result: Flat) -> Callable[[int, Path, Any], Hashable]:
        """What gives the labels of the leaves of a result."""
        tree = result.treedef.unflatten(result.leaves)
        prefixes = Prefixes(self.option, self.out_prefix, tree, self.prefixes.modes)
        return lambda number, path, leaf: prefixes.resolver(number)(path, leaf)


def _all_labels(entries: Iterable[Any]) -> Iterable[Hashable]:
    """All labels that prefixes can give."""
    for entry in entries:
        if isinstance(entry, FilterPrefix):
            yield from entry.prefixes
        elif is_object(entry):
            yield from map(_held, plan_of(entry).leaves())
        else:
            yield entry


def is_prefix_leaf(value: Any) -> bool:
    """Whether a part of a prefix stands for a whole subtree."""
    return value is None or isinstance(value, FilterPrefix | PartitionSpec | Sharding) or is_object(value)
