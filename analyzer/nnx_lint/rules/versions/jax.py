"""Names and arguments of JAX that are gone (NNX915).

A name counts where Python looks for it. It does not in an annotation that nothing evaluates, under ``TYPE_CHECKING``,
and in a file that gives JAX the name itself; and code for several versions asks first, as for names of NNX.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.events import Called, LibraryName
from nnx_lint.model.tables.jax_gone import GONE
from nnx_lint.model.values import ArrayAttr
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import ancestors, canonical_name
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.versions.names import is_evaluated, is_meant_for_another, place_of
from nnx_lint.syntax.walk import walk
from nnx_rules import jax_names, versions
from nnx_rules.rules import versions as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

LOSING = frozenset(name.partition("(")[0] for name in GONE if name.endswith(")"))
"""The functions that have lost an argument."""


def _was_of_jax(event: LibraryName) -> bool:
    return event.name in GONE


@judges(rules.REMOVED_JAX_NAME, LibraryName, when=_was_of_jax)
def removed_jax_name(event: LibraryName, report: Reporter) -> None:
    module = event.frame.module
    if not _is_gone(event.name, module, report) or is_meant_for_another(event) or not is_looked_for(event):
        return
    since = versions.spelled(GONE[event.name])
    fix = partial(_succeed, event, jax_names.SUCCESSORS[event.name]) if event.name in jax_names.SUCCESSORS else None
    instead = jax_names.instead_of(event.name, since)
    report(module, place_of(event), fix=fix, name=event.name.rstrip("."), version=since, instead=instead)


PINNING = ("jax==", "jax<", "jax~=")
"""What stands in a notebook that installs a release of its own."""


def _is_gone(name: str, module: Module, report: Reporter) -> bool:
    version = report.jax_of(module)
    return (version is None or version >= GONE[name]) and not module.mentions(*PINNING)


def is_looked_for(event: LibraryName) -> bool:
    """Whether Python looks for the name when it gets to this place."""
    module, node = event.frame.module, event.node
    if not is_evaluated(event) or module.mentions(f".{event.written} ="):
        return False
    successor = jax_names.SUCCESSORS.get(event.name, "").rpartition(".")[2]
    inner = node
    for item in ancestors(module, node):
        if isinstance(item, (ast.If, ast.IfExp)) and successor and _names(_other_arm(item, inner), successor):
            return False  # it chooses between the two, whatever it asks
        inner = item
    return True


def _other_arm(item: ast.If | ast.IfExp, inner: ast.AST) -> list[ast.AST]:
    """The arm of a condition that a part of it does not stand in."""
    first, second = item.body, item.orelse
    arms = [arm if isinstance(arm, list) else [arm] for arm in (first, second)]
    return [part for arm in arms if not any(part is inner for part in arm) for part in arm]


def _names(parts: list[ast.AST], name: str) -> bool:
    """Whether statements or an expression speak of an attribute, or import a name."""
    nodes = (node for part in parts for node in walk(part))
    return any(name in (getattr(node, "attr", None), getattr(node, "name", None)) for node in nodes)


def _succeed(event: LibraryName, successor: str) -> Fix | None:
    """Write the name that takes the place of one that is gone."""
    module, node = event.frame.module, event.node
    if not isinstance(node, ast.Attribute):
        return None
    name = spelled(successor, module, event.frame.env)
    return Fix(f"Use `{name}`", (Edit(module.source.span(node), name),)) if name else None


def _loses(event: Called) -> bool:
    return isinstance(event.node, ast.Call) and bool(event.node.keywords)


@judges_calls(rules.REMOVED_JAX_NAME, *sorted(LOSING), "functools.partial", ArrayAttr, when=_loses)
def removed_jax_argument(event: Called, report: Reporter) -> None:
    module, function = event.frame.module, _function(event)
    for keyword in event.node.keywords if isinstance(event.node, ast.Call) else ():
        name = f"{function}({keyword.arg})"
        if name not in GONE or not _is_gone(name, module, report):
            continue
        as_name = LibraryName(event.frame, keyword, name, str(keyword.arg))
        if not is_meant_for_another(as_name):
            since = versions.spelled(GONE[name])
            written = f"{function}({keyword.arg}=...)"
            instead = jax_names.instead_of(name, since)
            fix = partial(_rename, module, keyword, jax_names.RENAMED[name]) if name in jax_names.RENAMED else None
            report(module, keyword, fix=fix, name=written, version=since, instead=instead)


def _function(event: Called) -> str | None:
    """The function of JAX that gets the arguments of a call: that of a partial, or of a method of an array."""
    callee, first = event.callee, event.args[0] if event.args else None
    if isinstance(callee, ArrayAttr):
        return f"jax.numpy.{callee.name}" if callee.name in METHODS and not (callee.owner or callee.host) else None
    return canonical_name(first) if event.subject == "functools.partial" else event.subject


METHODS = frozenset({"clip"})
"""Methods of an array that have lost the arguments that the function of their name has lost."""


def _rename(module: Module, keyword: ast.keyword, new: str) -> Fix:
    start = module.source.span(keyword).start
    return Fix(f"Call it `{new}`", (Edit(Span(start, start + len(keyword.arg or "")), new),))
