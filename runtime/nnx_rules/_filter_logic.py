"""Reasoning about filter expressions: which filter can never take a leaf, which leaf no filter takes.

Decisions are made by searching *worlds*. A world is one imaginable leaf, as far as the filters in question can tell
leaves apart: which of the mentioned types it has, its tag, its path, and how the opaque callables answer. Every world
that this module builds can exist, and whatever can exist falls together with one of them. So "no world satisfies this
expression" is a proof, and a world that does is a witness.

What can exist, in the OPEN world:

- Types: users may define any class, with several bases. The true ``OfType`` atoms are any set that contains, with a
  type, all its mentioned supertypes. With a closed ``universe`` given, a leaf has one of its types instead.
- Tags: a leaf has at most one.
- Paths: any tuple of strings and ints. A path named by ``PathIn`` is tried as it stands. Other paths matter only
  through their components: a component equal to a key brings the inexact keys that are part of its text, and nothing
  else, because a path with further components is always free to avoid every path that was named.
- Opaque callables: each is free, but equal ones answer alike.

Types are compared by ``is_subtype(a, b)``, given by the caller, so that real classes and descriptions of classes both
work. It must be reflexive and transitive, and may answer None for "unknown"; an unknown relation is never the ground of
a claim.

Answers are True, False, or None: None means unknown, because an opaque callable or an unknown type decides, or because
the search would exceed ``MAX_WORLDS``. Functions that return findings report certain ones only.
"""

from __future__ import annotations

import enum
import itertools
import typing as t
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from nnx_rules.filters import (
    All,
    Any,
    Everything,
    Expr,
    Key,
    Not,
    Nothing,
    OfType,
    Opaque,
    PathContains,
    PathIn,
    PathParts,
    WithTag,
)
from nnx_rules.records import Record

Truth: t.TypeAlias = bool | None
Subtype: t.TypeAlias = Callable[[t.Any, t.Any], bool | None]
Universe: t.TypeAlias = Collection[t.Any] | None

MAX_WORLDS = 1 << 14
"""Worlds searched for one decision; 14 unrelated types, or 12 with a tag and a key, still fit."""


def subclass(a: t.Any, b: t.Any) -> bool:
    """The subtype relation of real classes; anything else is only a subtype of itself."""
    return a == b or (isinstance(a, type) and isinstance(b, type) and issubclass(a, b))


class _Unknown(enum.Enum):
    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown.UNKNOWN
"""Stands for a type, a tag, a path, or one component of a path that is not known."""


class Leaf(Record):
    """A leaf as far as it is known without running the program; each part may be ``UNKNOWN``.

    Attributes:
        path: its path; single components may be ``UNKNOWN`` too (an index of a list of unknown length).
        type: its type, or a description of it that ``is_subtype`` understands.
        tag: its tag, None if it has none; a set of names if it is one of these.
    """

    path: PathParts | t.Literal[_Unknown.UNKNOWN]
    type: t.Any
    tag: str | frozenset[str] | t.Literal[_Unknown.UNKNOWN] | None = None

    def tagged(self, wanted: str) -> Truth:
        """Whether this is its tag."""
        if isinstance(self.tag, frozenset):
            return None if wanted in self.tag else False
        return None if self.tag is UNKNOWN else self.tag == wanted


class World(Record):
    """One imaginable leaf: a witness that an expression can be satisfied.

    Attributes:
        types: for each mentioned type, whether the leaf is of it (None: unknown, in a closed universe only).
        tag: its tag, None for none or one that no filter mentions.
        path: its path.
        opaque: the opaque callables that take it.
    """

    types: Mapping[t.Any, Truth]
    tag: str | None
    path: PathParts
    opaque: frozenset[Opaque]


# Evaluation: three-valued, over any interpretation of the atoms.

_Atom: t.TypeAlias = OfType | WithTag | PathContains | PathIn | Opaque
_ATOMS = (OfType, WithTag, PathContains, PathIn, Opaque)
_CONSTANTS: Mapping[type, bool] = {Everything: True, Nothing: False}


