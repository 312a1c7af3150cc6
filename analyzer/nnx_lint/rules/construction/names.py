"""Names that NNX does not have (NNX832): those of other libraries, and slips of names that it has; written, or
looked up by ``getattr``.
"""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.events import Called, LibraryName
from nnx_lint.model.tables.public_names import NAMES
from nnx_lint.model.values import Const, Ext
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import ancestors, is_tried
from nnx_lint.rules.versions.names import is_evaluated, is_meant_for_another
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.names import FOREIGN, KNOWN, SAME_USE
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module


def is_unknown(event: LibraryName) -> bool:
    """Whether a name is none that any version of NNX has or had."""
    namespace = event.name.rpartition(".")[0]
    if not event.name.startswith("nnx.") or event.written.startswith("_"):
        return False
    return event.written not in NAMES.get(namespace, KNOWN)


@judges(rules.UNKNOWN_NAME, LibraryName, when=is_unknown)
def unknown_name(event: LibraryName, report: Reporter) -> None:
    name, module = event.written, event.frame.module
    mend = FOREIGN.get(name) or _meant(event.name.rpartition(".")[0], name)
    if mend is None and report.runs_on(module)[1] is not None:
        mend = "define it, or import it from where it is defined"
    if mend is None or is_meant_for_another(event) or not is_evaluated(event) or is_asked_for(module, event.node):
        return
    named = mend.startswith("nnx.")
    fix = _renamed(module, event.node, mend) if named and (name in SAME_USE or name not in FOREIGN) else None
    help_ = f"use `{mend}`" if named else mend
    report(module, event.node, fix=fix, name=name, mend=help_)


@judges_calls(rules.UNKNOWN_NAME, "builtins.getattr")
def name_looked_up(event: Called, report: Reporter) -> None:
    """``getattr(nnx, config.activation)``, where the configuration says ``"GELU"``."""
    namespace, name = looked_up(event)
    if namespace != "nnx" or name in KNOWN or is_tried(event.frame.module, event.node):
        return
    mend = _meant(namespace, name)
    if mend is not None:
        report(event.frame.module, event.node, name=name, mend=f"use `{mend}`" if mend.startswith("nnx.") else mend)


def looked_up(event: Called) -> tuple[str, str]:
    """The namespace of a library, and the name that ``getattr`` is to find there for all that is known."""
    target, key = event.args if len(event.args) == 2 else (None, None)
    name = key.value if isinstance(key, Const) else None
    if not isinstance(target, Ext) or not isinstance(name, str) or name.startswith("_") or event.keywords:
        return "", ""
    return target.name, name


def _meant(namespace: str, name: str) -> str | None:
    """What a name stands for that no library has: a name written in another way, one of JAX, or one like it."""
    import difflib

    if namespace in NAMES:
        near = difflib.get_close_matches(name, NAMES[namespace], n=1, cutoff=0.85)
        return f"{namespace}.{near[0]}" if near else None
    plain = _plainly_written().get(letters_of(name))
    if plain is not None:
        return f"nnx.{plain}"
    elsewhere = next((path for path in PATHS if name in NAMES[path]), None)
    if elsewhere is not None:
        return f"it is `{elsewhere}.{name}`"
    near = difflib.get_close_matches(name, KNOWN, n=1, cutoff=0.85)
    return f"nnx.{near[0]}" if near else None


PATHS = ("jax.nn", "jax.numpy", "jax.lax", "jax.random")
"""Where JAX has functions that people look for in NNX."""


def letters_of(name: str) -> str:
    return name.replace("_", "").lower()


@functools.cache
def _plainly_written() -> dict[str, str]:
    """The names of NNX by their letters alone: what people call ``nnx.layer_norm`` is ``nnx.LayerNorm``."""
    return {letters_of(name): name for name in sorted(KNOWN)}


def is_asked_for(module: Module, node: ast.AST) -> bool:
    """Whether the file gives NNX the name or takes it away, or a condition asks for it."""
    last = node.attr if isinstance(node, ast.Attribute) else ""
    return module.has(last, _attributes_bound) or any(
        isinstance(item, (ast.If, ast.IfExp))
        and any(isinstance(part, ast.Constant) and part.value == last for part in walk(item.test))
        for item in ancestors(module, node)
    )


@remembered
def _attributes_bound(statement: ast.AST) -> frozenset[str]:
    """The names of the attributes that a statement sets or deletes, whatever they are of."""
    nodes = (node for node in walk(statement) if isinstance(node, ast.Attribute))
    return frozenset(node.attr for node in nodes if not isinstance(node.ctx, ast.Load))


def _renamed(module: Module, node: ast.AST, mend: str) -> Fix | None:
    if not isinstance(node, ast.Attribute):
        return None
    end = module.source.span(node).end
    edit = Edit(Span(end - len(node.attr), end), mend.rpartition(".")[2])
    return Fix(f"Use `{mend}`", (edit,), Applicability.UNSAFE)
