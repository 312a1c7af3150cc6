"""Snapshots that an object keeps: one method takes the State of a model, and another one gives it back (NNX223).

Invariants: the attribute is only ever a State that was just taken of the model, or ``None``, and all that happens to it
is that it is given back, or asked for being there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.events import ClassDefined
from nnx_lint.model.expressions import text_of
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.program import ancestors, calls_in, canonical_of, names_of_parameters
from nnx_lint.rules.updates.snapshots import CHANGED_SINCE, words
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import dumped, remembered, walk
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from nnx_lint.model.classes import UserClass


@judges(rules.ALIASED_SNAPSHOT, ClassDefined)
def kept_snapshot(event: ClassDefined, report: Reporter) -> None:
    cls, module = event.cls, event.cls.module
    for method, update, model, kept in _giving_back(cls.node):
        if canonical_of(module.env, update.func) != "nnx.update" or not _is_of_caller(method, model):
            continue
        taken = _taken(cls, kept.attr)
        if taken is None or taken[0] is method or dumped(taken[1].args[0]) != dumped(model):
            continue
        if _is_of_caller(taken[0], model) and _is_only_given_back(cls, kept.attr):
            where = (related(module, taken[1], "the State is taken here"),)
            report(module, kept, fix=None, related=where, **words(text_of(model), CHANGED_SINCE))


@remembered
def _giving_back(cls: ast.ClassDef) -> list[tuple[ast.FunctionDef, ast.Call, ast.expr, ast.Attribute]]:
    """The calls in methods that look like such an update: the method, the call, the model, and the attribute."""
    found: list[tuple[ast.FunctionDef, ast.Call, ast.expr, ast.Attribute]] = []
    for method in (item for item in cls.body if isinstance(item, ast.FunctionDef)):
        for call in calls_in(method):
            model, kept = call.args if len(call.args) == 2 else (None, None)
            if model is not None and isinstance(kept, ast.Attribute) and _is_self(kept.value):
                found.append((method, call, model, kept))
    return found


def _is_self(node: ast.expr) -> bool:
    return is_name(node, "self")


def _is_of_caller(method: ast.FunctionDef, model: ast.expr) -> bool:
    """Whether an expression names an object that outlives a method: an attribute of ``self``, or a parameter."""
    if isinstance(model, ast.Attribute):
        return _is_self(model.value)
    return isinstance(model, ast.Name) and model.id in names_of_parameters(method)


def _taken(cls: UserClass, name: str) -> tuple[ast.FunctionDef, ast.Call] | None:
    """The call that takes the State that an attribute keeps, with its method; ``None`` if it may be anything else."""
    found: list[tuple[ast.FunctionDef, ast.Call]] = []
    for method in (item for item in cls.node.body if isinstance(item, ast.FunctionDef)):
        for node in walk(method):
            if not isinstance(node, ast.Attribute) or node.attr != name or isinstance(node.ctx, ast.Load):
                continue
            statement = next(ancestors(cls.module, node))
            value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
            if isinstance(value, ast.Constant) and value.value is None:
                continue
            state = isinstance(value, ast.Call) and canonical_of(cls.module.env, value.func) == "nnx.state"
            if not state or not isinstance(value, ast.Call) or not value.args:
                return None
            found.append((method, value))
    return found[0] if len(found) == 1 else None


def _is_only_given_back(cls: UserClass, name: str) -> bool:
    """Whether nothing reads an attribute but updates, and conditions that ask for it."""
    for node in walk(cls.module.tree):
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
            outer = next(ancestors(cls.module, node))
            given = isinstance(outer, ast.Call) and canonical_of(cls.module.env, outer.func) == "nnx.update"
            if not given and not isinstance(outer, (ast.Compare, ast.If, ast.IfExp, ast.UnaryOp, ast.BoolOp)):
                return False
    return True
