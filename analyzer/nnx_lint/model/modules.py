"""Modules of the project and how their names are found.

A *project* is the files that were asked for, plus those they import, as far as these lie in the same source trees. A
module knows its dotted name, its file, and its global names once it has been executed abstractly.

Invariants: a file is read once; a module outside the source trees of the files is a library and never read; executing
a module never imports anything.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nnx_lint.source import SourceError, SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nnx_lint.model.callables import FuncVal
    from nnx_lint.model.values import (
        Value,
    )


class Env:
    """A scope: names to values, and the scope around it. Class scopes are skipped by lookups from functions inside.

    ``func`` is the function whose scope it is.
    """

    __slots__ = ("func", "globals", "kind", "names", "nonlocals", "parent")

    def __init__(self, kind: str, parent: Env | None = None, func: FuncVal | None = None) -> None:
        self.kind = kind
        self.parent = parent
        self.func = func
        self.names: dict[str, Value] = {}
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()

    def lookup(self, name: str) -> tuple[Env, Value] | None:
        """The value of a name and the scope that holds it."""
        env: Env | None = self
        first = True
        while env is not None:
            if (first or env.kind != "class") and name in env.names:
                return env, env.names[name]
            first = False
            env = env.parent
        return None


class Module:
    """A module of the project."""

    def __init__(self, name: str, source: SourceFile, package: bool) -> None:
        self.name = name
        self.source = source
        self.package = package
        self.env = Env("module")
        self.state = "new"
        self.provider: str | None = None
        self.mocks = False

    def resolve_relative(self, level: int, target: str | None) -> str | None:
        """The absolute name of ``from ..target import``; ``None`` if it leaves the tree."""
        if level == 0:
            return target
        parts = self.name.split(".")
        drop = level - 1 if self.package else level
        if drop > len(parts):
            return None
        base = parts[: len(parts) - drop] if drop else parts
        return ".".join([*base, target] if target else base) or None


def module_name(path: str) -> tuple[str, str]:
    """The dotted name of a file and the source root it is relative to: the nearest folder above that is no package."""
    path = os.path.abspath(path)
    folder, filename = os.path.split(path)
    stem = filename.removesuffix(".py").removesuffix(".pyi")
    parts = [] if stem == "__init__" else [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
        if not name:
            break
    return ".".join(parts) or stem, folder


INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders in which other distributions lie beside the checked one; those are libraries."""


class Project:
    """All modules that an analysis can see."""

    def __init__(self, files: Iterable[SourceFile]) -> None:
        self._by_name: dict[tuple[str, str], Module | None] = {}
        self.checked: list[tuple[SourceFile, Module]] = []
        self._roots: dict[str, None] = {}
        for source in files:
            name, root = module_name(source.path)
            self._roots.setdefault(root)
            module = Module(name, source, os.path.basename(source.path) == "__init__.py")
            self._by_name.setdefault((root, name), module)
            self.checked.append((source, module))
        self._packages = {module.name.partition(".")[0] for _, module in self.checked}
        self._root_of = {id(module): module_name(source.path)[1] for source, module in self.checked}

    def root_of(self, module: Module) -> str:
        return self._root_of.get(id(module), "")

    def find(self, name: str, importer: Module) -> Module | None:
        """The project's module of this dotted name, as ``importer`` sees it; ``None`` for libraries."""
        own = self.root_of(importer)
        for root in (own, *(root for root in self._roots if root != own)):
            module = self._load(root, name)
            if module is not None:
                return module
        return None

    def _load(self, root: str, name: str) -> Module | None:
        if os.path.basename(root) in INSTALLED and name.partition(".")[0] not in self._packages:
            return None
        key = (root, name)
        if key not in self._by_name:
            self._by_name[key] = self._read(root, name)
        return self._by_name[key]

    def _read(self, root: str, name: str) -> Module | None:
        base = os.path.join(root, *name.split("."))
        for path, package in ((base + ".py", False), (os.path.join(base, "__init__.py"), True)):
            if os.path.isfile(path):
                try:
                    source = SourceFile.read(path)
                except (SourceError, OSError):
                    return None
                module = Module(name, source, package)
                self._root_of[id(module)] = root
                return module
        return None

    def is_package(self, name: str, importer: Module) -> bool:
        """Whether a folder of this dotted name exists (a namespace package)."""
        base = os.path.join(self.root_of(importer), *name.split("."))
        return os.path.isdir(base)
