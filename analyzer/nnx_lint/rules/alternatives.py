"""Code for several versions of a library: two arms do the same, in the form of each version.

How the program asks which version it runs on does not matter (a signature, ``flax.__version__``, an error that it
takes, a flag from elsewhere); only one of the arms is right, whatever the version, and the program knows it. The arms
are those of a condition, of a ``try`` and its handlers, and of a condition that leaves the block against what follows.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_lint.rules.program import BLOCKS, FUNCTIONS, ancestors, canonical_of
from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def has_other_form(module: Module, call: ast.AST | None) -> bool:
    """Whether a call stands beside the same call with other arguments, one of which runs."""
    if not isinstance(call, ast.Call):
        return False
    called, form = ast.dump(call.func), _form(call)
    return any(
        isinstance(part, ast.Call) and _form(part) != form and ast.dump(part.func) == called
        for arm in _beside(module, call)
        for part in walk(arm)
    )


def is_wrapped_beside(frame: Frame, statement: ast.AST, value: ast.expr | None) -> bool:
    """Whether an arm beside a statement hands the same value to something of NNX, which this statement does without."""
    if value is None:
        return False
    text = ast.dump(value)
    return any(
        isinstance(part, ast.Call)
        and bool(part.args)
        and ast.dump(part.args[0]) == text
        and (canonical_of(frame.env, part.func) or "").startswith("nnx.")
        for arm in _beside(frame.module, statement)
        for part in walk(arm)
    )


def _form(call: ast.Call) -> tuple[int, frozenset[str | None]]:
    return len(call.args), frozenset(keyword.arg for keyword in call.keywords)


def _beside(module: Module, node: ast.AST) -> Iterator[ast.AST]:
    """What runs instead of a node, in the function or module that it stands in."""
    inner = node
    for outer in ancestors(module, node):
        if isinstance(outer, ast.IfExp) and inner is not outer.test:
            yield outer.orelse if inner is outer.body else outer.body
        elif isinstance(outer, ast.If) and inner is not outer.test:
            yield from outer.orelse if inner in outer.body else outer.body
        elif isinstance(outer, ast.Try):
            yield from outer.handlers if inner in outer.body else outer.body
        elif isinstance(outer, ast.ExceptHandler):
            inner = outer
            continue
        for name in BLOCKS:
            block: list[ast.stmt] | ast.expr = getattr(outer, name, [])
            if isinstance(block, list) and inner in block:
                yield from _around_leaving(block, inner)
        if isinstance(outer, FUNCTIONS):
            return
        inner = outer


def left_before(block: list[ast.stmt], inner: ast.AST) -> list[ast.If]:
    """The earlier conditions of a block that leave it, so that a statement runs where they do not hold."""
    earlier = itertools.takewhile(lambda part: part is not inner, block)
    return [part for part in earlier if isinstance(part, ast.If) and isinstance(part.body[-1], _LEAVING)]


def _around_leaving(block: list[ast.stmt], inner: ast.AST) -> Iterator[ast.stmt]:
    """The bodies of earlier conditions that leave the block, and what follows if the statement is one itself."""
    for part in left_before(block, inner):
        yield from part.body
    place = next(number for number, part in enumerate(block) if part is inner)
    if isinstance(inner, ast.If) and isinstance(inner.body[-1], _LEAVING):
        yield from block[place + 1 :]
