"""What can be read about the rules in a terminal: the page of one, the list of all.

A page is the Markdown file that specifies, documents and tests its rule. In a source tree it lies in ``tests/rules``,
in an installed wheel inside of ``nnx_rules``. What the registry knows of a rule, its versions among it, is put into
the page when that is read, so that it is written in one place only.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

import nnx_rules
from nnx_rules.versions import spelled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nnx_rules.registry import Rule, Versions

_PACKAGE = os.path.dirname(os.path.abspath(nnx_rules.__file__))
PAGE_FOLDERS = (
    os.path.join(_PACKAGE, "pages"),
    os.path.join(_PACKAGE, "..", "..", "tests", "rules"),
)


def location(rule: Rule) -> str | None:
    """The file of the page of a rule; ``None`` if it has none."""
    paths = (os.path.normpath(os.path.join(folder, f"{rule.name}.md")) for folder in PAGE_FOLDERS)
    return next((path for path in paths if os.path.isfile(path)), None)


def page(rule: Rule) -> str:
    """The page of a rule, as Markdown, with what the registry knows of the rule after its first sentence."""
    path = location(rule)
    if path is None:
        return _summary(rule)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    head, section, rest = text.partition("\n## ")
    return f"{head}\n{_facts(rule)}{section}{rest}"


def _summary(rule: Rule) -> str:
    lines = [f"# {rule.name} ({rule.code})", "", rule.summary, "", _facts(rule), "## Message", "", rule.message]
    if rule.help:
        lines += ("", "## Help", "", rule.help)
    return "\n".join(lines) + "\n"


def _facts(rule: Rule) -> str:
    facts = {
        "Code": rule.code,
        "Severity": rule.severity.value,
        "Reported by default": by_default(rule),
        "Fix": rule.fix.value,
        "Holds for": holds_for(rule.versions),
        "Former names": ", ".join(rule.aliases),
        "Raised by nnxkit as": f"`{rule.exception.__name__}`" if rule.exception else "",
    }
    return "".join(f"- {name}: {value}\n" for name, value in facts.items() if value)


def holds_for(held: Versions) -> str:
    """The libraries and versions that a rule is about, in words."""
    since = f" from {spelled(held.flax_since)} on" if held.flax_since else ""
    before = f" before {spelled(held.flax_before)}" if held.flax_before else ""
    return " and ".join([f"flax{since}{before}"] * held.flax + ["nnxkit"] * held.nnxkit)


def by_default(rule: Rule) -> str:
    """Whether a rule is on if nobody says anything about it."""
    return "yes" if rule.default else "with a target" if rule.migration else "no"


def rule_list(rules: Iterable[Rule]) -> str:
    """One line for each rule: code, name, whether it is on by default, its kind of fix, and what it finds."""
    rows = [("code", "name", "default", "fix", "finds")]
    rows += (
        (rule.code, rule.name, by_default(rule), rule.fix.value.replace("none", "-"), rule.summary) for rule in rules
    )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = (
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4])) for row in rows
    )
    return "\n".join(lines) + "\n"
