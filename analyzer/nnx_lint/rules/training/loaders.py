"""Batches that come from a generator, which the first round of a training loop, or something before, uses up (NNX626).

A loop over a list begins anew each time. A generator, or what ``zip`` and its like give, is gone through once: in the
next epochs the loop over the batches takes no step, and says nothing.

Invariants: what is gone through certainly was made before the rounds, by a generator or a function of Python that gives
an iterator; the loop over it runs to the end.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal
from nnx_lint.model.classes import method_of
from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.modules import Env
from nnx_lint.model.states import TransformationVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Obj, Value
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.bindings import names_of_first, value_of
from nnx_lint.rules.callees import called_value, maker_in
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    attributes_stored,
    binds,
    canonical_of,
    enclosing,
    follows,
    in_test,
    own_nodes,
    reads_of,
    resolved,
    results_of,
    statement_of,
)
from nnx_lint.rules.randomness.selected import parts_around
from nnx_lint.rules.repeating import argument, loop_around, outwards
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import remembered
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

ITERATORS = frozenset(f"builtins.{name}" for name in ("enumerate", "filter", "iter", "map", "reversed", "zip"))
"""Functions of Python that give what can be gone through once."""


@judges_calls(rules.USED_UP_BATCHES, ".update")
def used_up_batches(event: Called, report: Reporter) -> None:
    """A step of an optimizer, or one of a metric, in a loop over batches that rounds repeat."""
    receiver = present(event.callee.receiver) if isinstance(event.callee, BoundMethod) else None
    if not _is_fed(receiver) or in_test(event.frame):
        return
    node: ast.AST = event.node
    for frame in event.frame.outwards():
        for outer in ancestors(frame.module, node):
            if isinstance(outer, FUNCTIONS):
                break
            loader = _gone_through(frame, outer.iter) if isinstance(outer, ast.For) else None
            if (
                isinstance(outer, ast.For)
                and isinstance(loader, ast.Name)
                and _begins_at_the_end(frame, outer, loader, report)
            ):
                return
            if isinstance(outer, ast.For) and loader is not None and _goes_on_to_the_end(outer):
                made = _made_before_rounds(frame, outer, loader) if isinstance(loader, ast.Name) else None
                made = _kept(frame, outer, loader) if isinstance(loader, ast.Attribute) else made
                if made is not None:
                    also = (related(*made, "it is made here, once"),)
                    name, maker = text_of(loader), text_of(made[1])
                    report(frame.module, loader, related=also, name=name, maker=maker, used=BY_FIRST_ROUND)
                    return
        if frame.call is None:
            return
        node = frame.call


BY_FIRST_ROUND = "the first round uses up: in all rounds after it there are no steps"


def _begins_at_the_end(frame: Frame, loop: ast.For, loader: ast.Name, report: Reporter) -> bool:
    """Whether a loop goes through an iterator that its function has gone through before, which is reported."""
    made = value_of(frame.module, loader)
    if made is None or not _is_used_up(frame.env, made):
        return False
    scope = enclosing(frame.module, loop, *FUNCTIONS) or frame.module.tree
    for read in reads_of(scope, loader.id):
        using = _uses_up(frame, read) if begin(read) < begin(loop) else None
        before = statement_of(frame.module, using) if using is not None else None
        if using is None or before is None or not follows(frame.module, before, loop):
            continue
        also = (related(frame.module, using, "it is gone through here"),)
        text = ast.unparse(using).partition("\n")[0].removesuffix(":")
        used = f"`{text}` uses up: this loop takes no step"
        report(frame.module, loader, related=also, name=loader.id, maker=text_of(made), used=used)
        return True
    return False


def _uses_up(frame: Frame, read: ast.Name) -> ast.AST | None:
    """What goes through all of an iterator where a function reads its name: a loop, a list of it, a sum."""
    node, (outer, around) = read, itertools.islice(itertools.chain(ancestors(frame.module, read), (None, None)), 2)
    if isinstance(outer, ast.For) and outer.iter is node:
        return outer if _goes_on_to_the_end(outer) else None
    if isinstance(outer, ast.comprehension):
        if outer.iter is not node or isinstance(around, (ast.ListComp, ast.SetComp, ast.DictComp)):
            return around if outer.iter is node else None
        parts = parts_around(frame.module, around) if isinstance(around, ast.GeneratorExp) else ()
        outer = next((part for part, _ in parts), None)
    return outer if isinstance(outer, ast.Call) and canonical_of(frame.env, outer.func) in EXHAUSTING else None


EXHAUSTING = frozenset(f"builtins.{name}" for name in ("dict", "list", "max", "min", "set", "sorted", "sum", "tuple"))
"""Functions of Python that go through all of an iterator."""


def _is_fed(receiver: Value | None) -> bool:
    """Whether something is what a round of training or of an evaluation updates."""
    named = isinstance(receiver, Obj) and any(map(receiver.cls.derives_from, FED))
    return named or isinstance(receiver, TransformationVal)


FED = ("nnx.Optimizer", "nnx.metrics.Metric")
"""Classes of what batches update."""


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
    return not any(isinstance(node, (ast.Break, ast.Return, ast.Yield, ast.YieldFrom)) for node in own_nodes(loop))


def _made_before_rounds(frame: Frame, place: ast.AST, name: ast.Name) -> tuple[Module, ast.expr] | None:
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
            return (at.module, made) if again and _is_used_up(at.env, made) else None
        call = frame.call
        if at is frame or call is None:
            return None  # another name for it: who knows which of them is gone through
        frame, place, name = at, call, made


def _kept(frame: Frame, place: ast.AST, node: ast.Attribute) -> tuple[Module, ast.expr] | None:
    """What makes an iterator that the constructor of an object keeps, and that rounds around a place, or around a call
    that leads there, go through again.
    """
    owner = resolved(frame.env, node.value)
    attr = attribute_of(owner, node.attr) if isinstance(owner, Obj) else None
    if attr is None or len(attr.assignments) != 1 or not isinstance(owner, Obj) or not isinstance(node.value, ast.Name):
        return None
    (kept,) = attr.assignments
    made, scope = kept.value_node, enclosing(kept.module, kept.node, *FUNCTIONS)
    made = (value_of(kept.module, made) or made) if made is not None else None
    if made is None or getattr(scope, "name", "") != "__init__" or not _is_again(frame, place, node.value.id):
        return None
    if any(attributes_stored(module.tree).count(node.attr) != 1 for module in {kept.module, frame.module}):
        return None
    func = made.func if isinstance(made, ast.Call) else made
    func = value_of(kept.module, func) or func
    own = names_of_first(scope) if isinstance(scope, FUNCTIONS) else frozenset[str]()
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in own:
        method = method_of(owner.cls, func.attr)
        used_up = method is not None and gives_iterator(method[1])
    else:
        local = isinstance(func, ast.Name) and scope is not None and binds(scope, func.id)
        used_up = not local and _is_used_up(kept.module.env, made)
    return (kept.module, made) if used_up else None


def _is_again(frame: Frame, place: ast.AST, name: str) -> bool:
    """Whether rounds come to a place again with one object, which a function there knows by a name."""
    calls = ((each.frame.module, each.call, each.name) for each in outwards(frame, name))
    return any(loop_around(*each) is not None for each in ((frame.module, place, name), *calls))


def _is_used_up(env: Env, made: ast.expr, depth: int = 3) -> bool:
    """Whether an expression gives what can be gone through once."""
    if isinstance(made, ast.GeneratorExp):
        return True
    if not isinstance(made, ast.Call):
        return False
    if canonical_of(env, made.func) in ITERATORS:
        return True
    func = called_value(env, maker_in(env, made))
    while isinstance(func, (BoundMethod, PartialVal)):
        func = func.func
    plain = isinstance(func, FuncVal) and {"staticmethod", "classmethod"}.issuperset(func.decorators)
    return plain and isinstance(func, FuncVal) and gives_iterator(func, depth)


def gives_iterator(func: FuncVal, depth: int = 3) -> bool:
    """Whether a function gives what can be gone through once: it is a generator, or returns nothing else."""
    given = results_of(func.node)
    env = func.env if isinstance(func.env, Env) else func.module.env
    return _yields(func.node) or (bool(given) and all(_is_made_here(env, func.node, each, depth) for each in given))


def _is_made_here(env: Env, scope: ast.AST, made: ast.expr, depth: int) -> bool:
    """Whether a function returns an iterator that it makes of nothing but names that are known before, by a generator
    of the project or by a function of Python.
    """
    if isinstance(made, ast.GeneratorExp):
        return True
    named = made.func if isinstance(made, ast.Call) else None
    if not isinstance(named, ast.Name) or binds(scope, named.id):
        return False
    return canonical_of(env, named) in ITERATORS or (depth > 0 and _is_used_up(env, made, depth - 1))


@remembered
def _yields(func: ast.AST) -> bool:
    """Whether a function is a generator that comes to an end: ``while True:`` gives batches for ever."""
    nodes = own_nodes(func)
    endless = any(isinstance(node, ast.While) and isinstance(node.test, ast.Constant) for node in nodes)
    called = (text_of(node.func).rpartition(".")[2] for node in nodes if isinstance(node, ast.Call))
    endless = endless or not ENDLESS.isdisjoint(called)
    return not endless and any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)


ENDLESS = frozenset({"count", "cycle", "repeat"})
"""What ``itertools``, and the data of other libraries, call that goes on for ever."""
