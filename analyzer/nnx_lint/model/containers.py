"""Plain containers: lists, tuples, sets, dicts, and views of them.

Invariants: a container is made once for each place and interpretation, and compared by identity, so that two names for
one list are one :class:`Seq`; :func:`~nnx_lint.model.heap.touch` is called before one is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model import heap
from nnx_lint.model.unions import join, options
from nnx_lint.model.values import MAX_NESTING, UNKNOWN, Array, Const, Obj, TagVal, Value, container_facts
from nnx_rules.attributes import Kind, ValueFacts

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nnx_lint.model.modules import Module


class Fill(NamedTuple):
    """Something that was put into a plain container after it was made, and where."""

    module: Module
    node: ast.AST
    value: Value


class Seq(Value):
    """A list, tuple, set or other sequence. ``items`` are the elements that it may hold; ``exact`` says that these are
    all, in order.

    ``fills`` is what was put into it later, ``shrunk`` whether anything was taken out again, ``owner`` the first object
    and attribute that it was assigned to. ``sure`` are elements that are there whenever the loop that puts them there
    runs at all. ``picked`` are the elements that were asked for by their places, where one stands for all.
    """

    __slots__ = ("born", "exact", "fills", "items", "level", "node", "owner", "picked", "shrunk", "sure", "type")

    OPAQUE = frozenset({"set", "frozenset", "deque", "generator", "dict view", "map"})

    def __init__(
        self,
        type: str,
        items: Iterable[Value],
        level: int = 0,
        *,
        exact: bool = True,
        node: ast.AST | None = None,
    ) -> None:
        self.born = heap.current
        self.type = type
        self.items = list(items)
        self.level = level
        self.exact = exact
        self.node = node
        self.sure: list[Value] = []
        self.fills: list[Fill] = []
        self.shrunk = False
        self.owner: tuple[Obj, str] | None = None
        self.picked: dict[int, Obj] = {}

    @property
    def each(self) -> Value | None:
        """What all elements are alike, where a comprehension or a loop makes them, nobody knows how many."""
        alike = not self.exact and len(self.items) == len(self.sure) == 1
        return self.items[0] if alike and all(fill.value is self.items[0] for fill in self.fills) else None

    @property
    def certain(self) -> list[Value]:
        """The elements that are there for all that is known: those of a loop or a comprehension if it runs at all."""
        if self.exact:
            return self.items
        return [] if self.shrunk else self.sure

    def saved(self) -> Callable[[], None]:
        return heap.restorer(
            self,
            items=list(self.items),
            exact=self.exact,
            sure=list(self.sure),
            fills=list(self.fills),
            shrunk=self.shrunk,
            owner=self.owner,
            picked=dict(self.picked),
        )

    @property
    def opaque(self) -> bool:
        """Whether JAX does not look into it."""
        return self.type in self.OPAQUE

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return Kind.OTHER if self.opaque else Kind.CONTAINER

    def facts(self, depth: int = MAX_NESTING) -> ValueFacts:
        if self.opaque:
            return ValueFacts(Kind.OTHER)
        return container_facts(self.items, self.shrunk, depth)

    def describe(self) -> str:
        article = "an" if self.type[:1] in "aeiou" else "a"
        return f"{article} {self.type}{_contents(self.items)}"


def is_filled(value: Value) -> bool:
    """Whether a list, a tuple or a dict certainly holds something where it stands, so that it is true."""
    return isinstance(value, (Seq, DictVal)) and value.exact and not value.shrunk and bool(value.items)


def give_away(values: Iterable[Value | None]) -> None:
    """Note that something unknown has lists or dicts in its hands: it may put anything into them."""
    for value in values:
        if isinstance(value, Seq) and value.type == "list":
            heap.touch(value)
            value.exact = False
            share(value.items)
        elif isinstance(value, DictVal) and not value.shared:
            heap.touch(value)
            value.shared = True
            share(held for _, held in value.items)


def share(values: Iterable[Value]) -> None:
    """Note that something unknown can get at what these values are: it may put entries into the dicts."""
    give_away(value for value in values if isinstance(value, DictVal))


class DictVal(Value):
    """A dict. ``items`` are the entries that it may hold, keys as values; ``shared`` says that something which is not
    followed may put others into it. The rest is as for :class:`Seq`.
    """

    __slots__ = ("born", "exact", "fills", "items", "level", "node", "owner", "shared", "shrunk")
    kind = Kind.CONTAINER

    def __init__(
        self,
        items: Iterable[tuple[Value, Value]],
        level: int = 0,
        *,
        exact: bool = True,
        node: ast.AST | None = None,
    ) -> None:
        self.born = heap.current
        self.items = list(items)
        self.level = level
        self.exact = exact
        self.node = node
        self.fills: list[Fill] = []
        self.shared = False
        self.shrunk = False
        self.owner: tuple[Obj, str] | None = None

    def saved(self) -> Callable[[], None]:
        return heap.restorer(
            self,
            items=list(self.items),
            exact=self.exact,
            fills=list(self.fills),
            shared=self.shared,
            shrunk=self.shrunk,
            owner=self.owner,
        )

    def entry(self, key: Value | None) -> Value | None:
        """What stands under a key, if it was seen to be put there."""
        if not isinstance(key, Const):
            return None
        known = [held for name, held in self.items if isinstance(name, Const) and name.value == key.value]
        if known and self.exact:
            return known[-1]
        # A branch may have set it.
        return join(*known, *(held for name, held in self.items if not isinstance(name, Const))) if known else None

    def lacks(self, key: Value | None) -> bool:
        """Whether nobody was seen to put anything under a key."""
        known = [name.value for name, _ in self.items if isinstance(name, Const)]
        complete = self.exact and not self.shrunk and not self.shared and len(known) == len(self.items)
        return complete and isinstance(key, Const) and key.value not in known

    def take_out(self, key: Value | None, *, certainly: bool) -> None:
        """Take out what stands under a key. What is left is not known where the key is not, or in a branch."""
        heap.touch(self)
        if certainly and self.exact and isinstance(key, Const):
            self.items = [pair for pair in self.items if not isinstance(pair[0], Const) or pair[0].value != key.value]
        else:
            self.exact, self.shrunk = False, True

    def facts(self, depth: int = MAX_NESTING) -> ValueFacts:
        return container_facts([value for _, value in self.items], self.shrunk, depth)

    def describe(self) -> str:
        return f"a dict{_contents([value for _, value in self.items])}"


class ReturnedDict(DictVal):
    """A dict that certainly is one, since a function of the library returns it, with what is known of what it holds."""

    __slots__ = ()

    def __init__(self, level: int, held: Mapping[str, Value] | None = None) -> None:
        items: list[tuple[Value, Value]] = [(Const(key), value) for key, value in (held or {}).items()]
        super().__init__(items or [(UNKNOWN, UNKNOWN)], level, exact=bool(items))


class PureDict(ReturnedDict):
    """The dict of dicts of arrays that is made of a State, which it is ``of``."""

    __slots__ = ("of",)

    def __init__(self, of: Value, level: int) -> None:
        super().__init__(level)
        self.of = of


class FlatSeq(Seq):
    """A flat State: pairs of a path in the State that it is ``of``, and a Variable."""

    __slots__ = ("of",)

    def __init__(self, of: Value, pair: Value, level: int, node: ast.AST | None) -> None:
        super().__init__("FlatState", [pair], level, exact=False, node=node)
        self.of = of


class PathDict(DictVal):
    """A dict whose keys are the paths in the State that it is ``of``, of strings and numbers, or where there is a
    ``separator``, joined by it.
    """

    __slots__ = ("of", "separator")

    def __init__(self, of: Value, held: Value, level: int, separator: str | None = None) -> None:
        super().__init__([(UNKNOWN, held)], level, exact=False)
        self.of = of
        self.separator = separator


class FrozenDictVal(DictVal):
    """A dict that nobody can change, and that has a hash."""

    __slots__ = ()


def _contents(items: Sequence[Value]) -> str:
    names = list(dict.fromkeys(_element_name(option) for item in items for option in options(item)))
    known = [name for name in names if name]
    if not known or len(known) > 3:
        return ""
    return " of " + " and ".join(known)


def _element_name(value: Value) -> str:
    if isinstance(value, TagVal) and value.value is not None:
        return _element_name(value.value)
    if isinstance(value, Obj):
        return value.cls.name
    if isinstance(value, Array):
        return "arrays"
    if isinstance(value, Seq):
        return value.type + "s"
    return "dicts" if isinstance(value, DictVal) else ""
