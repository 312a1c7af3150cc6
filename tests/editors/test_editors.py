"""Neovim and Emacs, as they come from a distribution and configured as docs/editors.md says: found, hovered, mended."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from repository import ROOT

HERE = Path(__file__).parent
WORKSPACE = ROOT / "tests" / "vscode" / "workspace"
PAGE = ROOT / "docs" / "editors.md"
BAD = "self.blocks = [Block(32, rngs=rngs), Block(32, rngs=rngs)]"
GOOD = "self.blocks = nnx.List([Block(32, rngs=rngs), Block(32, rngs=rngs)])"

EDITORS: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "nvim": ("neovim", "Before that:\n\n```lua", ("--headless", "--clean", "-n", "-c", f"luafile {HERE}/neovim.lua")),
    "emacs": ("emacs-nox elpa-eglot", "```elisp", ("--batch", "-l", f"{HERE}/emacs.el")),
}
"""By program: the packages of Debian that bring it, what its configuration comes after, and how it runs a script."""


def configuration(program: str) -> str:
    """What docs/editors.md says to write; there are older and newer forms, and Debian has the older editors."""
    _, opening, _ = EDITORS[program]
    return PAGE.read_text(encoding="utf-8").partition(opening)[2].partition("```")[0]


def test_the_configuration_of_zed_is_well_formed() -> None:
    """Zed itself cannot be had."""
    settings = json.loads(
        PAGE.read_text(encoding="utf-8").partition("## Zed")[2].partition("```json\n")[2].partition("```")[0]
    )

    (name,) = settings["lsp"]
    assert settings["lsp"][name]["binary"] == {"path": "nnx-lsp", "arguments": ["--stdio"]}
    assert name in settings["languages"]["Python"]["language_servers"]


@pytest.mark.parametrize("program", EDITORS)
def test_editor(program: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    packages, _, arguments = EDITORS[program]
    if shutil.which(program) is None:
        pytest.skip(f"not tested in {program}, which is not here (Debian: apt-get install {packages})")
    folder = Path(shutil.copytree(WORKSPACE, tmp_path / "workspace"))
    file = folder / "model.py"
    (line,) = (number for number, text in enumerate(file.read_text().splitlines()) if BAD in text)
    written = tmp_path / "configuration"
    written.write_text(configuration(program), encoding="utf-8")
    scripts = str(Path(sys.executable).parent)
    variables = {
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "CONFIGURATION": str(written),
        "FILE": str(file),
        "LINE": str(line),
    }
    run = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    said = re.findall(r"^\{.*\}$", run.stdout, re.MULTILINE)
    assert said, run.stdout + run.stderr
    seen = json.loads(said[-1])
    assert seen.get("problem") is None, seen

    with subtests.test("the finding is shown in its line"):
        (found,) = seen["found"]
        assert found["line"] == line
        assert "`Net.blocks` is static" in found["message"]
    with subtests.test("hovering explains the attribute"):
        assert "static" in seen["hover"]
    with subtests.test("the fix is offered, applied and saved"):
        assert any("nnx.List" in action for action in seen["actions"])
        assert GOOD in file.read_text()
        assert BAD not in file.read_text()
