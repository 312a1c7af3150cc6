"""Filters at work: literals compiled once, leaves shared out among them.

The expressions and the reasoning about them live in ``nnx_rules``; this module applies them to live paths and values. A
list of filters is an ordered partition: the first filter that takes a leaf keeps it.

Invariants

- A list of filters is checked before any leaf is looked at: something that is no filter, ``...`` before another filter,
  and a filter that can receive nothing because earlier ones take everything it could, are errors whatever the model
  holds.
- Explicit ``None``, ``False`` and ``Nothing()`` are allowed anywhere; so is ``...`` at the end, repeated or not, even
  if it can receive nothing.
- Compilation is cached for filters that are made of types, tags and constants. Callables are not kept: they may close
  over models.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from nnx_rules import _filter_logic as logic
from nnx_rules import filters as expressions
from nnx_rules.errors import Path, format_path
from nnx_rules.filters import Everything, Expr
from nnx_rules.records import Record
from nnx_rules.rules import filters as rules

T = TypeVar("T")

SHOWN_LEAVES = 3
"""How many leaves an error message names before it counts the rest."""


class Filters(Record):
    """A checked, ordered list of filters.

    Attributes:
        exprs: the filters as expressions.
        stable: whether a leaf's answer depends on its path, type and tag only, so that a partition may be kept as long
            as the structure does not change.
    """

    exprs: tuple[Expr, ...]
    stable: bool

    def partition(self, paths: Sequence[Path], leaves: Iterable[Any]) -> Partition:
        """Share the leaves out: for each filter its group, and the rest."""
        groups: list[list[int]] = [[] for _ in self.exprs]
        remainder: list[int] = []
        choices = list(zip(self.exprs, groups, strict=True))
        for position, (path, leaf) in enumerate(zip(paths, leaves, strict=True)):
            for expr, group in choices:
                if expr(path, leaf):
                    group.append(position)
                    break
            else:
                remainder.append(position)
        return Partition(tuple(Group.of(paths, group) for group in groups), Group.of(paths, remainder))


class Group(NamedTuple):
    """Leaves that belong together: their positions among all leaves, and their paths."""

    positions: tuple[int, ...]
    paths: tuple[Path, ...]

    @classmethod
    def of(cls, paths: Sequence[Path], positions: Sequence[int]) -> Group:
        """The group of these positions."""
        return cls(tuple(positions), tuple(paths[position] for position in positions))

    def take(self, leaves: Sequence[T]) -> list[T]:
        """The leaves of this group, out of all."""
        return [leaves[position] for position in self.positions]


class Partition(Record):
    """Leaves by the filter that took them, and those that none took."""

    groups: tuple[Group, ...]
    remainder: Group

    def require_exhaustive(self) -> None:
        """Raise if a leaf was taken by no filter.

        Raises:
            FilterError: with the path of the first such leaf; the message names the first few.
        """
        left = self.remainder.paths
        if left:
            raise rules.NON_EXHAUSTIVE_SPLIT.error(path=left[0], leaves=name_leaves(left))


def compile_filters(literals: Sequence[Any]) -> Filters:
    """Check a list of filters and turn it into expressions.

    Raises:
        FilterTypeError: one of them is no filter.
        FilterError: one of them can never match because of the earlier ones.
    """
    if all(map(_is_constant, literals)):
        return _compile_cached(*literals)
    return _compile(*literals)


def name_leaves(paths: Sequence[Path]) -> str:
    """The first few paths in words, for messages: ``"`a`, `b.c` and 4 more"``."""
    shown = ", ".join(f"`{format_path(path)}`" for path in paths[:SHOWN_LEAVES])
    more = len(paths) - SHOWN_LEAVES
    return f"{shown} and {more} more" if more > 0 else shown


def _compile(*literals: Any) -> Filters:
    exprs = tuple(map(expressions.parse, literals))
    misplaced = logic.check_order(literals)
    if misplaced is not None:
        raise rules.ELLIPSIS_NOT_LAST.error(filter=_show(literals[misplaced]), position=misplaced + 1)
    for finding in logic.unreachable(exprs):
        if exprs[finding.index] == Everything():
            continue  # a last `...` says "whatever is left", and may be right even if that is nothing
        rule = rules.DUPLICATE_FILTER if finding.relation == "duplicate" else rules.UNREACHABLE_FILTER
        first, *others = (f"filter {place + 1} (`{_show(literals[place])}`)" for place in finding.taken_by)
        earlier = f"{first} together with {' and '.join(others)}" if others else first
        raise rule.error(position=finding.index + 1, filter=_show(literals[finding.index]), earlier=earlier)
    return Filters(exprs, all(map(_is_stable, exprs)))


_compile_cached: Callable[..., Filters] = functools.lru_cache(maxsize=256, typed=True)(_compile)


def _is_constant(literal: Any) -> bool:
    """Whether a literal is made of types, strings and constants, which are safe and cheap to keep as cache keys."""
    if isinstance(literal, tuple):
        return all(map(_is_constant, literal))
    return literal is None or literal is ... or isinstance(literal, type | str | bool)


def _is_stable(expr: Expr) -> bool:
    match expr:
        case expressions.Any(predicates=parts) | expressions.All(predicates=parts):
            return all(map(_is_stable, parts))
        case expressions.Not(predicate=part):
            return _is_stable(part)
        case expressions.Opaque():
            return False
        case _:
            # A user's own subclass of an expression may look at anything.
            return type(expr).__module__ == expressions.__name__


def _show(literal: Any) -> str:
    if literal is ...:
        return "..."
    return repr(literal) if isinstance(literal, str) else logic.describe(expressions.parse(literal))
