"""Correct programs of many kinds, in `programs/correct.md`: each parses, and no rule finds anything in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nnx_lint import engine
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

PAGE = Path(__file__).parent / "programs" / "correct.md"
PROGRAM = re.compile(r"^## ([^\n]+)\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPINION = re.compile(r"# opinion: ([\w-]+)")
FLAX = re.compile(r"^# flax: ([\d.]+)$", re.MULTILINE)


def programs():
    for title, code in PROGRAM.findall(PAGE.read_text(encoding="utf-8")):
        yield pytest.param(code, id=title.replace(" ", "-"))


@pytest.mark.parametrize("code", list(programs()))
def test_nothing_is_found(code, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(code, encoding="utf-8")
    source = SourceFile.read(str(path))
    assert source.error is None
    older = FLAX.search(code)
    version = tuple(map(int, older[1].split("."))) if older is not None else None
    every_rule = Options.everywhere(lambda rule: not rule.migration, version=version)
    found = {
        (source.location(item.span.start)[0], item.rule.name)
        for item in engine.check([source], roots=[str(tmp_path)], options=every_rule)
    }
    assert found == {
        (number, mark[1]) for number, line in enumerate(code.splitlines(), 1) if (mark := OPINION.search(line))
    }
