"""Names that only running the program would tell: what they stand for is unknown, and nothing is said of it."""

from nnx_lint.cli import main

LAZY = """\
import importlib


def __getattr__(name):
    return getattr(importlib.import_module("somewhere"), name)
"""
PROGRAM = """\
import sys
from dataclasses import make_dataclass

sys.path.insert(0, "elsewhere")

from flax import nnx

import hidden
import lazy
from hidden import Hidden
from lazy import Block

Config = make_dataclass("Config", [("width", int), ("extra", list, [])])
Made = make_dataclass("Made", [("weight", nnx.Param)], bases=(nnx.Module,))


class Inner(Block):
    def __init__(self, rngs):
        self.layers = [nnx.Linear(1, 1, rngs=rngs)]


class Outer(Hidden):
    def __init__(self, config, rngs):
        self.layers = [nnx.Linear(1, config.width, rngs=rngs)]
        self.config = config


class Last(Made):
    def __init__(self, rngs):
        self.layers = [nnx.Linear(1, 1, rngs=rngs)]


outer = Outer(Config(3), rngs=nnx.Rngs(0))
print(Inner(nnx.Rngs(0)).whatever, outer.config.depth, Last(nnx.Rngs(1)).weight.other, lazy.Thing.part, hidden.x)
"""


def test_nothing_is_said_of_what_only_running_the_program_would_tell(tmp_path, monkeypatch, capsys):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "hidden.py").write_text("class Hidden:\n    pass\n\n\nx = 1\n")
    (tmp_path / "lazy.py").write_text(LAZY)
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)

    status = main(["check", "--isolated", "--no-cache", "--select", "ALL", "."])

    assert status == 0, capsys.readouterr().out
