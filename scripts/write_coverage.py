"""Writes docs/coverage.md: which rule finds which mistake of the rule catalog.

    python scripts/write_coverage.py rule-catalog.json

The catalog is a list of mistakes, each with a bad and a good program that were run on flax. The linter looks at both,
with every rule on: what it says of the bad program and not of the good one is what covers the mistake. A mistake that
it does not find is an error, unless ``UNDECIDED`` says why it cannot be found.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from nnx_lint.engine import check
from nnx_lint.pages import by_default
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_rules.registry import Fixable, Rule, Severity
from nnx_rules.rules import REGISTRY

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"
MARKER = "<!-- Below, all is written by scripts/write_coverage.py. -->"

RUN_ON = (0, 12, 8)
"""The version of flax that the programs of the catalog were run on."""

HEAD = """import flax, jax, jax.numpy as jnp, numpy as np, optax, functools, dataclasses
import typing as tp
from flax import nnx
"""
"""What the programs of the catalog assume."""

BY_HAND: dict[str, str] = {
    "name-newer-than-target": "name-newer-than-target",
}
"""Mistakes whose program only stands for it, with the rule: an old version cannot be had where a new one runs."""

UNDECIDED: dict[str, str] = {
    "rng-key-reuse": "the key of a stream may be read for other things than random numbers, such as a checkpoint",
}
"""Mistakes that cannot be found without running the program, with the reason."""


class Entry(NamedTuple):
    """A mistake, what flax does with it, and the rules that find it."""

    name: str
    observed: str
    rules: tuple[Rule, ...]


def read(catalog: list[dict[str, object]]) -> list[Entry]:
    """What the linter finds of each mistake."""
    return [Entry(str(item["name"]), _observed(item), _rules(item)) for item in catalog]


def _observed(item: dict[str, object]) -> str:
    observed = item["observed"]
    assert isinstance(observed, list)
    return "silent" if observed[0] == "OK" else f"`{observed[0]}`"


def _rules(item: dict[str, object]) -> tuple[Rule, ...]:
    name = str(item["name"])
    if name in BY_HAND:
        rule = REGISTRY.get(BY_HAND[name])
        return (rule,) if rule is not None else ()
    bad, good = (_findings(str(item[kind])) for kind in ("bad", "good"))
    found = tuple(rule for rule in bad if rule not in good)
    # Advice about the style of a short program is not what finds the mistake in it.
    return tuple(rule for rule in found if rule.severity is not Severity.INFO) or found


def _findings(program: str) -> dict[Rule, None]:
    source = SourceFile.from_text(f"{HEAD}{program}\n", "program.py")
    found = check([source], roots=[], options=Options.everywhere(lambda rule: True, version=RUN_ON))
    return dict.fromkeys(item.rule for item in sorted(found, key=lambda item: item.rule.code))


def table(entries: list[Entry]) -> str:
    """The entries as Markdown, and how many there are of which kind."""
    uses = Counter(rule.name for entry in entries for rule in entry.rules)
    found = [entry for entry in entries if entry.rules]
    default = [entry for entry in found if any(rule.default for rule in entry.rules)]
    silent = [entry for entry in found if entry.observed == "silent"]
    summary = (
        f"{len(entries)} mistakes; {len(found)} are found, {len(default)} of them at the default settings. "
        f"{len(silent)} of those that are found are silent at run time. {len(UNDECIDED)} cannot be decided."
    )
    lines = [
        summary,
        "",
        "| mistake | flax | rule | covers | severity | default | fix |",
        "|---|---|---|---|---|---|---|",
    ]
    for entry in entries:
        if not entry.rules:
            reason = UNDECIDED.get(entry.name, "**not found**")
            lines.append(f"| {entry.name} | {entry.observed} | {reason} | | | | |")
        for rule in entry.rules:
            covers = "it" if uses[rule.name] == 1 else f"{uses[rule.name]} mistakes"
            fix = "" if rule.fix is Fixable.NONE else rule.fix.value
            link = f"[{rule.code}](../tests/rules/{rule.name}.md) {rule.name}"
            row = (entry.name, entry.observed, link, covers, rule.severity.value, by_default(rule), fix)
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Rewrite the page; the status says whether every mistake is accounted for."""
    if len(arguments) != 1:
        print("usage: write_coverage.py rule-catalog.json", file=sys.stderr)
        return 2
    entries = read(json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    written, marker, _ = PAGE.read_text(encoding="utf-8").partition(MARKER)
    assert marker, f"{PAGE.name} has lost its marker"
    PAGE.write_text(f"{written}{marker}\n\n{table(entries)}", encoding="utf-8")
    missing = [entry.name for entry in entries if not entry.rules and entry.name not in UNDECIDED]
    for name in missing:
        print(f"not found: {name}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
