"""Filter expressions: one tree for every way to say which leaves of a model are meant.

A filter answers one question about a leaf: given its path and its value, is it meant? Users write filters as short
literals (a type, a tag, ``...``, a tuple) or with the classes of this module; both become the same tree here, and
everybody works on that tree: the runtime calls it, the analyzer reasons about it (``_filter_logic``), messages print
it.

==========================  ============================================================
literal                     expression
==========================  ============================================================
``...``, ``True``           ``Everything()``
``None``, ``False``         ``Nothing()``
a type                      ``OfType(type)``
a string                    ``WithTag(string)``
a tuple or list of filters  ``Any(*filters)``
another callable            ``Opaque(callable)``, called as ``(path, value) -> bool``
==========================  ============================================================

Invariants

- Expressions are immutable, hashable, and equal when their content is equal, so they serve as static data and as keys.
  Equality is of form: ``Any("a", "b") != Any("b", "a")``. Sameness of meaning is ``_filter_logic.equivalent``.
- The children of an expression are expressions: constructors turn literals into the tree, so nobody downstream ever
  meets a literal.
- A path is a tuple of keys, and the types of a value are those of ``isinstance`` together with, for a value whose
  ``type`` attribute is a class (the ``VariableState(type=Param)`` of older code), that class and its bases.
- Nothing here knows real model classes: ``OfType`` may hold any hashable description of a type, which is how the
  analyzer builds expressions over classes it never imports. Only *calling* ``OfType`` needs a real class.

>>> parse((int, "dropout"))
Any(OfType(<class 'int'>), WithTag('dropout'))
>>> parse((int, "dropout"))(("count",), 3)
True
"""

import enum
import reprlib
import types
import typing as t
from collections.abc import Callable, Hashable
from dataclasses import FrozenInstanceError, dataclass

from nnx_rules.errors import FilterTypeError
from nnx_rules.rules.filters import INVALID_FILTER, NOT_ARITY

__all__ = [
    "All",
    "Any",
    "Everything",
    "Expr",
    "Filter",
    "FilterLiteral",
    "HasTag",
    "InvalidFilter",
    "Key",
    "Misuse",
    "Not",
    "Nothing",
    "OfType",
    "Opaque",
    "PathContains",
    "PathIn",
    "PathParts",
    "Predicate",
    "WithTag",
    "parse",
    "to_predicate",
]

Key: t.TypeAlias = Hashable
PathParts: t.TypeAlias = tuple[Key, ...]
Predicate: t.TypeAlias = Callable[[PathParts, t.Any], bool]
FilterLiteral: t.TypeAlias = type | str | Predicate | bool | types.EllipsisType | None
Filter: t.TypeAlias = FilterLiteral | tuple["Filter", ...] | list["Filter"]


@t.runtime_checkable
class HasTag(t.Protocol):
    """A value that a string filter can match: it carries a ``tag``."""

    tag: str


class Expr:
    """Base of all filter expressions: a predicate ``(path, value) -> bool``. Expressions do not change.

    Those that flax has as data classes are such classes here, too: programs derive data classes from them.
    """

    def __call__(self, path: PathParts, value: t.Any) -> bool:
        raise NotImplementedError

    def _hold(self, **content: t.Any) -> None:
        vars(self).update(content)

    def _content(self) -> tuple[t.Any, ...]:
        return tuple(value for name, value in vars(self).items() if name != "__doc__")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expr) or type(self) is not type(other):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash((type(self), self._content()))

    def __setattr__(self, name: str, value: object) -> None:
        if name != "__doc__":  # programs name a combination of filters, and document it
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)


class Everything(Expr):
    """Takes every leaf; the literals ``...`` and ``True``. Arguments are accepted and ignored."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __call__(self, path: PathParts, value: t.Any) -> bool:
        return True

    def __repr__(self) -> str:
        return "Everything()"


class Nothing(Expr):
    """Takes no leaf; the literals ``None`` and ``False``. Arguments are accepted and ignored."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __call__(self, path: PathParts, value: t.Any) -> bool:
        return False

    def __repr__(self) -> str:
        return "Nothing()"


@dataclass(frozen=True, repr=False, eq=False)
class OfType(Expr):
    """Takes the instances of ``type``, and values whose ``type`` attribute is a subclass of it.

    >>> OfType(int)((), True), OfType(int)((), "1")
    (True, False)
    """

    type: t.Any

    def __call__(self, path: PathParts, value: t.Any) -> bool:
        if isinstance(value, self.type):
            return True
        stated = getattr(value, "type", None)
        # An alias such as list[int] is no class: isinstance says so, issubclass would raise.
        return isinstance(stated, type) and issubclass(stated, self.type)

    def __repr__(self) -> str:
        return f"OfType({self.type!r})"


