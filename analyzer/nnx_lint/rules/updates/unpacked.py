"""Plain dicts that are made of a State, edited and left (a part of NNX229).

``nnx.to_pure_dict(state)`` and ``dict(nnx.to_flat_state(state))`` give dicts of their own. What is written into one of
them, such as weights from a file, gets into the State only where something takes the dict again.

Invariants: all uses of the dict, and of the names by which the function goes down into it, are seen; one that only asks
which entries there are, or of which shape, takes nothing; what is written into a Variable of a flat dict is in the
State.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.expressions import text_of
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import values_in
from nnx_lint.rules.modes.evaluating import FORM
from nnx_lint.rules.program import FUNCTIONS, ancestors, canonical_of, enclosing, in_test, statement_of
from nnx_lint.syntax.binding import occurrences
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module

PURE = "nnx.to_pure_dict"


@judges_calls(rules.STATE_NOT_APPLIED, PURE, "nnx.to_flat_state")
def edited_and_left(event: Called, report: Reporter) -> None:
    frame, module, nested = event.frame, event.frame.module, event.subject == PURE
    made: ast.AST = event.node
    outer = next(ancestors(module, made), None)
    if isinstance(outer, ast.Call) and canonical_of(frame.env, outer.func) == "builtins.dict" and len(outer.args) == 1:
        made, outer = outer, next(ancestors(module, outer), None)
    elif not nested:
        return  # a flat State, which cannot be edited
    if not isinstance(outer, ast.Assign) or outer.value is not made or len(outer.targets) != 1 or in_test(frame):
        return
    target, scope = outer.targets[0], enclosing(module, made, *FUNCTIONS)
    if not isinstance(target, ast.Name) or scope is None or not event.nodes or len(values_in(scope)[target.id]) != 1:
        return
    edit = _edited(module, scope, target.id, nested=nested)
    if edit is not None:
        mend = "make a State of it again, with `nnx.replace_by_pure_dict` for example, and put that back"
        state, model = target.id, text_of(event.nodes[0])
        report(module, edit, name=state, what="is edited here", model=model, mend=mend, state=state)


def _edited(module: Module, scope: ast.AST, name: str, *, nested: bool) -> ast.stmt | None:
    """The first statement that writes into a dict, if nothing takes anything out of it."""
    found: ast.stmt | None = None
    names = [name]
    for each in names:
        for use in occurrences(scope, each):
            if isinstance(use.ctx, ast.Store):
                continue
            place, outer, depth = _place(module, use)
            statement = statement_of(module, use)
            if statement is None or enclosing(module, use, *FUNCTIONS) is not scope:
                return None
            if isinstance(place, ast.Subscript) and not isinstance(place.ctx, ast.Load):
                if depth > 1 and not nested:
                    return None
                found = found or statement
            elif isinstance(statement, ast.Assign) and statement.value is place and nested:
                inner = statement.targets[0]
                if len(statement.targets) > 1 or not isinstance(inner, ast.Name):
                    return None
                if inner.id not in names:
                    names.append(inner.id)
            elif not _is_asked(place, outer) and not _goes_back(statement, names):
                return None
    return found if all(_leads_from(scope, each, names) for each in names[1:]) else None


def _place(module: Module, use: ast.Name) -> tuple[ast.expr, ast.AST | None, int]:
    """The entry, of whatever depth, that is reached from a name, what is around it, and how deep it is."""
    place: ast.expr = use
    depth = 0
    for outer in ancestors(module, use):
        if not isinstance(outer, ast.Subscript) or outer.value is not place:
            return place, outer, depth
        place, depth = outer, depth + 1
    return place, None, depth


def _is_asked(place: ast.expr, outer: ast.AST | None) -> bool:
    """Whether something only asks which entries there are, or of which shape one is."""
    if isinstance(outer, ast.Compare):
        return place in outer.comparators and all(isinstance(each, (ast.In, ast.NotIn)) for each in outer.ops)
    if isinstance(outer, (ast.For, ast.comprehension)):
        return outer.iter is place
    if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Name) and isinstance(place, ast.Name):
        return outer.func.id in OF_KEYS and outer.args == [place]
    return isinstance(outer, ast.Attribute) and outer.attr in FORM and isinstance(place, ast.Subscript)


OF_KEYS = frozenset({"len", "list", "set", "sorted", "tuple"})
"""Functions of Python that get the keys of a dict."""


def _goes_back(statement: ast.stmt, names: list[str]) -> bool:
    """Whether a statement only computes what it writes into the dict: ``flat[path] = 2 * flat[path]``."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    while isinstance(target, ast.Subscript):
        target = target.value
        if isinstance(target, ast.Name):
            return target.id in names
    return False


def _leads_from(scope: ast.AST, name: str, names: list[str]) -> bool:
    """Whether all that a name stands for is part of the dict."""
    for value in values_in(scope).get(name, []):
        root: ast.expr | None = value
        while isinstance(root, ast.Subscript):
            root = root.value
        if not isinstance(root, ast.Name) or root.id not in names:
            return False
    stores = [node for node in walk(scope) if isinstance(node, ast.Name) and node.id == name]
    return sum(not isinstance(node.ctx, ast.Load) for node in stores) == len(values_in(scope).get(name, []))
