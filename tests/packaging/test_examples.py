"""The examples do what the demo shows: the good one trains and lints clean, each bad one is found out."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.slow
def test_the_model_learns() -> None:
    command = [sys.executable, EXAMPLES / "train_mlp.py"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout

    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", output)]
    (accuracy,) = re.findall(r"accuracy on \d+ new points: ([\d.]+)%", output)
    assert losses[-1] < losses[0] / 10
    assert float(accuracy) > 95


def test_the_program_in_the_readme_runs() -> None:
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert programs

    for program in programs:
        subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_the_good_example_lints_clean() -> None:
    assert findings(EXAMPLES / "train_mlp.py") == []


def test_every_file_of_mistakes_belongs_to_a_family() -> None:
    assert {path.name for path in (EXAMPLES / "mistakes").glob("*.py")} == set(FAMILIES)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_mistakes_are_found_and_are_of_the_family(name: str) -> None:
    codes = findings(EXAMPLES / "mistakes" / name)

    assert len(codes) >= 3
    assert {code[:4] for code in codes} == {FAMILIES[name]}
