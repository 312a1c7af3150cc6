"""Trained models that are evaluated in the mode for training (NNX849).

A model is in training mode from the moment it is made. A program that never says ``eval`` and uses its trained model
still drops values at random, and normalizes by whatever batch it is given.

Not every forward pass without gradients is an evaluation: a generator makes samples for a discriminator, a policy acts.
So it counts where no training step shares a loop with it, because the training is over; or where what it returns is
compared with labels, in a part of the loop that takes no step.

Invariants: model, step and forward pass are those of one run; nothing that may run before the pass switches a mode; one
that is repeated for the same input is there for the noise.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.events import Mutated
from nnx_lint.model.expressions import text_of
from nnx_lint.model.leaves import made_first, same_object
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    enclosing,
    in_test,
    own_nodes,
    reads_of,
    resolved,
)
from nnx_lint.rules.reaching import running
from nnx_lint.rules.repeating import COMPREHENSIONS
from nnx_lint.syntax.binding import assigned_names
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.modes import MODE_ATTRIBUTES
from nnx_rules.rules import construction as rules
from nnx_rules.transforms import COMPILING_ONLY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

SWITCHES = frozenset({"eval", "set_attributes", "view", "with_attributes"})
"""Methods and functions that switch a mode, called or handed on."""

MENTIONED = re.compile(rf"\b(?:{'|'.join(sorted(SWITCHES | MODE_ATTRIBUTES))})\b")

EFFECTS = {
    "RngCount": "drops values at random",
    "BatchStat": "normalizes by this batch, and takes it into its statistics",
}
"""What a layer does in training mode, by what it changes."""


class Pass(NamedTuple):
    """A forward pass of a model: where it is called, and by which name."""

    frame: Frame
    call: ast.Call
    name: str


class Step(NamedTuple):
    """A step of an optimizer: the model, the functions that run, outermost last, and the loops around."""

    model: Obj
    frames: list[Frame]
    loops: frozenset[int]


class Steps:
    """The training steps so far, and what ``eval()`` was called of, by the expression that names the method."""

    def __init__(self) -> None:
        self.taken: list[Step] = []
        self.switched: dict[ast.AST, list[Value]] = {}


@judges_calls(rules.EVALUATED_IN_TRAINING, ".eval")
def switch(event: Called, report: Reporter) -> None:
    callee, func = event.callee, event.node.func if isinstance(event.node, ast.Call) else None
    if func is not None and not event.keywords:
        receiver = present(callee.receiver) if isinstance(callee, BoundMethod) and callee.func is None else UNKNOWN
        report.memory(Steps).switched.setdefault(func, []).append(receiver)


@judges_calls(rules.EVALUATED_IN_TRAINING, "optax.apply_updates")
def step_of_state(event: Called, report: Reporter) -> None:
    params = present(event.args[0] or UNKNOWN) if event.args else UNKNOWN
    model = present(params.of) if isinstance(params, StateVal) else UNKNOWN
    if isinstance(model, Obj) and not model.assumed:
        report.memory(Steps).taken.append(Step(made_first(model), [*event.frame.outwards()], event.frame.rounds()))


@judges(rules.EVALUATED_IN_TRAINING, Mutated)
def evaluated_in_training(event: Mutated, report: Reporter) -> None:
    target = event.target
    if event.effect != "call" or not isinstance(target, Obj):
        return
    if event.action == "`.update(...)`":
        model = present((target.args or {}).get("model", target))
        if target.cls.derives_from("nnx.Optimizer") and isinstance(model, Obj) and not model.assumed:
            report.memory(Steps).taken.append(Step(model, [*event.frame.outwards()], event.frame.rounds()))
        return
    steps = report.memory(Steps).taken
    if not steps or event.action != "calling it" or event.state not in EFFECTS:
        return
    if isinstance(event.node, ast.Call) and any(item.arg in MODE_ATTRIBUTES for item in event.node.keywords):
        return  # `eval` would change nothing
    for step in steps:
        passed = _forward_pass(event, step.model)
        if passed is None or _is_in_step(passed, step):
            continue
        if _is_evaluation(passed, step) and not _is_switched(passed, step, report):
            layer = target.cls.name if event.node is passed.call else event.name.removeprefix("self.")
            report(passed.frame.module, passed.call, name=passed.name, layer=f"its `{layer}` {EFFECTS[event.state]}")
            return


def _forward_pass(event: Mutated, model: Obj) -> Pass | None:
    """The call of a model that leads to a layer of it which certainly runs then, if nobody differentiates it."""
    frame, call = event.frame, event.node
    if any(each.row.name not in COMPILING_ONLY for scope in frame.scope for each in (scope.applied, *scope.within)):
        return None
    found: Pass | None = None
    if isinstance(call, ast.Call) and same_object(resolved(frame.env, call.func) or event.target, model):
        found = Pass(frame, call, text_of(call.func))  # a Sequential
    for each in frame.outwards():
        if each.doubts:
            break
        if isinstance(each.receiver, Obj) and same_object(each.receiver, model):
            func = each.call.func if isinstance(each.call, ast.Call) else None
            if func is not None and each.caller is not None and isinstance(each.call, ast.Call):
                called = not isinstance(func, ast.Attribute) or each.func is None or each.func.name == "__call__"
                found = Pass(each.caller, each.call, text_of(func if called else getattr(func, "value", func)))
    return found


def _is_in_step(passed: Pass, step: Step) -> bool:
    """Whether a forward pass is part of a compiled step, as that of a teacher is."""
    first = step.frames[0]
    funcs = (each.func for each in passed.frame.outwards())
    nodes = [func.node for func in funcs if func is not None]
    return bool(first.scope) and first.func is not None and any(node is first.func.node for node in nodes)


def _is_evaluation(passed: Pass, step: Step) -> bool:
    """Whether a forward pass certainly is there to see how well a model does, or to use it."""
    frame, call, _ = passed
    frames, loops, parent = [*frame.outwards()], frame.rounds(), next(ancestors(frame.module, call), None)
    if _is_dropped(frame.module, parent) or (isinstance(parent, ast.Attribute) and parent.attr in FORM):
        return False  # it is there for the statistics, or for what is the same in both modes
    if frames[-1] is not step.frames[-1] or any(map(in_test, frames)) or _is_for_noise(frame, call, loops - step.loops):
        return False
    shared = (loops & step.loops) - made_in(step.model)
    if not shared:
        return True
    trains = {id(each) for each in step.frames}
    apart = [each for each in frames if id(each) not in trains]
    if apart:
        compared = any(each.func is not None and _compares(each.func.node) for each in apart)
        last, outcome = apart[-1].caller, apart[-1].call
        return compared or (last is not None and outcome is not None and _is_shown(last, outcome))
    own = [node for node in ancestors(frame.module, call) if id(node) in loops - shared]
    return (bool(own) and _compares(own[-1])) or _is_shown(frame, call)


FORM = frozenset({"dtype", "ndim", "shape", "size"})
"""What an array is asked for that is the same in both modes."""


def _is_dropped(module: Module, parent: ast.AST | None) -> bool:
    """Whether the statement around a call leaves what it returns."""
    if not isinstance(parent, ast.Assign):
        return isinstance(parent, ast.Expr)
    scope = enclosing(module, parent, *FUNCTIONS) or module.tree
    names = [target.id for target in parent.targets if isinstance(target, ast.Name)]
    return len(names) == len(parent.targets) and not any(reads_of(scope, name) for name in names)


def made_in(model: Obj) -> set[int]:
    """The loops that make a model anew in each round."""
    outer = ancestors(*model.origin) if model.origin is not None else ()
    return {id(node) for node in outer if isinstance(node, STATEMENT_LOOPS)}


def _is_shown(frame: Frame, node: ast.AST, depth: int = 3) -> bool:
    """Whether all that is done with what an expression computes is to show it, to keep it in a list, to compare it with
    another value, or to return it to who does nothing else.
    """
    module = frame.module
    for outer in ancestors(module, node):
        if isinstance(outer, SHOWING) or (isinstance(outer, ast.Call) and _shows(outer)):
            return True
        if isinstance(outer, (*FUNCTIONS, *STATEMENT_LOOPS)):
            return False
        if isinstance(outer, ast.Return) and frame.caller is not None and frame.call is not None and depth:
            dropped = isinstance(next(ancestors(frame.caller.module, frame.call), None), ast.Expr)
            return dropped or _is_shown(frame.caller, frame.call, depth - 1)
        if isinstance(outer, (ast.Assign, ast.AugAssign)):
            targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
            parts = [part for each in targets for part in walk(each)]
            whole = all(isinstance(part, (ast.Name, ast.Tuple, ast.expr_context)) for part in parts)
            scope = enclosing(module, outer, *FUNCTIONS) or module.tree
            names = {part.id for part in parts if isinstance(part, ast.Name)}
            reads = [read for name in names for read in reads_of(scope, name)]
            return bool(whole and reads and depth) and all(_is_shown(frame, read, depth - 1) for read in reads)
    return False


SHOWING = (ast.JoinedStr, ast.Compare)


def _shows(call: ast.Call) -> bool:
    func = call.func
    return (isinstance(func, ast.Name) and func.id == "print") or (
        isinstance(func, ast.Attribute) and func.attr == "append"
    )


def _is_for_noise(frame: Frame, call: ast.Call, loops: frozenset[int]) -> bool:
    """Whether a loop repeats a forward pass for what it is given in each round alike."""
    for outer in ancestors(frame.module, call):
        if isinstance(outer, FUNCTIONS):
            return False
        if isinstance(outer, STATEMENT_LOOPS):
            if id(outer) in loops and isinstance(outer, ast.For) and not _reads(outer.body, assigned_names([outer])):
                return True
        elif isinstance(outer, COMPREHENSIONS):
            names = {part.id for each in outer.generators for part in walk(each.target) if isinstance(part, ast.Name)}
            if not _reads([call], names):
                return True
    return False


def _reads(nodes: list[ast.stmt] | list[ast.Call], names: set[str]) -> bool:
    parts = (part for node in nodes for part in walk(node))
    return any(isinstance(part, ast.Name) and part.id in names and isinstance(part.ctx, ast.Load) for part in parts)


@remembered
def _compares(code: ast.AST) -> bool:
    """Whether the class of the highest score is compared with another one, or labels are given to a metric."""
    nodes = walk(code)
    highest = any(isinstance(node, ast.Attribute) and node.attr == "argmax" for node in nodes)
    equal = any(isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq) for node in nodes)
    given = any(isinstance(node, ast.Call) and _is_given_labels(node) for node in nodes)
    return (highest and equal) or given


def _is_given_labels(call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Attribute) and call.func.attr == "update"
    return named and any(item.arg == "labels" for item in call.keywords)


def _is_switched(passed: Pass, step: Step, report: Reporter) -> bool:
    """Whether anything that may run before a forward pass may switch a mode, of more than parts of the model that have
    been followed: those are in the mode that they are known to be in.
    """
    frames = [*passed.frame.outwards()]
    modules = dict.fromkeys([each.module for each in (*frames, *step.frames)])
    if not any(module.mentions(MENTIONED) for module in modules):
        return False
    outermost = frames[-1]
    last = frames[-2].call if len(frames) > 1 else passed.call
    noted = report.memory(Steps).switched
    found = (node for _, node in running(modules, _before(outermost, last or passed.call)) if _switches(node))
    return not all(node in noted and all(_is_part(each, step.model) for each in noted[node]) for node in found)


def _is_part(value: Value, model: Obj) -> bool:
    """Whether a value certainly is what an attribute of a model holds."""
    held = (attribute_of(model, name) for name in attribute_names(model))
    return isinstance(value, Obj) and any(attr is not None and same_object(attr.value, value) for attr in held)


def _before(frame: Frame, last: ast.AST) -> Iterator[tuple[Module, ast.AST]]:
    """What a function, or a script, itself runs up to the end of a node, and in the loops around it."""
    scope: ast.AST = frame.func.node if frame.func is not None else frame.module.tree
    loops = [node for node in ancestors(frame.module, last) if isinstance(node, STATEMENT_LOOPS)]
    end = max((getattr(node, "end_lineno", 0) for node in (last, *loops)), default=0)
    for node in own_nodes(scope):
        if isinstance(node, NAMING) and node.lineno <= end:
            yield frame.module, node


NAMING = (ast.Name, ast.Attribute, ast.Constant)


def _switches(node: ast.AST) -> bool:
    """Whether a node may switch a mode, or set what the mode is of a layer."""
    if isinstance(node, ast.Name):
        return node.id in SWITCHES
    named = node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else None
    return named in SWITCHES or named in MODE_ATTRIBUTES
