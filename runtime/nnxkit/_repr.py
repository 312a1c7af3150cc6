"""How objects print.

One attribute a line, two spaces a level, and behind the name of an object what it holds: ``Linear( # Param: 9 (36
B)``. Inside an object an array of more than one element prints as shape and dtype; alone, in a Variable, a State or
a list it prints in full.

Invariants: a module prints in full once in one repr and as ``Linear(...)`` after that; an object that is being
printed never starts again, so cycles end; as text (``str``) and inside of others an object prints with what it
holds, whatever its ``__repr__`` says: that of a dataclass would hide every Variable that is no field.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax
import jax.core
import numpy as np

from nnx_rules.attributes import Kind
from nnxkit._facts import facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnxkit._pytree import Pytree
    from nnxkit._variable import Variable

_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "KB"))


class _Active(threading.local):
    """The objects that this thread is printing."""

    def __init__(self) -> None:
        self.ids: set[int] = set()


_active = _Active()
_counted_as: dict[type, type] = {}


def count_as(cls: type, base: type) -> None:
    """Count Variables of type ``cls`` as ``base`` in the statistics behind the name of an object."""
    _counted_as[cls] = base


def counted_as(cls: type) -> type:
    """The type as which Variables of a type are counted."""
    return _counted_as.get(cls, cls)


def block(opening: str, entries: Iterable[str], closing: str) -> str:
    """One entry a line between ``opening`` and ``closing``.

    >>> print(block("List([", ["1", "2"], "])"))
    List([
      1,
      2
    ])
    """
    lines = ["  " + entry.replace("\n", "\n  ") for entry in entries]
    return f"{opening}\n" + ",\n".join(lines) + f"\n{closing}" if lines else opening + closing


@contextmanager
def printing(value: object) -> Iterator[bool]:
    """Enter the printing of ``value``; false when this thread is printing it already."""
    key = id(value)
    if key in _active.ids:
        yield False
        return
    _active.ids.add(key)
    try:
        yield True
    finally:
        _active.ids.discard(key)


def represent(value: Any, *, seen: set[int] | None = None) -> str:
    """The repr of a value as an attribute or element.

    Args:
        value: anything.
        seen: inside an object, the modules that are printed already; arrays are abbreviated then. ``None`` prints
            in full.
    """
    if isinstance(value, type):
        return value.__name__
    kind = facts_of(value).kind
    if seen is None:
        return str(value) if kind in (Kind.VARIABLE, Kind.PYTREE) else repr(value)
    if kind is Kind.ARRAY and value.size > 1:
        return f"Array(shape={value.shape}, dtype={value.dtype!r})"
    if kind is Kind.VARIABLE and type(value).__str__ is _variable_text():
        return _variable(value, seen)
    if kind is Kind.PYTREE and type(value).__str__ is _pytree_text():
        return _pytree(value, seen)
    if kind is Kind.CONTAINER:
        return _container(value, seen)
    return repr(value)


def _variable_text() -> Any:
    from nnxkit._variable import Variable

    return Variable.__str__


def _pytree_text() -> Any:
    from nnxkit._pytree import Pytree

    return Pytree.__str__


def _container(value: Any, seen: set[int]) -> str:
    cls = type(value)
    if cls is dict:
        return "{" + ", ".join(f"{key!r}: {represent(item, seen=seen)}" for key, item in value.items()) + "}"
    if cls is list:
        return "[" + ", ".join(represent(item, seen=seen) for item in value) + "]"
    if isinstance(value, tuple):
        comma = "," if len(value) == 1 else ""
        return "(" + ", ".join(represent(item, seen=seen) for item in value) + comma + ")"
    if isinstance(value, Mapping):
        return f"{cls.__name__}({_levels(value, seen)})"
    return repr(value)


def _levels(mapping: Mapping[Any, Any], seen: set[int]) -> str:
    """A State or another mapping inside an object, one key a line."""
    entries = (
        f"{key!r}: {_levels(item, seen) if isinstance(item, Mapping) else represent(item, seen=seen)}"
        for key, item in mapping.items()
    )
    return block("{", entries, "}")


def represent_variable(variable: Variable[Any]) -> str:
    """``Param( # 2 (8 B)``, the value and the metadata that is not default."""
    with printing(variable) as entered:
        return _variable(variable, None) if entered else f"{type(variable).__name__}(...)"


def _variable(variable: Variable[Any], seen: set[int] | None) -> str:
    value = variable.get_raw_value()
    entries = [f"value={represent(value, seen=seen)}"]
    entries.extend(
        f"{name}={represent(item, seen=seen)}"
        for name, item in variable.get_metadata().items()
        if not variable.is_default(name, item)
    )
    size, count = measure(value)
    return block(f"{type(variable).__name__}(" + (f" # {amount(count, size)}" if count else ""), entries, ")")


def represent_pytree(node: Pytree) -> str:
    """The name of the class, what it holds, and the attributes in the order of assignment."""
    return _pytree(node, set())


def _pytree(node: Pytree, seen: set[int]) -> str:
    name = type(node).__name__
    if id(node) in seen:
        return f"{name}(...)"
    seen.add(id(node))
    with printing(node) as entered:
        if not entered:
            return f"{name}(...)"
        nodes = node._pytree__nodes
        entries = [
            f"{key}={represent(value, seen=seen)}"
            for key, value in vars(node).items()
            if not key.startswith("_") or nodes.get(key)
        ]
        statistics = _statistics(node)
        return block(f"{name}(" + (f" # {statistics}" if statistics else ""), entries, ")")


def measure(value: Any) -> tuple[int, int]:
    """Bytes and elements of the arrays in a value."""
    size = count = 0
    for leaf in jax.tree.leaves(
        value, is_leaf=lambda leaf: facts_of(leaf).kind is Kind.PYTREE
    ):  # it may lead back here
        if isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct | jax.Ref | jax.core.Tracer):
            count += leaf.size
            size += leaf.size * leaf.dtype.itemsize
    return size, count


