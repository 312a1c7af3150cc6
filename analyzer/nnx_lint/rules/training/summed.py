"""Gradients that are to be summed over several batches, and are not, or go on being summed (NNX627).

A sum begins with zeros, `total = jax.tree.map(jnp.zeros_like, params)`, or with `None`, and each round of a loop adds
to it. Where a round puts its gradients in the place of the sum, all but the last are lost. Where every few rounds a
step is taken with the sum, and nothing empties it, each step takes all gradients so far again.

Invariants: the name is bound to zeros, and in the loop once, or to `None`, and in the loop never again; a mean that
fades out, as that of momentum, is no sum. In the carry of a scan the names say that it is one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Ran
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.autodiff.gradients import gradient_call
from nnx_lint.rules.bindings import bound_to, pairs_of, value_of
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    assigned_in,
    canonical_of,
    enclosing,
    in_test,
    own_nodes,
    parameters_in,
    reads_of,
    results_of,
)
from nnx_lint.syntax.binding import is_name, names_in
from nnx_lint.syntax.parameters import positional_names
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import training as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

ZEROS = frozenset({"jax.numpy.zeros_like", "numpy.zeros_like"})
TREES_OF_ZEROS = ("optax.tree.zeros_like", "optax.tree_utils.tree_zeros_like")
ADDING = frozenset({"jax.numpy.add", "numpy.add", "operator.add"})
SUMS = frozenset({"optax.tree.add", "optax.tree_utils.tree_add"})


@judges_calls(rules.BROKEN_GRADIENT_SUM, *TREE_MAPS, *TREES_OF_ZEROS)
def gradient_sum(event: Called, report: Reporter) -> None:
    frame, call = event.frame, event.node
    if not isinstance(call, ast.Call) or not call.args or in_test(frame):
        return
    if event.subject in TREE_MAPS and canonical_of(frame.env, call.args[0]) not in ZEROS:
        return
    bound = bound_to(frame.module, call)
    scope = enclosing(frame.module, call, *FUNCTIONS) or frame.module.tree
    if bound is None or not isinstance(bound.target, ast.Name) or parameters_in(scope)[bound.target.id]:
        return
    name = bound.target.id
    changed = [pair for item in own_nodes(scope) for pair in pairs_of(item) if name in names_in(pair[0])]
    later = [(target, value) for target, value in changed if begin(target) > begin(bound.target)]
    if len(changed) != assigned_in(scope)[name] or not later or not all(is_name(target, name) for target, _ in later):
        return
    target, value = later[0]
    loop = enclosing(frame.module, target, *STATEMENT_LOOPS, *FUNCTIONS)
    if not isinstance(loop, STATEMENT_LOOPS) or any(loop is item for item in ancestors(frame.module, call)):
        return
    inside = [read for read in reads_of(scope, name) if any(loop is item for item in ancestors(frame.module, read))]
    if not inside and len(later) == len([pair for pair in later if isinstance(pair[1], ast.Name)]) == 1:
        after = any(begin(read) > begin(target) for read in reads_of(scope, name))
        if after and isinstance(value, ast.Name) and _is_gradient(frame, loop, value.id):
            so = f"each round of the loop replaces it by `{value.id}`, so that it is the gradient of the last one"
            _report(frame, target, call, name, so, report, f"`{name} = jax.tree.map(jnp.add, {name}, {value.id})`")
    elif len(later) == 1 and _is_sum(frame, value_of(frame.module, value) or value, name):
        step = next((each for read in inside if (each := _step_of_some_rounds(frame, read, loop)) is not None), None)
        if step is not None:
            so = "nothing sets it back to zeros after a step, so that each step takes all gradients so far"
            _report(frame, step, call, name, so, report, f"`{name} = jax.tree.map(jnp.zeros_like, {name})` after it")


@judges_calls(rules.BROKEN_GRADIENT_SUM, *TREE_MAPS, *SUMS)
def sum_from_nothing(event: Called, report: Reporter) -> None:
    """A sum that is `None` before the first round: `total = grads if total is None else jax.tree.map(...)`."""
    frame, call = event.frame, event.node
    bound = bound_to(frame.module, _whole(frame, call))
    target = bound.target if bound is not None else None
    if not isinstance(target, ast.Name) or not isinstance(call, ast.Call) or not _is_sum(frame, call, target.id):
        return
    name, scope = target.id, enclosing(frame.module, call, *FUNCTIONS) or frame.module.tree
    loop = enclosing(frame.module, call, *STATEMENT_LOOPS, *FUNCTIONS)
    if not isinstance(loop, STATEMENT_LOOPS) or parameters_in(scope)[name] or in_test(frame):
        return
    pairs = [pair for item in own_nodes(scope) for pair in pairs_of(item) if name in names_in(pair[0])]
    empty = [each for each, value in pairs if isinstance(value, ast.Constant) and value.value is None]
    if len(pairs) != assigned_in(scope)[name] or len(empty) != 1 or assigned_in(loop)[name] != len(pairs) - 1:
        return
    if any(outer is loop for outer in ancestors(frame.module, empty[0])):
        return
    if not all(is_name(each, name) for each, _ in pairs) or not _is_first(frame, call, loop, name):
        return
    inside = [read for read in reads_of(scope, name) if any(loop is item for item in ancestors(frame.module, read))]
    step = next((each for read in inside if (each := _step_of_some_rounds(frame, read, loop)) is not None), None)
    if step is not None:
        so = "nothing empties it after a step, so that each step takes all gradients so far"
        _report(frame, step, empty[0], name, so, report, f"`{name} = None` after it")


def scans(event: Ran) -> bool:
    """Whether the step of a scan has run."""
    return event.scope.row.name == "jax.lax.scan" and not event.scope.held


@judges(rules.BROKEN_GRADIENT_SUM, Ran, when=scans)
def sum_in_carry(event: Ran, report: Reporter) -> None:
    """A step of a scan that carries a sum of gradients returns its own ones, and never reads the sum."""
    inner = event.scope.frame
    func = inner.func.node if inner is not None and inner.func is not None else None
    if inner is None or not isinstance(func, ast.FunctionDef) or in_test(inner):
        return
    carry = next(iter(positional_names(func.args)), "")
    results = [value.elts[0] for value in results_of(func) if isinstance(value, ast.Tuple) and len(value.elts) == 2]
    whole = value_of(inner.module, results[0]) or results[0] if len(results) == 1 and carry else None
    for name, value in _unread_parts(inner.module, func, carry, whole):
        summed = "grad" in name and any(word in f"{carry}_{name}" for word in ("acc", "sum", "total"))
        if summed and isinstance(value, ast.Name) and _is_gradient(inner, func, value.id):
            so = f"each step replaces it by `{value.id}`, so that it is the gradient of the last one"
            mend = f"`jax.tree.map(jnp.add, ..., {value.id})` instead of `{value.id}`, with what the carry has"
            report(inner.module, value, name=name, so=so, mend=mend)


def _unread_parts(
    module: Module, func: ast.FunctionDef, carry: str, whole: ast.expr | None
) -> list[tuple[str, ast.expr | None]]:
    """The parts of a carry that a step never reads, by name, with what it returns for them."""
    reads = reads_of(func, carry)
    outers = [next(ancestors(module, read), None) for read in reads]
    if isinstance(whole, ast.Dict) and len(reads) > 0:
        keys = [each.slice for each in outers if isinstance(each, ast.Subscript)]
        read = {key.value for key in keys if isinstance(key, ast.Constant)}
        pairs = zip(whole.keys, whole.values, strict=True)
        named = [(str(key.value), value) for key, value in pairs if isinstance(key, ast.Constant)]
        return [pair for pair in named if pair[0] not in read] if len(keys) == len(reads) else []
    taken = outers[0] if len(outers) == 1 else None
    target = taken.targets[0] if isinstance(taken, ast.Assign) and len(taken.targets) == 1 else None
    if not isinstance(target, ast.Tuple) or not isinstance(whole, ast.Tuple) or len(target.elts) != len(whole.elts):
        return []
    both = zip(target.elts, whole.elts, strict=True)
    return [(each.id, value) for each, value in both if isinstance(each, ast.Name) and not reads_of(func, each.id)]


def _whole(frame: Frame, node: ast.AST) -> ast.AST:
    """The choice that an expression is a part of, or the expression."""
    outer = next(ancestors(frame.module, node), None)
    return _whole(frame, outer) if isinstance(outer, ast.IfExp) else node


def _is_first(frame: Frame, call: ast.AST, loop: ast.AST, name: str) -> bool:
    """Whether all that a loop asks before it adds to a sum is whether there is one."""
    for outer in ancestors(frame.module, call):
        if outer is loop:
            return True
        asked = outer.test if isinstance(outer, (ast.If, ast.IfExp)) else None
        if asked is not None and not (isinstance(asked, ast.Compare) and is_name(asked.left, name)):
            return False
    return False


def _report(frame: Frame, node: ast.AST, start: ast.AST, name: str, so: str, report: Reporter, mend: str) -> None:
    where = (related(frame.module, start, "it begins here"),)
    report(frame.module, node, name=name, so=so, mend=mend, related=where)


def _is_gradient(frame: Frame, loop: ast.AST, name: str) -> bool:
    """Whether a round of a loop binds a name to what a differentiated function returns."""
    for item in walk(loop):
        for target, value in pairs_of(item):
            if isinstance(target, ast.Tuple):
                target = target.elts[-1]
            if is_name(target, name) and isinstance(value, ast.Call):
                return gradient_call(frame, value.func)[0] is not None
    return False


def _is_sum(frame: Frame, value: ast.expr, name: str) -> bool:
    """Whether a tree is added to the one that has a name."""
    if not isinstance(value, ast.Call) or not any(is_name(item, name) for item in value.args):
        return False
    called = canonical_of(frame.env, value.func)
    if called not in TREE_MAPS:
        return called in SUMS
    func = value.args[0]
    if not isinstance(func, ast.Lambda):
        return canonical_of(frame.env, func) in ADDING
    place = next(number for number, item in enumerate(value.args) if is_name(item, name)) - 1
    names, body = positional_names(func.args), func.body
    if not isinstance(body, ast.BinOp) or not isinstance(body.op, ast.Add) or place >= len(names):
        return False
    return is_name(body.left, names[place]) or is_name(body.right, names[place])


def _step_of_some_rounds(frame: Frame, read: ast.AST, loop: ast.AST) -> ast.AST | None:
    """The step that some rounds of a loop take with a value: ``if number % 4 == 3: optimizer.update(model, value)``."""
    step: ast.Call | None = None
    for outer in ancestors(frame.module, read):
        if outer is loop:
            return None
        if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute) and outer.func.attr == "update":
            step = outer
        if isinstance(outer, ast.If) and any(map(_is_remainder, walk(outer.test))):
            return step
    return None


def _is_remainder(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
