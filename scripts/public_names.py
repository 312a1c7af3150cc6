"""Writes `nnx_lint/model/tables/public_names.py`: the names that namespaces of jax and optax have, and the parameters
of their functions.

The libraries that are installed beside this interpreter are imported and asked; names that they still give away with a
warning count too, and so do their modules, imported or not. What the table has from other releases stays: run it with
each interpreter that has releases of its own.

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

from nnx_lint.model.tables.public_names import MADE_FROM, NAMES, PARAMETERS

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
"""The newest versions of the libraries that were asked."""

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
    """The versions of the libraries that are installed."""
    return {name: importlib.metadata.version(name) for name in MADE_FROM}


def newest() -> dict[str, str]:
    """The newest of these, and of those that the table is made from."""
    return {name: max(version, MADE_FROM[name], key=numbers) for name, version in versions().items()}


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


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
        if inspect.isclass(function) or not callable(function) or name[0].isupper():
            continue  # aliases of types can be called, too
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            continue
        if not any(item.kind is item.VAR_KEYWORD for item in parameters):
            rows.append(f"{name}:{' '.join(item.name for item in parameters)}")
    return rows


def merged_parameters(namespace: str) -> list[str]:
    """The parameters that functions have, and those that they had in releases which were asked before."""
    told = {name: names.split() for name, _, names in (row.partition(":") for row in parameters_of(namespace))}
    before = {name.rpartition(".")[2]: names.split() for name, names in PARAMETERS.items() if _is_of(name, namespace)}
    found = dict[str, list[str]]()
    for name in sorted({*told, *before}):
        if name in told or not hasattr(module_of(namespace), name):  # else it takes any keyword by now
            found[name] = list(dict.fromkeys([*before.get(name, ()), *told.get(name, ())]))
    return [f"{name}:{' '.join(names)}" for name, names in found.items()]


def _is_of(name: str, namespace: str) -> bool:
    return name.rpartition(".")[0] == namespace


def module_text() -> str:
    names = [_row(each, " ".join(sorted({*names_of(each), *NAMES.get(each, ())}))) for each in NAMESPACES]
    parameters = [_row(namespace, ", ".join(merged_parameters(namespace))) for namespace in CALLED]
    return "".join([HEAD.format(made_from=json.dumps(newest())), *names, MIDDLE, *parameters, TAIL])


def _row(namespace: str, text: str) -> str:
    wrapped = textwrap.wrap(text, 104, break_long_words=False, break_on_hyphens=False)
    rows = [f'            "{line} "\n' for line in wrapped[:-1]] + [f'            "{wrapped[-1]}"\n']
    return "".join([f'    (\n        "{namespace}",\n        (\n', *rows, "        ),\n    ),\n"])


if __name__ == "__main__":
    TARGET.write_text(module_text(), encoding="utf-8")
