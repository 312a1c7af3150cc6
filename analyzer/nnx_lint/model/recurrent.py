"""Recurrent layers: what a cell carries and gives, and what a layer returns that runs one over a sequence.

A cell returns a pair: what it carries on, and its output. A layer that runs one returns the outputs of all elements, or
with ``return_carry`` such a pair. Invariants: the pair is known where the cell is one of the library, and
``return_carry`` a literal; shapes are those that :mod:`nnx_rules.layers` knows of cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model import forms
from nnx_lint.model.containers import Seq
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Array, Const, Obj, Value
from nnx_rules import layers
from nnx_rules.shape_algebra import is_whole
from nnx_rules.shapes import Form

if TYPE_CHECKING:
    from nnx_lint.model.calls import Arguments

IN_TWO = frozenset({"nnx.LSTMCell", "nnx.OptimizedLSTMCell"})
"""The cells that carry two arrays."""


class Pair(Seq):
    """What a cell carries on, and what it gives."""

    __slots__ = ()

    def __init__(self, carry: Value, output: Value, level: int) -> None:
        super().__init__("tuple", [carry, output], level)


def _canonical(obj: Obj) -> str:
    return obj.cls.works_as.canonical if obj.cls.works_as is not None else ""


def carry_of(cell: Obj, shape: Value | None, level: int) -> Value:
    """What ``initialize_carry`` of a cell gives for the shape of an input."""
    name = _canonical(cell)
    if name not in layers.CELLS:
        return UNKNOWN
    given, arguments = forms.shape_of(shape), forms.sizes(cell) or {}
    features = arguments.get("hidden_features")
    known = given is not None and isinstance(features, int)
    form = Form((*given[:-1], features)) if known and given is not None and isinstance(features, int) else None
    if name in IN_TWO:
        return Seq("tuple", [Array(level, form), Array(level, form)], level)
    return Array(level, form)


def result(obj: Obj, args: Arguments, level: int) -> Pair | None:
    """The pair that a call of a recurrent layer returns; ``None`` if it is none, or not known to be."""
    name = _canonical(obj)
    if args.starred or "**" in args.keywords:
        return None
    if name in IN_TWO and isinstance(present(args.get(1, "inputs") or UNKNOWN), Seq):
        return None  # the two are given the other way round, and the call fails
    if name in layers.CELLS:
        return Pair(_kept(args.get(0, "carry"), level), Array(level, _given(obj, args.get(1, "inputs"))), level)
    asked = args.keywords.get("return_carry", (obj.args or {}).get("return_carry"))
    if name == "nnx.RNN" and isinstance(asked, Const) and asked.value is True:
        inputs = args.get(0, "inputs")
        form = forms.recurrent(obj, forms.literal(inputs))[0] if isinstance(inputs, Array) else None
        major = args.keywords.get("time_major", (obj.args or {}).get("time_major"))
        return Pair(UNKNOWN if major is not None else _last(obj, form, level), Array(level, form), level)
    return None


def _last(layer: Obj, outputs: Form | None, level: int) -> Value:
    """What the cell of a layer carries at the end of a sequence: as its outputs, without the axis that it goes on."""
    from nnx_lint.model.attributes import attribute_of

    held = attribute_of(layer, "cell")
    cell = present(held.value) if held is not None else None
    name = _canonical(cell) if isinstance(cell, Obj) else ""
    shape = outputs.shape if outputs is not None else None
    if shape is None or not is_whole(shape) or len(shape) < 2 or name not in {*IN_TWO, *layers.CARRIES}:
        return UNKNOWN
    form = Form((*shape[:-2], shape[-1]))
    return Seq("tuple", [Array(level, form), Array(level, form)], level) if name in IN_TWO else Array(level, form)


def _given(cell: Obj, inputs: Value | None) -> Form | None:
    """What is known of the output of a cell."""
    arguments = forms.sizes(cell) if forms.is_original(cell) else None
    known = forms.literal(inputs) if isinstance(inputs, Array) else None
    if arguments is None or known is None:
        return None
    return forms.computed_by(cell, layers.call(_canonical(cell), arguments, known, layers.CELLS)[0])


def _kept(carry: Value | None, level: int) -> Value:
    """What a cell carries on is like what it got."""
    if isinstance(carry, Seq) and carry.exact and carry.type == "tuple":
        return Seq("tuple", [_kept(item, level) for item in carry.items], level)
    return Array(level, carry.form) if isinstance(carry, Array) else UNKNOWN
