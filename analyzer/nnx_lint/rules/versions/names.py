"""Names of NNX that are gone, not there yet, or deprecated (NNX901, NNX902, NNX908).

Code for several versions asks before it uses a name. A use in a ``try`` or in what handles its failure, under a
condition that asks for a version or for the name, or in a file that asks for the name by ``hasattr`` or ``getattr``, is
for another version.
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.events import LibraryName
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.alternatives import left_before
from nnx_lint.rules.edits import replace
from nnx_lint.rules.program import (
    ancestors,
    attribute_reads,
    block_of,
    calls_in,
    canonical_of,
    enclosing,
    is_tried,
    keyword_node,
    reads_of,
)
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.versions.values import make_type
from nnx_lint.syntax.walk import walk
from nnx_rules import versions
from nnx_rules.rules import versions as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

ASKING = ("hasattr", "getattr")
"""Functions that ask the library for a name."""


def is_meant_for_another(event: LibraryName) -> bool:
    """Whether a name is used only where some version, or another library, is known to have it."""
    module, node = event.frame.module, event.node
    if not module.mentions(f'{event.written}"', f"{event.written}'"):  # a word is found in no time, a pattern is not
        return _is_guarded(module, node)
    named = re.compile(rf"[\"'](?:[\w.]+\.)?{re.escape(event.written)}[\"']")
    of = re.escape(module.source.segment(node.value)) if isinstance(node, ast.Attribute) else r"\w+"
    asking = re.compile(rf"attr\(\s*{of}\s*,|__dict__|\b(?:dir|vars)\(\s*{of}|patch|import_module")
    return (module.mentions(named) and module.mentions(asking)) or _is_guarded(module, node)


def is_evaluated(event: LibraryName) -> bool:
    """Whether Python looks for a name where it is written: type checkers do so in annotations that are strings."""
    module, node = event.frame.module, event.node
    if isinstance(node, ast.Attribute) and not module.source.segment(node).endswith(event.written):
        return False  # a string that is an annotation
    inner = node
    in_annotation = False
    for item in ancestors(module, node):
        if isinstance(item, ast.If) and "TYPE_CHECKING" in module.source.segment(item.test):
            return False
        annotations = (getattr(item, "annotation", None), getattr(item, "returns", None))
        in_annotation = in_annotation or any(inner is each for each in annotations)
        if in_annotation and isinstance(inner, ast.AnnAssign) and isinstance(item, ast.FunctionDef):
            return False  # the annotations of local names are not evaluated
        inner = item
    return not (in_annotation and module.mentions("from __future__ import annotations"))


def _is_guarded(module: Module, node: ast.AST, depth: int = 2) -> bool:
    """Whether the program comes by a place for some version only; what it does in a function, by all uses of that."""
    if is_tried(module, node):
        return True
    for item in (node, *ancestors(module, node)):
        if isinstance(item, ast.ExceptHandler):
            return True
        before = left_before(block_of(module, item), item) if isinstance(item, ast.stmt) else []
        if any(_lets_by(module, left) for left in before):
            return True
        if isinstance(item, (ast.If, ast.IfExp, ast.While)) and _asks_for_version(module, item.test):
            return True
        if isinstance(item, (ast.If, ast.IfExp)) and _is_for_what_lacks(item, node):
            return True
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and depth and not item.name.startswith("__"):
            uses = [*reads_of(module.tree, item.name), *attribute_reads(module.tree, item.name)]
            if uses and all(_is_guarded(module, use, depth - 1) for use in uses):
                return True
    return False


def _asks_for_version(module: Module, test: ast.expr) -> bool:
    """Whether a condition chooses code by the version, by a name for that, or by what the library has."""
    if "version" in module.source.segment(test):
        return True
    asked = (call.args[0] for call in calls_in(test) if getattr(call.func, "id", "") in ASKING and call.args)
    if any((canonical_of(module.env, node) or "").partition(".")[0] in {"flax", "jax", "nnx"} for node in asked):
        return True
    names = [node.id for node in walk(test) if isinstance(node, ast.Name)]
    names += [node.attr for node in walk(test) if isinstance(node, ast.Attribute)]
    return any(module.mentions(re.compile(rf"\b{name}\b[^=\n]*=[^=\n][^\n]*version")) for name in names)


def _lets_by(module: Module, left: ast.If) -> bool:
    """Whether a condition that leaves a block lets some version by only, or what lacks an attribute."""
    return _asks_for_version(module, left.test) or _is_asked(left.test)


def _is_asked(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and getattr(test.func, "id", "") == "hasattr"


def _is_for_what_lacks(branching: ast.If | ast.IfExp, node: ast.AST) -> bool:
    """Whether code runs only where something lacks an attribute: objects of an earlier version may lack it."""
    test, lacking = branching.test, branching.orelse
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, lacking = test.operand, branching.body
    branch = lacking if isinstance(lacking, list) else [lacking]
    return _is_asked(test) and any(part is node for item in branch for part in walk(item))


def place_of(event: LibraryName) -> ast.AST:
    """The name itself, among those that a statement imports."""
    if isinstance(event.node, ast.ImportFrom):
        return next((alias for alias in event.node.names if alias.name == event.written), event.node)
    return event.node


def _was_removed(event: LibraryName) -> bool:
    return event.name in versions.REMOVED


@judges(rules.REMOVED_NAME, LibraryName, when=_was_removed)
def removed_name(event: LibraryName, report: Reporter) -> None:
    module = event.frame.module
    removed = versions.REMOVED[event.name]
    library, version = report.runs_on(module)
    gone = not removed.nnxkit if library == "nnxkit" else version is None or version >= removed.since
    if not gone or is_meant_for_another(event):
        return
    slots: dict[str, Any] = {"name": event.name, "version": versions.spelled(removed.since), "instead": removed.instead}
    fix = partial(_succeed, event, removed.successor) if removed.successor else None
    report(module, place_of(event), fix=fix, **slots)


def _succeed(event: LibraryName, successor: str) -> Fix | None:
    """Put a name that is used in the same way in the place of one that is gone."""
    module, place = event.frame.module, place_of(event)
    if isinstance(place, ast.alias):
        own = successor.startswith("nnx.")
        return _rename(module, place, event.written, successor.removeprefix("nnx.")) if own else None
    name = spelled(successor, module, event.frame.env)
    return Fix(f"Use `{name}`", replace(module.source, place, name)) if name else None


def _was_added(event: LibraryName) -> bool:
    return event.name in versions.ADDED


@judges(rules.NAME_NEWER_THAN_TARGET, LibraryName, when=_was_added)
def name_newer_than_target(event: LibraryName, report: Reporter) -> None:
    module = event.frame.module
    since = versions.ADDED[event.name]
    _, version = report.runs_on(module)
    if version is None or version >= since or is_meant_for_another(event):
        return
    first, gone = versions.EARLIER.get(event.name, (since, since))
    if first <= version < gone:
        return
    from nnx_lint.target import Target

    target = str(Target("flax", version, "")).replace("-", " ")
    report(module, place_of(event), name=event.name, version=versions.spelled(since), target=target)


def _is_deprecated(event: LibraryName) -> bool:
    return event.name in versions.DEPRECATED


@judges(rules.DEPRECATED_NAME, LibraryName, when=_is_deprecated)
def deprecated_name(event: LibraryName, report: Reporter) -> None:
    module = event.frame.module
    deprecated = versions.DEPRECATED[event.name]
    _, version = report.runs_on(module)
    if (version is not None and version < deprecated.since) or is_meant_for_another(event):
        return
    place, successor = place_of(event), deprecated.successor
    fix = partial(_rename, module, place, event.written, successor)
    call = enclosing(module, place, ast.Call)
    kind = keyword_node(call, "type") if call is not None and call.func is place else None
    if call is not None and kind is not None:  # a Variable with that type as metadata would be another thing
        fix = partial(make_type, module, call, kind)
    slots: dict[str, Any] = {"name": event.name, "version": versions.spelled(deprecated.since)}
    report(module, place, fix=fix, successor=f"nnx.{successor}", **slots)


def _rename(module: Module, place: ast.AST, old: str, new: str) -> Fix | None:
    span = module.source.span(place)
    if isinstance(place, ast.alias):
        text = f"{new} as {place.asname or old}"
        return Fix(f"Import `{new}`", (Edit(span, text),))
    if not isinstance(place, ast.Attribute) or not module.source.segment(place).endswith(old):
        return None
    return Fix(f"Use `{new}`", (Edit(Span(span.end - len(old), span.end), new),))
