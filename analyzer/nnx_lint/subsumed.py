"""One mistake, one finding: which rules are silent where another one says the same at the same place, and better.

Rules look for mistakes each by itself, and some mistakes are of two kinds: streams of a copy that a transform drops are
an update that is lost, too, and an optimizer whose filter is misread trains nothing. Both are mended by one edit.

Invariants: only findings whose places overlap are compared; a rule that is not selected reports nothing, and silences
nothing. Where a comment silences the one that is kept, the other one was about the same, and stays silent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nnx_lint.diagnostics import Diagnostic, Span

SUBSUMED: dict[str, frozenset[str]] = {
    "aliased-snapshot": frozenset({"self-update"}),
    "array-shapes": frozenset({"foreign-weight", "layer-arguments", "layer-signature"}),
    "data-to-static-attribute": frozenset({"data-marked-static"}),
    "element-values-without-axis": frozenset({"sown-under-map"}),
    "keys-in-arithmetic": frozenset({"mapped-trees-differ"}),
    "layer-input-shape": frozenset({"array-shapes"}),
    "layer-signature": frozenset({"initializer-misuse", "layer-arguments"}),
    "lazy-attribute": frozenset({"optimizer-older-than-model"}),
    "lost-update": frozenset({"rngs-not-advanced"}),
    "missing-rngs": frozenset({"layer-signature"}),
    "optimizer-without-variables": frozenset({"module-type-filter", "string-filter"}),
    "random-key-reused": frozenset({"kept-key"}),
    "sequential-misuse": frozenset({"tensor-idiom"}),
    "stale-capture": frozenset({"captured-into-transform", "jitted-method-stored"}),
    "static-counter": frozenset({"data-to-static-attribute"}),
    "tensor-idiom": frozenset({"array-shapes"}),
    "unused-result": frozenset({"state-not-applied"}),
}
"""The rules that are silent, each with those beside which it is."""


def without_subsumed(findings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The findings of a file, but for those that say no more than another one at the same place."""
    found = {finding.rule.name for finding in findings}
    if not any(name in SUBSUMED and not SUBSUMED[name].isdisjoint(found) for name in found):
        return list(findings)
    return [finding for finding in findings if not _is_said(finding, findings)]


def _is_said(finding: Diagnostic, findings: Iterable[Diagnostic]) -> bool:
    better = SUBSUMED.get(finding.rule.name, frozenset())
    return any(other.rule.name in better and _overlap(finding.span, other.span) for other in findings)


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
