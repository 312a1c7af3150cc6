"""The typing specs, under every type checker."""

from __future__ import annotations

from pathlib import Path

import pytest

from repository import ROOT
from type_specs import CHECKERS, RUNS, Said, read

SPECS = [read(path) for path in sorted((ROOT / "tests" / "mypy" / "specs").glob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_checker_says_what_specs_say(checker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "programs"
    folder.mkdir()
    specs = [spec for spec in SPECS if checker in spec.expected]
    for spec in specs:
        for name, program in spec.programs.items():
            (folder / f"{name}.py").write_text(program)
    expected = {said for spec in specs for said in spec.expected[checker]}
    found = set(RUNS[checker](folder, ROOT))
    assert shown(found - expected) == shown(expected - found) == []


def shown(said: set[Said]) -> list[str]:
    return [f"{each.page}:{each.line}: {each.what}" for each in sorted(said)]
