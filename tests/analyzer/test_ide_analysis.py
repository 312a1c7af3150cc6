"""The analysis that an editor asks: after any edits it says what a fresh one says."""

from __future__ import annotations

import gc
import random
import sys
import textwrap
import weakref
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnx_lint.checking import Checker
from nnx_lint.engine import STACK
from nnx_lint.ide import scan, tour
from nnx_lint.ide.analysis import Analysis, Cancelled
from nnx_lint.ide.revisions import Revisions
from nnx_lint.ide.settings import Settings, read
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

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
        left = numbers.randrange(8)

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


def test_an_edit_that_was_taken_in_by_half_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = analysis(tmp_path, {"base.py": BASE})
    before = found(made, tmp_path, ["base.py"])
    edited = BASE.replace("[1]", "[nnx.Param(1)]")
    made.edit(SourceFile.from_text(edited, str(tmp_path / "base.py")))

    def execute(*_: object) -> bool:
        raise Cancelled("in the middle")

    with monkeypatch.context() as broken:
        broken.setattr(Revisions, "_execute", execute)
        with pytest.raises(Cancelled, match="in the middle"):
            made.findings(str(tmp_path / "base.py"))
    after = found(made, tmp_path, ["base.py"])
    assert after != before
    assert after == found(analysis(tmp_path, {"base.py": edited}), tmp_path, ["base.py"])
    assert made.engine.project.running == []


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


STEPS = (
    ("base.py", None),
    ("base.py", BASE),
    ("base.py", BASE.replace("nnx.Param(0)", "0")),
    ("user.py", None),
    ("user.py", USER),
    ("base/__init__.py", "from flax import nnx\nclass Base(nnx.Module): pass\nmake = nnx.Param"),
    ("base/__init__.py", None),
    ("other/heir.py", "from user import User\nclass Heir(User):\n    pass"),
    ("other/heir.py", None),
)


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.booleans()), max_size=8))
@settings(deadline=None, max_examples=12)
def test_files_that_come_and_go_lead_where_a_fresh_analysis_begins(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[tuple[str, str | None], bool]]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    made = analysis(folder, {"loop.py": LOOP})
    for (name, text), walked in steps:
        path = folder / name
        existed = path.exists()
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        made.touched(str(path), came_or_went=existed != path.exists())
        if walked:
            made.found(map(str, folder.rglob("*.py")))
        found(made, folder, ["loop.py"])
    made.found(map(str, folder.rglob("*.py")))
    fresh = analysis(folder, {"loop.py": LOOP})
    fresh.found(map(str, folder.rglob("*.py")))
    assert found(made, folder, ["loop.py"]) == found(fresh, folder, ["loop.py"])


def test_only_a_file_that_an_import_means_takes_a_new_engine(tmp_path: Path) -> None:
    made = analysis(tmp_path, {"base.py": BASE, "user.py": USER})
    made.edit(SourceFile.from_text(LOOP, str(tmp_path / "sub" / "loop.py")))
    before = made.engine
    assert made.check(str(tmp_path / "user.py")) is made.check(str(tmp_path / "user.py"))
    known = made.check(str(tmp_path / "user.py"))
    (tmp_path / "more.py").write_text("x = 1\n")
    made.touched(str(tmp_path / "more.py"), came_or_went=True)
    made.edit(SourceFile.from_text("from flax import nnx\n", str(tmp_path / "untitled.py")))
    assert made.found(map(str, tmp_path.rglob("*.py")))
    assert made.check(str(tmp_path / "user.py")) is known
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "__init__.py").write_text("")
    made.touched(str(tmp_path / "base" / "__init__.py"), came_or_went=True)
    assert made.check(str(tmp_path / "user.py")) is not known
    assert made.engine is not before


def test_an_engine_that_is_not_needed_any_more_leaves_the_memory(tmp_path: Path) -> None:
    made = analysis(tmp_path, PROGRAM)
    assert [len(each) for each in found(made, tmp_path, list(PROGRAM)).values()] == [0, 2, 2]
    made.views(str(tmp_path / "loop.py"))
    engine = weakref.ref(made.engine)
    made.configure(read({"ignore": ["NNX9"]}))
    gc.collect()
    assert engine() is None


def test_a_file_is_parsed_again_only_if_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text(BASE)
    made = analysis(tmp_path, {"user.py": USER})
    found(made, tmp_path, ["user.py"])
    tree = made.engine.project.module(str(tmp_path / "base.py")).source.tree  # type: ignore[union-attr]
    made.configure(read({"ignore": ["NNX9"]}))
    assert made.engine.project.module(str(tmp_path / "base.py")).source.tree is tree  # type: ignore[union-attr]
    (tmp_path / "base.py").write_text(BASE + "\n")
    made.touched(str(tmp_path / "base.py"))
    assert made.engine.project.module(str(tmp_path / "base.py")).source.tree is not tree  # type: ignore[union-attr]


