"""Slices of arrays that begin where an array says: what `jax.lax` puts in, or takes out, fits the array (NNX826).

Caches of keys and values are written so, one step at a time. `jax.lax` converts nothing and adds no axes: what is put
in has the dtype of the array and as many axes, there is a start for each, and it is no larger along any.

Invariants: as in :mod:`~nnx_lint.rules.layers.operands`, only what is known for certain is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model import forms
from nnx_lint.model.containers import Seq
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import ArrayAttr
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.layers.named import are_unlike
from nnx_lint.rules.layers.operands import fits, is_prepared
from nnx_lint.rules.program import given
from nnx_rules import layers
from nnx_rules.rules import modules as rules
from nnx_rules.shape_algebra import is_whole
from nnx_rules.shapes import in_short
from nnx_rules.sizes import Size

if TYPE_CHECKING:
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value
    from nnx_rules.shapes import Form

STARTS = {"jax.lax.dynamic_update_slice": 2, "jax.lax.dynamic_slice": 1}
"""Functions that take a start for each axis, with its position."""


@judges_calls(rules.ARRAY_SHAPES, *STARTS)
def starts(event: Called, report: Reporter) -> None:
    """As many starts as the array has axes."""
    args = given(event)
    operand, begins = _held(args.get(0, "operand")), args.get(STARTS[event.subject or ""], "start_indices")
    if args.starred or operand.shape is None or not is_whole(operand.shape) or not isinstance(begins, Seq):
        return
    counted = begins.exact and not begins.shrunk and begins.type in {"tuple", "list"}
    if counted and len(begins.items) != len(operand.shape) and not is_prepared(event.frame, event.node):
        count = len(begins.items)
        problem = f"an array of shape {layers.shown(operand.shape)} is sliced from {count} start{'s'[: count != 1]}"
        report(event.frame.module, event.node, problem=problem, mend="give a start for each axis, 0 for a whole one")


PUTTING = ("jax.lax.dynamic_update_slice", "jax.lax.dynamic_update_slice_in_dim")


@judges_calls(rules.ARRAY_SHAPES, *PUTTING)
def put_in(event: Called, report: Reporter) -> None:
    """What is put into an array is of its dtype, and of a shape that fits into it."""
    args = given(event)
    found = None if args.starred else _unfit(args)
    if found is not None and not is_prepared(event.frame, event.node):
        problem, mend = found
        report(event.frame.module, event.node, problem=problem, mend=mend)


def _unfit(args: Arguments) -> tuple[str, str] | None:
    """Why something cannot be put into an array, and what to do about it."""
    operand, update = _held(args.get(0, "operand")), _held(args.get(1, "update"))
    node, place = args.node_of(1, "update"), args.node_of(0, "operand")
    name = text_of(node) if node is not None else "the update"
    if operand.dtype and update.dtype and in_short(operand.dtype) != in_short(update.dtype):
        target = text_of(place) if place is not None else "array"
        problem = f"`{name}` is {update.dtype} and is put into an array of {operand.dtype}: `jax.lax` converts nothing"
        return problem, f"convert it: `{name}.astype({target}.dtype)`"
    if operand.shape is None or update.shape is None or not is_whole(operand.shape) or not is_whole(update.shape):
        return None
    shapes = f"`{name}` of shape {layers.shown(update.shape)} is put into an array of shape"
    problem = f"{shapes} {layers.shown(operand.shape)}"
    if len(operand.shape) != len(update.shape):
        return problem, "give both the same axes in the same order: `update[None]` adds one in front"
    sizes = zip(operand.shape, update.shape, strict=True)
    if any(isinstance(whole, int) and isinstance(part, int) and part > whole for whole, part in sizes):
        return problem, "it may be no larger than the array along any axis"
    return None


def _is_update(event: Called) -> bool:
    method = event.callee
    return isinstance(method, ArrayAttr) and method.part is not None and method.name in UPDATES and len(event.args) == 1


UPDATES = frozenset({"add", "max", "min", "mul", "multiply", "set"})
"""Methods of ``array.at[...]`` that put in what they are given."""


@judges_calls(rules.ARRAY_SHAPES, ArrayAttr, when=_is_update)
def put_at(event: Called, report: Reporter) -> None:
    """The same for ``array.at[...].set(update)``, which repeats an update along axes that it lacks, or has as 1."""
    method, update = event.callee, _held(event.args[0]).shape
    part = method.part.shape if isinstance(method, ArrayAttr) and method.part is not None else None
    if not part or not update or is_prepared(event.frame, event.node):
        return
    whole = is_whole(part) and is_whole(update)
    named = isinstance(part[-1], Size) and isinstance(update[-1], Size)
    if (whole and not fits(update, part)) or (named and are_unlike(event.frame, event.node, update[-1], part[-1])):
        name = text_of(event.nodes[0]) if event.nodes else "the update"
        problem = f"`{name}` of shape {layers.shown(update)} is put into a part of shape {layers.shown(part)}"
        mend = "it has the shape of what the index picks, or is repeated along axes that it lacks or has as 1"
        report(event.frame.module, event.node, problem=problem, mend=mend)


def _held(value: Value | None) -> Form:
    """The array that a value is, or that a Variable holds."""
    return forms.literal(forms.held_array(value) if value is not None else None)
