"""What the README shows of the linter is what it prints."""

import os
import re
import subprocess
import sys

import pytest

from repository import ROOT

SHOWN = re.findall(r"```console\n\$ (nnx-lint [^\n]*)\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_readme_shows_the_linter_at_work():
    assert len(SHOWN) >= 2


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_readme_shows_what_the_linter_prints(command, output):
    ran = subprocess.run(
        [sys.executable, "-m", "nnx_lint", *command.split()[1:]],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == output
    assert ran.stderr == ""
