"""The directions between the packages (pyproject.toml, `importlinter`): kept, and violations are caught."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repository import ROOT

SOURCES = ("runtime", "analyzer", "lsp", "mypy_plugin")


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on a checkout: its configuration, and its sources before any installed ones."""
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--config", root / "pyproject.toml", "--no-cache"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(str(root / source) for source in SOURCES)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_contracts_are_kept() -> None:
    run = lint_imports(ROOT)

    assert run.returncode == 0, run.stdout + run.stderr
    assert " 0 broken" in run.stdout


@pytest.mark.parametrize(
    ("package", "statement"),
    [
        ("runtime/nnx_rules", "import nnx_lint"),
        ("runtime/nnx_rules", "import nnxkit"),
        ("runtime/nnx_rules", "import numpy"),
        ("analyzer/nnx_lint", "import jax.numpy"),
        ("analyzer/nnx_lint", "import nnxkit"),
        ("analyzer/nnx_lint", "from flax import nnx"),
        ("runtime/nnxkit", "import nnx_lint"),
        ("runtime/nnxkit", "from flax import nnx"),
        ("lsp/nnx_lsp", "import jax"),
        ("lsp/nnx_lsp", "import nnx_mypy"),
        ("mypy_plugin/nnx_mypy", "import numpy"),
    ],
)
def test_a_planted_import_breaks_a_contract(package: str, statement: str, tmp_path: Path) -> None:
    for source in SOURCES:
        shutil.copytree(ROOT / source, tmp_path / source, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / package / "planted.py").write_text(statement + "\n", encoding="utf-8")

    run = lint_imports(tmp_path)

    assert run.returncode == 1, run.stdout + run.stderr
    assert f"{Path(package).name}.planted -> {statement.split()[1].partition('.')[0]}" in run.stdout
