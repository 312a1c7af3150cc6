"""Links in a file: from the rules that suppression comments name to their pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.selection import matches
from nnx_lint.suppressions import Suppressions
from nnx_rules.rules import REGISTRY

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Span
    from nnx_lint.source import SourceFile
    from nnx_rules.registry import Rule


class Link(NamedTuple):
    """A text that names one rule."""

    span: Span
    rule: Rule


def links(source: SourceFile) -> list[Link]:
    """The rules that the comments of a file name, one by one; what stands for several has no page."""
    found: list[Link] = []
    for suppression in Suppressions(source).all:
        for selector in () if suppression.bare else suppression.selectors:
            rules = [rule for rule in REGISTRY if matches(selector.word, rule)]
            if len(rules) == 1:
                found.append(Link(selector.span, rules[0]))
    return found
