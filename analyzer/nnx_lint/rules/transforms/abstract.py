"""Models of which only shapes are there (NNX471): what ``nnx.eval_shape`` returns has no numbers until something puts
them there.

Invariant: a change of the object, whatever it is, ends what is known of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.events import Called, Mutated
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.program import is_tried
from nnx_rules.rules import transforms as rules

if TYPE_CHECKING:
    from nnx_lint.model.values import Value


class Abstract:
    """The objects that hold shapes only, with the calls that made them."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[Value, Called]] = {}


@judges_calls(rules.ABSTRACT_CALLED, "nnx.eval_shape")
def note_abstract(event: Called, report: Reporter) -> None:
    if isinstance(event.result, Obj) and event.result.cls.derives_from("nnx.Module") and not event.frame.scope:
        report.memory(Abstract).made[id(event.result)] = event.result, event


@judges(rules.ABSTRACT_CALLED, Mutated)
def note_filled(event: Mutated, report: Reporter) -> None:
    report.memory(Abstract).made.pop(id(event.target), None)


@judges_calls(rules.ABSTRACT_CALLED, "()")
def abstract_called(event: Called, report: Reporter) -> None:
    known = report.memory(Abstract).made.get(id(event.callee))
    if known is None or event.frame.scope or event.frame.doubtful or is_tried(event.frame.module, event.node):
        return
    made = known[1]
    where = (related(made.frame.module, made.node, "only its shapes are computed here"),)
    report(event.frame.module, event.node, related=where, name=event.name)
