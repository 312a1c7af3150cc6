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
from nnx_lint.model.values import UNKNOWN, Array, Const, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import pairs_of
from nnx_lint.rules.filters.coverage import leaves_of, path_text
from nnx_lint.rules.filters.expressions import expression, is_subtype
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    enclosing,
    given,
    is_tried,
    own_nodes,
    parameters_in,
    statement_of,
)
from nnx_lint.syntax.binding import is_name, names_in
from nnx_lint.syntax.places import begin
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


SAME_FILTER = (
    "take both by the same filter, such as `nnx.state(model, nnx.Param)` beside the gradients of the parameters"
)
FIRST_TREE = "begin with the first tree: `total = grads if total is None else jax.tree.map(jnp.add, total, grads)`"


@judges_calls(rules.MAPPED_TREES_DIFFER, *PLACES)
def mapped_trees_differ(event: Called, report: Reporter) -> None:
    args, frame, first = given(event), event.frame, PLACES[event.subject or ""]
    if args.starred or args.keywords.keys() - {"f", "tree", "step_size"} or is_tried(frame.module, event.node):
        return
    trees = list(zip(args.positional, args.nodes, strict=False))[first : first + 2 if first == 0 else None]
    trees = [(value, node) for value, node in trees if not _is_edited(frame.module, node)]
    known = [(_tree(value), node) for value, node in trees]
    for place, (other, other_node) in enumerate(known):
        tree, node = known[0]
        problem = _difference(frame, (tree, node), (other, other_node)) if place else None
        mend = SAME_FILTER
        if problem is None and place:
            problem, mend = _of_nothing(event, (tree, node), trees[place]), FIRST_TREE
        if problem is not None:
            report(frame.module, other_node, problem=problem, function=event.name, mend=mend)
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


def _of_nothing(event: Called, one: tuple[Value | None, ast.expr], other: tuple[Value | None, ast.expr]) -> str | None:
    """The first tree is ``None``, as a sum is before its first round, and the other one has leaves."""
    (tree, node), (against, beside) = one, other
    known = isinstance(tree, Const) and tree.value is None and not event.frame.doubtful
    if event.subject not in TREE_MAPS or not (known or (tree is UNKNOWN and _begins_with_none(event, node))):
        return None
    if not isinstance(present(against) if against is not None else None, (Array, GradientVal, StateVal)):
        return None
    shown = _text(event.frame, node), _text(event.frame, beside)
    return f"`{shown[0]}` is `None` in the first round, a tree without leaves, and `{shown[1]}` has some"


def _begins_with_none(event: Called, node: ast.expr) -> bool:
    """Whether a name is ``None`` before a loop, each round of which computes it anew from what it is."""
    module, statement = event.frame.module, statement_of(event.frame.module, event.node)
    loop = next(ancestors(module, statement), None) if statement is not None else None
    if not isinstance(node, ast.Name) or not isinstance(statement, ast.Assign) or not isinstance(loop, ast.For):
        return False
    if statement.value is not event.node:
        return False  # whether it comes to the call, a condition says
    scope = enclosing(module, loop, *FUNCTIONS) or module.tree
    pairs = [pair for item in own_nodes(scope) for pair in pairs_of(item) if node.id in names_in(pair[0])]
    before = [value for target, value in pairs if begin(target) < begin(loop)]
    earlier = [target for target, _ in pairs if begin(loop) <= begin(target) < begin(statement)]
    empty = bool(before) and all(isinstance(value, ast.Constant) and value.value is None for value in before)
    whole = len(pairs) == assigned_in(scope)[node.id] and not parameters_in(scope)[node.id]
    return empty and whole and not earlier and is_name(statement.targets[0], node.id)


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
    """Whether a tree has a name, or a place in something, and the function takes entries out of it, or puts some in."""
    scope = enclosing(module, node, *FUNCTIONS, ast.Module) if isinstance(node, PLACES_OF_TREES) else None
    return scope is not None and ast.unparse(node) in _edited(scope)


PLACES_OF_TREES = (ast.Name, ast.Attribute, ast.Subscript)


@remembered
def _edited(scope: ast.AST) -> frozenset[str]:
    """The names and places of what a function or module takes entries out of, or puts some in."""
    found: set[str] = set()
    for each in walk(scope):
        changed = isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load)
        changed = changed or (isinstance(each, ast.Attribute) and each.attr in {"pop", "update", "clear", "popitem"})
        while changed and isinstance(each, (ast.Attribute, ast.Subscript)):
            each = each.value
            if isinstance(each, PLACES_OF_TREES):
                found.add(ast.unparse(each))
    return frozenset(found)
