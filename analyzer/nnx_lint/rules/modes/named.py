"""Evaluations that say of their model that it learns (parts of NNX844 and NNX849).

``eval_step`` calls ``model(batch, train=True)``, ``evaluate`` begins with ``model.train()``: nothing fails, and the
numbers are those of a model that drops values, or goes on with its statistics.

Invariants: the name of the function, or of its class, says that it evaluates, and nothing in it speaks of a purpose
that noise has; the flag is a constant, and the function gives no call the other one. A policy may act at random in an
evaluation, so ``deterministic`` is a flag of other networks only.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.switching import is_any_module
from nnx_lint.model.values import Const
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.modes.inverted import LEARNING, RESTING
from nnx_lint.rules.program import calls_in, in_test, keyword_node
from nnx_lint.syntax.dotted import dotted_name, last_name
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.callables import FuncVal
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.values import Value

EVALUATING = re.compile(
    r"(?<![a-z])(eval|evaluate|evaluation|validate|validation|val(id)?_(batch|epoch|fn|loop|step))(?![a-z])|Eval|Validat"
)
"""How functions and classes are called that see how well a model does."""

FOR_NOISE = re.compile(r"augment|bayes|dropout|ensemble|explor|mc_|noise|sampl|shape|stochastic|train|uncertain", re.I)
"""What such a name has besides where the mode for training may be meant."""

NETWORK = re.compile(r"(^|_)(classifier|decoder|encoder|model|module|net|network)$")
"""How networks are called that nobody asks to act at random."""


def says_mode(event: Called) -> bool:
    """Whether a call gives a flag of the mode for training as a constant."""
    if not event.keywords:
        return False
    return any(isinstance(value, Const) and value.value is (name in LEARNING) for name, value in _flags(event))


def _flags(event: Called) -> list[tuple[str, Value]]:
    return [(name, value) for name, value in event.keywords.items() if name in LEARNING or name in RESTING]


@judges(rules.MODE_INVERTED, Called, when=says_mode)
def flag_of_training(event: Called, report: Reporter) -> None:
    frame, call = event.frame, event.node
    func = _evaluating(frame)
    if func is None or not isinstance(call, ast.Call) or not _is_of_network(event, call):
        return
    for name, value in _flags(event):
        node = keyword_node(call, name)
        learns = name in LEARNING
        if not isinstance(value, Const) or value.value is not learns or not isinstance(node, ast.Constant):
            continue
        others = (keyword_node(other, name) for other in calls_in(func.node) if other is not call)
        if any(isinstance(other, ast.Constant) and other.value is not learns for other in others):
            continue
        meaning = "something is learned" if learns else "nothing is learned"
        slots: dict[str, Any] = {"given": str(learns), "mend": f"{name}={not learns}"}
        slots |= {"meaning": f"{meaning}, and `{_shown(func)}` only evaluates"}
        fix = unsafe(f"Write `{name}={not learns}`", replace(frame.module.source, node, str(not learns)))
        report(frame.module, node, fix=fix, name=name, **slots)


@judges_calls(rules.EVALUATED_IN_TRAINING, ".train")
def switched_to_training(event: Called, report: Reporter) -> None:
    frame, call = event.frame, event.node
    func = _evaluating(frame)
    switch = call.func if isinstance(call, ast.Call) and not call.args and not call.keywords else None
    if func is None or not isinstance(switch, ast.Attribute):
        return
    name = dotted_name(switch.value)
    if name is None or not (is_module(event.owner) or is_any_module(event.owner) or NETWORK.search(name)):
        return
    if any(last_name(other.func) in SWITCHING for other in calls_in(func.node)):
        return
    layer = f"`{text_of(switch)}()` says so, and `{_shown(func)}` only evaluates"
    report(frame.module, call, name=name, layer=layer)


SWITCHING = frozenset({"eval", "eval_mode", "set_attributes", "set_mode", "view", "with_attributes"})
"""Functions and methods that may switch a model to evaluation."""


def _evaluating(frame: Frame) -> FuncVal | None:
    """The running function, where what it is called says that it evaluates."""
    func = frame.func
    if func is None or in_test(frame):
        return None
    said = EVALUATING.search(_shown(func)) and not FOR_NOISE.search(_shown(func))
    return func if said else None


def _shown(func: FuncVal) -> str:
    """What a function is called, of a method without a name of its own its class."""
    return func.cls.name if isinstance(func.cls, UserClass) and func.name in NAMELESS else func.name


NAMELESS = frozenset({"__call__", "call", "run", "step"})
"""Methods of which the class says what they do."""


def _is_of_network(event: Called, call: ast.Call) -> bool:
    """Whether a call is of a network, or gives one to what is called."""
    values = (event.callee, *event.args)
    return any(map(is_module, values)) or any(NETWORK.search(last_name(node)) for node in (call.func, *call.args))
