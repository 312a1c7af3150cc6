"""Axes that a function reads off an array of which it knows nothing: ``batch, length, _ = x.shape``.

Such a statement does not fail, so the array has that many axes, and from then on the sizes of those are known by the
names that the function gives them (:mod:`nnx_rules.sizes`): ``x.reshape(batch, length, self.heads, self.width)`` can be
told from the shape that ``x`` has. An axis that nobody wants has no name: a layer may say how large it is.

What is given a new shape, ``x.reshape(batch, length, -1)``, is an array too, and so is the result.

Invariants: only the name whose shape is read learns of it, until it is bound to something else; a name of a size stands
for one number, so nothing is named in the rounds of a loop, and the name holds its place in the program; what may be an
array of another library stays unknown.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import forms
from nnx_lint.model.values import Array, Obj, ParameterVal, TakenArray, Unknown
from nnx_rules.shape_algebra import ANY
from nnx_rules.shapes import UNKNOWN, Form
from nnx_rules.sizes import named

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.model.values import Value
    from nnx_rules.shapes import Dimension, Shape


def measured(interp: Interpreter, frame: Frame, node: ast.Assign, value: Value) -> Value:
    """The shape that a statement takes apart, which names its sizes; any other value is what it is."""
    asked, target = node.value, node.targets[0]
    if not isinstance(asked, ast.Attribute) or asked.attr != "shape" or not isinstance(asked.value, ast.Name):
        return value
    held = frame.env.names.get(asked.value.id)
    if not isinstance(target, (ast.Tuple, ast.List)) or held is None or interp.rolled or not _may_be_any(frame, held):
        return value
    names = [item.id if isinstance(item, ast.Name) else None for item in target.elts]
    shape = held.form.shape if isinstance(held, Array) and held.form is not None else None
    axes = _axes(shape, names, node.lineno) if None not in names else None
    if axes is None or axes == shape:
        return value
    known = held if isinstance(held, Array) else Array(0)
    array = TakenArray(known.level, Form(axes, known.form.dtype if known.form is not None else None))
    array.before = held
    frame.env.names[asked.value.id] = array
    return forms.shape_value(array, frame.level)


ARRANGING = frozenset({"reshape", "swapaxes", "transpose"})
"""Methods that arrays have, and that say by what they are given how the result is shaped."""


def arranged(frame: Frame, node: ast.Call, owner: Value) -> Value:
    """Of what a method is called: a value of which nothing is known is an array where it is given another shape."""
    rearranges = type(owner) in {ParameterVal, Unknown} and isinstance(node.func, ast.Attribute) and len(node.args) > 1
    if not rearranges or not isinstance(node.func, ast.Attribute) or node.func.attr not in ARRANGING:
        return owner
    return Array(0) if frame.initializing is None and _may_be_any(frame, owner) else owner


def _may_be_any(frame: Frame, value: Value) -> bool:
    """Whether a value is an array of JAX of any shape: what a method of a module gets is one, elsewhere it may be of
    another library.
    """
    if type(value) in {Array, TakenArray}:
        return True
    owner = frame.receiver if type(value) in {ParameterVal, Unknown} else None
    return isinstance(owner, Obj) and owner.cls.derives_from("nnx.Module")


def _axes(shape: Shape | None, names: list[str | None], line: int) -> Shape | None:
    """The axes of an array that has as many as there are names."""
    known = shape if shape is not None else (ANY,)
    stars = [place for place, item in enumerate(known) if str(item).startswith("*")]
    missing = len(names) - len(known) + len(stars)
    if len(stars) > 1 or missing < 0 or (missing and not stars):
        return None
    whole: list[Dimension] = list(known)
    if stars:
        whole[stars[0] : stars[0] + 1] = [UNKNOWN] * missing
    return tuple(
        named(f"{name}@{line}") if item == UNKNOWN and name is not None and not name.startswith("_") else item
        for item, name in zip(whole, names, strict=True)
    )
