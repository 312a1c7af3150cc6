"""Losses: labels and targets in the form that a loss of optax takes (NNX622).

Integers where it takes a distribution over the classes and the reverse, probabilities where it takes logits, and a
column of predictions beside a row of targets, which are compared each with each; or what such a pair became before.
So with what else takes logits, or logarithms of probabilities: a draw of classes, a softmax, a divergence.

Invariants: the number of dimensions decides, or the dtype where one is asked for, and only where they are known for
certain; a dimension that has one element stands for each other one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.events import Called, Combined
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import literal
from nnx_lint.model.pairing import square_in
from nnx_lint.model.values import Array, ArrayAttr, Const
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.program import given, is_tried
from nnx_lint.rules.training.swapped import is_swapped
from nnx_rules import layers
from nnx_rules.rules import training as rules
from nnx_rules.shape_algebra import broadcast, is_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value
    from nnx_rules.shapes import Form, Shape

INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})


class Problem(NamedTuple):
    """What is wrong with the arguments of a loss, and what to do."""

    problem: str
    mend: str


def _of_integers(logits: Form, labels: Form, name: str) -> Problem | None:
    """A loss that takes the number of the class of each example."""
    other = name.replace("_with_integer_labels", "")
    mend = f"pass the numbers of the classes as integers, or use `{other}` for one-hot labels"
    if layers.is_fractional(labels.dtype):
        return Problem(f"takes labels that are integers, and these are {labels.dtype}", mend)
    wanted = logits.shape[:-1] if logits.shape else None
    if _count(logits.shape) is not None and _count(labels.shape) not in {None, _count(wanted)}:
        return Problem(f"takes one label for each row of {_shown(logits)}, and these are {_shown(labels)}", mend)
    if wanted is not None and labels.shape is not None and broadcast(wanted, labels.shape) is None:
        return Problem(f"takes one label for each row of {_shown(logits)}, and these are {_shown(labels)}", ALIGN)
    return None


ALIGN = "labels have the shape of the logits without its last axis, that of the classes"


def _of_distributions(logits: Form, labels: Form, name: str) -> Problem | None:
    """A loss that takes a distribution over the classes for each example."""
    counts = _count(logits.shape), _count(labels.shape)
    if labels.dtype not in INTEGERS or None in counts or not logits.shape:
        return _unlike(logits, labels)
    column = labels.shape is not None and labels.shape[-1:] == (1,) != logits.shape[-1:]
    if counts[0] == counts[1] and not (column and isinstance(logits.shape[-1], int)):
        return _unlike(logits, labels)
    return Problem(
        f"takes a probability for each class, and gets integers of shape {_shown(labels)} for logits {_shown(logits)}",
        f"use `{name}_with_integer_labels`, or `jax.nn.one_hot(labels, num_classes)`",
    )


def _unlike(one: Form, other: Form) -> Problem | None:
    """Two arrays that do not go together element by element."""
    if one.shape is None or other.shape is None or broadcast(one.shape, other.shape) is not None:
        return None
    return Problem(f"gets arrays of shapes {_shown(one)} and {_shown(other)}", "give both the same shape")


def _of_pairs(predictions: Form, targets: Form, name: str) -> Problem | None:
    """A loss of two arrays of one shape."""
    return _each_with_each(predictions, targets) or _unlike(predictions, targets)


def _each_with_each(predictions: Form, targets: Form) -> Problem | None:
    """A column beside a row."""
    for column, row in ((predictions.shape, targets.shape), (targets.shape, predictions.shape)):
        if column is None or row is None or not row or not is_whole(row) or _count(column) != len(row) + 1:
            continue
        each = broadcast(column, row)
        if column[-1] == 1 and row[-1] != 1 and column[:-1] == row and each is not None:
            shown = layers.shown(each)
            return Problem(
                f"gets {_shown(predictions)} and {_shown(targets)}, which are compared each with each: {shown}",
                "give both the same shape: `predictions.squeeze(-1)`, or `targets[..., None]`",
            )
    return None


def _of_equals(predictions: Form, targets: Form, name: str) -> Problem | None:
    """A loss that takes targets of the shape of the predictions, and repeats nothing."""
    one, other = predictions.shape, targets.shape
    if one is None or other is None or not is_whole(one) or not is_whole(other):
        return _of_pairs(predictions, targets, name)
    sizes = [pair for pair in zip(one, other, strict=False) if all(isinstance(size, int) for size in pair)]
    if len(one) == len(other) and all(left == right for left, right in sizes):
        return None
    return _each_with_each(predictions, targets) or Problem(
        f"gets predictions of shape {_shown(predictions)} and targets of shape {_shown(targets)}",
        "give both the same shape: it repeats nothing",
    )


def _count(shape: Shape | None) -> int | None:
    """How many dimensions a shape has, if that is known."""
    return len(shape) if shape is not None and is_whole(shape) else None


def _shown(form: Form) -> str:
    return layers.shown(form.shape or ())


@judges(rules.LOSS_ARGUMENTS, Combined)
def difference(event: Combined, report: Reporter) -> None:
    """A difference that a program writes itself, of what a layer gives and targets."""
    node, sides = event.node, (event.left, event.right)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub) or is_tried(event.frame.module, node):
        return
    if text_of(_whole(node.left)) == text_of(_whole(node.right)):
        return  # all pairs of one array
    made = [side for side in sides if side.maker is not None and _count(literal(side).shape) not in {None, 0, 1}]
    problem = _each_with_each(literal(event.left), literal(event.right))
    rows = [literal(side).shape or () for side in sides]
    counted = all(isinstance(size, int) for row in rows for size in row)
    if problem is not None and made and (counted or not _is_of_module(event.frame)):
        report(event.frame.module, node, name=ast.unparse(node), **problem._asdict())
    _compared(sides, event.frame.module, node, report)


def _compared(sides: tuple[Array, Array], module: Module, node: ast.expr, report: Reporter) -> None:
    """What a layer gives is compared with a row that was set beside a column."""
    for square, column in (sides, sides[::-1]):
        shapes = literal(square).shape, literal(column).shape
        if shapes[0] and shapes[1] == (*shapes[0][:-1], 1) and column.maker is not None:
            _report_square(square, module, node, f"`{ast.unparse(node)}` compares it", report)


def _whole(node: ast.expr) -> ast.expr:
    """What an expression takes a part of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _is_of_module(frame: Frame) -> bool:
    """Whether a method of a module runs, which may compare one number with several centers or positions."""
    cls = frame.func.cls if frame.func is not None else None
    return cls is not None and cls.derives_from("nnx.Module")


