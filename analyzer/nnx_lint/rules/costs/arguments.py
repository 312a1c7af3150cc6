"""Static arguments that are other ones in each step of training (part of NNX702).

A static argument is part of what a function is compiled for, so the number of the step, handed over as one, has each
step compiled. Where a function takes no steps, as one that runs layer by layer, it may need its number to be static.

Invariants: the loop goes over numbers, the innermost one around the call, which stands in it unconditionally; a loop of
a few rounds that is written so compiles a few times.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.crossing import kept_keywords, kept_positions, statics_known
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.costs.retracing import calls_compiled, innermost_loop
from nnx_lint.rules.program import canonical_of, in_test, statement_of
from nnx_rules.rules import costs as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Env

FEW = 8
"""How many rounds may each be compiled for."""


@judges_calls(rules.STATIC_COUNTER, Transformed, when=calls_compiled)
def static_argument_in_rounds(event: Called, report: Reporter) -> None:
    callee, call = event.callee, event.node
    if not isinstance(callee, Transformed) or not isinstance(callee.func, FuncVal) or not isinstance(call, ast.Call):
        return
    applied, func, module = callee.applied, callee.func, event.frame.module
    if not applied.row.static_options or not statics_known(applied) or None in event.args or in_test(event.frame):
        return
    loop = innermost_loop(event.frame, call)
    number = _number_of_round(event.frame.env, loop) if isinstance(loop, ast.For) else None
    if number is None or not isinstance(loop, ast.For) or statement_of(module, call) not in loop.body:
        return
    if not any(isinstance(value, Obj) and value.cls.derives_from("nnx.Optimizer") for value in event.args):
        return
    kept = kept_positions(applied, func, len(event.args))
    named = kept_keywords(applied, func, event.keywords)
    given = [node for place, node in enumerate(event.nodes) if place in kept]
    given += [word.value for word in call.keywords if word.arg in named]
    for node in given:
        if isinstance(node, ast.Name) and node.id == number:
            report(module, node, name=node.id, transform=applied.text, mend=rules.TRACED)
            return


def _number_of_round(env: Env, loop: ast.For) -> str | None:
    """The name of the number that a loop counts, unless it certainly counts a few rounds only."""
    counted = loop.iter
    function = canonical_of(env, counted.func) if isinstance(counted, ast.Call) else None
    if not isinstance(counted, ast.Call) or function not in {"builtins.range", "builtins.enumerate"}:
        return None
    target = loop.target
    if function == "builtins.enumerate":
        target = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
    else:
        ends = [item.value for item in counted.args if isinstance(item, ast.Constant) and isinstance(item.value, int)]
        if len(ends) == len(counted.args) and len(range(*ends)) <= FEW:
            return None
    return target.id if isinstance(target, ast.Name) else None
