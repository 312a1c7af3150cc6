"""Conditions on arguments of compiled functions that no file calls (part of NNX465): ``if x > 0``, of a traced ``x``.

What is called is known from the call. A function under ``@jax.jit`` of a library may be called by nobody who is seen;
what it gets for a parameter without a default is traced all the same, unless an option says otherwise.

Invariants: the parameter is compared with a number, as it is: nothing binds its name anew, it has no default that could
stay what it is, and it is not static. What is asked of it besides, such as its shape, is known.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.crossing import kept_positions, statics_known
from nnx_lint.model.events import TransformApplied
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.program import assigned_in, is_tried, own_nodes, parameters_in
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_rules.rules import autodiff as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPILING = frozenset({"jax.jit", "nnx.jit"})
ASKING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@judges(rules.TRACED_FLAG, TransformApplied, when=lambda event: event.how == "decorator")
def argument_decides(event: TransformApplied, report: Reporter) -> None:
    applied, func = event.applied, event.func
    if applied.row.name not in COMPILING or not isinstance(func, FuncVal) or func.wraps is not None:
        return
    if not statics_known(applied) or len(func.node.args.args) < 1 or not isinstance(func.node, ast.FunctionDef):
        return
    names = syntax_parameters.positional_names(func.node.args)
    required = names[: len(names) - len(func.node.args.defaults)]
    kept = kept_positions(applied, func, len(names))
    bound = assigned_in(func.node)
    traced = {name for place, name in enumerate(required) if place not in kept and not bound[name]}
    traced = {name for name in traced if parameters_in(func.node)[name] == 1}
    for test in _conditions(func.node) if traced else ():
        found = next((name for name in (_compared(test, name) for name in sorted(traced)) if name), None)
        if found is not None and not is_tried(func.module, test):
            what = f"an argument of a function under `{applied.text}`"
            static = f'`static_argnames="{found}"`'
            mend = f"choose by the value, `jnp.where(condition, a, b)`, or make `{found}` static: {static}"
            report(func.module, test, name=found, what=what, mend=mend)
            return


def _conditions(func: ast.FunctionDef) -> Iterator[ast.expr]:
    """The expressions of a function whose truth it asks for whenever it comes there."""
    for node in own_nodes(func):
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            yield from _first(node.test)
        elif isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            yield from _first(node)
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            yield node


def _first(test: ast.expr) -> Iterator[ast.expr]:
    """What is asked first, whatever comes of it."""
    while isinstance(test, (ast.BoolOp, ast.UnaryOp)):
        if isinstance(test, ast.UnaryOp) and not isinstance(test.op, ast.Not):
            return
        test = test.values[0] if isinstance(test, ast.BoolOp) else test.operand
    yield test


def _compared(test: ast.expr, name: str) -> str | None:
    """The name, where a comparison asks whether what it stands for is more or less than a number."""
    if not isinstance(test, ast.Compare) or not all(isinstance(op, ASKING) for op in test.ops):
        return None
    sides = [test.left, *test.comparators]
    named = [side for side in sides if isinstance(side, ast.Name)]
    others = [side for side in sides if not isinstance(side, ast.Name)]
    numbers = all(
        isinstance(side, ast.Constant) and isinstance(side.value, (int, float)) and not isinstance(side.value, bool)
        for side in others
    )
    return name if len(named) == 1 and named[0].id == name and others and numbers else None
