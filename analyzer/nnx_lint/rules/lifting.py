"""The transform of ``nnx`` in the place of that of ``jax``: the mend of much that ``jax`` does to objects.

Invariant: the fix is made only where the options that are written mean the same for both.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.callables import BoundMethod, Transformed
from nnx_lint.rules.edits import replace
from nnx_lint.rules.program import canonical_of
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module

_GRADIENT = frozenset({"argnums", "has_aux"})
SAME_OPTIONS = {
    "jax.jit": frozenset({"static_argnums", "static_argnames", "donate_argnums", "donate_argnames"}),
    "jax.grad": _GRADIENT,
    "jax.value_and_grad": _GRADIENT,
}
"""The transforms of ``jax`` with a counterpart in ``nnx``, and the options that both have."""


def counterpart(applied: TransformVal, module: Module) -> tuple[ast.expr, str] | None:
    """The expression that names a transform of ``jax``, if it stands in a module, and how to write that of ``nnx``."""
    row = applied.row.name
    if row not in SAME_OPTIONS or not applied.keywords.keys() <= SAME_OPTIONS[row] or applied.module is not module:
        return None
    name = spelled(f"nnx.{row.rpartition('.')[2]}", module)
    named = [
        node
        for node in walk(applied.node)
        if isinstance(node, (ast.Name, ast.Attribute)) and canonical_of(module.env, node) == row
    ]
    return (named[0], name) if name is not None and len(named) == 1 else None


def on_nnx(applied: TransformVal, module: Module) -> Fix | None:
    """Use the transform of ``nnx``. Gradients become States, whose parts have no attributes: code may rely on them."""
    found = counterpart(applied, module)
    if found is None:
        return None
    safe = Applicability.SAFE if applied.row.name == "jax.jit" else Applicability.UNSAFE
    return Fix(f"Use `{found[1]}`", replace(module.source, *found), safe)


def on_nnx_call(event: Called, *rows: str) -> Fix | None:
    """Use the transform of ``nnx`` for a function that is called, if it is under one of these of ``jax``."""
    callee = event.callee.func if isinstance(event.callee, BoundMethod) else event.callee
    if not isinstance(callee, Transformed) or callee.applied.row.name not in rows:
        return None
    return on_nnx(callee.applied, event.frame.module)
