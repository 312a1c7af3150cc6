"""A choice among one class (part of NNX622): what a layer with one output gives has nothing to compare it with, nor has
what a sum over the last axis leaves there with ``keepdims=True``.

A softmax over an axis of one element is 1 whatever the element is, its logarithm and the cross entropy are 0, and
`argmax` is 0. The model learns nothing, and nothing fails.

Invariants: the array is what a layer gives, and its last axis, that of what the layer tells apart, has one element, or
the text says of its last axis that it has one. In a method of a module that element is written there: a model that is
made for one class, or one expert, asks nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.forms import literal
from nnx_lint.model.sized import is_sized
from nnx_lint.model.values import Array, ArrayAttr, Const
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import values_in
from nnx_lint.rules.program import (
    FUNCTIONS,
    assigned_in,
    canonical_of,
    enclosing,
    given,
    in_test,
    is_tried,
    keyword_node,
)
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_rules import layers
from nnx_rules.rules import training as rules
from nnx_rules.shape_algebra import is_whole

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Value
    from nnx_rules.shapes import Shape

ONES, ZEROS, FIRST = "all of it becomes 1", "all of it becomes 0", "it is always 0"
LAST = Const(-1)

OF_ONE: dict[str, tuple[int, str, int, Const | None, str]] = {
    **{f"{head}.softmax": (0, "x", 1, LAST, ONES) for head in ("jax.nn", "nnx")},
    **{f"{head}.log_softmax": (0, "x", 1, LAST, ZEROS) for head in ("jax.nn", "nnx")},
    "jax.numpy.argmax": (0, "a", 1, None, FIRST),
    "jax.random.categorical": (1, "logits", 2, LAST, FIRST),
    **{
        f"{head}.softmax_cross_entropy{tail}": (0, "logits", 2, LAST, FIRST)
        for head in ("optax", "optax.losses")
        for tail in ("", "_with_integer_labels")
    },
}
"""What compares several numbers: where it takes them, and the axis, which axis that is if nothing is said, and what
comes of one number.
"""

MEND = (
    "a layer with one output says yes or no: `nnx.sigmoid`, `optax.sigmoid_binary_cross_entropy` and "
    "`logits[..., 0] > 0` go with it; for several classes give it as many outputs"
)


@judges_calls(rules.LOSS_ARGUMENTS, ".argmax", *OF_ONE)
def one_class(event: Called, report: Reporter) -> None:
    callee, args, frame = event.callee, given(event), event.frame
    if isinstance(callee, ArrayAttr):
        array: Value | None = callee.array
        axis, problem = args.get(0, "axis"), FIRST
    elif event.subject not in OF_ONE:
        return
    else:
        place, name, of_axis, usual, problem = OF_ONE[event.subject]
        array, axis = args.get(place, name), args.get(of_axis, "axis") or usual
    if args.starred or "where" in args.keywords:
        return
    node = args.node_of(*OF_ONE[event.subject][:2]) if event.subject in OF_ONE else None
    if isinstance(axis, Const) and axis.value == -1 and node is not None and _ends_in_one(frame, node):
        if not in_test(frame) and not is_tried(frame.module, event.node):
            text = f"compares the elements of the last axis, of which there is one here: {problem}"
            report(frame.module, event.node, name=event.name, problem=text, mend=OTHER_AXIS)
        return
    if not isinstance(array, Array) or array.maker is None:
        return
    shape = literal(array).shape
    if not shape or shape[-1] != 1 or not isinstance(axis, Const) or axis.value not in _last(shape):
        return
    if not in_test(frame) and not is_tried(frame.module, event.node) and not _is_told(frame):
        text = f"compares the elements of the last axis, of which {layers.shown(shape)} has one: {problem}"
        report(frame.module, event.node, name=event.name, problem=text, mend=MEND)


def _ends_in_one(frame: Frame, node: ast.expr, depth: int = 4) -> bool:
    """Whether the text says of an array that its last axis has one element, whatever array it is made of."""
    if isinstance(node, ast.Name) and depth:
        scope = enclosing(frame.module, node, *FUNCTIONS, ast.Module)
        bound = values_in(scope).get(node.id, []) if scope is not None else []
        once = scope is not None and assigned_in(scope)[node.id] == len(bound) == 1
        given_too = isinstance(scope, FUNCTIONS) and node.id in syntax_parameters.names(scope.args)
        return once and not given_too and _ends_in_one(frame, bound[0], depth - 1)
    if isinstance(node, ast.BinOp):
        sides = [(node.left, node.right), (node.right, node.left)]
        return any(_ends_in_one(frame, one, depth) and _is_number(frame, other) for one, other in sides)
    if isinstance(node, ast.UnaryOp):
        return _ends_in_one(frame, node.operand, depth)
    if isinstance(node, ast.Call):
        function = (canonical_of(frame.env, node.func) or "").removeprefix("jax.numpy.")
        is_method = isinstance(node.func, ast.Attribute) and function == ""
        name = node.func.attr if isinstance(node.func, ast.Attribute) and is_method else function
        keeps, axis = keyword_node(node, "keepdims"), keyword_node(node, "axis")
        places = node.args[not is_method :]
        axis = axis or (places[0] if len(places) == 1 and function != "linalg.norm" else None)
        return (
            name in REDUCING
            and isinstance(keeps, ast.Constant)
            and keeps.value is True
            and axis is not None
            and ast.unparse(axis) == "-1"
        )
    return False


def _is_number(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression is a number: one that is written there, or a parameter that is declared as one."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    scope = enclosing(frame.module, node, *FUNCTIONS)
    if not isinstance(node, ast.Name) or not isinstance(scope, FUNCTIONS) or node.id in values_in(scope):
        return False
    arguments = scope.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    annotation = next((item.annotation for item in named if item.arg == node.id), None)
    return isinstance(annotation, ast.Name) and annotation.id in {"float", "int"}


REDUCING = frozenset({"amax", "amin", "linalg.norm", "max", "mean", "min", "prod", "std", "sum", "var"})
"""Functions of an array that go over an axis."""

OTHER_AXIS = "say which axis holds what is to be compared, as in `axis=0`, or leave `keepdims=True` out"


def _last(shape: Shape) -> set[int]:
    """The numbers of the last axis."""
    return {-1, len(shape) - 1} if is_whole(shape) else {-1}


def _is_told(frame: Frame | None) -> bool:
    """Whether a method runs for an instance that was made with sizes."""
    while frame is not None:
        if is_sized(frame.receiver):
            return True
        frame = frame.caller
    return False
