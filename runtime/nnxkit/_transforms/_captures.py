"""Captures: the objects that a function reaches without being given them.

A function reaches a Module or a Variable through closure cells, globals that its code uses (``model``, and
``users_module.model``), default arguments, ``functools.partial``, the object of a bound method, containers (any JAX
pytree) of such things, the attributes of instances of plain classes (``trainer.model``), the functions it calls, and
the wrappers of transforms (anything with ``__nnx_wrapped__()``, the function, and ``__nnx_rewrap__(f)``, the same
transform of another one). `captures_of` takes a look and finds them all; transforms make inputs of them and
`Captures.rebind` the function to the fresh objects inside.

What is not looked into: classes (their attributes, and what their methods reach but for the ``self`` they get), and
what ``jax.jit``, ``jax.custom_vjp`` and ``functools.cache`` made of a function.

Invariants

- A look depends on *places*: cells, globals, elements of containers. It is current while each place holds what it held
  then. A place that held something opaque may hold anything else of the same type, because the type says that it is
  opaque: a counter in a global can count. A list or dictionary without objects, however big, is looked at again only if
  another one or one of another length is there; and if it is plain data (`_captures_data`), only what was added is.
- The attributes of instances are places too. Instances that lead to objects are watched all; of the others no more than
  `_WATCHED_INSTANCES`, the ones that take the fewest steps to reach, and none in lists and dictionaries without
  objects. Those beyond are looked into again when something else has changed.
- Captures refer to objects weakly, so an old model whose name was bound to a new one is freed. Functions and containers
  on the way to objects are kept until the next look.
- Objects are in the order of their discovery, breadth first, each once.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from operator import attrgetter, itemgetter
from types import CellType, ModuleType, SimpleNamespace
from typing import Any

from nnxkit._transforms._captures_code import names_of, origin_of
from nnxkit._transforms._captures_constants import constant_of
from nnxkit._transforms._captures_data import Kinds, PlainData
from nnxkit._transforms._captures_globals import StandIn, layers_of
from nnxkit._transforms._captures_instances import globals_of
from nnxkit._transforms._captures_rebind import Node, Rebinding
from nnxkit._transforms._captures_shapes import FUNCTION, Key, Parts, Shape, is_object, shape_of

_Read = Callable[[Any], tuple[Any, ...]]
_Group = tuple[_Read, Any, tuple[type, ...], tuple[tuple[int, Callable[[], Any]], ...]]
"""How to read some places, where from, the types there, and the values (as functions that return them) that matter."""
_Measured = tuple[Callable[[Any], Any], Any, Any]
"""What to ask about a container, the container, and the answer."""


_MODULES = frozenset({ModuleType, StandIn})
_WATCHED_INSTANCES = 32


class Captures:
    """What a function captures, as of the last look.

    Attributes:
        names: what to call the objects, in their order.
        signature: equal for looks that found objects at the same places; hashable, and does not refer to objects.
    """

    __slots__ = (
        "__weakref__", "_absent", "_f", "_groups", "_measured", "_nodes", "_plain", "_references", "_root",
        "names", "signature",
    )  # fmt: skip

    _f: Callable[..., Any]
    _root: int | None
    _nodes: tuple[Node, ...]
    _references: tuple[weakref.ref[Any], ...]
    _groups: tuple[_Group, ...]
    _absent: tuple[tuple[Any, frozenset[str]], ...]
    _measured: tuple[_Measured, ...]
    _plain: tuple[PlainData, ...]
    names: tuple[str, ...]
    signature: Hashable

    @property
    def objects(self) -> tuple[Any, ...]:
        """The captured Pytrees and Variables (while the look is current)."""
        return tuple([reference() for reference in self._references])

    def is_current(self) -> bool:
        """Whether every place that matters still holds what it held."""
        try:
            for read, source, types, fixed in self._groups:
                values = read(source)
                if tuple(map(type, values)) != types:
                    return False
                for position, reference in fixed:
                    if reference() is not values[position]:
                        return False
        except (KeyError, ValueError):  # a global or the contents of a cell are gone
            return False
        for measure, container, answer in self._measured:
            if measure(container) != answer:
                return False
        for data in self._plain:
            if not data.is_still_plain():
                return False
        for names, absent in self._absent:  # noqa: SIM110 - a loop is quicker
            if not names.isdisjoint(absent):
                return False
        return True

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        return self._f

    def constants(self) -> Hashable:
        """What was found beside objects: equal for looks that found the same. ``None`` if some of it may be edited in
        place, or is not known.
        """
        found: list[Hashable] = [missing for _, missing in self._absent]
        for read, source, _, _ in self._groups:
            for value in read(source):
                constant = constant_of(value)
                if constant is None:
                    return None
                found.append(constant)
        return None if self._plain else tuple(found)

    def rebind(self, inner: Sequence[Any]) -> Callable[..., Any]:
        """The function with ``objects[i]`` replaced by ``inner[i]`` wherever it reaches them.

        The original is not touched, and is returned itself if nothing is captured.

        Raises:
            GraphError: a plain container of captured objects contains itself.
            TraceContextError: when the returned function returns, having bound something else to a name or attribute,
                or put it into a list or dictionary, that led to a captured object.
        """
        return self._f if self._root is None else Rebinding(self._nodes, self.objects, inner).callable(self._root)


def captures_of(f: Callable[..., Any], last: Captures | None = None) -> Captures:
    """Look for what ``f`` captures. The last look at it, if there was one, makes this one quicker.

    >>> import nnxkit as nnx
    >>> count = nnx.Variable(0)
    >>> def increment(by):
    ...     count.set_value(count.get_value() + by)
    >>> captures = captures_of(increment)
    >>> captures.names, captures.objects[0] is count
    (('count',), True)
    >>> inner = nnx.Variable(10)
    >>> captures.rebind([inner])(5)
    >>> count.get_value(), inner.get_value()
    (0, 15)
    """
    return _Look(f, () if last is None else last._plain).captures()


class _Signature:
    """Hashable parts, with the hash kept: it is asked for at every call of a compiled function."""

    __slots__ = ("hash", "parts")

    def __init__(self, parts: tuple[Hashable, ...]) -> None:
        self.parts = parts
        self.hash = hash(parts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Signature) and self.parts == other.parts)

    def __hash__(self) -> int:
        return self.hash


_PLAIN_CONTAINERS = (list, tuple, dict)

_MOST_VALUES = 50_000
"""How many values a look goes through, nearest first: who has a hundred thousand objects in a list has data there."""


class _Found:
    """A value that may lead to objects: a node in the making.

    Attributes:
        parts: its parts that are objects (by their numbers) or may lead to some.
        watched: whether its own places may be watched even if they lead nowhere.
        plain: whether it is plain data, which leads nowhere.
        number: its number among the nodes that lead to objects.
    """

    __slots__ = ("name", "number", "parts", "plain", "shape", "value", "watched")

    def __init__(self, name: str, shape: Shape, value: Any) -> None:
        self.name = name
        self.shape = shape
        self.value = value
        self.parts: list[tuple[Key, _Found | int]] = []
        self.watched = False
        self.plain = False
        self.number: int | None = None

    def edges(self) -> tuple[tuple[Key, int], ...]:
        """The parts that lead to objects."""
        targets = ((key, _edge(part)) for key, part in self.parts)
        return tuple((key, target) for key, target in targets if target is not None)


def _edge(part: _Found | int | None) -> int | None:
    """How a node refers to an object or to another node; ``None`` if that leads to no object."""
    if isinstance(part, _Found):
        return None if part.number is None else ~part.number
    return part


class _Look:
    """One look: walks breadth first over everything that may lead to an object, then goes back from the objects."""

    def __init__(self, f: Callable[..., Any], plain: Sequence[PlainData]) -> None:
        self.f = f
        self.known = {id(data.container): data for data in plain}
        self.plain: dict[int, PlainData] = {}
        self.kinds = Kinds()
        self.package: str | None = None
        self.objects: dict[int, tuple[int, str, Any]] = {}
        self.memo: dict[int, _Found] = {}
        self.found: list[_Found] = []
        self.globals: dict[int, tuple[dict[str, Any], dict[str, None]]] = {}
        self.root = self.target(getattr(f, "__name__", type(f).__name__), f)
        self.holders: dict[int, list[_Found]] = {}
        for node in self.found:  # which grows
            if node.plain:
                continue
            for key, name, value in self.parts(node):
                if self.kinds.of(value) is None:
                    continue
                part = self.target(name if name[:1].isidentifier() else node.name + name, value)
                if part is not None:
                    node.parts.append((key, part))
                    self.holders.setdefault(id(part), []).append(node)
        self.leading = self.number()

    def target(self, name: str, value: Any) -> _Found | int | None:
        """The number of an object, what was found of another value, ``None`` for something opaque."""
        if is_object(value):
            return self.objects.setdefault(id(value), (len(self.objects), name, value))[0]
        shape = shape_of(value)
        if shape is None or self.is_known(value) or len(self.found) >= _MOST_VALUES:
            return None
        found = self.memo.get(id(value))
        if found is None:
            found = self.memo[id(value)] = _Found(name, shape, value)
            found.plain = type(value) in _PLAIN_CONTAINERS and self.kinds.is_plain(value)
            self.found.append(found)
        return found

    def is_known(self, value: Any) -> bool:
        """Whether ``value`` was plain data at the last look, and still is."""
        data = self.known.get(id(value))
        if data is None or not data.is_still_plain():
            return False
        self.plain[id(value)] = data
        return True

    def parts(self, node: _Found) -> Parts:
        if node.shape.layout is not None:
            cls = type(node.value)
            node.watched = cls is SimpleNamespace or self.is_users(globals_of(cls))
            if not node.watched:
                return
        yield from node.shape.parts(node.value)
        if node.shape is not FUNCTION or not self.is_users(node.value.__globals__):
            return
        node.watched = True
        used = names_of(node.value.__code__)
        for name in used.names:
            for value in self.look_up(node.value.__globals__, name):
                yield ("global", name), name, value
        for path in used.attributes:
            yield from self.attribute(node.value.__globals__, path)

    def look_up(self, names: dict[str, Any], name: str) -> list[Any]:
        """The value of a global, if there is one, in a list; the name is watched from now on."""
        self.globals.setdefault(id(names), (names, {}))[1][name] = None
        try:
            return [names[name]]
        except KeyError:  # a builtin, or not defined yet
            return []

    def attribute(self, names: dict[str, Any], path: tuple[str, ...]) -> Parts:
        """The first value in a dotted name that is not a module."""
        for length, name in enumerate(path, 1):
            for value in self.look_up(names, name):
                if length > 1:
                    yield ("attribute", path[:length]), ".".join(path[:length]), value
                if type(value) in _MODULES and self.is_users(vars(value)):
                    names = vars(value)
                    break
            else:
                return

    def is_users(self, names: dict[str, Any]) -> bool:
        """Whether the globals of a module may hold objects of the user."""
        origin = origin_of(names)
        if origin.library:
            return False
        if self.package is None:
            self.package = origin.package
        return not origin.installed or origin.package == self.package

    def number(self) -> list[_Found]:
        """Number what leads to objects."""
        leading = {id(node): node for node in self.found if any(isinstance(part, int) for _, part in node.parts)}
        unasked = list(leading.values())
        while unasked:
            for holder in self.holders.get(id(unasked.pop()), ()):
                if id(holder) not in leading:
                    leading[id(holder)] = holder
                    unasked.append(holder)
        numbered = [node for node in self.found if id(node) in leading]
        for number, node in enumerate(numbered):
            node.number = number
        return numbered

    def captures(self) -> Captures:
        """What was found."""
        captures = Captures()
        captures._f = self.f
        captures._root = _edge(self.root)
        captures._nodes = tuple(Node(node.name, node.shape, node.value, node.edges()) for node in self.leading)
        captures._references = tuple(weakref.ref(item) for _, _, item in self.objects.values())
        captures.names = tuple(name for _, name, _ in self.objects.values())
        captures.signature = _Signature((captures._root, *map(_structure, captures._nodes)))
        self.watch(captures)
        return captures

    def watched(self) -> Iterator[_Found]:
        """What leads to objects, and what else is not too much to watch."""
        others = 0
        for node in self.found:
            if node.number is not None or (node.watched and node.shape.layout is None):
                yield node
            elif node.watched and others < _WATCHED_INSTANCES and not self.is_stored(node):
                others += 1
                yield node

    def is_stored(self, node: _Found) -> bool:
        """Whether a value is found only in lists and dictionaries that lead to no object."""
        holders = self.holders.get(id(node))
        return holders is not None and all(
            holder.number is None and isinstance(holder.value, (list, dict)) for holder in holders
        )

    def watch(self, captures: Captures) -> None:
        """Note the places, and what they hold."""
        groups: list[tuple[_Read, Any]] = []
        absent: list[tuple[Any, frozenset[str]]] = []
        measured: list[_Measured] = []
        for names, reads in self.globals.values():
            layers = layers_of(names)
            present = [name for name in reads if any(name in layer for layer in layers)]
            if present:
                groups.append((itemgetter(*present, present[0]), names))  # one more, so that there is a tuple for one
            if missing := frozenset(reads.keys() - set(present)):
                absent.extend((layer.keys(), missing) for layer in layers)
        cells: dict[int, CellType] = {}
        for node in self.watched():
            if node.shape is FUNCTION:
                cells.update((id(cell), cell) for cell in node.value.__closure__ or ())
            if node.shape.read is not None and (node.shape is not FUNCTION or any(node.shape.read(node.value))):
                groups.append((node.shape.read, node.value))
            if node.number is not None and node.shape.keys is not None:
                measured.append((node.shape.keys, node.value, node.shape.keys(node.value)))
            for _, part in node.parts:
                if not isinstance(part, _Found) or part.number is not None or not isinstance(part.value, (list, dict)):
                    continue
                if part.plain:
                    self.plain[id(part.value)] = PlainData(part.value)
                else:
                    measured.append((len, part.value, len(part.value)))
        empty = tuple(cell for cell in cells.values() if cell == CellType())
        full = tuple(cell for cell in cells.values() if cell != CellType())
        groups.extend((read, some) for read, some in ((_contents, full), (_contents_if_any, empty)) if some)
        captures._groups = tuple(_group(read, source) for read, source in groups)
        captures._absent = tuple(absent)
        captures._measured = tuple(measured)
        captures._plain = tuple(self.plain.values())


def _structure(node: Node) -> Hashable:
    return node.shape.name, node.value.__code__ if node.shape is FUNCTION else type(node.value), node.edges


def _contents(cells: tuple[CellType, ...]) -> tuple[Any, ...]:
    return tuple(map(attrgetter("cell_contents"), cells))


def _contents_if_any(cells: tuple[CellType, ...]) -> tuple[Any, ...]:
    return tuple(None if cell == CellType() else cell.cell_contents for cell in cells)


def _group(read: _Read, source: Any) -> _Group:
    values = read(source)
    matter = ((i, value) for i, value in enumerate(values) if is_object(value) or shape_of(value) is not None)
    return read, source, tuple(map(type, values)), tuple((i, _reference(value)) for i, value in matter)


def _reference(value: Any) -> Callable[[], Any]:
    """Returns ``value``, or ``None`` when it is gone; keeps only what cannot be referred to weakly."""
    try:
        return weakref.ref(value)
    except TypeError:
        return itertools.repeat(value).__next__
