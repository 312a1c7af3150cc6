"""What a call of a recurrent cell returns, and what is done with it (NNX829).

A cell returns a pair: what it carries, and its output. Unpacked the other way round, or not at all, it goes wrong where
the one is used for the other. What layers get is in :mod:`~nnx_lint.rules.layers.sizes`.

A recurrent layer that goes through a sequence from its end gives its results in that order, unless it is told to keep
that of the sequence: joined with those of one that goes forwards, the first element meets the last one (NNX809).

Invariants: only what a cell or layer of the library returned counts, as it came out of the call.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model import forms
from nnx_lint.model.events import Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.recurrent import Pair
from nnx_lint.model.values import Array, Const, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import target_of, value_of
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.graphs.leaves import OF_ONE_ARRAY
from nnx_lint.rules.program import ancestors, given, is_tried, resolved
from nnx_rules import layers
from nnx_rules.rules import modules as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame

CARRYING = frozenset({"nnx.ConvLSTMCell", "nnx.LSTMCell", "nnx.OptimizedLSTMCell"})
"""Cells that carry something else than they give."""


class Swapped:
    """The names of outputs that took what a cell carries, as has been said."""

    def __init__(self) -> None:
        self.names: set[str] = set()


@judges_calls(rules.CELL_RESULTS, "()")
def cell_results(event: Called, report: Reporter) -> None:
    """``y, carry = cell(carry, x)``."""
    cell, module = event.callee, event.frame.module
    if not isinstance(cell, Obj) or getattr(cell.cls, "canonical", "") not in CARRYING:
        return
    target = swapped(event)
    if target is not None:
        output, carry = map(text_of, target.elts)
        report.memory(Swapped).names.add(output)
        fix = unsafe("Swap the names", replace(module.source, target, f"{carry}, {output}"))
        mend = f"{carry}, {output} = {event.name}(...)"
        report(module, target, fix=fix, problem=f"`{carry}`, which it gets again, is its output", mend=mend)


CARRIED = re.compile(r"carr|hidden|^_?[ch]\b|stat|out", re.IGNORECASE)
"""In the name of the first result: it is one of the two things that a cell gives, and not the first example of two."""


@judges_calls(rules.CELL_RESULTS, "()")
def layer_results(event: Called, report: Reporter) -> None:
    """``output, (h, c) = layer(x)``, as PyTorch gives them, of a layer that returns what it carries first, and only if
    it is asked.
    """
    layer, module = event.callee, event.frame.module
    if not isinstance(layer, Obj) or getattr(layer.cls, "canonical", "") != "nnx.RNN":
        return
    target = target_of(module, event.node)
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or is_tried(module, event.node):
        return
    output, carry = target.elts
    asked = event.keywords.get("return_carry")
    returned = asked.value if isinstance(asked, Const) else (forms.sizes(layer) or {}).get("return_carry")
    name = output.id if isinstance(output, ast.Name) and not OF_ANY.search(output.id) else None
    if returned is True and name is not None and _is_carry(carry, name):
        mend = f"{text_of(carry)}, {name} = {event.name}(...)"
        report(module, target, problem=f"`{name}` takes what the layer carries", mend=mend)
    elif isinstance(layer.args, dict) and not returned and asked is None and "return_carry" not in layer.args:
        fits = (forms.literal(event.result).shape or (None,))[0] == 2 and not CARRIED.search(text_of(output))
        if not fits and "**" not in {*event.keywords, *layer.args} and not isinstance(output, ast.Starred):
            mend = f"{text_of(output)}, {text_of(carry)} = {event.name}(..., return_carry=True)"
            problem = f"`{event.name}` gives the output alone unless it is asked, and its batch is taken apart here"
            report(module, target, problem=problem, mend=mend)


NAMED_CARRY = re.compile(r"carry$|hidden$|state$|^[ch]\d*$", re.IGNORECASE)
"""A name for what a layer carries on, and not for all outputs, which may be its hidden states."""

OF_ANY = re.compile(r"carr|hidd|stat|last|final|^_?[ch]", re.IGNORECASE)
"""A name that may be for what a layer carries on."""


def _is_carry(target: ast.expr, other: str) -> bool:
    """Whether a target is meant for what a layer carries on: a pair, or by its name. Where the other one is for
    nothing, all outputs may well be called the hidden states; nobody calls them what is carried.
    """
    name = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
    named = re.search(r"carry$", name, re.IGNORECASE) if other.startswith("_") else NAMED_CARRY.search(name)
    return isinstance(target, ast.Tuple) or named is not None


def swapped(event: Called) -> ast.Tuple | None:
    """The two targets of a call of a cell, if what it carries is the second of them."""
    target = target_of(event.frame.module, event.node)
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not event.nodes:
        return None
    first, second = map(text_of, target.elts)
    return target if second == text_of(event.nodes[0]) != first else None


@judges(rules.CELL_RESULTS, Used, of=(Pair,))
def pair_computed_with(event: Used, report: Reporter) -> None:
    """The pair is added to an array, or indexed along several axes."""
    found = computed_with(event)
    if found is not None:
        _report_pair(event.frame, *found, report)


def computed_with(event: Used) -> tuple[ast.AST, ast.expr] | None:
    """The expression that does with a tuple what only arrays can do, and the tuple in it."""
    node, frame = event.node, event.frame
    if event.what == "an index":
        several = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
        return (node, node.value) if several and isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Attribute):
        return None if hasattr(tuple, node.attr) else (node, node.value)
    outer = next(ancestors(frame.module, node), None)
    if event.what != "an operator" or not isinstance(outer, ast.BinOp) or not isinstance(node, ast.expr):
        return None
    if isinstance(outer.op, OF_NUMBERS):
        return outer, node
    other = outer.right if outer.left is node else outer.left
    return (outer, node) if isinstance(resolved(frame.env, other), Array) else None


OF_NUMBERS = (ast.Sub, ast.Div, ast.Pow, ast.MatMult)
"""Operators that no tuple has, whatever is on the other side."""


@judges_calls(rules.CELL_RESULTS, *(f"jax.numpy.{name}" for name in OF_ONE_ARRAY))
def pair_as_array(event: Called, report: Reporter) -> None:
    """A function of one array gets the pair."""
    if event.args and event.nodes and isinstance(event.args[0], Pair):
        _report_pair(event.frame, event.node, event.nodes[0], report)


@judges_calls(rules.LAYER_ARGUMENTS, "()")
def pair_as_carry(event: Called, report: Reporter) -> None:
    """``carry = encoder(x)`` of a layer that returns both, and ``decoder(y, initial_carry=carry)``."""
    library = event.callee.cls.works_as if isinstance(event.callee, Obj) else None
    name = library.canonical if library is not None else ""
    args = given(event)
    place = (0, "carry") if name in {*CARRYING, *layers.CELLS} else (1, "initial_carry") if name == "nnx.RNN" else None
    node = args.node_of(*place) if place is not None else None
    if place is None or node is None or not isinstance(args.get(*place), Pair) or is_tried(event.frame.module, node):
        return
    pair = text_of(node)
    problem = f"`{pair}` is what a layer carries and its output, and `{event.name}` is to go on from the first of them"
    mend = f"take the pair apart where the layer returns it: `{pair}, outputs = ...`"
    report(event.frame.module, node, cls=name.removeprefix("nnx."), problem=problem, mend=mend)


def _report_pair(frame: Frame, node: ast.AST, pair: ast.expr, report: Reporter) -> None:
    if not is_tried(frame.module, node):
        name = text_of(pair)
        report(frame.module, node, problem=f"`{name}` is both of them, and no array", mend=f"carry, output = {name}")


@judges_calls(rules.LAYER_ARGUMENTS, "jax.numpy.concatenate")
def joined_backwards(event: Called, report: Reporter) -> None:
    """``jnp.concatenate([forward(x), backward(x)], axis=-1)``, where the one goes on and the other comes back."""
    frame, parts = event.frame, event.nodes[0] if event.nodes else None
    axis = event.keywords.get("axis", event.args[1] if len(event.args) > 1 else None)
    if not isinstance(parts, (ast.List, ast.Tuple)) or len(parts.elts) < 2:
        return
    if not isinstance(axis, Const) or axis.value not in FEATURES:
        return
    made = [value_of(frame.module, item) if isinstance(item, ast.Name) else item for item in parts.elts]
    ways = [_way(frame, item) for item in made]
    back = next((item for item, way in zip(made, ways, strict=True) if way is False), None)
    if True in ways and isinstance(back, ast.Call):
        name = text_of(back.func)
        problem = f"`{name}` gives the last element first, and is joined with one that gives the first one first"
        report(frame.module, back, cls="RNN", problem=problem, mend="make it with `keep_order=True`")


FEATURES = (-1, 2)
"""The axis of the features of sequences."""


def _way(frame: Frame, node: ast.expr | None) -> bool | None:
    """Whether what a recurrent layer gives is in the order of the sequence; ``None`` if that is not known."""
    layer = resolved(frame.env, node.func) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(layer, Obj) or getattr(layer.cls, "canonical", "") != "nnx.RNN":
        return None
    arguments = forms.sizes(layer)
    told = {"reverse", "keep_order", "return_carry", None}
    if arguments is None or not told.isdisjoint(item.arg for item in node.keywords):
        return None
    flags = [arguments.get(name, False) for name in ("reverse", "keep_order", "return_carry", "time_major")]
    if flags[1:] != [False, False, False]:
        return True if flags == [True, True, False, False] else None
    return None if not isinstance(flags[0], bool) else not flags[0]
