"""Losses: labels and targets in the form that a loss of optax takes (NNX622).

Integers where it takes a distribution over the classes and the reverse, probabilities where it takes logits, and a
column of predictions beside a row of targets, which are compared each with each.

Invariants: the number of dimensions decides, or the dtype where one is asked for, and only where they are known for
certain; a dimension that has one element stands for each other one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.events import Called, Combined
from nnx_lint.model.forms import literal
from nnx_lint.model.values import Array
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import given, is_tried
from nnx_rules import layers
from nnx_rules.rules import training as rules
from nnx_rules.shape_algebra import broadcast, is_whole

if TYPE_CHECKING:
    from collections.abc import Callable

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
    made = [side for side in sides if side.maker is not None and _count(literal(side).shape) not in {None, 0, 1}]
    problem = _each_with_each(literal(event.left), literal(event.right))
    if problem is not None and made:
        report(event.frame.module, node, name=ast.unparse(node), **problem._asdict())


def _squashed(logits: Value | None, name: str) -> Problem | None:
    """Probabilities where a loss takes logits, of which it makes probabilities itself."""
    function = logits.squashed if isinstance(logits, Array) else None
    if function is None or (function == "nnx.sigmoid") is not name.startswith("sigmoid"):
        return None
    return Problem(
        f"takes logits, and gets what `{function}` made of them: the gradients become small, and the loss stays large",
        f"leave `{function}` out where the loss is computed",
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
    problem = _squashed(values[0], name) if names is LABELS else None
    problem = problem or judge(literal(values[0]), literal(values[1]), name)
    node = args.node_of(1, names[1])
    if problem is not None and isinstance(node, ast.expr):
        report(event.frame.module, event.node, name=event.name, **problem._asdict())
