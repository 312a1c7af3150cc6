"""The extension in a real VS Code: what it starts, everything the server knows, and what a person sees."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from repository import ROOT
from workbench import HERE, Report, Workbench, names_in

Make = Callable[..., Workbench]

BARE_PYTHON = getattr(sys, "_base_executable", sys.executable)
"""The interpreter that the environment of these tests was made with: nothing is installed for it."""

SHELL = "#!/bin/sh\n"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the workspace that the suites are about."""
    return Path(shutil.copytree(HERE / "workspace", tmp_path / "workspace" / "example"))


def program(path: Path, text: str) -> None:
    """Write a shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SHELL + text, encoding="utf-8")
    path.chmod(0o755)


def claims(path: Path, minor: int = 12, server: bool = False) -> str:
    """A script's answer to the question what Python it is."""
    version = "0.1.0" if server else None
    said = {"executable": str(path), "version": [3, minor, 1], "nnxkit": version, "server": server}
    return f"if [ \"$1\" = -c ]; then echo '{json.dumps(said)}'; exit; fi\n"


CONTROL = "negative control"
"""A test that every suite has and that fails: if it did not, the others would mean nothing."""


def verify(report: Report, suite: str, subtests: pytest.Subtests) -> None:
    """Every test of the suite ran and passed, and a wrong one would have been noticed."""
    for name in names_in(suite):
        with subtests.test(name):
            report.verify(name)
    with subtests.test(CONTROL), pytest.raises(AssertionError, match="this is to fail"):
        report.verify(CONTROL)
    assert report.failed == {CONTROL}
    assert report.exit == 1


# -- everything that the server knows


def test_features(workbench: Make, example: Path, subtests: pytest.Subtests) -> None:
    report = workbench(example, {"nnx.server.interpreter": BARE_PYTHON}).run_suite("features")

    verify(report, "features", subtests)


# -- which server is started


def test_start(workbench: Make, example: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    folder, pythons = example, tmp_path / "pythons"
    other = Path(shutil.copytree(folder, folder.parent / "other"))
    (other / "nnx-lint.toml").write_text('ignore = ["NNX101"]\n', encoding="utf-8")
    workspace = folder.parent / "both.code-workspace"
    workspace.write_text(json.dumps({"folders": [{"path": str(folder)}, {"path": str(other)}]}), encoding="utf-8")

    # The one that PATH leads to is that of these tests, where nnxkit is installed; it notes its process.
    noting = pythons / "path" / "python3"
    note = f'echo "$$" > {pythons}/process\n'
    program(noting, f'{claims(noting, server=True)}{note}exec {sys.executable} "$@"\n')
    bare = pythons / "bare"
    pip = f'if [ "$2" = pip ]; then echo "$@" > {pythons}/installed.txt; exit; fi\n'
    program(bare, f'{claims(bare)}{pip}exec {BARE_PYTHON} "$@"\n')
    program(pythons / "old", claims(pythons / "old", minor=9))
    program(pythons / "no-python-at-all", "echo hello\n")
    environment = {
        "NNX_PYTHONS": str(pythons),
        "NNX_INSTALLED": str(noting),
        "PATH": f"{noting.parent}{os.pathsep}{os.environ['PATH']}",
    }
    verify(workbench(workspace, {}, environment).run_suite("start"), "start", subtests)


def test_untrusted(workbench: Make, example: Path, subtests: pytest.Subtests) -> None:
    folder = example
    program(folder / ".venv" / "bin" / "python", f'touch {folder}/was-run\nexec {BARE_PYTHON} "$@"\n')
    program(folder / "bin" / "python3", f'touch {folder}/was-run\nexec {BARE_PYTHON} "$@"\n')
    settings = {"security.workspace.trust.enabled": True, "security.workspace.trust.startupPrompt": "never"}
    path = os.pathsep.join([str(folder / "bin"), str(Path(BARE_PYTHON).parent), os.environ["PATH"]])
    verify(workbench(folder, settings, {"PATH": path}).run_suite("untrusted"), "untrusted", subtests)


# -- what a person sees


@pytest.mark.parametrize(
    ("scenario", "strategy"), [("file", "useBundled"), ("notebook", "fromEnvironment")], ids=["file", "notebook"]
)
def test_scenario(workbench: Make, example: Path, scenario: str, strategy: str) -> None:
    settings = {"nnx.server.interpreter": BARE_PYTHON, "nnx.server.importStrategy": strategy}
    shutil.copy(ROOT / "examples" / "char_gpt.py", example)
    report = workbench(example, settings).run_scenario(scenario)

    assert not report.failed, report.results
    assert report.exit == 0, report.log
