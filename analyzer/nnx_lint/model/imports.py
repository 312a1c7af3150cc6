"""Import statements: what a name means, whatever it is called.

Library modules become :class:`~nnx_lint.model.values.Ext` values with canonical names (``jax.numpy``, ``nnx``);
modules of the project are executed and their names taken from them. Re-exports, star imports, aliases and relative
imports follow from that.
"""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from nnx_lint.model import events
from nnx_lint.model.classes import library_class
from nnx_lint.model.frames import Frame
from nnx_lint.model.heap import touch
from nnx_lint.model.values import UNKNOWN, VERSION, ClassVal, Const, Ext, ModuleVal, Seq, Value, options
from nnx_rules import api, transforms

if TYPE_CHECKING:
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
    while len(parts) > 2 and parts[1] in api.SUBMODULES and parts[1] not in api.NAMESPACES:
        del parts[1 : 3 if parts[1] in api.PACKAGES and len(parts) > 3 else 2]
    name = ".".join(parts)
    return api.TOP_LEVEL_ALIASES.get(name, transforms.ALIASES.get(name, name))


def library_value(name: str, module: Module | None = None) -> Value:
    """The value of a library name."""
    name = canonical(name, module)
    if name.startswith("typing_extensions."):
        name = name.replace("typing_extensions", "typing", 1)
    if name.startswith("nnx."):
        cls = library_class(name)
        if cls is not None:
            return ClassVal(cls)
    return VERSION if name in VERSIONS else Ext(name)


VERSIONS = frozenset({"flax.__version__", "jax.__version__", "jax.__version_info__"})


def execute(interp: Interpreter, frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    """Bind the names of an import statement."""
    if any(name.partition(".")[0] in PROVIDING for name in _imported(node)):
        interp.publish(events.Imported(frame, node))
    if frame.for_checkers and frame.env is frame.module.env and _names_project(interp, frame.module, node):
        frame.module.postponed.append(node)
        for alias in node.names:
            frame.bind(alias.asname or alias.name.partition(".")[0], UNKNOWN)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            _import(interp, frame, alias)
    else:
        _import_from(interp, frame, node)


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.ImportFrom):
        return [node.module] if node.module and not node.level else []
    return [alias.name for alias in node.names]


def _names_project(interp: Interpreter, importer: Module, node: ast.Import | ast.ImportFrom) -> bool:
    """Whether an import statement names modules of the project."""
    if isinstance(node, ast.ImportFrom):
        return _origin(interp, importer, node) is not None
    return any(not is_library(interp, importer, alias.name) for alias in node.names)


def import_postponed(interp: Interpreter, module: Module) -> None:
    """Execute the imports that are for type checkers only, when all else has been executed.

    They come before the rest of the module, and often lead to modules that import this one.
    """
    frame = Frame(module, module.env)
    for node in module.postponed:
        execute(interp, frame, node)


def _import(interp: Interpreter, frame: Frame, alias: ast.alias) -> None:
    if alias.asname is not None:
        frame.bind(alias.asname, module_value(interp, frame.module, alias.name))
        return
    top = alias.name.partition(".")[0]
    held = module_value(interp, frame.module, alias.name)
    package = interp.project.find(top, frame.module) if isinstance(held, ModuleVal) else None
    if package is None:
        frame.bind(top, library_value(top, frame.module))
    else:
        interp.load(package)
        frame.bind(top, ModuleVal(package))


def is_library(interp: Interpreter, importer: Module, name: str) -> bool:
    """Whether a dotted name belongs to a library rather than to the project."""
    top = name.partition(".")[0]
    if top in LIBRARIES or top in PROVIDING:
        return True
    module = interp.project.find(name, importer)
    return module is None or module.namespace


def module_value(interp: Interpreter, importer: Module, name: str) -> Value:
    """The module of this dotted name: executed if it is of the project."""
    module = None if is_library(interp, importer, name) else interp.project.find(name, importer)
    if module is None:
        return library_value(name, importer)
    interp.load(module)
    return ModuleVal(module)


def relative_value(interp: Interpreter, importer: Module, level: int, name: str) -> Value:
    """The module that a relative name means in a file of the project."""
    module = interp.project.relative(level, name or None, importer)
    if module is None:
        return UNKNOWN
    interp.load(module)
    return ModuleVal(module)


def below_package(interp: Interpreter, importer: Module, package: str, level: int, name: str) -> Value:
    """The module that a relative name means in a package that is named, too."""
    parts = package.split(".")
    parents = parts[: len(parts) - level + 1]
    return module_value(interp, importer, ".".join([*parents, name])) if parents else UNKNOWN


def module_attribute(interp: Interpreter, module: Module, name: str) -> Value:
    """The value of ``module.name``: a global name, or a module of the package that somebody imports somewhere."""
    value = module.env.names.get(name)
    if value is not None:
        return value
    submodule = interp.project.submodule(module, name)
    if submodule is None:
        return UNKNOWN
    if not submodule.namespace:
        interp.load(submodule)
    return ModuleVal(submodule)


def _import_from(interp: Interpreter, frame: Frame, node: ast.ImportFrom) -> None:
    origin = _origin(interp, frame.module, node)
    for alias in node.names:
        if alias.name == "*":
            _star(interp, frame, node, origin)
        else:
            name = alias.asname or alias.name
            frame.bind(name, _member(interp, frame, node, origin, alias.name, name))


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
        if not node.level and canonical(node.module or "", frame.module) == "nnx":
            interp.publish(events.LibraryName(frame, node, f"nnx.{attribute}", attribute))
        return UNKNOWN if node.level else library_value(f"{node.module}.{attribute}", frame.module)
    interp.load(origin)
    value = module_attribute(interp, origin, attribute)
    if value is UNKNOWN and origin.namespace and not node.level:
        return library_value(f"{node.module}.{attribute}", frame.module)
    if value is UNKNOWN and not origin.complete:
        interp.project.knotted = True
        origin.awaited.append((attribute, frame.env, name))
    _adopt_provider(frame.module, origin, value)
    return value


def settle(module: Module) -> None:
    """Bind what modules in an import cycle took from this one before it was there, as imports for annotations do."""
    for attribute, env, name in module.awaited:
        if env.names.get(name) is UNKNOWN:
            env.names[name] = module.env.names.get(attribute, UNKNOWN)
    module.awaited.clear()


def _adopt_provider(importer: Module, module: Module, value: Value) -> None:
    # A project may route `nnx` through one module of its own.
    if importer.provider is None and isinstance(value, (Ext, ClassVal)) and module.provider is not None:
        touch(importer)
        importer.provider = module.provider


def _star(interp: Interpreter, frame: Frame, node: ast.ImportFrom, origin: Module | None) -> None:
    if origin is None:
        if not node.level and canonical(node.module or "", frame.module) == "nnx":
            frame.env.names.update((name, library_value(f"nnx.{name}")) for name in NNX_NAMES)
        return
    interp.load(origin)
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
