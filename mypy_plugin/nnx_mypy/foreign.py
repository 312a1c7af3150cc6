"""Which modules of other packages a module of the project imports.

Most modules import nothing but what the analyzer has tables for, and are done with this.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from mypy.nodes import Import, ImportAll, ImportFrom, MypyFile

KNOWN: Final = frozenset({"flax", "jax", "nnxkit", "numpy", "optax", "typing_extensions"}) | sys.stdlib_module_names
"""Packages whose meaning the analyzer has tables for, or that can hold nothing that matters."""


class Project:
    """What mypy knows, and which files of that belong to the project.

    Args:
        modules: all modules by name.
        files: the absolute paths of the project's files.
    """

    def __init__(self, modules: Mapping[str, MypyFile], files: Collection[str]) -> None:
        self._modules = modules
        self._files = files

    def foreign(self, name: str) -> MypyFile | None:
        """The module of this name, if there is one and another package has it that the analyzer does not know."""
        module = None if name.partition(".")[0] in KNOWN else self._modules.get(name)
        return None if module is None or os.path.abspath(module.path) in self._files else module

    def imported_by(self, tree: MypyFile) -> Iterator[MypyFile]:
        """The foreign modules that a module imports; some of them twice."""
        for name in _imported(tree):
            module = self.foreign(name)
            if module is not None:
                yield module


def _imported(tree: MypyFile) -> Iterator[str]:
    """The names of the modules that a module imports, and some that are none."""
    for statement in tree.imports:
        if isinstance(statement, Import):
            yield from (above for name, _ in statement.ids for above in with_packages(name))
        elif isinstance(statement, ImportFrom | ImportAll) and not statement.relative:
            yield from with_packages(statement.id)
            if isinstance(statement, ImportFrom):
                yield from (f"{statement.id}.{name}" for name, _ in statement.names)


def with_packages(name: str) -> Iterator[str]:
    """The name of a module, and of the packages that it lies in."""
    while name:
        yield name
        name = name.rpartition(".")[0]
