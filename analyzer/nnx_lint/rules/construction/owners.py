"""Whether an attribute that a class does not give its instances may be meant for others: for those of classes below.

A method of a base class reads what its heirs set, or what those set that use its objects. Where a class is certainly
complete, what its methods read and nothing sets is a mistake if the class has something that is called almost so: an
attribute that was renamed in one place only begins alike. Where the file itself makes objects of the class, and of none
below, such a method fails for them whatever the attribute is called.

Invariants: a class is complete that has a constructor of its own and declares nothing that others are to define; what
has heirs among the files is complete if one of them takes over the method at hand, and none of them has such an
attribute; where classes are mixed, nothing is certain.
"""

from __future__ import annotations

import ast
import itertools
import re
from typing import TYPE_CHECKING

from nnx_lint.rules.program import calls_in
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nnx_lint.model.classes import UserClass
    from nnx_lint.model.frames import Frame

BASE = re.compile(r"^_*(Abstract|Base|Generic|I(?=[A-Z][a-z]))|(ABC|Abstract|Base|Interface|Mixin|Protocol)$")
"""The names of classes that are there for those below them."""


def is_complete(frame: Frame, cls: UserClass, name: str, others: Iterable[str]) -> bool:
    """Whether a method that reads an attribute of its own object fails for each object that it is called for, which has
    ``others``.
    """
    func, heirs = frame.func, cls.module.project.heirs
    if func is None or func.cls is not cls or frame.receiver is None or heirs.mix(cls.name):
        return False
    if not any(_begins_like(name, other) for other in others) and not _is_made_here(cls):
        return False
    below = heirs.of(cls.name) if heirs.exist(cls.name) else []
    if below:
        texts = (node for heir in below for node in (heir, *heir.body))
        if any(name in _words(text) for text in texts):
            return False
        return any(len(heir.bases) == 1 and func.name not in _defined(heir) for heir in below)
    return "__init__" in _defined(cls.node) and not _is_for_heirs(cls.node)


def _is_made_here(cls: UserClass) -> bool:
    """Whether the file of a class makes instances of it, which are of no class below, and none of its files sets
    attributes by names that nobody sees.
    """
    if any(item.module.mentions("__dict__", "setattr(") for item in cls.lineage):
        return False
    calls = (call for part in cls.module.tree.body if part is not cls.node for call in calls_in(part))
    return any(isinstance(call.func, ast.Name) and call.func.id == cls.name for call in calls)


def _begins_like(name: str, other: str) -> bool:
    """Whether two names have most of the shorter one in common, from the start."""
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))
    return same >= LEAST and 2 * same > min(len(name), len(other))


LEAST = 3
"""How many letters two names must have in common."""


@remembered
def _words(node: ast.AST) -> frozenset[str]:
    """The names of attributes, of members and the strings in a text."""
    found = (getattr(item, "attr", None) or getattr(item, "name", None) or _text(item) for item in walk(node))
    return frozenset(name for name in found if isinstance(name, str))


def _text(node: ast.AST) -> object:
    return node.value if isinstance(node, ast.Constant) else getattr(node, "id", None)


def _defined(cls: ast.ClassDef) -> set[str]:
    return {item.name for item in cls.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))}


@remembered
def _is_for_heirs(cls: ast.ClassDef) -> bool:
    """Whether a class says that others are to be derived from it."""
    if BASE.search(cls.name) or any(last_name(base) in {"ABC", "Generic", "Protocol"} for base in cls.bases):
        return True
    return any(_declares(item) for item in cls.body)


def _declares(item: ast.stmt) -> bool:
    """Whether a method is declared, and not defined; or an attribute that has no value."""
    if isinstance(item, ast.AnnAssign):
        return item.value is None
    if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    raised = (node.exc for node in walk(item) if isinstance(node, ast.Raise) and node.exc is not None)
    names = (last_name(exc.func if isinstance(exc, ast.Call) else exc) for exc in raised)
    last = item.body[-1]
    empty = isinstance(last, ast.Pass) or (isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant))
    marked = any("abstract" in last_name(decorator) for decorator in item.decorator_list)
    return marked or empty or "NotImplementedError" in names
