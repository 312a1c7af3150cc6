"""Groups of things that programs call, for :func:`~nnx_lint.reporting.judges_calls`."""

from __future__ import annotations

from nnx_lint.model.callables import BoundMethod, Transformed
from nnx_lint.model.values import Obj
from nnx_rules import transforms

TRANSFORMED = (Transformed, BoundMethod, Obj)
"""What may be a function under a transform: one, a method under one, and an instance with such a method."""

TRANSFORMING = tuple(
    name
    for name in (*transforms.TRANSFORMS, *transforms.ALIASES)
    if (row := transforms.find(name)) is not None and row.form is transforms.Form.CALL
)
"""The transforms that run a function at once."""
