"""Values of which one is taken and the other left: the arms of a conditional expression, and of the functions that take
each element from one array or from another. The same random numbers in both are no mistake: only one of them is seen.

Invariants: a value is followed to what it is part of, and through names that are bound once and read once.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.program import FUNCTIONS, ancestors, assigned_in, canonical_of, enclosing, keyword_node, reads_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.modules import Env, Module

SELECT = "jax.numpy.select"

SELECTING = frozenset({SELECT, "jax.numpy.where", "jax.lax.select", "jax.lax.select_n"})
"""Functions whose first argument says which of the others an element is taken from."""

DECIDING = frozenset({"condition", "condlist", "pred", "which"})
"""What the first argument of them is called."""


def apart(module: Module, env: Env, one: ast.AST, other: ast.AST) -> bool:
    """Whether two values go into different arms, only one of which is taken."""
    parts = dict(_outwards(module, one))
    shared = next((pair for pair in _outwards(module, other) if pair[0] in parts), None)
    if shared is None or shared[1] is parts[shared[0]]:
        return False
    return all(_is_arm(module, env, shared[0], part) for part in (shared[1], parts[shared[0]]))


def _outwards(module: Module, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The expressions that a value is part of, each with the part that it is in."""
    while True:
        read = _read_of(module, node)
        if read is not None:
            node = read
            continue
        outer = next(ancestors(module, node), None)
        if outer is None or isinstance(outer, (ast.stmt, *FUNCTIONS)):
            return
        yield outer, node
        node = outer


def _read_of(module: Module, node: ast.AST) -> ast.Name | None:
    """The one place where a name is read that takes a value, and no other one."""
    bound = bound_to(module, node)
    if bound is None or not isinstance(bound.target, ast.Name):
        return None
    scope, name = enclosing(module, bound.target, *FUNCTIONS) or module.tree, bound.target.id
    reads = reads_of(scope, name) if assigned_in(scope)[name] == 1 else []
    return reads[0] if len(reads) == 1 and reads[0].lineno > bound.target.lineno else None


def _is_arm(module: Module, env: Env, outer: ast.AST, inner: ast.AST) -> bool:
    """Whether a part of an expression is taken, or left for another one."""
    if isinstance(outer, ast.IfExp):
        return inner is not outer.test
    if isinstance(outer, (ast.List, ast.Tuple)):
        call = enclosing(module, outer, ast.Call)
        if call is None or canonical_of(env, call.func) != SELECT:
            return False
        return outer in (keyword_node(call, "choicelist"), *call.args[1:2])
    if not isinstance(outer, ast.Call) or canonical_of(env, outer.func) not in SELECTING:
        return False
    return inner.arg not in DECIDING if isinstance(inner, ast.keyword) else inner in outer.args[1:]