def _any(truths: t.Iterable[Truth]) -> Truth:
    result: Truth = False
    for truth in truths:
        if truth:
            return True
        if truth is None:
            result = None
    return result


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _atom(expr: Expr) -> _Atom:
    """A leaf of the tree; a user's own subclass may decide by anything, so it counts as a callable."""
    return expr if type(expr) in _ATOMS else Opaque(expr)  # type: ignore[return-value]


def _evaluate(expr: Expr, truth_of: Callable[[_Atom], Truth]) -> Truth:
    kind = type(expr)
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    if isinstance(expr, Any) and kind is Any:
        return _any(_evaluate(child, truth_of) for child in expr.predicates)
    if isinstance(expr, All) and kind is All:
        return _not(_any(_not(_evaluate(child, truth_of)) for child in expr.predicates))
    if isinstance(expr, Not) and kind is Not:
        return _not(_evaluate(expr.predicate, truth_of))
    return truth_of(_atom(expr))


def _same_key(component: Key, key: Key) -> Truth:
    return None if component is UNKNOWN else component == key


def _part_of_key(component: Key, part: str) -> Truth:
    # Every text contains the empty one, that of an unknown component too.
    return (None if part else True) if component is UNKNOWN else part in str(component)


def _contains(path: PathParts, atom: PathContains) -> Truth:
    if atom.exact:
        return _any(_same_key(component, atom.key) for component in path)
    part = str(atom.key)
    return _any(_part_of_key(component, part) for component in path)


def _same_path(path: PathParts, other: PathParts) -> Truth:
    if len(path) != len(other):
        return False
    return _not(_any(_not(_same_key(component, key)) for component, key in zip(path, other, strict=True)))


def matches(expr: Expr, leaf: Leaf, is_subtype: Subtype = subclass) -> Truth:
    """Whether ``expr`` takes ``leaf``; None if that depends on something unknown, such as an opaque callable."""

    def truth_of(atom: _Atom) -> Truth:
        match atom:
            case OfType(type=wanted):
                # Everything is an object, so that much is known even of an unknown type.
                return True if wanted is object else None if leaf.type is UNKNOWN else is_subtype(leaf.type, wanted)
            case WithTag(tag=wanted):
                return leaf.tagged(wanted)
            case PathContains():
                return None if leaf.path is UNKNOWN else _contains(leaf.path, atom)
            case PathIn(paths=paths):
                path = leaf.path
                return (None if paths else False) if path is UNKNOWN else _any(_same_path(path, p) for p in paths)
            case Opaque():
                return None

    return _evaluate(expr, truth_of)


# Worlds


def evaluate(expr: Expr, world: World) -> Truth:
    """Whether ``expr`` takes the leaf of ``world``, which was built for the atoms of ``expr``."""

    def truth_of(atom: _Atom) -> Truth:
        match atom:
            case OfType(type=wanted):
                return world.types[wanted]
            case Opaque():
                return atom in world.opaque
            case WithTag(tag=wanted):
                return world.tag == wanted
            case PathContains() | PathIn():
                return atom(world.path, None)

    return _evaluate(expr, truth_of)


def _atoms(expr: Expr) -> list[_Atom]:
    atoms: dict[_Atom, None] = {}

    def collect(atom: _Atom) -> Truth:
        atoms[atom] = None
        # Undecided, so that evaluation visits every atom except those that constants alone make irrelevant.
        return None

    _evaluate(expr, collect)
    return list(atoms)


T = t.TypeVar("T")


def _closed_sets(items: Sequence[T], entails: Callable[[T, T], bool | None]) -> Iterator[frozenset[T]]:
    """Every set of ``items`` that contains, with an item, all that it entails (a preorder)."""
    if not items:
        yield frozenset()
        return
    first, rest = items[0], items[1:]
    yield from _closed_sets([item for item in rest if not entails(item, first)], entails)
    implied = frozenset([first, *(item for item in rest if entails(first, item))])
    for chosen in _closed_sets([item for item in rest if item not in implied], entails):
        yield chosen | implied


