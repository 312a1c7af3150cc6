"""Trees that JAX goes through side by side, and that do not have the same leaves (NNX367).

Averages of weights, penalties on what has changed and steps by hand take a State and another one, or gradients. These
have the same entries only if they were taken by filters that take the same: gradients are those of the parameters, and
``nnx.state(model)`` has statistics and keys in it, too.

Invariants: both trees are of one object or of one class, so only the filters make a difference; a leaf counts that the
object certainly has, that one filter certainly takes and the other certainly does not. States that a program edits
are left alone.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import ClassBase
from nnx_lint.model.states import GradientVal, StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Obj, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.filters.coverage import leaves_of, path_text
from nnx_lint.rules.filters.expressions import expression, is_subtype
from nnx_lint.rules.program import FUNCTIONS, enclosing, given, is_tried
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules import _filter_logic as logic
from nnx_rules.filters import Everything
from nnx_rules.rules import graphs as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_rules._filter_logic import Leaf

PLACES = {
    **dict.fromkeys(TREE_MAPS, 1),
    **dict.fromkeys(("optax.apply_updates", "optax.incremental_update"), 0),
}
"""Functions that go through several trees, and where the first one stands."""

SHOWN = 40
"""How long an expression may be that a message quotes."""


@judges_calls(rules.MAPPED_TREES_DIFFER, *PLACES)
def mapped_trees_differ(event: Called, report: Reporter) -> None:
    args, frame, first = given(event), event.frame, PLACES[event.subject or ""]
    if args.starred or args.keywords.keys() - {"f", "tree", "step_size"} or is_tried(frame.module, event.node):
        return
    trees = list(zip(args.positional, args.nodes, strict=False))[first : first + 2 if first == 0 else None]
    known = [(_tree(value), node) for value, node in trees if not _is_edited(frame.module, node)]
    for place, (other, other_node) in enumerate(known):
        tree, node = known[0]
        problem = _difference(frame, (tree, node), (other, other_node)) if place else None
        if problem is not None:
            report(frame.module, other_node, problem=problem, function=event.name)
            return


def _tree(value: Value | None) -> Value | None:
    """A State, what has the structure of one, or a module."""
    value = present(value) if value is not None else None
    return value.like if isinstance(value, GradientVal) else value


def _difference(frame: Frame, one: tuple[Value | None, ast.expr], other: tuple[Value | None, ast.expr]) -> str | None:
    """What one of two trees has, and the other has not."""
    for (tree, node), (against, beside) in ((one, other), (other, one)):
        if isinstance(tree, StateVal) and isinstance(against, Obj) and against.cls.derives_from("nnx.Module"):
            return f"`{_text(frame, node)}` is a State, and `{_text(frame, beside)}` a module"
        leaf = _missing(tree, against, frame)
        if leaf is not None:
            return f"`{_text(frame, beside)}` has no `{path_text(leaf)}`, which `{_text(frame, node)}` has"
    return None


def _missing(tree: Value | None, against: Value | None, frame: Frame) -> Leaf | None:
    """A leaf that a State certainly has, and another one of the same kind of object has not."""
    if not isinstance(tree, StateVal) or not isinstance(against, StateVal) or against.wanted is None:
        return None
    of, beside = present(tree.of), present(against.of)
    if not isinstance(of, Obj) or not isinstance(beside, Obj) or of.cls is not beside.cls:
        return None
    taken, left = expression(tree.wanted) if tree.wanted is not None else Everything(), expression(against.wanted)
    for leaf in leaves_of(of, frame).leaves:
        known = isinstance(leaf.type, ClassBase) and not leaf.type.derives_from("nnx.RngState")  # that is `NNX535`
        if known and logic.matches(taken, leaf, is_subtype) and logic.matches(left, leaf, is_subtype) is False:
            return leaf
    return None


def _text(frame: Frame, node: ast.expr) -> str:
    text = frame.module.source.segment(node)
    return text if len(text) <= SHOWN and "\n" not in text else f"{text.partition('(')[0]}(...)"


def _is_edited(module: Module, node: ast.expr) -> bool:
    """Whether a tree has a name, and the function takes entries out of what has it, or puts some in."""
    scope = enclosing(module, node, *FUNCTIONS, ast.Module) if isinstance(node, ast.Name) else None
    return isinstance(node, ast.Name) and scope is not None and node.id in _edited(scope)


@remembered
def _edited(scope: ast.AST) -> frozenset[str]:
    """The names of what a function or module takes entries out of, or puts some in."""
    found: set[str] = set()
    for each in walk(scope):
        changed = isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load)
        changed = changed or (isinstance(each, ast.Attribute) and each.attr in {"pop", "update", "clear", "popitem"})
        while changed and isinstance(each, (ast.Attribute, ast.Subscript)):
            each = each.value
        if changed and isinstance(each, ast.Name):
            found.add(each.id)
    return frozenset(found)
