"""Calls under ``nnx.capture``: what it captures, and whether the running function was called through it.

Invariants: where the function of a call is not known, it may be a captured one, so nothing is concluded.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, PartialVal, Transformed
from nnx_lint.model.classes import library_class
from nnx_lint.model.values import ClassVal, Obj
from nnx_lint.rules.program import canonical_of, resolved
from nnx_rules.records import Record

if TYPE_CHECKING:
    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env
    from nnx_lint.model.values import Value

CAPTURE = "nnx.capture"
VARIABLE = library_class("nnx.Variable")


class Capture(Record):
    """A call of ``nnx.capture``: the types of Variables that it captures, ``None`` where one is not known."""

    node: ast.Call
    types: tuple[ClassBase | None, ...]

    @property
    def counted(self) -> bool:
        """Whether it is known how many types there are."""
        return not any(isinstance(item, ast.Starred) for item in self.node.args)


def capture_at(env: Env, node: ast.expr) -> Capture | None:
    """The ``nnx.capture`` whose result an expression is: the call itself, a decorated function, a name of either."""
    if isinstance(node, ast.Call):
        if canonical_of(env, node.func) == CAPTURE:
            return _read(env, node)
        return capture_at(env, node.func)
    value = resolved(env, node)
    while isinstance(value, (Transformed, PartialVal, BoundMethod)):
        if isinstance(value, Transformed) and value.applied.row.name == CAPTURE:
            made = value.applied.node
            return _read(env, made) if isinstance(made, ast.Call) else None
        value = value.func
    return None


def _read(env: Env, call: ast.Call) -> Capture:
    values = [resolved(env, item) for item in call.args]
    first = bool(values) and _variable_type(values[0]) is None
    return Capture(call, tuple(_variable_type(value) for value in values[1 if first else 0 :]))


def _variable_type(value: Value | None) -> ClassBase | None:
    if isinstance(value, ClassVal) and VARIABLE is not None and VARIABLE in value.cls.ancestors:
        return value.cls
    return None


def capture_around(frame: Frame) -> Capture | bool:
    """The innermost capture that the running function was called through; ``False`` where there certainly is none, and
    ``True`` where that is not known.
    """
    current: Frame | None = frame
    while current is not None:
        call, caller = current.call, current.caller
        if isinstance(call, ast.Call) and caller is not None:
            found = capture_at(caller.env, call.func)
            if found is not None:
                return found
            if not _is_known(caller.env, call.func):
                return True
        current = caller
    return False


def _is_known(env: Env, func: ast.expr) -> bool:
    """Whether an expression certainly is no captured function."""
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call):
        return True  # `super().f(...)`, `make().f(...)`
    if isinstance(func, ast.Attribute) and not isinstance(resolved(env, func), Transformed):
        return resolved(env, func) is not None or isinstance(resolved(env, func.value), Obj)
    if isinstance(func, ast.Call):
        inner = canonical_of(env, func.func)
        return inner is not None or resolved(env, func.func) is not None
    return resolved(env, func) is not None