def _type_worlds(types: Sequence[t.Any], is_subtype: Subtype, universe: Universe) -> Iterator[Mapping[t.Any, Truth]]:
    if universe is not None:
        for known in universe:
            yield {wanted: wanted is object or is_subtype(known, wanted) for wanted in types}
        return
    for held in _closed_sets([wanted for wanted in types if wanted is not object], is_subtype):
        yield {wanted: wanted is object or wanted in held for wanted in types}


def _entails_key(a: PathContains, b: PathContains) -> bool:
    """Whether each path with ``a`` has ``b``: by the same key, or because the text of b's key is part of a's."""
    if b.exact:
        return a.exact and a.key == b.key
    return str(b.key) in str(a.key)


def _path_worlds(keys: Sequence[PathContains], named: Collection[PathParts]) -> Iterator[PathParts]:
    yield from named
    # A character in none of the keys: text that is followed by it holds no key but those in the text, and equals none.
    text = "".join(str(atom.key) for atom in keys)
    fresh = next(char for char in map(chr, itertools.count(0xE000)) if char not in text)
    for held in _closed_sets(keys, _entails_key):
        path: PathParts = tuple(atom.key if atom.exact else f"{atom.key}{fresh}" for atom in keys if atom in held)
        while path in named:
            path = (*path, path[-1] if path else fresh)
        yield path


def _worlds(expr: Expr, is_subtype: Subtype, universe: Universe) -> Iterator[World]:
    atoms = _atoms(expr)
    types = [atom.type for atom in atoms if isinstance(atom, OfType)]
    tags = [atom.tag for atom in atoms if isinstance(atom, WithTag)]
    keys = [atom for atom in atoms if isinstance(atom, PathContains)]
    named = dict.fromkeys(path for atom in atoms if isinstance(atom, PathIn) for path in sorted(atom.paths, key=repr))
    opaque = [atom for atom in atoms if isinstance(atom, Opaque)]
    # Nested generators, not itertools.product: that would list every factor before the first world.
    for held in _type_worlds(types, is_subtype, universe):
        for answers in _closed_sets(opaque, lambda a, b: a == b):
            for path in _path_worlds(keys, named):
                for tag in (None, *tags):
                    yield World(held, tag, path, answers)


def _search(expr: Expr, is_subtype: Subtype, universe: Universe) -> tuple[Truth, World | None]:
    worlds = _worlds(expr, is_subtype, universe)
    for world in itertools.islice(worlds, MAX_WORLDS):
        if evaluate(expr, world) is not False:
            return True, world
    return (False if next(worlds, None) is None else None), None


def witness(expr: Expr, is_subtype: Subtype = subclass, universe: Universe = None) -> World | None:
    """A leaf that ``expr`` takes; None if there is none or the search was given up."""
    return _search(expr, is_subtype, universe)[1]


def satisfiable(expr: Expr, is_subtype: Subtype = subclass, universe: Universe = None) -> Truth:
    """Whether some leaf is taken by ``expr``."""
    return _search(expr, is_subtype, universe)[0]


def implies(a: Expr, b: Expr, is_subtype: Subtype = subclass, universe: Universe = None) -> Truth:
    """Whether ``b`` takes every leaf that ``a`` takes."""
    return _not(satisfiable(All(a, Not(b)), is_subtype, universe))


def equivalent(a: Expr, b: Expr, is_subtype: Subtype = subclass, universe: Universe = None) -> Truth:
    """Whether ``a`` and ``b`` take the same leaves."""
    return _not(satisfiable(Any(All(a, Not(b)), All(b, Not(a))), is_subtype, universe))


def disjoint(a: Expr, b: Expr, is_subtype: Subtype = subclass, universe: Universe = None) -> Truth:
    """Whether no leaf is taken by both ``a`` and ``b``."""
    return _not(satisfiable(All(a, b), is_subtype, universe))


