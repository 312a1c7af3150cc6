"""``List`` and ``Dict``: containers that are modules, so that what is in them is data or static element by element.

Invariants:

* element ``i`` of a list is the attribute ``str(i)``, and its key in paths is the integer ``i``; element ``k`` of a
  dict is the attribute ``k``. Every element goes through ``Pytree.__setattr__``, which decides its status and
  checks the trace;
* removing an element removes its attribute, so no leaf stays behind; what moves keeps its status;
* a list equals only itself. A dict equals any mapping with equal items, and both hash by identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from typing import Any, overload

from nnx_rules.attributes import Tag
from nnxkit._epoch import touch
from nnxkit._facts import StatusTag
from nnxkit._module import Module
from nnxkit._repr import block, printing, represent
from nnxkit._trace import check_mutation
from nnxkit._typevars import TypeVar

T = TypeVar("T", default=Any)


class List(Module, MutableSequence[T]):
    """A list of modules, Variables, arrays or static values that is a module itself.

    Raises:
        AttributeStatusError: an element is a plain container that holds data.
        TraceContextError: the list is changed from another trace level than its own.

    >>> import nnxkit as nnx
    >>> layers = nnx.List([1, "a"])
    >>> layers.append(2.0)
    >>> list(layers)
    [1, 'a', 2.0]
    """

    _pytree__has_int_keys = True
    _pytree__holds_elements = True
    _length: int

    def __init__(self, it: Iterable[T] | None = None, /) -> None:
        self._length = 0
        for item in it if it is not None else ():
            self.append(item)

    def __len__(self) -> int:
        return self._length

    def _position(self, index: Any, action: str) -> int:
        try:
            position: int = range(self._length)[index]
        except IndexError:
            raise IndexError(f"list {action} index out of range: {index} of {self._length}") from None
        return position

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return self._items()[index]
        item: T = vars(self)[str(self._position(index, "index"))]
        return item

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            tagged = self._tagged()
            tagged[index] = list(value)
            self._refill(tagged)
        else:
            setattr(self, str(self._position(index, "assignment")), value)

    def __delitem__(self, index: int | slice) -> None:
        check_mutation(self._pytree__state, type(self).__name__)
        tagged = self._tagged()
        del tagged[index if isinstance(index, slice) else self._position(index, "deletion")]
        self._refill(tagged)

    def append(self, value: T) -> None:
        """Add an element at the end."""
        length = self._length
        setattr(self, str(length), value)
        self._length = length + 1

    def insert(self, index: int, value: T) -> None:
        """Insert an element before ``index``."""
        tagged = self._tagged()
        tagged.insert(index, value)
        self._refill(tagged)

    def __iter__(self) -> Iterator[T]:
        index = 0
        while index < self._length:
            yield vars(self)[str(index)]
            index += 1

    def _items(self) -> list[T]:
        return [vars(self)[str(index)] for index in range(self._length)]

    def _tagged(self) -> list[Any]:
        """The elements, each with the status that it has."""
        nodes = self._pytree__nodes
        return [
            StatusTag(Tag.DATA if nodes[str(index)] else Tag.STATIC, item) for index, item in enumerate(self._items())
        ]

    def _refill(self, tagged: list[Any]) -> None:
        """Store other elements instead of the present ones.

        A new element that is refused is refused before anything changes.
        """
        check_mutation(self._pytree__state, type(self).__name__)
        checked: List[T] = List()
        for item in tagged:
            checked.append(item)
        for index in range(self._length):
            del vars(self)[str(index)]
            del self._pytree__nodes[str(index)]
        for index in range(checked._length):
            name = str(index)
            vars(self)[name] = vars(checked)[name]
            self._pytree__nodes[name] = checked._pytree__nodes[name]
        self._length = checked._length
        touch(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        with printing(self) as entered:
            name = type(self).__name__
            return block(f"{name}([", map(represent, self), "])") if entered else f"{name}(...)"

    __str__ = __repr__

    def __treescope_repr__(self, path: Any, subtree_renderer: Any) -> Any:
        from nnxkit._treescope import render_sequence

        return render_sequence(self, path, subtree_renderer)


class Dict(Module, MutableMapping[str, T]):
    """A dict with string keys that is a module itself; an item is also an attribute.

    >>> import nnxkit as nnx
    >>> heads = nnx.Dict(a=1)
    >>> heads["b"] = 2
    >>> heads.b, dict(heads)
    (2, {'a': 1, 'b': 2})
    """

    _pytree__holds_elements = True

    def __init__(self, items: Mapping[str, T] | Iterable[tuple[str, T]] = (), /, **kwargs: T) -> None:
        for name, value in dict(items, **kwargs).items():
            self[name] = value

    def __getitem__(self, key: str) -> T:
        item: T = vars(self)[key]
        return item

    def __setitem__(self, key: str, value: T) -> None:
        setattr(self, key, value)

    def __delitem__(self, key: str) -> None:
        if key not in vars(self):
            raise KeyError(key)
        delattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def __getattr__(self, name: str) -> T:  # only reached for missing names; says to type checkers what items are
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        with printing(self) as entered:
            name = type(self).__name__
            entries = (f"{key!r}: {represent(value)}" for key, value in vars(self).items())
            return block(f"{name}({{", entries, "})") if entered else f"{name}(...)"

    __str__ = __repr__
