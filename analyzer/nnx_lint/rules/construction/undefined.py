"""Names that nothing binds (NNX877): a constructor that uses ``rngs`` and does not take it, a size that is an attribute
and is read without ``self``.

Invariants: neither the functions around a place nor the file itself bind the name anywhere, in whatever order, nor does
Python; a file that cannot be read whole, that imports all of another one, or that runs text as a program, may bind
anything.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_names
from nnx_lint.model.events import NameMissed
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.program import FUNCTIONS, ancestors, assigned_in, defined_in, is_tried, own_nodes, parameters_in
from nnx_lint.syntax.binding import imported_name, occurrences
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.modules import Module

OWN = (
    frozenset(dir(builtins))
    | {"display", "get_ipython", "In", "Out", "_"}
    | {"reveal_type", "WindowsError", "basestring", "long", "unicode", "xrange"}
)
"""The names of Python, and those that a notebook, a checker of types, another system or an older Python has."""

RUNNING = "import *", "exec(", "run_cell_magic", "globals(", "locals(", "vars()", "modules[__name__]", "builtins"
"""What may bind names that nobody sees; words, since a pattern is looked for in all of the text after each edit."""


@judges(rules.UNDEFINED_NAME, NameMissed, when=lambda event: getattr(event.node, "id", "") not in OWN)
def undefined_name(event: NameMissed, report: Reporter) -> None:
    node, module = event.node, event.frame.module
    if not isinstance(node, ast.Name) or node.id.startswith("__") or module.mentions(*RUNNING):
        return
    scopes = [outer for outer in ancestors(module, node) if isinstance(outer, FUNCTIONS)]
    if not scopes or is_tried(module, node) or not module.is_readable:
        return
    whole = scopes[-1]
    if assigned_in(whole)[node.id] or parameters_in(whole)[node.id] or defined_in(whole)[node.id]:
        return
    if any(isinstance(each, ast.alias) and imported_name(each) == node.id for each in walk(whole)):
        return
    if module.has(node.id, _bound_at_top) or _is_of_annotation(event) or _is_of_another_python(module, node):
        return
    if min((use for use in occurrences(whole, node.id) if not is_tried(module, use)), key=begin) is not node:
        return  # once for a function: what is missing at its first use is missing at the others
    owner = event.frame.receiver
    known = isinstance(owner, Obj) and node.id in attribute_names(owner)
    mend = f"write `self.{node.id}`" if known else "take it as a parameter, or assign it before"
    report(module, node, name=node.id, mend=mend)


def _is_of_annotation(event: NameMissed) -> bool:
    """Whether a name stands where a type is said, which nobody has to compute."""
    inner = event.node
    for outer in ancestors(event.frame.module, event.node):
        if getattr(outer, "annotation", None) is inner or getattr(outer, "returns", None) is inner:
            return True
        if isinstance(outer, ast.stmt):
            return False
        inner = outer
    return False


def _is_of_another_python(module: Module, node: ast.AST) -> bool:
    """Whether a condition around a place asks for the version of Python, which may have more names."""
    tests = (outer.test for outer in ancestors(module, node) if isinstance(outer, (ast.If, ast.IfExp)))
    return any(getattr(part, "attr", "") == "version_info" for test in tests for part in walk(test))


@remembered
def _bound_at_top(statement: ast.AST) -> frozenset[str]:
    """The names that a statement of a file binds there, and those that functions in it bind for the file."""
    return frozenset(_names(statement))


def _names(statement: ast.AST) -> Iterator[str]:
    for node in (statement, *(own_nodes(statement) if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)) else ())):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.alias):
            yield imported_name(node)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest
    for node in walk(statement):
        if isinstance(node, ast.Global):
            yield from node.names
