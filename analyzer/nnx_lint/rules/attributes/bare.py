"""Weights that are kept as bare arrays (NNX151).

An array that is an attribute of a module belongs to its state and is no Variable: ``nnx.grad`` and optimizers pass by.
Many arrays are meant so, such as tables of positions, statistics and masks. Invariants: an array is taken for a weight
only if an initializer or the stream of parameters made it, or if all numbers are zero and added, or all equal and
multiplied, which does nothing to what it is applied to; nothing else assigns it, and no gradient is stopped at it.
"""

from __future__ import annotations

import ast
import itertools
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model.callables import LibraryFunction
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import AttributeSet
from nnx_lint.model.values import Array
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.edits import unsafe, wrap
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import ancestors, canonical_of
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax_walk import remembered, walk
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module


class Drawn(set[ast.AST]):
    """The calls that have drawn the values of a weight."""


@judges_calls(rules.BARE_WEIGHT, LibraryFunction)
def weight_drawn(event: Called, report: Reporter) -> None:
    if isinstance(event.callee, LibraryFunction) and not event.callee.maker.endswith(CONSTANT):
        report.memory(Drawn).add(event.node)


@judges_calls(rules.BARE_WEIGHT, "jax.random.normal", "jax.random.truncated_normal", "jax.random.uniform")
def numbers_drawn(event: Called, report: Reporter) -> None:
    key = event.node.args[0] if isinstance(event.node, ast.Call) and event.node.args else None
    drawn = key.func if isinstance(key, ast.Call) else None
    if isinstance(drawn, ast.Attribute) and drawn.attr == "params":
        report.memory(Drawn).add(event.node)


CONSTANT = (".constant", ".zeros_init", ".ones_init", ".normal", ".uniform", "initializers")
"""Initializers that may make anything: constants, and noise that features are projected on."""


@judges(rules.BARE_WEIGHT, AttributeSet)
def bare_weight(event: AttributeSet, report: Reporter) -> None:
    frame, node, cls = event.frame, event.value_node, event.obj.cls
    constructing = frame.func is not None and frame.func.name == "__init__" and event.obj is frame.receiver
    if node is None or not constructing or not isinstance(event.value, Array) or not isinstance(cls, UserClass):
        return
    if not is_module(event.obj) or cls.is_variable:
        return
    module = cls.module
    if any(call in report.memory(Drawn) for call in walk(node)):
        what = "is drawn like a parameter"
    elif (operator := _neutral(event, node)) is not None and _all_combined(module, event.name, operator):
        what = f"is {DONE[operator]} as it was made, and nothing changes it"
    else:
        return
    if _is_assigned_again(module, event.name) or not _is_read(cls, event.name):
        return
    fix = partial(_as_param, event, node)
    report(frame.module, node, fix=fix, cls=cls.name, path=event.name, what=what)


def _as_param(event: AttributeSet, node: ast.expr) -> Fix | None:
    name, source = spelled("nnx.Param", event.frame.module, event.frame.env), event.frame.module.source
    return unsafe(f"Wrap the value in `{name}(...)`", wrap(source, node, name)) if name else None


DONE: dict[type[ast.operator], str] = {ast.Add: "added", ast.Mult: "multiplied"}


def _neutral(event: AttributeSet, node: ast.expr) -> type[ast.operator] | None:
    """The operator to which an array says nothing: all zeros are added, all of one number multiplied."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = [_neutral(event, side) for side in (node.left, node.right)]
        return ast.Mult if ast.Mult in sides else None
    name = canonical_of(event.frame.env, node.func) if isinstance(node, ast.Call) else None
    if name == "jax.numpy.zeros":
        return ast.Add
    return ast.Mult if name in {"jax.numpy.ones", "jax.numpy.full"} else None


@remembered
def _reads(tree: ast.AST) -> dict[str, list[ast.Attribute]]:
    """Where attributes are read in a module or class, by name."""
    found: dict[str, list[ast.Attribute]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.attr, []).append(node)
    return found


@remembered
def _stores(tree: ast.AST) -> list[str]:
    """The attributes that a module assigns, as often as it does."""
    nodes = walk(tree)
    stored = [node.attr for node in nodes if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)]
    calls = (node for node in walk(tree) if isinstance(node, ast.Call) and len(node.args) == 3)
    named = (call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "setattr")
    return stored + [name.value for name in named if isinstance(name, ast.Constant) and isinstance(name.value, str)]


def _all_combined(module: Module, name: str, operator: type[ast.operator]) -> bool:
    """Whether each attribute of this name in a file is only added, or only multiplied."""
    reads = _reads(module.tree).get(name, [])
    return bool(reads) and all(_is_operand(module, read, operator) for read in reads)


def _is_operand(module: Module, node: ast.AST, operator: type[ast.operator]) -> bool:
    parent = next(ancestors(module, node), None)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return _is_operand(module, parent, operator)
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, operator)


def _is_assigned_again(module: Module, name: str) -> bool:
    return _stores(module.tree).count(name) > 1


def _is_read(cls: UserClass, name: str) -> bool:
    """Whether a class computes with an attribute, and lets gradients reach it."""
    reads = _reads(cls.node).get(name, [])
    return bool(reads) and not any(_is_fixed(cls.module, read) for read in reads)


def _is_fixed(module: Module, read: ast.AST) -> bool:
    """Whether an array is meant to stay as it is: no gradient passes, or it makes random features."""
    calls = itertools.takewhile(lambda node: not isinstance(node, ast.stmt), ancestors(module, read))
    named = (getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls if isinstance(call, ast.Call))
    return any(name in FIXING for name in named)


FIXING = frozenset({"cos", "sign", "sin", "stop_gradient"})
"""Functions of what is multiplied with numbers that are drawn once, and of gradients that end there."""
