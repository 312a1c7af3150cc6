"""Numbers that are taken out of a loss while it is differentiated (NNX470).

Under ``nnx.value_and_grad`` alone, without ``nnx.jit``, arrays keep their values, and Python's conditions, ``int`` and
``.item()`` work. What depends on the parameters is a stand-in all the same, to which JAX gives no ``float``, no format
and no array of NumPy.

Invariants: an array counts only if it certainly depends on what is differentiated: it is followed by the text, through
calls of the parameter itself and functions that have a derivative. A comparison, an ``argmax`` and what
``stop_gradient`` gives have none, and are numbers; what another function returns may be one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import Array, ArrayAttr, Const, HostArray, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.autodiff.standins import is_eager
from nnx_lint.rules.autodiff.values import scope_of
from nnx_lint.rules.bindings import pairs_of, values_in
from nnx_lint.rules.program import assigned_in, canonical_of, names_of_parameters, resolved, straight
from nnx_lint.rules.repeating import handed_for
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.parameters import positional_names
from nnx_rules.layers import is_fractional
from nnx_rules.rules import autodiff as rules
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.frames import Frame, TraceScope

FAILING = ("builtins.float", "builtins.complex", "numpy.array", "numpy.asarray", "math.exp", "math.log", "math.sqrt")
"""Functions that a stand-in with a value does not do either."""

_OF_JAX_NUMPY = """abs absolute add array asarray average clip concatenate cos cumsum divide dot einsum exp expm1 log
log1p log2 logaddexp matmul max maximum mean median min minimum multiply negative power prod ravel reshape sin sqrt
square squeeze stack std subtract sum tanh transpose var where"""

_OF_JAX_NN = """celu elu gelu leaky_relu log_sigmoid log_softmax logsumexp relu selu sigmoid silu softmax softplus
swish tanh"""

_OF_OPTAX = """cosine_distance huber_loss l2_loss log_cosh sigmoid_binary_cross_entropy softmax_cross_entropy
softmax_cross_entropy_with_integer_labels squared_error"""

SMOOTH = frozenset(
    (
        *(f"jax.numpy.{name}" for name in _OF_JAX_NUMPY.split()),
        *(f"{module}.{name}" for module in ("jax.nn", "nnx") for name in _OF_JAX_NN.split()),
        *(f"optax.{name}" for name in _OF_OPTAX.split()),
        *(f"optax.losses.{name}" for name in _OF_OPTAX.split()),
        "jax.numpy.linalg.norm",
    )
)
"""Functions whose result depends on what they are given, and has a derivative."""

METHODS = frozenset({"max", "mean", "min", "prod", "ravel", "reshape", "squeeze", "std", "sum", "transpose", "var"})
"""The same of the methods of an array."""

OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult)

DEPTH = 12
"""How many expressions are followed, one within the other."""


@judges_calls(rules.TRACED_VALUE, *FAILING)
def number_of_differentiated(event: Called, report: Reporter) -> None:
    if event.frame.scope and len(event.nodes) == 1:
        _judge(event, event.args[0], event.nodes[0], event.name, report)


@judges_calls(rules.TRACED_VALUE, ".tolist")
def list_of_differentiated(event: Called, report: Reporter) -> None:
    func = event.node.func if isinstance(event.node, ast.Call) else None
    if event.frame.scope and isinstance(event.callee, ArrayAttr) and isinstance(func, ast.Attribute):
        _judge(event, event.callee.array, func.value, ".tolist()", report)


@judges(rules.TRACED_VALUE, Used, of=(Array,), when=lambda event: event.what == "a format")
def text_of_differentiated(event: Used, report: Reporter) -> None:
    if event.frame.scope and isinstance(event.node, ast.expr):
        _judge(event, event.value, event.node, "format", report)


def _judge(event: Called | Used, value: Value | None, node: ast.expr, function: str, report: Reporter) -> None:
    frame = event.frame
    if not isinstance(value, Array) or isinstance(value, HostArray) or not _may_have_derivative(value):
        return
    scope = next((each for each in frame.scope if _differentiates(each.applied)), None)
    if scope is None or scope.level > value.level or scope_of(event, value) is not None:
        return
    if is_eager(frame, event.node) or not frame.certain_within(scope):
        return
    names = _followed(frame, scope)
    if names and frame.func is not None and _depends(frame, node, names):
        report(frame.module, node, name=text_of(node), transform=scope.applied.text, function=function)


def _differentiates(applied: TransformVal) -> bool:
    return applied.row.name in DIFFERENTIATING


def _may_have_derivative(value: Array) -> bool:
    dtype = value.form.dtype if value.form is not None else None
    return dtype is None or is_fractional(dtype)


def _is_method_of(node: ast.expr, names: frozenset[str]) -> bool:
    """Whether an expression calls a method of what is differentiated."""
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in names


def _followed(frame: Frame, scope: TraceScope) -> frozenset[str]:
    """How a function calls what is differentiated: the function under the transform, or one that it hands that to."""
    func, caller = frame.func, frame.caller
    if func is None:
        return frozenset()
    if frame is scope.frame:
        place = scope.applied.keywords.get("argnums", Const(0))
        names = positional_names(func.node.args)
        number = place.value if isinstance(place, Const) else None
        if frame.receiver is not None or type(number) is not int or not 0 <= number < len(names):
            return frozenset()
        found = {names[number]}
    elif caller is not None and caller.func is not None:
        outer = _followed(caller, scope)
        parameters = names_of_parameters(func.node) if outer else set[str]()
        handed = ((name, handed_for(frame, name)) for name in parameters)
        found = {name for name, given in handed if isinstance(given, ast.Name) and given.id in outer}
    else:
        return frozenset()
    return frozenset(name for name in found if not assigned_in(func.node)[name])


def _depends(frame: Frame, node: ast.expr, names: frozenset[str], depth: int = 0) -> bool:
    """Whether the value of an expression certainly depends on one of the names, and has a derivative by it."""
    if depth > DEPTH or frame.func is None:
        return False
    if isinstance(node, ast.Name):
        if node.id in names:
            return True
        values = values_in(frame.func.node).get(node.id, [])
        if len(values) == 1 and _is_method_of(values[0], names):
            value = resolved(frame.env, node)
            return isinstance(value, Array) and value.form is not None and is_fractional(value.form.dtype)
        whole = values and assigned_in(frame.func.node)[node.id] == len(values)
        return (
            bool(whole)
            and all(_is_bound_whole(frame, node.id, value) for value in values)
            and all(_depends(frame, value, names, depth + 1) for value in values)
        )
    if isinstance(node, ast.BinOp):
        either = (node.left, node.right) if isinstance(node.op, OPERATORS) else ()
        return any(_depends(frame, each, names, depth + 1) for each in either)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _depends(frame, node.operand, names, depth + 1)
    if isinstance(node, ast.Subscript):
        return _depends(frame, node.value, names, depth + 1)
    if isinstance(node, ast.Call):
        return _gives_derivative(frame, node, names, depth + 1)
    return False


def _is_bound_whole(frame: Frame, name: str, value: ast.expr) -> bool:
    """Whether a name takes all of a value, and not a part of a tuple."""
    func = frame.func.node if frame.func is not None else None
    statements = straight(func.body) if isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    pairs = (pair for statement in statements for pair in pairs_of(statement))
    return any(bound is value and is_name(target, name) for target, bound in pairs)


def _gives_derivative(frame: Frame, call: ast.Call, names: frozenset[str], depth: int) -> bool:
    func = call.func
    given = [each for each in call.args if not isinstance(each, ast.Starred)]
    if isinstance(func, ast.Name) and _depends(frame, func, names, depth):
        return bool(given)
    name = canonical_of(frame.env, func)
    if name == "nnx.merge" or name in SMOOTH:
        # The condition of `where` has no derivative.
        return any(_depends(frame, each, names, depth) for each in given[1 if name == "jax.numpy.where" else 0 :])
    return isinstance(func, ast.Attribute) and func.attr in METHODS and _depends(frame, func.value, names, depth)
