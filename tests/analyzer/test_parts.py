"""Runs over a part of a program, as by pre-commit: what the rest of it would show is not known."""

import pytest

from nnx_lint.cli import main

MIXIN = """\
from flax import nnx


class Mixin:
    def build(self, rngs):
        self.layers = [nnx.Linear(1, 1, rngs=rngs)]  # nnx: ignore[data-in-static-attribute]
        self.width = 3  # nnx: ignore[lost-update]
"""
NET = """\
from flax import nnx

from part.mixin import Mixin


class Net(Mixin, nnx.Module):
    def __init__(self, rngs):
        self.build(rngs)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    package = tmp_path / "part"
    package.mkdir()
    for name, text in (("__init__", ""), ("mixin", MIXIN), ("net", NET)):
        (package / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    return package


@pytest.mark.parametrize("paths", [["part"], ["part/__init__.py", "part/mixin.py", "part/net.py"]])
def test_in_the_whole_program_a_comment_that_silences_nothing_is_found(folder, paths, capsys):
    assert main(["check", "--isolated", "--no-cache", "--output-format", "concise", *paths]) == 1

    found = capsys.readouterr().out
    assert "part/mixin.py:7:" in found
    assert found.count("unused-suppression") == 1


@pytest.mark.parametrize("paths", [["part/mixin.py"], ["part/mixin.py", "part/__init__.py"]])
def test_in_a_part_of_it_a_comment_may_silence_what_the_rest_would_show(folder, paths, capsys):
    assert main(["check", "--isolated", "--no-cache", *paths]) == 0, capsys.readouterr().out


def test_a_file_alone_is_the_whole_program(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text("x = 1  # nnx: ignore[lost-update]\n")

    assert main(["check", "--isolated", "--no-cache", "program.py"]) == 1
    assert "unused-suppression" in capsys.readouterr().out
