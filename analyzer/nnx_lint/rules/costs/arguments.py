"""Static arguments that are other ones in each step of training (part of NNX702).

A static argument is part of what a function is compiled for, so the number of the step, handed over as one, has each
step compiled. Where a function takes no steps, as one that runs layer by layer, it may need its number to be static: it
does not where it only computes with the number, or the number is a fraction, which is no size and no place.

Invariants: the loop changes the number in each of its rounds, the innermost one around the call, which stands in it
unconditionally; a loop of a few rounds that is written so compiles a few times.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.crossing import kept_keywords, kept_positions, statics_known
from nnx_lint.model.modules import Env
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.costs.retracing import calls_compiled, innermost_loop
from nnx_lint.rules.program import ancestors, canonical_of, in_test, reads_of, statement_of
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import costs as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

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
    if loop is None or statement_of(module, call) not in loop.body:
        return
    kept = kept_positions(applied, func, len(event.args))
    named = kept_keywords(applied, func, event.keywords)
    own = syntax_parameters.positional_names(func.node.args)
    given = [(own[place], node) for place, node in enumerate(event.nodes) if place in kept and place < len(own)]
    given += [(word.arg, word.value) for word in call.keywords if word.arg is not None and word.arg in named]
    numbers = _numbers_of_rounds(event.frame.env, loop) if given else {}
    steps = any(isinstance(value, Obj) and value.cls.derives_from("nnx.Optimizer") for value in event.args)
    for name, node in given:
        fraction = _fraction(node, numbers)
        if fraction or (fraction is False and (steps or _only_computes(func, name))):
            report(module, node, name=ast.unparse(node), transform=applied.text, mend=rules.TRACED)
            return


def _numbers_of_rounds(env: Env, loop: ast.For | ast.AsyncFor | ast.While) -> dict[str, bool]:
    """The names of numbers that are others in each round of a loop, and whether they are fractions. There are none if
    it certainly has a few rounds only.
    """
    numbers = dict[str, bool]()
    if isinstance(loop, ast.While):
        ends = [part.value for part in walk(loop.test) if isinstance(part, ast.Constant)]
        if any(isinstance(end, int) and end <= FEW for end in ends):
            return {}
    else:
        counted = _number_of_round(env, loop)
        if counted is not None:
            numbers[counted] = False
        elif _is_of_few(env, loop.iter):
            return {}
    for statement in loop.body:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            by = statement.value.value if isinstance(statement.value, ast.Constant) else None
            if isinstance(by, (int, float)) and by and isinstance(statement.op, COMPUTING):
                numbers[statement.target.id] = isinstance(by, float) or isinstance(statement.op, ast.Div)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            before = {name: False} if isinstance(statement.value, ast.BinOp) else {}
            fraction = _fraction(statement.value, {**numbers, **before})
            if fraction is not None:
                numbers[name] = fraction
    return numbers


COMPUTING = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
"""Operators that make another number of each number."""

LIMITING = frozenset({"float", "max", "min"})


def _fraction(node: ast.expr, numbers: dict[str, bool]) -> bool | None:
    """Whether an expression that is another one in each round is a fraction; ``None`` if it may be the same."""
    if isinstance(node, ast.Name):
        return numbers.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, COMPUTING):
        sides = [node.left, node.right]
        by_itself = isinstance(node.op, ast.Div)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LIMITING:
        sides, by_itself = node.args, node.func.id == "float"
    else:
        return None
    found = [fraction for side in sides if (fraction := _fraction(side, numbers)) is not None]
    by_itself = by_itself or any(isinstance(side, ast.Constant) and isinstance(side.value, float) for side in sides)
    return by_itself or any(found) if found else None


def _only_computes(func: FuncVal, name: str) -> bool:
    """Whether a function does nothing with a parameter but compute with it: by an operator, whose result is no place,
    no size and no condition, or as an argument of a function of JAX that takes arrays.
    """
    reads = reads_of(func.node, name)
    return bool(reads) and all(_is_computed_with(func, read) for read in reads)


def _is_computed_with(func: FuncVal, read: ast.Name) -> bool:
    part: ast.AST = read
    for outer in ancestors(func.module, read):
        if isinstance(outer, (ast.BinOp, ast.UnaryOp)):
            part = outer
            continue
        if isinstance(outer, ast.Call) and part in outer.args and isinstance(func.env, Env):
            return canonical_of(func.env, outer.func) in OF_NUMBERS
        return part is not read and isinstance(outer, (ast.Assign, ast.Return))
    return False


OF_NUMBERS = frozenset(
    {
        "jax.random.fold_in",
        *(f"jax.numpy.{name}" for name in ("asarray", "array", "clip", "cos", "exp", "maximum", "minimum", "where")),
    }
)
"""Functions that take a number as they take an array."""


def _is_of_few(env: Env, counted: ast.expr) -> bool:
    """Whether what a loop goes over certainly has a few elements only."""
    if isinstance(counted, (ast.List, ast.Tuple)):
        return len(counted.elts) <= FEW
    if not isinstance(counted, ast.Call) or canonical_of(env, counted.func) != "builtins.range":
        return False
    ends = [item.value for item in counted.args if isinstance(item, ast.Constant) and isinstance(item.value, int)]
    return len(ends) == len(counted.args) and len(range(*ends)) <= FEW


def _number_of_round(env: Env, loop: ast.For | ast.AsyncFor) -> str | None:
    """The name of the number that a loop counts, unless it certainly counts a few rounds only."""
    counted = loop.iter
    function = canonical_of(env, counted.func) if isinstance(counted, ast.Call) else None
    if function not in {"builtins.range", "builtins.enumerate"} or _is_of_few(env, counted):
        return None
    target = loop.target
    if function == "builtins.enumerate":
        target = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
    return target.id if isinstance(target, ast.Name) else None
