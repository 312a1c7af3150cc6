"""Import statements: what a name means, whatever it is called.

Library modules become :class:`~nnx_lint.model.values.Ext` values with canonical names (``jax.numpy``, ``nnx``);
modules of the project are executed and their names taken from them. Re-exports, star imports, aliases and relative
imports follow from that.
"""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from nnx_lint.model import configs, events
from nnx_lint.model.classes import library_class
from nnx_lint.model.containers import Seq
from nnx_lint.model.deferred import Deferred, settled
from nnx_lint.model.heap import touch
from nnx_lint.model.tables.jax_gone import GONE
from nnx_lint.model.tables.public_names import NAMES
from nnx_lint.model.unions import options
from nnx_lint.model.values import (
    NONE,
    UNKNOWN,
    VERSION,
    ClassVal,
    Const,
    Ext,
    ModuleVal,
    Value,
)
from nnx_rules import api, transforms

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter
    from nnx_lint.model.modules import Module

LIBRARIES = frozenset(
    {
        "jax",
        "jaxlib",
        "numpy",
        "optax",
        "functools",
        "typing",
        "typing_extensions",
        "beartype",
        "collections",
        "dataclasses",
        "math",
        "abc",
    }
    | {
        "copy",
        "itertools",
        "operator",
        "contextlib",
        "enum",
        "jaxtyping",
        "chex",
        "einops",
        "orbax",
        "builtins",
    }
)
"""Top-level packages that are never part of a project."""

PROVIDING = frozenset({"flax", *(name.partition(".")[0] for name in api.PROVIDERS)})
"""Top-level packages in which the libraries lie that provide NNX."""


def canonical(name: str, module: Module | None = None) -> str:
    """The canonical form of a dotted library name; notes in ``module`` which library provides its NNX."""
    found, provider = _canonical(name)
    if module is not None:
        if provider is not None and module.provider is None:
            touch(module)
            module.provider = provider
        if name.startswith("unittest.mock"):
            touch(module)
            module.mocks = True
    return found


@functools.cache
def _canonical(name: str) -> tuple[str, str | None]:
    """The canonical form of a name, and the library that provides it if that is one that provides NNX."""
    for provider in api.PROVIDERS:
        if name == provider or name.startswith(provider + "."):
            parts = name[len(provider) + 1 :].split(".") if name != provider else []
            return _nnx(["nnx", *parts]), provider.partition(".")[0]
    if name.startswith("nnx."):
        return _nnx(name.split(".")), None
    return transforms.ALIASES.get(name, name), None


def _nnx(parts: list[str]) -> str:
    # `nnx.variablelib.Param` is `nnx.Param`; `nnx.metrics.Average` and `nnx.initializers.zeros` are names of their own.
    whole = len(parts) == 3 and parts[1] in api.PACKAGES and parts[2] in api.MODULES
    while len(parts) > 2 and not whole and parts[1] in api.SUBMODULES - api.NAMESPACES and parts[2] not in api.FORMER:
        del parts[1 : 3 if parts[1] in api.PACKAGES and len(parts) > 3 else 2]
    name = ".".join(parts)
    return api.TOP_LEVEL_ALIASES.get(name, transforms.ALIASES.get(name, name))


ABSENT = frozenset({"jax.numpy.newaxis", "numpy.newaxis"})
"""Other names of ``None``."""

TYPING = ("beartype.typing", "typing_extensions")
"""Modules that have the names of ``typing``."""


def library_value(name: str, module: Module | None = None) -> Value:
    """The value of a library name."""
    name = canonical(name, module)
    for package in TYPING:
        if name.startswith(package):
            name = "typing" + name.removeprefix(package)
    if name.startswith("nnx."):
        cls = library_class(name)
        if cls is not None:
            return ClassVal(cls)
    if name in ABSENT:
        return NONE
    return VERSION if name in VERSIONS else Ext(name)


