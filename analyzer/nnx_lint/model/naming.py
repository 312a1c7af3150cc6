"""What a name, or names with dots between them, stand for where they are written: ``model``, ``self.config.width``.

Invariants: nothing is executed, and nobody is told; a name of which nothing is known, and every other expression, has
no value.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.values import Obj

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Value


def value_at(frame: Frame, node: ast.expr) -> Value | None:
    """The value of a name or a dotted name."""
    if isinstance(node, ast.Name):
        found = frame.env.lookup(node.id)
        return found[1] if found is not None else None
    if isinstance(node, ast.Attribute):
        owner = value_at(frame, node.value)
        attr = attribute_of(owner, node.attr) if isinstance(owner, Obj) else None
        return attr.value if attr is not None else None
    return None
