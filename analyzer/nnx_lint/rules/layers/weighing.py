"""Weights that a softmax makes along one axis, and that are summed along another (NNX875).

Scores of queries and keys become weights that sum to one for each query, and a sum over the keys takes the values by
them. A softmax along another axis divides the weights up among the queries: shapes fit, and what comes out is as large
as the query happens to be popular.

Invariants: the scores are a product of two arrays, as those of queries and keys are, and nothing divides the weights
again, as slot attention does. Logits that a layer or a weight of the module gives may be divided up among the rows, as
those of a router; so may what a softmax along the last axis makes, which says to which cluster or expert a row goes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Called, Combined
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import literal
from nnx_lint.model.values import Const
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import names_of_first, values_in
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    block_of,
    canonical_of,
    enclosing,
    is_tried,
    keyword_node,
    reads_of,
    resolved,
    statement_of,
)
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import modules as rules
from nnx_rules.shape_algebra import is_whole

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame

SOFTMAX = frozenset({"jax.nn.softmax", "nnx.softmax"})
PRODUCTS = frozenset(f"jax.numpy.{name}" for name in ("dot", "einsum", "matmul", "tensordot"))


@judges_calls(rules.SOFTMAX_AXIS, "jax.numpy.einsum")
def summed_by_equation(event: Called, report: Reporter) -> None:
    said = event.args[0] if event.args else None
    text = said.value if isinstance(said, Const) else None
    operands, arrow, result = ("".join(text.split()) if isinstance(text, str) else "").partition("->")
    letters = operands.split(",")
    if not arrow or len(letters) != len(event.nodes) - 1 or "." in operands:
        return
    for each, node in zip(letters, event.nodes[1:], strict=True):
        summed = [letter for letter in each if letter not in result]
        made = _softmax(event.frame, node) if summed else None
        axis = _axis(event.frame, made) if made is not None else None
        if made is None or axis is None or not -len(each) <= axis < len(each) or axis in {-1, len(each) - 1}:
            continue
        if each[axis] not in summed and _are_weights(event.frame, node, made):
            _report(event.frame, made, axis, f"`{event.name}` sums them along `{'`, `'.join(summed)}`", report)
            return


@judges(rules.SOFTMAX_AXIS, Combined, when=lambda event: isinstance(getattr(event.node, "op", None), ast.MatMult))
def summed_by_product(event: Combined, report: Reporter) -> None:
    node, shape = event.node, literal(event.left).shape
    if not isinstance(node, ast.BinOp) or shape is None or not is_whole(shape) or len(shape) < 2:
        return
    made = _softmax(event.frame, node.left)
    axis = _axis(event.frame, made) if made is not None else None
    if made is None or axis is None or axis in {-1, len(shape) - 1} or not -len(shape) <= axis < len(shape):
        return
    if _are_weights(event.frame, node.left, made):
        _report(event.frame, made, axis, f"`{text_of(node)}` sums them along the last one", report)


def _report(frame: Frame, made: ast.Call, axis: int, summed: str, report: Reporter) -> None:
    if not is_tried(frame.module, made):
        report(frame.module, made, name=text_of(made), axis=axis, summed=summed)


def _axis(frame: Frame, call: ast.Call) -> int | None:
    """The axis that a softmax goes along, if it is written there, or a constant of a module says so."""
    node = call.args[1] if len(call.args) > 1 else keyword_node(call, "axis")
    known = resolved(frame.env, node) if isinstance(node, ast.Attribute) else None
    if isinstance(known, Const):
        return known.value if isinstance(known.value, int) else None
    try:
        axis = -1 if node is None else ast.literal_eval(node)
    except ValueError:
        return None
    return axis if isinstance(axis, int) else None


def _values(frame: Frame, node: ast.expr) -> list[ast.expr]:
    """What an expression is, or what a name of it is bound to, where all of that is known; after a dropout or not."""
    node = _undropped(node)
    if not isinstance(node, ast.Name):
        return [node]
    if (last := _last(frame, node)) is not None:
        return _values(frame, last) if isinstance(last, ast.Name) else [last]
    scope = enclosing(frame.module, node, *FUNCTIONS)
    values = values_in(scope).get(node.id, []) if scope is not None else []
    known = scope is not None and len(values) == assigned_in(scope)[node.id]
    made = map(_undropped, values) if known else ()
    return [each for each in made if not is_name(each, node.id)]


def _last(frame: Frame, name: ast.Name) -> ast.expr | None:
    """What a name was bound to last among the statements before, where no branch or loop has done so since."""
    statement = statement_of(frame.module, name)
    block = block_of(frame.module, statement) if statement is not None else []
    for each in reversed(block[: block.index(statement)] if statement in block else []):
        value = each.value if isinstance(each, ast.Assign) and is_name(each.targets[0], name.id) else None
        if value is not None and not is_name(_undropped(value), name.id):
            return _undropped(value)
        if value is None and name.id in assigned_in(each):
            return None
    return None


def _undropped(node: ast.expr) -> ast.expr:
    """What a layer of the module that drops some of it, such as a dropout, is given."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        called = node.func.value if node.func.attr == "__call__" else node.func
        if not isinstance(called, ast.Attribute) or "drop" not in called.attr:
            break
        node = node.args[0]
    return node


