"""Which files can concern NNX at all: those that name it, and those that import a file of the project that does.

Invariants: no file is parsed to find out; import statements are read off the text, and one too many only costs time.
Every file is looked at once, whatever the imports look like.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.modules import Module, Project

MARKS = ("nnx", "flax")

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<dots>\.*)(?P<base>[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n;#]+)"
    r"|import[ \t]+(?P<modules>[^\n;#]+))",
    re.MULTILINE,
)
_NAME = re.compile(r"([\w.]+)(?:\s+as\s+\w+)?")


def relevant_modules(project: Project) -> set[int]:
    """The ids of the modules that mention NNX, or import one that does, directly or not."""
    importers: dict[int, list[Module]] = {}
    marked: list[Module] = []
    todo = [module for _, module in project.checked]
    seen = {id(module) for module in todo}
    while todo:
        module = todo.pop()
        if any(mark in module.source.text for mark in MARKS):
            marked.append(module)
            continue
        for target in imported(project, module):
            importers.setdefault(id(target), []).append(module)
            if id(target) not in seen:
                seen.add(id(target))
                todo.append(target)
    relevant = {id(module) for module in marked}
    while marked:
        for importer in importers.get(id(marked.pop()), ()):
            if id(importer) not in relevant:
                relevant.add(id(importer))
                marked.append(importer)
    return relevant


def imported(project: Project, module: Module) -> Iterator[Module]:
    """The modules of the project that a module imports."""
    for name in imported_names(module):
        target = project.find(name, module)
        if target is not None and target is not module:
            yield target


def imported_names(module: Module) -> set[str]:
    """The dotted names that the import statements of a module may mean."""
    names: set[str] = set()
    for statement in _IMPORT.finditer(module.source.text):
        if statement["modules"] is not None:
            names.update(_NAME.findall(statement["modules"]))
            continue
        base = module.resolve_relative(len(statement["dots"]), statement["base"] or None)
        if base is not None:
            names.add(base)
            names.update(f"{base}.{name}" for name in _NAME.findall(statement["names"]))
    return names
