"""Gradients that become NaN behind a ``jnp.where`` that leaves out where they are infinite (NNX477).

``jnp.where(x > 0, jnp.sqrt(x), 0)`` computes both branches. Where ``x`` is zero the gradient that comes back for the
root is zero, as it is not taken, and the derivative of the root is infinite: their product is NaN, and with it the sum
over all examples. A length has no derivative at zero either: ``jnp.where(length > 0, length, 1)`` comes too late.

Invariants: the condition compares an expression with a number, so that zero is left out; the branch that is taken
elsewhere has a root, a logarithm, a power or a quotient of the same expression, or that is a root or a length itself;
what is differentiated certainly comes from parameters, through operations that have a derivative; and a transform that
differentiates is running, or the forward pass of a module.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import Obj, VariableVal
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import pairs_of
from nnx_lint.rules.graphs.merging import is_module
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    block_of,
    canonical_of,
    enclosing,
    in_test,
    own_nodes,
    resolved,
    statement_of,
)
from nnx_lint.rules.randomness.drawing import function_of, given_for
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

_SMOOTH_OF_NUMPY = """abs add asarray clip concatenate dot einsum exp expand_dims linalg.norm log log1p matmul max
maximum mean min minimum multiply outer prod ravel reshape sqrt square squeeze stack subtract sum tanh transpose var
std"""

_SMOOTH_OF_NN = ("elu", "gelu", "relu", "silu", "tanh")

_ACTIVATIONS = [f"{package}.{name}" for package in ("jax.nn", "nnx") for name in _SMOOTH_OF_NN]

SMOOTH = frozenset([*(f"jax.numpy.{name}" for name in _SMOOTH_OF_NUMPY.split()), *_ACTIVATIONS])
"""Functions whose result has a derivative with respect to each of their arrays."""

LIFTING = frozenset(f"jax.numpy.{name}" for name in ("clip", "exp", "maximum", "nan_to_num", "where"))
"""Functions whose result may be larger than zero wherever it is."""

LENGTH = "jax.numpy.linalg.norm"

ROOTS = frozenset({LENGTH, "jax.numpy.sqrt"})
"""Functions of several numbers, or one, whose result has no derivative where it is zero."""

METHODS = frozenset({"dot", "max", "mean", "min", "prod", "ravel", "reshape", "squeeze", "std", "sum", "transpose"})
"""Methods of arrays of which the same holds."""

FORWARD = frozenset({"__call__", "apply", "decode", "encode", "forward", "log_prob", "loss"})
"""How methods of a module are called that a loss goes through."""

SMALL = 1e-3
"""With what a number is compared at the most that is expected to be zero: who keeps a length below 1 expects none."""

MAX_STEPS = 20
"""How far is looked for what an expression is made of."""

MAX_DEPTH = 8
"""How deep a branch is looked into."""


@judges_calls(rules.MASKED_GRADIENT, "jax.numpy.where")
def masked_gradient(event: Called, report: Reporter) -> None:
    frame, call = event.frame, event.node
    if not isinstance(call, ast.Call) or len(call.args) != 3 or call.keywords:
        return
    running = (each for scope in frame.scope for each in (scope.applied, *scope.within))
    if not any(each.row.name in DIFFERENTIATING for each in running) and not _is_forward_pass(frame):
        return
    found = _left_out(_meant(frame, call.args[0]))
    if found is None or _is_lifted(frame, found[0]):
        return
    guarded, place = found
    root = _root(frame, guarded)
    for node, numerator in _steep(frame, call.args[place], ast.dump(guarded), root):
        if any(item is not None and _comes_from_parameters(frame, item) for item in (guarded, numerator)):
            condition, name, shown = (_shown(frame.module, part) for part in (call.args[0], node, guarded))
            mend = _ROOT_FIRST if root is not None else _SAFE_FIRST.format(condition=condition, guarded=shown)
            report(frame.module, node, condition=condition, name=name, mend=mend)
            return


_SAFE_FIRST = (
    "make `{guarded}` safe first: `safe = jnp.where({condition}, {guarded}, 1.0)`, with 1.0 where it is left out, and "
    "compute with `safe`"
)
_ROOT_FIRST = (
    "it has no derivative where it is zero: make what is under the root safe before, `squares = jnp.sum(x**2, axis=-1)`"
    " and `jnp.sqrt(jnp.where(squares > 0, squares, 1.0))`, or add a small number to it"
)


def _is_forward_pass(frame: Frame) -> bool:
    """Whether what runs is the forward pass of a module, of which a transform takes derivatives somewhere else."""
    if frame.initializing is not None:
        return False
    called = (each for each in frame.outwards() if each.func is not None and each.func.name in FORWARD)
    return any(is_module(each.receiver) for each in called) and not in_test(frame)


def _root(frame: Frame, guarded: ast.expr) -> ast.expr | None:
    """The root or length that an expression stands for, if nothing keeps what it is of from being zero."""
    node = _meant(frame, guarded)
    if not isinstance(node, ast.Call) or len(node.args) != 1 or canonical_of(frame.env, node.func) not in ROOTS:
        return None
    options = {keyword.arg: keyword.value for keyword in node.keywords}
    order = options.pop("ord", None)
    if not options.keys() <= {"axis", "keepdims"} or (order is not None and _number(order) != 2):
        return None
    parts = walk(_meant(frame, node.args[0]))
    adds = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add) for part in parts)
    return node if not adds and not _is_lifted(frame, node.args[0]) else None


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
    if bound is None or not 0 <= bound <= SMALL or isinstance(one, ast.Constant):
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
    frame: Frame, node: ast.expr, guarded: str, root: ast.expr | None, depth: int = MAX_DEPTH
) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What has no derivative in a branch where the guarded expression is zero, and what is divided by it."""
    if not depth:
        return
    same = ast.dump(node) == guarded
    node = node if same else _meant(frame, node)
    if root is not None and (same or node is root):
        yield root, None
    elif isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div) and ast.dump(node.right) == guarded:
            yield node, node.left
        power = _number(node.right) if isinstance(node.op, ast.Pow) else None
        if power is not None and power < 1 and power != 0 and ast.dump(node.left) == guarded:
            yield node, None
        yield from _steep(frame, node.left, guarded, root, depth - 1)
        yield from _steep(frame, node.right, guarded, root, depth - 1)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            yield from _steep(frame, element, guarded, root, depth - 1)
    elif isinstance(node, ast.UnaryOp):
        yield from _steep(frame, node.operand, guarded, root, depth - 1)
    elif isinstance(node, ast.Call):
        name = canonical_of(frame.env, node.func)
        if name in STEEP and len(node.args) == 1 and ast.dump(node.args[0]) == guarded:
            yield node, None
        for argument in node.args if name in SMOOTH else ():
            yield from _steep(frame, argument, guarded, root, depth - 1)


