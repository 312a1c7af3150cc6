"""Gradients that become NaN behind a ``jnp.where`` that leaves out where they are infinite (NNX477).

``jnp.where(x > 0, jnp.sqrt(x), 0)`` computes both branches. Where ``x`` is zero the gradient that comes back for the
root is zero, as it is not taken, and the derivative of the root is infinite: their product is NaN, and with it the sum
over all examples.

Invariants: the condition compares an expression with a number, so that zero is left out; the branch that is taken
elsewhere has a root, a logarithm, a power or a quotient of the same expression; what is differentiated certainly comes
from parameters, through operations that have a derivative; and a transform that differentiates is running.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.graphs.merging import is_module
from nnx_lint.rules.program import FUNCTIONS, assigned_in, canonical_of, enclosing, own_nodes, resolved
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import autodiff as rules
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

_STEEP_OF_NUMPY = ("log", "log10", "log2", "reciprocal", "sqrt")

STEEP = frozenset(["jax.lax.log", "jax.lax.rsqrt", "jax.lax.sqrt", *(f"jax.numpy.{name}" for name in _STEEP_OF_NUMPY)])
"""Functions of one number whose derivative is infinite at zero."""

_SMOOTH_OF_NUMPY = """abs add asarray clip concatenate dot einsum exp expand_dims log log1p matmul max maximum mean min
minimum multiply outer prod ravel reshape sqrt square squeeze stack subtract sum tanh transpose var std"""

SMOOTH = frozenset(f"jax.numpy.{name}" for name in _SMOOTH_OF_NUMPY.split())
"""Functions whose result has a derivative with respect to each of their arrays."""

LIFTING = frozenset(f"jax.numpy.{name}" for name in ("clip", "exp", "maximum", "nan_to_num", "where"))
"""Functions whose result may be larger than zero wherever it is."""

METHODS = frozenset({"dot", "max", "mean", "min", "prod", "ravel", "reshape", "squeeze", "std", "sum", "transpose"})
"""Methods of arrays of which the same holds."""

MAX_STEPS = 20
"""How far is looked for what an expression is made of."""

MAX_DEPTH = 8
"""How deep a branch is looked into."""


@judges_calls(rules.MASKED_GRADIENT, "jax.numpy.where")
def masked_gradient(event: Called, report: Reporter) -> None:
    frame, call = event.frame, event.node
    running = [each for scope in frame.scope for each in (scope.applied, *scope.within)]
    applied = next((each for each in running if each.row.name in DIFFERENTIATING), None)
    if applied is None or not isinstance(call, ast.Call) or len(call.args) != 3 or call.keywords:
        return
    found = _left_out(_meant(frame, call.args[0]))
    if found is None or _is_lifted(frame, found[0]):
        return
    guarded, place = found
    for node, numerator in _steep(frame, call.args[place], ast.dump(guarded)):
        if any(item is not None and _comes_from_parameters(frame, item) for item in (guarded, numerator)):
            condition, name, shown = (_shown(frame.module, part) for part in (call.args[0], node, guarded))
            report(frame.module, node, condition=condition, name=name, guarded=shown)
            return


def _shown(module: Module, node: ast.expr) -> str:
    """An expression as it is written, if it is short."""
    written = module.source.segment(node)
    return written if "\n" not in written and len(written) <= MAX_SHOWN else text_of(node)


MAX_SHOWN = 30
"""How long an expression is that a message shows as it is written."""


def _left_out(condition: ast.expr) -> tuple[ast.expr, int] | None:
    """What a condition compares with a number, and which argument of ``where`` is taken where that is not zero."""
    if not isinstance(condition, ast.Compare) or len(condition.ops) != 1:
        return None
    one, other, op = condition.left, condition.comparators[0], type(condition.ops[0])
    if _number(one) is not None:
        one, other, op = other, one, _TURNED.get(op, op)
    bound = _number(other)
    if bound is None or bound < 0 or isinstance(one, ast.Constant):
        return None
    if op is ast.Gt or (op is ast.GtE and bound > 0) or (op is ast.NotEq and not bound):
        return one, 1
    return (one, 2) if op is ast.LtE or (op is ast.Lt and bound > 0) or (op is ast.Eq and not bound) else None


_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
}


def _number(node: ast.expr) -> float | None:
    known = isinstance(node, ast.Constant) and type(node.value) in {int, float}
    return float(node.value) if known and isinstance(node, ast.Constant) else None  # type: ignore[arg-type]


def _steep(
    frame: Frame, node: ast.expr, guarded: str, depth: int = MAX_DEPTH
) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What has no derivative in a branch where the guarded expression is zero, and what is divided by it."""
    if not depth:
        return
    node = _meant(frame, node) if ast.dump(node) != guarded else node
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div) and ast.dump(node.right) == guarded:
            yield node, node.left
        power = _number(node.right) if isinstance(node.op, ast.Pow) else None
        if power is not None and power < 1 and power != 0 and ast.dump(node.left) == guarded:
            yield node, None
        yield from _steep(frame, node.left, guarded, depth - 1)
        yield from _steep(frame, node.right, guarded, depth - 1)
    elif isinstance(node, ast.UnaryOp):
        yield from _steep(frame, node.operand, guarded, depth - 1)
    elif isinstance(node, ast.Call):
        name = canonical_of(frame.env, node.func)
        if name in STEEP and len(node.args) == 1 and ast.dump(node.args[0]) == guarded:
            yield node, None
        for argument in node.args if name in SMOOTH else ():
            yield from _steep(frame, argument, guarded, depth - 1)


