"""What ``nnx.pop`` cannot remove: Variables with a second reference, and those in lists and tuples (NNX317, NNX318)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called
from nnx_lint.model.leaves import tag_of
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.filters.coverage import leaves_of, path_text
from nnx_lint.rules.filters.expressions import is_subtype
from nnx_lint.rules.filters.reading import FilterList, filter_lists, library_name
from nnx_rules import _filter_logic as logic
from nnx_rules._filter_logic import Leaf
from nnx_rules.filters import Any
from nnx_rules.rules import filters as rules

if TYPE_CHECKING:
    from collections.abc import Iterator


def pops(event: Called) -> Iterator[FilterList]:
    """Calls of ``nnx.pop`` whose object is known."""
    if library_name(event.callee) == "nnx.pop":
        yield from (found for found in filter_lists(event) if found.target is not None)


def _takes(found: FilterList, leaf: Leaf) -> bool:
    return logic.matches(Any(*found.exprs), leaf, is_subtype) is True


@judges_calls(rules.POP_SHARED, "nnx.pop")
def pop_shared_variable(event: Called, report: Reporter) -> None:
    for found in pops(event):
        for path, first, value in leaves_of(found.target, event.frame).again if found.target is not None else ():
            if isinstance(value, Obj) and value.cls.is_variable:
                leaf = Leaf(first, value.cls, tag_of(value))
                if _takes(found, leaf):
                    other = Leaf(path, value.cls)
                    report(found.module, found.node, path=path_text(leaf), other_path=path_text(other))


@judges_calls(rules.POP_FROM_IMMUTABLE, "nnx.pop")
def pop_from_immutable(event: Called, report: Reporter) -> None:
    for found in pops(event):
        for item in leaves_of(found.target, event.frame).held if found.target is not None else ():
            if isinstance(item.owner, Seq) and _takes(found, item.leaf):
                report(found.module, found.node, path=path_text(item.leaf), value=f"a {item.owner.type}")
                return
