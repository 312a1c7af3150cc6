"""The environment of a tool that is installed: its byte code lies beside it, and is not made anew at every start.

The machine that measures may forbid to write byte code, or what is measured may have been edited just now; then each
start compiles, which nobody who installed a wheel waits for. So a measurement keeps the byte code of what it starts in
a folder of its own, and a first start, which is not measured, fills it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

FORBIDS = "PYTHONDONTWRITEBYTECODE"


def environment(folder: Path | str, parts: Iterable[str] = ()) -> dict[str, str]:
    """The environment for processes to be measured: ``folder`` keeps their byte code, ``parts`` of the project are on
    their path."""
    found = {name: value for name, value in os.environ.items() if name != FORBIDS}
    found["PYTHONPYCACHEPREFIX"] = str(Path(folder, "byte-code"))
    if paths := [str(ROOT / part) for part in parts]:
        found["PYTHONPATH"] = os.pathsep.join(paths)
    return found
