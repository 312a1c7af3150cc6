"""The rules' checks, one module a rule or a few that judge the same facts, in folders by family. Importing them
registers them.
"""

from __future__ import annotations

import importlib

MODULES: tuple[str, ...] = (
    "attributes.status",
    "attributes.containers",
    "attributes.tags",
    "attributes.variables",
    "attributes.annotations",
    "attributes.leaves",
    "attributes.classes",
    "attributes.bypass",
    "attributes.reserved",
    "attributes.registration",
    "attributes.opaque",
    "dataclasses.fields",
    "dataclasses.decorators",
    "filters.order",
    "filters.validity",
    "filters.arguments",
    "filters.coverage",
    "filters.results",
    "filters.pops",
    "traces.mutation",
    "traces.boundaries",
    "traces.methods",
    "traces.escapes",
)


def load() -> None:
    """Import every rule module; they register themselves."""
    for name in MODULES:
        importlib.import_module(f"nnx_lint.rules.{name}")
