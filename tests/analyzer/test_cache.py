"""The cache: the same findings as without it, whatever happened to the files, to the cache, or to the run before."""

from __future__ import annotations

import io
import itertools
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnx_lint import cache as storage
from nnx_lint.checking import Checker
from nnx_lint.engine import Engine
from nnx_lint.selection import Options

EVERY_RULE = Options.everywhere(lambda rule: True)
SETTLED = "the analyzer of these tests"

BASE = """\
from flax import nnx


class Base(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.setup(rngs)

    def setup(self, rngs):
        self.layers = [nnx.Linear(2, 2, rngs=rngs)]
"""
NET = """\
from flax import nnx
import base


class Net(base.Base):
    def setup(self, rngs):
        self.blocks = [nnx.Linear(2, 2, rngs=rngs)]  # nnx: ignore[NNX101]
        self.more = [nnx.Linear(2, 2, rngs=rngs)]
"""
PLAIN = "import os\n\nprint(os.name)  # nnx: ignore[NNX101]\n"
FILES = {"base.py": BASE, "net.py": NET, "plain.py": PLAIN, "broken.py": "from flax import nnx\nnnx.split(\n"}

# Texts that a file may get, to try every change of every file against every other one.
TEXTS = [
    *FILES.values(),
    "",
    "x = 1\n",
    BASE.replace("[nnx.Linear(2, 2, rngs=rngs)]", "nnx.List([nnx.Linear(2, 2, rngs=rngs)])"),
    BASE.replace("self.setup(rngs)", "self.setup(rngs)\n        self.more = 'static'"),
    NET.replace("base.Base", "nnx.Module").replace("setup", "__init__"),
    "from base import *\n\n\nclass Other(Base):\n    def setup(self, rngs):\n        nnx.data(self.layers)\n",
    "import base\n\nbase.Base.setup = None\n",
]


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """The analyzer stays the same during a test, also where somebody edits it meanwhile."""
    monkeypatch.setattr(storage, "_tool", lambda: SETTLED)


