"""The three modes of transforms, and tests in them."""

from __future__ import annotations

import pytest

MODES: dict[str, dict[str, bool]] = {
    "default": {},
    "without updates": {"graph_updates": False},
    "tree": {"graph": False},
}
"""Keywords that choose a mode, by its name."""

every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
without_updates = pytest.mark.parametrize("mode", [MODES["without updates"], MODES["tree"]])
in_graph_mode = pytest.mark.parametrize("mode", [MODES["default"], MODES["without updates"]])
