"""docs/coverage.md agrees with the registry of rules, and leaves next to nothing open."""

import re

from nnx_lint.pages import by_default
from nnx_rules.registry import Fixable
from nnx_rules.rules import REGISTRY
from repository import ROOT

PAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")][
    1:
]
RULE = re.compile(r"\[(?P<code>NNX\d{3})\]\((?P<page>\S+)\) (?P<name>\S+)")


def test_every_row_says_of_its_rule_what_the_registry_says() -> None:
    wrong = []
    for mistake, _, cell, _, severity, default, fix in ROWS:
        if cell and cell != "**not found**" and not severity:  # the reason why it cannot be decided
            continue
        found = RULE.fullmatch(cell)
        rule = REGISTRY.get(found["name"]) if found is not None else None
        if found is None or rule is None:
            wrong.append(f"{mistake}: {cell}")
            continue
        kind = "" if rule.fix is Fixable.NONE else rule.fix.value
        said = (found["code"], severity, default, fix)
        if said != (rule.code, rule.severity.value, by_default(rule), kind):
            wrong.append(f"{mistake}: {said}; run scripts/write_coverage.py")
        assert (ROOT / "docs" / found["page"]).resolve().is_file()
    assert wrong == []


def test_the_counts_are_those_of_the_rows() -> None:
    counts = re.search(r"^(\d+) mistakes; (\d+) are found, (\d+) of them at the default", PAGE, re.MULTILINE)

    assert counts is not None
    found = {row[0] for row in ROWS if RULE.fullmatch(row[2])}
    default = {row[0] for row in ROWS if row[5] == "yes"}
    assert [int(count) for count in counts.groups()] == [len({row[0] for row in ROWS}), len(found), len(default)]


def test_at_most_five_in_a_hundred_mistakes_are_not_found() -> None:
    mistakes = {row[0] for row in ROWS}
    found = {row[0] for row in ROWS if RULE.fullmatch(row[2])}

    assert len(mistakes - found) <= 0.05 * len(mistakes)