@pytest.fixture
def tree(tmp_path):
    """A folder with some files."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(tree, cache=True, **how):
    """The findings and problems of a run, and the names of the files that it checked."""
    paths = sorted(str(path) for path in tree.glob("*.py"))
    checker = Checker(EVERY_RULE, [str(tree)], cache=str(tree / ".cache") if cache else None, **how)
    asked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        check = Engine.check
        patch.setattr(Engine, "check", lambda self, path: asked.append(Path(path).name) or check(self, path))
        findings = checker.check(checker.read(paths))
    return findings, checker.problems, sorted(asked)


def test_a_warm_run_checks_nothing(tree):
    cold = run(tree)
    assert cold[0]
    assert cold[1]
    assert cold[2] == sorted(FILES)
    assert run(tree) == (*cold[:2], [])
    assert run(tree, cache=False) == cold


def test_a_warm_run_reads_no_file_and_imports_no_engine(tree):
    for name in FILES:  # older than the time within which a file counts as fresh
        os.utime(tree / name, ns=(10**18, 10**18))
    program = (
        "import sys, nnx_lint.cache as cache\n"
        "cache.RACY = -10**18\n"  # the time of the last change of the inode cannot be set
        f"cache._tool = lambda: {SETTLED!r}\n"
        "from nnx_lint.checking import Checker\n"
        "from nnx_lint.selection import Options\n"
        "checker = Checker(Options.everywhere(lambda rule: True), ['.'], cache='.cache')\n"
        f"print(len(checker.check(checker.read({sorted(FILES)!r}))))\n"
        "print(sorted(name for name in ('nnx_lint.engine', 'nnx_lint.model') if name in sys.modules))\n"
    )
    spied = (
        "import sys\nopened = []\nsys.addaudithook(lambda event, args: event == 'open' and opened.append(args[0]))\n"
    )
    last = "print([path for path in opened if path in " + repr(sorted(FILES)) + "])\n"

    def output():
        done = subprocess.run(
            [sys.executable, "-c", spied + program + last], cwd=tree, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    found, _, _ = output()
    assert output() == [found, "[]", "[]"]


@pytest.mark.parametrize(("name", "text"), list(itertools.product(FILES, TEXTS)))
def test_every_change_of_a_file(tree, name, text):
    run(tree)
    (tree / name).write_text(text)
    changed = run(tree)
    assert changed[:2] == run(tree, cache=False)[:2]
    assert run(tree) == (*changed[:2], [])
    (tree / name).write_text(FILES[name])
    assert run(tree)[:2] == run(tree, cache=False)[:2]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([*FILES, "new.py"]), st.sampled_from([None, *TEXTS])), max_size=6))
def test_a_history_of_changes(tree, changes):
    for name, text in changes:
        if text is None:
            (tree / name).unlink(missing_ok=True)
        else:
            (tree / name).write_text(text)
        assert run(tree)[:2] == run(tree, cache=False)[:2]


def test_only_what_depends_on_a_change_is_checked(tree):
    run(tree)
    (tree / "plain.py").write_text(PLAIN + "\n# more\n")
    assert run(tree)[2] == ["plain.py"]
    (tree / "net.py").write_text(NET + "\n# more\n")
    assert run(tree)[2] == ["base.py", "net.py"]  # what a class below does to an attribute counts for its base
    (tree / "user.py").write_text("from flax import nnx\nimport net\n\nnet.Net(nnx.Rngs(0))\n")
    run(tree)
    (tree / "user.py").write_text("from flax import nnx\nimport net\n\nnet.Net(nnx.Rngs(1))\n")
    assert run(tree)[2] == ["user.py"]
    (tree / "user.py").unlink()
    run(tree)
    (tree / "base.py").write_text(BASE + "\n# more\n")
    assert run(tree)[2] == ["base.py", "net.py"]


def test_a_change_back_to_the_same_text_is_no_change(tree):
    run(tree)
    os.utime(tree / "base.py", ns=(5, 5))
    assert run(tree)[2] == []


def test_a_new_module_can_take_the_place_of_a_library(tree):
    (tree / "net.py").write_text("import helpers\nfrom flax import nnx\n\n\nclass Net(helpers.Base):\n    pass\n")
    run(tree)
    (tree / "helpers.py").write_text(BASE)
    assert run(tree)[:2] == run(tree, cache=False)[:2]


def test_an_imported_file_that_is_not_checked(tree):
    def some(cache):
        checker = Checker(EVERY_RULE, [str(tree)], cache=str(tree / ".cache") if cache else None)
        return checker.check(checker.read([str(tree / "net.py")]))

    before = some(cache=True)
    (tree / "base.py").write_text("Base = 3\n")
    assert some(cache=True) == some(cache=False) != before


def test_other_options_and_other_files_have_a_cache_of_their_own(tree):
    findings, *_ = run(tree)
    none = Checker(Options.everywhere(lambda rule: False), [str(tree)], cache=str(tree / ".cache"))
    assert none.check(none.read([str(tree / "net.py")])) == []
    assert run(tree)[0] == findings


# -- harm --------------------------------------------------------------------------------------------------------------


def cache_file(tree):
    (path,) = (tree / ".cache").glob("*" + storage.SUFFIX)
    return path


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_harm_to_the_cache_file(tree, data):
    expected = run(tree)[:2]
    path = cache_file(tree)
    content = bytearray(path.read_bytes())
    kind = data.draw(st.sampled_from(["flip", "cut", "extend", "replace"]))
    place = int(data.draw(st.floats(0, 1, exclude_max=True)) * len(content))
    if kind == "flip":
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del content[place:]
    elif kind == "extend":
        content += data.draw(st.binary(min_size=1))
    else:
        content[place : place + 8] = data.draw(st.binary())
    path.write_bytes(content)
    assert run(tree)[:2] == expected
    assert run(tree) == (*expected, [])


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"[[],{},[],{}]", b'[[[1]],{},[["x"]],{}]', b"[" * 100_000, b"\xff"]
)
def test_a_well_formed_cache_that_somebody_else_made(tree, body):
    expected = run(tree)[:2]
    cache_file(tree).write_bytes(storage.MAGIC + b"%08x\n" % __import__("zlib").crc32(body) + body)
    assert run(tree)[:2] == expected


def test_another_version_of_the_analyzer(tree, monkeypatch):
    expected = run(tree)
    monkeypatch.setattr(storage, "_tool", lambda: "another")
    assert run(tree) == expected


def test_a_folder_that_cannot_be_written(tree):
    expected = run(tree, cache=False)
    (tree / ".cache").write_text("a file, not a folder")
    paths = sorted(str(tree / name) for name in FILES)
    checker = Checker(EVERY_RULE, [str(tree)], cache=str(tree / ".cache"))
    assert (checker.check(checker.read(paths)), checker.problems) == expected[:2]
    assert checker.cache_problem is not None
    assert "the cache cannot be written" in checker.cache_problem


def test_a_full_disk(tree, monkeypatch):
    expected = run(tree, cache=False)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.os, "replace", full)
    assert run(tree)[:2] == expected[:2]
    assert [path.name for path in (tree / ".cache").iterdir() if path.name not in storage.MARKERS] == []


def test_a_disk_that_is_full_at_once_leaves_no_half_of_a_mark(tree, monkeypatch):
    class Full(io.StringIO):
        def write(self, _):
            raise OSError(28, "No space left on device")

    opened = open

    def full(path, mode="r", **how):
        file = opened(path, mode, **how)
        if Path(path).name not in storage.MARKERS:
            return file
        file.close()
        return Full()

    monkeypatch.setattr(storage, "open", full, raising=False)
    checker = Checker(EVERY_RULE, [str(tree)], cache=str(tree / ".cache"))
    checker.check(checker.read([str(tree / "net.py")]))
    assert "No space left" in (checker.cache_problem or "")
    assert list((tree / ".cache").iterdir()) == []
    monkeypatch.undo()
    run(tree)
    assert (tree / ".cache" / "CACHEDIR.TAG").read_text().startswith("Signature: ")


def test_the_folder_tells_version_control_and_backups_to_leave_it_alone(tree):
    run(tree)
    assert (tree / ".cache" / ".gitignore").read_text() == "*\n"
    assert (tree / ".cache" / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_few_files_and_no_litter_are_kept(tree):
    (tree / ".cache").mkdir()
    (tree / ".cache" / "left behind.new").write_text("")
    os.utime(tree / ".cache" / "left behind.new", (1, 1))
    for number in range(storage.KEPT_RUNS + 3):
        checker = Checker(EVERY_RULE, [str(tree), str(number)], cache=str(tree / ".cache"))
        checker.check(checker.read([str(tree / "plain.py")]))
    names = {path.name for path in (tree / ".cache").iterdir()} - set(storage.MARKERS)
    assert len(names) == storage.KEPT_RUNS
    assert all(name.endswith(storage.SUFFIX) for name in names)


def test_clean(tree):
    run(tree)
    assert storage.clean(str(tree / ".cache")) == 1
    assert not (tree / ".cache").exists()
    assert storage.clean(str(tree / ".cache")) == 0
    run(tree)
    (tree / ".cache" / "mine.txt").write_text("x")
    assert storage.clean(str(tree / ".cache")) == 1
    assert [path.name for path in (tree / ".cache").iterdir()] == ["mine.txt"]


# -- other processes ---------------------------------------------------------------------------------------------------

PROGRAM = f"""\
import sys
import nnx_lint.cache
import nnx_lint.checking
from nnx_lint.checking import Checker
from nnx_lint.selection import Options
nnx_lint.checking.BIG = 0
nnx_lint.cache._tool = lambda: {SETTLED!r}
paths = sorted(sys.argv[3:])
folder, jobs = sys.argv[1], int(sys.argv[2])
checker = Checker(Options.everywhere(lambda rule: True), [folder], cache=folder + "/.cache", jobs=jobs)
print("ready", flush=True)
for finding in checker.check(checker.read(paths)):
    print(finding.path, finding.span, finding.rule.code, finding.message)
