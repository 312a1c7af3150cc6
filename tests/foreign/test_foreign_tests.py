"""`scripts/foreign_tests.py` without the network: how it rewrites imports, and what it reports."""

from __future__ import annotations

import tomllib
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType

import pytest

from repository import ROOT

DOCUMENT = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def foreign_tests() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts")
        import foreign_tests as module

        return module


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from flax import nnx", "import nnxkit as nnx"),
        ("from flax import nnx as n, struct as s", "from flax import struct as s; import nnxkit as n"),
        ("if x:\n  from flax.nnx.nn import initializers\n", "if x:\n  from nnxkit.nn import initializers\n"),
        ("import flax.nnx as nnx, os", "import nnxkit as nnx, os"),
        ("import flax\nflax.nnx.Param(flax.core)", "import flax, nnxkit\nnnxkit.Param(flax.core)"),
        (
            "from flax import (  # both\n  errors,\n  nnx,\n)\nx = 1",
            "from flax import errors; import nnxkit as nnx\n\n\n\nx = 1",
        ),
        ("'é'; import flax.nnx as n", "'é'; import nnxkit as n"),
        ('"""\n>>> from flax import nnx\n"""', '"""\n>>> import nnxkit as nnx\n"""'),
        ("from flaxen import nnx\nimport flax", "from flaxen import nnx\nimport flax"),
    ],
)
def test_rewritten(foreign_tests: ModuleType, source: str, expected: str) -> None:
    assert foreign_tests.rewritten(source) == expected


def test_problems(foreign_tests: ModuleType) -> None:
    flax = {"a": "passed", "b": "passed", "c": "failure", "d": "passed"}
    ours = {"a": "passed", "b": "failure", "c": "failure"}
    used: set[str] = set()
    assert list(foreign_tests.problems("pkg", flax, ours, {"a": "stale"}, used)) == [
        "pkg: b passes on flax, and on nnxkit: failure",
        "pkg: d passes on flax, and on nnxkit: missing",
    ]
    assert used == set()
    assert list(foreign_tests.problems("pkg", flax, ours, {"[bd]": "reason"}, used)) == []
    assert used == {"[bd]"}
    assert list(foreign_tests.problems("pkg", flax, ours, {"[bd]": "r", "d*": "s"}, used)) == [
        "pkg: d is matched by several patterns: [bd], d*"
    ]


def test_rows(foreign_tests: ModuleType) -> None:
    document = "text\n\n| suite | a | b | c |\n| --- | --- | --- | --- |\n| one-1 | 5 | 5 | 0 |\n\nmore\n"
    document = foreign_tests.with_row(document, "two-2", 7, 2)
    document = foreign_tests.with_row(document, "one-1", 6, 1)
    assert document.splitlines()[4:] == ["| one-1 | 6 | 5 | 1 |", "| two-2 | 7 | 5 | 2 |", "", "more"]


def test_reasons_are_documented(foreign_tests: ModuleType) -> None:
    record = tomllib.loads(foreign_tests.RECORD.read_text(encoding="utf-8"))
    assert set(record) <= {suite.package.name for suite in foreign_tests.SUITES}
    reasons = {reason for patterns in record.values() for reason in patterns.values()}
    assert {reason for reason in reasons if reason not in DOCUMENT} == set()


@pytest.mark.parametrize("works", [True, False])
def test_managed_interpreters_are_found(
    foreign_tests: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    managed = tmp_path / "versions" / "3.99.1" / "bin" / "python3.99"
    managed.parent.mkdir(parents=True)
    managed.write_text(f"#!/bin/sh\nexit {0 if works else 1}\n", encoding="utf-8")
    managed.chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    environment = foreign_tests.Environment(tmp_path, (), ("python3.99",))
    assert environment.interpreter() == (str(managed) if works else None)


def test_packages_know_their_version(foreign_tests: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: made-up\nVersion: 1.5\n", encoding="utf-8")
    suite = foreign_tests.Suite(foreign_tests.Package("made-up", "1.5", "0" * 64), tests=("tests",), path=("src",))
    foreign_tests.give_metadata(suite, tmp_path)
    found = Distribution.discover(context=DistributionFinder.Context(name="made-up", path=[str(tmp_path / "src")]))
    assert [distribution.version for distribution in found] == ["1.5"]


def test_metadata_is_not_given_where_the_installed_package_is_meant(foreign_tests: ModuleType, tmp_path: Path) -> None:
    suite = foreign_tests.Suite(foreign_tests.Package("made-up", "1.5", "0" * 64), tests=("tests",), path=())
    foreign_tests.give_metadata(suite, tmp_path)
    assert list(tmp_path.iterdir()) == []
