"""The rules' checks, one module a rule or a few that judge the same facts, in folders by family. Importing them registers them."""

from __future__ import annotations

import importlib

MODULES: tuple[str, ...] = ("attributes.status",)


def load() -> None:
    """Import every rule module; they register themselves."""
    for name in MODULES:
        importlib.import_module(f"nnx_lint.rules.{name}")