"""


def start(tree, jobs):
    paths = sorted(str(path) for path in tree.glob("*.py"))
    command = [sys.executable, "-c", PROGRAM, str(tree), str(jobs), *paths]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def printed(tree):
    findings, _, _ = run(tree, cache=False)
    return [f"{finding.path} {finding.span} {finding.rule.code} {finding.message}" for finding in findings]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_that_are_killed_at_any_instant(tree, jobs):
    chance = random.Random(jobs)
    for number in range(12):
        (tree / "net.py").write_text(NET.replace("self.more", f"self.more{number}"))
        process = start(tree, jobs)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        killer = threading.Timer(chance.random() * 0.4, process.kill)
        killer.start()
        process.stdout.read()
        process.wait()
        killer.cancel()
        killer.join()
        process.stdout.close()
        after = run(tree)
        assert after[:2] == run(tree, cache=False)[:2]
        assert run(tree) == (*after[:2], [])


@pytest.mark.slow
def test_runs_at_the_same_time(tree):
    for number in range(4):
        (tree / "net.py").write_text(NET.replace("self.more", f"self.more{number}"))
        expected = ["ready", *printed(tree)]
        processes = [start(tree, jobs) for jobs in (1, 2, 1, 2)]
        outputs = [process.communicate()[0].splitlines() for process in processes]
        assert outputs == [expected] * 4
        assert [process.returncode for process in processes] == [0] * 4
        assert run(tree)[2] == []