def library_member(interp: Interpreter, frame: Frame, node: ast.AST, package: str, name: str) -> Value:
    """The value of a name of a library's module, which a program reads there or imports."""
    full = f"{package}.{name}"
    if package == "nnx" or full in GONE or (package in NAMES and name not in NAMES[package]):
        interp.publish(events.LibraryName(frame, node, full, name))
    return configs.flag(interp, frame, name, node) if package == configs.FLAGS else library_value(full, frame.module)


VERSIONS = frozenset({"flax.__version__", "jax.__version__", "jax.__version_info__"})


def execute(interp: Interpreter, frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    """Bind the names of an import statement."""
    if any(name.partition(".")[0] in PROVIDING for name in _imported(node)):
        interp.publish(events.Imported(frame, node))
    for gone in filter(None, map(_gone, _imported(node))):
        interp.publish(events.LibraryName(frame, node, gone, gone.rstrip(".").rpartition(".")[2]))
    if isinstance(node, ast.ImportFrom):
        _import_from(interp, frame, node)
    else:
        for alias in node.names:
            _import(interp, frame, alias)


def _gone(name: str) -> str | None:
    """The first module on the way to one of a library that some release lacks, as the table has it."""
    if not name.startswith("jax."):
        return None
    parts = name.split(".")
    above = (".".join(parts[:length]) for length in range(2, len(parts) + 1))
    return next((found for each in above for found in (each, f"{each}.") if found in GONE), None)


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.ImportFrom):
        return [node.module] if node.module and not node.level else []
    return [alias.name for alias in node.names]


def _import(interp: Interpreter, frame: Frame, alias: ast.alias) -> None:
    if alias.asname is not None:
        frame.bind(alias.asname, module_value(interp, frame.module, alias.name))
        return
    top = alias.name.partition(".")[0]
    held = module_value(interp, frame.module, alias.name)
    package = interp.project.find(top, frame.module) if isinstance(held, ModuleVal) else None
    frame.bind(top, library_value(top, frame.module) if package is None else ModuleVal(package))


def is_library(interp: Interpreter, importer: Module, name: str) -> bool:
    """Whether a dotted name belongs to a library rather than to the project."""
    top = name.partition(".")[0]
    if top in LIBRARIES or top in PROVIDING:
        return True
    module = interp.project.find(name, importer)
    return module is None or module.namespace


def module_value(interp: Interpreter, importer: Module, name: str) -> Value:
    """The module of this dotted name; one of the project is executed when something of it is asked for."""
    module = None if is_library(interp, importer, name) else interp.project.find(name, importer)
    return library_value(name, importer) if module is None else ModuleVal(module)


def relative_value(interp: Interpreter, importer: Module, level: int, name: str) -> Value:
    """The module that a relative name means in a file of the project."""
    module = interp.project.relative(level, name or None, importer)
    return UNKNOWN if module is None else ModuleVal(module)


def below_package(interp: Interpreter, importer: Module, package: str, level: int, name: str) -> Value:
    """The module that a relative name means in a package that is named, too."""
    parts = package.split(".")
    parents = parts[: len(parts) - level + 1]
    return module_value(interp, importer, ".".join([*parents, name])) if parents else UNKNOWN


def module_attribute(interp: Interpreter, module: Module, name: str) -> Value:
    """The value of ``module.name``: a global name, or a module of the package that somebody imports somewhere."""
    module.env.note(name, interp.heap)
    held = module.env.names.get(name)
    if held is not None and not (type(held) is Deferred and held.asking):  # `from . import name` asks for the module
        return settled(held)
    submodule = interp.project.submodule(module, name)
    return UNKNOWN if submodule is None else ModuleVal(submodule)


def _import_from(interp: Interpreter, frame: Frame, node: ast.ImportFrom) -> None:
    origin = _origin(interp, frame.module, node)
    # What several arms bind is joined after them, which takes the values.
    deferring = origin is not None and frame.env is frame.module.env and not frame.branches
    for alias in node.names:
        name = alias.asname or alias.name
        if alias.name == "*":
            _star(interp, frame, node, origin)
        elif deferring:
            frame.bind(name, Deferred(_asked, frame.module, node, alias.name))
        else:
            frame.bind(name, _member(interp, frame, node, origin, alias.name, name))


