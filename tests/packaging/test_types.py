"""The types of the runtime are complete: a checker needs to infer nothing of what `import nnxkit` gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

from repository import ROOT

BRIDGE = "nnxkit.bridge."
"""Its classes derive from classes of flax, whose bases are not known to a type checker."""


def test_every_public_name_has_a_known_type(tmp_path: Path) -> None:
    pyright = Path(sys.executable).with_name("pyright")
    command = [pyright, "--pythonpath", sys.executable, "--ignoreexternal", "--outputjson", "--verifytypes", "nnxkit"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "runtime")}
    # Elsewhere, because in the repository its configuration hides what an import would find.
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    symbols = json.loads(run.stdout)["typeCompleteness"]["symbols"]
    assert len(symbols) > 1000
    unknown = [each["name"] for each in symbols if each["isExported"] and not each["isTypeKnown"]]
    assert [name for name in unknown if not name.startswith(BRIDGE)] == []
