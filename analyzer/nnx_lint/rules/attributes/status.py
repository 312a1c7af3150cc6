"""Values that contradict the data/static status of the attribute that receives them (NNX101, NNX102, NNX103, NNX130)."""

from __future__ import annotations

from nnx_lint.model.events import AttributeSet
from nnx_lint.reporting import Reporter, judges
from nnx_rules.rules import attributes as rules


@judges(rules.DATA_IN_STATIC_ATTRIBUTE, AttributeSet)
def data_in_static_attribute(event: AttributeSet, report: Reporter) -> None:
    if event.verdict is not None and event.verdict.broken is report.rule:
        report(
            event.frame.module,
            event.value_node or event.node,
            cls=event.obj.cls.name,
            path=event.name,
            value=event.value.describe(),
        )