def _comes_from_parameters(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression certainly has a derivative with respect to parameters of a module."""
    todo, scope = [node], enclosing(frame.module, node, *FUNCTIONS)
    for step, part in enumerate(todo):
        if step > MAX_STEPS or scope is None:
            return False
        if isinstance(part, ast.Name) and not assigned_in(scope)[part.id]:
            given = _given(frame, scope, part.id)
            if given is not None and frame.caller is not None and _comes_from_parameters(frame.caller, given):
                return True
        elif isinstance(part, ast.Call):
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
        elif isinstance(part, ast.Name):
            made = _made(frame, scope, part)
            todo += [made] if made is not None else []
    return False


def _given(frame: Frame, scope: ast.AST, name: str) -> ast.expr | None:
    """What the caller of a function gives for a parameter."""
    call, caller = frame.call, frame.caller
    if caller is None or not isinstance(call, ast.Call) or frame.func is None or frame.func.node is not scope:
        return None
    callee = function_of(resolved(caller.env, call.func))
    pairs = given_for(call, callee) if callee is not None and callee.func.node is scope else []
    return next((value for parameter, value in pairs if parameter == name), None)


def _is_lifted(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression may have been made larger than zero before it is compared."""
    node, scope = _meant(frame, node), enclosing(frame.module, node, *FUNCTIONS)
    if isinstance(node, ast.Name) and scope is not None and assigned_in(scope)[node.id]:
        return True
    adds = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
    called = (canonical_of(frame.env, part.func) for part in walk(node) if isinstance(part, ast.Call))
    return adds or not LIFTING.isdisjoint(name for name in called if name is not None)


def _is_parameter(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression certainly is a Param, or the value of one; or a Variable that the program took, or made."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in {"get_value", "value"}):
        node = node.value
    value = resolved(frame.env, node)
    return isinstance(value, VariableVal) or (isinstance(value, Obj) and value.cls.derives_from("nnx.Param"))


def _assigned(scope: ast.AST, name: str) -> list[ast.expr]:
    """What a name is assigned in a function or by a statement, if plain ones do that, alone or with others in a row."""
    pairs = (pair for node in (scope, *own_nodes(scope)) for pair in pairs_of(node))
    return [value for target, value in pairs if is_name(target, name)]


def _meant(frame: Frame, node: ast.expr) -> ast.expr:
    """What a name stands for."""
    scope = enclosing(frame.module, node, *FUNCTIONS)
    for _ in range(MAX_STEPS):
        made = _made(frame, scope, node) if isinstance(node, ast.Name) and scope is not None else None
        if made is None:
            break
        node = made
    return node


def _made(frame: Frame, scope: ast.AST, node: ast.Name) -> ast.expr | None:
    """What a name was assigned last: where there are several assignments, it stands before in a block around."""
    if assigned_in(scope)[node.id] == 1:
        made = _assigned(scope, node.id)
        return made[0] if len(made) == 1 else None
    inner = statement_of(frame.module, node)
    while inner is not None and inner is not scope:
        block = block_of(frame.module, inner)
        before = block[: block.index(inner)] if inner in block else []
        last = next((item for item in reversed(before) if assigned_in(item)[node.id]), None)
        if last is not None:
            plain = isinstance(last, (ast.Assign, ast.AnnAssign))
            made = _assigned(last, node.id) if plain else []
            return made[0] if len(made) == 1 else None
        inner = next((item for item in ancestors(frame.module, inner) if isinstance(item, ast.stmt)), None)
        if isinstance(inner, (ast.For, ast.While)) and assigned_in(inner)[node.id]:
            return None  # a round before may have assigned it
    return None
