"""The examples do what the demo shows: the good one trains and lints clean, each bad one is found out."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compiling import ordinary
from repository import ROOT

EXAMPLES = ROOT / "examples"
FAMILIES = {
    "layers_in_lists.py": "NNX1",
    "misplaced_tags.py": "NNX1",
    "lost_updates.py": "NNX2",
    "filters.py": "NNX3",
}


def findings(path: Path) -> list[str]:
    """The codes that nnx-lint reports for a file, in the order of the file."""
    command = [sys.executable, "-m", "nnx_lint", "--isolated", "--no-cache", "--output-format", "json", path]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    return [finding["code"] for finding in json.loads(run.stdout)]


PROGRAMS = {
    "train_mlp.py": [(r"accuracy on \d+ new points: ([\d.]+)%", 95, 100)],
    "digits_cnn.py": [(r"accuracy on \d+ new images: ([\d.]+)%", 94, 100)],
    "char_gpt.py": [(r"loss on new text: ([\d.]+)", 0, 2.3)],
    "checkpointing.py": [(r"checkpoints of steps \[\d+, (\d+)\]", 60, 60)],
    "vae.py": [(r"nats for each of \d+ new images: ([\d.]+)", 0, 25)],
    "lora.py": [
        (r"upright ([\d.]+)%, turned", 90, 100),
        (r"upright [\d.]+%, turned ([\d.]+)%", 0, 60),
        (r"accuracy turned ([\d.]+)%", 85, 100),
    ],
    "fsdp.py": [(r"at most [\d.]+ MB \(([\d.]+)%\)", 12, 13), (r"accuracy on \d+ new images: ([\d.]+)%", 90, 100)],
    "scan_layers.py": [(r"accuracy on \d+ new images: ([\d.]+)%", 88, 100)],
}
"""What each program prints, and the range that its figures lie in; a new example has a line here."""


def test_every_example_is_listed() -> None:
    modules = {"digits.py"}  # what several programs import
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PROGRAMS) | modules


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_program_does_what_it_says(name: str) -> None:
    command = [sys.executable, "-W", "error", EXAMPLES / name]
    output = subprocess.run(command, cwd=ROOT, env=ordinary(), check=True, stdout=subprocess.PIPE, text=True).stdout

    for pattern, least, most in PROGRAMS[name]:
        figures = re.findall(pattern, output)
        assert figures, output
        assert least <= float(figures[0]) <= most, output
    assert "False" not in output  # the programs print what they check themselves


def test_the_examples_lint_clean() -> None:
    assert [findings(path) for path in sorted(EXAMPLES.glob("*.py"))] == [[]] * len(list(EXAMPLES.glob("*.py")))


def test_every_file_of_mistakes_belongs_to_a_family() -> None:
    assert {path.name for path in (EXAMPLES / "mistakes").glob("*.py")} == set(FAMILIES)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_mistakes_are_found_and_are_of_the_family(name: str) -> None:
    codes = findings(EXAMPLES / "mistakes" / name)

    assert len(codes) >= 3
    assert {code[:4] for code in codes} == {FAMILIES[name]}
