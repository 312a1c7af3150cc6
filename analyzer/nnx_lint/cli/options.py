"""``nnx-lint config``: what can be read about options in a terminal."""

from __future__ import annotations

import sys
import textwrap

from nnx_lint.cli import CLEAN, UsageError
from nnx_lint.config.registry import BY_NAME, OPTIONS, Option
from nnx_lint.config.schema import literal, schema
from nnx_lint.selection import nearest

WIDTH = 100


def config(words: list[str]) -> int:
    """List all options, explain some, or print the JSON schema of a configuration file."""
    if words == ["--schema"]:
        import json

        print(json.dumps(schema(), indent=2))
        return CLEAN
    for word in words:
        if word not in BY_NAME:
            hint = nearest(word, [*BY_NAME, "--schema"])
            raise UsageError(f"there is no option {word!r}" + (f"; did you mean {hint!r}?" if hint else ""))
    if words:
        sys.stdout.write("\n".join(explained(BY_NAME[word]) for word in words))
    else:
        width = max(map(len, BY_NAME)) + 2
        sys.stdout.writelines(f"{option.name:<{width}}{option.brief}\n" for option in OPTIONS)
        print("\n`nnx-lint config NAME` says more of one; `nnx-lint config --schema` prints a JSON schema.")
    return CLEAN


def explained(option: Option) -> str:
    """All that is known about an option."""
    facts = {
        "Type": option.kind.name,
        "Default": literal(option.default) if option.default is not None else option.unset,
        "Given in": ", ".join(option.places),
        "Flags": " ".join(option.flags),
        "Setting": option.setting,
        "Settled": "once for a run, by the configuration of the current folder"
        if option.per_run
        else "for each file, by the nearest configuration",
    }
    lines = [option.name, ""]
    for paragraph in option.doc.split("\n"):
        lines += (*textwrap.wrap(paragraph, WIDTH), "")
    for name, value in facts.items():
        if value:
            lines += textwrap.wrap(f"{name + ':':<10}{value}", WIDTH, subsequent_indent=" " * 10)
    return "\n".join(lines) + "\n"
