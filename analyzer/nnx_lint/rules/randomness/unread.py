"""A half of a key that a call gets in the place of the other one, which nothing reads (NNX519).

``key, sub = jax.random.split(key)`` makes ``sub`` for one use and keeps ``key`` for later. Where ``key`` itself goes
into a call, and ``sub`` nowhere, the numbers of that call depend on those that come of ``key`` afterwards. What the
call does is not known, as with a policy or an environment that is given; what the split was for tells that it draws.

Invariants: nothing reads the other half before its name is bound anew, on no way through the function; the half that
the call gets is used once more, in another call or by whoever gets it back. What only writes down, looks at or keeps a
key draws nothing. Where the call is of a function of the project that draws, :mod:`~nnx_lint.rules.randomness.drawing`
knows more.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    block_of,
    canonical_of,
    enclosing,
    follows,
    in_test,
    resolved,
    statement_of,
)
from nnx_lint.rules.randomness.drawing import Keys, function_of, given_for
from nnx_lint.rules.randomness.keys import SPLIT
from nnx_lint.rules.randomness.reuse import consumes
from nnx_lint.rules.randomness.selected import apart
from nnx_lint.rules.readers import reads_after
from nnx_lint.rules.repeating import goes_on, loop_around
from nnx_lint.syntax.binding import names_in
from nnx_lint.syntax.places import begin
from nnx_rules.rules import rngs as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

INSTEAD = "here and once more, and `{}`, which the split made for one use, is not"
SECOND = "a second time here, and `{}`, which the split made for the first use, is not"

EACH_TIME = "in each round alike, and `{}`, which the split made for the rounds, nowhere"

KEEPING = re.compile(
    r"[A-Z]|add|append|array|asarray|assert|block_until|check|debug|device_put|format|info|isinstance|len|log|partial$|"
    r"print|put|_?replace|repr|save|set$|set_|store|str$|type$|update_key|warn|write"
)
"""How functions are called, from the first letter on, that draw nothing from what they get."""

MEANT_FOR_NONE = re.compile(r"_|dummy|ignored?|spare|unused")
"""How halves are called, from the first letter on, that nothing is to read."""


@judges_calls(rules.KEY_REUSED, SPLIT)
def half_in_place_of_other(event: Called, report: Reporter) -> None:
    frame, split, module = event.frame, event.node, event.frame.module
    statement = next(ancestors(module, split), None)
    halves = _halves(statement)
    scope = enclosing(module, split, *FUNCTIONS, ast.Module)
    if len(halves) < 2 or not isinstance(statement, ast.Assign) or scope is None or in_test(frame):
        return
    other = next(
        (name for name in halves if not MEANT_FOR_NONE.match(name) and not reads_after(module, scope, name, statement)),
        None,
    )
    for name in halves if other is not None else ():
        uses = reads_after(module, scope, name, statement)
        taken = next((use for use in uses if _may_draw(frame, use, report)), None)
        if taken is None and name in names_in(split):  # where no round comes after, `keys` knows more
            taken = next((use for use in uses if _draws_in_round(frame, use, split)), None)
        again = next((use for use in uses if taken is not None and _is_once_more(frame, taken, use, statement)), None)
        if taken is not None and again is not None:
            if statement_of(module, again) is statement or begin(again) < begin(statement):
                where = (related(module, again, "the use in the next round"),)
                report(module, taken, name=name, again=INSTEAD.format(other), related=where)
            else:
                first, second = sorted((taken, again), key=begin)
                where = (related(module, first, "the first use"),)
                report(module, second, name=name, again=SECOND.format(other), related=where)
            return


@judges_calls(rules.KEY_REUSED, SPLIT)
def whole_in_place_of_parts(event: Called, report: Reporter) -> None:
    """``keys = jax.random.split(key, n)``, and each round of a loop gives ``key`` itself to what it calls."""
    frame, split, module = event.frame, event.node, event.frame.module
    bound = bound_to(module, split)
    scope = enclosing(module, split, *FUNCTIONS, ast.Module)
    source = split.args[0] if isinstance(split, ast.Call) and split.args else None
    if bound is None or scope is None or not isinstance(bound.target, ast.Name) or not isinstance(source, ast.Name):
        return
    parts, statement = bound.target.id, bound.statement
    if parts == source.id or MEANT_FOR_NONE.match(parts) or in_test(frame):
        return
    if reads_after(module, scope, parts, statement):
        return
    for use in reads_after(module, scope, source.id, statement):
        loop = loop_around(module, use, source.id)
        if loop is not None and begin(statement) < begin(loop) and _may_draw(frame, use, report):
            where = (related(module, statement, "the keys are made here"),)
            report(module, use, name=source.id, again=EACH_TIME.format(parts), related=where)
            return


def _halves(statement: ast.AST | None) -> list[str]:
    """The names that a statement binds to the parts of what it splits, where it binds nothing else."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return names if len(names) == len(parts) else []


