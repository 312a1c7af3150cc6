"""Options that map functions over axes, as far as a program says them: ``in_axes``, ``out_axes``.

Invariants: what is not written as a literal, or a constant that is known, is :data:`UNREAD`; the default of a transform
is read only where its options are known completely.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import LibClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.library import FilterVal
from nnx_lint.model.values import (
    ClassVal,
    Const,
    Ext,
    Value,
)
from nnx_lint.rules.filters.coverage import mapping_of
from nnx_lint.rules.filters.expressions import expression, is_subtype
from nnx_rules import _filter_logic as logic

if TYPE_CHECKING:
    from nnx_lint.model.callables import TransformVal
    from nnx_rules._filter_logic import Leaf


class Carry:
    """``nnx.Carry``."""

    def __repr__(self) -> str:
        return "Carry"


class Unread:
    """An entry that is not known."""

    def __repr__(self) -> str:
        return "..."


CARRY = Carry()
UNREAD = Unread()

Axes = None | int | tuple["Axes", ...] | list["Axes"] | dict[object, "Axes"] | FilterVal | Carry | Unread
"""Axes as they are written."""

DEFAULTS: dict[str, dict[str, Axes]] = {
    "nnx.scan": {"in_axes": (CARRY, 0), "out_axes": (CARRY, 0)},
    "nnx.vmap": {"in_axes": 0, "out_axes": 0},
    "nnx.pmap": {"in_axes": 0, "out_axes": 0},
    "jax.vmap": {"in_axes": 0, "out_axes": 0},
    "jax.pmap": {"in_axes": 0, "out_axes": 0},
}
"""The options of the transforms that map over axes."""


def axes_of(applied: TransformVal, option: str) -> Axes:
    """An option of a transform that maps over axes."""
    defaults = DEFAULTS.get(applied.row.name)
    if defaults is None or "**" in applied.keywords:
        return UNREAD
    given = applied.keywords.get(option)
    return defaults[option] if given is None else read(given)


def read(value: Value) -> Axes:
    """Axes from the value of an option."""
    if isinstance(value, Const):
        return value.value if value.value is None or type(value.value) is int else UNREAD
    if (isinstance(value, Ext) and value.name == "nnx.Carry") or (
        isinstance(value, ClassVal) and isinstance(value.cls, LibClass) and value.cls.canonical == "nnx.Carry"
    ):
        return CARRY
    if isinstance(value, Seq) and value.exact and value.type in {"tuple", "list"}:
        entries = [read(item) for item in value.items]
        return tuple(entries) if value.type == "tuple" else entries
    if isinstance(value, DictVal) and value.exact:
        return {index: read(item) for index, (_, item) in enumerate(value.items)}
    return value if isinstance(value, FilterVal) and value.name == "nnx.StateAxes" else UNREAD


def leaves(axes: Axes) -> list[Axes]:
    """The entries inside of all containers."""
    if isinstance(axes, (tuple, list)):
        return [leaf for item in axes for leaf in leaves(item)]
    return [leaf for item in axes.values() for leaf in leaves(item)] if isinstance(axes, dict) else [axes]


def given_to_variables(axes: Axes) -> set[Axes] | None:
    """The axes that the Variables of one object get, all of them the same or each by its type; ``None`` if unknown."""
    if axes is None or isinstance(axes, int):
        return {axes}
    mapping = mapping_of(axes) if isinstance(axes, FilterVal) else None
    if mapping is None or not mapping.exact:
        return None
    entries = [read(item) for _, item in mapping.items]
    known = all(entry is None or isinstance(entry, int) for entry in entries)
    return {entry for entry in entries if entry is None or isinstance(entry, int)} if known else None


def given_to(axes: Axes, leaf: Leaf) -> Axes:
    """The axes that ``StateAxes`` give to a Variable; what is not known is ``UNREAD``."""
    mapping = mapping_of(axes) if isinstance(axes, FilterVal) else None
    for key, axis in mapping.items if mapping is not None and mapping.exact else ():
        taken = logic.matches(expression(key), leaf, is_subtype)
        if taken is not False:
            return read(axis) if taken else UNREAD
    return UNREAD


def shown(axes: Axes) -> str:
    """Axes as people write them."""
    if isinstance(axes, tuple):
        return "(" + ", ".join(map(shown, axes)) + ("," if len(axes) == 1 else "") + ")"
    return "StateAxes(...)" if isinstance(axes, FilterVal) else repr(axes)


def parameters(func: FuncVal, *, bound: bool = False) -> tuple[int, int] | None:
    """The least and the greatest number of positional arguments of a function; ``None`` if there is no greatest."""
    arguments = func.node.args
    if arguments.vararg is not None:
        return None
    count = len(arguments.posonlyargs) + len(arguments.args) - (1 if bound else 0)
    return count - len(arguments.defaults), count


def option_node(applied: TransformVal, option: str) -> ast.AST:
    """Where an option is written, or the transform, if it is not."""
    keywords = applied.node.keywords if isinstance(applied.node, ast.Call) else []
    return next((item.value for item in keywords if item.arg == option), applied.node)
