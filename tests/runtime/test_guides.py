"""The programs in the guides run, one after the other, as a reader would run them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from repository import ROOT

GUIDES = ["README.md", "docs/checkpoints.md", "docs/summaries.md", "docs/training.md"]


@pytest.mark.parametrize("guide", GUIDES)
def test_programs(
    guide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if guide == "docs/checkpoints.md":
        pytest.importorskip("orbax.checkpoint")
        pytest.importorskip("safetensors")
    text = (ROOT / guide).read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert programs
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "guide"}
    for program in programs:
        exec(program, names)
    shown = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert "".join(shown).strip() in capsys.readouterr().out
