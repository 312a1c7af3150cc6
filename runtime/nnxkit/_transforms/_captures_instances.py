"""Instances of plain classes on the way to captured objects: how they keep their attributes, and stand-ins for them.

A ``Trainer`` with a ``model``, a dataclass, a ``types.SimpleNamespace`` can hold objects in its attributes. A function
that is to see others there gets a *stand-in*: an instance of the same class, so that methods, properties and
``isinstance`` work, with the same attributes but for those that lead to objects. Both are read and written where
attributes are kept, in ``__dict__`` and slots; no ``__init__``, ``__setattr__`` or property of the class runs.

Not every instance can have a stand-in. Opaque are instances

- of classes of libraries, which keep no objects of users;
- of classes below a builtin (exceptions, modules, locks, files, subclasses of ``list``), whose contents are elsewhere,
  and of those that have their own ``__getattribute__``, which may keep attributes anywhere;
- of enumerations and threads, where identity is the point, and of classes with ``__del__``, because that would run for
  the stand-in too.

Invariants

- A stand-in is a shallow copy: what leads to no object (a lock, a data set) is the same in both.
- Nothing is written to the original before the function has returned.
"""

from __future__ import annotations

import enum
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from types import MemberDescriptorType, SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from nnxkit._transforms._captures_code import origin_of
from nnxkit._transforms._captures_globals import rebound


class Layout:
    """Where the instances of a plain class keep their attributes.

    An attribute in ``__dict__`` has its name for a key, one in a slot the descriptor of the slot: a class and its base
    can both have a slot of one name.
    """

    __slots__ = ("has_dict", "new", "slots")

    def __init__(self, cls: type, new: Callable[[], Any]) -> None:
        self.new = new
        self.has_dict = hasattr(new(), "__dict__")
        self.slots = tuple(
            value
            for base in cls.__mro__
            for name, value in vars(base).items()
            if isinstance(value, MemberDescriptorType) and name not in ("__dict__", "__weakref__")
        )

    def attributes(self, instance: Any) -> dict[Hashable, Any]:
        """The attributes that there are, by key."""
        found: dict[Hashable, Any] = dict(vars(instance)) if self.has_dict else {}
        for slot in self.slots:
            try:
                found[slot] = slot.__get__(instance)
            except AttributeError:  # nothing was assigned yet
                continue
        return found

    def parts(self, instance: Any) -> Iterator[tuple[Hashable, str, Any]]:
        """Key, name for people and value of each attribute."""
        for key, value in self.attributes(instance).items():
            yield key, f".{name_of(key)}", value

    def read(self, instance: Any) -> tuple[Any, ...]:
        """The values of the attributes."""
        return tuple(self.attributes(instance).values()) if self.slots else tuple(vars(instance).values())

    def keys(self, instance: Any) -> tuple[Hashable, ...]:
        """The keys of the attributes."""
        return tuple(self.attributes(instance))

    def put(self, instance: Any, key: Any, value: Any) -> None:
        """Set an attribute."""
        if isinstance(key, MemberDescriptorType):
            key.__set__(instance, value)
        else:
            vars(instance)[key] = value

    def remove(self, instance: Any, key: Any) -> None:
        """Delete an attribute."""
        if isinstance(key, MemberDescriptorType):
            key.__delete__(instance)
        else:
            del vars(instance)[key]


def name_of(key: Any) -> str:
    """The name of an attribute."""
    return key.__name__ if isinstance(key, MemberDescriptorType) else str(key)


_KEPT_IDENTITY = (enum.Enum, threading.Thread)
_layouts: WeakKeyDictionary[type, Layout | None] = WeakKeyDictionary()


def layout_of(cls: type) -> Layout | None:
    """Where the instances of a class keep their attributes; ``None`` if they are opaque.

    >>> layout_of(SimpleNamespace).has_dict
    True
    >>> layout_of(ValueError) is None
    True
    """
    if cls not in _layouts:
        _layouts[cls] = _find_layout(cls)
    return _layouts[cls]


def globals_of(cls: type) -> dict[str, Any]:
    """The globals of the module of a class, as far as they are known."""
    module = sys.modules.get(cls.__module__)
    return {"__name__": cls.__module__} if module is None else vars(module)


def _find_layout(cls: type) -> Layout | None:
    if cls is not SimpleNamespace and origin_of(globals_of(cls)).library:
        return None
    base: Any = SimpleNamespace if issubclass(cls, SimpleNamespace) else object
    own_access = cls.__getattribute__ is not base.__getattribute__
    if own_access or hasattr(cls, "__del__") or issubclass(cls, _KEPT_IDENTITY):
        return None

    def new() -> Any:
        return base.__new__(cls)

    try:
        return Layout(cls, new)
    except TypeError:  # Python refuses: there is a builtin among the bases
        return None


class InstanceStandIn:
    """A stand-in for an instance.

    Args:
        name: what to call the instance.
        layout: where it keeps its attributes.
        original: the instance.
    """

    def __init__(self, name: str, layout: Layout, original: Any) -> None:
        self.name = name
        self.layout = layout
        self.original = original
        self.instance = layout.new()
        self.replaced: Mapping[Hashable, Any] = {}
        self.given: Mapping[Hashable, Any] = {}

    def fill(self, replaced: Mapping[Hashable, Any]) -> None:
        """Give it the attributes of the original, but for those that are given here."""
        self.replaced = replaced
        self.given = {**self.layout.attributes(self.original), **replaced}
        for key, value in self.given.items():
            self.layout.put(self.instance, key, value)

    def check(self) -> None:
        """Raise if a replaced attribute was bound to something else.

        Raises:
            TraceContextError: it was.
        """
        now = self.layout.attributes(self.instance)
        for key, value in self.replaced.items():
            if now.get(key, self) is not value:
                raise rebound(f"{self.name}.{name_of(key)}")

    def settle(self, outer: Callable[[Any], Any]) -> None:
        """Let the original have what the function has set and deleted, as ``outer`` knows it outside."""
        now = self.layout.attributes(self.instance)
        for key, value in now.items():
            if self.given.get(key, self) is not value:
                self.layout.put(self.original, key, outer(value))
        for key in self.given.keys() - now.keys():
            self.layout.remove(self.original, key)