@dataclass(frozen=True, repr=False, eq=False)
class WithTag(Expr):
    """Takes values whose ``tag`` is this string (a string filter is a tag, not a name or a path).

    Raises:
        InvalidFilter: ``tag`` is not a string.
    """

    tag: str

    def __post_init__(self) -> None:
        if not isinstance(self.tag, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidFilter(self.tag, Misuse.NOT_A_TAG)

    def __call__(self, path: PathParts, value: t.Any) -> bool:
        tag = getattr(value, "tag", None)
        # A tag may be an array by accident: compare strings only, so that the answer is always a bool.
        return isinstance(tag, str) and tag == self.tag

    def __repr__(self) -> str:
        return f"WithTag({self.tag!r})"


@dataclass(frozen=True, repr=False, eq=False)
class PathContains(Expr):
    """Takes leaves with ``key`` among the components of their path.

    With ``exact=False``, ``str(key)`` need only be a part of ``str(component)``. List indices are ints: ``"0"`` is
    not ``0`` unless inexact.

    >>> PathContains("kernel")(("layers", 0, "kernel"), None), PathContains("0")(("layers", 0, "kernel"), None)
    (True, False)
    """

    key: Key
    exact: bool = True

    def __call__(self, path: PathParts, value: t.Any) -> bool:
        if self.exact:
            return self.key in path
        part = str(self.key)
        return any(part in str(component) for component in path)

    def __repr__(self) -> str:
        return f"PathContains({self.key!r}, exact={self.exact!r})"


class PathIn(Expr):
    """Takes leaves whose whole path is one of ``paths``, tuples of keys.

    Raises:
        InvalidFilter: a path is neither a tuple nor a list.
    """

    paths: frozenset[PathParts]

    def __init__(self, *paths: PathParts | list[Key]) -> None:
        for path in paths:
            if not isinstance(path, tuple | list):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidFilter(path, Misuse.NOT_A_PATH)
        self._hold(paths=frozenset(map(tuple, paths)))

    def __call__(self, path: PathParts, value: t.Any) -> bool:
        return path in self.paths

    def __repr__(self) -> str:
        return f"PathIn({', '.join(sorted(map(repr, self.paths)))})"


class Any(Expr):
    """Takes what at least one of ``filters`` takes; ``Any()`` takes nothing.

    Raises:
        InvalidFilter: one of ``filters`` is no filter.
    """

    predicates: tuple[Expr, ...]

    def __init__(self, *filters: t.Any) -> None:
        self._hold(predicates=tuple(map(parse, filters)))

    def __call__(self, path: PathParts, value: t.Any) -> bool:
        return any(predicate(path, value) for predicate in self.predicates)

    def __repr__(self) -> str:
        return f"Any({', '.join(map(repr, self.predicates))})"


class All(Expr):
    """Takes what every one of ``filters`` takes; ``All()`` takes everything.

    Raises:
        InvalidFilter: one of ``filters`` is no filter.
    """

    predicates: tuple[Expr, ...]

    def __init__(self, *filters: t.Any) -> None:
        self._hold(predicates=tuple(map(parse, filters)))

    def __call__(self, path: PathParts, value: t.Any) -> bool:
        return all(predicate(path, value) for predicate in self.predicates)

    def __repr__(self) -> str:
        return f"All({', '.join(map(repr, self.predicates))})"


class Not(Expr):
    """Takes what the one given filter does not take.

    Raises:
        FilterTypeError: not exactly one filter was given; for several, write ``Not((a, b))``.
        InvalidFilter: it is no filter.
    """

    predicate: Expr

    def __init__(self, *filters: t.Any) -> None:
        if len(filters) != 1:
            raise NOT_ARITY.error(given=len(filters) or "none")
        self._hold(predicate=parse(filters[0]))

    def __call__(self, path: PathParts, value: t.Any) -> bool:
        return not self.predicate(path, value)

    def __repr__(self) -> str:
        return f"Not({self.predicate!r})"


class Opaque(Expr):
    """A user's callable, about which nothing is known except that equal callables answer alike.

    The analyzer also uses it for an expression that it cannot read; ``callable`` is then any token that identifies
    the place.
    """

    callable: t.Any

    def __init__(self, callable: t.Any) -> None:
        self._hold(callable=callable)

    def __call__(self, path: PathParts, value: t.Any) -> bool:
        return bool(self.callable(path, value))

    def __hash__(self) -> int:
        try:
            return hash(self.callable)
        except TypeError:
            # Equality without a hash (a mutable dataclass, say) may not make the whole tree unhashable.
            return hash(self.callable.__class__)

    def __repr__(self) -> str:
        return repr(self.callable)


class Misuse(enum.Enum):
    """The ways in which something that was given as a filter is none: what it is, if that needs saying; the mend."""

    UNION = ("a union of types", "write a tuple of the types, {mend}")
    ALIAS = ("a type with parameters, and values do not carry those", "use the plain type, {mend}")
    INSTANCE = ("a Variable, not a type of Variables", "use its type, {mend}")
    TYPING_ANY = ("a type annotation", "use ... to take everything")
    NOT_A_TAG = ("not a string, and tags are strings", "give the tag as a string")
    NOT_A_PATH = ("not a path", "write each path as a tuple of keys, ('layers', 0, 'kernel')")
    OTHER = (
        "",
        "use a type, a tag, ..., a bool, None, a callable (path, value) -> bool, or a tuple or list of filters",
    )

    def __init__(self, problem: str, mend: str) -> None:
        self.problem = problem
        self.mend = mend


class InvalidFilter(FilterTypeError):
    """What was given is no filter (rule ``invalid-filter``).

    Attributes:
        given: the object that was given.
        misuse: in which way it is no filter.
        mend: what to write instead, in words.
    """

    def __init__(self, given: object, misuse: Misuse, replacement: str = "") -> None:
        self.given = given
        self.misuse = misuse
        self.replacement = replacement
        self.mend = misuse.mend.format(mend=replacement)
        shown = _shown(given, misuse)
        super().__init__(
            INVALID_FILTER.message_for(value=f"{shown}, {misuse.problem}," if misuse.problem else shown),
            rule=INVALID_FILTER,
            help=INVALID_FILTER.help_for(mend=self.mend),
        )

    def __reduce__(self) -> tuple[type, tuple[object, Misuse, str]]:
        return type(self), (self.given, self.misuse, self.replacement)


def _shown(given: object, misuse: Misuse) -> str:
    """What was given, short: the repr of a Variable shows its array, that of a union the modules of its types."""
    if misuse is Misuse.INSTANCE:
        return f"an instance of {type(given).__name__}"
    if misuse is Misuse.UNION:
        return "`" + " | ".join(getattr(member, "__name__", str(member)) for member in t.get_args(given)) + "`"
    return f"`{reprlib.repr(given)}`"


_UNION_ORIGINS = (t.Union, types.UnionType)
# The slot that marks instances of Variable: they answer calls, so only this tells them from a user's predicate.
_VARIABLE_SLOT = "_var_metadata"


def is_class(obj: object) -> bool:
    """Whether ``obj`` is a real class; the default notion of type for :func:`parse`."""
    return isinstance(obj, type)


def parse(literal: t.Any, is_type: Callable[[t.Any], bool] = is_class) -> Expr:
    """Turn any form of filter into an expression.

    Args:
        literal: a filter in one of the forms listed at the top of this module; an expression is returned as it is.
        is_type: tells the objects that stand for types; pass one to parse over descriptions instead of real classes.

    Raises:
        InvalidFilter: ``literal``, or an element of it, is no filter.
    """
    if isinstance(literal, Expr):
        return literal
    if isinstance(literal, tuple | list):
        return Any(*(parse(element, is_type) for element in t.cast("tuple[t.Any, ...]", literal)))
    if isinstance(literal, str):
        return WithTag(literal)
    if literal is ... or literal is True:
        return Everything()
    if literal is None or literal is False:
        return Nothing()
    _refuse_annotations(literal)
    if is_type(literal):
        return OfType(literal)
    if callable(literal):
        return Opaque(literal)
    raise InvalidFilter(literal, Misuse.OTHER)


def _refuse_annotations(literal: t.Any) -> None:
    """Refuse what looks like a type or a callable to Python and yet cannot test a value."""
    origin = t.get_origin(literal)
    if origin in _UNION_ORIGINS:
        names = ", ".join(_type_name(member) for member in t.get_args(literal))
        raise InvalidFilter(literal, Misuse.UNION, f"({names})")
    if origin is not None:
        # For Annotated, get_origin names the wrapper; what was annotated is in __origin__.
        raise InvalidFilter(literal, Misuse.ALIAS, _type_name(literal.__origin__))
    if literal is t.Any:
        raise InvalidFilter(literal, Misuse.TYPING_ANY)
    if hasattr(literal.__class__, _VARIABLE_SLOT):
        raise InvalidFilter(literal, Misuse.INSTANCE, type(literal).__name__)


def _type_name(obj: t.Any) -> str:
    return obj.__name__ if isinstance(obj, type) else repr(obj)


def to_predicate(literal: t.Any) -> Predicate:
    """The predicate ``(path, value) -> bool`` of a filter: an expression, or a user's callable as it is.

    Raises:
        InvalidFilter: ``literal``, or an element of it, is no filter.
    """
    expr = parse(literal)
    return t.cast(Predicate, expr.callable) if isinstance(expr, Opaque) else expr
