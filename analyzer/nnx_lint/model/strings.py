"""Strings known in part: ``f"block_{i}"``, ``"block_" + str(i)``, ``"block_%d" % i``, ``"block_{}".format(i)``.

They are the names of attributes that a loop sets. Each place that is not known is a ``*``, so that all spellings of one
pattern are one string.

Invariants: a pattern has a ``*`` and no literal one; a string without unknown places is a :class:`Const`.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.values import STRING, Const, Other, Unknown, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

HOLE = "*"
_PERCENT = re.compile(r"%(?:\(\w+\))?[-#0 +]*\d*(?:\.\d+)?[a-zA-Z]")
_BRACES = re.compile(r"\{[^{}]*\}")


class PatternVal(Other):
    """A string of which some places are not known."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        super().__init__("a string")
        self.text = text


def text_in(value: Value) -> str | None:
    """The text of a string with holes in it; ``None`` if the value is no string, or nothing of it is known."""
    if isinstance(value, PatternVal):
        return value.text
    return (
        value.value if isinstance(value, Const) and isinstance(value.value, str) and HOLE not in value.value else None
    )


def combined(parts: Iterable[str | None]) -> Value:
    """The string that consists of these parts, of which some are not known."""
    text = "".join(HOLE if part is None else part for part in parts)
    if HOLE not in text:
        return Const(text)
    return PatternVal(text) if text.strip(HOLE) else STRING


def joined(left: Value, operator: ast.operator, right: Value) -> Value | None:
    """The value of an operator between strings; ``None`` if it is none."""
    known = text_in(left)
    if isinstance(operator, ast.Add) and (known is not None or text_in(right) is not None):
        sides = (left, right)
        if all(isinstance(side, (Other, Unknown)) or text_in(side) is not None for side in sides):
            return combined(text_in(side) for side in sides)
    if isinstance(operator, ast.Mod) and isinstance(left, Const) and known is not None:
        return combined([_PERCENT.sub(HOLE, known)])
    return None


def formatted(template: str) -> Value:
    """The value of ``template.format(...)``."""
    return STRING if HOLE in template else combined([_BRACES.sub(HOLE, template)])


def fits(name: str, pattern: str) -> bool:
    """Whether a name may come out of a pattern."""
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split(HOLE)), name) is not None
