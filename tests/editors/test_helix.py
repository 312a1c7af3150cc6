"""Helix, configured as docs/editors.md says, in a terminal of its own: found, hovered, mended, saved."""

import os
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from repository import ROOT
from terminal import Terminal

WORKSPACE = ROOT / "tests" / "vscode" / "workspace"
PAGE = ROOT / "docs" / "editors.md"
BAD = "[Block(32, rngs=rngs), Block(32, rngs=rngs)]"
HELIX = shutil.which("hx") or shutil.which("helix")
ENTER, SPACE = "\r", " "


def configuration() -> str:
    """What docs/editors.md says to write."""
    return PAGE.read_text(encoding="utf-8").partition("## Helix")[2].partition("```toml\n")[2].partition("```")[0]


def test_its_configuration_is_well_formed() -> None:
    table = tomllib.loads(configuration())
    (language,) = table["language"]

    assert set(table["language-server"]) < set(language["language-servers"])


@pytest.mark.skipif(HELIX is None, reason="not tested in Helix, which is not here (Debian 13: apt-get install hx)")
def test_helix(tmp_path: Path, subtests: pytest.Subtests) -> None:
    assert HELIX is not None
    folder = Path(shutil.copytree(WORKSPACE, tmp_path / "workspace"))
    file = folder / "model.py"
    before = file.read_text()
    ((line, column),) = ((row, text.index(BAD)) for row, text in enumerate(before.splitlines(), 1) if BAD in text)
    written = tmp_path / "config" / "helix" / "languages.toml"
    written.parent.mkdir(parents=True)
    written.write_text(configuration(), encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(written.parents[1]),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TERM": "xterm-256color",
    }
    helix = Terminal([HELIX, f"{file}:{line}:{column + 1}"], folder, environment)
    try:
        with subtests.test("the finding is shown in its line"):
            assert helix.sees("(NNX101)"), helix.screen
            assert "`Net.blocks` is static" in helix.screen
        with subtests.test("hovering explains the attribute"):
            helix.type(f"Fb{SPACE}k")  # back to the attribute
            assert helix.sees("static attribute Net.blocks"), helix.screen
            helix.type("f[")
        with subtests.test("the fix is offered, applied and saved"):
            helix.type(f"{SPACE}a")
            assert helix.sees("Wrap the value in"), helix.screen
            helix.type(ENTER)  # it stands first
            assert helix.sees("[+]"), helix.screen
            helix.type(f":wq{ENTER}")
            assert helix.ends() == 0
            assert file.read_text() == before.replace(BAD, f"nnx.List({BAD})")
    finally:
        helix.close()
