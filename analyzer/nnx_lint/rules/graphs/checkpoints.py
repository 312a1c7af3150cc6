"""Checkpoints of Orbax under a path that is not absolute (NNX656).

Invariant: of the path at least the beginning is known, as a literal of the program.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.states import ForeignVal
from nnx_lint.model.strings import HOLE, text_in
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import canonical_of, given, is_tried, resolved
from nnx_rules.rules import checkpoints as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Env
    from nnx_lint.model.values import Value

PATHS = frozenset({"etils.epath.Path", "pathlib.Path", "pathlib.PosixPath"})
"""Classes of paths."""

ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:[/\\]|\w+://")
"""How a path begins that does not depend on the current folder."""


@judges_calls(rules.RELATIVE_CHECKPOINT_PATH, ".save", ".restore")
def relative_path(event: Called, report: Reporter) -> None:
    callee = event.callee
    owner = callee.receiver if isinstance(callee, BoundMethod) else None
    if isinstance(owner, ForeignVal) and owner.name.endswith("Checkpointer"):
        _judge(event, "directory", report)


@judges_calls(rules.RELATIVE_CHECKPOINT_PATH, "orbax.checkpoint.CheckpointManager")
def relative_folder(event: Called, report: Reporter) -> None:
    _judge(event, "directory", report)


def _judge(event: Called, name: str, report: Reporter) -> None:
    args, module = given(event), event.frame.module
    node = args.node_of(0, name)
    text = _beginning(event.frame.env, args.get(0, name), node) if node is not None else None
    if not text or text.startswith(HOLE) or ABSOLUTE.match(text) or is_tried(module, event.node) or node is None:
        return
    report(module, node, path=text.replace(HOLE, "..."), name=event.name)


def _beginning(env: Env, value: Value | None, node: ast.expr) -> str | None:
    """What a path begins with, as far as it is known."""
    text = text_in(value) if value is not None else None
    if text is not None:
        return text
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _beginning(env, resolved(env, node.left), node.left)
    if isinstance(node, ast.Call) and len(node.args) == 1 and canonical_of(env, node.func) in PATHS:
        return _beginning(env, resolved(env, node.args[0]), node.args[0])
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
