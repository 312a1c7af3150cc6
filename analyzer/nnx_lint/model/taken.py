"""Arrays that a layer has taken: of which size their last axis is, where nothing else says it.

A call ``self.norm(x)`` that does not fail shows how many features ``x`` has, also where ``x`` comes from nobody knows
where. Invariants: the name that stands in the call learns of it, until it is bound to something else, and where the
function has named that size (``b, t, dim = x.shape``) so does what has it by this name; where paths meet of which one
does not call the layer, nothing is known again.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from nnx_lint.model import forms
from nnx_lint.model.symbols import numbered
from nnx_lint.model.values import Array, ParameterVal, TakenArray, Unknown
from nnx_rules import layers
from nnx_rules.shape_algebra import ANY
from nnx_rules.shapes import UNKNOWN, Form
from nnx_rules.sizes import Size, is_local, named, solved, where

if TYPE_CHECKING:
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Obj, Value
    from nnx_rules.shapes import Dimension, Shape


def note(frame: Frame, layer: Obj, args: Arguments, name: str) -> Value | None:
    """Let the name of what a layer was called with stand for an array that the layer takes; what that is."""
    value, node = args.get(0), args.node_of(0)
    if value is None:
        return None
    form = value.form if isinstance(value, Array) and value.form is not None else forms.NOTHING
    length = _taken(layer) if _is_open(value, form.shape) else None
    if length is None:
        return value
    array = TakenArray(value.level if isinstance(value, Array) else 0, Form(_ending(form.shape, length), form.dtype))
    if isinstance(node, ast.Name) and frame.env.names.get(node.id) is value:
        array.taker, array.before = (name, frame.module, node), value
        frame.env.names[node.id] = array
    found = solved(form.shape[-1], length) if form.shape else None
    if found is not None:
        _settle(frame.env.names, *found)
    return array


def _settle(names: dict[str, Value], name: str, length: Dimension) -> None:
    """Put in what a layer has shown a size to be that the function itself has named."""

    def stands_for(other: str) -> Dimension:
        return length if other == name else named(other)

    for key, value in names.items():
        if value.symbol is not None and is_local(value.symbol):
            size = where(value.symbol, stands_for)
            names[key] = numbered(size, like=value)
        elif isinstance(value, Array) and value.form is not None and any(map(is_local, value.form.shape or ())):
            known = names[key] = copy.copy(value)
            shape = (where(item, stands_for) if isinstance(item, Size) else item for item in value.form.shape or ())
            known.form = Form(tuple(shape), value.form.dtype)


def by_now(frame: Frame, node: ast.expr, value: Value) -> Value:
    """What is known of an operand when the other one has been computed, too: ``x + self.layer(x)``."""
    found = frame.env.names.get(node.id) if isinstance(node, ast.Name) else None
    return found if isinstance(found, TakenArray) and found.before is value else value


def _is_open(value: Value, shape: Shape | None) -> bool:
    """Whether a value may be an array whose last axis has any size, for all that is known."""
    any_size = shape is None or (bool(shape) and (shape[-1] in (UNKNOWN, ANY) or is_local(shape[-1])))
    return any_size and (type(value) in {Array, ParameterVal, Unknown} or _is_measured(value))


def _is_measured(value: Value) -> bool:
    """Whether all that is known of an array is what the program asked it for, and no layer has taken it."""
    return isinstance(value, TakenArray) and value.taker is None


def _ending(shape: Shape | None, length: Dimension) -> Shape:
    before = shape if shape is not None else (ANY,)
    return (*(before if before[-1] == ANY else before[:-1]), length)


def _taken(layer: Obj) -> Dimension | None:
    """The size of the last axis of what a layer takes."""
    cls, arguments = layer.cls.works_as, forms.sizes(layer) if forms.is_original(layer) else None
    return layers.taken(cls.canonical, arguments) if cls is not None and arguments is not None else None
