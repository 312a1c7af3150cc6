"""``--watch``: checks again after every change, and ends with Ctrl-C."""

import os
import tempfile
from pathlib import Path

import pytest

from nnx_lint.cli import main
from nnx_lint.engine import Engine
from nnx_lint.watch import watch
from reports import Stream


@pytest.fixture(autouse=True)
def capable(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


class Session:
    """A watch over a folder, in which each pause does the next step, and the last one is Ctrl-C."""

    def __init__(self, folder, *steps, terminal=False):
        self.folder = folder
        self.steps = list(steps)
        self.checks = []
        self.pauses = []
        self.stream = Stream(terminal)

    def look(self):
        return sorted(map(str, self.folder.glob("*.py")))

    def check(self, changed):
        self.checks.append(changed if changed is None else sorted(Path(path).name for path in changed))
        self.stream.write("checked\n")

    def wait(self, seconds):
        self.pauses.append(seconds)
        if not self.steps:
            raise KeyboardInterrupt
        self.steps.pop(0)()

    def run(self):
        watch(self.look, self.check, self.stream, self.wait)
        return self.checks


def write(path, text):
    return lambda: path.write_text(text)


def nothing():
    pass


def test_every_change_is_checked_once_and_ctrl_c_ends_it(tmp_path):
    a, b = tmp_path / "a.py", tmp_path / "b.py"
    a.write_text("1")
    session = Session(
        tmp_path,
        nothing,
        write(a, "12"),
        nothing,
        write(b, "1"),  # a file comes
        lambda: (a.write_text("123"), b.write_text("12")),
        b.unlink,  # and goes
        nothing,
    )
    assert session.run() == [None, ["a.py"], ["b.py"], ["a.py", "b.py"], ["b.py"]]


def test_a_change_of_the_same_size_is_seen_by_its_time(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("1")
    os.utime(path, ns=(1, 1))
    assert Session(tmp_path, lambda: os.utime(path, ns=(1, 2))).run() == [None, ["a.py"]]


def test_a_change_during_a_check_is_checked_afterwards(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("1")

    class Busy(Session):
        def check(self, changed):
            super().check(changed)
            if changed is None:
                path.write_text("12")

    assert Busy(tmp_path, nothing).run() == [None, ["a.py"]]


def test_only_a_terminal_is_cleared(tmp_path):
    (tmp_path / "a.py").touch()
    session = Session(tmp_path)
    session.run()
    assert session.stream.getvalue() == "checked\n\nWatching 1 file for changes; Ctrl-C ends this.\n\n"
    session = Session(tmp_path, terminal=True)
    session.run()
    assert session.stream.getvalue().startswith("\033[2J\033[3J\033[Hchecked\n")


def test_ctrl_c_during_a_check_ends_it_too(tmp_path):
    class Interrupted(Session):
        def check(self, changed):
            raise KeyboardInterrupt

    assert Interrupted(tmp_path, nothing).run() == []


def test_looking_at_a_large_tree_takes_a_small_part_of_the_time(tmp_path, monkeypatch):
    times = iter(range(0, 1000, 2))  # a look takes two seconds
    monkeypatch.setattr("nnx_lint.watch.time.monotonic", lambda: float(next(times)))
    session = Session(tmp_path, nothing, nothing)
    session.run()
    assert session.pauses == [0.25, 20.0, 20.0]


def test_without_a_cache_only_what_changed_is_checked_again_and_nothing_is_left(tmp_path, monkeypatch, capsys):
    checked = []
    check = Engine.check
    monkeypatch.setattr(Engine, "check", lambda engine, path: checked.append(Path(path).name) or check(engine, path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    project = tmp_path / "project"
    project.mkdir()
    a, b = project / "a.py", project / "b.py"
    for path in (a, b):
        path.write_text("from flax import nnx\n\nnnx.Linear(1, 1, rngs=nnx.Rngs(0))\n")
        os.utime(path, ns=(10**18, 10**18))

    def twice(look, check, stream):
        check(None)
        b.write_text("from flax import nnx\n\nnnx.Linear(1, 1)\n")
        check(frozenset({str(b)}))

    monkeypatch.setattr("nnx_lint.watch.watch", twice)
    monkeypatch.chdir(project)

    assert main(["check", "--watch", "--no-cache", "--isolated", "."]) == 0

    assert sorted(checked) == ["a.py", "b.py", "b.py"]
    assert "missing-rngs" in capsys.readouterr().out
    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(path.name for path in project.iterdir()) == ["a.py", "b.py"]


def test_what_the_project_requires_is_watched(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("from flax import nnx\n")
    looks = []

    def three_times(look, check, stream):
        looks.append({Path(path).name for path in look()})
        (tmp_path / "requirements.txt").write_text("flax<0.11")
        looks.append({Path(path).name for path in look()})
        (tmp_path / "uv.lock").write_text('[[package]]\nname = "flax"\nversion = "0.10.4"\n')
        looks.append({Path(path).name for path in look()})

    monkeypatch.setattr("nnx_lint.watch.watch", three_times)
    monkeypatch.chdir(package)

    assert main(["check", "--watch", "."]) == 0

    assert looks[1] - looks[0] == {"requirements.txt"}
    assert looks[2] - looks[1] == {"uv.lock"}
