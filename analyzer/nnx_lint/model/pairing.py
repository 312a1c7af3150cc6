"""Where the values of an operator come from: from the layer whose values it goes on with, or from itself, where it sets
a row of numbers beside the column that a layer gives, each beside each.

A layer with one output gives a column, ``(batch, 1)``. Together with a row, ``(batch,)``, that makes a square of which
nothing says that it is none of the examples any more: the next operator, and the mean at the end, take it as it is.

Invariants: what is said of a square is certain, so both sizes are known as numbers and no layer made the row; that it
is a mistake is not said here, because a program may want the square.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.forms import held_array, literal
from nnx_lint.model.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

    Maker = tuple[str, Module, ast.AST]


def traced(frame: Frame, node: ast.BinOp, left: Value, right: Value, result: Value) -> Value:
    """The result of an operator, with what it comes from."""
    if isinstance(result, Array) and result.form is not None and result.form.shape is not None:
        sides = [held_array(left), held_array(right)]
        square = not isinstance(node.op, ast.MatMult) and _is_square(sides)
        text = frame.module.source.segment(node) if square else ""
        result.maker = (text, frame.module, node) if square else kept(sides, result)
    return result


def kept(sides: Sequence[Value | None], result: Array) -> Maker | None:
    """What the operands come from of which a result has the shape; a square before others."""
    shape = literal(result).shape
    alike = [side for side in sides if isinstance(side, Array) and side.maker and literal(side).shape == shape]
    return next((side.maker for side in sorted(alike, key=lambda side: square_in(side) is None)), None)


def square_in(array: Array) -> ast.BinOp | None:
    """The operator that set a row beside a column, of which an array holds each with each."""
    node = array.maker[2] if array.maker is not None else None
    return node if isinstance(node, ast.BinOp) else None


def _is_square(sides: list[Value]) -> bool:
    """Whether of two operands one is the column of a layer, and the other a row of as many that no layer gives."""
    for column, row in (sides, sides[::-1]):
        if not isinstance(column, Array) or not isinstance(row, Array) or not column.maker or row.maker:
            continue
        shape, beside = literal(column).shape, literal(row).shape
        if beside and shape == (*beside, 1) and all(isinstance(size, int) and size > 1 for size in beside):
            return square_in(column) is None
    return False
