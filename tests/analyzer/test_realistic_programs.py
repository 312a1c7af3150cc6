"""Whole files as people write them: every mistake is found on its line, and correct code is left alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nnx_lint import engine
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

PROGRAMS = Path(__file__).parent / "programs"
DEFAULTS = Options.everywhere(selected=lambda rule: rule.default)


def findings(source: SourceFile) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for item in engine.check([source], roots=[], options=DEFAULTS):
        found.setdefault(source.location(item.span.start)[0], []).append(item.rule.name)
    return {line: sorted(names) for line, names in found.items()}


def marks(text: str) -> dict[int, list[str]]:
    lines = enumerate(text.splitlines(), 1)
    return {number: sorted(mark[1].split()) for number, line in lines if (mark := re.search(r"# finds: (.*)", line))}


def test_every_mistake_is_found_on_its_line():
    source = SourceFile.read(str(PROGRAMS / "mistakes.py"))
    assert findings(source) == marks(source.text)


@pytest.mark.parametrize("header", ["from flax import nnx", "import nnxkit as nnx", "import flax.nnx as nnx"])
def test_correct_code_is_clean(header):
    text = (
        (PROGRAMS / "correct.py")
        .read_text()
        .replace("from flax import nnx, struct", f"{header}\nfrom flax import struct")
    )
    assert findings(SourceFile.from_text(text.replace("from flax import nnx\n", header + "\n"), "correct.py")) == {}
