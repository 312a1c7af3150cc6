"""The static side starts on the standard library alone.

`nnx-lint` runs where jax is not installed, and jax takes most of a second to import. So the rules and the analyzer
may load nothing but the standard library and themselves. Asked of a real interpreter, in a subprocess: what it has
loaded beyond what a bare one loads.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

STATIC_SIDE = frozenset({"nnx_rules", "nnx_lint"})
REPORT = "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"


def loaded_after(program: str, arguments: Sequence[str] = ()) -> frozenset[str]:
    """Top-level names in `sys.modules` of a fresh interpreter, after the program ended, normally or by `sys.exit`."""
    wrapped = f"try:\n    exec({program!r})\nexcept SystemExit:\n    pass\nprint()\n{REPORT}"
    run = subprocess.run(
        [sys.executable, "-c", wrapped, *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return frozenset(json.loads(run.stdout.splitlines()[-1]))


def foreign(program: str, arguments: Sequence[str] = ()) -> frozenset[str]:
    """What a program loads that is neither the standard library nor the static side itself."""
    # An environment's own start-up files may load more than a bare interpreter does: that is not the program's doing.
    return loaded_after(program, arguments) - loaded_after("pass") - sys.stdlib_module_names - STATIC_SIDE


IMPORT_EVERYTHING = """
import importlib, pkgutil
package = importlib.import_module({name!r})
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not module.name.endswith(".__main__"):
        importlib.import_module(module.name)
"""


@pytest.mark.parametrize("name", sorted(STATIC_SIDE))
def test_every_module_of_the_static_side_needs_only_the_standard_library(name: str) -> None:
    assert foreign(IMPORT_EVERYTHING.format(name=name)) == frozenset()


def test_linting_a_file_loads_only_the_standard_library(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text(
        "from flax import nnx\n\n\nclass Net(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n"
        "        self.layers = [nnx.Linear(2, 2, rngs=rngs)]\n",
        encoding="utf-8",
    )
    program = "import sys; from nnx_lint.__main__ import main; sys.exit(main())"

    assert foreign(program, [str(source), "--no-cache"]) == frozenset()


@pytest.mark.parametrize("planted", ["numpy", "jax", "nnxkit", "flax", "mypy", "pygls"])
def test_a_planted_import_is_noticed(planted: str, tmp_path: Path) -> None:
    """The check itself: a stand-in of that name is enough, so this costs no import of the real one."""
    (tmp_path / f"{planted}.py").touch()

    assert foreign(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import nnx_rules, {planted}") == {planted}
