"""The stubs that the analyzer has of other packages: learned from mypy module by module, and kept for the next run.

Mypy knows the types of a package when it has come to a module that imports it, and loads what is in its cache without
coming there. So the stubs of the last run hold until mypy says otherwise; they lie in the folder of its cache.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final

from mypy.nodes import MypyFile

from nnx_mypy.declarations import Declarations, with_packages

FILE: Final = "nnx_declared.json"


class Declared:
    """The stubs.

    Args:
        folder: where they are kept, unless that is no folder.

    Attributes:
        stubs: the text of each module's, by its name.
    """

    def __init__(self, folder: str) -> None:
        self._path = None if folder == os.devnull else os.path.join(folder, FILE)
        self._texts = self._read()
        self.stubs: Mapping[str, str] = with_packages(self._texts)

    def learn(self, tree: MypyFile, modules: Mapping[str, MypyFile], files: Collection[str]) -> bool:
        """Learn what a module imports from packages whose files are none of these; whether that was news."""
        used = Declarations(modules, lambda path: os.path.abspath(path) in files).used_by(tree)
        if all(self._texts.get(name, "") == text for name, text in used.items()):
            return False
        known = {**self._read(), **self._texts}  # other workers of a parallel run learn, too
        self._texts = {name: text for name, text in {**known, **used}.items() if text}
        self.stubs = with_packages(self._texts)
        self._write()
        return True

    def _read(self) -> dict[str, str]:
        try:
            with open(self._path or os.devnull, encoding="utf-8") as file:
                known: object = json.load(file)
        except (OSError, ValueError):
            return {}
        return {str(name): str(text) for name, text in known.items()} if isinstance(known, dict) else {}

    def _write(self) -> None:
        """Replace the file as a whole; where that is impossible, the next run learns anew."""
        if self._path is None:
            return
        folder = os.path.dirname(self._path)
        with suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=folder, suffix=".new")
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(self._texts, file)
            os.replace(temporary, self._path)
