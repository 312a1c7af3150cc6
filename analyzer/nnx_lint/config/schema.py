"""The JSON schema of a configuration file, and how a value is written in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from nnx_lint.config.registry import FILE, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

DIALECT = "http://json-schema.org/draft-07/schema#"


def schema() -> dict[str, object]:
    """The schema of ``nnx-lint.toml``, and of the table ``[tool.nnx-lint]``."""
    properties: dict[str, object] = {}
    for option in OPTIONS:
        if FILE not in option.places:
            continue
        described = option.kind.schema() | {"description": option.doc}
        if option.default is not None:
            described["default"] = option.default
        properties[option.name] = described
    return {
        "$schema": DIALECT,
        "title": "nnx-lint",
        "description": "The configuration of nnx-lint: nnx-lint.toml, or the table [tool.nnx-lint] of pyproject.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def literal(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        table = cast("Mapping[str, object]", value)
        return "{" + ", ".join(f"{json.dumps(key)} = {literal(item)}" for key, item in table.items()) + "}"
    if isinstance(value, (list, tuple)):
        items = cast("tuple[object, ...]", value)
        return "[" + ", ".join(map(literal, items)) + "]"
    return json.dumps(value, ensure_ascii=False)
