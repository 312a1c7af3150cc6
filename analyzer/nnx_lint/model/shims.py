"""Code for several versions at once, and for type checkers: which of two ways counts.

A program that supports an old NNX asks for a name before it uses it: ``hasattr(nnx, "List")``, ``getattr(nnx, "List",
list)``, ``try: ... except AttributeError:``. One that is costly to import has one arm for type checkers and another for
the run. Both mean a name that is known well, and a stand-in that says less. A file that is a script, too, says what it
does when it is run.

Invariants: a name that NNX is known to have is there, so its stand-in is not looked at; of ``TYPE_CHECKING`` both arms
are seen, and what the checkers' arm says of a name counts wherever the other one has a stand-in for it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.imports import NNX_NAMES, canonical, library_value
from nnx_lint.model.values import ClassVal, Const, Ext, Unknown, Value
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules import api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nnx_lint.model.frames import Frame

KNOWN = frozenset(f"nnx.{name}" for name in NNX_NAMES) | api.ATTRIBUTE_FUNCTIONS

# -- names that may be missing
# -------------------------------------------------------------------------------------------------


def provided(target: Value, name: Value | None) -> Value | None:
    """The value of ``target.name`` where the target is NNX and certainly has the name."""
    if isinstance(target, Ext) and isinstance(name, Const) and canonical(f"{target.name}.{name.value}") in KNOWN:
        return library_value(f"{target.name}.{name.value}")
    return None


MISSING = {"AttributeError": "attribute", "ImportError": "import", "ModuleNotFoundError": "import"}
"""The exceptions that tell a missing name, and what asks for it."""


def stands_in(frame: Frame, node: ast.Try | ast.TryStar, handler: ast.ExceptHandler) -> bool:
    """Whether a handler only runs where NNX lacks a name that the body uses, and which NNX is known to have."""
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    caught = {MISSING.get(item.id) if isinstance(item, ast.Name) else None for item in types}
    if None in caught:
        return False
    asked = set(_imported(node.body)) if "import" in caught else set[str]()
    if "attribute" in caught:
        asked.update(_attributes(frame, node.body))
    return bool(asked) and all(name in KNOWN or name == "nnx" for name in asked)


def _imported(body: Iterable[ast.stmt]) -> Iterator[str]:
    for item in body:
        if isinstance(item, ast.ImportFrom):
            yield from (canonical(f"{item.module}.{alias.name}") for alias in item.names)
        elif isinstance(item, ast.Import):
            yield from (canonical(alias.name) for alias in item.names)


def _attributes(frame: Frame, body: Iterable[ast.stmt]) -> Iterator[str]:
    for item in body:
        for part in walk(item):
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                found = frame.env.lookup(part.value.id)
                if found is not None and isinstance(found[1], Ext) and found[1].name == "nnx":
                    yield canonical(f"nnx.{part.attr}")


# -- arms for type checkers
# ----------------------------------------------------------------------------------------------------


def for_checkers(test: Value, node: ast.expr) -> bool | None:
    """Whether a condition holds for type checkers only, or (``False``) for everything else; ``None`` for others."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = for_checkers(test, node.operand)
        return None if inner is None else not inner
    spelled = is_name(node, "TYPE_CHECKING")  # as in `TYPE_CHECKING = False`
    return True if spelled or (isinstance(test, Ext) and test.name == "typing.TYPE_CHECKING") else None


def both_arms(frame: Frame, checked: Callable[[], object], run: Callable[[], object]) -> None:
    """Execute the arm for type checkers and the other one. A name is what the latter says, which is what runs, if that
    is no stand-in, and else what the former says.
    """
    before = frame.env.names
    frame.env.names = dict(before)
    run()
    real = frame.env.names
    frame.env.names = dict(before)
    checked()
    names = frame.env.names
    for name, value in real.items():
        said = names.get(name)
        if said is None or isinstance(said, Unknown) or said is before.get(name) or _is_real(value):
            names[name] = value


def _is_real(value: Value) -> bool:
    """Whether a value is what a name is for, and no stand-in: ``Array = Any``, a module that is loaded later."""
    if isinstance(value, Ext):
        return not value.name.startswith(("builtins.", "typing.", "typing_extensions."))
    return isinstance(value, (ClassVal, FuncVal))


# -- scripts -----------------------------------------------------------------------------------------------------------


def is_script(node: ast.If) -> bool:
    """Whether what stands under a condition is what the file does as a script: ``if __name__ == "__main__":``."""
    test = node.test
    asks = isinstance(test, ast.Compare) and is_name(test.left, "__name__") and isinstance(test.ops[0], ast.Eq)
    return asks and not node.orelse
