"""What the tests of transforms take by name."""

from __future__ import annotations

import pytest

from modes import MODES


@pytest.fixture(params=MODES.values(), ids=MODES)
def mode(request: pytest.FixtureRequest) -> dict[str, bool]:
    """Keywords that choose a mode; the test runs in each."""
    return request.param  # type: ignore[no-any-return]
