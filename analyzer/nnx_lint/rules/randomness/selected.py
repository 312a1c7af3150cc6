"""Values of which one is taken and the other left: the arms of a conditional expression, and of the functions that take
each element from one array or from another; and those under conditions that contradict each other. The same random
numbers in both are no mistake: only one of them is seen.

Invariants: a value is followed to what it is part of, and through names that are bound once and read once.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING, NamedTuple

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
    if _never_both(list(conditions(module, one)), list(conditions(module, other))):
        return True
    parts = dict(parts_around(module, one))
    shared = next((pair for pair in parts_around(module, other) if pair[0] in parts), None)
    if shared is None or shared[1] is parts[shared[0]]:
        return False
    return all(_is_arm(module, env, shared[0], part) for part in (shared[1], parts[shared[0]]))


class Condition(NamedTuple):
    """A test, and how it turns out where a value is computed; ``option`` is what ``test == option`` compares with: a
    constant, or what is written.
    """

    test: str
    holds: bool
    option: str | ast.Constant | None = None


def conditions(module: Module, node: ast.AST) -> Iterator[Condition]:
    """The conditions around an expression, in its function."""
    inner = node
    for outer in ancestors(module, node):
        if isinstance(outer, FUNCTIONS):
            return
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
            body = outer.body if isinstance(outer, ast.If) else [outer.body]
            yield _condition(outer.test, holds=any(inner is part for part in body))
        inner = outer


def _condition(test: ast.expr, *, holds: bool) -> Condition:
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, holds = test.operand, not holds
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        (right,), denies = test.comparators, isinstance(test.ops[0], (ast.NotEq, ast.IsNot))
        if denies or isinstance(test.ops[0], (ast.Eq, ast.Is)):
            return Condition(
                ast.dump(test.left),
                holds is not denies,
                right if isinstance(right, ast.Constant) else ast.dump(right),
            )
    return Condition(ast.dump(test), holds)


def _never_both(some: list[Condition], others: list[Condition]) -> bool:
    """Whether conditions contradict each other: one test with two outcomes, or one value with two constants."""
    for one, other in itertools.product(some, others):
        if one.test == other.test:
            constants = isinstance(one.option, ast.Constant) and isinstance(other.option, ast.Constant)
            same = _value(one.option) == _value(other.option)
            if (same and one.holds is not other.holds) or (constants and not same and one.holds and other.holds):
                return True
    return False


def _value(option: str | ast.Constant | None) -> object:
    return (option.value,) if isinstance(option, ast.Constant) else option


def parts_around(module: Module, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
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
