"""Collectives over an axis that nothing around them maps over (NNX473).

``jax.lax.pmean(x, "batch")`` needs a transform that maps over an axis of that name. Code that was written for ``pmap``
keeps such calls when it moves to ``jit``. Invariants: only what a module runs when it is executed is judged, because a
function may be called under any transform, or what runs under a mesh, where the file names no such axis anywhere else;
every transform on the way is one that names no axes, or whose names are literals.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.containers import Seq
from nnx_lint.model.instances import certainly_stateful
from nnx_lint.model.meshes import MeshVal
from nnx_lint.model.values import Const, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import calls_in, given, is_tried
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import transforms as rules
from nnx_rules.transforms import SHAPE_KEEPING

if TYPE_CHECKING:
    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame

COLLECTIVES = {
    "jax.lax.axis_index": 0,
    **{f"jax.lax.{name}": 1 for name in ("all_gather", "all_to_all", "pmax", "pmean", "pmin", "ppermute", "psum")},
    "jax.lax.psum_scatter": 1,
}
"""Functions over a named axis, with the position of its name."""

NAMELESS = SHAPE_KEEPING | {"jax.eval_shape", "jax.lax.map", "nnx.eval_shape", "nnx.scan"}
"""Transforms that name no axis."""

MAPS = frozenset({"jax.pmap", "jax.vmap", "nnx.pmap", "nnx.vmap"})
"""Transforms that name the axis they map over as ``axis_name`` says."""

SPREADING = frozenset({"jax.shard_map", "nnx.shard_map"})
"""Transforms that name all axes of a mesh."""

LAST_NAMES = frozenset(name.rpartition(".")[2] for name in COLLECTIVES)


@judges_calls(rules.UNBOUND_AXIS_NAME, *COLLECTIVES)
def unbound_axis(event: Called, report: Reporter) -> None:
    _judge(event, given(event).get(COLLECTIVES[event.subject or ""], "axis_name"), report)


@judges_calls(rules.UNBOUND_AXIS_NAME, "()")
def unbound_axis_of_layer(event: Called, report: Reporter) -> None:
    """Statistics of a batch that is spread over devices."""
    layer = event.callee
    cls = layer.cls.works_as if isinstance(layer, Obj) else None
    if not isinstance(layer, Obj) or cls is None or cls.canonical != "nnx.BatchNorm":
        return
    if certainly_stateful(layer, given(event)):
        _judge(event, (layer.args or {}).get("axis_name"), report)


def _judge(event: Called, name: Value | None, report: Reporter) -> None:
    names = name.items if isinstance(name, Seq) and name.exact else [name]
    wanted = [item.value for item in names if isinstance(item, Const) and isinstance(item.value, str)]
    bound, whole = _bound(event.frame) if wanted else (None, True)
    missing = next((axis for axis in wanted if bound is not None and axis not in bound), None)
    if missing is not None and not whole and missing in _said_elsewhere(event.frame.module.tree):
        return  # another place of the file names it, such as a map around the function
    if missing is not None and not event.frame.doubtful and not is_tried(event.frame.module, event.node):
        report(event.frame.module, event.node, name=event.name, axis=missing)


@remembered
def _said_elsewhere(tree: ast.AST) -> frozenset[str]:
    """The texts that a file says, but for the axes of such functions."""
    asked: set[ast.AST] = set()
    for call in calls_in(tree):
        if last_name(call.func) in LAST_NAMES:
            asked.update(call.args[:2])
            asked.update(item.value for item in call.keywords if item.arg == "axis_name")
    texts = (node for node in walk(tree) if isinstance(node, ast.Constant) and node not in asked)
    return frozenset(node.value for node in texts if isinstance(node.value, str))


def _bound(frame: Frame) -> tuple[set[str] | None, bool]:
    """The names of the axes around a frame, and whether these are all that there are: a function that a transform
    spreads over devices may run under another transform, too. ``None`` where they are not known.
    """
    names: set[str] = set()
    for applied in (each for scope in frame.scope for each in (scope.applied, *scope.within)):
        own = _named_by(applied)
        if own is None:
            return None, True
        names |= own
    outermost = [frame, *(outer for outer, _ in frame.callers())][-1]
    whole = outermost.func is None and outermost.cls is None
    spread = any(each.row.name in SPREADING for scope in frame.scope for each in (scope.applied, *scope.within))
    return names if whole or spread else None, whole


def _named_by(applied: TransformVal) -> set[str] | None:
    """The axes that a transform names; ``None`` if they are not known."""
    if applied.row.name in NAMELESS:
        return set()
    if applied.row.name in MAPS and "**" not in applied.keywords:
        name = applied.keywords.get("axis_name", Const(None))
        known = isinstance(name, Const) and (name.value is None or isinstance(name.value, str))
        return ({str(name.value)} if name.value is not None else set()) if known and isinstance(name, Const) else None
    mesh = applied.keywords.get("mesh") if applied.row.name in SPREADING else None
    return set(mesh.axes) if isinstance(mesh, MeshVal) else None
