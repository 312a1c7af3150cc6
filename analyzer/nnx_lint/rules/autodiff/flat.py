"""Losses that are flat (NNX479): whatever the parameters do to the result goes through something without a slope.

The index of the largest score, a rounded number and the result of a comparison stay as they are when the parameters
change a little. JAX says that their derivative is zero, and so is the gradient of all that is computed from nothing
else of the model: training goes on, and nothing is learned.

Invariants: the function that is differentiated is followed backwards, expression by expression, from what it returns;
each name on the way is bound once. A function that is not known here only hands on what it is given, and where a
parameter that is differentiated reaches the result on any other way, nothing is said.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.crossing import literal_positions
from nnx_lint.model.expressions import text_of
from nnx_lint.model.modules import Env
from nnx_lint.model.states import StateVal
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.autodiff.gradients import differentiates
from nnx_lint.rules.bindings import values_in
from nnx_lint.rules.callees import compiled_by
from nnx_lint.rules.program import (
    assigned_in,
    canonical_of,
    defined_in,
    in_test,
    is_tried,
    names_of_parameters,
    results_of,
)
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.parameters import positional_names
from nnx_lint.syntax.walk import walk
from nnx_rules import layers
from nnx_rules.rules import autodiff as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

_NAMES = ("argmax", "argmin", "argsort", "ceil", "digitize", "floor", "rint", "round", "searchsorted", "sign")
_COMPARING = ("equal", "greater", "greater_equal", "isclose", "less", "less_equal", "logical_not", "not_equal")
FLAT = frozenset(
    {f"jax.numpy.{name}" for name in (*_NAMES, *_COMPARING)}
    | {"jax.lax.stop_gradient", "jax.random.bernoulli", "jax.random.categorical"}
)
"""Functions whose derivative is zero, or that have none."""

METHODS = frozenset({"argmax", "argmin", "argsort", "round"})
"""Methods of arrays of the same kind."""

INTEGERS = frozenset(
    {"builtins.bool", "builtins.int", "jax.numpy.bool_", "numpy.bool_"}
    | {f"{package}.{name}" for package in ("jax.numpy", "numpy") for name in layers.INTEGERS}
)
"""Types of whole numbers and of truth values, to which a conversion cuts off what makes a slope."""

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

MAX_STEPS = 40
"""How many expressions are followed at most."""


@judges_calls(rules.ZERO_GRADIENT, Transformed, when=differentiates)
def zero_gradient(event: Called, report: Reporter) -> None:
    callee = compiled_by(event.callee) if isinstance(event.callee, Transformed) else None
    func = callee.func if callee is not None else None
    bound, func = isinstance(func, BoundMethod), func.func if isinstance(func, BoundMethod) else func
    if callee is None or not isinstance(func, FuncVal) or (func.decorators and not func.is_static):
        return
    if in_test(event.frame):
        return
    if not callee.applied.row.name.startswith("nnx.") and not any(
        isinstance(value, (Obj, StateVal)) for value in event.args
    ):
        return  # what the derivative of a function of arrays is may be what somebody wants to see
    positions = literal_positions(callee.applied.keywords.get("argnums"), default=(0,))
    results, names = results_of(func.node), positional_names(func.node.args)[bound:]
    if positions is None or len(results) != 1 or not all(0 <= place < len(names) for place in positions):
        return
    result = results[0]
    if isinstance(result, ast.Tuple):
        result = result.elts[0] if result.elts else result
    env = func.env if isinstance(func.env, Env) else func.module.env
    way = _Way(func.node, env, {names[place] for place in positions})
    if way.is_flat(result) and way.ends and not is_tried(event.frame.module, event.node):
        first = way.ends[0]
        place = related(event.frame.module, event.node, "it is differentiated here")
        name = ", ".join(f"`{names[place]}`" for place in positions)
        report(func.module, first, related=(place,), name=text_of(first), of=name)


class _Way:
    """What a function computes its result from, as far as the parameters in ``names`` have a part in it."""

    def __init__(self, func: Function, env: Env, names: set[str]) -> None:
        self.func, self.env, self.names = func, env, names
        self.ends: list[ast.expr] = []
        self.left = MAX_STEPS

    def is_flat(self, node: ast.expr) -> bool:
        """Whether no slope leads from the parameters through an expression; ``ends`` are those where one ends."""
        self.left -= 1
        if self.left < 0:
            return False
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return self._is_flat_name(node.id)
        if isinstance(node, ast.Compare):
            return self._ends(node, [node.left, *node.comparators])
        if isinstance(node, ast.Call):
            return self._is_flat_call(node)
        if isinstance(node, ast.BinOp):
            return self.is_flat(node.left) and self.is_flat(node.right)
        if isinstance(node, ast.UnaryOp):
            return self.is_flat(node.operand)
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            return self.is_flat(node.value)
        if isinstance(node, (ast.Tuple, ast.List)):
            return all(map(self.is_flat, node.elts))
        return False

    def _is_flat_name(self, name: str) -> bool:
        if name in self.names:
            return False
        if name in names_of_parameters(self.func):
            return name not in assigned_in(self.func)
        values = values_in(self.func).get(name, [])
        if not assigned_in(self.func)[name] and not defined_in(self.func)[name]:
            return True  # what the function captures stays as it is
        return len(values) == assigned_in(self.func)[name] == 1 and self.is_flat(values[0])

    def _is_flat_call(self, node: ast.Call) -> bool:
        given = [*node.args, *(item.value for item in node.keywords)]
        name, method = canonical_of(self.env, node.func), node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in FLAT:
            return self._ends(node, given)
        holder = node.func.value if isinstance(node.func, ast.Attribute) and name is None else None
        if holder is not None and (method in METHODS or (method == "astype" and self._makes_integers(node))):
            return self._ends(node, [holder, *given])
        root = root_of(node.func)
        if root in self.names or (root is not None and defined_in(self.func)[root]):
            return False
        return all(map(self.is_flat, given)) and (holder is None or self.is_flat(holder))

    def _makes_integers(self, node: ast.Call) -> bool:
        given = node.args[0] if node.args else None
        if isinstance(given, ast.Constant):
            return given.value in layers.INTEGERS
        return given is not None and canonical_of(self.env, given) in INTEGERS

    def _ends(self, node: ast.expr, parts: list[ast.expr]) -> bool:
        """A slope that leads so far ends here."""
        kept, self.ends = self.ends, []
        if not all(map(self.is_flat, parts)) and self._reaches(parts):
            kept.append(node)
        self.ends = [*kept, *self.ends]
        return True

    def _reaches(self, parts: list[ast.expr], depth: int = 6) -> bool:
        """Whether expressions are computed from the parameters."""
        names = {each.id for part in parts for each in walk(part) if isinstance(each, ast.Name)}
        inner = [value for name in names for value in values_in(self.func).get(name, ())] if depth else []
        return not names.isdisjoint(self.names) or (bool(inner) and self._reaches(inner, depth - 1))
