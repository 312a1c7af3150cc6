"""What loops give back: ``scan``, ``fori_loop`` and ``while_loop``, of JAX and of NNX.

JAX demands that a step returns what it carries in the types that it got it, so one step says what a loop carries out;
what a scan collects has an axis more than what each step returns.

Invariants: only plain trees of arrays are followed, records among them, States and the states of optimizers that
are carried, and the objects that ``nnx.scan`` carries, which it changes in place and gives back themselves; any other
module, or anything else that goes through a loop, is not known after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model import forms
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.crossing import SAME, Axes, extent, gained_by, refresh
from nnx_lint.model.handed import is_model
from nnx_lint.model.states import OptStateVal, StateVal
from nnx_lint.model.unions import UnionVal, join
from nnx_lint.model.values import UNKNOWN, Array, Const, Obj, Value
from nnx_rules.shapes import Dimension, Form

if TYPE_CHECKING:
    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.frames import Frame


class Loop(NamedTuple):
    """A transform that runs a function in steps.

    ``parameters`` is how many arguments a step gets, ``carry`` which of them is carried, and ``pairs`` whether a step
    returns an output beside the carry.
    """

    parameters: int
    carry: int
    pairs: bool = False


LOOPS = {
    "jax.lax.scan": Loop(2, 0, pairs=True),
    "jax.lax.fori_loop": Loop(2, 1),
    "nnx.fori_loop": Loop(2, 1),
    "jax.lax.while_loop": Loop(1, 0),
    "nnx.while_loop": Loop(1, 0),
}
"""The loops whose steps have one form; that of a step of ``nnx.scan`` is an option of the call."""

CARRYING = frozenset(name for name, loop in LOOPS.items() if not loop.pairs)
"""Loops that give back what the last step returns."""

SCANS = frozenset({"jax.lax.scan", "nnx.scan"})
"""Loops whose steps return, where no option says otherwise, what they carry and what is collected."""

STEPPING = CARRYING | SCANS
"""Loops that carry values from step to step."""


def carried_at(loop: str) -> int:
    """Which argument of a step is the carry, where no option says otherwise."""
    return LOOPS[loop].carry if loop in LOOPS else 0


def given_back(name: str, frame: Frame, step: Value, args: Arguments) -> Value:
    """What a loop of call form gives back, whose step returns this."""
    if name in CARRYING:
        begun = args.get(LOOPS[name].carry + 2, "init_val")
        return after(_as_begun(step, begun), frame.level, SAME)
    if name == ASSOCIATIVE:
        return _as_begun(UNKNOWN, args.get(1, "elems"))
    if name != "jax.lax.scan":
        return UNKNOWN
    pair = step.items if isinstance(step, Seq) and step.exact and len(step.items) == 2 else (UNKNOWN, UNKNOWN)
    told = args.get(3, "length")
    size = forms.dimension(told) if isinstance(told, Const) and told.value is not None else extent(args.get(2, "xs"), 0)
    carried = _as_begun(pair[0], args.get(1, "init"))
    return Seq("tuple", [after(carried, frame.level, SAME), after(pair[1], frame.level, Axes(1, 0, size))], frame.level)


ASSOCIATIVE = "jax.lax.associative_scan"
"""Puts together neighbours, each with all before it; there are as many in the end, and of the same shapes."""


def _as_begun(step: Value, begun: Value | None) -> Value:
    """What a step carries on; arrays of which nothing is known have the shape that the loop began with."""
    if step is UNKNOWN and isinstance(begun, Seq) and begun.exact:
        return Seq(begun.type, [_as_begun(UNKNOWN, item) for item in begun.items], begun.level)
    if isinstance(step, Seq) and isinstance(begun, Seq) and step.exact and begun.exact:
        items = [_as_begun(*pair) for pair in zip(step.items, begun.items, strict=False)]
        return Seq(step.type, items, step.level) if len(items) == len(step.items) == len(begun.items) else step
    known = begun.form.shape if isinstance(begun, Array) and begun.form is not None else None
    unknown = step is UNKNOWN or (type(step) is Array and step.form is None)
    return Array(0, Form(known)) if unknown and known is not None else step


def scanned(applied: TransformVal, frame: Frame, step: Value, size: Dimension) -> Value:
    """What a function under ``nnx.scan`` gives back, which returns this in each of so many steps."""
    if isinstance(step, Seq) and step.type == "tuple" and step.exact:
        items = [
            _scanned(item, frame.level, gained_by(applied, "out_axes", at, size)) for at, item in enumerate(step.items)
        ]
        return Seq("tuple", items, frame.level)
    return _scanned(step, frame.level, gained_by(applied, "out_axes", 0, size))


def _scanned(value: Value, level: int, axes: Axes) -> Value:
    """A part of what a step of ``nnx.scan`` returns, as it is after the scan: an object that was carried is itself."""
    if axes.gained == 0 and isinstance(value, Seq) and value.exact and value.type == "tuple":
        return Seq("tuple", [_scanned(item, level, axes) for item in value.items], level)
    before = value
    while isinstance(before, Obj) and before.level > level and before.template is not None:
        before = before.template
    own = before if isinstance(before, Obj) and before is not value and before.level == level else None
    carries = axes.gained == 0 and own is not None and own.cls.is_pytree and not (own.cls.is_variable or is_model(own))
    return own if own is not None and carries else after(value, level, axes)


def after(value: Value, level: int, axes: Axes) -> Value:
    """A part of what a step returns, as it is after the loop; it may have gained an axis for the steps."""
    if isinstance(value, Const):
        number = isinstance(value.value, (bool, int, float, complex))
        return refresh(Array(level, Form(())), level, axes=axes) if number else value
    if isinstance(value, Seq) and value.exact and value.type in {"tuple", "list"}:
        return Seq(value.type, [after(item, level, axes) for item in value.items], level)
    if isinstance(value, DictVal) and value.exact:
        return DictVal([(key, after(item, level, axes)) for key, item in value.items], level)
    if isinstance(value, UnionVal):
        return join(*(after(option, level, axes) for option in value.options))
    if isinstance(value, Obj) and isinstance(value.cls, UserClass) and value.cls.renewed_by:
        copy = refresh(value, level, axes=axes)
        if isinstance(copy, Obj) and value.args is not None:
            copy.args = {name: after(item, level, axes) for name, item in value.args.items()}
        return copy
    carried = axes.gained == 0 and isinstance(value, (StateVal, OptStateVal))
    return refresh(value, level, axes=axes) if isinstance(value, Array) or carried else UNKNOWN
