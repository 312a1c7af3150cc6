"""Labels of parameters that no transformation is there for (NNX618).

``optax.multi_transform`` gets its transformations in a dict, and a tree of labels that says which of them each
parameter has, or a function that makes one. Most programs make that tree leaf by leaf, by a function that chooses
between a few strings.

Invariants: all labels and all names must be spelled out; a label is a slip only where a transformation is left without
one, too: a choice that no parameter takes is no mistake.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.containers import DictVal
from nnx_lint.model.values import Const
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import constant_of, value_of
from nnx_lint.rules.program import (
    FUNCTIONS,
    assigned_in,
    canonical_of,
    defined_in,
    enclosing,
    given,
    is_tried,
    own_nodes,
    resolved,
    results_of,
)
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame

MAPS = frozenset(
    {"nnx.map_state", "jax.tree.map", "jax.tree.map_with_path"}
    | {"jax.tree_util.tree_map", "jax.tree_util.tree_map_with_path"}
)
"""Functions that make a tree by a function, their first argument, of each leaf."""

MAX_STEPS = 6
"""How many names and functions lie between the call and the strings at most."""


@judges_calls(rules.OPTIMIZER_TRANSFORMATION, "optax.multi_transform", "optax.partition")
def label_without_transformation(event: Called, report: Reporter) -> None:
    args, module = given(event), event.frame.module
    held, node = args.get(0, "transforms"), args.node_of(1, "param_labels")
    if not isinstance(held, DictVal) or not held.exact or node is None or is_tried(module, event.node):
        return
    names = [key.value for key, _ in held.items if isinstance(key, Const)]
    labels = _labels(event.frame, node, MAX_STEPS)
    if labels is None or len(names) != len(held.items):
        return
    missing, unused = sorted(labels - {*names}), [name for name in names if name not in labels]
    if missing and unused:
        problem = f"finds no transformation for the label `{missing[0]}`, and no label `{unused[0]}`"
        mend = f"call both by one name: `{unused[0]}`, in the dict and in the labels"
        report(module, node, cls=event.name, problem=problem, mend=mend)


def _labels(frame: Frame, node: ast.AST, steps: int) -> set[str] | None:
    """The strings that an expression, or the function that it is, makes for leaves; ``None`` if not all are known."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if not steps:
        return None
    parts: list[ast.expr] = []
    if isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.Call) and canonical_of(frame.env, node.func) in MAPS:
        parts = node.args[:1]
    elif isinstance(node, (ast.Lambda, ast.FunctionDef)):
        parts = results_of(node)
    elif isinstance(node, ast.Name) and (inner := _inner(frame, node)) is not None:
        parts = results_of(inner)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        func, bound = resolved(frame.env, node), value_of(frame.module, node) or constant_of(frame.module, node)
        func = func.func if isinstance(func, BoundMethod) else func
        if isinstance(func, FuncVal) and not func.decorators and bound is None:
            return _labels(frame, func.node, steps - 1)
        parts = [bound] if bound is not None else []
    found = [_labels(frame, part, steps - 1) for part in parts]
    known = [each for each in found if each is not None]
    return {label for each in known for label in each} if found and len(known) == len(found) else None


def _inner(frame: Frame, node: ast.Name) -> ast.FunctionDef | None:
    """The function that a name means within another one, which makes the tree by it."""
    scope = enclosing(frame.module, node, *FUNCTIONS)
    if scope is None or node.id in assigned_in(scope) or defined_in(scope)[node.id] != 1:
        return None
    named = (item for item in own_nodes(scope) if isinstance(item, ast.FunctionDef) and item.name == node.id)
    return next((item for item in named if not item.decorator_list), None)
