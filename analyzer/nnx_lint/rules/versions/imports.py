"""Where NNX is imported from: where it was at first (NNX908), or flax in code that moves to nnxkit (NNX914).

The names stay what they are: ``nnx`` is bound to nnxkit, and what else is imported from flax stays an import from flax.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.events import Imported
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.program import is_tried, parameters_in
from nnx_lint.syntax.binding import is_name, names_in, occurrences
from nnx_lint.syntax.walk import walk
from nnx_rules import versions
from nnx_rules.rules import versions as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

FLAX = "flax.nnx"
EXPERIMENTAL = "flax.experimental"


NESTED = "flax.nnx.nnx"
"""Where the modules of NNX were before they moved up by one."""


@judges(rules.REMOVED_NAME, Imported)
def import_of_nested(event: Imported, report: Reporter) -> None:
    node, module = event.node, event.frame.module
    meant = [name for name in _imported(node) if f"{name}.".startswith(f"{NESTED}.")]
    _, version = report.runs_on(module)
    if not meant or is_tried(module, node) or (version is not None and version < versions.FLATTENED):
        return
    fix = partial(_renamed, module, node, NESTED, FLAX) if len(meant) == len(_imported(node)) else None
    instead = f"import it from `{FLAX}`, or from the module of that name there"
    report(module, node, fix=fix, name=NESTED, version=versions.spelled(versions.FLATTENED), instead=instead)


def _imported(node: ast.AST) -> list[str]:
    """The full names of what a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


@judges(rules.DEPRECATED_NAME, Imported)
def import_of_experiment(event: Imported, report: Reporter) -> None:
    node, module = event.node, event.frame.module
    found = _imported(node)
    old = f"{EXPERIMENTAL}.nnx"
    meant = [name for name in found if f"{name}.".startswith(f"{old}.")]
    if meant and not is_tried(module, node):
        fix = partial(_renamed, module, node, EXPERIMENTAL, "flax") if meant == found else None
        report(module, node, fix=fix, name=old, version=versions.spelled(versions.SETTLED), successor=FLAX)


def _renamed(module: Module, node: ast.AST, old: str, new: str) -> Fix | None:
    """Import from where the package is now."""
    source = module.source
    start = source.text.find(old, source.span(node).start, source.span(node).end)
    if start < 0:
        return None
    return Fix(f"Import `{FLAX}`", (Edit(Span(start, start + len(old)), new),))


@judges(rules.IMPORT_OF_FLAX, Imported)
def import_of_flax(event: Imported, report: Reporter) -> None:
    node, module = event.node, event.frame.module
    lines = _moved(node)
    if lines is not None:
        fix = None if _lacks(node) else partial(_rewrite, module, node, lines)
        report(module, node, fix=fix, name=FLAX, mend="import nnxkit as nnx" if fix is None else lines[0])
    elif isinstance(node, ast.Import) and (used := _whole(module, node)):
        report(module, node, fix=partial(_by_full_name, module, node, used), name=FLAX, mend="import nnxkit")


def _lacks(node: ast.AST) -> bool:
    """Whether something is imported from a module that nnxkit does not have."""
    name = node.module or "" if isinstance(node, ast.ImportFrom) else ""
    return name.removeprefix(f"{FLAX}.") in versions.NOT_IN_NNXKIT


def _whole(module: Module, node: ast.Import) -> list[ast.Attribute]:
    """The uses of ``flax.nnx`` by its full name, where an import statement binds the package and nothing else does."""
    if len(node.names) != 1 or node.names[0].asname or node.names[0].name not in {"flax", FLAX}:
        return []
    names = occurrences(module.tree, "flax")
    bound = any(not isinstance(each.ctx, ast.Load) for each in names) or "flax" in parameters_in(module.tree)
    found = [
        each
        for each in walk(module.tree)
        if isinstance(each, ast.Attribute) and each.attr == "nnx" and each.value in names
    ]
    return [] if bound else found


def _by_full_name(module: Module, node: ast.Import, used: list[ast.Attribute]) -> Fix | None:
    """Import nnxkit, and write its name in all these places."""
    source = module.source
    span = source.span(node)
    start = source.text.rfind("\n", 0, span.start) + 1
    indent = source.text[start : span.start]
    if indent.strip() or "nnxkit" in names_in(module.tree):
        return None
    names = sum(is_name(each, "flax") for each in walk(module.tree))
    lines = ["import nnxkit"] if names == len(used) else ["import flax", "import nnxkit"]
    edits = [Edit(span, f"\n{indent}".join(lines)), *(Edit(source.span(each), "nnxkit") for each in used)]
    return Fix("Import nnxkit", tuple(edits))


def _moved(node: ast.AST) -> list[str] | None:
    """The statements in place of an import, that of nnxkit first; ``None`` if it does not import NNX from flax."""
    if isinstance(node, ast.ImportFrom):
        name = node.module or ""
        if name == FLAX or name.startswith(FLAX + "."):
            return [f"from nnxkit{name.removeprefix(FLAX)} import {_listed(node.names)}"]
        if name != "flax":
            return None
        ours = [alias for alias in node.names if alias.name == "nnx"]
        rest = [alias for alias in node.names if alias.name != "nnx"]
        found = [f"import nnxkit as {alias.asname or 'nnx'}" for alias in ours]
        return found + ([f"from flax import {_listed(rest)}"] if rest else []) if found else None
    if isinstance(node, ast.Import):
        ours = [alias for alias in node.names if alias.name == FLAX and alias.asname]
        rest = [alias for alias in node.names if alias not in ours]
        if not ours or any(alias.name.startswith(FLAX) for alias in rest):
            return None
        found = [f"import nnxkit as {alias.asname}" for alias in ours]
        return found + ([f"import {_listed(rest)}"] if rest else [])
    return None


def _listed(names: list[ast.alias]) -> str:
    return ", ".join(f"{alias.name} as {alias.asname}" if alias.asname else alias.name for alias in names)


def _rewrite(module: Module, node: ast.AST, lines: list[str]) -> Fix | None:
    source = module.source
    span = source.span(node)
    start = source.text.rfind("\n", 0, span.start) + 1
    indent = source.text[start : span.start]
    if "#" in source.segment(node) or (indent.strip() and len(lines) > 1):
        return None
    return Fix("Import nnxkit", (Edit(span, f"\n{indent}".join(lines)),))
