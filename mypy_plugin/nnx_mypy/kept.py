"""What the plugin keeps for its next run: JSON files in the folder of mypy's cache.

Invariants: a file is replaced as a whole, since other workers of a parallel run write it, too; nothing is raised
because of the disk, for what is not there is found out anew.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress


def read(folder: str, name: str) -> object:
    """What was kept under a name; ``None`` if nothing was, or something that cannot be read."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            found: object = json.load(file)
    except (OSError, ValueError):
        return None
    return found


def write(folder: str, name: str, value: object) -> None:
    """Keep a value of JSON under a name, unless mypy keeps nothing."""
    if folder == os.devnull:
        return
    with suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".new")
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(temporary, os.path.join(folder, name))
