"""Loops that train in evaluation mode from their second round on (NNX848).

``eval()`` lasts until ``train()``. A loop that switches its model to evaluation after the steps of a round has to
switch it back before those of the next one; so has one that calls a function before the steps which plays or evaluates.

Invariants: model, step and switch are those of one evaluation, and of one loop; nothing says ``train`` in that loop,
nor in a function of these files that may run in it. Who takes the steps may want them in evaluation mode: a switch
before them counts only in a function that has ended.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Fix
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import Called, Mutated
from nnx_lint.model.expressions import text_of
from nnx_lint.model.switching import is_any_module
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.blocks import prepend_to_block
from nnx_lint.rules.edits import unsafe
from nnx_lint.rules.modes.evaluating import made_in
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    assigned_in,
    block_of,
    in_test,
    own_nodes,
    resolved,
)
from nnx_lint.rules.reaching import running
from nnx_lint.rules.repeating import goes_on
from nnx_lint.rules.traces.captures import holds
from nnx_lint.rules.updates.ownership import at_level
from nnx_lint.syntax.binding import assigned_names
from nnx_lint.syntax.walk import walk
from nnx_rules.modes import MODE_ATTRIBUTES
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value


class Step(NamedTuple):
    """A step of an optimizer, the model that it is of, and the loops that it is in."""

    model: Obj
    module: Module
    node: ast.AST
    loops: frozenset[int]


class Switch(NamedTuple):
    """A switch to evaluation, the model that it is of, and the loops that it is in."""

    model: Obj
    frame: Frame
    node: ast.AST
    name: str
    loops: frozenset[int]


class Steps:
    """The training steps so far, and the switches to evaluation in loops."""

    def __init__(self) -> None:
        self.taken: list[Step] = []
        self.switches: list[Switch] = []


@judges_calls(rules.EVALUATION_KEPT, ".update")
def note_step(event: Called, report: Reporter) -> None:
    callee = event.callee
    receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else None
    if not isinstance(receiver, Obj) or not receiver.cls.derives_from("nnx.Optimizer"):
        return
    keeps = receiver.cls.derives_from("nnx.ModelAndOptimizer")
    given = (receiver.args or {}).get("model") if keeps else event.args[0] if event.args else None
    model = present(given) if given is not None else None
    loops = event.frame.rounds()
    if isinstance(model, Obj) and loops:
        step = Step(at_level(model, 0), event.frame.module, event.node, loops)
        steps = report.memory(Steps)
        steps.taken.append(step)
        inside = {each.func.node for each in event.frame.outwards() if each.func is not None}
        for switch in steps.switches:
            if switch.model is step.model and switch.frame.func is not None and switch.frame.func.node not in inside:
                _judge_before(switch, step, report)


def _judge_before(switch: Switch, step: Step, report: Reporter) -> None:
    """A switch in a function that has ended before the step of the same round."""
    frame, shared = switch.frame, (switch.loops & step.loops) - made_in(switch.model)
    if shared and not _is_switched_back(frame, step.module, shared):
        where = (related(step.module, step.node, "a step is taken here, after it"),)
        calls = (node for node in walk(switch.node) if _is_eval(node))
        report(frame.module, next(calls, switch.node), related=where, name=switch.name)


@judges(rules.EVALUATION_KEPT, Mutated)
def evaluation_kept(event: Mutated, report: Reporter) -> None:
    if event.action == "`.eval(...)`" and isinstance(event.target, Obj):
        _judge(event.frame, event.node, event.target, event.name, report)


@judges_calls(rules.EVALUATION_KEPT, ".eval")
def evaluation_of_any_kept(event: Called, report: Reporter) -> None:
    """The same of a module of which nothing is known: who switches it to evaluation says that it has modes."""
    model = present(event.callee.receiver) if isinstance(event.callee, BoundMethod) else UNKNOWN
    func = event.node.func if isinstance(event.node, ast.Call) else None
    if is_any_module(model) and isinstance(func, ast.Attribute) and not (event.args or event.keywords):
        _judge(event.frame, event.node, model, text_of(func.value), report)


def _judge(frame: Frame, node: ast.AST, model: Obj, name: str, report: Reporter) -> None:
    if frame.scope or in_test(frame):
        return
    loops = frame.rounds()
    if loops and frame.func is not None:
        report.memory(Steps).switches.append(Switch(model, frame, node, name, loops))
    for step in report.memory(Steps).taken:
        shared = (loops & step.loops) - made_in(model)
        if step.model is model and shared and not _is_switched_back(frame, step.module, shared):
            if _is_last(frame.module, node, shared) or not _lasts(frame, model, shared):
                return
            where = (related(step.module, step.node, "a step is taken here, and again in the next round"),)
            calls = (node for node in walk(node) if _is_eval(node))
            fix = partial(_train_first, frame.module, shared, node, name)
            report(frame.module, next(calls, node), fix=fix, related=where, name=name)
            return


def _train_first(module: Module, loops: frozenset[int], node: ast.AST, name: str) -> Fix | None:
    """Switch to training at the start of each round of the outermost loop that both stand in."""
    found = [each for each in ancestors(module, node) if isinstance(each, STATEMENT_LOOPS) and id(each) in loops]
    if not found or not name.replace(".", "").isidentifier() or assigned_in(found[-1])[name.partition(".")[0]]:
        return None
    title = f"Call `{name}.train()` in each round"
    return unsafe(title, prepend_to_block(module.source, found[-1].body, f"{name}.train()"))


def _lasts(frame: Frame, model: Obj, loops: frozenset[int]) -> bool:
    """Whether one of these loops goes on with a model in the next round: where it stands, something has the model that
    it does not bind anew.
    """
    for each in frame.outwards():
        scope = each.func.node if each.func is not None else each.module.tree
        for loop in own_nodes(scope):
            if isinstance(loop, STATEMENT_LOOPS) and id(loop) in loops:
                known = {**each.module.env.names, **each.env.names}
                having = {name for name, value in known.items() if _has(value, model)}
                if having - assigned_names([loop]):
                    return True
    return False


def _has(value: Value, model: Obj) -> bool:
    return present(value) is model or holds(present(value), model)


def _is_last(module: Module, node: ast.AST, loops: frozenset[int]) -> bool:
    """Whether the loop ends after the switch: ``if done: model.eval(); break``."""
    inner = node
    for outer in ancestors(module, node):
        if id(outer) in loops or isinstance(outer, FUNCTIONS):
            return False
        if isinstance(inner, ast.stmt) and not goes_on(block_of(module, inner)):
            return True
        inner = outer
    return False


def _is_eval(node: ast.AST) -> bool:
    """Whether a node is the call that switches, which a function does of which a summary tells."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "eval"


def _is_switched_back(frame: Frame, other: Module, loops: frozenset[int]) -> bool:
    """Whether anything that may run in one of these loops switches a model to training."""
    modules = dict.fromkeys([other, *(each.module for each in frame.outwards())])
    around = [
        (module, node)
        for module in modules
        for node in walk(module.tree)
        if isinstance(node, STATEMENT_LOOPS) and id(node) in loops
    ]
    return any(_switch(module, node) for module, node in running(modules, around))


def _switch(module: Module, node: ast.AST) -> bool:
    """Whether a node may decide a mode."""
    if isinstance(node, ast.keyword):
        return node.arg in MODE_ATTRIBUTES
    if isinstance(node, ast.Constant):
        return node.value in SWITCHES  # `getattr(model, "train")`
    if not isinstance(node, ast.Attribute) or node.attr not in SWITCHES:
        return False
    owner = resolved(module.env, node.value)
    return not (isinstance(owner, Obj) and isinstance(owner.cls, UserClass) and owner.cls.find(node.attr) is not None)


SWITCHES = frozenset({"set_attributes", "train", "view", "with_attributes"})
"""Methods and functions that switch modes."""