def _comes_from_parameters(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression certainly has a derivative with respect to parameters of a module."""
    todo, scope = [node], enclosing(frame.module, node, *FUNCTIONS)
    for step, part in enumerate(todo):
        if step > MAX_STEPS or scope is None:
            return False
        if isinstance(part, ast.Call):
            value = resolved(frame.env, part.func)
            if is_module(value) or _is_parameter(frame, part.func):
                return True
            if canonical_of(frame.env, part.func) in SMOOTH:
                todo += part.args
            elif isinstance(part.func, ast.Attribute) and part.func.attr in METHODS:
                todo.append(part.func.value)
        elif isinstance(part, ast.BinOp):
            todo += [part.left, part.right] if not isinstance(part.op, (ast.FloorDiv, ast.Mod)) else []
        elif isinstance(part, ast.UnaryOp) and isinstance(part.op, (ast.USub, ast.UAdd)):
            todo.append(part.operand)
        elif isinstance(part, (ast.Subscript, ast.Attribute)):
            if _is_parameter(frame, part):
                return True
            if isinstance(part, ast.Subscript) or part.attr in {"T", "mT", "value"}:
                todo.append(part.value)
        elif isinstance(part, (ast.Tuple, ast.List)):
            todo += part.elts
        elif isinstance(part, ast.Name) and assigned_in(scope)[part.id] == 1:
            todo += _assigned(scope, part.id)
    return False


def _is_lifted(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression may have been made larger than zero before it is compared."""
    node, scope = _meant(frame, node), enclosing(frame.module, node, *FUNCTIONS)
    if isinstance(node, ast.Name) and scope is not None and assigned_in(scope)[node.id]:
        return True
    adds = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
    called = (canonical_of(frame.env, part.func) for part in walk(node) if isinstance(part, ast.Call))
    return adds or not LIFTING.isdisjoint(name for name in called if name is not None)


def _is_parameter(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression certainly is a Param, or the value of one."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in {"get_value", "value"}):
        node = node.value
    value = resolved(frame.env, node)
    return isinstance(value, Obj) and value.cls.derives_from("nnx.Param")


def _assigned(scope: ast.AST, name: str) -> list[ast.expr]:
    """What a name is assigned, if plain statements do that, each alone or with others in a row."""
    found: list[ast.expr] = []
    for node in own_nodes(scope):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            pairs = list(_paired(node.targets[0], node.value))
        found += [value for target, value in pairs if is_name(target, name)]
    return found


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        yield from zip(target.elts, value.elts, strict=False)
    else:
        yield target, value


def _meant(frame: Frame, node: ast.expr) -> ast.expr:
    """What a name stands for that is assigned once."""
    scope = enclosing(frame.module, node, *FUNCTIONS)
    for _ in range(MAX_STEPS):
        if not isinstance(node, ast.Name) or scope is None or assigned_in(scope)[node.id] != 1:
            break
        made = _assigned(scope, node.id)
        if len(made) != 1:
            break
        node = made[0]
    return node
