"""Arrays that a layer has taken: of which size their last axis is, where nothing else says it.

A call ``self.norm(x)`` that does not fail shows how many features ``x`` has, also where ``x`` comes from nobody knows
where. Invariants: only the name that stands in the call learns of it, until it is bound to something else; where paths
meet of which one does not call the layer, nothing is known again.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import forms
from nnx_lint.model.values import Array, ParameterVal, TakenArray, Unknown
from nnx_rules import layers
from nnx_rules.shape_algebra import ANY
from nnx_rules.shapes import UNKNOWN, Form
from nnx_rules.sizes import is_local

if TYPE_CHECKING:
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Obj, Value
    from nnx_rules.shapes import Dimension, Shape


def note(frame: Frame, layer: Obj, args: Arguments, name: str) -> None:
    """Let the name of what a layer was called with stand for an array that the layer takes."""
    value, node = args.get(0), args.node_of(0)
    if not isinstance(node, ast.Name) or value is None or frame.env.names.get(node.id) is not value:
        return
    form = value.form if isinstance(value, Array) and value.form is not None else forms.NOTHING
    length = _taken(layer) if _is_open(value, form.shape) else None
    if length is None:
        return
    array = TakenArray(value.level if isinstance(value, Array) else 0, Form(_ending(form.shape, length), form.dtype))
    array.taker, array.before = (name, frame.module, node), value
    frame.env.names[node.id] = array


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
