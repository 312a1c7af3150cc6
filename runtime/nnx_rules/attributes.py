"""Data or static: the decision procedure for the attributes of a Pytree.

Every attribute of an ``nnx.Pytree`` is *data* (part of the JAX tree: arrays, Variables, other Pytrees) or *static*
(part of the
structure: sizes, flags, functions). The verdict depends only on *facts* about the value and about the attribute,
which the caller hands in: the runtime reads them off live objects, the analyzer off abstract values. Same facts, same
verdict, same rule.

Invariants:

* an explicit tag (``nnx.data(v)``, ``nnx.static(v)``) always decides; without one the attribute keeps the status that
  it has (from an earlier assignment or from the class body); without either, the kind of the value decides;
* a static attribute never holds data: a value that is data, or a container with a data leaf, is a violation;
* *unknown* is a value: it never makes a violation, and the status it leads to is unknown unless something explicit
  decided.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from nnx_rules.records import Record
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nnx_rules.registry import Rule


class Status(enum.Enum):
    """What an attribute is to JAX."""

    DATA = "data"
    STATIC = "static"
    UNKNOWN = "unknown"


class Tag(enum.Enum):
    """An explicit annotation around a value: ``nnx.data(v)`` or ``nnx.static(v)``."""

    DATA = "data"
    STATIC = "static"

    @property
    def status(self) -> Status:
        """The status that the tag asks for."""
        return Status(self.value)


class Kind(enum.Enum):
    """What a value is, as far as its status is concerned."""

    ARRAY = enum.auto()
    """A jax array, tracer, PRNG key, or numpy array (a numpy *scalar* is ``OTHER``)."""
    VARIABLE = enum.auto()
    REF = enum.auto()
    """A mutable array reference of JAX."""
    PYTREE = enum.auto()
    """An instance of ``nnx.Pytree``, ``Object`` or ``Module``, and so ``List``, ``Dict``, ``Rngs``, ``Optimizer``,
    metrics.
    """
    REGISTERED = enum.auto()
    """An instance of exactly a type that went through ``nnx.register_data_type``."""
    CONTAINER = enum.auto()
    """Something that JAX flattens: list, tuple, dict, namedtuple, State, any registered pytree class."""
    OTHER = enum.auto()
    """Everything that JAX sees as one leaf: numbers, strings, functions, sets, deques, plain objects."""
    UNKNOWN = enum.auto()


DATA_KINDS = frozenset({Kind.ARRAY, Kind.VARIABLE, Kind.REF, Kind.PYTREE, Kind.REGISTERED})
"""The kinds that are data by themselves (what ``nnx.is_data`` answers)."""


class ValueFacts(Record):
    """What is known of a value that is assigned to an attribute.

    Attributes:
        kind: its kind, below an explicit tag.
        tag: the explicit tag around it, or ``None``.
        holds_data: for a container: whether a leaf of it is data; ``None`` when unknown.
        inner_tags: tags found *inside* the value, where they have no meaning.
    """

    kind: Kind
    tag: Tag | None = None
    holds_data: bool | None = False
    inner_tags: frozenset[Tag] = frozenset()

    @property
    def all_tags(self) -> frozenset[Tag]:
        """The tags around and inside the value."""
        return self.inner_tags if self.tag is None else self.inner_tags | {self.tag}

    @property
    def is_data(self) -> bool | None:
        """Whether the value is data or holds data; ``None`` when unknown."""
        if self.kind in DATA_KINDS:
            return True
        if self.kind is Kind.UNKNOWN:
            return None
        return self.holds_data if self.kind is Kind.CONTAINER else False


class Verdict(Record):
    """The status after an assignment, and the rule that the assignment breaks, if any."""

    status: Status
    broken: Rule | None = None


def infer(facts: ValueFacts) -> Verdict:
    """Status of a value that meets neither a tag nor an earlier status."""
    if facts.kind in DATA_KINDS:
        return Verdict(Status.DATA)
    if facts.is_data is None:
        return Verdict(Status.UNKNOWN)
    if facts.is_data:
        return Verdict(Status.STATIC, rules.DATA_IN_STATIC_ATTRIBUTE)
    return Verdict(Status.STATIC)


def decide(current: Status | None, facts: ValueFacts, *, checked: bool = True, declared: bool = False) -> Verdict:
    """Decide what an assignment ``obj.name = value`` does to the status of ``name``.

    Args:
        current: the status that the attribute has, from an earlier assignment or from the class body; ``None`` if it
        has none.
        facts: what is known of the value.
        checked: whether the class checks its attributes (``pytree=False`` classes do not).
        declared: whether ``current`` comes from the class body, which then is what marks the value.
    """
    if not checked:
        status = infer(facts).status if facts.tag is None else facts.tag.status
        return Verdict(status)
    if facts.inner_tags:
        return Verdict(facts.tag.status if facts.tag else Status.UNKNOWN, rules.NESTED_STATUS_ANNOTATION)
    if facts.tag is Tag.DATA:
        return Verdict(Status.DATA)
    if facts.tag is Tag.STATIC:
        return Verdict(Status.STATIC, rules.DATA_MARKED_STATIC if facts.is_data else None)
    if current is Status.DATA:
        return Verdict(Status.DATA)
    if current is Status.STATIC:
        if declared:
            return Verdict(Status.STATIC, rules.DATA_MARKED_STATIC if facts.is_data else None)
        if facts.kind in DATA_KINDS:
            return Verdict(Status.STATIC, rules.DATA_TO_STATIC_ATTRIBUTE)
        return Verdict(Status.STATIC, rules.DATA_IN_STATIC_ATTRIBUTE if facts.is_data else None)
    if current is Status.UNKNOWN:
        return Verdict(Status.UNKNOWN)
    return infer(facts)


def recheck(status: Status, facts: ValueFacts, *, checked: bool = True) -> Rule | None:
    """Look again at a value that may have changed in place since it was assigned (end of construction,
    ``check_pytree``).
    """
    if not checked:
        return None
    if facts.inner_tags:
        return rules.NESTED_STATUS_ANNOTATION
    if status is Status.STATIC and facts.is_data:
        return rules.STATIC_CONTAINER_FILLED
    return None


class Declaration(Record):
    """A status that a class body gives to an attribute before any instance exists.

    ``source`` says how: ``"annotation"`` for ``x: nnx.Data[T]``, ``"field"`` for a field specifier, ``"metadata"`` for
    ``dataclasses.field(metadata={"static": ...})``.
    """

    name: str
    status: Status
    source: str


class Declared(Record):
    """The declarations of a class with those that it inherits, and the names on which they contradict each other."""

    statuses: Mapping[str, Status]
    conflicts: tuple[tuple[str, Status, Declaration], ...] = ()


def declare(inherited: Iterable[Mapping[str, Status]], own: Iterable[Declaration]) -> Declared:
    """Combine the statuses that base classes declare (nearest base first) with those of a class body.

    A class may repeat what a base says. An annotation takes the place of what a base says; a field may not say the
    opposite of that, nor of an annotation in the same body.
    """
    statuses: dict[str, Status] = {}
    for base in inherited:
        for name, status in base.items():
            statuses.setdefault(name, status)
    conflicts: list[tuple[str, Status, Declaration]] = []
    for declaration in own:
        known = statuses.get(declaration.name) if declaration.source != "annotation" else None
        if known is not None and known is not declaration.status and Status.UNKNOWN not in (known, declaration.status):
            conflicts.append((declaration.name, known, declaration))
        else:
            statuses[declaration.name] = declaration.status
    return Declared(statuses, tuple(conflicts))


def is_checked(pytree: bool | None, *, default: bool) -> bool:
    """Whether a class checks its attributes, from its class keyword ``pytree=``.

    The keyword is not inherited: a subclass that does not repeat it gets the default of the family it belongs to
    (``True`` below ``Pytree`` and ``Module``, ``False`` below ``Object``).
    """
    return default if pytree is None else pytree
