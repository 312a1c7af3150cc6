"""Code for several versions of a library, or kinds of models: two arms do the same, in the form of each.

How the program asks which version it runs on does not matter (a signature, ``flax.__version__``, an error that it
takes, a flag from elsewhere); only one of the arms is right, whatever the version, and the program knows it. The same
holds of models and functions of several kinds that a program is given, each of which it calls in its own way. The arms
are those of a condition, of a ``try`` and its handlers, and of a condition that leaves the block against what follows.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import original_of
from nnx_lint.model.values import Obj
from nnx_lint.rules.bindings import value_of
from nnx_lint.rules.program import BLOCKS, FUNCTIONS, ancestors, canonical_of, names_of_parameters, resolved
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


def stands_beside(frame: Frame, call: ast.AST | None) -> bool:
    """Whether an arm beside makes the very same call of what the program is given: each arm is for one kind of it."""
    if not frame.doubtful or not isinstance(call, ast.Call) or not is_handed_over(frame, call):
        return False
    text = ast.dump(call)
    parts = (part for arm in _beside(frame.module, call) for part in walk(arm) if isinstance(part, ast.Call))
    return any(ast.dump(part) == text for part in parts)


def is_handed_over(frame: Frame, call: ast.AST) -> bool:
    """Whether what is called may be another one each time: a parameter, or an attribute that holds what has a name."""
    held = call.func if isinstance(call, ast.Call) else None
    held = value_of(frame.module, held) or held if isinstance(held, ast.Name) else held
    while isinstance(held, ast.Attribute):
        owner = resolved(frame.env, held.value)
        attr = original_of(owner, held.attr) if isinstance(owner, Obj) else None
        if attr is not None and attr.first is not None:
            return isinstance(attr.first.value_node, ast.Name)
        held = held.value
    around = (each for each in ancestors(frame.module, call) if isinstance(each, FUNCTIONS))
    return isinstance(held, ast.Name) and any(held.id in names_of_parameters(each) for each in around)


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
