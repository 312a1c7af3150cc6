"""``--statistics``: how often each rule found something, in the place of the findings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Applicability

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.output import Report
    from nnx_rules.registry import Rule

FORMATS = frozenset({"full", "concise", "grouped", "json"})
"""The output formats that have a form for statistics."""

_SIGNS = {Applicability.SAFE: "[*]", Applicability.UNSAFE: "[-]"}


class Count(NamedTuple):
    """How often a rule found something, and the signs of the ways in which that can be mended."""

    rule: Rule
    found: int
    safe: int
    unsafe: int


def counts(report: Report) -> list[Count]:
    """The rules that found something, the most frequent first."""
    found: dict[str, list[int]] = {}
    rules: dict[str, Rule] = {}
    for diagnostic in report.diagnostics:
        rules[diagnostic.rule.code] = diagnostic.rule
        numbers = found.setdefault(diagnostic.rule.code, [0, 0, 0])
        numbers[0] += 1
        if diagnostic.fix is not None:
            numbers[1] += diagnostic.fix.applicability is Applicability.SAFE
            numbers[2] += diagnostic.fix.applicability is Applicability.UNSAFE
    listed = [Count(rules[code], *numbers) for code, numbers in found.items()]
    return sorted(listed, key=lambda each: (-each.found, each.rule.code))


def render(report: Report, format: str) -> Iterator[str]:
    """Yield a line for each rule: how often, its code, ``[*]`` where ``--fix`` mends one, its name.

    ``[-]`` stands for mends that need ``--unsafe-fixes``.
    """
    listed = counts(report)
    if format == "json":
        yield json.dumps([_object(each) for each in listed], indent=2) + "\n"
        return
    width = max((len(str(each.found)) for each in listed), default=0)
    for each in listed:
        sign = _SIGNS[Applicability.SAFE] if each.safe else _SIGNS[Applicability.UNSAFE] if each.unsafe else "[ ]"
        severity = each.rule.severity.value
        yield f"{each.found:>{width}}  {report.paint(severity, each.rule.code)}  {sign}  {each.rule.name}\n"


def _object(each: Count) -> dict[str, object]:
    return {
        "code": each.rule.code,
        "name": each.rule.name,
        "count": each.found,
        "fixable": each.safe > 0,
        "fixable_count": each.safe,
    }
