"""Patterns of axes: ``"b (h w) c -> b h w c"``, as the functions of einops take them, with the sizes of some names.

Invariants: a pattern that is not understood gives nothing; what is said of an array follows from the pattern, from the
sizes that are given, and from the shape as far as that is known. Nothing here raises.

>>> pattern = parsed("b (h p) c -> b h (p c)")
>>> result(pattern, (8, 12, 3), {"p": 4})
(8, 3, 12)
>>> problem(pattern, (8, 12, 3), {})
'it says the sizes of neither `h` nor `p`, which are one axis of the array'
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_rules.shape_algebra import is_whole
from nnx_rules.shapes import UNKNOWN, Dimension, Shape
from nnx_rules.sizes import differ, divided, product_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Axis = tuple[str, ...]
"""The names that make up one axis; ``...`` for any number of axes, none for an axis of size 1."""

DOTS: Axis = ("...",)


class Pattern(NamedTuple):
    """The axes of an array before and after."""

    before: tuple[Axis, ...]
    after: tuple[Axis, ...]


def parsed(text: str) -> Pattern | None:
    """A pattern; ``None`` where it is none."""
    before, arrow, after = text.partition("->")
    first, second = _axes(before), _axes(after)
    if not arrow or first is None or second is None:
        return None
    names = [name for axis in first for name in axis]
    return Pattern(first, second) if len(set(names)) == len(names) else None


def _axes(text: str) -> tuple[Axis, ...] | None:
    found: list[Axis] = []
    rest = re.sub(r"\(([^()]*)\)|(\.\.\.|\w+)", lambda part: _noted(found, part), text)
    return tuple(found) if not rest.strip() else None


def _noted(found: list[Axis], part: re.Match[str]) -> str:
    names = tuple(name for name in (part[1] if part[2] is None else part[2]).split() if name != "1")
    found.append(names)
    return ""


def problem(pattern: Pattern, shape: Shape | None, sizes: Mapping[str, Dimension]) -> str | None:
    """Why an array cannot be taken apart so."""
    for names in pattern.before:
        open_names = [name for name in names if name not in sizes and not name.isdecimal() and name != "..."]
        if len(open_names) > 1:
            first, second = open_names[:2]
            return f"it says the sizes of neither `{first}` nor `{second}`, which are one axis of the array"
    if shape is None or not is_whole(shape):
        return None
    if DOTS not in pattern.before and len(pattern.before) != len(shape):
        return f"it names {len(pattern.before)} axes, and the array has {len(shape)}"
    for names, length in _beside(pattern.before, shape):
        known = product_of(_size(name, sizes) for name in names)
        if not any(name not in sizes and not name.isdecimal() for name in names):
            wrong = differ(length, known)
        else:
            given = product_of(_size(name, sizes) for name in names if name in sizes or name.isdecimal())
            wrong = isinstance(length, int) and isinstance(given, int) and (not given or length % given > 0)
        if wrong:
            whole = " ".join(names) if len(names) == 1 else f"({' '.join(names)})"
            return f"its axis `{whole or 1}` does not go with an axis of size {length}"
    return None


def result(pattern: Pattern, shape: Shape | None, sizes: Mapping[str, Dimension]) -> Shape | None:
    """The shape of what comes out; ``None`` where an array of such a shape cannot be taken apart so."""
    known = dict(sizes)
    if shape is not None and is_whole(shape):
        if problem(pattern, shape, sizes) is not None:
            return None
        for names, length in _beside(pattern.before, shape):
            missing = [name for name in names if name not in known and not name.isdecimal()]
            if len(missing) == 1:
                rest = product_of(_size(name, known) for name in names if name != missing[0])
                known[missing[0]] = length if rest == 1 else divided(length, rest)
    if DOTS in pattern.after:
        return None
    return tuple(product_of(_size(name, known) for name in names) for names in pattern.after)


def _beside(axes: tuple[Axis, ...], shape: Shape) -> list[tuple[Axis, Dimension]]:
    """The axes of a pattern with those of an array, from both ends to where any number may be."""
    if DOTS not in axes:
        return list(zip(axes, shape, strict=False))
    place = axes.index(DOTS)
    after = len(axes) - place - 1
    return [*zip(axes[:place], shape, strict=False), *zip(axes[place + 1 :], shape[len(shape) - after :], strict=False)]


def _size(name: str, sizes: Mapping[str, Dimension]) -> Dimension:
    return int(name) if name.isdecimal() else sizes.get(name, UNKNOWN)
