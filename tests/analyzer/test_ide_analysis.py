"""The analysis that an editor asks: after any edits it says what a fresh one says."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnx_lint.checking import Checker
from nnx_lint.engine import STACK
from nnx_lint.ide import scan
from nnx_lint.ide.analysis import Analysis, Cancelled
from nnx_lint.ide.settings import Settings, read
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

if TYPE_CHECKING:
    from pathlib import Path

BASE = """\
from flax import nnx

class Base(nnx.Module):
    def __init__(self):
        self.items = [1]

def make():
    return nnx.Param(0)
"""

USER = """\
from flax import nnx
from base import Base, make

class User(Base):
    def __init__(self):
        super().__init__()
        self.own = [make()]
        self.more = [Base()]
"""

LOOP = """\
import user
from flax import nnx

class Loop(user.User):
    def __init__(self):
        super().__init__()
        self.last = [user.make(), nnx.Linear(1, 1, rngs=nnx.Rngs(0))]

def use(model: Loop):
    return nnx.split(model, ..., nnx.Param)
"""

PROGRAM = {"base.py": BASE, "user.py": USER, "loop.py": LOOP}

CHANGES = [
    ("return nnx.Param(0)", "return 0"),
    ("class Base(nnx.Module)", "class Base"),
    ("[make()]", "nnx.List([make()])"),
    ("self.more = [Base()]", "self.more = Base()"),
    ("import user\n", ""),
    ("..., nnx.Param", "nnx.Param, ..."),
    ("super().__init__()", "super().__init__("),
    ("from base import Base, make", "from base import Base\nmake = lambda: nnx.Param(1)"),
]


def analysis(folder: Path, texts: dict[str, str] | None = None) -> Analysis:
    made = Analysis(str(folder), Settings())
    for name, text in (texts or {}).items():
        if not (folder / name).exists():
            (folder / name).write_text(text)
        made.edit(SourceFile.from_text(text, str(folder / name)))
    return made


def found(made: Analysis, folder: Path, names: list[str]) -> dict[str, list[tuple[str, str, object]]]:
    return {
        name: [(each.rule.code, each.message, each.span) for each in made.findings(str(folder / name))]
        for name in names
    }


# hypothesis watches the limit, which an engine raises once.
sys.setrecursionlimit(max(sys.getrecursionlimit(), STACK))

edits = st.lists(st.tuples(st.sampled_from(range(len(CHANGES))), st.booleans(), st.booleans()), max_size=12)


@given(edits)
@settings(deadline=None, max_examples=8)
def test_edits_lead_where_a_fresh_analysis_begins(tmp_path_factory: pytest.TempPathFactory, edits: object) -> None:
    folder = tmp_path_factory.mktemp("edits")
    assert isinstance(edits, list)
    texts = dict(PROGRAM)
    made = analysis(folder, texts)
    for number, forward, look in edits:
        old, new = CHANGES[number] if forward else reversed(CHANGES[number])
        for name, text in texts.items():
            if old and old in text:
                texts[name] = text.replace(old, new, 1)
                made.edit(SourceFile.from_text(texts[name], str(folder / name)))
        if look:
            found(made, folder, ["user.py"])
    assert found(made, folder, list(texts)) == found(analysis(folder, texts), folder, list(texts))


def test_what_was_given_up_leaves_nothing_behind(tmp_path: Path) -> None:
    expected = found(analysis(tmp_path, PROGRAM), tmp_path, list(PROGRAM))
    assert [len(each) for each in expected.values()] == [0, 2, 2]
    numbers = random.Random(0)
    made = analysis(tmp_path, PROGRAM)
    given_up = 0
    for _ in range(30):
        left = numbers.randrange(12)

        def pause() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Cancelled

        made.edit(SourceFile.from_text(numbers.choice((BASE, BASE + "\n")), str(tmp_path / "base.py")))
        made.pause = pause
        try:
            found(made, tmp_path, ["loop.py", "user.py"])
        except Cancelled:
            given_up += 1
    assert given_up > 5
    made.pause = lambda: None
    assert found(made, tmp_path, list(PROGRAM)) == expected


def test_files_on_disk_are_seen_until_they_are_edited(tmp_path: Path) -> None:
    for name, text in PROGRAM.items():
        (tmp_path / name).write_text(text)
    made = analysis(tmp_path, {"user.py": USER})
    assert [code for code, *_ in found(made, tmp_path, ["user.py"])["user.py"]] == ["NNX101", "NNX101"]
    made.edit(SourceFile.from_text(BASE.replace("nnx.Param(0)", "0"), str(tmp_path / "base.py")))
    assert len(found(made, tmp_path, ["user.py"])["user.py"]) == 1
    made.close(str(tmp_path / "base.py"))
    assert len(found(made, tmp_path, ["user.py"])["user.py"]) == 2
    (tmp_path / "base.py").write_text("class Base:\n    pass\ndef make():\n    pass\n")
    made.touched(str(tmp_path / "base.py"))
    assert found(made, tmp_path, ["user.py"])["user.py"] == []


def test_a_scan_finds_what_a_run_finds(tmp_path: Path) -> None:
    for name, text in PROGRAM.items():
        (tmp_path / name).write_text(text)
    messages = list(scan.run(scan.Request(str(tmp_path), None, {}, True)))
    again = [scan.read(scan.write(message).encode()) for message in messages]
    results = [message for message in again if isinstance(message, scan.Result)]
    checker = Checker(Options.everywhere(lambda rule: rule.default), [str(tmp_path)])
    wanted = checker.check(checker.read(sorted(str(tmp_path / name) for name in PROGRAM)))
    assert [each for result in results for each in result.closed.findings] == wanted
    assert wanted


def test_settings_are_read_one_by_one() -> None:
    settings = read(
        {"ignore": ["NNX1"], "target": 3, "hintStatus": False, "selct": [], "interpreter": "python", "x": None}
    )
    assert settings.values == {"ignore": ("NNX1",), "hint-status": False}
    assert [problem.split(" ")[0] for problem in settings.problems] == ["nnx.target", "there"]
    assert settings.flags("/").values == {"ignore": ("NNX1",)}
    assert read([1]).problems == ("the settings must be a table from options to values",)
