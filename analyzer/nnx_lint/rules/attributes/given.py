"""What the arguments of one call make of the attributes that a constructor assigns.

Invariant: only an object whose model (:mod:`nnx_lint.model.sized`) was made for these arguments tells anything; what
holds for every instance is said where the class is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass
from nnx_lint.model.values import Attr, Obj

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.events import Called, ItemSet


def noted_by_call(event: Called) -> Iterator[Called | ItemSet]:
    """What the constructor does to containers of the library when it gets the arguments of a call."""
    obj = event.result
    cls, made = (obj.cls, obj.template) if isinstance(obj, Obj) else (None, None)
    for sized in cls.sized.values() if isinstance(cls, UserClass) and made is not None else ():
        if sized.model is made:
            yield from sized.noted


def attributes_by_call(event: Called) -> Iterator[tuple[UserClass, str, Attr, Attr]]:
    """The attributes of what a call has made, by name, each beside what the class says of it."""
    obj = event.result
    cls, made = (obj.cls, obj.template) if isinstance(obj, Obj) else (None, None)
    if not isinstance(cls, UserClass) or not cls.checked or cls.model is None or made is None or made is cls.model:
        return
    for name, attr in made.attrs.items():
        known = cls.model.attrs.get(name)
        if known is not None:
            yield cls, name, attr, known
