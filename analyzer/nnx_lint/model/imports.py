"""Import statements: what a name means, whatever it is called.

Library modules become :class:`~nnx_lint.model.values.Ext` values with canonical names (``jax.numpy``, ``nnx``);
modules of the project are executed and their names taken from them. Re-exports, star imports, aliases and relative
imports follow from that.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import library_class
from nnx_lint.model.values import UNKNOWN, VERSION, ClassVal, Ext, ModuleVal, Value
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
        "object",
    }
)
"""Top-level packages that are never part of a project."""


def canonical(name: str, module: Module | None = None) -> str:
    """The canonical form of a dotted library name; notes in ``module`` which library provides its NNX."""
    for provider in api.PROVIDERS:
        if name == provider or name.startswith(provider + "."):
            if module is not None and module.provider is None:
                module.provider = provider.split(".")[0]
            return _nnx(["nnx", *name[len(provider) + 1 :].split(".")] if name != provider else ["nnx"])
    if name.startswith("nnx."):
        return _nnx(name.split("."))
    if module is not None and name.startswith("unittest.mock"):
        module.mocks = True
    return transforms.ALIASES.get(name, name)


def _nnx(parts: list[str]) -> str:
    # `nnx.variablelib.Param` is `nnx.Param`; `nnx.metrics.Average` and `nnx.initializers.zeros` are names of their own.
    while len(parts) > 2 and parts[1] in api.SUBMODULES and parts[1] not in api.NAMESPACES:
        del parts[1 : 3 if parts[1] in api.PACKAGES and len(parts) > 3 else 2]
    name = ".".join(parts)
    return api.TOP_LEVEL_ALIASES.get(name, transforms.ALIASES.get(name, name))


def library_value(name: str, module: Module | None = None) -> Value:
    """The value of a library name."""
    name = canonical(name, module)
    if name.startswith("nnx."):
        cls = library_class(name)
        if cls is not None:
            return ClassVal(cls)
    return VERSION if name in VERSIONS else Ext(name)


VERSIONS = frozenset({"flax.__version__", "jax.__version__", "jax.__version_info__"})


def execute(interp: Interpreter, frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    """Bind the names of an import statement."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            _import(interp, frame, alias)
    else:
        _import_from(interp, frame, node)


def _import(interp: Interpreter, frame: Frame, alias: ast.alias) -> None:
    if alias.asname is not None:
        frame.env.names[alias.asname] = module_value(interp, frame.module, alias.name)
        return
    top = alias.name.partition(".")[0]
    if is_library(interp, frame.module, top):
        canonical(alias.name, frame.module)
        frame.env.names[top] = library_value(top, frame.module)
        return
    module_value(interp, frame.module, alias.name)
    frame.env.names[top] = module_value(interp, frame.module, top)


def is_library(interp: Interpreter, importer: Module, name: str) -> bool:
    """Whether a dotted name belongs to a library rather than to the project."""
    top = name.partition(".")[0]
    if top in LIBRARIES or any(name == item or name.startswith(item + ".") for item in api.PROVIDERS):
        return True
    if top == "flax":
        return True
    return interp.project.find(top, importer) is None and not interp.project.is_package(top, importer)


def module_value(interp: Interpreter, importer: Module, name: str) -> Value:
    """The module of this dotted name: executed if it is of the project."""
    if is_library(interp, importer, name):
        return library_value(name, importer)
    module = interp.project.find(name, importer)
    if module is None:
        return Ext(name) if interp.project.is_package(name, importer) else UNKNOWN
    interp.load(module)
    return ModuleVal(module)


def _import_from(interp: Interpreter, frame: Frame, node: ast.ImportFrom) -> None:
    name = frame.module.resolve_relative(node.level, node.module)
    for alias in node.names:
        if alias.name == "*":
            if name is not None:
                _star(interp, frame, name, relative=node.level > 0)
            continue
        value = member(interp, frame.module, name, alias.name, relative=node.level > 0) if name is not None else UNKNOWN
        frame.env.names[alias.asname or alias.name] = value


def member(interp: Interpreter, importer: Module, name: str, attribute: str, *, relative: bool = False) -> Value:
    """What ``from name import attribute`` binds."""
    if not relative and is_library(interp, importer, name):
        return library_value(f"{name}.{attribute}", importer)
    module = interp.project.find(name, importer)
    if module is not None:
        interp.load(module)
        if attribute in module.env.names:
            _adopt_provider(importer, module, module.env.names[attribute])
            return module.env.names[attribute]
    submodule = interp.project.find(f"{name}.{attribute}", importer)
    if submodule is not None:
        interp.load(submodule)
        return ModuleVal(submodule)
    return UNKNOWN


def _adopt_provider(importer: Module, module: Module, value: Value) -> None:
    # A project may route `nnx` through one module of its own.
    if importer.provider is None and isinstance(value, (Ext, ClassVal)) and module.provider is not None:
        importer.provider = module.provider


def _star(interp: Interpreter, frame: Frame, name: str, *, relative: bool) -> None:
    if not relative and is_library(interp, frame.module, name):
        if canonical(name, frame.module) == "nnx":
            for key in (
                *api.CLASSES,
                *api.VARIABLES,
                *api.TOP_LEVEL_ALIASES,
                *api.FILTER_FUNCTIONS,
                *api.FILTER_CLASSES,
                *api.FILTER_MAPPINGS,
                *transforms.TRANSFORMS,
            ):
                if key.startswith("nnx.") and key.count(".") == 1:
                    frame.env.names[key[4:]] = library_value(key)
        return
    module = interp.project.find(name, frame.module)
    if module is None:
        return
    interp.load(module)
    public = module.env.names.get("__all__")
    from nnx_lint.model.values import Const, Seq

    if isinstance(public, Seq):
        wanted = {item.value for item in public.items if isinstance(item, Const)}
    else:
        wanted = {key for key in module.env.names if not key.startswith("_")}
    for key, value in module.env.names.items():
        if key in wanted:
            frame.env.names[key] = value
            _adopt_provider(frame.module, module, value)
