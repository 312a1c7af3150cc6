"""The types of the runtime are complete: a checker needs to infer nothing of what `import nnxkit` gives."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from repository import ROOT


def test_every_public_name_has_a_known_type(tmp_path: Path) -> None:
    pyright = Path(sys.executable).with_name("pyright")
    command = [pyright, "--pythonpath", sys.executable, "--ignoreexternal", "--outputjson", "--verifytypes", "nnxkit"]
    # Pyright looks for what a package imports beside it, so where that is installed is said, too.
    places = [str(ROOT / "runtime"), sysconfig.get_path("purelib")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    # Elsewhere, because in the repository its configuration hides what an import would find.
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    symbols = json.loads(run.stdout)["typeCompleteness"]["symbols"]
    assert len(symbols) > 1000
    assert [each["name"] for each in symbols if each["isExported"] and not each["isTypeKnown"]] == []
