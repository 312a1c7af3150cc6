"""Writes the settings of the VS Code extension from the registry of options.

The first group of settings in ``vscode-extension/package.json`` is the extension's own and is written by hand; all
others come from the options that an editor can have. A test compares, so that the two cannot differ.

An option that configuration files can have is ``null`` here, which leaves the decision to them; VS Code sends the
default of a setting as if somebody had chosen it.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from nnx_lint.config.registry import FILE, OPTIONS, Option

MANIFEST = Path(__file__).parents[1] / "vscode-extension" / "package.json"


def groups() -> list[dict[str, Any]]:
    """The groups of settings, as ``contributes.configuration`` has them."""
    options = [option for option in OPTIONS if option.setting]
    return [
        {
            "title": f"{group[0].upper()}{group[1:]}",
            "properties": {option.setting: _property(option) for option in members},
        }
        for group, members in groupby(options, key=lambda option: option.group)
    ]


def _property(option: Option) -> dict[str, Any]:
    described = dict(option.kind.schema())
    first, *more = option.doc.split("\n")
    text = " ".join([f"{first[0].upper()}{first[1:]}.", *more])
    if FILE in option.places:
        described["type"] = [described["type"], "null"]
        text += " If this is not set, configuration files decide."
    default = None if FILE in option.places else option.default
    return {**described, "default": default, "scope": "resource", "markdownDescription": text}


def manifest(text: str) -> str:
    """The manifest with the present options."""
    read = json.loads(text)
    own, *_ = read["contributes"]["configuration"]
    read["contributes"]["configuration"] = [own, *groups()]
    return json.dumps(read, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Rewrite the manifest."""
    MANIFEST.write_text(manifest(MANIFEST.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