def _softmax(frame: Frame, node: ast.expr) -> ast.Call | None:
    """The one softmax that an expression, or a name, has the result of."""
    calls = [each for each in _values(frame, node) if isinstance(each, ast.Call)]
    made = [each for each in calls if canonical_of(frame.env, each.func) in SOFTMAX]
    return made[0] if len(made) == 1 and made[0].args else None


def _are_weights(frame: Frame, node: ast.expr, made: ast.Call) -> bool:
    """Whether an expression has what a softmax makes of scores, as it is or after a dropout."""
    if any(each is not made for each in _values(frame, node)) or _is_summed(frame, _undropped(node)):
        return False
    return _is_product(frame, made.args[0])


def _is_summed(frame: Frame, node: ast.expr) -> bool:
    """Whether a function asks for the sum of the weights, to divide by it."""
    scope = enclosing(frame.module, node, *FUNCTIONS) if isinstance(node, ast.Name) else None
    reads = reads_of(scope, node.id) if scope is not None and isinstance(node, ast.Name) else []
    outer = [next(ancestors(frame.module, read)) for read in reads]
    return any(
        each.attr == "sum"
        if isinstance(each, ast.Attribute)
        else isinstance(each, ast.Call) and canonical_of(frame.env, each.func) == "jax.numpy.sum"
        for each in outer
    )


def _is_product(frame: Frame, node: ast.expr, depth: int = 4) -> bool:
    """Whether scores are computed from a product of two arrays."""
    for part in walk(node):
        factors: list[ast.expr] = []
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
            factors = [part.left, part.right]
        elif isinstance(part, ast.Call) and canonical_of(frame.env, part.func) in PRODUCTS:
            factors = part.args
        if factors and not any(_is_weight(frame, factor) for factor in factors):
            return True
        if isinstance(part, ast.Name) and depth:
            scope = enclosing(frame.module, part, *FUNCTIONS)
            values = values_in(scope).get(part.id, ()) if scope is not None else ()
            if any(_is_product(frame, value, depth - 1) for value in values):
                return True
    return False


def _is_weight(frame: Frame, node: ast.expr) -> bool:
    """Whether a factor is what an object keeps, such as ``self.centers[...].T``, and nothing that a layer gives."""
    scope = enclosing(frame.module, node, *FUNCTIONS)
    method = scope is not None and isinstance(next(ancestors(frame.module, scope), None), ast.ClassDef)
    own = names_of_first(scope) if method and isinstance(scope, FUNCTIONS) else frozenset({"self"})
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LAYING_OUT:
            node = node.func.value
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            if isinstance(node.value, ast.Name) and node.value.id in own:
                return True
            node = node.value
        else:
            return False


LAYING_OUT = frozenset({"astype", "get_value", "reshape", "swapaxes", "transpose"})
"""Methods that leave the numbers of an array what they are."""
