"""Sizes of the axes that a transform maps or scans over (NNX421, NNX439), and maps without any (NNX424, NNX425).

Everything that has an axis gives the function one element in each round, so all axes have as many elements.

Invariants: only arrays of known shape are compared, and only where the axis of each argument is known.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.attributes import variable_value
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called, TransformApplied
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import present
from nnx_lint.model.values import Array, Const, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.callees import TRANSFORMED
from nnx_lint.rules.program import given
from nnx_lint.rules.transforms.mapping import calls_transformed, labelled
from nnx_lint.rules.transforms.options import CARRY, DEFAULTS, option_node
from nnx_rules.rules import transforms as rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_NESTING = 4


class Extent(NamedTuple):
    """An axis of an argument, and its size."""

    node: ast.expr
    axis: int
    size: int


@judges_calls(rules.AXIS_SIZES, *TRANSFORMED, when=calls_transformed)
@judges_calls(rules.SCAN_LENGTH, *TRANSFORMED, when=calls_transformed)
def axes_of_call(event: Called, report: Reporter) -> None:
    found = labelled(event)
    if found is None:
        return
    running, applied, labels = found
    if applied.row.name not in DEFAULTS:
        return
    extents = [
        Extent(node, label, size)
        for (value, node), label in zip(running.operands, labels, strict=True)
        if isinstance(label, int) and node is not None
        for size in _sizes(value, label)
    ]
    if applied.row.name != "nnx.scan":
        _compare(event, applied.text, extents, applied.keywords.get("axis_size"), report)
    elif "length" not in applied.keywords and labels and all(label is None or label is CARRY for label in labels):
        _nothing(event, applied.text, event.node, report)
    elif not _contradicts(event, applied.text, extents, applied.keywords.get("length"), report):
        _compare(event, applied.text, extents, None, report)


@judges_calls(rules.NOTHING_MAPPED, *TRANSFORMED, when=calls_transformed)
def nothing_mapped(event: Called, report: Reporter) -> None:
    found = labelled(event)
    if found is None:
        return
    _, applied, labels = found
    if applied.row.name not in MAPS or "axis_size" in applied.keywords:
        return
    if labels and all(label is None for label in labels):
        report(event.frame.module, event.node, transform=applied.text)


def maps_by_dict(event: TransformApplied) -> bool:
    """Whether the axes of the arguments are given in a dict."""
    return event.applied.row.name in MAPS and isinstance(event.applied.keywords.get("in_axes"), DictVal)


@judges(rules.AXES_TYPE, TransformApplied, when=maps_by_dict)
def axes_in_dict(event: TransformApplied, report: Reporter) -> None:
    applied = event.applied
    node = option_node(applied, "in_axes")
    report(applied.module, node, option="in_axes", transform=applied.text, given="a dict")


MAPS = DEFAULTS.keys() - {"nnx.scan"}


@judges_calls(rules.AXIS_SIZES, "jax.lax.scan")
@judges_calls(rules.SCAN_LENGTH, "jax.lax.scan")
def axes_of_scan(event: Called, report: Reporter) -> None:
    arguments = given(event)
    xs, node = arguments.get(2, "xs"), arguments.node_of(2, "xs")
    if arguments.starred:
        return
    absent = xs is None or (isinstance(xs, Const) and xs.value is None)
    if absent and arguments.get(3, "length") is None:
        _nothing(event, event.name, event.node, report)
    extents = [Extent(node, 0, size) for size in _sizes(xs, 0)] if xs is not None and node is not None else []
    if not _contradicts(event, event.name, extents, arguments.get(3, "length"), report):
        _compare(event, event.name, extents, None, report)


def _nothing(event: Called, transform: str, node: ast.AST, report: Reporter) -> None:
    if report.rule is rules.SCAN_LENGTH:
        problem = "there is nothing to scan over, and no `length`"
        report(event.frame.module, node, transform=transform, problem=problem)


def _number(value: Value | None) -> int | None:
    return value.value if isinstance(value, Const) and type(value.value) is int else None


def _contradicts(
    event: Called, transform: str, extents: Sequence[Extent], length: Value | None, report: Reporter
) -> bool:
    """Whether the caller says another number of steps than there are elements; reported by the rule about that."""
    asked = _number(length)
    wrong = next((each for each in extents if asked is not None and each.size != asked), None)
    if wrong is not None and report.rule is rules.SCAN_LENGTH:
        problem = f"`length` is {asked}, and there are {wrong.size} elements to scan over"
        report(event.frame.module, wrong.node, transform=transform, problem=problem)
    return wrong is not None


def _compare(event: Called, transform: str, extents: Sequence[Extent], asked: Value | None, report: Reporter) -> None:
    """Report the first axis that has another size than the ones before it, or than the caller says."""
    first, told = _number(asked), "`axis_size`"
    for extent in extents if report.rule is rules.AXIS_SIZES else ():
        path = text_of(extent.node)
        if first is None:
            first, told = extent.size, f"axis {extent.axis} of `{path}`"
        elif extent.size != first:
            other = f"{first} of {told}"
            module, axis, size = event.frame.module, extent.axis, extent.size
            report(module, extent.node, transform=transform, path=path, axis=axis, size=size, other=other)
            return


def _sizes(value: Value, axis: int, depth: int = MAX_NESTING) -> Iterator[int]:
    """The sizes of an axis of all arrays of known shape in a value."""
    value = present(value)
    if isinstance(value, Obj) and value.cls.is_variable:
        value = variable_value(value)
    if isinstance(value, Obj) and value.gained == 1 and axis == 0 and value.extent is not None:
        yield value.extent
    if isinstance(value, (Seq, DictVal)) and value.exact and depth:
        for item in value.items:
            yield from _sizes(item[1] if isinstance(item, tuple) else item, axis, depth - 1)
    shape = value.form.shape if isinstance(value, Array) and value.form is not None else None
    if shape is not None and -len(shape) <= axis < len(shape) and isinstance(size := shape[axis], int):
        yield size
