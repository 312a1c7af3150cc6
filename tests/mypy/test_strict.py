"""Under the strict options of mypy, what the plugin says of types makes no error that was not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mypy_runs import Mypy

PROGRAM = """\
from flax import nnx

def loss(model, x):
    return x

def train(model: nnx.Linear, x: float) -> None:
    nnx.grad(loss)(model, x)
    nnx.cached_partial(nnx.jit(loss), model)(x)
    loss(model, x)
"""


def test_transforms_of_functions_without_annotations_have_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(PROGRAM)
    (line,) = Mypy(tmp_path / "base").fresh("--disallow-untyped-calls", "model.py")
    assert line.startswith('model.py:9:5: error: Call to untyped function "loss" in typed context')
