"""A choice among one class (part of NNX622): what a layer with one output gives has nothing to compare it with.

A softmax over an axis of one element is 1 whatever the element is, its logarithm and the cross entropy are 0, and
`argmax` is 0. The model learns nothing, and nothing fails.

Invariants: the array is what a layer gives, and its last axis, that of what the layer tells apart, has one element. In
a method of a module that element is written there: a model that is made for one class, or one expert, asks nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.forms import literal
from nnx_lint.model.sized import is_sized
from nnx_lint.model.values import Array, ArrayAttr, Const
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import given, in_test, is_tried
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
    if not isinstance(array, Array) or array.maker is None or args.starred or "where" in args.keywords:
        return
    shape = literal(array).shape
    if not shape or shape[-1] != 1 or not isinstance(axis, Const) or axis.value not in _last(shape):
        return
    if not in_test(frame) and not is_tried(frame.module, event.node) and not _is_told(frame):
        text = f"compares the elements of the last axis, of which {layers.shown(shape)} has one: {problem}"
        report(frame.module, event.node, name=event.name, problem=text, mend=MEND)


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
