"""Edits that filter rules share: permuting filters together with the targets that receive their States, adding the rest.

Invariants: texts move whole, with nothing between them touched; targets move only where each is a plain name, and the
States are unpacked by the very statement that makes them; otherwise there is no fix.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.modules import Module
    from nnx_lint.rules.filters.reading import FilterList


def statement_of(module: Module, call: ast.AST) -> ast.stmt | None:
    """The statement that consists of this call, or assigns nothing but its result."""
    if module.source.tree is None:
        return None
    for node in ast.walk(module.source.tree):
        if isinstance(node, (ast.Expr, ast.Assign)) and node.value is call:
            return node
    return None


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
        Edit(source.span(nodes[place]), source.segment(nodes[old]))
        for place, old in enumerate(order)
        if place != old
    ]


def reorder(found: FilterList, order: Sequence[int]) -> Fix | None:
    """Give the filters in another order, and their States to the same names as before."""
    if found.open or not all(item.in_place for item in found.given):
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
    """Add ``...`` as the last filter, and a name for its State."""
    call = found.node
    if found.open or found.spec is None or not isinstance(call, ast.Call) or not call.args:
        return None
    source = found.module.source
    after_filters = source.span(call.args[-1]).end
    statement = statement_of(found.module, call)
    edits = [Edit(Span(after_filters, after_filters), ", ...")]
    if isinstance(statement, ast.Expr):
        return Fix("Add `...` for the rest", tuple(edits))
    names = unpacked_names(statement)
    if names is None or len(names) != found.spec.leading + len(found.given) or not found.spec.leading:
        return None
    used = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)} if source.tree is not None else set()
    if "rest" in used:
        return None
    after_names = source.span(names[-1]).end
    edits.append(Edit(Span(after_names, after_names), ", rest"))
    # A merge of the same graphdef needs the new State too, and only a person knows how it gets there.
    graphdef = names[0].id
    read = any(
        isinstance(node, ast.Name) and node.id == graphdef and isinstance(node.ctx, ast.Load)
        for node in ast.walk(source.tree or ast.Module([], []))
    )
    applicability = Applicability.UNSAFE if read else Applicability.SAFE
    return Fix("Add `...` and a name for the rest", tuple(edits), applicability)
