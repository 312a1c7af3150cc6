"""Mypy's daemon, and runs with a cache, say what a fresh run says, whatever is edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from mypy_runs import Daemon, Mypy
from nnx_edits import Project

EDITS = 200


@pytest.mark.slow
def test_daemon_and_cache_equal_fresh_runs_over_edits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mypy = Mypy(tmp_path / "base")
    project = Project(tmp_path / "src")
    with Daemon(mypy, ["src"]) as daemon:
        assert daemon.check() == mypy.fresh("src")
        for number, edit in enumerate(project.edits(EDITS, seed=7)):
            expected = mypy.fresh("src")
            assert daemon.check() == expected, edit
            if number % 4 == 0:
                assert mypy.warm("src") == expected, edit
