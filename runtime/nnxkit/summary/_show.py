"""How values look in a table: an array as ``float32[2,3]``, a structure as an outline.

A Variable that carries metadata is shown with it. What is not data is shown by its repr, on one line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from nnxkit._pytree import Pytree
from nnxkit._variable import Variable

_LONGEST = 40


def outline(value: Any) -> list[str]:
    """A value as the lines of an outline.

    >>> import jax.numpy as jnp
    >>> outline({"x": jnp.ones(2), "y": [None, {}]})
    ['x: float32[2]', 'y:', '  - None', '  - {}']
    """
    if isinstance(value, Variable):
        metadata = {name: item for name, item in value.get_metadata().items() if not value.is_default(name, item)}
        raw = value.get_raw_value()
        return outline({"value": raw, **metadata}) if metadata else outline(raw)
    if isinstance(value, Mapping) and value:
        return [line for key, item in value.items() for line in _named(key, item)]
    if isinstance(value, list | tuple) and value:
        return [line for item in value for line in _hung("- ", outline(item))]
    return [_leaf(value)]


def _named(key: Any, item: Any) -> list[str]:
    lines = outline(item)
    value = item.get_raw_value() if isinstance(item, Variable) else item
    is_leaf = len(lines) == 1 and not (isinstance(value, Mapping | list | tuple) and value)
    return [f"{key}: {lines[0]}"] if is_leaf else [f"{key}:", *_hung("  ", lines)]


def _hung(head: str, lines: Sequence[str]) -> list[str]:
    return [f"{'  ' if index else head}{line}" for index, line in enumerate(lines)]


def _leaf(value: Any) -> str:
    if isinstance(value, jax.Ref):
        value = value[...]
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, type):
        return f"type[{value.__name__}]"
    if isinstance(value, Pytree):
        return type(value).__name__
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """The arguments of a call: one alone as it is, several as a list, and those with names."""
    if len(args) == 1 and not kwargs:
        return outline(args[0])
    lines = outline(list(args)) if args else []
    return lines + (outline(kwargs) if kwargs else [])
