"""What the rules of a function with a derivative of its own take and return: `f.defvjp(fwd, bwd)` (NNX444, NNX445).

Invariants: a rule is judged by what its ``return`` statements spell out, and only where the program shows for which
function it was made; an expression is one value only if no tuple can come of it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.crossing import literal_positions
from nnx_lint.model.events import Called
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import assigned_in, canonical_of, given, own_nodes, results_of
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_rules.rules.transforms import VJP_COTANGENT, VJP_RULE_RESULT

if TYPE_CHECKING:
    from nnx_lint.model.values import Value

CUSTOM = frozenset({"jax.custom_vjp", "nnx.custom_vjp"})


@judges_calls(VJP_RULE_RESULT, ".defvjp")
def vjp_rule_result(event: Called, report: Reporter) -> None:
    owner, args = event.owner, given(event)
    if not isinstance(owner, Transformed) or owner.applied.row.name not in CUSTOM or None in event.args:
        return
    rules = (("forward", args.get(0, "fwd"), 2), ("backward", args.get(1, "bwd"), _cotangents(owner)))
    for which, rule, count in rules:
        if count is None or not isinstance(rule, FuncVal) or rule.wraps is not None:
            continue
        if rule.decorators and not rule.is_static:
            continue
        misplaced = _misplaced(owner, rule) if which == "backward" else None
        if misplaced is not None:
            problem = f"the backward rule takes `{misplaced.arg}` late, and gets what is not differentiated first"
            report(rule.module, misplaced, transform=owner.applied.text, problem=problem)
            continue
        taken = _pair_taken(owner, rule) if which == "backward" else None
        if taken is not None:
            problem = f"the backward rule takes `{taken.id}` for one value, and gets a pair: `updates, {taken.id}`"
            report(rule.module, taken, transform=owner.applied.text, problem=problem)
            continue
        wanted = "`(result, residuals)`" if which == "forward" else f"a tuple of {count}"
        single = _single_of(owner, rule) if which == "backward" else None
        for node in results_of(rule.node):
            bare = single is not None and is_name(node, single)
            found = "one value" if bare else _described(rule, node, count)
            if found is not None:
                problem = f"the {which} rule returns {found}, and must return {wanted}"
                report(rule.module, node, transform=owner.applied.text, problem=problem)


@judges_calls(VJP_COTANGENT, ".defvjp")
def pair_returned(event: Called, report: Reporter) -> None:
    """The last argument of a backward rule of NNX is handed on, as if it were the gradient alone."""
    owner, rule = event.owner, given(event).get(1, "bwd")
    name = _pair_of(owner, rule) if isinstance(owner, Transformed) and isinstance(rule, FuncVal) else None
    if name is None or not isinstance(owner, Transformed) or not isinstance(rule, FuncVal):
        return
    if rule.decorators and not rule.is_static:
        return
    for node in results_of(rule.node):
        for place, item in enumerate(node.elts if isinstance(node, ast.Tuple) else ()):
            if is_name(item, name):
                problem = f"`{name}` is a pair, `updates, {name}`"
                report(rule.module, item, transform=owner.applied.text, path=f"args[{place}]", problem=problem)


def _pair_of(custom: Transformed, rule: FuncVal) -> str | None:
    """The last parameter of a backward rule of NNX, in which the updates of the objects come beside the gradient of the
    result; ``None`` where the rule takes it apart.
    """
    names = syntax_parameters.positional_names(rule.node.args)
    if custom.applied.row.name != "nnx.custom_vjp" or not custom.applied.modes.writes_back or not names:
        return None
    return names[-1] if not assigned_in(rule.node)[names[-1]] and rule.wraps is None else None


def _single_of(custom: Transformed, rule: FuncVal) -> str | None:
    """The last parameter of a backward rule of JAX, where it is one array, because the function returns one."""
    func, names = custom.func, syntax_parameters.positional_names(rule.node.args)
    if custom.applied.row.name != "jax.custom_vjp" or not isinstance(func, FuncVal) or not names:
        return None
    results = results_of(func.node)
    single = bool(results) and all(_is_one_value(func, each) for each in results)
    return names[-1] if single and not assigned_in(rule.node)[names[-1]] else None


def _pair_taken(custom: Transformed, rule: FuncVal) -> ast.Name | None:
    """Where a backward rule of NNX computes with its last argument, as if that were the gradient alone."""
    name = _pair_of(custom, rule)
    if name is None:
        return None
    for node in own_nodes(rule.node):
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Call) and canonical_of(rule.module.env, node.func) in ARRAYS:
            parts = node.args
        taken = next((part for part in parts if is_name(part, name)), None)
        if isinstance(taken, ast.Name):
            return taken
    return None


def _misplaced(custom: Transformed, rule: FuncVal) -> ast.arg | None:
    """A parameter of a backward rule that is called like an argument which is not differentiated, and stands where the
    residuals or the cotangent come in: those arguments come first.
    """
    func, fixed = custom.func, custom.applied.keywords.get("nondiff_argnums")
    places = literal_positions(fixed, default=()) or ()
    if not isinstance(func, FuncVal) or func.wraps is not None or not places:
        return None
    names, taken = syntax_parameters.positional_names(func.node.args), syntax_parameters.positional(rule.node.args)
    fixed_names = [names[place] for place in places if 0 <= place < len(names)]
    if len(taken) != len(places) + 2 or len(fixed_names) < len(places):
        return None
    first = {parameter.arg for parameter in taken[: len(places)]}
    late = (parameter for parameter in taken[len(places) :] if parameter.arg in fixed_names)
    return None if first <= {*fixed_names} else next(late, None)


def _cotangents(custom: Transformed) -> int | None:
    """How many arguments of a function are differentiated; ``None`` where that is not known."""
    func, options = custom.func, custom.applied.keywords
    if not isinstance(func, FuncVal) or func.wraps is not None or "**" in options:
        return None
    arguments = func.node.args
    fixed: Value | None = options.get("nondiff_argnums")
    places = literal_positions(fixed, default=())
    if places is None or arguments.vararg or arguments.kwarg or arguments.kwonlyargs or "nondiff_argnames" in options:
        return None
    return len(syntax_parameters.positional(arguments)) - len(set(places))


def _described(func: FuncVal, node: ast.expr, count: int) -> str | None:
    """What an expression is, where it certainly is no tuple of so many."""
    if isinstance(node, ast.Tuple):
        starred = any(isinstance(item, ast.Starred) for item in node.elts)
        return f"a tuple of {len(node.elts)}" if len(node.elts) != count and not starred else None
    return "one value" if _is_one_value(func, node) else None


_ARRAYS = """
    abs array asarray ceil clip cos dot einsum exp expand_dims floor full_like heaviside log matmul max maximum mean min
    minimum multiply negative ones_like outer reshape round sign sin sqrt square squeeze subtract sum swapaxes tanh
    tensordot transpose zeros_like
"""

ARRAYS = frozenset(f"jax.numpy.{name}" for name in _ARRAYS.split())
"""Functions that return one array."""


def _is_one_value(func: FuncVal, node: ast.expr) -> bool:
    """Whether an expression certainly is no sequence: arithmetic that no tuple takes part in, or an array."""
    if isinstance(node, ast.BinOp):
        if any(isinstance(side, (ast.Tuple, ast.List, ast.Starred)) for side in (node.left, node.right)):
            return False
        added = isinstance(node.op, ast.Add)
        return not added or _is_one_value(func, node.left) or _is_one_value(func, node.right)
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not)
    if isinstance(node, ast.Call):
        return canonical_of(func.module.env, node.func) in ARRAYS
    if isinstance(node, ast.Name) and assigned_in(func.node)[node.id] == 1:
        made = [item for item in own_nodes(func.node) if isinstance(item, ast.Assign) and _is_target(item, node.id)]
        return len(made) == 1 and not isinstance(made[0].value, ast.Name) and _is_one_value(func, made[0].value)
    return False


def _is_target(statement: ast.Assign, name: str) -> bool:
    target = statement.targets[0]
    return len(statement.targets) == 1 and is_name(target, name)