# Ordered lists of filters: the first that takes a leaf keeps it.

Relation: t.TypeAlias = t.Literal["duplicate", "subsumed", "after-everything"]


class Unreachable(Record):
    """A filter that never receives a leaf.

    Attributes:
        index: its place in the list.
        taken_by: places of earlier filters that together take all it could take; none of them can be left out.
        relation: ``after-everything`` if one of those takes every leaf, ``duplicate`` if one takes just the same,
            ``subsumed`` otherwise.
    """

    index: int
    taken_by: tuple[int, ...]
    relation: Relation


class Partition(Record):
    """Leaves by the filter that takes them.

    Attributes:
        groups: for each filter the leaves that it certainly receives.
        remainder: leaves that certainly no filter takes.
        undecided: leaves whose place depends on something unknown.
    """

    groups: tuple[tuple[Leaf, ...], ...]
    remainder: tuple[Leaf, ...]
    undecided: tuple[Leaf, ...]


def check_order(filters: Sequence[object]) -> int | None:
    """The index of the first literal ``...`` or ``True`` that stands before a filter of another kind, if any.

    Takes the literals as they were written: the constant is refused in such a place, ``Everything()`` is not.
    """
    everything = [literal is ... or literal is True for literal in filters]
    if True not in everything:
        return None
    first = everything.index(True)
    return None if all(everything[first:]) else first


def contradictory(filters: Sequence[Expr], is_subtype: Subtype = subclass, universe: Universe = None) -> list[int]:
    """Indexes of the filters that can take no leaf whatever stands before them.

    ``Nothing()`` says so on purpose and is not reported; ``Any()``, which may be a forgotten argument, is.
    """
    return [
        index
        for index, expr in enumerate(filters)
        if expr != Nothing() and satisfiable(expr, is_subtype, universe) is False
    ]


def unreachable(
    filters: Sequence[Expr], is_subtype: Subtype = subclass, universe: Universe = None
) -> list[Unreachable]:
    """The filters to which the earlier ones leave nothing.

    Not reported: filters that are empty by themselves (see :func:`contradictory`), and ``Everything()`` after another,
    which is harmless.
    """
    found: list[Unreachable] = []
    for index, expr in enumerate(filters):
        repeated = expr == Everything() and expr in filters[:index]
        if not repeated and satisfiable(expr, is_subtype, universe):
            finding = _shadow(filters, index, is_subtype, universe)
            if finding is not None:
                found.append(finding)
    return found


def _shadow(filters: Sequence[Expr], index: int, is_subtype: Subtype, universe: Universe) -> Unreachable | None:
    expr = filters[index]

    def taken_by(places: Sequence[int]) -> bool:
        return implies(expr, Any(*(filters[place] for place in places)), is_subtype, universe) is True

    # Single filters first: small searches, which stay within bounds where one over all earlier filters would not.
    places = list(range(index))
    single = [place for place in places if taken_by([place])]
    for place in single:
        if equivalent(filters[place], Everything(), is_subtype, universe):
            return Unreachable(index, (place,), "after-everything")
    for place in single:
        if implies(filters[place], expr, is_subtype, universe):
            return Unreachable(index, (place,), "duplicate")
    if single:
        return Unreachable(index, (single[0],), "subsumed")
    if not taken_by(places):
        return None
    for place in reversed(range(index)):
        others = [other for other in places if other != place]
        if taken_by(others):
            places = others
    return Unreachable(index, tuple(places), "subsumed")


