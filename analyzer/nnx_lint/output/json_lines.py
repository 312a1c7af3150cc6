"""The objects of the ``json`` format, one a line, for tools that read while the linter writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nnx_lint.output.json import objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.output import Report


def render(report: Report) -> Iterator[str]:
    """Yield one line for each finding."""
    for finding in objects(report):
        yield json.dumps(finding, ensure_ascii=False, separators=(",", ":")) + "\n"