def test_every_file_has_the_options_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "nnx-lint.toml").write_text('select = ["NNX9"]\n')
    (tmp_path / "sub" / "nnx-lint.toml").write_text('select = ["NNX1"]\n')
    text = "from flax import nnx\nclass M(nnx.Module):\n    def __init__(self):\n        self.a = [nnx.Param(1)]\n"
    paths = [tmp_path / "m.py", tmp_path / "sub" / "m.py"]
    for path in paths:
        path.write_text(text)
    results = [each for each in scan.run(scan.Request(str(tmp_path), None, {}, True)) if isinstance(each, scan.Result)]
    assert {each.path: len(each.closed.findings) for each in results} == dict(zip(map(str, paths), (0, 1), strict=True))
    made = analysis(tmp_path)
    made.found(map(str, paths))
    made.engine  # noqa: B018
    for path in paths:
        made.edit(SourceFile.from_text(text, str(path)))
    assert [len(made.findings(str(path))) for path in paths] == [0, 1]


def test_a_file_that_comes_later_may_ask_for_other_rules(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "nnx-lint.toml").write_text('select = ["NNX9"]\n')
    (tmp_path / "sub" / "nnx-lint.toml").write_text('select = ["NNX1"]\n')
    text = "from flax import nnx\nclass M(nnx.Module):\n    def __init__(self):\n        self.a = [nnx.Param(1)]\n"
    made = analysis(tmp_path)
    for path, count in ((tmp_path / "m.py", 0), (tmp_path / "sub" / "m.py", 1)):
        made.edit(SourceFile.from_text(text, str(path)))
        assert len(made.findings(str(path))) == count


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


def test_a_scan_holds_only_what_files_to_come_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in PROGRAM.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in sorted(PROGRAM)]
    made = Analysis(str(tmp_path), Settings(), noting=False)
    made.found(paths)
    whole = list(made.look_through(paths))
    assert [path for path in paths if made.engine.project.loaded(path)] == paths
    monkeypatch.setattr(tour, "MUCH", 0)
    monkeypatch.setattr(tour, "MORE", 0)
    made = Analysis(str(tmp_path), Settings(), noting=False)
    made.found(paths)
    units, held = [], []
    for unit in made.look_through(paths):
        units.append(unit)
        held.append([Path(path).name for path in paths if made.engine.project.loaded(path)])
    # `loop` imports `user`, which imports `base`; that `user` has an heir in `loop` takes another look at that text.
    assert held == [["base.py"], ["base.py", "loop.py", "user.py"], ["base.py", "loop.py", "user.py"]]
    assert [Path(path).name for path in paths if made.engine.project.loaded(path)] == ["loop.py"]
    assert [unit.findings for unit in units] == [unit.findings for unit in whole]
    assert any(unit.findings for unit in units)


def test_a_scan_leaves_out_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"from flax import nnx\n" + bytes(100))
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "base.py").write_text(BASE)
    messages = list(scan.run(scan.Request(str(tmp_path), None, {}, True)))
    counts = {each.path: len(each.closed.findings) for each in messages if isinstance(each, scan.Result)}
    assert counts == {str(tmp_path / "base.py"): 0, str(tmp_path / "user.py"): 2}


HEIR = """\
from flax import nnx

class Wide(nnx.Linear):
    def __init__(self, rngs):
        super().__init__(2, 3, rngs=rngs)
        self.in_feature = 2
"""

MISSPELT = """\
from flax import nnx

class Net(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(2, 3, rngs=rngs)

    def width(self):
        return self.layer.in_feature
"""


def wrapped(text: str) -> str:
    """A program whose classes a function defines."""
    head, body = text.split("\n", 1)
    return f"{head}\n\ndef make():\n" + textwrap.indent(body, "    ")


@pytest.mark.parametrize("heir", [HEIR, wrapped(HEIR)], ids=["a class", "a class in a function"])
@pytest.mark.parametrize("together", [False, True], ids=["two files", "one file"])
def test_what_a_class_below_has_counts_as_soon_as_it_is_typed(tmp_path: Path, heir: str, together: bool) -> None:
    def texts(attribute: str) -> dict[str, str]:
        written = heir.replace("in_feature", attribute)
        return {"net.py": MISSPELT + written} if together else {"net.py": MISSPELT, "heir.py": written}

    made = analysis(tmp_path, texts("in_feature"))
    for attribute, count in (("in_feature", 0), ("other", 1), ("others", 1), ("in_feature", 0)):
        for name, text in texts(attribute).items():
            made.edit(SourceFile.from_text(text, str(tmp_path / name)))
        assert len(found(made, tmp_path, ["net.py"])["net.py"]) == count
        assert found(made, tmp_path, ["net.py"]) == found(analysis(tmp_path, texts(attribute)), tmp_path, ["net.py"])


def test_settings_are_read_one_by_one() -> None:
    settings = read(
        {"ignore": ["NNX1"], "target": 3, "hintStatus": False, "selct": [], "interpreter": "python", "x": None}
    )
    assert settings.values == {"ignore": ("NNX1",), "hint-status": False}
    assert [problem.split(" ")[0] for problem in settings.problems] == ["nnx.target", "there"]
    assert settings.flags("/").values == {"ignore": ("NNX1",)}
    assert read([1]).problems == ("the settings must be a table from options to values",)