def _asked(importer: Module, node: ast.ImportFrom, attribute: str) -> Value | None:
    """What ``from origin import attribute`` has bound at the top of a module."""
    interp = importer.body
    # The module is looked for again: the one of before may have been forgotten.
    origin = _origin(interp, importer, node) if interp is not None else None
    if interp is None or origin is None:
        return UNKNOWN
    value = _value_in(interp, importer, node, origin, attribute)
    if value is UNKNOWN and not origin.complete:
        interp.project.knotted = True
        return None
    return value


def _origin(interp: Interpreter, importer: Module, node: ast.ImportFrom) -> Module | None:
    """The module of the project that a ``from`` statement names."""
    if node.level:
        return interp.project.relative(node.level, node.module, importer)
    name = node.module or ""
    if name.partition(".")[0] in LIBRARIES | PROVIDING:
        return None
    return interp.project.find(name, importer)


def _member(
    interp: Interpreter, frame: Frame, node: ast.ImportFrom, origin: Module | None, attribute: str, name: str
) -> Value:
    """What ``from origin import attribute as name`` binds."""
    if origin is None:
        if node.level:
            return UNKNOWN
        package = canonical(node.module or "", frame.module)
        return library_member(interp, frame, node, package if package == "nnx" else str(node.module), attribute)
    value = _value_in(interp, frame.module, node, origin, attribute)
    if value is UNKNOWN and not origin.complete:
        interp.project.knotted = True
        origin.awaited.append((attribute, frame.env, name))
    return value


def _value_in(interp: Interpreter, importer: Module, node: ast.ImportFrom, origin: Module, attribute: str) -> Value:
    """What a name of a module of the project means to a module that imports it from there."""
    interp.load(origin)
    value = module_attribute(interp, origin, attribute)
    if value is UNKNOWN and origin.namespace and not node.level:
        return library_value(f"{node.module}.{attribute}", importer)
    _adopt_provider(importer, origin, value)
    return value


def settle(module: Module) -> None:
    """Bind what modules in an import cycle took from this one before it was there, as imports for annotations do."""
    for attribute, env, name in module.awaited:
        if env.names.get(name) is UNKNOWN:
            env.names[name] = module.env.names.get(attribute, UNKNOWN)
    module.awaited.clear()


def _adopt_provider(importer: Module, module: Module, value: Value) -> None:
    # A project may route `nnx` through one module of its own.
    if importer.provider is None and isinstance(value, (Ext, ClassVal)):
        importer.provider = module.provider


def _star(interp: Interpreter, frame: Frame, node: ast.ImportFrom, origin: Module | None) -> None:
    if origin is None:
        if not node.level and canonical(node.module or "", frame.module) == "nnx":
            frame.env.names.update((name, library_value(f"nnx.{name}")) for name in NNX_NAMES)
        return
    interp.load(origin)
    if not origin.complete:
        interp.project.knotted = True
    for name in public_names(origin):
        value = module_attribute(interp, origin, name)
        frame.bind(name, value)
        _adopt_provider(frame.module, origin, value)


NNX_NAMES = tuple(
    dict.fromkeys(
        name.removeprefix("nnx.")
        for table in (
            api.CLASSES,
            api.VARIABLES,
            api.TOP_LEVEL_ALIASES,
            api.FILTER_FUNCTIONS,
            api.FILTER_CLASSES,
            api.FILTER_MAPPINGS,
            transforms.TRANSFORMS,
        )
        for name in table
        if name.startswith("nnx.") and name.count(".") == 1
    )
)
"""What a star import of NNX binds, as far as it matters."""


def public_names(module: Module) -> list[str]:
    """The names that a star import takes: those in ``__all__``, and all public ones where it is not known entirely."""
    listed = module.env.names.get("__all__")
    public = [name for name in module.env.names if not name.startswith("_")]
    if not isinstance(listed, Seq):
        return public
    items = [option for item in listed.items for option in options(item)]
    names = [item.value for item in items if isinstance(item, Const) and isinstance(item.value, str)]
    return names if listed.exact and len(names) == len(items) else list(dict.fromkeys([*names, *public]))
