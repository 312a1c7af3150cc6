"""Metrics that go on with the values of an earlier epoch, or of the training (NNX623).

``compute()`` reads a metric and leaves it as it is, so whoever wants a value for each epoch, or one for training and
one for evaluation, resets it in between.

Invariants: the metric is one object all the time; no code that may run in between resets anything, as far as names
tell; what else gets the metric is code that is seen.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.expressions import text_of
from nnx_lint.model.unions import present
from nnx_lint.model.values import Obj
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.blocks import prepend_to_block
from nnx_lint.rules.edits import unsafe
from nnx_lint.rules.program import FUNCTIONS, STATEMENT_LOOPS, ancestors, binds, enclosing, own_nodes, resolved
from nnx_lint.rules.randomness.drawing import function_of
from nnx_lint.rules.reaching import running
from nnx_lint.rules.repeating import loop_around, outwards
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import dotted_name, root_of
from nnx_lint.syntax.parameters import positional_names
from nnx_lint.syntax.places import end
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nnx_lint.diagnostics import Fix
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env, Module

Place = tuple["Module", ast.AST]
"""A node of a module."""


class Rounds(NamedTuple):
    """The statement whose beginning is that of each round, and all that runs in a round."""

    start: ast.stmt
    places: list[Place]


@judges_calls(rules.METRIC_NOT_RESET, ".compute")
def metric_not_reset(event: Called, report: Reporter) -> None:
    """A value for each round of a loop, of a metric that is made before it and updated in a loop inside of it."""
    metric, module = _metric(event), event.frame.module
    if metric is None:
        return
    rounds, name = _round_of(event) or _called_in_rounds(event.frame, metric), text_of(metric)
    if rounds is None or not _is_kept(rounds.start, name) or _is_for_all(rounds.start, name):
        return
    inner = any(_is_named(loop, name) for loop in _loops_in(rounds.start) if event.node not in walk(loop))
    if (inner or _is_updated_beside(rounds, name)) and not _may_reset(rounds.places, name, _takers(event, rounds)):
        fix = partial(_reset, module, rounds.start, name) if inner else None
        report(
            module, event.node, fix=fix, name=name, lacking="never reset", what="all rounds of the outer loop so far"
        )


def _metric(event: Called) -> ast.expr | None:
    """What names the metric that a call computes, if the program makes it."""
    callee = event.callee
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    func = event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(receiver, Obj) or not isinstance(func, ast.Attribute) or receiver.origin is None:
        return None
    return func.value if dotted_name(func.value) and receiver.cls.derives_from("nnx.metrics.Metric") else None


def _takers(event: Called, rounds: Rounds) -> list[Module]:
    """The modules of the functions that get something in a round, as far as they are known."""
    calls = (node for node in walk(rounds.start) if isinstance(node, ast.Call) and (node.args or node.keywords))
    called = (function_of(resolved(event.frame.env, call.func)) for call in calls)
    return [each.func.module for each in called if each is not None]


def _round_of(event: Called) -> Rounds | None:
    """The innermost loop that makes a call anew in each of its rounds."""
    inner: ast.AST = event.node
    for outer in ancestors(event.frame.module, event.node):
        if isinstance(outer, FUNCTIONS):
            return None
        if isinstance(outer, STATEMENT_LOOPS) and inner is not getattr(outer, "iter", None):
            return Rounds(outer, [(event.frame.module, outer)])
        inner = outer
    return None


def _called_in_rounds(frame: Frame, metric: ast.expr) -> Rounds | None:
    """The present function, if a loop calls it in each round with the same metric."""
    name, func = root_of(metric), frame.func.node if frame.func is not None else None
    if name is None or not isinstance(func, ast.FunctionDef) or not binds(func, name):
        return None
    places: list[Place] = [(frame.module, func)]
    for caller, call, holder in outwards(frame, name):
        loop = loop_around(caller.module, call, holder)
        if loop is not None:
            return Rounds(func, [*places, (caller.module, loop)])
        places.append((caller.module, caller.func.node if caller.func is not None else caller.module.tree))
    return None


def _is_kept(loop: ast.stmt, name: str) -> bool:
    """Whether nothing in a loop is bound to a dotted name, or to what it begins with."""
    stores = (part for part in walk(loop) if isinstance(part, (ast.Name, ast.Attribute)))
    bound = {text_of(part) for part in stores if not isinstance(part.ctx, ast.Load)}
    return not any(f"{name}.".startswith(f"{text}.") for text in bound)


def _is_updated_beside(rounds: Rounds, name: str) -> bool:
    """Whether a loop beside the call of a function updates the metric that the function computes, an attribute which
    nothing that runs there binds to another one.
    """
    owner, _, attribute = name.rpartition(".")
    module, loop = rounds.places[-1]
    if not owner or loop is rounds.start or not isinstance(loop, STATEMENT_LOOPS):
        return False
    modules = [each for each, _ in rounds.places]
    named = [node for _, node in running(modules, rounds.places) if isinstance(node, ast.Attribute)]
    if any(node.attr == attribute and not isinstance(node.ctx, ast.Load) for node in named):
        return False
    updates = {node for node in named if node.attr == "update" and text_of(node.value).rpartition(".")[2] == attribute}
    return any(node in updates for inner in _loops_in(loop) for _, node in running(modules, [(module, inner)]))


def _is_for_all(loop: ast.stmt, name: str) -> bool:
    """Whether a metric of all rounds stands beside one that is made in each round and updated together with it."""
    named = (part for part in walk(loop) if isinstance(part, (ast.Name, ast.Attribute)))
    made = {dotted_name(part) for part in named if not isinstance(part.ctx, ast.Load)} - {None}
    beside = (part for inner in _loops_in(loop) if _is_named(inner, name) for part in walk(inner))
    updates = (part for part in beside if isinstance(part, ast.Call) and part.keywords and not part.args)
    funcs = (part.func for part in updates if isinstance(part.func, ast.Attribute) and part.func.attr == "update")
    return any(root_of(func.value) in made or dotted_name(func.value) in made for func in funcs)


def _loops_in(loop: ast.stmt) -> Iterator[ast.AST]:
    return (inner for inner in walk(loop) if inner is not loop and isinstance(inner, STATEMENT_LOOPS))


def _is_named(scope: ast.AST, name: str) -> bool:
    return any(isinstance(part, (ast.Name, ast.Attribute)) and text_of(part) == name for part in walk(scope))


def _reset(module: Module, loop: ast.stmt, name: str) -> Fix | None:
    """Reset a metric at the start of each round."""
    body: list[ast.stmt] = getattr(loop, "body", [])
    return unsafe("Reset it in each round", prepend_to_block(module.source, body, f"{name}.reset()"))


# -- training, then evaluation -----------------------------------------------------------------------------------------


class Computed(NamedTuple):
    """A metric was computed: in which scope, and by which call."""

    env: Env
    node: ast.Call


class Computes:
    """Where each metric, by identity, was computed last."""

    def __init__(self) -> None:
        self.last: dict[int, Computed] = {}


@judges_calls(rules.METRIC_NOT_RESET, ".compute")
def computed_before(event: Called, report: Reporter) -> None:
    """A value for what one function updates a metric with, after one for what another function did."""
    metric, frame, node = _metric(event), event.frame, event.node
    if metric is None or not isinstance(node, ast.Call) or not isinstance(event.callee, BoundMethod) or frame.scope:
        return
    last = report.memory(Computes).last
    key, name = id(present(event.callee.receiver)), text_of(metric)
    earlier, last[key] = last.get(key), Computed(frame.env, node)
    if earlier is None or earlier.env is not frame.env or not end(earlier.node) < end(node):
        return
    scope: ast.AST = frame.func.node if frame.func is not None else frame.module.tree
    calls = [item for item in own_nodes(scope) if isinstance(item, ast.Call)]
    taking = [call for call in calls if any(text_of(arg) == name for arg in call.args)]
    before = {text_of(call.func) for call in taking if end(call) < end(earlier.node)}
    between = [call for call in taking if end(earlier.node) < end(call) < end(node)]
    rounds = {_loop_of(frame, call) for call in between}
    if not before or not between or None in rounds or not before.isdisjoint(text_of(call.func) for call in between):
        return
    called = [function_of(resolved(frame.env, call.func)) for call in between]
    modules = [frame.module, *(callee.func.module for callee in called if callee is not None)]
    inner = [(frame.module, item) for item in own_nodes(scope) if _is_between(item, earlier.node, node)]
    if None in called or _loop_of(frame, earlier.node) in rounds or _may_reset(inner, name, modules):
        return
    report(
        frame.module,
        node,
        related=(related(frame.module, earlier.node, "it is computed here, and goes on"),),
        name=name,
        lacking=f"not reset after line {earlier.node.lineno}",
        what="the values before that, too",
    )


def _is_between(node: ast.AST, first: ast.expr, last: ast.expr) -> bool:
    return isinstance(node, ast.expr) and end(first) < end(node) < end(last)


def _loop_of(frame: Frame, node: ast.AST) -> ast.AST | None:
    return next((outer for outer in ancestors(frame.module, node) if isinstance(outer, STATEMENT_LOOPS)), None)


# -- resets ------------------------------------------------------------------------------------------------------------


def _may_reset(places: list[Place], name: str, modules: Iterable[Module] = ()) -> bool:
    """Whether code may reset a metric: it says the word, and not for a call with arguments, or one that gives
    something, as that of an environment; nor for a parameter that is another metric in all calls.
    """
    found = list(running([*(module for module, _ in places), *modules], places))
    begun = {root for _, root in places}
    results = {id(node.value) for _, node in found if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return))}
    calls = [(module, node) for module, node in found if isinstance(node, ast.Call)]
    owned = {id(call.func) for _, call in calls if call.args or call.keywords or id(call) in results}
    owned |= {id(item) for _, call in calls for item in call.args}
    for module, node in found:
        said = [getattr(node, field, None) for field in ("id", "attr", "name", "arg", "value")]
        other = isinstance(node, ast.Attribute) and node.attr == "reset" and id(node) in owned
        if not other and any(isinstance(word, str) and "reset" in word for word in said):
            func = enclosing(module, node, *FUNCTIONS)
            if func in begun or not isinstance(node, ast.Attribute) or not _is_of_another(func, node, name, calls):
                return True
    return False


def _is_of_another(func: ast.AST | None, reset: ast.Attribute, name: str, calls: list[tuple[Module, ast.Call]]) -> bool:
    """Whether what is reset is a parameter of a function that gets another metric in each call of it."""
    if not isinstance(func, ast.FunctionDef) or not isinstance(reset.value, ast.Name):
        return False
    names = positional_names(func.args)
    if reset.value.id not in names or names[0] in {"self", "cls"}:
        return False
    given: list[ast.expr | None] = []
    for caller, call in calls:
        if is_name(call.func, func.name):
            place = names.index(reset.value.id)
            plain = not any(isinstance(item, ast.Starred) for item in call.args)
            found = call.args[place] if plain and place < len(call.args) else None
            named = next((item.value for item in call.keywords if item.arg == reset.value.id), found)
            outer = enclosing(caller, call, *FUNCTIONS)
            own = positional_names(outer.args) if isinstance(outer, ast.FunctionDef) else []
            given.append(None if isinstance(named, ast.Name) and named.id in own else named)
    return bool(given) and all(isinstance(item, (ast.Name, ast.Attribute)) and text_of(item) != name for item in given)
