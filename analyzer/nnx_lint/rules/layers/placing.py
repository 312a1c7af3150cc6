"""Specs and meshes where JAX places arrays: the two in each other's place, one without the other (NNX809).

Invariant: as for Variables with a sharding, only in what a module runs when it is executed is it known that no mesh is
set, and there only outside of all ``with`` statements: JAX takes the mesh of the older ``with mesh:``, too.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.containers import Seq
from nnx_lint.model.expressions import text_of
from nnx_lint.model.meshes import SHARDINGS, MeshVal, SpecVal
from nnx_lint.model.modes import NO_MESH
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import around, given, is_tried
from nnx_rules.rules import modules as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame


@judges_calls(rules.LAYER_ARGUMENTS, *SHARDINGS)
def mesh_and_spec(event: Called, report: Reporter) -> None:
    """A sharding that gets its spec where the mesh belongs, or something else than a spec beside the mesh."""
    args, module = given(event), event.frame.module
    mesh, spec = args.get(0, "mesh"), args.get(1, "spec")
    if is_tried(module, event.node):
        return
    if isinstance(mesh, SpecVal):
        problem = "takes the mesh first, and gets a spec there"
        mend = f"`{event.name}(mesh, {text_of(args.node_of(0, 'mesh') or event.node)})`"
        report(module, event.node, cls=event.name, problem=problem, mend=mend)
    elif isinstance(mesh, MeshVal) and isinstance(spec, Seq) and spec.type in {"list", "tuple"}:
        where = args.node_of(1, "spec") or event.node
        problem = f"takes a `PartitionSpec` second, and gets a {spec.type}"
        report(module, where, cls=event.name, problem=problem, mend="write `P(...)` of `jax.sharding.PartitionSpec`")


PLACING = {
    "jax.device_put": "device",
    "jax.lax.with_sharding_constraint": "shardings",
    "jax.sharding.reshard": "out_shardings",
}
"""Functions that take a spec alone for the mesh of the context, with the parameter, the second."""


@judges_calls(rules.LAYER_ARGUMENTS, *PLACING)
def spec_without_mesh(event: Called, report: Reporter) -> None:
    """A spec alone, where no mesh is set, or a mesh without a spec."""
    args, module = given(event), event.frame.module
    spec = args.get(1, PLACING[event.subject or ""])
    if isinstance(spec, MeshVal) and not is_tried(module, event.node):
        mend = "say how the axes are divided over it: `NamedSharding(mesh, P(...))`"
        report(module, event.node, cls=event.name, problem="takes a sharding second, and gets a mesh", mend=mend)
        return
    if event.modes.mesh != NO_MESH or not isinstance(spec, SpecVal) or is_tried(module, event.node):
        return
    if _is_under_with(event.frame, event.node):
        return
    shown = text_of(args.node_of(1, PLACING[event.subject or ""]) or event.node)
    problem = f"gets `{shown}` for the mesh of the context, and none is set"
    mend = f"hand over the mesh, too: `NamedSharding(mesh, {shown})`, or call it inside `with jax.set_mesh(mesh):`"
    report(module, event.node, cls=event.name, problem=problem, mend=mend)


def _is_under_with(frame: Frame | None, node: ast.AST | None) -> bool:
    """Whether a place, or a call that leads there, stands in the block of a ``with`` statement."""
    while frame is not None and node is not None:
        if any(isinstance(outer, (ast.With, ast.AsyncWith)) for outer in around(frame, node)):
            return True
        node, frame = frame.call, frame.caller
    return False
