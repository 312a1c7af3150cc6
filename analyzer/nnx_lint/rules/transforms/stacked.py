"""Modules that a map has stacked, called as if they were one, or indexed as if they were a list (NNX474).

What ``nnx.vmap`` makes has an axis for the members in each Variable. A layer that multiplies by such a kernel takes the
members for features.

Invariants: only a layer that is really reached by a call counts, and only where it is known how many axes the maps
around have taken away again; what is put into a module in between, or merged of a State, is not followed.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.events import Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import is_tried
from nnx_rules.rules import transforms as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.values import Value

MULTIPLYING = frozenset({"nnx.Conv", "nnx.ConvTranspose", "nnx.Linear"})
"""Layers that cannot do with an axis more."""


def _is_stacked(value: Value | None) -> bool:
    """Whether maps have certainly given axes to the Variables of a module, and none has taken them away."""
    return isinstance(value, Obj) and value.gained is not None and value.gained > 0 and value.leaf_level is None


def calls_stacked(event: Called) -> bool:
    """Whether a layer is called that has an axis for the members of a map."""
    cls = event.callee.cls if isinstance(event.callee, Obj) and _is_stacked(event.callee) else None
    return isinstance(cls, LibClass) and cls.canonical in MULTIPLYING


@judges_calls(rules.STACKED_CALLED, "()", when=calls_stacked)
def stacked_called(event: Called, report: Reporter) -> None:
    """Report where the outermost of the modules that have the axis is called."""
    frame, node = event.frame, event.node
    while _is_stacked(frame.receiver) and frame.caller is not None and frame.call is not None:
        node, frame = frame.call, frame.caller
    if any(not each.row.keeps_shapes for scope in event.frame.scope for each in scope.within):
        return  # a map under another transform, which may hand it what it does not look at
    if isinstance(node, ast.Call) and not frame.doubtful and not is_tried(frame.module, node):
        problem, name = "this call takes it for one module", text_of(node.func)
        mend = f"map over it: `nnx.vmap(lambda member, x: member(x), in_axes=(0, None))({name}, x)`"
        report(frame.module, node, name=name, problem=problem, mend=mend)


def picks_from_stacked(event: Used) -> bool:
    """Whether an index is asked of what a map has stacked."""
    return event.what == "an index" and _is_stacked(event.value)


@judges(rules.STACKED_CALLED, Used, when=picks_from_stacked)
def stacked_indexed(event: Used, report: Reporter) -> None:
    """A member is asked for by its place, as if the members were a list."""
    obj, frame, node = event.value, event.frame, event.node
    cls = obj.cls if isinstance(obj, Obj) else None
    if not isinstance(cls, UserClass) or cls.is_open or cls.remade or cls.opaque or cls.find("__getitem__") is not None:
        return
    plain = cls.library is not None and cls.library.canonical in {"nnx.Module", "nnx.Pytree"}
    if plain and isinstance(node, ast.Subscript) and not frame.doubtful and not is_tried(frame.module, node):
        name = text_of(node.value)
        mend = (
            f"take it of the State: `nnx.merge(graphdef, jax.tree.map(lambda x: x[0], state))` of `nnx.split({name})`"
        )
        report(frame.module, node, name=name, problem="it is no list of them", mend=mend)
