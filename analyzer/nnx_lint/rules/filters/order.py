"""Filters that receive nothing because of their order or their content (NNX301, NNX302, NNX303, NNX311)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix
from nnx_lint.model.events import Called
from nnx_lint.model.library import FilterVal
from nnx_lint.model.values import Const
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.filters.edits import reorder, without
from nnx_lint.rules.filters.expressions import is_subtype, known_types, mentioned_types
from nnx_lint.rules.filters.reading import FILTERING, FilterList, Given, filter_lists, gives_filters, single_filters
from nnx_lint.rules.filters.validity import matches_no_leaf
from nnx_lint.rules.program import FUNCTIONS
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules import _filter_logic as logic
from nnx_rules import filters as nnx_filters
from nnx_rules.rules import filters as rules

if TYPE_CHECKING:
    from collections.abc import Iterator


def misplaced_everything(found: FilterList) -> int | None:
    """The place of a literal ``...`` or ``True`` that the library refuses there."""
    if not found.ordered:
        return None
    return logic.check_order([item.value.value if isinstance(item.value, Const) else item for item in found.given])


def unreachable(found: FilterList) -> Iterator[logic.Unreachable]:
    """The filters that earlier ones leave nothing to; a misplaced ``...`` is a finding itself, and does not count."""
    if len(found.given) < 2:
        return
    misplaced = misplaced_everything(found)
    for finding in logic.unreachable(found.exprs, is_subtype):
        # A last `...` says "whatever is left", and may be right even if that is nothing.
        whatever_is_left = found.exprs[finding.index] == nnx_filters.Everything()
        if not whatever_is_left and (misplaced is None or misplaced not in finding.taken_by):
            yield finding


def better_order(found: FilterList) -> tuple[int, ...] | None:
    """An order of the filters in which each can match; those that take everything go last."""
    order = logic.suggest_order(found.exprs, is_subtype)
    if order is None:
        return None
    # Among equals `...` and its like go to the end, where the library wants them.
    everything = [
        place for place in order if logic.equivalent(found.exprs[place], nnx_filters.Everything(), is_subtype)
    ]
    return (*(place for place in order if place not in everything), *everything)


@judges_calls(rules.UNREACHABLE_FILTER, *FILTERING, when=gives_filters)
def unreachable_filter(event: Called, report: Reporter) -> None:
    for found in filter_lists(event):
        for finding in unreachable(found):
            if finding.relation != "duplicate":
                _report(found, finding, report, fixable=True)


@judges_calls(rules.DUPLICATE_FILTER, *FILTERING, when=gives_filters)
def duplicate_filter(event: Called, report: Reporter) -> None:
    for found in filter_lists(event):
        for finding in unreachable(found):
            if finding.relation == "duplicate":
                _report(found, finding, report, fixable=False)


def _report(found: FilterList, finding: logic.Unreachable, report: Reporter, *, fixable: bool) -> None:
    item = found.given[finding.index]

    def fix() -> Fix | None:
        if not fixable:
            return without(found, finding.index)
        order = better_order(found)
        return reorder(found, order) if order is not None else None

    report(
        item.module,
        item.node,
        fix=fix,
        position=finding.index + 1,
        filter=item,
        earlier=found.names(finding.taken_by),
    )


@judges_calls(rules.ELLIPSIS_NOT_LAST, *FILTERING, when=gives_filters)
def ellipsis_not_last(event: Called, report: Reporter) -> None:
    for found in filter_lists(event):
        place = misplaced_everything(found)
        if place is None:
            continue
        item = found.given[place]
        report(item.module, item.node, fix=partial(_everything_last, found), position=place + 1, filter=item)


def _everything_last(found: FilterList) -> Fix | None:
    literals = [
        isinstance(item.value, Const) and (item.value.value is ... or item.value.value is True) for item in found.given
    ]
    if literals.count(True) > 1:
        return None
    places = range(len(literals))
    order = [*(place for place in places if not literals[place]), *(place for place in places if literals[place])]
    return reorder(found, order)


@judges_calls(rules.CONTRADICTORY_FILTER, *FILTERING, when=gives_filters)
def contradictory_filter(event: Called, report: Reporter) -> None:
    for single in single_filters(event):
        given = single.given
        if not single.leaves or not is_composed(given):
            continue
        if any(isinstance(part.expr, nnx_filters.OfType) and matches_no_leaf(part.expr.type) for part in given.parts()):
            continue  # NNX308 says which part matches nothing
        universe = known_types(given.module, [given.expr])
        if logic.contradictory([given.expr], is_subtype, universe) and not _mixes(given):
            report(given.module, given.node, fix=partial(_any_for_all, given), filter=given, mend=_mend(given))


def _mixes(given: Given) -> bool:
    """Whether some class of the project may be several of the types at once that a filter asks for."""
    project, types = given.module.project, mentioned_types(given.expr)
    return any(project.heirs.mix(getattr(cls, "name", "")) for cls in types) or _mixes_locally(given.module.tree)


@remembered
def _mixes_locally(tree: ast.Module) -> bool:
    """Whether a function defines a class of several bases, which may be two types at once that nobody else sees."""
    return any(
        isinstance(node, ast.ClassDef) and len(node.bases) > 1
        for function in walk(tree)
        if isinstance(function, FUNCTIONS)
        for node in walk(function)
    )


def is_composed(given: Given) -> bool:
    """Whether a filter is built from several; what is wrong with a plain one is for other rules to say."""
    return isinstance(given.expr, (nnx_filters.Any, nnx_filters.All, nnx_filters.Not))


def _mend(given: Given) -> str:
    if isinstance(given.expr, nnx_filters.All):
        return "`nnx.All` asks for everything at once; `nnx.Any` takes what one of its filters takes"
    if isinstance(given.expr, nnx_filters.Any) and not given.expr.predicates:
        return "name what to take, or `...` for everything"
    return "name what to take, or leave the filter out"


def _any_for_all(given: Given) -> Fix | None:
    node = given.node
    if not (isinstance(given.value, FilterVal) and given.value.node is node and isinstance(node, ast.Call)):
        return None
    if given.value.name != "nnx.All" or not isinstance(node.func, ast.Attribute):
        return None
    whole = given.module.source.span(node.func)
    text = given.module.source.segment(node.func).removesuffix("All") + "Any"
    return Fix("Take what any of the filters takes", (Edit(whole, text),), Applicability.UNSAFE)
