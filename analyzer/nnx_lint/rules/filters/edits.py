"""Edits that filter rules share: reordering filters with the names that receive their States, adding the rest.

Invariants: texts move whole, with nothing between them touched; targets move only where each is a plain name, and the
States are unpacked by the very statement that makes them; otherwise there is no fix.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.rules.program import ancestors
from nnx_lint.syntax.binding import is_name, names_in
from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.modules import Module
    from nnx_lint.rules.filters.reading import FilterList


def statement_of(module: Module, call: ast.AST) -> ast.stmt | None:
    """The statement that consists of this call, or assigns nothing but its result."""
    parent = next(ancestors(module, call), None)
    return parent if isinstance(parent, (ast.Expr, ast.Assign)) and parent.value is call else None


def unpacked_names(statement: ast.stmt | None) -> list[ast.Name] | None:
    """The names that an assignment unpacks its value into, if they are plain names."""
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
        return None
    target = statement.targets[0]
    if not isinstance(target, (ast.Tuple, ast.List)):
        return None
    names = [item for item in target.elts if isinstance(item, ast.Name)]
    return names if len(names) == len(target.elts) else None


def permute(module: Module, nodes: Sequence[ast.expr], order: Sequence[int]) -> list[Edit]:
    """Put the texts of some expressions into another order."""
    source = module.source
    return [
        Edit(source.span(nodes[place]), source.segment(nodes[old])) for place, old in enumerate(order) if place != old
    ]


def reorder(found: FilterList, order: Sequence[int]) -> Fix | None:
    """Give the filters in another order, and their States to the same names as before."""
    if found.open or found.passed_on or not all(item.in_place for item in found.given):
        return None
    title = "Reorder the filters"
    if found.spec is None:
        return _reorder_mapping(found, order, title)
    statement = statement_of(found.module, found.node)
    edits = permute(found.module, [item.node for item in found.given], order)
    if isinstance(statement, ast.Expr):
        return Fix(title, tuple(edits))
    names = unpacked_names(statement)
    leading = found.spec.leading
    if names is None or len(names) != leading + len(found.given):
        return None
    edits += permute(found.module, names[leading:], order)
    return Fix(f"{title} and the names that receive their States", tuple(edits))


def without(found: FilterList, place: int) -> Fix | None:
    """Leave out a filter, with the name that receives its State, if that is used for nothing."""
    if found.open or found.passed_on or found.spec is None or not place:
        return None
    if not all(item.in_place for item in found.given):
        return None
    statement, source = statement_of(found.module, found.node), found.module.source
    nodes: list[ast.expr] = [item.node for item in found.given]
    lists = [(nodes, place)]
    if not isinstance(statement, ast.Expr):
        names = unpacked_names(statement)
        leading = found.spec.leading
        if names is None or len(names) != leading + len(nodes) or len(names) < 3:
            return None
        name = names[leading + place]
        uses = [node for node in walk(scope_of(found.module.tree, found.node)) if getattr(node, "id", "") == name.id]
        if uses != [name]:
            return None
        lists.append(([*names], leading + place))
    spans = (Span(source.span(each[at - 1]).end, source.span(each[at]).end) for each, at in lists)
    return Fix("Leave out the filter", tuple(Edit(span, "") for span in spans))


def _reorder_mapping(found: FilterList, order: Sequence[int], title: str) -> Fix | None:
    if not isinstance(found.node, ast.Dict):
        return None
    spans = [
        Span(found.module.source.span(item.node).start, found.module.source.span(value).end)
        for item, value in zip(found.given, found.node.values, strict=True)
    ]
    texts = [found.module.source.segment(span) for span in spans]
    edits = [Edit(spans[place], texts[old]) for place, old in enumerate(order) if place != old]
    return Fix(title, tuple(edits))


def add_rest(found: FilterList) -> Fix | None:
    """Add ``...`` as the last filter, a name for its State, and that name to every merge of the graphdef."""
    call, source = found.node, found.module.source
    if found.open or found.passed_on or found.spec is None or not isinstance(call, ast.Call) or not call.args:
        return None
    statement = statement_of(found.module, call)
    edits = [insertion(source.span(call.args[-1]).end, ", ...")]
    if isinstance(statement, ast.Expr):
        return Fix("Add `...` for the rest", tuple(edits))
    names = unpacked_names(statement)
    if names is None or len(names) != found.spec.leading + len(found.given) or not found.spec.leading:
        return None
    if found.module.has(REST, names_in):
        return None
    scope = scope_of(source.tree, call)
    scope = found.module.tree if scope is source.tree else scope  # all of it matters then
    merges = _merges(scope, names)
    if merges is None:
        return None
    edits += [insertion(source.span(place).end, f", {REST}") for place in (names[-1], *merges)]
    return Fix("Add `...` and a name for the rest", tuple(edits))


REST = "rest"
"""The name that a fix gives to the State of the rest."""


def insertion(offset: int, text: str) -> Edit:
    """Insert text at an offset."""
    return Edit(Span(offset, offset), text)


def scope_of(tree: ast.Module, node: ast.AST) -> ast.AST:
    """The innermost function that contains a node, or the module."""
    scope: ast.AST = tree
    for item in walk(tree):  # breadth first, so that inner functions come after outer ones
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(part is node for part in walk(item)):
            scope = item
    return scope


def _merges(scope: ast.AST, names: Sequence[ast.Name]) -> list[ast.expr] | None:
    """The last arguments of the merges of the States; ``None`` if the graphdef goes anywhere else."""
    graphdef, states = names[0].id, {name.id for name in names[1:]}
    places: list[ast.expr] = []
    merged: set[int] = set()
    for node in walk(scope):
        if isinstance(node, ast.arg) and node.arg == graphdef:
            return None
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)) and node.args:
            function = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            first, *others = node.args
            given = [item.id for item in others if isinstance(item, ast.Name)]
            whole = len(given) == len(others) and states == set(given)
            if function == "merge" and is_name(first, graphdef) and whole:
                merged.add(id(first))
                places.append(node.args[-1])
    reads = (node for node in walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return places if all(id(node) in merged for node in reads if node.id == graphdef) else None