def suggest_order(
    filters: Sequence[Expr], is_subtype: Subtype = subclass, universe: Universe = None
) -> tuple[int, ...] | None:
    """An order of the same filters in which each receives something: the narrower before the wider.

    Returns:
        The old indexes in their new order, moved no more than needed; None if all filters are reachable as they
        stand, or if no order by pairs helps (a duplicate, a filter that several others cover together).
    """
    if not unreachable(filters, is_subtype, universe):
        return None

    def narrower(a: int, b: int) -> bool:
        return (
            bool(satisfiable(filters[a], is_subtype, universe))
            and implies(filters[a], filters[b], is_subtype, universe) is True
            and implies(filters[b], filters[a], is_subtype, universe) is False
        )

    order: list[int] = []

    def place(index: int) -> None:
        if index not in order:
            for other in range(len(filters)):
                if narrower(other, index):
                    place(other)
            order.append(index)

    for index in range(len(filters)):
        place(index)
    if unreachable([filters[index] for index in order], is_subtype, universe):
        return None
    return tuple(order)


def partition(filters: Sequence[Expr], leaves: t.Iterable[Leaf], is_subtype: Subtype = subclass) -> Partition:
    """Give each leaf to the first filter that takes it."""
    groups: list[list[Leaf]] = [[] for _ in filters]
    remainder: list[Leaf] = []
    undecided: list[Leaf] = []
    for leaf in leaves:
        home = remainder
        for group, expr in zip(groups, filters, strict=True):
            taken = matches(expr, leaf, is_subtype)
            if taken is not False:
                home = group if taken else undecided
                break
        home.append(leaf)
    return Partition(tuple(map(tuple, groups)), tuple(remainder), tuple(undecided))


def uncovered(filters: Sequence[Expr], leaves: t.Iterable[Leaf], is_subtype: Subtype = subclass) -> list[Leaf]:
    """The leaves that certainly no filter takes."""
    return list(partition(filters, leaves, is_subtype).remainder)


# Words


def _name(type_: t.Any) -> str:
    return getattr(type_, "__name__", None) or repr(type_)


def describe(expr: Expr, type_name: Callable[[t.Any], str] = _name) -> str:
    """What ``expr`` takes, in words for messages and hover.

    >>> describe(Any(OfType(int), WithTag("dropout")))
    "int or anything tagged 'dropout'"
    >>> describe(All(OfType(int), WithTag("dropout"), Not(PathContains("head"))))
    "int that is tagged 'dropout' and is not anything that has 'head' in its path"
    """

    def noun(part: Expr) -> str:
        match part:
            case Any(predicates=(only,)) | All(predicates=(only,)):
                return noun(only)
            case Everything() | All(predicates=()):
                return "everything"
            case Nothing() | Any(predicates=()):
                return "nothing"
            case PathIn(paths=paths) if not paths:
                return "nothing"
            case WithTag(tag=tag):
                return f"anything tagged {tag!r}"
            case OfType(type=type_):
                return type_name(type_)
            case Not(predicate=child):
                return f"anything but {bracketed(child)}"
            case Any(predicates=children):
                return " or ".join(noun(child) if isinstance(child, Any) else bracketed(child) for child in children)
            case All(predicates=(OfType(type=type_), *others)):
                return f"{type_name(type_)} that {' and '.join(map(clause, others))}"
            case All(predicates=children):
                return f"anything that {' and '.join(map(clause, children))}"
            case _:
                return f"anything that {clause(part)}"

    def bracketed(part: Expr) -> str:
        return f"({noun(part)})" if isinstance(part, Any | All) and len(part.predicates) > 1 else noun(part)

    def clause(part: Expr) -> str:
        match part:
            case WithTag(tag=tag):
                return f"is tagged {tag!r}"
            case PathContains(key=key, exact=exact):
                return f"has {key!r} in its path" if exact else f"has {str(key)!r} within a key of its path"
            case PathIn(paths=paths) if paths:
                return f"is at {' or '.join(sorted(map(repr, paths)))}"
            case Not(predicate=child):
                return f"is not {bracketed(child)}"
            case Any() | All() | OfType() | Everything() | Nothing() | PathIn():
                return f"is {bracketed(part)}"
            case _:
                return f"satisfies {_name(part.callable if isinstance(part, Opaque) else part)}"

    return noun(expr)
