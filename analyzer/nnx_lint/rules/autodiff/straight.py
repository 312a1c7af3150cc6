"""Straight-through estimators the wrong way round (NNX480).

``x + stop_gradient(q - x)`` has the value of ``q`` and the gradient of ``x``: an entry of a codebook, a rounded number
or the class of a sample goes on, and the encoder learns as if it were its own output. With the two exchanged the sum
has the value of ``x``: nothing is discrete any more, and nothing is learned through it. With the parentheses in another
place, ``stop_gradient(x + (q - x))`` or ``x + stop_gradient(q) - x``, it is ``q``, and has no gradient at all. With the
difference turned round, ``x + stop_gradient(x - q)``, it is as far from ``x`` as ``q``, on the other side.

Invariants: both are names of one function; of the outer one an index, a rounding or a class is certainly computed on
the way to it, of the other one nothing of that kind. Where all that is added is taken off again, nobody can have meant
anything else.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.expressions import text_of
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import values_in
from nnx_lint.rules.program import FUNCTIONS, ancestors, canonical_of, enclosing, in_test
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import autodiff as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Env, Module

_NAMES = ("argmax", "argmin", "ceil", "floor", "rint", "round", "sign")
DISCRETE = frozenset({*(f"jax.numpy.{name}" for name in _NAMES), "jax.nn.one_hot", "nnx.one_hot"})
"""Functions that make numbers discrete."""

MAX_NAMES = 4
"""How many names lie on the way from a value to what it is computed from."""


@judges_calls(rules.STRAIGHT_THROUGH_SWAPPED, "jax.lax.stop_gradient")
def straight_through_swapped(event: Called, report: Reporter) -> None:
    module, node = event.frame.module, event.node
    inner = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 else None
    outer = next(ancestors(module, node), None)
    if in_test(event.frame):
        return
    cancelled = _cancelled(module, node, inner)
    if cancelled is not None:
        whole, added, value = cancelled
        problem = f"the value of `{value}` and no gradient: `{added}` is added and taken off again"
        report(module, whole, text=ast.unparse(whole), problem=problem, raw=added, hard=value)
        return
    if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Sub):
        return
    if not isinstance(outer, ast.BinOp) or not isinstance(outer.op, ast.Add):
        return
    raw, hard = inner.left, outer.left if outer.right is node else outer.right
    scope = enclosing(module, node, *FUNCTIONS)
    if scope is None or not isinstance(raw, ast.Name) or not isinstance(hard, ast.Name):
        return
    problem = f"the value of `{raw.id}` and the gradient of `{hard.id}`: what computes `{raw.id}` gets none"
    if isinstance(inner.right, ast.Name) and hard.id == raw.id:
        hard = inner.right
        problem = f"the value of `2 * {raw.id} - {hard.id}`, which lies on the other side of `{raw.id}`"
    if not is_name(inner.right, hard.id) or not _is_discrete(scope, event.frame.env, hard):
        return
    if _is_discrete(scope, event.frame.env, raw):
        return
    report(module, outer, text=text_of(outer), problem=problem, raw=raw.id, hard=hard.id)


def _cancelled(module: Module, node: ast.AST, inner: ast.expr | None) -> tuple[ast.expr, str, str] | None:
    """A sum that ends where it began, with the name that is in it twice, and the other one: all of it is behind
    ``stop_gradient``, or of ``x + stop_gradient(q) - x`` the discrete value alone.
    """
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add) and isinstance(node, ast.expr):
        for raw, gap in ((inner.left, inner.right), (inner.right, inner.left)):
            if not isinstance(raw, ast.Name) or not isinstance(gap, ast.BinOp) or not isinstance(gap.op, ast.Sub):
                continue
            if isinstance(gap.left, ast.Name) and is_name(gap.right, raw.id):
                return node, raw.id, gap.left.id
    added, whole = (*ancestors(module, node), None, None)[:2]
    if isinstance(inner, ast.Name) and isinstance(added, ast.BinOp) and isinstance(whole, ast.BinOp):
        raw = added.left if added.right is node else added.right
        both = isinstance(added.op, ast.Add) and isinstance(whole.op, ast.Sub) and whole.left is added
        if both and isinstance(raw, ast.Name) and is_name(whole.right, raw.id):
            return whole, raw.id, inner.id
    return None


def _is_discrete(scope: ast.AST, env: Env, name: ast.Name) -> bool:
    """Whether something discrete is computed on the way to a name: in what it is bound to, or in a name there."""
    values, seen, todo = values_in(scope), {name.id}, [name.id]
    for _ in range(MAX_NAMES):
        found = [part for each in todo for value in values.get(each, ()) for part in walk(value)]
        if any(isinstance(part, ast.Call) and canonical_of(env, part.func) in DISCRETE for part in found):
            return True
        todo = [part.id for part in found if isinstance(part, ast.Name) and part.id not in seen]
        seen.update(todo)
    return False
