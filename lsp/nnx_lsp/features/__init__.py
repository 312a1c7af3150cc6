"""The requests that the server answers: one module for each kind, with a function that registers its handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lsp.features import actions, commands, completing, diagnostics, reading, scans

if TYPE_CHECKING:
    from nnx_lsp.server import Server

FEATURES = (diagnostics, actions, reading, completing, commands, scans)


def register(server: Server) -> None:
    """Register all of them."""
    for feature in FEATURES:
        feature.register(server)
