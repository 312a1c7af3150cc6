"""Groups of things that programs call, for :func:`~nnx_lint.reporting.judges_calls`."""

from __future__ import annotations

from nnx_lint.model.callables import BoundMethod, Transformed
from nnx_lint.model.values import Obj
from nnx_lint.rules.traces.mends import COMPILING
from nnx_rules import transforms

TRANSFORMED = (Transformed, BoundMethod, Obj)
"""What may be a function under a transform: one, a method under one, and an instance with such a method."""

HARMLESS = frozenset({"donate_argnames", "donate_argnums"})
"""Options of a compilation that leave each argument what it is."""


def compiled_by(called: Transformed) -> Transformed:
    """What a function under a transform runs with the arguments as they are: what is within, where it only compiles."""
    while called.applied.row.name in COMPILING and isinstance(called.func, Transformed):
        if called.applied.keywords.keys() - HARMLESS:
            break
        called = called.func
    return called


TRANSFORMING = tuple(
    name
    for name in (*transforms.TRANSFORMS, *transforms.ALIASES)
    if (row := transforms.find(name)) is not None and row.form is transforms.Form.CALL
)
"""The transforms that run a function at once."""