MEANS = frozenset({"mean", "sum"})
"""What makes one number of a loss for each example."""


@judges_calls(rules.LOSS_ARGUMENTS, ArrayAttr, *(f"jax.numpy.{name}" for name in MEANS))
def average(event: Called, report: Reporter) -> None:
    """The mean of products of each with each, which is the product of two means."""
    callee, args = event.callee, given(event)
    method = callee if isinstance(callee, ArrayAttr) and not callee.owner else None
    if event.keywords or len(event.args) != (method is None) or (method is not None and method.name not in MEANS):
        return
    array = method.array if method is not None else args.get(0, "a")
    square = square_in(array) if isinstance(array, Array) else None
    if isinstance(array, Array) and square is not None and isinstance(square.op, (ast.Mult, ast.Div)):
        _report_square(array, event.frame.module, event.node, "the mean of all of it is taken here", report)


def _report_square(square: Array, module: Module, node: ast.AST, use: str, report: Reporter) -> None:
    """A row that was set beside a column, where what came of it is used as if it were one number for each example."""
    shape = literal(square).shape
    if square_in(square) is None or square.maker is None or shape is None or is_tried(module, node):
        return
    row, column = layers.shown(shape[:-1]), layers.shown((*shape[:-1], 1))
    report(
        *square.maker[1:],
        related=(related(module, node, use),),
        name=square.maker[0],
        problem=f"gets {row} and {column}, which are put together each with each: {layers.shown(shape)}",
        mend="give both the same shape: `.squeeze(-1)` makes a row of the column, `[..., None]` a column of the row",
    )


def _squashed(logits: Value | None) -> Problem | None:
    """Probabilities where a loss takes logits, of which it makes probabilities itself."""
    function = logits.squashed if isinstance(logits, Array) else None
    if function is None:
        return None
    return Problem(
        f"takes logits, and gets what `{function}` made of them: the gradients become small, and the loss stays large",
        f"leave `{function}` out where the loss is computed",
    )


SWAPPED = Problem(
    "takes the logits first and then the labels, and gets the labels of the data first, what the model gives second",
    "change them round, or name them: `logits=...`, `labels=...`",
)

