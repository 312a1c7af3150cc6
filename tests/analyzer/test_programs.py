"""Small projects as people lay them out, in Markdown: each section is one project, and each block one of its files.

A line ``# finds: rule-name ...`` carries exactly these findings at default settings, every other line none. A block may
name its file (```` ```python src/pkg/net.py ````); without a name it is ``program.py``. A title may end in the version
of Python that its syntax needs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from nnx_lint.checking import Checker
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

PROGRAMS = Path(__file__).parent / "programs"
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```(?:python|toml|text)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEWER = re.compile(r"\(Python 3\.(\d+)\)$")
MARK = re.compile(r"# finds: (.*)")
DEFAULTS = Options.everywhere(lambda rule: rule.default)


def sections():
    for page in (
        "names.md",
        "classes.md",
        "training.md",
        "ports.md",
        "steps.md",
        "layers.md",
        "flow.md",
        "sizes.md",
        "public.md",
        "configurations.md",
    ):
        _, *parts = SECTION.split((PROGRAMS / page).read_text())
        for title, text in zip(parts[::2], parts[1::2], strict=True):
            needed = NEWER.search(title)
            old = needed is not None and sys.version_info < (3, int(needed[1]))
            skip = pytest.mark.skipif(old, reason="its syntax is newer than this interpreter")
            yield pytest.param({name or "program.py": code for name, code in BLOCK.findall(text)}, id=title, marks=skip)


def findings(sources, root):
    found = {}
    for item in Checker(DEFAULTS, [str(root)]).check({source.path: source for source in sources}):
        source = next(source for source in sources if source.path == item.path)
        place = (str(Path(item.path).relative_to(root)), source.location(item.span.start)[0])
        found.setdefault(place, set()).add(item.rule.name)
    return found


@pytest.mark.parametrize("files", list(sections()))
def test_findings_are_where_the_marks_are(files, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    sources = [SourceFile.read(str(tmp_path / name)) for name in sorted(files) if name.endswith((".py", ".pyi"))]
    expected = {
        (name, number): set(mark[1].split())
        for name, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if (mark := MARK.search(line))
    }
    assert findings(sources, tmp_path) == expected
