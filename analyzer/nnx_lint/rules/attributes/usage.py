"""How the code of a class uses one of its attributes, over all methods and without executing them.

Invariants: these facts only ever make a rule silent or a fix more careful, so they go by how the code is written: an
attribute of the same name on another object counts too.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nnx_lint.model.classes import ClassBase

HANDING_OVER = frozenset({"List", "Dict", "Sequential", "data"})
"""Calls after which the contents of a plain container, or the attribute itself, are data."""

PLAIN_METHODS = frozenset({"sort", "copy"})
"""Methods that lists or dicts have and the containers of the library lack."""


def is_handed_over(cls: ClassBase, name: str) -> bool:
    """Whether a method deletes the attribute, marks it as data, or moves its contents into a container of the library.

    Then the status that its first assignment gave it need not last.
    """
    return any(name in _handed_over(node) for node in _family(cls, name))


def is_used_plainly(cls: ClassBase, name: str) -> bool:
    """Whether the code relies on the attribute being a plain list or dict: ``+``, ``==``, ``sort``, ``isinstance``."""
    return any(name in _used_plainly(node) for node in _family(cls, name))


def _family(cls: ClassBase, name: str) -> list[ast.ClassDef]:
    below = cls.module.project.heirs.mentioning(cls.name, name) if isinstance(cls, UserClass) else []
    return [*(item.node for item in cls.lineage), *below]


def _names(nodes: Callable[[ast.AST], Iterator[ast.expr]]) -> Callable[[ast.ClassDef], frozenset[str]]:
    """The names of the attributes among the expressions that a class body uses in some way."""

    @remembered
    def find(node: ast.ClassDef) -> frozenset[str]:
        found = (item for part in walk(node) for item in nodes(part))
        return frozenset(item.attr for item in found if isinstance(item, ast.Attribute))

    return find


@_names
def _handed_over(part: ast.AST) -> Iterator[ast.expr]:
    if isinstance(part, ast.Delete):
        yield from part.targets
    elif isinstance(part, ast.Call) and last_name(part.func) in HANDING_OVER:
        yield from (item.value if isinstance(item, ast.Starred) else item for item in part.args)
    elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Call) and last_name(part.value.func) == "data":
        yield from part.targets


@_names
def _used_plainly(part: ast.AST) -> Iterator[ast.expr]:
    if isinstance(part, ast.BinOp):
        yield from (part.left, part.right)
    elif isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.Eq, ast.NotEq)):
        yield from (part.left, *part.comparators)
    elif isinstance(part, ast.Attribute) and part.attr in PLAIN_METHODS:
        yield part.value
    elif isinstance(part, ast.Call) and last_name(part.func) == "isinstance":
        yield from part.args[:1]
