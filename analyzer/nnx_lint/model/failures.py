"""Code that is meant to fail, or runs on a library that somebody has patched: nothing that it does is a mistake.

Tests and tutorials show errors on purpose. They say so by a context manager (``pytest.raises``), by a mark of the
function, by handing the code to a function that asserts the error, or by a ``try`` that takes the very error. A handler
of ``Exception`` is no such word: it guards against what nobody expects.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.expressions import evaluate
from nnx_lint.model.values import Ext
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter

_FAILING = frozenset({"pytest.raises", "contextlib.suppress"})
_MARKS = frozenset({"pytest.mark.xfail", "unittest.expectedFailure"})
_LIBRARIES = frozenset(name.partition(".")[0] for name in (*_FAILING, *_MARKS))


def expects_error(interp: Interpreter, frame: Frame, node: ast.expr) -> bool:
    """Whether a call asserts that something fails, or lets it: ``pytest.raises``, ``self.assertRaisesRegex``."""
    if isinstance(node, ast.IfExp):
        return expects_error(interp, frame, node.body) or expects_error(interp, frame, node.orelse)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr.startswith("assertRaises"):
        return True
    return _external(interp, frame, node.func) in _FAILING


def lets_fail(interp: Interpreter, frame: Frame, node: ast.With | ast.AsyncWith) -> bool:
    """Whether what stands in a ``with`` is meant to fail: by one of its managers, or by one that an ``ExitStack`` among
    them enters: ``stack.enter_context(pytest.raises(...))``.
    """
    if any(expects_error(interp, frame, item.context_expr) for item in node.items):
        return True
    stacks = {item.optional_vars.id for item in node.items if isinstance(item.optional_vars, ast.Name)}
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr == "enter_context"
        and isinstance(part.func.value, ast.Name)
        and part.func.value.id in stacks
        and any(expects_error(interp, frame, given) for given in part.args)
        for statement in (node.body if stacks else ())
        for part in walk(statement)
    )


def is_marked(interp: Interpreter, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a test is marked as one that fails."""
    marks = (item.func if isinstance(item, ast.Call) else item for item in node.decorator_list)
    return any(_external(interp, frame, item) in _MARKS for item in marks)


def _external(interp: Interpreter, frame: Frame, node: ast.expr) -> str | None:
    """The name of something in another library that a dotted name leads to; nothing else is evaluated."""
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    found = frame.env.lookup(root.id) if isinstance(root, ast.Name) else None
    if found is None or not isinstance(found[1], Ext) or found[1].name.partition(".")[0] not in _LIBRARIES:
        return None
    value = evaluate(interp, frame, node)
    return value.name if isinstance(value, Ext) else None


def is_taken(node: ast.Try | ast.TryStar) -> bool:
    """Whether a ``try`` around a few plain statements takes one kind of error, and goes on."""
    return (
        bool(node.handlers)
        and not any(isinstance(part, _LOOPS) for item in node.body for part in walk(item))
        and all(_names_error(item.type) and not _raises(item.body) for item in node.handlers)
    )


_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ABOUT_THE_WORLD = (ImportError, OSError, EOFError, MemoryError, UnicodeError)
"""Errors that say nothing of the code: a file or a package is missing, or memory."""


def _names_error(kind: ast.expr | None) -> bool:
    if isinstance(kind, ast.Tuple):
        return all(map(_names_error, kind.elts))
    name = kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", "")
    builtin = getattr(builtins, name, None)
    return name.endswith("Error") and not (isinstance(builtin, type) and issubclass(builtin, _ABOUT_THE_WORLD))


def _raises(body: list[ast.stmt]) -> bool:
    return any(isinstance(part, ast.Raise) for item in body for part in walk(item))


_ALTERING = frozenset(
    {"jax.disable_jit", *(f"unittest.mock.patch{kind}" for kind in ("", ".object", ".dict", ".multiple"))}
)
"""Context managers under which nothing is traced, or parts of a library are replaced."""


def alters_library(interp: Interpreter, frame: Frame, node: ast.expr) -> bool:
    """Whether under a context manager the library may do something else than it does: what is found there says nothing.

    A manager of the project may patch it where it sets attributes by name, or enters what somebody else made.
    """
    if not isinstance(node, ast.Call):
        return False
    callee = evaluate(interp, frame, node.func)
    if isinstance(callee, FuncVal):
        functions = (part.func for part in walk(callee.node) if isinstance(part, ast.Call))
        return any(
            function.attr == "enter_context" if isinstance(function, ast.Attribute) else is_name(function, "setattr")
            for function in functions
        )
    return isinstance(callee, Ext) and callee.name in _ALTERING
