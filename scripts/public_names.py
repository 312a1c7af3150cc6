"""Writes `nnx_lint/model/tables/public_names.py`: the names that namespaces of jax and optax have, and the parameters
of their functions.

The libraries that are installed beside this interpreter are imported and asked; names that they still give away with a
warning count too, and so do their modules, imported or not.

    python scripts/public_names.py
"""

import importlib
import importlib.metadata
import inspect
import json
import pkgutil
import textwrap
from pathlib import Path
from types import ModuleType

TARGET = Path(__file__).resolve().parent.parent / "analyzer/nnx_lint/model/tables/public_names.py"

NAMESPACES = (
    *("jax", "jax.lax", "jax.nn", "jax.numpy", "jax.numpy.linalg", "jax.random", "jax.scipy.special"),
    *("jax.tree", "jax.tree_util", "jax.nn.initializers", "nnx.initializers"),
    *("nnx.metrics", "optax", "optax.losses"),
)

CALLED = ("jax.lax", "jax.nn", "jax.nn.initializers", "jax.numpy", "jax.random", "optax")
"""Whose functions' parameters are looked at."""

HEAD = '''"""What jax and optax have. Made by `scripts/public_names.py` from what is installed; not edited."""

from __future__ import annotations

MADE_FROM = {made_from}
"""The versions of the libraries."""

_ROWS: tuple[tuple[str, str], ...] = (
'''
MIDDLE = ''')

NAMES: dict[str, frozenset[str]] = {namespace: frozenset(names.split()) for namespace, names in _ROWS}
"""The public names of a namespace, modules included."""

_PARAMETERS: tuple[tuple[str, str], ...] = (
'''
TAIL = ''')

PARAMETERS: dict[str, str] = {
    f"{namespace}.{name}": names
    for namespace, rows in _PARAMETERS
    for name, _, names in (row.partition(":") for row in rows.split(", "))
}
"""The parameters of a function, one after the other; those that take any keyword are left out."""
'''


def versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("flax", "jax", "optax")}


def module_of(namespace: str) -> ModuleType:
    head, _, name = namespace.partition(".")
    if head == "nnx":
        found: ModuleType = getattr(importlib.import_module("flax.nnx"), name)
        return found
    return importlib.import_module(namespace)


def names_of(namespace: str) -> list[str]:
    module = module_of(namespace)
    found = {*dir(module), *getattr(module, "_deprecations", ()), *getattr(module, "__all__", ())}
    found.update(item.name for item in pkgutil.iter_modules(getattr(module, "__path__", ())))
    return sorted(name for name in found if not name.startswith("_"))


def parameters_of(namespace: str) -> list[str]:
    module = module_of(namespace)
    rows = list[str]()
    for name in names_of(namespace):
        function = getattr(module, name, None)
        if inspect.isclass(function) or not callable(function):
            continue
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            continue
        if not any(item.kind is item.VAR_KEYWORD for item in parameters):
            rows.append(f"{name}:{' '.join(item.name for item in parameters)}")
    return rows


def module_text() -> str:
    names = [_row(namespace, " ".join(names_of(namespace))) for namespace in NAMESPACES]
    parameters = [_row(namespace, ", ".join(parameters_of(namespace))) for namespace in CALLED]
    return "".join([HEAD.format(made_from=json.dumps(versions())), *names, MIDDLE, *parameters, TAIL])


def _row(namespace: str, text: str) -> str:
    wrapped = textwrap.wrap(text, 104, break_long_words=False, break_on_hyphens=False)
    rows = [f'            "{line} "\n' for line in wrapped[:-1]] + [f'            "{wrapped[-1]}"\n']
    return "".join([f'    (\n        "{namespace}",\n        (\n', *rows, "        ),\n    ),\n"])


if __name__ == "__main__":
    TARGET.write_text(module_text(), encoding="utf-8")
