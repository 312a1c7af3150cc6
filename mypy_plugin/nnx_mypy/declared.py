"""The stubs that the analyzer has of other packages: learned from mypy module by module, and kept for the next run.

Mypy knows the types of a package when it has come to a module that imports it, and loads what is in its cache without
coming there. So the stubs of the last run hold until mypy says otherwise; they lie in the folder of its cache.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from mypy.nodes import MypyFile

from nnx_mypy import kept
from nnx_mypy.foreign import Project, with_packages

FILE: Final = "nnx_declared.json"


class Declared:
    """The stubs.

    Args:
        folder: that of mypy's cache, where they are kept.

    Attributes:
        stubs: the text of each module's, by its name.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._texts = self._read()
        self.stubs: Mapping[str, str] = _complete(self._texts)

    def learn(self, tree: MypyFile, modules: Mapping[str, MypyFile], files: Collection[str]) -> bool:
        """Learn what a module imports from packages whose files are none of these; whether that was news."""
        project = Project(modules, files)
        if next(project.imported_by(tree), None) is None:
            return False
        from nnx_mypy.declarations import used_by

        used = used_by(tree, project)
        if all(self._texts.get(name, "") == text for name, text in used.items()):
            return False
        known = {**self._read(), **self._texts}  # other workers of a parallel run learn, too
        self._texts = {name: text for name, text in {**known, **used}.items() if text}
        self.stubs = _complete(self._texts)
        kept.write(self._folder, FILE, self._texts)
        return True

    def _read(self) -> dict[str, str]:
        known = kept.read(self._folder, FILE)
        return {str(name): str(text) for name, text in known.items()} if isinstance(known, dict) else {}


def _complete(stubs: Mapping[str, str]) -> dict[str, str]:
    """The stubs that say something, and empty ones of the packages that these lie in."""
    said = [name for name, text in stubs.items() if text]
    return {above: stubs.get(above, "") for name in said for above in with_packages(name)}
