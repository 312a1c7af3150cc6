"""Writes the list of options in docs/configuration.md from the registry of options.

Everything below the marker is replaced. A test compares, so that the page cannot fall behind.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from nnx_lint.config.registry import FILE, OPTIONS, Option
from nnx_lint.config.schema import literal

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
MARKER = "<!-- Below, all is written by scripts/write_options.py. -->"


def options() -> str:
    """All options, as Markdown."""
    groups = groupby(OPTIONS, key=lambda option: option.group)
    return "".join(f"\n### {group[0].upper()}{group[1:]}\n{''.join(map(_section, items))}" for group, items in groups)


def _section(option: Option) -> str:
    first, *more = option.doc.split("\n")
    text = " ".join([f"{first[0].upper()}{first[1:]}.", *more])
    facts = [
        f"Type: {option.kind.name}",
        f"default: `{literal(option.default)}`" if option.default is not None else f"default: {option.unset}",
    ]
    facts += ["command line: " + ", ".join(f"`{flag}`" for flag in option.flags)] if option.flags else []
    facts += [f"editor: `{option.setting}`"] if option.setting else []
    facts += [] if FILE in option.places else ["not in a configuration file"]
    return f"\n#### `{option.name}`\n\n{text}\n\n{'; '.join(facts)}.\n"


def page(text: str) -> str:
    """The page with the present options."""
    written, marker, _ = text.partition(MARKER)
    assert marker, f"{PAGE.name} has lost its marker"
    return f"{written}{marker}\n{options()}"


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
