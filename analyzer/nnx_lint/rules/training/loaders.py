"""Batches that come from a generator, which the first round of a training loop uses up (NNX626).

A loop over a list begins anew each time. A generator, or what ``zip`` and its like give, is gone through once: in the
next epochs the loop over the batches takes no step, and says nothing.

Invariants: what is gone through certainly was made before the rounds, by a generator or a function of Python that gives
an iterator; the loop over it runs to the end.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal
from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.states import TransformationVal
from nnx_lint.model.values import Obj, Value, present
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.bindings import value_of
from nnx_lint.rules.program import FUNCTIONS, ancestors, binds, canonical_of, in_test, own_nodes, resolved
from nnx_lint.rules.repeating import argument, loop_around
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame

ITERATORS = frozenset(f"builtins.{name}" for name in ("enumerate", "filter", "iter", "map", "reversed", "zip"))
"""Functions of Python that give what can be gone through once."""


@judges_calls(rules.USED_UP_BATCHES, ".update")
def used_up_batches(event: Called, report: Reporter) -> None:
    """A step of an optimizer, in a loop over batches that rounds repeat."""
    receiver = present(event.callee.receiver) if isinstance(event.callee, BoundMethod) else None
    if not _is_optimizer(receiver) or in_test(event.frame):
        return
    node: ast.AST = event.node
    for frame in event.frame.outwards():
        for outer in ancestors(frame.module, node):
            if isinstance(outer, FUNCTIONS):
                break
            loader = _gone_through(frame, outer.iter) if isinstance(outer, ast.For) else None
            if isinstance(outer, ast.For) and isinstance(loader, ast.Name) and _goes_on_to_the_end(outer):
                made = _made_before_rounds(frame, outer, loader)
                if made is not None:
                    also = (related(made[0].module, made[1], "it is made here, once"),)
                    report(frame.module, loader, related=also, name=loader.id, maker=text_of(made[1]))
                    return
        if frame.call is None:
            return
        node = frame.call


def _is_optimizer(receiver: Value | None) -> bool:
    named = isinstance(receiver, Obj) and receiver.cls.derives_from("nnx.Optimizer")
    return named or isinstance(receiver, TransformationVal)


COUNTING = frozenset({"builtins.enumerate", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.tqdm"})
"""Functions that go through what they are given when a loop goes through what they give."""


def _gone_through(frame: Frame, iterated: ast.expr) -> ast.expr:
    """What a loop goes through in the end: ``enumerate(loader)``."""
    while isinstance(iterated, ast.Call) and iterated.args and canonical_of(frame.env, iterated.func) in COUNTING:
        iterated = iterated.args[0]
    return iterated


@remembered
def _goes_on_to_the_end(loop: ast.For) -> bool:
    """Whether nothing leaves a loop before it has gone through everything."""
    return not any(isinstance(node, (ast.Break, ast.Return, ast.Yield, ast.YieldFrom)) for node in walk(loop))


def _made_before_rounds(frame: Frame, place: ast.AST, name: ast.Name) -> tuple[Frame, ast.expr] | None:
    """What makes an iterator that rounds around a place go through again, where it is made before them."""
    again = False
    while True:
        again = again or loop_around(frame.module, place, name.id) is not None
        made, at = value_of(frame.module, name), frame
        if made is None and frame.func is not None and binds(frame.func.node, name.id):
            made, at = argument(frame, name.id), frame.caller or frame
        if made is None:
            return None
        if not isinstance(made, ast.Name):
            return (at, made) if again and _is_used_up(at, made) else None
        call = frame.call
        if at is frame or call is None:
            return None  # another name for it: who knows which of them is gone through
        frame, place, name = at, call, made


def _is_used_up(frame: Frame, made: ast.expr) -> bool:
    """Whether an expression gives what can be gone through once."""
    if isinstance(made, ast.GeneratorExp):
        return True
    if not isinstance(made, ast.Call):
        return False
    if canonical_of(frame.env, made.func) in ITERATORS:
        return True
    func = resolved(frame.env, made.func)
    while isinstance(func, (BoundMethod, PartialVal)):
        func = func.func
    return isinstance(func, FuncVal) and {"staticmethod"}.issuperset(func.decorators) and _yields(func.node)


@remembered
def _yields(func: ast.AST) -> bool:
    """Whether a function is a generator that comes to an end: ``while True:`` gives batches for ever."""
    nodes = own_nodes(func)
    endless = any(isinstance(node, ast.While) and isinstance(node.test, ast.Constant) for node in nodes)
    return not endless and any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)