LABELS, TARGETS = ("logits", "labels"), ("predictions", "targets")
LOSSES: dict[str, tuple[tuple[str, str], Callable[[Form, Form, str], Problem | None]]] = {
    "softmax_cross_entropy_with_integer_labels": (LABELS, _of_integers),
    "softmax_cross_entropy": (LABELS, _of_distributions),
    "sigmoid_binary_cross_entropy": (LABELS, _of_pairs),
    "huber_loss": (TARGETS, _of_pairs),
    "l2_loss": (TARGETS, _of_equals),
    "log_cosh": (TARGETS, _of_pairs),
    "squared_error": (TARGETS, _of_equals),
}
"""Losses of optax, with the names of their first two arguments and what judges these."""


@judges_calls(rules.LOSS_ARGUMENTS, *(f"{head}.{name}" for head in ("optax", "optax.losses") for name in LOSSES))
def loss_arguments(event: Called, report: Reporter) -> None:
    args, name = given(event), (event.subject or "").rpartition(".")[2]
    names, judge = LOSSES[name]
    if args.starred or args.keywords.keys() - {*names, "delta", "axis", "where"} or "axis" in args.keywords:
        return
    values = [args.get(place, each) for place, each in enumerate(names)]
    problem = _squashed(values[0]) if names is LABELS else None
    if names is LABELS and problem is None and len(event.nodes) > 1:
        swapped = is_swapped(event.frame.module, event.node, event.nodes[0], event.nodes[1])
        problem = SWAPPED if swapped and not is_tried(event.frame.module, event.node) else None
    problem = problem or judge(literal(values[0]), literal(values[1]), name)
    node = args.node_of(1, names[1])
    if problem is not None and isinstance(node, ast.expr):
        report(event.frame.module, event.node, name=event.name, **problem._asdict())
    elif isinstance(values[0], Array) and isinstance(values[1], Array) and isinstance(event.node, ast.expr):
        _compared((values[0], values[1]), event.frame.module, event.node, report)


# -- probabilities in the place of what they were made of --------------------------------------------------------------

SOFTMAX, SIGMOID = frozenset({"nnx.softmax"}), frozenset({"nnx.sigmoid"})
AGAIN = "takes logits, and gets what `{made}` made of them: probabilities become probabilities once more, almost even"
EVEN = "takes logits, and gets what `{made}` made of them: it draws almost evenly, whatever the logits say"
NO_LOGARITHMS = "takes logarithms of probabilities, and gets what `{made}` made: the probabilities themselves"

OF_LOGITS = {
    **{f"{head}.{name}": (0, "x", SOFTMAX, AGAIN) for head in ("jax.nn", "nnx") for name in ("softmax", "log_softmax")},
    **{f"{head}.{name}": (0, "x", SIGMOID, AGAIN) for head in ("jax.nn", "nnx") for name in ("sigmoid", "log_sigmoid")},
    "jax.random.categorical": (1, "logits", SOFTMAX, EVEN),
    **{
        f"optax.{head}{name}": (0, "logits", made, AGAIN)
        for head in ("", "losses.")
        for name, made in (
            ("ctc_loss", SOFTMAX),
            ("ctc_loss_with_forward_probs", SOFTMAX),
            ("poly_loss_cross_entropy", SOFTMAX),
            ("sigmoid_focal_loss", SIGMOID),
        )
    },
    **{
        f"optax.{head}kl_divergence{tail}": (0, "log_predictions", SOFTMAX, NO_LOGARITHMS)
        for head in ("", "losses.")
        for tail in ("", "_with_log_targets")
    },
}
"""Functions that take logits or logarithms: where, what gives them neither, and what comes of that."""


@judges_calls(rules.LOSS_ARGUMENTS, *OF_LOGITS)
def probabilities_as_logits(event: Called, report: Reporter) -> None:
    position, name, makers, problem = OF_LOGITS[event.subject or ""]
    args = given(event)
    array, node = args.get(position, name), args.node_of(position, name)
    made = array.squashed if isinstance(array, Array) and not args.starred else None
    axis = args.get(1, "axis") if name == "x" else None
    if axis is not None and not (isinstance(axis, Const) and axis.value == -1):
        return  # another one, maybe
    if made in makers and node is not None and not is_tried(event.frame.module, node):
        logarithms = problem is NO_LOGARITHMS
        mend = f"give it `nnx.log_{made.removeprefix('nnx.')}(...)`" if logarithms else f"leave out `{made}`"
        report(event.frame.module, event.node, name=event.name, problem=problem.format(made=made), mend=mend)