def _may_draw(frame: Frame, use: ast.Name, report: Reporter) -> bool:
    """Whether a call gets a key for itself that may draw from it, and is of nothing that is known better."""
    module = frame.module
    outer, around, *_ = [*ancestors(module, use), None, None]
    call = around if isinstance(outer, ast.keyword) else outer
    if not isinstance(call, ast.Call) or not isinstance(call.func, (ast.Name, ast.Attribute)) or call.func is use:
        return False
    name = canonical_of(frame.env, call.func)
    last = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
    if (name or "").startswith(("jax.", "numpy.")) or (KEEPING.match(last) and name != "nnx.Rngs"):
        return False
    callee = function_of(resolved(frame.env, call.func))
    if callee is None:
        return True
    drawn = report.memory(Keys).drawn_from(callee.func)
    parameters = [parameter for parameter, node in given_for(call, callee) if node is use]
    return bool(parameters) and not any(parameter in drawn for parameter in parameters)


def _draws_in_round(frame: Frame, use: ast.Name, split: ast.AST) -> bool:
    """Whether a function of JAX draws from a key in the loop that splits that key in the next round."""
    call, module = next(ancestors(frame.module, use), None), frame.module
    name = canonical_of(frame.env, call.func) if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or name == SPLIT or not consumes(name):
        return False
    first, last = (enclosing(module, node, *STATEMENT_LOOPS, *FUNCTIONS) for node in (split, use))
    return isinstance(first, STATEMENT_LOOPS) and first is last


def _is_once_more(frame: Frame, taken: ast.Name, use: ast.Name, made: ast.Assign) -> bool:
    """Whether a key is used besides in a call: in another one, or by whoever it is returned to."""
    module = frame.module
    if use is taken or enclosing(module, use, *FUNCTIONS, ast.Module) is not enclosing(
        module, taken, *FUNCTIONS, ast.Module
    ):
        return False
    outer = next(ancestors(module, use), None)
    is_use = isinstance(outer, (ast.Call, ast.keyword, ast.Return, ast.Tuple))
    if isinstance(outer, ast.Call) and canonical_of(frame.env, outer.func) == "jax.random.fold_in":
        return False  # what it makes of the key is apart from what is drawn from the key
    here, there = statement_of(module, taken), statement_of(module, use)
    if not is_use or here is None or there is None or here is there:
        return False
    if there is made:
        return True
    first, second = sorted((here, there), key=begin)
    return _leads_to(module, first, second) and not apart(module, frame.env, taken, use)


def _leads_to(module: Module, first: ast.stmt, second: ast.stmt) -> bool:
    """Whether a statement may run after another one in the same round, whatever blocks that one stands in."""
    for item in (first, *ancestors(module, first)):
        if isinstance(item, FUNCTIONS):
            return False
        if isinstance(item, ast.stmt):
            if follows(module, item, second):
                return True
            if not goes_on(block_of(module, item)):
                return False
    return False
