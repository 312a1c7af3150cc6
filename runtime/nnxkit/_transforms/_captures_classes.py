"""What the methods of classes read beside the objects that they belong to.

Captures do not look into classes: to transforms, what a class has is fixed. Who keeps compiled code without being asked
to may not take that for granted. In a notebook people change a helper that ``__call__`` uses, and call again.

Invariants

- Classes of libraries are fixed. Methods of users are looked at once, and again when something has changed.
- A method that reaches an object other than through ``self`` has no constants: the object is no input.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from nnxkit._transforms._captures import Captures, captures_of
from nnxkit._transforms._captures_code import origin_of
from nnxkit._transforms._captures_constants import constant_of
from nnxkit._transforms._captures_instances import globals_of

_known: WeakKeyDictionary[FunctionType, Captures] = WeakKeyDictionary()


def constants_of_classes(classes: Iterable[type]) -> Hashable:
    """What their methods read, and the plain values in their bodies: equal if that is the same. ``None`` if some of it
    may be edited in place, or is not known.
    """
    found: list[Hashable] = []
    for base in dict.fromkeys(base for cls in classes for base in cls.__mro__):
        if origin_of(globals_of(base)).library:
            continue
        for name, member in vars(base).items():
            method = _function_of(member)
            if method is None:
                found.append(None if name.startswith("__") else constant_of(member))
                continue
            constants = _constants_of(method)
            if constants is None:
                return None
            found += [constant_of(method), constants]
    return tuple(found)


def _function_of(member: Any) -> FunctionType | None:
    """The function that a class attribute is, or is made of."""
    for name in ("__func__", "fget"):
        member = getattr(member, name, member)
    if hasattr(type(member), "__nnx_wrapped__"):
        member = member.__nnx_wrapped__()
    return member if isinstance(member, FunctionType) else None


def _constants_of(method: FunctionType) -> Hashable:
    captures = _known.get(method)
    if captures is None or not captures.is_current():
        captures = _known[method] = captures_of(method, captures)
    return None if captures.objects else captures.constants()


def classes_in(graphdefs: Iterable[Any]) -> Iterator[type]:
    """The classes of the objects in graphs."""
    for graphdef in graphdefs:
        for record in graphdef.records:
            cls = getattr(record, "type", None)
            if isinstance(cls, type):
                yield cls
