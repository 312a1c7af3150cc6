"""Environment variables give the modes that a process starts with."""

import os
import subprocess
import sys

import pytest

PROGRAM = "import nnxkit as nnx; print(nnx.set_graph_mode.current_value(), nnx.set_graph_updates.current_value())"


def run(**variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("variables", "printed"),
    [({}, "True True"), ({"NNX_GRAPH_MODE": "False"}, "False True"), ({"NNX_GRAPH_UPDATES": "0"}, "True False")],
)
def test_modes(variables: dict[str, str], printed: str) -> None:
    assert run(**variables).stdout.strip() == printed


def test_another_word_is_an_error() -> None:
    assert "ValueError: the environment variable NNX_GRAPH_MODE is 'maybe'" in run(NNX_GRAPH_MODE="maybe").stderr
