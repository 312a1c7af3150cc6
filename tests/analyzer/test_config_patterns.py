"""Patterns and .gitignore: what git says of the same lines, and which files a walk finds."""

import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnx_lint.config.patterns import Patterns
from nnx_lint.config.reading import Document
from nnx_lint.config.settings import Configuration
from nnx_lint.files import discover

GIT = shutil.which("git")


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def found(*paths, **flags):
    values = {name.replace("_", "-"): value for name, value in flags.items()}
    return discover(paths or ["."], Configuration(Document(None, ".", values))).files


@pytest.mark.parametrize(
    ("lines", "path", "excluded"),
    [
        (["a.py"], "x/a.py", True),
        (["/a.py"], "x/a.py", False),
        (["/a.py"], "a.py", True),
        (["x/a.py"], "y/x/a.py", False),
        (["**/x/a.py"], "y/x/a.py", True),
        (["x"], "x/y/a.py", True),
        (["x/"], "x", False),
        (["x/"], "x/a.py", True),
        (["x/**"], "x/y/a.py", True),
        (["x/**/a.py"], "x/a.py", True),
        (["x/*"], "x/y/a.py", True),
        (["x/*.py"], "x/y/a.py", False),
        (["*.py", "!a.py"], "a.py", False),
        (["!a.py", "*.py"], "a.py", True),
        (["x", "!x/a.py"], "x/a.py", True),
        (["# a.py", "", "  "], "a.py", False),
        ([r"\#a", r"\!b"], "#a", True),
        ([r"\#a", r"\!b"], "!b", True),
        (["a  "], "a", True),
        (["a\\ "], "a ", True),
        (["a\r\n"], "a", True),
        (["[a-c].py"], "b.py", True),
        (["[!a-c].py"], "b.py", False),
        (["[[:digit:]].py"], "7.py", True),
        (["[a"], "[a", False),
        (["a\\"], "a\\", False),
        (["?.py"], "ab.py", False),
        (["x?y"], "x/y", False),
    ],
)
def test_patterns(lines, path, excluded):
    assert Patterns(lines).covers(path) is excluded


# Git treats `**` after literal text as if a slash stood between, if a slash follows: `a**/b` matches `ab`. Nobody means
# that, so it is left out here.
PIECES = [
    "a",
    "b",
    "ab",
    "*",
    "**/",
    "/**",
    "?",
    "/",
    "[ab]",
    "[!a]",
    "[a-c]",
    "[]a]",
    "\\*",
    "\\a",
    ".py",
    "*.py",
    "!",
]
PIECES += [" ", "#", "x-y", "[x", "[[:alpha:]]", "[^b]"]
PATTERNS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
NAMES = st.sampled_from(["a", "b", "ab", "a.py", "b.py", "[x]", "a b", "!c", "#d", "x-y", "A"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


def is_odd(pattern):
    at = pattern.find("**")
    return at > 0 and pattern[at - 1] != "/"


@pytest.mark.skipif(GIT is None, reason="asks git")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PATTERNS.filter(lambda pattern: not is_odd(pattern)), max_size=4), st.lists(PATHS, min_size=1))
def test_git_says_the_same(tmp_path, lines, paths):
    if not (tmp_path / ".git").exists():
        subprocess.run([GIT, "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("".join(f"{line}\n" for line in lines))
    done = subprocess.run(
        [GIT, "check-ignore", "-z", "--stdin", "--no-index"],
        input="".join(f"{path}\0" for path in paths),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    ignored = set(done.stdout.split("\0"))
    patterns = Patterns(lines)
    assert {path: patterns.covers(path) for path in paths} == {path: path in ignored for path in paths}


class TestGitignore:
    @pytest.fixture(autouse=True)
    def _repository(self, write):
        write(".git/HEAD")
        write(".git/info/exclude", "private.py\n")
        write(".gitignore", "out/\n/top.py\n*_pb2.py\n")
        write("pkg/.gitignore", "!keep_pb2.py\nscratch.py\n")
        for name in ("a.py", "top.py", "private.py", "x_pb2.py", "out/a.py"):
            write(name)
        for name in ("a.py", "top.py", "keep_pb2.py", "x_pb2.py", "scratch.py", "out/a.py", "sub/scratch.py"):
            write(f"pkg/{name}")

    def test_every_file_on_the_way_counts_and_the_nearest_wins(self):
        assert found() == ["a.py", "pkg/a.py", "pkg/keep_pb2.py", "pkg/top.py"]

    def test_a_walk_that_starts_below_knows_what_is_above(self):
        assert found("pkg") == ["pkg/a.py", "pkg/keep_pb2.py", "pkg/top.py"]

    def test_it_can_be_switched_off(self):
        assert {"top.py", "out/a.py", "private.py", "pkg/sub/scratch.py"} <= set(found(respect_gitignore=False))

    def test_what_is_named_is_checked_unless_exclusion_is_forced(self):
        named = ["top.py", "pkg/sub/scratch.py", "out/a.py", "pkg/keep_pb2.py", "a.py"]
        assert found(*named) == named
        assert found("out") == ["out/a.py"]
        assert found(*named, force_exclude=True) == ["pkg/keep_pb2.py", "a.py"]
        assert found(*named, force_exclude=True, respect_gitignore=False) == named

    def test_a_repository_within_is_on_its_own(self, write):
        write("pkg/.git")
        assert "pkg/x_pb2.py" in found()
        assert "pkg/scratch.py" not in found()

    def test_outside_of_a_repository_only_what_is_below_counts(self, write, tmp_path):
        (tmp_path / ".git" / "HEAD").unlink()
        (tmp_path / ".git" / "info" / "exclude").unlink()
        (tmp_path / ".git" / "info").rmdir()
        (tmp_path / ".git").rmdir()
        assert "pkg/x_pb2.py" in found("pkg")
        assert "pkg/scratch.py" not in found("pkg")
        assert "pkg/x_pb2.py" not in found()


class TestExclude:
    def test_replaces_the_default_and_the_extension_adds(self, write):
        for name in ("a.py", "build/a.py", "gen/a.py", "tests/deep/a.py"):
            write(name)
        assert found() == ["a.py", "gen/a.py", "tests/deep/a.py"]
        assert found(exclude=("gen",)) == ["a.py", "build/a.py", "tests/deep/a.py"]
        assert found(extend_exclude=("gen", "tests/*")) == ["a.py"]
        assert found(extend_exclude=("!build", "gen")) == ["a.py", "build/a.py", "tests/deep/a.py"]

    def test_is_relative_to_the_file_that_says_so(self, write):
        write("p/nnx-lint.toml", "extend-exclude = ['/gen']")
        for name in ("p/gen/a.py", "p/q/gen/a.py", "gen/a.py"):
            write(name)
        assert found() == ["gen/a.py", "p/q/gen/a.py"]
        assert found("p/gen") == ["p/gen/a.py"]
        assert found("p/gen/a.py") == ["p/gen/a.py"]
        assert found("p/gen/a.py", "gen/a.py", force_exclude=True) == ["gen/a.py"]
        assert found("p/gen", "gen", force_exclude=True) == ["gen/a.py"]

    def test_notebooks_are_found(self, write):
        for name in ("a.ipynb", "b.py", ".ipynb_checkpoints/a.ipynb"):
            write(name)
        assert found() == ["a.ipynb", "b.py"]
        assert found(extend_exclude=("*.ipynb",)) == ["b.py"]