def amount(count: int, size: int) -> str:
    """``9 (36 B)``."""
    return f"{count:,} ({_bytes(size)})"


def _bytes(size: int) -> str:
    for unit, name in _UNITS:
        if size > unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size:,} B"


def held_by(node: Any) -> dict[type, tuple[int, int]]:
    """Elements and bytes of the Variables below a node, by their type, in the order in which they are flattened."""
    totals: dict[type, tuple[int, int]] = {}
    for variable in _variables(node, set()):
        size, count = measure(variable.get_raw_value())
        if count:
            cls = counted_as(type(variable))
            old_count, old_size = totals.get(cls, (0, 0))
            totals[cls] = (old_count + count, old_size + size)
    return totals


def sum_of(totals: Mapping[type, tuple[int, int]]) -> tuple[int, int]:
    """Elements and bytes of all types."""
    return sum(count for count, _ in totals.values()), sum(size for _, size in totals.values())


def _statistics(node: Pytree) -> str:
    totals = held_by(node)
    parts = [f"{cls.__name__}: {amount(*held)}" for cls, held in totals.items()]
    if len(parts) > 1:
        parts.append(f"Total: {amount(*sum_of(totals))}")
    return ", ".join(parts)


def _variables(value: Any, visited: set[int]) -> Iterator[Variable[Any]]:
    """The Variables below a value, each once, in the order in which they are flattened."""
    kind = facts_of(value).kind
    if kind not in (Kind.VARIABLE, Kind.PYTREE, Kind.CONTAINER) or id(value) in visited:
        return
    visited.add(id(value))
    if kind is Kind.VARIABLE:
        yield value
        return
    children: Iterable[Any]
    if kind is Kind.PYTREE:
        attributes = vars(value)
        children = [attributes[name] for name in sorted(attributes)]
    else:
        children = jax.tree.leaves(
            value, is_leaf=lambda leaf: leaf is not value and facts_of(leaf).kind in (Kind.VARIABLE, Kind.PYTREE)
        )
    for child in children:
        yield from _variables(child, visited)


def display(*args: Any) -> None:
    """Show objects: with treescope inside IPython, if it is installed, else as text."""
    try:
        import treescope  # type: ignore[import-not-found, import-untyped, unused-ignore]
        from IPython.core.getipython import get_ipython  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        show: Any = print
    else:
        show = treescope.display if get_ipython() is not None else print
    for arg in args:
        show(arg)
