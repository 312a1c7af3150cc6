"""Variables where JAX takes arrays.

JAX takes a Variable wherever it takes an array, although it is none: to mypy it becomes one *by promotion*, as an
``int`` is a ``float``.
"""

from __future__ import annotations

from mypy.nodes import TypeInfo
from mypy.plugin import ClassDefContext
from mypy.types import Instance

from nnx_mypy.library import ARRAY

VARIABLE = "Variable"


def promote(context: ClassDefContext) -> None:
    """Let a Variable, and what inherits from it, be used as an array."""
    info = context.cls.info
    array = context.api.lookup_fully_qualified_or_none(ARRAY)
    if not info._promote and array is not None and isinstance(array.node, TypeInfo):
        info._promote.append(Instance(array.node, []))
