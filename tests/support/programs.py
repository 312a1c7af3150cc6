"""Programs from rule pages, run in this process.

A program may have files beside it, which it imports; they are read from memory and gone with it.

Each runs as a module of its own and in a thread of its own: graph modes, meshes, trace levels and defaults of Variables
belong to a thread, so a program that changes them for good changes nothing for the next one. jax settings and names of
Variable types belong to the process; they are put back. Line numbers are those of the page, so a traceback shows it.

What stays: `register_data_type` has no inverse. A program registers types that it defines itself, which die with it.
"""

import ast
import importlib
import importlib.abc
import importlib.util
import itertools
import linecache
import sys
import threading
import types
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path

from rule_pages import FLAX, NNXKIT

NEEDS = {NNXKIT: ("jax", "optax"), FLAX: ("flax", "jax", "optax")}
_VARIABLE_MODULES = {NNXKIT: "nnxkit._variable_names", FLAX: "flax.nnx.variablelib"}
_numbers = itertools.count(1)

DEPTH = 1_000
"""How deep calls of a program may nest: as Python has it. The linter, in whose process it runs, allows itself more."""


def missing_for(library: str) -> str | None:
    """The first package that programs on a library need and that is not installed."""
    return next((name for name in NEEDS[library] if importlib.util.find_spec(name) is None), None)


@dataclass(frozen=True)
class Outcome:
    """How a program ended: with an error or at its end, and what it warned of."""

    error: BaseException | None
    warnings: tuple[warnings.WarningMessage, ...]


def run(text: str, library: str, path: Path, line: int = 1, beside: Mapping[str, str] | None = None) -> Outcome:
    """Run a program that stands in a file from a line on, with other files beside it (`{"parts.py": text}`)."""
    name = f"program_{next(_numbers)}_of_{path.stem.replace('-', '_')}"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    code = compile(ast.increment_lineno(ast.parse(text, str(path)), line - 1), str(path), "exec", dont_inherit=True)
    errors: list[BaseException] = []

    def execute() -> None:
        try:
            exec(code, vars(module))
        except BaseException as error:
            errors.append(error)

    deepest = sys.getrecursionlimit()
    sys.modules[name] = module
    linecache.checkcache(str(path))
    try:
        with _process_settings(library), _importable(beside or {}), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            thread = threading.Thread(target=execute, name=name)
            sys.setrecursionlimit(min(deepest, DEPTH))
            thread.start()
            thread.join()
    finally:
        sys.setrecursionlimit(deepest)
        del sys.modules[name]
    return Outcome(errors[0] if errors else None, tuple(warned))


class _Files(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds modules among files that are in memory."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.packages = {path.removesuffix("/__init__.py").replace("/", ".") for path in files if "/__init__" in path}
        self.texts = {
            path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): text for path, text in files.items()
        }

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname not in self.texts:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=self.is_package(fullname))

    def get_source(self, fullname: str) -> str:
        return self.texts[fullname]

    def is_package(self, fullname: str) -> bool:
        return fullname in self.packages


@contextmanager
def _importable(files: Mapping[str, str]) -> Iterator[None]:
    """Files that a program may import while this lasts."""
    if not files:
        yield
        return
    finder = _Files(files)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in finder.texts:
            sys.modules.pop(name, None)


@contextmanager
def _process_settings(library: str) -> Iterator[None]:
    """Put back what belongs to the process."""
    import jax

    settings = dict(jax.config.values)
    names = importlib.import_module(_VARIABLE_MODULES[library]).VariableTypeCache
    registered = dict(names)
    try:
        yield
    finally:
        names.clear()
        names.update(registered)
        for key, value in settings.items():
            if jax.config.values[key] != value:
                jax.config.update(key, value)


def asserts(text: str) -> bool:
    """Whether a program has an assert statement."""
    return any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(text)))
