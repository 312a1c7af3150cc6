"""Groups of things that programs call, for :func:`~nnx_lint.reporting.judges_calls`, and what a call calls."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.values import ClassVal, Obj
from nnx_lint.rules.program import resolved
from nnx_lint.rules.traces.mends import COMPILING
from nnx_lint.syntax.binding import is_name
from nnx_rules import transforms

if TYPE_CHECKING:
    from nnx_lint.model.modules import Env
    from nnx_lint.model.values import Value

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


def called_value(env: Env, func: ast.expr) -> Value | None:
    """What a call of an expression calls: what a name means, or the method of an object or of a class by name."""
    found = resolved(env, func)
    if found is not None or not isinstance(func, ast.Attribute):
        return found
    owner = resolved(env, func.value)
    cls = owner.cls if isinstance(owner, (Obj, ClassVal)) else None
    if not isinstance(cls, UserClass):
        return None
    method = cls.find(func.attr)
    return method[1] if method is not None else None


def is_of_only_base(cls: UserClass, func: ast.expr) -> bool:
    """Whether what is called in a class is of its base, ``super().__call__``, and no other class may stand between."""
    owner = func.value if isinstance(func, ast.Attribute) else None
    if not isinstance(owner, ast.Call) or not is_name(owner.func, "super"):
        return False
    return len(cls.node.bases) == 1 and not cls.module.project.heirs.mix(cls.name)


TRANSFORMING = tuple(
    name
    for name in (*transforms.TRANSFORMS, *transforms.ALIASES)
    if (row := transforms.find(name)) is not None and row.form is transforms.Form.CALL
)
"""The transforms that run a function at once."""
