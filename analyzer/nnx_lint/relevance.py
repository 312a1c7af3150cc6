"""Which files can concern NNX at all: those that name it, and those that import a file of the project that does."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module, Project

MARKS = ("nnx", "flax")


def concerns_nnx(project: Project, module: Module, seen: set[int] | None = None) -> bool:
    """Whether the text of a module, or of a project module that it imports, mentions NNX."""
    known = project.relevant.get(id(module))
    if known is not None:
        return known
    if any(mark in module.source.text for mark in MARKS):
        project.relevant[id(module)] = True
        return True
    seen = set() if seen is None else seen
    if id(module) in seen:
        return False
    seen.add(id(module))
    answer = any(concerns_nnx(project, item, seen) for item in imported(project, module))
    if answer or len(seen) == 1:
        project.relevant[id(module)] = answer
    return answer


def imported(project: Project, module: Module) -> list[Module]:
    """The modules of the project that a module imports at its top level."""
    tree = module.source.tree
    found: list[Module] = []
    for node in tree.body if tree is not None else ():
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = module.resolve_relative(node.level, node.module)
            if base is not None:
                names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        for name in names:
            target = project.find(name, module)
            if target is not None and target is not module:
                found.append(target)
    return found
